"""Rotation, stability, overlap, attribution, agreement, resolution: what a set is worth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from core.contrast import koda_kernels
from core.contrast.agreement import agreement, agreement_table, baseline_sets, kmeans_difference
from core.contrast.clusters import extract_clusters, varimax
from core.contrast.honesty import (
    attribution_table,
    jaccard,
    overlaps_table,
    resolution,
    stability,
)
from core.linalg.kernels import make_kernel, match_group_size


@pytest.fixture(scope="module")
def planted():
    """Three groups of twelve of 300 samples that only A holds together; two modalities each."""
    rng = np.random.default_rng(3)
    a, b, text = (rng.standard_normal((300, 12)) for _ in range(3))
    for g in range(3):
        rows = slice(12 * g, 12 * g + 12)
        a[rows] = 4 * rng.standard_normal(12) + 0.3 * rng.standard_normal((12, 12))
        text[rows] = 4 * rng.standard_normal(12) + 0.3 * rng.standard_normal((12, 12))
    kernels = tuple(match_group_size(make_kernel(t), 8.0) for t in (a, b))
    result = koda_kernels(*kernels, n_directions=3)
    joint = tuple(match_group_size(make_kernel({"image": t, "text": text}), 8.0) for t in (a, b))
    return result, kernels, joint


def test_rotation_keeps_the_span_and_takes_mixed_groups_apart():
    rng = np.random.default_rng(0)
    pure = np.zeros((3, 60))
    for g in range(3):
        pure[g, 10 * g : 10 * g + 10] = 10**-0.5
    mixed = np.linalg.qr(rng.standard_normal((3, 3)))[0] @ pure
    turned = varimax(mixed)
    assert np.allclose(turned @ turned.T, np.eye(3), atol=1e-10)
    assert np.allclose(turned.T @ turned, pure.T @ pure, atol=1e-10)
    found = {frozenset(np.argsort(-row)[:10]) for row in turned}
    assert found == {frozenset(range(10 * g, 10 * g + 10)) for g in range(3)}
    # The mixed directions themselves do not show the groups.
    assert {frozenset(np.argsort(-row)[:10]) for row in mixed} != found


def test_rotated_clusters_are_those_of_the_rotated_directions(planted):
    result, _, _ = planted
    rotated = result.clusters(12, rotate=True)
    groups = {frozenset(range(12 * g, 12 * g + 12)) for g in range(3)}
    assert {frozenset(c.rows.tolist()) for c in rotated} == groups
    assert [c.direction for c in rotated] == [0, 1, 2]


def test_true_groups_come_back_and_noise_does_not(planted):
    result, (a, b), _ = planted
    true = stability(result.clusters(), a, b, result.epsilon, seed=0)
    assert min(true.values()) > 0.8
    rng = np.random.default_rng(1)
    noise = tuple(match_group_size(make_kernel(rng.standard_normal((180, 12))), 8.0) for _ in "ab")
    found = koda_kernels(*noise, n_directions=3)
    false = stability(found.clusters(), *noise, found.epsilon, seed=0)
    assert np.mean(list(false.values())) < np.mean(list(true.values())) - 0.15
    assert stability([], a, b, 2.0, seed=0) == {}


def test_overlap_is_symmetric_with_one_on_the_diagonal(planted):
    clusters = planted[0].clusters()
    wide = overlaps_table(clusters).pivot(index="direction", columns="other", values="overlap")
    assert np.allclose(wide, wide.T)
    assert np.allclose(np.diag(wide), 1.0)
    assert jaccard(np.array([]), np.array([])) == 0.0


def test_attribution_says_which_modality_holds_a_set(planted):
    result, kernels, joint = planted
    table = attribution_table(result.clusters(), joint, seed=0).set_index(["direction", "side"])
    shares = table[["first_only", "second_only", "both", "neither"]]
    assert np.allclose(shares.sum(axis=1), 1.0)
    # Under A picture and caption agree; under B the caption alone holds the groups.
    assert table.xs("A", level="side")["both"].min() > 0.9
    assert table.xs("B", level="side")["second_only"].min() > 0.9
    assert attribution_table(result.clusters(), kernels, seed=0).empty


def test_agreement_is_that_of_scikit_learn_and_says_when_it_cannot(planted):
    labels = np.repeat([0, 1, 2], 12)
    rng = np.random.default_rng(0)
    x = np.eye(3)[labels] + 0.01 * rng.standard_normal((36, 3))
    found = agreement(x, labels)
    assert found["AMI"] == found["ARI"] == 1.0
    assert found["silhouette"] > 0.9
    noise = agreement(rng.standard_normal((36, 3)), labels, runs=3)
    assert abs(noise["AMI"]) < 0.25
    assert np.isnan(agreement(x, np.zeros(36, dtype=int))["AMI"])
    assert adjusted_mutual_info_score(labels, labels) == found["AMI"]


def test_baselines_stand_beside_koda(planted):
    result, (a, b), _ = planted
    sets = baseline_sets(result.clusters(), a, b, first=3, seed=0)
    assert {"KODA", "SPEC", "SPEC, covariance form", "Kernel PCA of A", "k-means of A"} < set(sets)
    table = agreement_table(sets, a, b, seed=0).set_index(["method", "embedding"])
    assert table.loc[("KODA", "A"), "AMI"] > 0.9
    assert table.loc[("KODA", "A"), "AMI"] > table.loc[("KODA", "B"), "AMI"] + 0.3
    assert table.loc[("Random groups", "A"), "AMI"] < 0.3
    assert baseline_sets([], a, b, first=3, seed=0) == {}
    best = kmeans_difference(a, b, first=1, seed=0)[0]
    assert max(jaccard(best, np.arange(12 * g, 12 * g + 12)) for g in range(3)) > 0.4


def test_resolution_limit_is_the_inverse_of_the_effective_dimension(planted):
    _, (a, _), _ = planted
    K = a.dense().numpy() / a.n
    assert resolution(a) == pytest.approx(a.n * (K @ K).trace())
    assert resolution(a) > 1.0


def test_both_poles_are_kept_where_the_other_has_energy():
    x = np.r_[np.full(8, 0.6), np.full(8, -0.55), np.zeros(40)]
    kernel = make_kernel(np.random.default_rng(0).standard_normal((56, 4)))
    cluster = extract_clusters(x[None], kernel, kernel)[0]
    assert set(cluster.rows[:8]) == set(range(8))
    assert set(cluster.other_rows) == set(range(8, 16))
    assert 0.25 < cluster.other_energy < 0.5
