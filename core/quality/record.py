"""One record: everything measured of one encoder on one dataset. Pure and picklable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.quality.base import Metric
from core.quality.label_free import metric_rows, with_bands
from core.quality.probes import SWEEP, ProbeResult, knn_probe, ridge_sweep
from core.quality.sample import Sample
from core.stats.intervals import Interval, cluster_share_interval

Progress = Callable[[float, str], None]

# Curves are drawn, not analysed: this many points show all there is to see.
CURVE_POINTS = 400


@dataclass(frozen=True)
class Record:
    """Label-free metrics of the training rows and probe accuracy on the test rows.

    Attributes
    ----------
    metrics : dict of str to Metric
        From the training features alone, without labels.
    linear, knn, knn_cosine : ProbeResult
        Ridge regression at the chosen ridge; 1-NN, Euclidean and cosine.
    linear_interval, knn_interval : Interval
        95 %, clusters of test rows resampled together.
    sweep : dict of float to ProbeResult
        The linear probe over ridges, 0 included.
    eigenvalues : ndarray, shape (r,)
        Covariance eigenvalues of the training features, descending.
    twonn_x, twonn_y : ndarray, at most 400 points
        ``ln mu`` and ``-ln(1 - F)``, ascending.
    n_dropped : int
        Rows that were not finite and left out of the probes.
    """

    metrics: dict[str, Metric]
    linear: ProbeResult
    knn: ProbeResult
    knn_cosine: ProbeResult
    linear_interval: Interval
    knn_interval: Interval
    sweep: dict[float, ProbeResult]
    eigenvalues: np.ndarray
    twonn_x: np.ndarray
    twonn_y: np.ndarray
    n_dropped: int


def curves(x: np.ndarray, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues, ``ln mu`` and ``-ln(1 - F)`` of the rows that are measured."""
    sample = Sample(x[metric_rows(len(x), seed=seed)], seed=seed)
    mu = sample.ratios.mu
    rank = np.arange(1, len(mu))  # the last one has F = 1 and no finite height
    if len(rank) > CURVE_POINTS:
        rank = np.unique(np.linspace(1, len(mu) - 1, CURVE_POINTS).round().astype(int))
    height = -np.log1p(-rank / len(mu)) if len(mu) else np.empty(0)
    return sample.spectrum.variances.cpu().numpy(), np.log(mu[rank - 1]), height


def score_record(
    xtr: np.ndarray,
    ytr: np.ndarray,
    xte: np.ndarray,
    yte: np.ndarray,
    *,
    clusters: np.ndarray | None = None,
    ridge: float = 1e-6,
    n_boot: int = 2000,
    n_draws: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Record:
    """Measure one encoder: metrics on the training rows, probes on the test rows.

    Parameters
    ----------
    xtr, xte : ndarray, shapes (n, d) and (m, d)
        Features.
    ytr, yte : array, shapes (n,) and (m,)
        Labels, used by the probes only.
    clusters : array, shape (m,), optional
        Test rows that belong together (pictures of one concept); default: each on its own.
    ridge : float
        Ridge of the linear probe.
    n_boot, n_draws, seed : int
        Resamples of the intervals, subsamples of the metrics' bands, seed.

    Raises
    ------
    BadInput
        Shapes differ, or no finite row is left on one side.
    """
    good_tr, good_te = np.isfinite(xtr).all(1), np.isfinite(xte).all(1)
    if not good_tr.any() or not good_te.any():
        raise BadInput("No finite row is left to train or test on.", "Extract the features again.")
    groups = np.arange(len(xte)) if clusters is None else np.asarray(clusters)
    train, test = (xtr[good_tr], ytr[good_tr]), (xte[good_te], yte[good_te])
    metrics = with_bands(xtr, n_draws=n_draws, seed=seed, progress=progress)
    ridges = sorted({*SWEEP, float(ridge)})
    sweep = ridge_sweep(*train, *test, ridges=ridges)
    linear, knn = sweep[float(ridge)], knn_probe(*train, *test)
    kept = groups[good_te]
    spectrum, twonn_x, twonn_y = curves(xtr, seed=seed)
    return Record(
        metrics=metrics,
        linear=linear,
        knn=knn,
        knn_cosine=knn_probe(*train, *test, metric="cosine"),
        linear_interval=cluster_share_interval(linear.correct, kept, n_boot=n_boot, seed=seed),
        knn_interval=cluster_share_interval(knn.correct, kept, n_boot=n_boot, seed=seed),
        sweep=sweep,
        eigenvalues=spectrum,
        twonn_x=twonn_x,
        twonn_y=twonn_y,
        n_dropped=int((~good_tr).sum() + (~good_te).sum()),
    )
