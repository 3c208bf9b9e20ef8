"""Translators: other ways to move one encoder's features into another's space.

Latent space translation via semantic alignment (Maiorca et al., 2023): both spaces are
standardised with the statistics of the parallel rows, the smaller one is padded with zeros,
and a map is fitted between them; the head stays the native head of the encoder it came from.
Inverse relative projection (Maiorca et al., 2024) and the inverse of WIP go through anchors.

They need one map per ordered pair of encoders, N (N - 1) in all, where relative
representations need one per encoder.

Axes: n parallel rows, d_from and d_to dimensions, k anchors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import Spectrum, Whitening, as_matrix, spectrum
from core.stitching.representation import unit_rows

KINDS = ("ortho", "linear", "l-ortho", "ridge", "cca")
RIDGE = 1e-2  # penalty as a share of the mean eigenvalue of the Gram matrix
CCA_SHRINKAGE = 0.01


@dataclass(frozen=True)
class Translator:
    """A fitted affine map ``y = ((x - from_mean) / from_scale) T * to_scale + to_mean``.

    Attributes
    ----------
    kind : str
    from_mean, from_scale : ndarray, shape (d_from,)
    to_mean, to_scale : ndarray, shape (d_to,)
    matrix : ndarray, shape (d_from, d_to)
    correlations : ndarray
        Canonical correlations ("cca" only, else empty).
    """

    kind: str
    from_mean: np.ndarray
    from_scale: np.ndarray
    to_mean: np.ndarray
    to_scale: np.ndarray
    matrix: np.ndarray
    correlations: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the translated rows, shape (n, d_to)."""
        c = (as_matrix(x, "x") - self.from_mean) / self.from_scale
        return (c @ self.matrix) * self.to_scale + self.to_mean


def fit_translator(
    x_from: np.ndarray,
    x_to: np.ndarray,
    *,
    kind: str = "ridge",
    standardise: bool = True,
    cca_shrinkage: float = CCA_SHRINKAGE,
    spectra: tuple[Spectrum, Spectrum] | None = None,
) -> Translator:
    """Fit a translator on parallel rows.

    Parameters
    ----------
    x_from, x_to : ndarray, shapes (n, d_from) and (n, d_to)
        The same items under the two encoders.
    kind : {"ortho", "linear", "l-ortho", "ridge", "cca"}
        Orthogonal Procrustes; least squares; least squares projected onto orthogonal maps;
        least squares with a small penalty; canonical correlations.
    standardise : bool
        Divide each dimension by its standard deviation as the published pipeline does. With
        False the rows are centred only: "ortho" then recovers a rotation exactly.
    cca_shrinkage : float
        Shrinkage of both covariances in "cca"; 0 makes it exact on affine copies.
    spectra : pair of Spectrum, optional
        :func:`parallel_spectrum` of both sides, where many pairs share them ("cca" only).

    Raises
    ------
    BadInput
        Rows do not pair up, an unknown kind, or "linear" with n < 2 d_from.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = x @ np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]) + 5.0
    >>> bool(np.allclose(fit_translator(x, y, kind="linear")(x), y))
    True

    References
    ----------
    Maiorca et al. (2023), Latent space translation via semantic alignment.
    """
    a, b = as_matrix(x_from, "x_from", min_rows=2), as_matrix(x_to, "x_to", min_rows=2)
    if len(a) != len(b):
        raise BadInput(
            f"x_from and x_to must pair row by row, got {len(a)} and {len(b)} rows.",
            "Take both by id, in one order.",
        )
    if kind not in KINDS:
        raise BadInput(f"kind={kind!r} is not known.", f"Use one of {', '.join(KINDS)}.")
    if kind in ("linear", "l-ortho") and len(a) < 2 * a.shape[1]:
        raise BadInput(
            f"kind={kind!r} needs at least 2 x {a.shape[1]} parallel rows, got {len(a)}.",
            "Use kind='ridge'.",
        )
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    scale_a, scale_b = _scale(a - mean_a, standardise), _scale(b - mean_b, standardise)
    A, B = (a - mean_a) / scale_a, (b - mean_b) / scale_b
    correlations = np.empty(0)
    if kind == "ortho":
        T = _orthogonal(A.T @ B)
    elif kind == "cca":
        pair = spectra or (spectrum(A, prescale=False), spectrum(B, prescale=False))
        T, correlations = _cca(A, B, pair, cca_shrinkage)
    else:
        T = np.linalg.lstsq(A, B)[0] if kind != "ridge" else _ridge(A, B)
        T = _orthogonal(T) if kind == "l-ortho" else T
    return Translator(kind, mean_a, scale_a, mean_b, scale_b, T, correlations)


def _scale(centred: np.ndarray, standardise: bool) -> np.ndarray:
    if not standardise:
        return np.ones(centred.shape[1])
    sd = np.sqrt((centred**2).mean(axis=0))
    return np.where(sd <= 1e-8 * max(float(sd.max()), 1e-300), 1.0, sd)


def _orthogonal(cross: np.ndarray) -> np.ndarray:
    # Padding the smaller space with zeros gives the same map as the thin SVD does.
    U, _, Vt = np.linalg.svd(cross, full_matrices=False)
    return U @ Vt


def _ridge(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    gram = A.T @ A  # (d_from, d_from)
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, A.T @ B)


def parallel_spectrum(x: np.ndarray) -> Spectrum:
    """Return the principal directions of the standardised rows, as "cca" whitens them."""
    a = as_matrix(x, "x", min_rows=2)
    centred = a - a.mean(axis=0)
    return spectrum(centred / _scale(centred, True), prescale=False)


def _cca(
    A: np.ndarray, B: np.ndarray, spectra: tuple[Spectrum, Spectrum], shrinkage: float
) -> tuple[np.ndarray, np.ndarray]:
    wa, wb = (s.whitening(shrinkage) for s in spectra)
    cross = wa.transform(A).T @ wb.transform(B) / (len(A) - 1)  # (d_from, d_to)
    U, rho, Vt = np.linalg.svd(cross, full_matrices=False)
    return wa.matrix @ (U * rho) @ Vt @ wb.inverse, rho


def inverse_relative_projection(
    x_from: np.ndarray, anchors_from: np.ndarray, anchors_to: np.ndarray
) -> np.ndarray:
    """Return unit rows in the other space with the same angles to the anchors, shape (n, d_to).

    Angle-preserving only: lengths are lost, so the head must be trained on centred unit rows.
    Needs k >= d_to well-spread anchors; the anchors' own mean is the centre.

    References
    ----------
    Maiorca et al. (2024), Latent communication via inverse relative projection.
    """
    return anchor_angles(x_from, anchors_from) @ anchor_inverse(anchors_to)


def anchor_angles(x: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Return the cosines to the anchors, all centred on the anchors' mean, shape (n, k)."""
    a = as_matrix(anchors, "anchors")
    centre = a.mean(axis=0)
    return unit_rows(as_matrix(x, "x") - centre) @ unit_rows(a - centre).T


def anchor_inverse(anchors: np.ndarray) -> np.ndarray:
    """Return the map from cosines back into the space of the anchors, shape (k, d)."""
    a = as_matrix(anchors, "anchors")
    return np.asarray(np.linalg.pinv(unit_rows(a - a.mean(axis=0))).T)


def inverse_wip(
    rel: np.ndarray, anchors: np.ndarray, stats: Whitening, *, rcond: float = 3e-2
) -> np.ndarray:
    """Return rows in the whitened space whose inner products with the anchors are ``rel``.

    Lets a head trained on whitened absolute features read relative features; exact on the own
    space when the anchors span it (k >= d, ``rcond`` small). Shape (n, d), float64.
    """
    A = stats.transform(anchors)  # (k, d)
    return as_matrix(rel, "rel") @ np.linalg.pinv(A, rcond=rcond).T
