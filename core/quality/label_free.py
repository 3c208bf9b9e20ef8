"""All label-free metrics of one feature matrix, sharing one spectrum and one search.

Sample sizes: spectral metrics and TwoNN on up to 10,000 rows, diffusion entropy on up to
2,000 of these; the subset depends on the seed and the number of rows only, so every model of
a dataset is measured on the same pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from core.errors import BadInput, NotFound
from core.quality.base import Metric, MetricSpec, metric_specs
from core.quality.sample import Sample, as_matrix

MAX_ROWS = 10_000

Progress = Callable[[float, str], None]


def metric_rows(n: int, *, max_rows: int = MAX_ROWS, seed: int = 0) -> np.ndarray:
    """Return the sorted row numbers that are measured: all, or a seeded ``max_rows`` of them."""
    if n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:max_rows])


def _chosen(names: Sequence[str] | None) -> dict[str, MetricSpec]:
    specs = metric_specs(optional=names is not None)
    for name in names or ():
        if name not in specs:
            raise NotFound(
                f"metric {name!r} is not registered.", f"Choose among: {', '.join(specs)}."
            )
    return specs if names is None else {name: specs[name] for name in names}


def label_free_metrics(
    x: np.ndarray,
    *,
    names: Sequence[str] | None = None,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    device: str | None = None,
) -> dict[str, Metric]:
    """Return every registered metric of ``x``.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features, one row a sample, float16, float32 or float64.
    names : sequence of str, optional
        Which metrics (default: the suite of :func:`metric_specs`; optional ones by name).
    max_rows, seed : int
        Above ``max_rows`` rows a seeded subset is measured and flagged ``subsampled``.
    device : str, optional
        Where the matrix products run.

    Returns
    -------
    dict of str to Metric
        A value that cannot be computed is NaN with a flag that says why.

    Raises
    ------
    BadInput
        ``x`` is not a matrix of numbers.
    NotFound
        A name is not registered.

    Examples
    --------
    >>> out = label_free_metrics(np.random.default_rng(0).standard_normal((200, 16)))
    >>> round(out["rankme"].value, 1), out["twonn"].n_used
    (15.8, 200)
    """
    array = as_matrix(x)
    if max_rows < 2:
        raise BadInput(f"max_rows={max_rows} must be at least 2.", "10,000 is the default.")
    specs = _chosen(names)
    at = metric_rows(len(array), max_rows=max_rows, seed=seed)
    sample = Sample(array if len(at) == len(array) else array[at], seed=seed, device=device)
    common = sample.common_flags()
    if len(at) < len(array):
        common = (*common, "subsampled")
    if sample.n < 2:
        few = Metric(float("nan"), sample.n).flagged("too_few_rows", *common)
        return dict.fromkeys(specs, few)
    return {name: spec.compute(sample).flagged(*common) for name, spec in specs.items()}


def with_bands(
    x: np.ndarray,
    *,
    share: float = 0.9,
    n_draws: int = 5,
    names: Sequence[str] | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Metric]:
    """Return the metrics with the range each takes over random subsamples.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features.
    share : float
        Share of the rows a subsample keeps, 0 < share < 1.
    n_draws : int
        Subsamples; 0 gives no bands.

    Returns
    -------
    dict of str to Metric
        ``band`` spans the lowest and highest value, the full sample's included.
    """
    array = as_matrix(x)
    array = array[metric_rows(len(array), seed=seed)]
    full = label_free_metrics(array, names=names, seed=seed, device=device)
    rng = np.random.default_rng(seed)
    seen: dict[str, list[float]] = {name: [metric.value] for name, metric in full.items()}
    for draw in range(n_draws):
        at = np.sort(rng.permutation(len(array))[: max(2, round(share * len(array)))])
        drawn = label_free_metrics(array[at], names=names, seed=seed, device=device)
        for name, metric in drawn.items():
            seen[name].append(metric.value)
        if progress is not None:
            progress((draw + 1) / n_draws, f"subsample {draw + 1} of {n_draws}")
    out = {}
    for name, metric in full.items():
        values = np.array(seen[name] + list(metric.band or ()))
        known = values[np.isfinite(values)]
        wide = len(known) > 1 and np.isfinite(metric.value)
        band = (float(known.min()), float(known.max())) if wide else None
        out[name] = replace(metric, band=band)
    return out
