"""Other ways to compare within- and cross-domain descriptors: densities without a model, transport.

RADAR (arXiv 2605.23028) reports ablations over density estimation and optimal transport
without their formulas; these are ours. All are set against the same null as the main score.

Axes: n and m rows, c columns (theta, d or both).
"""

from __future__ import annotations

import numpy as np

from core.linalg.sinkhorn import sinkhorn_divergence
from core.linalg.transport import sliced_wasserstein

BINS = 30
_TAIL = 0.995
_PROJECTIONS = 500
# Transport with entropy costs n x m an iteration: a joint comparison keeps this many rows,
# one of a dozen layers fewer.
_MOST_ROWS, _MOST_LAYER_ROWS = 1_000, 300


def kde_kl(w: np.ndarray, x: np.ndarray, seed: int) -> float:
    """Return the symmetric KL by Gaussian kernels (Scott's rule) at held-out rows, in nats.

    Parameters
    ----------
    w, x : ndarray, shape (n, c) and (m, c)
        A random half of each makes the density, the other half is where it is read: at its
        own points a kernel density would flatter itself.
    seed : int

    Returns
    -------
    float
        Noise may make it slightly negative. A column without spread is left out; 0 when
        none is left.
    """
    from scipy.stats import gaussian_kde

    alive = (w.std(0) > 0) & (x.std(0) > 0)
    if not alive.any():
        return 0.0
    rng = np.random.default_rng(seed)
    parts = []
    for rows in (w[:, alive], x[:, alive]):
        order = rng.permutation(len(rows))
        parts.append((rows[order[::2]].T, rows[order[1::2]].T))
    (fit_w, read_w), (fit_x, read_x) = parts
    p, q = gaussian_kde(fit_w), gaussian_kde(fit_x)
    there = _floored(p, read_w) - _floored(q, read_w)
    back = _floored(q, read_x) - _floored(p, read_x)
    return float(0.5 * (there.mean() + back.mean()))


def _floored(density: object, points: np.ndarray) -> np.ndarray:
    # Far outside a kernel density underflows to 0, whose logarithm would decide everything.
    return np.maximum(density.logpdf(points), -100.0)  # type: ignore[attr-defined]


def histogram_kl(w: np.ndarray, x: np.ndarray, angled: bool) -> float:
    """Return ``sum (p - q) ln(p / q) / 2`` of two histograms of 30 bins a side, in nats.

    Parameters
    ----------
    w, x : ndarray, shape (n, c) and (m, c)
        As they are: theta in radians, d unscaled.
    angled : bool
        Whether the first column is theta, binned over [0, pi]; d is binned up to its pooled
        99.5 % quantile, beyond which values count in the last bin.

    Returns
    -------
    float
        At least 0; half a count is added to each bin.
    """
    tops = np.quantile(np.concatenate([w, x]), _TAIL, axis=0)
    if angled:
        tops[0] = np.pi
    tops = np.where(tops > 0, tops, 1.0)
    ranges = [(0.0, float(top)) for top in tops]

    def share(rows: np.ndarray) -> np.ndarray:
        counts, _ = np.histogramdd(np.clip(rows, 0.0, tops), BINS, range=ranges)
        return np.asarray((counts + 0.5) / (counts + 0.5).sum())

    p, q = share(w), share(x)
    return float(0.5 * ((p - q) * np.log(p / q)).sum())


def transport(
    w: np.ndarray, x: np.ndarray, kind: str, seed: int, device: str, *, layer: bool = False
) -> float:
    """Return the sliced 2-Wasserstein distance or the debiased Sinkhorn divergence.

    Parameters
    ----------
    w, x : ndarray, shape (n, c) and (m, c)
        Standardised together; the value is in their units.
    kind : {"sliced", "sinkhorn"}
    seed : int
        Draws the rows that Sinkhorn keeps; directions are the same for all blends.
    device : str
    layer : bool
        One layer of many: Sinkhorn keeps 300 rows instead of 1,000.
    """
    if kind == "sliced":
        return sliced_wasserstein(w, x, n_projections=_PROJECTIONS)
    most = _MOST_LAYER_ROWS if layer else _MOST_ROWS
    rng = np.random.default_rng(seed)
    kept = [rows[rng.permutation(len(rows))[:most]] for rows in (w, x)]
    return sinkhorn_divergence(kept[0], kept[1], tol=1e-4, max_iter=300, device=device).value
