"""Relative representations: references, invariances, mixtures, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput
from core.stitching import (
    effective_support,
    fps_anchors,
    kmeans_anchors,
    mixture_anchors,
    random_anchors,
    relative,
    whitening_stats,
)

# Values of an independent computation: covariance with divisor n, eigen-decomposition.
WIP = [
    [16.716221628537095, 4.998883247928263, 4.593226015427917, 3.253314661899637],
    [-3.2175410247272946, -2.4988258076907237, -0.024470875953595244, 1.0241295608816832],
    [2.070514482625048, 0.9588060636267142, -7.544644635483046, 2.2120456358209966],
]
COS = [
    [1.0, 0.32567944580408664, 0.2984919167635385, 0.40116083976001615],
    [-0.3788437947385423, -0.2907491800156871, -0.007429776944022457, 0.15019593124324399],
    [0.0937919680492774, -0.08759496632006813, -0.5272365262450954, 0.19032510588459392],
]


def table() -> np.ndarray:
    return np.random.default_rng(61).standard_normal((200, 12))


def test_reference_values():
    x = table()
    anchors = x[::10]
    np.testing.assert_allclose(relative(x, anchors)[:3, :4], COS, rtol=1e-10)
    wip = relative(x, anchors, similarity="wip", stats=whitening_stats(x, shrinkage=0))
    np.testing.assert_allclose(wip[:3, :4] * 200 / 199, WIP, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_wip_is_affine_invariant_and_cosine_is_not(seed):
    x = np.random.default_rng(seed).normal(size=(300, 10))
    rng = np.random.default_rng(seed + 5)
    A = rng.normal(size=(10, 10)) + 2.0 * np.eye(10)
    y = x @ A + 5.0 * rng.normal(size=10)
    P = random_anchors(300, 20, seed=seed)
    wip = [
        relative(s, P @ s, similarity="wip", stats=whitening_stats(s, shrinkage=0)) for s in (x, y)
    ]
    assert np.abs(wip[0] - wip[1]).max() < 1e-8 * np.abs(wip[0]).max()
    assert np.abs(relative(x, P @ x) - relative(y, P @ y)).max() > 0.3


def test_cosines_under_rotation_scale_and_shift():
    x = table()
    rng = np.random.default_rng(1)
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    y = 4.0 * x @ rotation
    np.testing.assert_allclose(relative(x, x[:9]), relative(y, y[:9]), atol=1e-12)
    z = y + 30.0
    a, b = (
        relative(s, s[:9], similarity="ccosine", stats=whitening_stats(s, shrinkage=0))
        for s in (x, z)
    )
    np.testing.assert_allclose(a, b, atol=1e-12)
    scaled = x * rng.uniform(0.1, 9.0, 12) + 3.0
    a, b = (
        relative(s, s[:9], similarity="scosine", stats=whitening_stats(s, shrinkage=0))
        for s in (x, scaled)
    )
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_whitening_commutes_with_mixing():
    x = table()
    P = np.random.default_rng(2).dirichlet(np.ones(200), size=15)
    w = whitening_stats(x, shrinkage=0.3)
    np.testing.assert_allclose(w.transform(P @ x), P @ w.transform(x), atol=1e-12)


def test_wip_columns_are_centred_with_known_covariance():
    x = table()
    w = whitening_stats(x, shrinkage=0)
    anchors = mixture_anchors(x, 8, width=20) @ x
    R = relative(x, anchors, similarity="wip", stats=w)
    A = w.transform(anchors)
    np.testing.assert_allclose(R.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.cov(R.T), A @ A.T, atol=1e-9)


def test_one_hot_rows_are_the_samples_and_uniform_rows_the_mean():
    x = table()
    P = random_anchors(200, 7, seed=3)
    rows = P.argmax(axis=1)
    assert (P @ x == x[rows]).all()
    w = whitening_stats(x)
    uniform = np.full((2, 200), 1 / 200) @ x
    np.testing.assert_allclose(w.transform(uniform), 0.0, atol=1e-10)
    for similarity in ("wip", "ccosine"):
        assert np.isfinite(relative(x, uniform, similarity=similarity, stats=w)).all()


@pytest.mark.parametrize("make", [fps_anchors, kmeans_anchors, mixture_anchors])
def test_anchors_are_convex_seeded_and_distinct(make):
    x = table()
    P = make(x, 12, seed=1)
    assert P.shape == (12, 200)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    assert (make(x, 12, seed=1) == P).all()
    if make is not mixture_anchors:
        assert len(set(P.argmax(axis=1))) == 12
    else:
        np.testing.assert_allclose(effective_support(P), 20.0)


def test_farthest_points_against_the_definition():
    x = table()[:40]
    u = (x - x.mean(0)) / x.std(0, ddof=1)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    rows = fps_anchors(x, 6, seed=0).argmax(axis=1)
    for step in range(1, 6):
        gaps = np.linalg.norm(u[:, None] - u[rows[:step]], axis=2).min(axis=1)
        assert np.isclose(gaps[rows[step]], gaps.max())


def test_more_anchors_than_rows_are_clipped():
    assert random_anchors(5, 50).shape == (5, 5)
    with pytest.raises(BadInput, match="at least 2"):
        random_anchors(5, 1)


def test_bad_input_is_named():
    x = table()
    with pytest.raises(BadInput, match="12 dimensions and anchors have 3"):
        relative(x, x[:, :3])
    with pytest.raises(BadInput, match="similarity='dot'"):
        relative(x, x, similarity="dot")
    with pytest.raises(BadInput, match="needs stats"):
        relative(x, x, similarity="wip")
