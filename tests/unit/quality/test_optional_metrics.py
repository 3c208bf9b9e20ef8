"""The optional metrics against closed forms, scipy and a re-derivation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

import core.quality as q
from core.errors import BadInput
from core.quality.metrics.mst_dimension import tree_length

RNG = np.random.default_rng(5)
OPTIONAL = {
    "uniformity", "mst_dimension", "cluster_learnability", "coherence", "levina_bickel",
}  # fmt: skip


def test_the_suite_leaves_the_optional_ones_out_and_a_name_brings_them():
    x = RNG.standard_normal((260, 12))
    assert not OPTIONAL & set(q.label_free_metrics(x))
    asked = q.label_free_metrics(x, names=sorted(OPTIONAL))
    assert set(asked) == OPTIONAL
    assert all(math.isfinite(metric.value) for metric in asked.values())
    assert set(q.metric_specs(optional=True)) == OPTIONAL | set(q.metric_specs())


def test_uniformity_is_the_mean_over_pairs():
    x = RNG.standard_normal((90, 7)) + 0.4
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    want = np.log(np.exp(-2 * pdist(unit, "sqeuclidean")).mean())
    assert q.uniformity(x) == pytest.approx(want, abs=1e-12)
    assert q.uniformity(3 * x) == pytest.approx(want, abs=1e-12)


def test_uniformity_of_parallel_rows_is_zero_and_of_one_row_unknown():
    assert q.uniformity(np.outer([1.0, 2.0, 5.0], [3.0, 4.0])) == pytest.approx(0, abs=1e-12)
    assert math.isnan(q.uniformity(np.array([[1.0, 2.0], [0.0, 0.0]])))


def test_tree_length_is_scipys():
    x = RNG.standard_normal((150, 4))
    want = minimum_spanning_tree(squareform(pdist(x))).sum()
    assert tree_length(x) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("d", "low", "high"), [(2, 1.85, 2.15), (5, 4.3, 5.0)])
def test_spanning_tree_dimension_of_cubes(d, low, high):
    # The specification measured 1.997 and 4.62.
    values = [q.mst_dimension(np.random.default_rng(seed).random((2000, d))) for seed in range(2)]
    assert low < np.mean(values) < high


def test_spanning_tree_dimension_sees_through_an_embedding_and_a_scale():
    x = RNG.random((700, 3))
    turned = 50 * x @ np.linalg.qr(RNG.standard_normal((20, 20)))[0][:3] + 7
    assert q.mst_dimension(turned) == pytest.approx(q.mst_dimension(x), rel=1e-9)
    assert math.isnan(q.mst_dimension(x[:150]))
    with pytest.raises(BadInput):
        q.mst_dimension(x, repeats=0)


def test_separate_groups_are_easier_to_relearn_than_a_cloud():
    centres = np.repeat(RNG.standard_normal((20, 16)) * 6, 20, 0)
    groups = centres + 0.3 * RNG.standard_normal(centres.shape)
    cloud = RNG.standard_normal((400, 16))
    assert q.cluster_learnability(groups) > q.cluster_learnability(cloud) + 0.3
    assert math.isnan(q.cluster_learnability(cloud[:40]))


def test_clid_weighs_both_and_leaves_unknown_models_alone():
    cl, dimension = np.array([0.2, 0.6, 0.4, np.nan]), np.array([12.0, 8.0, 10.0, 9.0])
    out = q.clid(cl, dimension)
    assert math.isnan(out[3])
    assert out[:3].argmax() == 1
    assert np.nansum(out) == pytest.approx(0, abs=1e-12)
    with pytest.raises(BadInput):
        q.clid(cl, dimension[:2])


def test_lidar_is_the_generalised_eigenproblems_entropy():
    views = RNG.standard_normal((60, 1, 6)) * np.arange(1, 7) + 0.5 * RNG.standard_normal(
        (60, 4, 6)
    )
    means = views.mean(1)
    within = np.mean([np.cov(one.T) for one in views], axis=0) + 1e-4 * np.eye(6)
    values = scipy.linalg.eigh(np.cov(means.T), within, eigvals_only=True)
    p = values / values.sum()
    assert q.lidar(views) == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-9)


@pytest.mark.parametrize(
    "views", [np.ones((3, 1, 2)), np.ones((1, 3, 2)), np.ones((3, 2)), np.full((3, 2, 2), np.nan)]
)
def test_lidar_refuses_what_has_no_views(views):
    with pytest.raises(BadInput):
        q.lidar(views)


def test_lidar_of_one_repeated_image_is_unknown():
    assert math.isnan(q.lidar(np.ones((4, 3, 2))))
