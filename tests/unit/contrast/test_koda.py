"""The public functions: scales, epsilon's units, clusters, bad input, SPEC."""

from __future__ import annotations

import numpy as np
import pytest
from contrast_problems import random_psd

from core.contrast import extract_clusters, koda, koda_dense, koda_features, spec, spec_dense
from core.contrast.clusters import (
    RandomSets,
    coherence,
    neighbours_of_set,
    orient,
    participation_ratio,
    quotient,
)
from core.contrast.inputs import MatrixSimilarity, raw_epsilon
from core.contrast.words import Vocabulary, group_columns, purity
from core.errors import BadInput
from core.linalg.kernels import make_kernel


@pytest.fixture(scope="module")
def pair():
    """Groups of ten, tight in A; B knows nothing of them."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 12)), rng.standard_normal((200, 12))
    for g in range(6):
        rows = slice(10 * g, 10 * g + 10)
        a[rows] = 2 * rng.standard_normal(12) + 0.25 * rng.standard_normal((10, 12))
    return a, b


def test_automatic_scale_finds_the_groups(pair):
    result = koda(*pair, n_directions=5)
    assert result.scale_path
    assert max(result.relative_gap) <= 1e-6
    passed = [p.passed for p in result.scale_path if np.isclose(p.group_size, result.group_size)]
    assert not passed or passed[0] >= 4
    for cluster in koda(*pair, group_size=8.0, n_directions=4).clusters():
        assert len(set(cluster.rows[:8] // 10)) == 1
        assert cluster.coherence_a > 0.3 > cluster.coherence_b
        assert cluster.is_group(200)


def test_row_order_and_rotation_keep_the_clusters(pair):
    a, b = pair
    rng = np.random.default_rng(1)
    order = rng.permutation(200)
    q = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    base = {frozenset(c.rows[:8]) for c in koda(a, b, group_size=8.0, n_directions=3).clusters()}
    moved = koda((2.0 * a @ q)[order], b[order], group_size=8.0, n_directions=3).clusters()
    assert {frozenset(order[c.rows[:8]]) for c in moved} == base


def test_same_seed_same_numbers(pair):
    first, second = (koda(*pair, group_size=8.0, n_features=300, seed=3) for _ in range(2))
    assert np.array_equal(first.directions, second.directions)
    assert any("frequencies" in n for n in first.notes) is (200 / 600 >= 1.0)


def test_cosine_from_features_equals_the_dense_kernel(pair):
    result = koda(*pair, kernel="cosine", n_directions=3)
    a, b = (make_kernel(t, kind="cosine").dense() for t in pair)
    dense = koda_dense(a, b, epsilon=2.0, n_directions=3)
    assert np.allclose(result.objective, dense.objective, rtol=1e-5)
    assert result.weights is not None


def test_epsilon_in_all_units(pair):
    K = make_kernel(pair[1], kind="cosine").dense()
    values = np.linalg.eigvalsh(K)
    assert raw_epsilon("unit_trace", 0.01, 200, K) == pytest.approx(2.0)
    assert raw_epsilon("floor", 2.0, 200, K) == 2.0
    assert raw_epsilon("fraction", 0.5, 200, K) == pytest.approx(0.5 * values[-1])
    assert raw_epsilon("quantile", 0.5, 200, K) == pytest.approx(
        np.quantile(np.maximum(values, 0), 0.5), abs=1e-9
    )
    low = koda(*pair, kernel="cosine", epsilon=0.5, epsilon_mode="quantile", n_directions=1)
    assert low.epsilon == pytest.approx(np.quantile(values[-12:], 0.5), rel=1e-5)
    for mode, value, words in (
        ("nope", 1.0, "not known"),
        ("floor", -1.0, "at least 0"),
        ("fraction", 2.0, "share"),
        ("quantile", 0.5, "not computed"),
    ):
        with pytest.raises(BadInput, match=words):
            raw_epsilon(mode, value, 200, make_kernel(pair[1]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference": np.zeros((3, 2))}, "match|same"),
        ({"kernel": "poly"}, "not known"),
        ({"n_directions": 0}, "between"),
        ({"group_size": 0.5}, "out of reach"),
    ],
)
def test_bad_input_is_named(pair, change, words):
    full = {"target": pair[0], "reference": pair[1], **change}
    with pytest.raises(BadInput, match=words):
        koda(full.pop("target"), full.pop("reference"), **full)


@pytest.mark.parametrize(
    ("K_a", "words"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "not finite"),
        (np.eye(3), "must match"),
    ],
)
def test_bad_matrices_are_named(K_a, words):
    with pytest.raises(BadInput, match=words):
        koda_dense(K_a, np.eye(2), epsilon=1.0)
    with pytest.raises(BadInput, match="not a number"):
        koda_dense(np.eye(2), np.eye(2), epsilon=float("nan"))


def test_features_must_match_and_not_be_zero():
    with pytest.raises(BadInput, match="match"):
        koda_features(np.eye(3), np.eye(4))
    with pytest.raises(BadInput, match="zero"):
        koda_features(np.zeros((3, 2)), np.zeros((3, 2)), n_directions=1)


def test_orientation_size_and_poles():
    x = np.array([0.1, -0.9, -0.4, 0.05])
    assert orient(x[None])[0][1] > 0
    assert participation_ratio(np.r_[np.ones(7), -np.ones(3)]) == pytest.approx(7.0)
    assert participation_ratio(-np.ones(3)) == 0.0
    K = np.eye(40)
    two = np.r_[np.ones(12), -0.95 * np.ones(10), np.zeros(18)]
    one = np.r_[np.ones(12), -0.1 * np.ones(10), np.zeros(18)]
    both, single = extract_clusters(np.stack([two, one]), MatrixSimilarity(K), MatrixSimilarity(K))
    assert set(both.rows) == set(range(12))
    assert set(both.other_rows) == set(range(12, 22))
    assert len(single.other_rows) == 0
    assert (
        len(extract_clusters(two[None], MatrixSimilarity(K), MatrixSimilarity(K), 5)[0].rows) == 5
    )


def test_set_scores_by_hand():
    rng = np.random.default_rng(3)
    K = random_psd(rng, 30)
    rows = np.array([2, 5, 11])
    block = K[np.ix_(rows, rows)]
    by_hand = (block[0, 1] + block[0, 2] + block[1, 2]) / 3
    assert coherence(MatrixSimilarity(K), rows) == pytest.approx(by_hand)
    assert np.isnan(coherence(MatrixSimilarity(K), rows[:1]))
    assert quotient(3, 0.5, 0.25) == pytest.approx(2.0 / 1.5)
    random = RandomSets(MatrixSimilarity(K), seed=0)
    drawn = random.coherences(4)
    assert len(drawn) == 500
    off = K[~np.eye(30, dtype=bool)].mean()
    assert drawn.mean() == pytest.approx(off, abs=4 * drawn.std() / np.sqrt(500))
    assert random.z(4, float(drawn.mean())) == pytest.approx(0.0, abs=1e-9)


def test_neighbours_leave_the_set_out():
    K = np.full((5, 5), 0.1)
    K[3, :2] = 0.9
    ids, mean = neighbours_of_set(MatrixSimilarity(K), np.array([0, 1]), 2)
    assert ids[0] == 3
    assert mean[0] == pytest.approx(0.9)
    assert not {0, 1} & set(ids)


def test_spec_forms_agree(pair):
    a, b = (make_kernel(t, kind="cosine").dense().numpy() for t in pair)
    covariance = spec(*pair, n_directions=4)
    dense = spec_dense(a, b, n_directions=4)
    exact = np.linalg.eigvalsh(a - b)[::-1][:4] / 200
    assert np.allclose(dense.eigenvalues, exact, atol=1e-10)
    assert np.allclose(covariance.eigenvalues, exact, atol=1e-7)
    overlap = np.abs(np.sum(covariance.directions * dense.directions, axis=1))
    assert np.allclose(overlap, 1.0, atol=1e-5)
    assert np.allclose(covariance.objective - covariance.constraint, 200 * exact, atol=1e-4)


def test_spec_with_gaussian_kernels(pair):
    exact = spec(*pair, kernel="rbf", group_size=8.0, n_directions=3)
    rough = spec(*pair, kernel="rbf", group_size=8.0, n_directions=3, n_features=2000)
    assert np.allclose(exact.eigenvalues, rough.eigenvalues, rtol=0.15)
    with pytest.raises(BadInput, match="match"):
        spec(pair[0], pair[1][:50])


def test_words_name_what_sets_a_set_apart():
    captions = ["frowning face", "sad frowning face", "frowning face, worried"] + [
        "smiling face",
        "happy face",
        "red car",
        "blue car",
        "the boat",
    ] * 10
    vocabulary = Vocabulary(captions)
    assert vocabulary.describe(np.arange(3))[0] == "frowning"
    assert "face" not in vocabulary.describe(
        np.arange(3), among=np.flatnonzero(["face" in c for c in captions])
    )
    assert vocabulary.describe(np.array([7])) == []


def test_columns_that_hold_groups():
    import pandas as pd

    items = pd.DataFrame(
        {
            "id": range(300),
            "caption": [f"c{i}" for i in range(300)],
            "label": ["a", "b"] * 150,
            "domain": ["d"] * 300,
            "code": [f"x{i}" for i in range(300)],
            "kind": ["k", "l", "m"] * 100,
            "weight": np.arange(300.0),
        }
    )
    assert group_columns(items) == ["label", "kind"]
    assert purity(items["label"], np.array([0, 2, 4, 1])) == ("a", 0.75)
