"""The stitching matrix on digits: invariances, control, regression bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput
from core.stitching import (
    METHODS,
    StitchOptions,
    fit_head,
    prepare,
    random_anchors,
    relative,
    run_method,
    stitch_matrix,
    whitening_stats,
)
from core.stitching.matrix import StitchResult

QUICK = {"n_anchors": 60, "n_support": 400, "n_parallel": 400, "shrinkage": "lw", "steps": 100}


@pytest.fixture(scope="module")
def setting(digits):
    return prepare(*digits, StitchOptions(**QUICK, seeds=(0, 1, 2)))


@pytest.fixture(scope="module")
def learned(setting) -> StitchResult:
    return run_method(setting, "wip-param")


@pytest.fixture(scope="module")
def plain(setting) -> StitchResult:
    return run_method(setting, "cosine-random")


def test_regression_bounds_on_digits(learned, plain):
    off = learned.off_diagonal.mean()
    assert off >= 0.90
    assert learned.mean.min() >= 0.88
    assert plain.off_diagonal.mean() <= 0.60
    assert off - plain.off_diagonal.mean() >= 0.30
    # Another seed draws other pairs and anchors, and moves the mean by less than a point.
    assert np.ptp(learned.off_diagonal) < 0.01


def test_shuffled_pairs_give_chance_and_keep_the_diagonal(setting):
    control = run_method(setting.control(0, 100), "wip-param")
    assert control.off_diagonal[0] <= 0.20
    assert control.mean.diagonal().min() > 0.6


def test_shapes_gap_retention_and_spread(learned, digits):
    assert learned.accuracy.shape == (3, 3, 3)
    assert learned.predictions.shape == (3, 3, 3, len(digits[3]))
    np.testing.assert_allclose(learned.gap, learned.native[None, :] - learned.mean)
    np.testing.assert_allclose(learned.retention, learned.mean / learned.native[None, :])
    np.testing.assert_allclose(learned.sd, learned.accuracy.std(axis=0, ddof=1))
    right = (learned.classes[learned.predictions] == digits[3]).mean(axis=-1)
    np.testing.assert_allclose(right, learned.accuracy)
    assert len(learned.retrieval) == 6
    assert learned.n_parallel == 400


def test_ridge_needs_one_map_a_pair_and_keeps_the_native_diagonal(setting):
    got = run_method(setting, "ridge")
    assert got.n_maps == 6
    np.testing.assert_allclose(got.mean.diagonal(), got.native)
    assert got.off_diagonal.mean() > 0.9
    assert got.shrinkage is None


def test_every_named_method_runs(digits):
    train, test, y, yt = digits
    options = StitchOptions(12, 80, 150, 0.3, (0,), "ridge", 5)
    small = prepare([x[:300] for x in train], [x[:100] for x in test], y[:300], yt[:100], options)
    for name in METHODS:
        if name in ("linear", "l-ortho"):  # refused: 150 pairs, 128 dimensions
            with pytest.raises(BadInput, match="parallel rows"):
                run_method(small, name)
            continue
        got = run_method(small, name)
        assert np.isfinite(got.accuracy).all()
        assert (got.accuracy >= 0).all()


def affine_copies(digits) -> tuple:
    train, test, y, yt = digits
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(32, 32)) + 2.0 * np.eye(32), rng.normal(size=32)
    return [train[0], train[0] @ A + b], [test[0], test[0] @ A + b], y, yt


def test_affine_copies_stitch_as_well_as_they_predict_themselves(digits):
    got = stitch_matrix(
        *affine_copies(digits), method="wip-random", n_anchors=40, shrinkage=0, seeds=[0]
    )
    np.testing.assert_array_equal(got.mean, np.full((2, 2), got.mean[0, 0]))
    learned = stitch_matrix(
        *affine_copies(digits), method="wip-param", n_anchors=40, shrinkage=0, seeds=[0], steps=30
    )
    assert (learned.retention >= 0.97).all()
    assert np.ptp(learned.mean) < 1e-12


def test_identical_encoders_give_equal_rows(digits):
    train, test, y, yt = digits
    got = stitch_matrix([train[1]] * 2, [test[1]] * 2, y, yt, method="cosine-random", seeds=[0])
    assert np.ptp(got.mean) == 0
    assert (got.retrieval["R@1"] == 1.0).all()


def test_a_distorted_copy_keeps_the_native_accuracy(digits):
    """A head trained on WIP features loses nothing when the space is sheared and shifted."""
    spaces_train, spaces_test, y, yt = affine_copies(digits)
    got = stitch_matrix(
        spaces_train, spaces_test, y, yt, method="wip-mixture", n_anchors=100,
        shrinkage=0, seeds=[0],
    )  # fmt: skip
    assert (got.mean >= 0.999 * got.mean.diagonal()).all()
    assert (got.retention >= 0.999).all()  # and nothing against heads on the absolute features


def test_inverse_projection_needs_one_map_an_encoder_and_is_native_on_its_diagonal(setting):
    got = run_method(setting, "irp")
    assert got.n_maps == 3
    assert (got.mean.diagonal() > 0.9).all()
    assert got.off_diagonal.mean() > 0.3  # angles survive, lengths do not
    assert len(got.retrieval) == 6


def test_permuting_anchors_permutes_columns_and_keeps_the_accuracy(digits):
    train, test, y, yt = digits
    P = random_anchors(len(y), 50, seed=0)
    order = np.random.default_rng(1).permutation(50)
    stats = whitening_stats(train[0])
    a, b = (
        [relative(x, Q @ train[0], similarity="wip", stats=stats) for x in (train[0], test[0])]
        for Q in (P, P[order])
    )
    np.testing.assert_allclose(a[0][:, order], b[0], atol=1e-9)
    scores = [(fit_head(r[0], y).predict(r[1]) == yt).mean() for r in (a, b)]
    assert abs(scores[0] - scores[1]) <= 0.005


def test_labels_may_be_words(digits):
    train, test, y, yt = digits
    words = np.array([f"digit {i}" for i in range(10)])
    kw = {"method": "cosine-random", "n_anchors": 20, "seeds": [0], "head": "ridge"}
    a = stitch_matrix(train, test, y, yt, **kw)
    b = stitch_matrix(train, test, words[y], words[yt], **kw)
    np.testing.assert_array_equal(a.mean, b.mean)
    assert b.classes[0] == "digit 0"


def test_same_seed_same_predictions(digits):
    kw = {**QUICK, "steps": 5, "seeds": [1], "head": "ridge", "method": "wip-param"}
    a, b = (stitch_matrix(*digits, **kw) for _ in range(2))
    assert (a.predictions == b.predictions).all()


def test_bad_input_is_named(digits):
    train, test, y, yt = digits
    with pytest.raises(BadInput, match="two or more encoders"):
        stitch_matrix(train[:1], test[:1], y, yt)
    with pytest.raises(BadInput, match=r"spaces_train\[1\] and y_train"):
        stitch_matrix([train[0], train[1][:-1]], test[:2], y, yt)
    with pytest.raises(BadInput, match="32 dimensions in training and 64 in test"):
        stitch_matrix(train[:2], [np.hstack([test[0]] * 2), test[1]], y, yt)
    with pytest.raises(BadInput, match="method='magic'"):
        stitch_matrix(train, test, y, yt, method="magic")
    with pytest.raises(BadInput, match="one class"):
        stitch_matrix(train, test, np.zeros_like(y), yt, method="cosine-random")
