"""The transfer study: what takes part, its correlations against scipy, stop and go on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

from core import analyses
from core.data.demo import prepare
from core.data.demo_recipe import STUDIES
from core.data.shipped import shipped_result
from core.errors import BadInput
from core.radar import study, study_pieces
from core.radar.study_reading import headline, means
from core.workspace import open_workspace

MAIN = "radar:page default:joint"
SMALL = {
    "datasets": ["emoji"], "models": ["demo/vit-s14"], "configurations": ["page default"],
    "most_sources": 3, "n_pairs": 300, "repeats": 1, "gain_seeds": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A workspace with the demo laid ready."""
    space = open_workspace(tmp_path_factory.mktemp("ready"))
    prepare(space)
    return space


def planted(rho_sign):
    rng = np.random.default_rng(0)
    gain = rng.normal(size=15)
    return pd.DataFrame({
        "blend": [str(i) for i in range(15)], "gain": gain,
        "n_members": [1] * 5 + [2] * 10,
        MAIN: -rho_sign * gain + 0.3 * rng.normal(size=15), "size": np.ones(15),
    })  # fmt: skip


def test_correlations_agree_with_scipy_and_constants_are_not_ranked():
    table = planted(1)
    out = study_pieces.correlations(table, {MAIN: 1.0, "size": 0.0}).set_index("measure")
    assert out.loc[MAIN, "rho"] == pytest.approx(spearmanr(-table[MAIN], table["gain"]).statistic)
    assert out.loc[MAIN, "kendall"] == pytest.approx(
        kendalltau(-table[MAIN], table["gain"]).statistic
    )
    ones, twos = table[:5], table[5:]
    by_hand = sum(len(t) * spearmanr(-t[MAIN], t["gain"]).statistic for t in (ones, twos)) / 15
    assert out.loc[MAIN, "rho_within_size"] == pytest.approx(by_hand)
    assert np.isnan(out.loc["size", "rho"])


def test_means_leave_each_target_out():
    parts = [
        study_pieces.correlations(planted(sign), {MAIN: 1.0, "size": 0.0}).assign(
            dataset="d", model="m", target=f"t{at}"
        )
        for at, sign in enumerate((1, 1, -1))
    ]
    measures = pd.concat(parts)
    row = means(measures).set_index("measure").loc[MAIN]
    rho = measures.loc[measures["measure"] == MAIN, "rho"].to_numpy()
    assert row["rho"] == pytest.approx(rho.mean())
    assert row["high"] == pytest.approx(rho[:2].mean())
    assert row["low"] == pytest.approx((rho.sum() - rho.max()) / 2)
    assert row["worst"] == pytest.approx(rho.min())
    assert "1 case" in headline(means(measures)) or "0 of 1" in headline(means(measures))


def test_refusals(ready):
    for change in ({"n_pairs": 0}, {"configurations": ["x"]}, {"most_sources": 2}):
        with pytest.raises(BadInput):
            analyses.resolve("transfer-study", ready, **change)


def test_two_domains_leave_nothing_to_rank(ready):
    full = analyses.resolve("transfer-study", ready)
    assert full["datasets"] == ["emoji", "names"]
    assert "2 domains" in study._unfit(ready, "clipart")
    found = study.cases(ready, full)
    assert all(
        len(case["sources"]) == 5 and case["target"] not in case["sources"] for case in found
    )
    assert not any(c["dataset"] == "emoji" and "minilm-l6" in c["model"].split("/")[1][:9]
                   for c in found)  # fmt: skip


def test_a_piece_is_kept_and_found_again(ready):
    full = analyses.resolve("transfer-study", ready, **SMALL)
    case = study.cases(ready, full)[0]
    first = study_pieces.piece(ready, case)
    assert len(first.tables["blends"]) == 7
    assert study_pieces.piece(ready, case).key == first.key
    again = study_pieces.compute_piece(ready, case)
    drop = "seconds"
    pd.testing.assert_frame_equal(
        again.tables["measures"].drop(columns=drop), first.tables["measures"].drop(columns=drop)
    )


def test_the_shipped_study_is_what_one_piece_gives(ready):
    shipped = shipped_result(next(a for a in STUDIES if a.analysis == "transfer-study"))
    assert shipped is not None
    full = {**shipped.params, "configurations": ["page default"]}
    case = study.cases(ready, full)[0]
    mine = study_pieces.compute_piece(ready, case).tables["measures"].set_index("measure")
    theirs = shipped.tables["measures"]
    there = (theirs[["dataset", "model", "target"]] == pd.Series(case)[
        ["dataset", "model", "target"]
    ]).all(axis=1)  # fmt: skip
    theirs = theirs[there].set_index("measure")
    for name in (MAIN, "size", "logme", "distance_of_means"):
        # A prediction on a border may fall to the other side on another machine.
        assert mine.loc[name, "rho"] == pytest.approx(theirs.loc[name, "rho"], abs=0.05)
