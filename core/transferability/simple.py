"""The plain baselines every ranking of blends must beat: size, and two distances of means.

Specification of RADAR (arXiv 2605.23028) section 10: more data raises the gain by size alone,
so a measure that does not beat these says nothing.

Axes: n items, d features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import BadInput


def blend_size(sources: Sequence[np.ndarray]) -> int:
    """Return the number of items of a blend; more is expected to help.

    Parameters
    ----------
    sources : sequence of ndarray, shape (n_i, ...)

    Examples
    --------
    >>> import numpy as np
    >>> blend_size([np.zeros((3, 2)), np.zeros((4, 2))])
    7
    """
    return sum(len(source) for source in sources)


def distance_of_means(target: np.ndarray, blend: np.ndarray) -> float:
    """Return the Euclidean distance of the two mean features; lower is nearer.

    Parameters
    ----------
    target, blend : ndarray, shape (n, d) and (m, d)

    Returns
    -------
    float
        At least 0, in units of the features; 0 for equal means.

    Raises
    ------
    BadInput
        An empty set, or widths that differ.

    Examples
    --------
    >>> import numpy as np
    >>> distance_of_means(np.zeros((2, 2)), np.array([[3.0, 4.0]]))
    5.0
    """
    _check(target, blend)
    gap = target.mean(0, dtype=np.float64) - blend.mean(0, dtype=np.float64)
    return float(np.linalg.norm(gap))


def distance_of_class_means(
    target: np.ndarray, labels: np.ndarray, blend: np.ndarray, blend_labels: np.ndarray
) -> float:
    """Return the mean distance of equal classes' means, each class weighted alike.

    Parameters
    ----------
    target, blend : ndarray, shape (n, d) and (m, d)
    labels, blend_labels : ndarray, shape (n,) and (m,)

    Returns
    -------
    float
        At least 0; nan when no class is in both.

    Raises
    ------
    BadInput
        An empty set, widths that differ, or labels of another length.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [2.0]])
    >>> distance_of_class_means(x, np.array([0, 1]), x[::-1], np.array([0, 1]))
    2.0
    """
    _check(target, blend)
    if len(labels) != len(target) or len(blend_labels) != len(blend):
        raise BadInput(
            f"labels has {len(labels)} and {len(blend_labels)} entries for "
            f"{len(target)} and {len(blend)} items."
        )
    shared = np.intersect1d(labels, blend_labels)
    gaps = [
        distance_of_means(target[labels == label], blend[blend_labels == label]) for label in shared
    ]
    return float(np.mean(gaps)) if gaps else float("nan")


def _check(target: np.ndarray, blend: np.ndarray) -> None:
    for name, value in (("target", target), ("blend", blend)):
        if value.ndim != 2 or len(value) == 0:
            raise BadInput(f"{name} has shape {value.shape}, expected (n, d) with n >= 1.")
    if target.shape[1] != blend.shape[1]:
        raise BadInput(
            f"target has {target.shape[1]} features, blend {blend.shape[1]}.",
            "Take both from the same encoder and layer.",
        )
