"""KODA: what a target representation holds together and a reference does not.

arXiv 2606.04180, Eq. 8 (the problem) and Eq. 12 (the sequence), solved exactly: see
``core.contrast.solver`` for the dual and its certificate, ``lowrank`` for features, ``columns``
for many rows and ``scale`` for the bandwidth.

Axes: n samples, k directions, m columns of both feature tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from core.contrast.baseline import feature_pair
from core.contrast.clusters import orient
from core.contrast.inputs import (
    FeatureSimilarity,
    Matrix,
    MatrixSimilarity,
    lapack_thread,
    raw_epsilon,
    square_matrix,
)
from core.contrast.lowrank import lift, reduce
from core.contrast.scale import Scale, automatic_scale, fixed_scale
from core.contrast.sequence import Direction, Progress, solve_sequence, solve_sequence_free
from core.contrast.types import KodaResult, Similarity
from core.device import pick_device
from core.errors import BadInput
from core.linalg.kernels import DENSE_LIMIT, EXACT_LIMIT, Kernel, Table, make_kernel
from core.linalg.random_features import FourierTable

DEFAULT_FREQUENCIES = 1000


def koda(
    target: Table,
    reference: Table,
    *,
    kernel: str = "rbf",
    group_size: float | None = None,
    n_features: int | None = None,
    orthogonal: bool = False,
    epsilon: float | None = None,
    epsilon_mode: str = "unit_trace",
    n_directions: int = 10,
    centered: bool = True,
    seed: int = 0,
    device: str | None = None,
    progress: Progress | None = None,
) -> KodaResult:
    """Find directions over the samples that are coherent under A and held down under B.

    Parameters
    ----------
    target, reference : ndarray (n, d) or mapping of str to ndarray (n, d_m)
        A and B: features of the same samples. A mapping of modalities (say image and text)
        takes the product kernel.
    kernel : {"rbf", "cosine"}
        Gaussian, or cosine similarity. Cosine directions are wide contrasts on real features.
    group_size : float, optional
        m: sets both bandwidths by lmax(K) = m, raw. None: chosen by what it yields.
    n_features : int, optional
        Random frequencies (rbf) or projections (product of cosines) per kernel. None: exact
        kernels up to 10,000 samples, 1,000 frequencies above.
    orthogonal : bool
        Orthogonal blocks of random frequencies: the same mean, less variance.
    epsilon : float, optional
        Bound on the reference; None: 2 / n in unit trace, that is two identical samples.
    epsilon_mode : {"unit_trace", "floor", "quantile", "fraction"}
        Unit of ``epsilon``: K_B / n; raw (K_ii = 1); a quantile of K_B's eigenvalues; a share
        of lmax(K_B).
    n_directions : int
    centered : bool
        Take the feature means off first (off: as the paper).
    seed : int
    device : {None, "auto", "cpu", "cuda"}
    progress : callable, optional
        Called with (share done, message).

    Returns
    -------
    KodaResult

    Raises
    ------
    BadInput
        Tables that do not match, unknown options, or a scale that cannot be reached.

    References
    ----------
    Wu, Jalali, Farnia: KODA, arXiv 2606.04180, Eq. 8, 12 and 22.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> b = rng.standard_normal((60, 5)); a = b.copy(); a[:8] = a[0] + 0.01 * b[:8]
    >>> result = koda(a, b, group_size=6.0, n_directions=1)
    >>> sorted(result.clusters()[0].rows.tolist()), bool(result.relative_gap[0] < 1e-6)
    ([0, 1, 2, 3, 4, 5, 6, 7], True)
    """
    where = pick_device(device)
    kernels = [
        make_kernel(t, kind=kernel, centered=centered, device=where, seed=seed, name=name)
        for t, name in ((target, "target"), (reference, "reference"))
    ]
    a, b = kernels
    if a.n != b.n:
        raise BadInput(f"target has {a.n:,} rows and reference {b.n:,}; they must match.")
    _check_count(n_directions, a.n)
    mode = "floor" if epsilon is None else epsilon_mode
    value = 2.0 if epsilon is None else float(epsilon)
    scale = _scale(a, b, group_size, mode, value, seed, progress)
    later = _later(progress, 0.4 if group_size is None and kernel == "rbf" else 0.0)
    result = koda_kernels(
        scale.target,
        scale.reference,
        epsilon=value,
        epsilon_mode=mode,
        n_features=n_features,
        orthogonal=orthogonal,
        n_directions=n_directions,
        seed=seed,
        progress=later,
    )
    notes = tuple(filter(None, (scale.note, *result.notes)))
    return replace(result, scale_path=scale.path, notes=notes)


def koda_kernels(
    a: Kernel,
    b: Kernel,
    *,
    epsilon: float = 2.0,
    epsilon_mode: str = "floor",
    n_features: int | None = None,
    orthogonal: bool = False,
    n_directions: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> KodaResult:
    """KODA on two kernels whose bandwidths are set; arguments as in :func:`koda`.

    Exact matrices up to 3,000 samples; exact products by blocks up to 10,000 (the bound is then
    a Lanczos estimate, so the status says "not certified", however small the gap); features
    above, or when ``n_features`` is given, or for a plain cosine kernel.
    """
    plain_cosine = a.kind == "cosine" and len(a.parts) == len(b.parts) == 1
    if plain_cosine or n_features is not None or a.n > EXACT_LIMIT:
        if n_features is None and a.kind == "rbf":
            n_features = DEFAULT_FREQUENCIES
        phi_a, phi_b = feature_pair(a, b, n_features, seed, orthogonal=orthogonal)
        result = koda_features(
            phi_a,
            phi_b,
            epsilon=epsilon,
            epsilon_mode=epsilon_mode,
            n_directions=n_directions,
            seed=seed,
            progress=progress,
        )
        notes = result.notes if plain_cosine else (*result.notes, *_limit_note(a, n_features))
        return replace(result, similarities=(a, b), bandwidths=_bandwidths(a, b), notes=notes)
    if a.n <= DENSE_LIMIT:
        A, B = a.dense(), b.dense()
        eps = raw_epsilon(epsilon_mode, epsilon, a.n, B)
        with lapack_thread():
            found = solve_sequence(A, B, eps, n_directions, seed=seed, progress=progress)
    else:
        eps = raw_epsilon(epsilon_mode, epsilon, a.n, b)
        found = solve_sequence_free(
            a, b, a.n, eps, n_directions, seed=seed, device=a.parts[0].device, progress=progress
        )
    directions = np.stack([f.y for f in found])
    size = float(found[0].solution.scale)
    return _result(found, directions, eps, size, (a, b), bandwidths=_bandwidths(a, b))


def koda_dense(
    K_a: Matrix,
    K_b: Matrix,
    *,
    epsilon: float,
    n_directions: int = 1,
    tol: float = 1e-9,
    seed: int = 0,
) -> KodaResult:
    """KODA on given kernel matrices.

    Parameters
    ----------
    K_a, K_b : array, shape (n, n)
        Symmetric positive semidefinite.
    epsilon : float
        Bound on x' K_b x, in the units of ``K_b``.
    n_directions : int
        At most n; fewer are returned when a later problem is infeasible (its entry is last).
    tol : float
        Relative gap at which the search stops (above 600 rows; below, 1e-12).
    seed : int
        Seed of Lanczos' start vectors (above 600 rows).

    Returns
    -------
    KodaResult
        Status "infeasible" and ``constraint`` = lmin(K_b) when epsilon is below it.

    Raises
    ------
    BadInput
        Not two square matrices of the same size with finite values.

    Examples
    --------
    >>> r = koda_dense(np.diag([3.0, 2, 1, 0]), np.diag([3.0, 1, 0.2, 0.1]), epsilon=1.5)
    >>> round(float(r.objective[0]), 9), r.status[0]
    (2.25, 'active')
    """
    A, B = square_matrix(K_a, "K_a"), square_matrix(K_b, "K_b")
    if A.shape != B.shape:
        raise BadInput(f"K_a is {tuple(A.shape)} and K_b {tuple(B.shape)}; they must match.")
    if not np.isfinite(epsilon):
        raise BadInput(f"epsilon={epsilon} is not a number.")
    _check_count(n_directions, len(A))
    pair = (MatrixSimilarity(A.cpu().numpy()), MatrixSimilarity(B.cpu().numpy()))
    with lapack_thread():
        found = solve_sequence(A.clone(), B.clone(), epsilon, n_directions, tol=tol, seed=seed)
    size = float(found[0].solution.scale)
    return _result(found, np.stack([f.y for f in found]), epsilon, size, pair)


def koda_features(
    phi_a: Matrix | FourierTable,
    phi_b: Matrix | FourierTable,
    *,
    epsilon: float = 2.0,
    epsilon_mode: str = "floor",
    n_directions: int = 10,
    tol: float = 1e-9,
    seed: int = 0,
    progress: Progress | None = None,
) -> KodaResult:
    """KODA on feature tables: K_A = Pa Pa', K_B = Pb Pb', never formed.

    Time O(n m^2) and memory O(m^2), m = d1 + d2; flat in n.

    Parameters
    ----------
    phi_a, phi_b : array, shapes (n, d1) and (n, d2)
        Rows of unit length give K_ii = 1.
    epsilon, epsilon_mode, n_directions, tol, seed, progress
        As in :func:`koda`; the quantile is over the d2 covariance eigenvalues.

    Returns
    -------
    KodaResult
        With ``weights`` to score new samples. Where ``range_mass`` is below 1 epsilon was too
        tight: the rows of ``directions`` are then the part inside the range, normalised.

    Examples
    --------
    >>> a = np.eye(6)[:, :3]; b = np.eye(6)[:, 2:5]
    >>> koda_features(a, b, epsilon=0.5, n_directions=1).objective.round(9).tolist()
    [1.0]
    """
    reduced = reduce(phi_a, phi_b)
    _check_count(n_directions, len(phi_a))
    eps = raw_epsilon(
        epsilon_mode, epsilon, len(phi_a), reduced.B, rank=min(phi_b.shape[1], len(phi_b))
    )
    device = phi_a.device if isinstance(phi_a, torch.Tensor) else torch.device("cpu")
    A, B = torch.tensor(reduced.A, device=device), torch.tensor(reduced.B, device=device)
    with lapack_thread():
        found = solve_sequence(A, B, eps, n_directions, tol=tol, seed=seed, progress=progress)
    inside = np.stack([f.y[: reduced.rank] for f in found], axis=1)
    mass = np.square(inside).sum(axis=0)
    length = np.sqrt(np.maximum(mass, 1e-300))
    weights = reduced.back @ (inside / length)
    directions = lift(phi_a, phi_b, weights).T
    size = float(found[0].solution.scale)
    pair = (FeatureSimilarity(phi_a), FeatureSimilarity(phi_b))
    notes: tuple[str, ...] = ()
    if mass.min() < 1.0 - 1e-6:
        notes = (
            "epsilon is too tight: some directions lie partly outside the range of the features; "
            "only the part inside is shown.",
        )
    return _result(found, directions, eps, size, pair, mass=mass, weights=weights, notes=notes)


def _scale(
    a: Kernel,
    b: Kernel,
    group_size: float | None,
    mode: str,
    value: float,
    seed: int,
    progress: Progress | None,
) -> Scale:
    if a.kind == "cosine":
        return Scale(a, b, float("nan"), (), "")
    if group_size is not None:
        return fixed_scale(a, b, group_size, seed=seed)
    # The modes that need a spectrum have none before the bandwidth is known: judge at raw 2.
    eps = raw_epsilon(mode, value, a.n, b) if mode in ("unit_trace", "floor") else 2.0
    share = None if progress is None else (lambda f, text: progress(0.4 * f, text))
    with lapack_thread():
        return automatic_scale(a, b, eps, seed=seed, progress=share)


def _later(progress: Progress | None, begin: float) -> Progress | None:
    if progress is None:
        return None
    return lambda f, text: progress(begin + (1.0 - begin) * f, text)


def _limit_note(a: Kernel, n_features: int | None) -> tuple[str, ...]:
    """Say which groups random features cannot resolve (their bulk stands at n / 2r)."""
    if a.kind != "rbf" or n_features is None:
        return ()
    floor = a.n / (2 * n_features)
    if floor < 1.0:
        return ()
    return (
        f"{n_features:,} random frequencies: groups of fewer than about {np.ceil(2 * floor):.0f} "
        "samples drown in their noise.",
    )


def _bandwidths(a: Kernel, b: Kernel) -> dict[str, dict[str, float]]:
    return {"target": a.bandwidths, "reference": b.bandwidths}


def _check_count(n_directions: int, n: int) -> None:
    if not 1 <= n_directions <= n:
        raise BadInput(f"n_directions={n_directions} must lie between 1 and {n:,}, the samples.")


def _result(
    found: list[Direction],
    directions: np.ndarray,
    epsilon: float,
    group_size: float,
    similarities: tuple[Similarity, Similarity],
    *,
    mass: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    bandwidths: dict[str, dict[str, float]] | None = None,
    notes: tuple[str, ...] = (),
) -> KodaResult:
    oriented = orient(directions)
    if weights is not None:
        weights = weights * np.where((oriented * directions).sum(axis=1) >= 0.0, 1.0, -1.0)
    parts = [f.solution for f in found]
    return KodaResult(
        directions=oriented,
        objective=np.array([s.objective for s in parts]),
        constraint=np.array([s.constraint for s in parts]),
        multiplier=np.array([s.multiplier for s in parts]),
        dual_bound=np.array([s.dual_bound for s in parts]),
        gap=np.array([s.gap for s in parts]),
        scale=np.array([s.scale for s in parts]),
        status=tuple(s.status for s in parts),
        certificate=tuple(f.certificate for f in found),
        range_mass=np.ones(len(found)) if mass is None else mass,
        epsilon=float(epsilon),
        group_size=group_size,
        similarities=similarities,
        bandwidths=bandwidths or {},
        weights=weights,
        notes=notes,
    )
