"""PARAM anchors: convex mixtures of support samples, learned without labels.

arXiv 2605.30596: ``A_i = P X_sub^i`` with one row-stochastic ``P`` for all encoders, so anchors
stay inside the convex hull of the data, averaging removes noise, and anchors of different
encoders correspond. Loss weights, temperatures, optimiser and initialisation were not
available; those used here were measured by this project (its stitching specification,
section 2 [DEF]).

Everything is computed on rows whitened once: the rows of ``P`` sum to one, so whitening
commutes with mixing, ``W(P X) = P W(X)``.

Axes: N encoders, n parallel rows, m support rows, k anchors, B batch rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from core.device import pick_device
from core.errors import BadInput
from core.linalg.whitening import Whitening, as_matrix, whitening_stats
from core.stitching import losses
from core.stitching.anchors import check_count, effective_support, mixture_anchors, mixture_width
from core.stitching.representation import standard_unit_rows

if TYPE_CHECKING:
    import torch
    from torch import Tensor

MODES = ("multi", "single")
TERMS = ("coverage", "correlation", "length", "nce", "entropy", "total")
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class ParamOptions:
    """Weights, temperatures and optimiser of PARAM; the defaults are those of "multi".

    Attributes
    ----------
    w_coverage, w_correlation, w_length, w_nce, w_entropy : float
        Weights of the losses.
    tau_mixing, tau_coverage, tau_nce : float
        Temperatures of the mixing softmax, of coverage and of InfoNCE.
    lr : float
        Adam's step.
    steps, batch, pairs : int
        Optimiser steps, rows and encoder pairs drawn a step.
    """

    w_coverage: float = 1.0
    w_correlation: float = 0.1
    w_length: float = 0.1
    w_nce: float = 1.0
    w_entropy: float = 0.0
    tau_mixing: float = 1.0
    tau_coverage: float = 0.1
    tau_nce: float = 0.3
    lr: float = 0.05
    steps: int = 300
    batch: int = 192
    pairs: int = 3

    @classmethod
    def of(cls, mode: str, steps: int = 300) -> ParamOptions:
        """Return the measured defaults of a mode."""
        if mode not in MODES:
            raise BadInput(f"mode={mode!r} is not known.", f"Use one of {', '.join(MODES)}.")
        return cls(steps=steps) if mode == "multi" else cls(w_nce=0.0, w_entropy=1.0, steps=steps)


@dataclass(frozen=True)
class ParamAnchors:
    """Learned anchors.

    Attributes
    ----------
    mixing : ndarray of float64, shape (k, m)
        Non-negative; rows sum to 1.
    losses : dict of str to ndarray, shape (steps,)
        Each unweighted loss, and the weighted total, at every step.
    support : ndarray of int64, shape (m,)
        Rows of the parallel set that the columns stand for.
    mode : str
        "multi" or "single".
    """

    mixing: np.ndarray
    losses: dict[str, np.ndarray]
    support: np.ndarray
    mode: str = "multi"

    @property
    def n_eff(self) -> np.ndarray:
        """Effective number of samples per anchor, shape (k,), in [1, m]."""
        return effective_support(self.mixing)

    def anchors(self, x_parallel: np.ndarray) -> np.ndarray:
        """Return the anchors in one encoder's space, shape (k, d)."""
        return self.mixing @ np.asarray(x_parallel, dtype=np.float64)[self.support]


@dataclass
class _Spaces:
    """What a training run reads: whitened parallel rows, and those of the coverage geometry.

    ``white`` and ``cover`` hold one tensor (n, d_i) a space, or, stacked, a single one
    (N, n, d) padded with zeros, which no inner product sees.
    """

    white: list[Tensor]
    cover: list[Tensor]
    support: Tensor
    n_spaces: int
    norms: list[Tensor] = field(default_factory=list)


def learn_anchors(
    spaces: Sequence[np.ndarray],
    n_anchors: int = 100,
    *,
    mode: str = "multi",
    stats: Sequence[Whitening] | None = None,
    n_support: int = 800,
    support: np.ndarray | None = None,
    reference: int = 0,
    steps: int = 300,
    options: ParamOptions | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: Progress | None = None,
) -> ParamAnchors:
    """Learn PARAM anchors shared by several encoders.

    Parameters
    ----------
    spaces : sequence of ndarray, each of shape (n, d_i)
        Parallel rows: row r is the same item in every encoder.
    n_anchors : int
        At least 2; clipped to the support size.
    mode : {"multi", "single"}
        "multi" aligns the relative coordinates of all encoders by symmetric InfoNCE; "single"
        looks at the reference encoder only and starts from k-means mixtures.
    stats : sequence of Whitening, optional
        One map an encoder, fitted on training rows; by default Ledoit-Wolf on ``spaces``.
    n_support : int
        Support rows drawn at random when ``support`` is not given.
    support : ndarray of int, shape (m,), optional
        Rows to mix.
    reference : int
        The encoder of "single".
    steps, options, seed : int, ParamOptions, int
        Training; the same seed gives the same bits on the same CPU.
    device : str, optional
        See :func:`core.device.pick_device`.
    progress : callable, optional
        Called with a fraction and a message; may raise :class:`core.errors.Cancelled`.

    Raises
    ------
    BadInput
        Rows do not pair up, NaN, an unknown mode, "multi" with one encoder, fewer than two
        anchors or support rows.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(60, 5))
    >>> fit = learn_anchors([x, x @ np.eye(5)[::-1]], 4, n_support=30, steps=5)
    >>> fit.mixing.shape, bool(np.allclose(fit.mixing.sum(1), 1.0))
    ((4, 30), True)

    References
    ----------
    arXiv 2605.30596.
    """
    options = options or ParamOptions.of(mode, steps)
    rows = _checked(spaces, mode, reference)
    n = len(rows[0])
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    if support is None:
        support = np.sort(rng.choice(n, min(n_support, n), replace=False))
    k = check_count(n_anchors, len(support))
    maps = list(stats) if stats is not None else [whitening_stats(x) for x in rows]
    if mode == "single":
        rows, maps = [rows[reference]], [maps[reference]]
        P0 = mixture_anchors(rows[0][support], k, seed=seed)
        start = options.tau_mixing * np.log(np.maximum(P0, 1e-4 / len(support)))
    else:
        start = rng.standard_normal((k, len(support)))
    where = pick_device(device)
    data = _prepare(rows, maps, support, mode, where)
    mixing, history = _train(start, data, options, rng, progress)
    return ParamAnchors(mixing, history, np.asarray(support, dtype=np.int64), mode)


def _checked(spaces: Sequence[np.ndarray], mode: str, reference: int) -> list[np.ndarray]:
    ParamOptions.of(mode)
    rows = [as_matrix(x, f"spaces[{i}]", min_rows=2) for i, x in enumerate(spaces)]
    if not rows or (mode == "multi" and len(rows) < 2):
        raise BadInput(
            f"mode={mode!r} needs at least {2 if mode == 'multi' else 1} encoders, "
            f"got {len(rows)}.",
            "Add an encoder, or use mode='single'.",
        )
    if len({len(x) for x in rows}) > 1:
        raise BadInput(
            f"spaces must hold the same items row by row, got lengths {[len(x) for x in rows]}.",
            "Take the rows by id, in one order, from every encoder.",
        )
    if not 0 <= reference < len(rows):
        raise BadInput(f"reference={reference} is not one of {len(rows)} encoders.")
    return rows


def _compact(z: np.ndarray) -> np.ndarray:
    """Rotate into at most n dimensions: the losses see inner products only."""
    if z.shape[1] <= z.shape[0]:
        return z
    _, r = np.linalg.qr(z.T)  # z = r^T q^T with orthonormal q
    return r.T


def _prepare(
    rows: list[np.ndarray],
    maps: list[Whitening],
    support: np.ndarray,
    mode: str,
    device: torch.device,
    stack: bool | None = None,
) -> _Spaces:
    """Put the rows on the device; on a GPU the spaces are stacked and go through one kernel.

    A CPU works through a long product no faster than through several, and padding would only
    add work there.
    """
    import torch

    def tensor(x: np.ndarray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(_compact(x)), dtype=torch.float32).to(device)

    white = [tensor(w.transform(x)) for w, x in zip(maps, rows, strict=True)]
    if stack if stack is not None else device.type == "cuda":
        width = max(z.shape[1] for z in white)
        pad = torch.nn.functional.pad
        white = [torch.stack([pad(z, (0, width - z.shape[1])) for z in white])]
    cover = white if mode == "multi" else [tensor(standard_unit_rows(x)) for x in rows]
    return _Spaces(white, cover, torch.as_tensor(support, device=device), len(rows))


def _train(
    start: np.ndarray,
    data: _Spaces,
    options: ParamOptions,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    import torch

    device = data.white[0].device
    Q = torch.tensor(start, dtype=torch.float32, device=device, requires_grad=True)  # (k, m)
    subs = [z[..., data.support, :] for z in data.white]  # (m, d_i)
    covers = subs if data.cover is data.white else [u[data.support] for u in data.cover]
    with torch.no_grad():
        P = torch.softmax(Q / options.tau_mixing, dim=1)
        data.norms = [(P @ sub).norm(dim=-1).median(dim=-1).values for sub in subs]
    optimiser = torch.optim.Adam([Q], lr=options.lr)
    n, n_spaces = data.white[0].shape[-2], data.n_spaces
    pairs = [(i, j) for i in range(n_spaces) for j in range(i + 1, n_spaces)]
    history = torch.zeros((options.steps, len(TERMS)), device=device)
    for step in range(options.steps):
        batch = torch.as_tensor(rng.choice(n, min(options.batch, n), replace=False), device=device)
        picked = rng.permutation(len(pairs))[: options.pairs]
        P = torch.softmax(Q / options.tau_mixing, dim=1)  # (k, m)
        terms = _terms(P, data, subs, covers, batch, [pairs[p] for p in picked], options)
        total = _weighted(terms, options)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        # Kept on the device: reading it back each step would make a GPU wait.
        history[step] = torch.stack([*terms, total]).detach()
        if progress is not None and step % 20 == 0:
            progress((step + 1) / options.steps, f"PARAM step {step + 1} of {options.steps}")
    final = torch.softmax(Q.detach().double() / options.tau_mixing, dim=1).cpu().numpy()
    values = history.double().cpu().numpy()
    return final, {term: values[:, t] for t, term in enumerate(TERMS)}


def _terms(
    P: Tensor,
    data: _Spaces,
    subs: list[Tensor],
    covers: list[Tensor],
    batch: Tensor,
    pairs: list[tuple[int, int]],
    options: ParamOptions,
) -> list[Tensor]:
    """Return the five unweighted losses of one batch, in the order of ``TERMS``."""
    import torch

    rows = [z[..., batch, :] for z in data.white]  # (B, d_i), or one (N, B, d)
    anchors = [P @ sub for sub in subs]  # (k, d_i)
    rel = [z @ a.mT for z, a in zip(rows, anchors, strict=True)]  # (B, k)
    cover, corr, size = (P.new_zeros(()) for _ in range(3))
    for i, a in enumerate(anchors):
        if covers is subs:
            part = losses.coverage(rows[i], a, options.tau_coverage, rel[i])
        else:
            part = losses.coverage(data.cover[i][batch], P @ covers[i], options.tau_coverage)
        cover = cover + part.sum() / data.n_spaces
        corr = corr + losses.correlation(a).sum() / data.n_spaces
        size = size + losses.length(a, data.norms[i]).sum() / data.n_spaces
    align = P.new_zeros(())
    if pairs and options.w_nce > 0:
        every = rel[0] if rel[0].ndim == 3 else torch.stack(rel)  # (N, B, k)
        first, second = (every[[pair[at] for pair in pairs]] for at in (0, 1))
        align = losses.symmetric_nce(first, second, options.tau_nce).mean()
    floor = P.new_zeros(())
    if options.w_entropy > 0:
        floor = losses.entropy_floor(P, mixture_width(P.shape[1]))
    return [cover, corr, size, align, floor]


def _weighted(terms: list[Tensor], o: ParamOptions) -> Tensor:
    weights = (o.w_coverage, o.w_correlation, o.w_length, o.w_nce, o.w_entropy)
    total = terms[0] * weights[0]
    for weight, term in zip(weights[1:], terms[1:], strict=True):
        total = total + weight * term
    return total
