from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from core.errors import BadInput
from core.quality import knn_probe, linear_probe, ridge_sweep


def digits():
    x, y = load_digits(return_X_y=True)
    test = np.arange(len(x)) % 3 == 0
    return x[~test], y[~test], x[test], y[test]


def mixture(n_train, n_test=2000, d=200, classes=10, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((classes, d)) * 0.22
    out = []
    for n in (n_train, n_test):
        y = rng.integers(0, classes, n)
        out += [means[y] + rng.standard_normal((n, d)), y]
    return out


def test_digits_reference():
    xtr, ytr, xte, yte = digits()
    ols = linear_probe(xtr / 16, ytr, xte / 16, yte, ridge=0)
    assert ols.accuracy == pytest.approx(0.9315525876460768, abs=1e-12)
    assert knn_probe(xtr, ytr, xte, yte).accuracy == pytest.approx(0.986644407345576, abs=1e-12)
    five = knn_probe(xtr.astype(np.float32), ytr, xte.astype(np.float32), yte, k=5)
    assert five.accuracy == pytest.approx(0.988313856427379, abs=1e-12)


def test_two_gaussians_reach_bayes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40_000)
    x = rng.standard_normal((40_000, 10))
    x[:, 0] += 2 * y - 1
    found = linear_probe(x[:20_000], y[:20_000], x[20_000:], y[20_000:])
    assert found.accuracy == pytest.approx(0.8413, abs=0.008)
    assert found.interval.lo < found.accuracy < found.interval.hi


def test_ridge_equals_scikit_learn():
    xtr, ytr, xte, yte = mixture(400, 300, d=30)
    ridge = 1e-2
    centred = xtr - xtr.mean(0)
    alpha = ridge * np.trace(centred.T @ centred) / 30
    peer = Ridge(alpha=alpha).fit(xtr, np.eye(10)[ytr]).predict(xte).argmax(1)
    np.testing.assert_array_equal(linear_probe(xtr, ytr, xte, yte, ridge=ridge).predicted, peer)


def test_dual_form_equals_primal():
    xtr, ytr, xte, yte = mixture(60, 200, d=80)
    centred = xtr - xtr.mean(0)
    gram = centred.T @ centred
    shift = 1e-2 * np.trace(gram) / 80
    hot = np.eye(10)[ytr]
    b = np.linalg.solve(gram + shift * np.eye(80), centred.T @ (hot - hot.mean(0)))
    want = ((xte - xtr.mean(0)) @ b + hot.mean(0)).argmax(1)
    np.testing.assert_array_equal(linear_probe(xtr, ytr, xte, yte, ridge=1e-2).predicted, want)


def test_interpolation_peak_and_its_cure():
    plain, cured = {}, {}
    for n in (100, 200, 2000):
        sweep = ridge_sweep(*mixture(n), ridges=(0.0, 1e-2))
        plain[n], cured[n] = sweep[0.0].accuracy, sweep[1e-2].accuracy
        assert sweep[0.0].rows_per_feature == n / 200
    assert plain[200] < plain[100] - 0.1
    assert plain[200] < 0.35
    assert cured[200] > plain[200] + 0.15
    assert cured[2000] == pytest.approx(plain[2000], abs=0.01)


def test_sweep_equals_single_probes():
    data = mixture(300, 200, d=40)
    for ridge, found in ridge_sweep(*data).items():
        np.testing.assert_array_equal(found.predicted, linear_probe(*data, ridge=ridge).predicted)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 3])
def test_neighbours_equal_scikit_learn(metric, k):
    xtr, ytr, xte, yte = mixture(500, 200, d=20)
    peer = KNeighborsClassifier(k, metric=metric, algorithm="brute").fit(xtr, ytr).predict(xte)
    np.testing.assert_array_equal(knn_probe(xtr, ytr, xte, yte, k=k, metric=metric).predicted, peer)


def test_labels_of_any_type_and_unseen_ones():
    x = np.array([[0.0, 1], [0, 2], [9, 1], [9, 2]])
    y = np.array(["cat", "cat", "dog", "dog"])
    found = linear_probe(
        x, y, np.array([[0, 1.5], [9, 1.5], [4, 0]]), np.array(["cat", "dog", "owl"])
    )
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.per_class == pytest.approx(2 / 3)
    assert found.predicted[0] == "cat"


def test_constant_features_predict_the_prior():
    y = np.array([0, 0, 1])
    found = linear_probe(np.ones((3, 2)), y, np.ones((3, 2)), y)
    assert found.accuracy == pytest.approx(2 / 3)


def test_zero_rows_leave_cosine():
    xtr = np.array([[0.0, 0], [1, 0], [0, 1]])
    found = knn_probe(
        xtr, np.array([2, 0, 1]), np.array([[5.0, 1], [0, 0]]), np.array([0, 0]), metric="cosine"
    )
    assert (found.n_train, found.n_test, found.accuracy) == (2, 1, 1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: linear_probe(x, y[:-1], x, y),
        lambda x, y: linear_probe(x, y, x[:, :1], y),
        lambda x, y: linear_probe(x, y, x, y, ridge=-1),
        lambda x, y: linear_probe(x * np.nan, y, x, y),
        lambda x, y: linear_probe(x[:0], y[:0], x, y),
        lambda x, y: ridge_sweep(x, y, x, y, ridges=(math.inf,)),
        lambda x, y: knn_probe(x, y, x, y, k=0),
        lambda x, y: knn_probe(x, y, x, y, k=99),
        lambda x, y: knn_probe(x, y, x, y, metric="manhattan"),
        lambda x, y: knn_probe(x * 0, y, x, y, metric="cosine"),
    ],
)
def test_bad_input(call):
    x = np.random.default_rng(0).standard_normal((6, 3))
    with pytest.raises(BadInput):
        call(x, np.array([0, 1, 0, 1, 0, 1]))
