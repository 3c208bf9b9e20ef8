"""Relative representations: samples described by their similarity to shared anchors.

Relative representations enable zero-shot latent space communication (arXiv 2209.15430):
``r(x) = (sim(x, a_1), ..., sim(x, a_k))``; the whitened inner product is arXiv 2605.30596.

Axes: n samples, d feature dimensions, k anchors.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import Whitening, as_matrix

SIMILARITIES = ("cosine", "ccosine", "scosine", "wip")
TINY = 1e-9  # guards the length of a zero row


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Return ``x`` with rows of length 1 (zero rows stay zero), shape (n, d)."""
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), TINY)


def relative(
    x: np.ndarray,
    anchors: np.ndarray,
    *,
    similarity: str = "cosine",
    stats: Whitening | None = None,
) -> np.ndarray:
    """Describe samples by their similarity to anchors.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features of one encoder.
    anchors : ndarray, shape (k, d)
        Anchors in the same space: samples, or convex mixtures ``P X_sub``.
    similarity : {"cosine", "ccosine", "scosine", "wip"}
        Cosine; cosine after centring; cosine after per-dimension standardisation; whitened
        inner product (keeps angle and length, unbounded).
    stats : Whitening, optional
        Centre, scale and map fitted on training rows. Needed by all but "cosine".

    Returns
    -------
    ndarray of float64, shape (n, k)
        In [-1, 1] for the cosines. A zero row (after centring) gives zeros.

    Raises
    ------
    BadInput
        Widths differ, an unknown similarity, NaN, or ``stats`` is missing.

    Examples
    --------
    >>> relative(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 3.0]])).tolist()
    [[1.0, 0.0]]

    References
    ----------
    arXiv 2209.15430 (cosine); arXiv 2605.30596 (wip).
    """
    x, anchors = as_matrix(x, "x"), as_matrix(anchors, "anchors")
    if x.shape[1] != anchors.shape[1]:
        raise BadInput(
            f"x has {x.shape[1]} dimensions and anchors have {anchors.shape[1]}.",
            "Take both from the same encoder and layer.",
        )
    if similarity not in SIMILARITIES:
        raise BadInput(
            f"similarity={similarity!r} is not known.", f"Use one of {', '.join(SIMILARITIES)}."
        )
    if similarity == "cosine":
        return unit_rows(x) @ unit_rows(anchors).T
    if stats is None:
        raise BadInput(
            f"similarity={similarity!r} needs stats fitted on training rows.",
            "Pass stats=whitening_stats(x_train).",
        )
    if similarity == "wip":
        B, b = stats.fold(anchors)
        return x @ B.T - b
    scale = stats.scale if similarity == "scosine" else 1.0
    return unit_rows((x - stats.mean) / scale) @ unit_rows((anchors - stats.mean) / scale).T


def standard_unit_rows(x: np.ndarray) -> np.ndarray:
    """Return centred, per-dimension standardised rows of length 1, shape (n, d)."""
    x = as_matrix(x, "x", min_rows=2)
    mean = x.mean(axis=0)
    sd = x.std(axis=0, ddof=1)
    dead = sd <= 1e-8 * np.maximum(np.abs(mean), sd.max(initial=0.0))
    return unit_rows((x - mean) / np.where(dead, 1.0, sd))
