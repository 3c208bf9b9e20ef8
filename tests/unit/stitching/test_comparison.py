"""Paired comparison of methods: planted differences, coverage, pairing, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput
from core.stitching import compare_methods, method_intervals
from core.stitching.comparison import pair_means


def matrices(gain: float, noise: float = 0.01, seed: int = 0) -> dict[str, np.ndarray]:
    """Methods with a large shared variation over pairs, and a difference of their own."""
    rng = np.random.default_rng(seed)
    shared = rng.uniform(0.2, 0.8, (1, 5, 5)) + rng.normal(0, 0.05, (6, 1, 1))
    return {
        "a": shared + gain + noise * rng.normal(size=(6, 5, 5)),
        "b": shared + noise * rng.normal(size=(6, 5, 5)),
    }


def test_pair_means_against_a_loop():
    values = np.random.default_rng(0).uniform(size=(3, 4, 4))
    got = pair_means(values)
    at = 0
    for i in range(4):
        for j in range(i + 1, 4):
            np.testing.assert_allclose(got[:, at], (values[:, i, j] + values[:, j, i]) / 2)
            at += 1
    assert got.shape == (3, 6)


def test_pairing_finds_what_the_spread_over_pairs_would_hide():
    table = compare_methods(matrices(0.02))
    row = table.iloc[0]
    assert row["low"] < 0.02 < row["high"]
    assert row["q"] < 0.01
    alone = method_intervals(matrices(0.02)).set_index("method")
    assert alone.loc["a", "low"] < alone.loc["b", "high"]  # unpaired, they overlap


def test_without_a_difference_few_comparisons_are_significant():
    found = [compare_methods(matrices(0.0, seed=s), n_boot=300).iloc[0]["p"] for s in range(40)]
    assert np.mean(np.array(found) < 0.05) <= 0.2


def test_the_difference_is_antisymmetric_and_seeded():
    given = matrices(0.03)
    one = compare_methods(given).iloc[0]
    other = compare_methods(dict(reversed(given.items()))).iloc[0]
    assert np.isclose(one["difference"], -other["difference"])
    assert np.isclose(one["low"], -other["high"])
    assert (compare_methods(given).to_numpy() == compare_methods(given).to_numpy()).all()


def test_q_is_benjamini_hochberg_over_the_rows():
    from scipy.stats import false_discovery_control

    given = matrices(0.01)
    given["c"] = given["a"] + 0.001
    table = compare_methods(given)
    np.testing.assert_allclose(table["q"], false_discovery_control(table["p"]))


def test_pairs_that_are_not_looked_at_are_left_away():
    given = matrices(0.02)
    masked = {}
    for name, values in given.items():
        masked[name] = values.copy()
        masked[name][:, 0, 1] = masked[name][:, 1, 0] = np.nan
    table = compare_methods(masked)
    assert table["n_pairs"][0] == 9
    assert np.isfinite(table["difference"]).all()


def test_one_method_gives_no_row_and_bad_shapes_are_named():
    assert len(compare_methods({"a": np.ones((2, 3, 3))})) == 0
    with pytest.raises(BadInput, match="shape"):
        compare_methods({"a": np.ones((3, 3))})
    with pytest.raises(BadInput, match="same seeds"):
        compare_methods({"a": np.ones((2, 3, 3)), "b": np.ones((2, 4, 4))})
