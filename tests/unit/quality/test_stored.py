"""Stored blocks give what the study's table gives, for any filter, without any resampling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import BadInput
from core.quality import population as populations
from core.quality import stored
from core.quality.population import METRICS, STUDY, from_table, select, study_table

SETS = {"one": "First", "two": "Second"}


def planted(n=96):
    """Two classes, two groups, 16 families; quality drives NESum."""
    rng = np.random.default_rng(0)
    parts = []
    for name in SETS:
        quality = rng.standard_normal(n)
        frame = pd.DataFrame({f"metric.{m}": rng.standard_normal(n) for m in METRICS if m != "d"})
        frame["metric.ne_sum"] = quality + rng.standard_normal(n)
        parts.append(
            frame.assign(
                model=[f"m{i}" for i in range(n)], family=[f"f{i % 16}" for i in range(n)],
                architecture=np.array(["ViT", "ResNet"])[np.arange(n) % 2], dataset=name,
                objective=np.where(np.arange(n) % 4 < 2, "supervised", "dino"), failed="",
                knn=quality, d=rng.integers(8, 64, n), n_params=1,
            )
        )  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    table.loc[5, "metric.twonn"] = np.nan
    return from_table(table, title="planted", datasets=SETS, about={})


POPULATION = planted()


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    found = stored.compute_blocks(POPULATION, probes=["knn"], metrics=STUDY, n_boot=100)
    path = tmp_path_factory.mktemp("blocks") / "rho.parquet"
    found.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize(
    ("kinds", "groups"),
    [(None, None), (["ViT"], None), (["ResNet", "ViT"], ["ssl"]), (["ResNet"], ["supervised"])],
)
def test_a_lookup_is_the_table_of_the_filtered_models(blocks, monkeypatch, kinds, groups):
    monkeypatch.setattr(stored, "N_BOOT", 100)
    got = stored.zoo_cells("knn", architectures=kinds, groups=groups, path=blocks)
    want = study_table(select(POPULATION, architectures=kinds, groups=groups), n_boot=100)
    keys = ["dataset", "stratum", "metric", "status", "stars", "n"]
    assert got[keys].to_numpy().tolist() == want[keys].to_numpy().tolist()
    for column in ("rho", "lo", "hi", "p", "q"):
        assert np.allclose(got[column], want[column], atol=2e-5, equal_nan=True), column


def test_q_follows_the_metrics_on_screen(blocks):
    some = stored.zoo_cells("knn", metrics=["ne_sum", "rankme"], path=blocks)
    assert list(dict.fromkeys(some["metric"])) == ["ne_sum", "rankme"]
    every = stored.zoo_cells("knn", path=blocks)
    few = some[some["metric"] == "rankme"]["q"].to_numpy()
    many = every[every["metric"] == "rankme"]["q"].to_numpy()
    assert (few != many).any()


def test_the_partial_is_that_of_the_study(blocks):
    cells = stored.zoo_cells("knn", path=blocks).set_index(["dataset", "stratum", "metric"])
    found = populations.Correlations(
        POPULATION, "one", metrics=["ne_sum"], probes=["knn"], n_boot=100
    ).partial("ViT", "ne_sum", "knn")
    row = cells.loc[("one", "ViT", "ne_sum")]
    assert row["partial"] == pytest.approx(found.rho, abs=2e-5)
    assert row["partial_lo"] == pytest.approx(found.lo, abs=2e-5)


def test_no_filter_of_the_shipped_study_resamples_anything(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a redraw must not resample")

    monkeypatch.setattr(populations, "spearman_matrix", refuse)
    for kinds in (None, ["ViT"], ["ViT", "RegNet"]):
        for groups in (None, ["ssl"]):
            cells = stored.zoo_cells(
                "linear", architectures=kinds, groups=groups, metrics=list(populations.METRICS)
            )
            assert len(cells) >= 6 * len(populations.METRICS)
            assert cells["rho"].notna().any()


def test_nothing_selected_is_refused(blocks):
    with pytest.raises(BadInput):
        stored.zoo_cells("knn", architectures=["Swin"], path=blocks)
    with pytest.raises(BadInput):
        stored.zoo_cells("f1", path=blocks)
