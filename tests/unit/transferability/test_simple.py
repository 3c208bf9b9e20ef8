"""The plain baselines."""

import numpy as np
import pytest

from core.errors import BadInput
from core.transferability import blend_size, distance_of_class_means, distance_of_means


def test_values_by_hand():
    x, z = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[4.0, 4.0]])
    assert distance_of_means(x, z) == pytest.approx(5.0)
    assert blend_size([x, z]) == 3


def test_equal_means_may_hide_unequal_classes():
    x, y = np.array([[0.0], [2.0]]), np.array(["a", "b"])
    assert distance_of_means(x, x[::-1]) == 0
    assert distance_of_class_means(x, y, x[::-1], y) == 2.0


def test_classes_count_alike_and_missing_ones_not():
    x, y = np.array([[0.0], [0.0], [10.0]]), np.array([0, 0, 1])
    z, w = np.array([[1.0], [13.0], [99.0]]), np.array([0, 1, 7])
    assert distance_of_class_means(x, y, z, w) == pytest.approx(2.0)
    assert np.isnan(distance_of_class_means(x, y, z, np.full(3, 9)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_scale_with_the_features_and_ignore_order(scale):
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 30, 4))
    base = distance_of_means(x, z)
    assert distance_of_means(scale * x, scale * z) == pytest.approx(scale * base)
    assert distance_of_means(x[::-1] + 3, z + 3) == pytest.approx(base)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="blend has shape"):
        distance_of_means(np.zeros((2, 2)), np.zeros((0, 2)))
    with pytest.raises(BadInput, match="target has 2 features, blend 3"):
        distance_of_means(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(BadInput, match="entries"):
        distance_of_class_means(np.zeros((2, 2)), np.zeros(3), np.zeros((2, 2)), np.zeros(2))
