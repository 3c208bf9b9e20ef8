"""Translators: what each recovers exactly, and what it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput
from core.stitching import fit_translator, whitening_stats
from core.stitching.translate import inverse_relative_projection, inverse_wip


def space(n: int = 200, d: int = 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) * np.geomspace(1.0, 20.0, d) + rng.normal(size=d)


def rotation(d: int = 10) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]


def test_linear_recovers_an_affine_map():
    x = space()
    y = x @ np.random.default_rng(2).normal(size=(10, 25)) + 3.0
    np.testing.assert_allclose(fit_translator(x, y, kind="linear")(x), y, atol=1e-8)
    gap = fit_translator(x, y, kind="ridge")(x) - y
    assert np.linalg.norm(gap) < 0.05 * np.linalg.norm(y - y.mean(0))


def test_procrustes_recovers_a_rotation_when_only_centred():
    x = space()
    y = x @ rotation() + 1.0
    exact = fit_translator(x, y, kind="ortho", standardise=False)
    np.testing.assert_allclose(exact(x), y, atol=1e-9)
    scaled = fit_translator(x, y, kind="ortho")(x) - y
    assert np.linalg.norm(scaled) > 0.02 * np.linalg.norm(y - y.mean(0))
    w = [whitening_stats(s, shrinkage=0, prescale=False) for s in (x, y)]
    a, b = w[0].transform(x), w[1].transform(y)
    np.testing.assert_allclose(
        fit_translator(a, b, kind="ortho", standardise=False)(a), b, atol=1e-8
    )


@pytest.mark.parametrize("kind", ["ortho", "l-ortho"])
def test_orthogonal_maps_between_widths(kind):
    x = space()
    T = fit_translator(x, x[:, :6], kind=kind).matrix
    np.testing.assert_allclose(T.T @ T, np.eye(6), atol=1e-9)


def test_cca_of_an_affine_copy_is_perfect():
    x = space()
    y = x @ (rotation() * np.geomspace(1, 30, 10)) - 2.0
    fit = fit_translator(x, y, kind="cca", cca_shrinkage=0)
    np.testing.assert_allclose(fit.correlations, 1.0, atol=1e-9)
    np.testing.assert_allclose(fit(x), y, atol=1e-6)
    shrunk = fit_translator(x, y, kind="cca")
    assert (shrunk.correlations < 1.01).all()
    assert np.linalg.norm(shrunk(x) - y) < 0.2 * np.linalg.norm(y - y.mean(0))


def test_inverse_relative_projection_is_exact_on_its_own_space():
    x = space()
    anchors = x[:60]
    back = inverse_relative_projection(x, anchors, anchors)
    c = x - anchors.mean(0)
    np.testing.assert_allclose(back, c / np.linalg.norm(c, axis=1, keepdims=True), atol=1e-8)


def test_inverse_wip_is_exact_when_anchors_span():
    x = space()
    w = whitening_stats(x, shrinkage=0)
    anchors = x[:30]
    rel = w.transform(x) @ w.transform(anchors).T
    np.testing.assert_allclose(inverse_wip(rel, anchors, w, rcond=1e-10), w.transform(x), atol=1e-8)


def test_dead_dimensions_and_bad_input():
    x = space()
    x[:, 2] = 4.0
    assert np.isfinite(fit_translator(x, space(), kind="ridge")(x)).all()
    with pytest.raises(BadInput, match="needs at least 2 x 10"):
        fit_translator(x[:15], x[:15], kind="linear")
    with pytest.raises(BadInput, match="200 and 199 rows"):
        fit_translator(x, x[:-1])
    with pytest.raises(BadInput, match="kind='optimal'"):
        fit_translator(x, x, kind="optimal")
