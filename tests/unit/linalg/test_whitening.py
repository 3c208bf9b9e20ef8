"""Whitening against scikit-learn and its own definition: invariances, precision, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage

from core.errors import BadInput
from core.linalg.whitening import spectrum, whitening_stats


def sample(n: int = 300, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def conditioned(d: int, cond: float, rng: np.random.Generator) -> np.ndarray:
    u, _ = np.linalg.qr(rng.normal(size=(d, d)))
    v, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return (u * np.geomspace(1.0, cond, d)) @ v


def inner(x: np.ndarray, shrinkage: str | float, *, prescale: bool = True) -> np.ndarray:
    z = whitening_stats(x, shrinkage=shrinkage, prescale=prescale).transform(x)
    return z @ z.T


def change(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(a).max())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("prescale", [True, False])
def test_affine_maps_do_not_move_wip_without_shrinkage(seed, prescale):
    x = sample(seed=seed)
    rng = np.random.default_rng(10 + seed)
    y = x @ conditioned(12, 1e3, rng) + rng.normal(size=12)
    assert change(inner(x, 0, prescale=prescale), inner(y, 0, prescale=prescale)) < 1e-8


def test_injective_map_into_more_dimensions():
    x = sample()
    y = x @ np.random.default_rng(3).normal(size=(12, 60)) - 2.0
    assert whitening_stats(y, shrinkage=0).rank == 12
    assert change(inner(x, 0), inner(y, 0)) < 1e-8


def test_prescaling_changes_nothing_without_shrinkage():
    x = sample()
    assert change(inner(x, 0, prescale=True), inner(x, 0, prescale=False)) < 1e-8


@pytest.mark.parametrize("shrinkage", ["lw", 0.3])
def test_what_survives_shrinkage(shrinkage):
    x, rng = sample(), np.random.default_rng(4)
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    similar = 3.0 * x @ rotation + rng.normal(size=12)
    rescaled = (x * rng.uniform(0.1, 10.0, 12) + rng.normal(size=12))[:, rng.permutation(12)]
    plain = inner(x, shrinkage, prescale=False)
    assert change(plain, inner(similar, shrinkage, prescale=False)) < 1e-8
    scaled = inner(x, shrinkage)
    assert change(scaled, inner(rescaled, shrinkage)) < 1e-8


def test_prescaled_shrinkage_fixes_the_axes():
    x = sample() * np.geomspace(1.0, 30.0, 12)
    rotation, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(12, 12)))
    assert change(inner(x, 0.3), inner(x @ rotation, 0.3)) > 1e-2


def test_covariance_is_identity_and_energy_counts_the_rank():
    x = sample()
    z = whitening_stats(x, shrinkage=0).transform(x)
    np.testing.assert_allclose(np.cov(z.T), np.eye(12), atol=1e-9)
    assert np.isclose((z**2).sum(), (len(x) - 1) * 12)


def test_map_is_symmetric_and_agrees_with_transform():
    x = sample(20, 40)  # fewer rows than dimensions: the rest is whitened by the floor
    w = whitening_stats(x, shrinkage=0.4)
    np.testing.assert_allclose(w.matrix, w.matrix.T, atol=1e-12)
    expected = ((x - w.mean) / w.scale) @ w.matrix
    np.testing.assert_allclose(w.transform(x), expected, atol=1e-10)
    scaled = (x - w.mean) / w.scale
    cov = scaled.T @ scaled / (len(x) - 1)
    shrunk = 0.6 * cov + 0.4 * np.trace(cov) / 40 * np.eye(40)
    np.testing.assert_allclose(w.matrix @ shrunk @ w.matrix, np.eye(40), atol=1e-8)


def test_folded_anchors_give_the_same_inner_products():
    x = sample(50, 70)
    w = whitening_stats(x, shrinkage=0.2)
    B, b = w.fold(x[:9])
    np.testing.assert_allclose(x @ B.T - b, w.transform(x) @ w.transform(x[:9]).T, atol=1e-8)


@pytest.mark.parametrize("shape", [(40, 30), (300, 12), (20, 50)])
def test_ledoit_wolf_against_scikit_learn(shape):
    x = sample(*shape)
    plain = spectrum(x, prescale=False).ledoit_wolf
    assert np.isclose(plain, ledoit_wolf_shrinkage(x))
    scaled = (x - x.mean(0)) / x.std(0, ddof=1)
    assert np.isclose(spectrum(x).ledoit_wolf, ledoit_wolf_shrinkage(scaled))


def test_few_rows_without_shrinkage_are_refused_with_the_reason():
    x = sample(30, 60)
    c = x - x.mean(0)
    _, s, vt = np.linalg.svd(c, full_matrices=False)
    keep = s > 1e-8 * s.max()
    z = c @ (vt[keep].T / s[keep] * np.sqrt(len(x) - 1))
    n = len(x)
    np.testing.assert_allclose(z @ z.T, (n - 1) * (np.eye(n) - np.ones((n, n)) / n), atol=1e-8)
    with pytest.raises(BadInput, match="n = 30, d = 60"):
        whitening_stats(x, shrinkage=0)
    assert np.isfinite(whitening_stats(x).transform(x)).all()


def test_dead_dimensions_stay_finite():
    x = sample()
    x[:, 3] = 7.25
    w = whitening_stats(x.astype(np.float32), shrinkage=0)
    assert (w.dead, w.rank) == (1, 11)
    assert np.isfinite(w.transform(x)).all()
    with pytest.raises(BadInput, match="no variance"):
        whitening_stats(np.ones((20, 3)))


def test_energy_ratio_shows_overfitting():
    x = sample(130, 100)
    fresh = sample(2130, 100)[130:]
    assert whitening_stats(x, shrinkage=0).energy_ratio(fresh, x) > 1.5
    many = sample(4000, 10)
    assert abs(whitening_stats(many[:3000]).energy_ratio(many[3000:], many[:3000]) - 1) < 0.15


@pytest.mark.parametrize("bad", ["auto", "much", -0.1, 1.5, float("nan")])
def test_bad_shrinkage_says_what_is_allowed(bad):
    with pytest.raises(BadInput, match="shrinkage must be"):
        whitening_stats(sample(), shrinkage=bad)


def test_nan_names_the_row():
    x = sample()
    x[5, 0] = np.nan
    with pytest.raises(BadInput, match="first row 5"):
        whitening_stats(x)


def test_effective_rank_and_condition():
    w = whitening_stats(sample(5000, 4), shrinkage=0)
    assert 1.0 <= w.effective_rank <= 4.0
    assert np.isclose(w.condition, w.eigenvalues[0] / w.eigenvalues[-1])


@pytest.mark.parametrize("shrinkage", [0, 0.3])
def test_the_inverse_undoes_the_map(shrinkage):
    x = np.random.default_rng(0).normal(size=(90, 7)) * np.geomspace(1, 50, 7)
    w = whitening_stats(x, shrinkage=shrinkage)
    np.testing.assert_allclose(w.matrix @ w.inverse, np.eye(7), atol=1e-10)
    wide = np.random.default_rng(1).normal(size=(5, 9))
    w = whitening_stats(wide, shrinkage=0.3)
    np.testing.assert_allclose(w.inverse, np.linalg.inv(w.matrix), atol=1e-9)


def test_gram_and_singular_values_give_one_map(monkeypatch):
    """Many rows take the Gram matrix; where it would lose digits the SVD is taken instead."""
    from core.linalg import whitening

    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 12)) @ np.diag(np.geomspace(1, 100, 12))
    turned = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    fast = whitening_stats(turned, shrinkage=0, prescale=False).transform(turned)
    monkeypatch.setattr(whitening, "GRAM_FLOOR", 2.0)
    exact = whitening_stats(turned, shrinkage=0, prescale=False).transform(turned)
    np.testing.assert_allclose(fast, exact, atol=1e-9)
    monkeypatch.undo()
    steep = (rng.normal(size=(400, 12)) * np.geomspace(1e-6, 1, 12)) @ np.linalg.qr(
        rng.normal(size=(12, 12))
    )[0]
    z = whitening_stats(steep, shrinkage=0, prescale=False, rtol=1e-14).transform(steep)
    np.testing.assert_allclose(np.cov(z.T), np.eye(12), atol=1e-6)
