"""Differences of rank correlations on the same models: planted, against a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from core.errors import BadInput
from core.quality.population import Population
from core.quality.rivals import rivals


def planted(n_families: int = 20, each: int = 4, seed: int = 0) -> Population:
    """NESum follows the accuracy closely, RankMe loosely, TwoNN (lower is better) not at all."""
    rng = np.random.default_rng(seed)
    n = n_families * each
    good = rng.standard_normal(n)
    rows = pd.DataFrame(
        {
            "dataset": "a", "knn": good, "family": np.repeat(np.arange(n_families), each),
            "ne_sum": good + 0.2 * rng.standard_normal(n),
            "rankme": good + 2.0 * rng.standard_normal(n),
            "twonn": rng.standard_normal(n), "alpha_req": -good + 0.2 * rng.standard_normal(n),
        }
    )  # fmt: skip
    return Population("planted", rows, {"a": "A"}, {})


METRICS = ["ne_sum", "rankme", "twonn", "alpha_req"]


def test_a_closer_metric_is_ahead_and_an_equal_one_is_not():
    found = rivals(planted(), "a", "ne_sum", "knn", metrics=METRICS).set_index("metric")
    assert list(found.index) == ["rankme", "twonn", "alpha_req"]
    assert found.loc["rankme", "lo"] > 0
    assert found.loc["rankme", "q"] < 0.01
    # alpha-ReQ is as close, with the other sign: turned into its direction the two are equal.
    assert found.loc["alpha_req", "lo"] < 0 < found.loc["alpha_req", "hi"]


def test_it_is_the_difference_of_scipys_rho_with_a_plain_bootstraps_interval():
    whole = planted()
    found = rivals(whole, "a", "ne_sum", "knn", metrics=["rankme"], n_boot=2000).iloc[0]
    table = whole.table
    rho = {m: spearmanr(table[m], table["knn"])[0] for m in ("ne_sum", "rankme")}
    assert found["difference"] == pytest.approx(rho["ne_sum"] - rho["rankme"], abs=1e-12)
    assert found["rho"] == pytest.approx(rho["rankme"], abs=1e-12)
    rng = np.random.default_rng(5)
    groups = [rows.index.to_numpy() for _, rows in table.groupby("family")]
    draws = []
    for _ in range(400):
        at = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        some = table.loc[at]
        draws.append(
            spearmanr(some["ne_sum"], some["knn"])[0] - spearmanr(some["rankme"], some["knn"])[0]
        )
    assert found["lo"] == pytest.approx(np.quantile(draws, 0.025), abs=0.05)
    assert found["hi"] == pytest.approx(np.quantile(draws, 0.975), abs=0.05)


def test_swapping_the_two_turns_the_difference_round():
    one = rivals(planted(), "a", "ne_sum", "knn", metrics=["rankme"]).iloc[0]
    two = rivals(planted(), "a", "rankme", "knn", metrics=["ne_sum"]).iloc[0]
    assert one["difference"] == pytest.approx(-two["difference"], abs=1e-12)
    assert one["lo"] == pytest.approx(-two["hi"], abs=1e-6)


def test_too_few_families_and_missing_values_are_not_a_number():
    few = rivals(planted(n_families=3), "a", "ne_sum", "knn", metrics=["rankme"]).iloc[0]
    assert np.isnan(few["difference"])
    assert few["n_clusters"] == 3
    holes = planted()
    holes.table.loc[:9, "rankme"] = np.nan
    found = rivals(holes, "a", "ne_sum", "knn", metrics=["rankme", "twonn"]).set_index("metric")
    assert found.loc["rankme", "n"] == 70
    assert found.loc["twonn", "n"] == 80


def test_what_is_unknown_is_named():
    with pytest.raises(BadInput, match="'b'"):
        rivals(planted(), "b", "ne_sum", "knn")
