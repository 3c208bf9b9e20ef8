"""Stable rank and coherence of the features as they are (not centred).

Rudelson, Vershynin 2007 (stable rank ``|X|_F^2 / s_1^2``); Candes, Recht 2009 (coherence
``max_i |u_i|^2 n / r``, u_i the rows of the left singular vectors).
"""

from __future__ import annotations

import numpy as np
import torch

from core.linalg.spectra import BLOCK, Spectrum, self_product
from core.quality.base import Metric, register
from core.quality.sample import Sample


def frobenius_over_top(found: Spectrum) -> float:
    """Return ``|X|_F^2 / s_1^2``; NaN for all-zero features."""
    squares = found.raw.square()
    return float(squares.sum() / squares[0]) if float(squares.sum()) > 0 else float("nan")


def stable_rank(x: np.ndarray) -> float:
    """Return the stable rank ``|X|_F^2 / s_1^2``, 1 ... min(n, d); NaN for all zeros.

    Examples
    --------
    >>> round(stable_rank(np.eye(3)), 6)
    3.0
    """
    return frobenius_over_top(Sample(x).spectrum)


def coherence(x: np.ndarray) -> float:
    """Return the coherence ``max_i |u_i|^2 n / d`` of the features, 1 ... n / d.

    The largest leverage of a row over the mean one: data dependent and the least stable of
    the measures. NaN when no row remains or ``n <= d``, where every leverage is one.

    Examples
    --------
    >>> round(coherence(np.vstack([np.eye(2), np.eye(2)])), 6)
    1.0
    """
    return _largest_leverage(Sample(x))


def _largest_leverage(sample: Sample) -> float:
    if sample.n <= sample.d or sample.spectrum.raw[0] == 0:
        return float("nan")
    gram = sum((self_product(b.double()) for b in sample.x.split(BLOCK)), start=torch.zeros(()))
    inverse = torch.linalg.pinv(gram, hermitian=True)
    top = max(
        float(((b := rows.double()) @ inverse * b).sum(1).max()) for rows in sample.x.split(BLOCK)
    )
    return top * sample.n / sample.d


@register(
    "stable_rank",
    "Stable rank",
    family="spectral",
    expected_sign=1,
    meaning="Total energy over the strongest direction's, mean included (1 to d).",
    log=True,
)
def compute(sample: Sample) -> Metric:
    """Return the stable rank of the uncentred features."""
    return Metric(frobenius_over_top(sample.spectrum), sample.n)


@register(
    "coherence",
    "Coherence",
    family="spectral",
    expected_sign=0,
    meaning="Largest leverage of a row over the mean one (1 even): the least stable measure.",
    log=True,
    optional=True,
)
def compute_coherence(sample: Sample) -> Metric:
    """Return the coherence; NaN with no more rows than columns."""
    out = Metric(_largest_leverage(sample), sample.n)
    return out.flagged("rank_capped") if sample.n <= sample.d else out
