"""Registry, published accuracies, correlations over strata and the Simpson check."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from core.errors import BadInput
from core.quality import model_registry, published_accuracy, simpson_check, study_correlations
from core.quality.registry import (
    PROTOCOLS,
    cell_title,
    published_cells,
    published_table,
    strata,
)
from core.stats import benjamini_hochberg, spearman_cluster_bootstrap


def test_the_registry():
    table = model_registry()
    assert len(table) == 554
    assert table["id"].is_unique
    core = model_registry("core260")
    assert len(core) == 260
    assert core["family"].nunique() == 69
    counts = core["stratum"].value_counts()
    assert counts["ViT|supervised"] == 62
    assert counts["ViT|ssl"] == 38
    assert counts["RegNet|ssl"] == 5
    with pytest.raises(BadInput):
        model_registry("top10")


def test_published_accuracies():
    long = published_accuracy()
    assert len(long) == 2466
    assert set(long["protocol"]) == set(PROTOCOLS)
    assert published_accuracy("linear")["id"].nunique() == 100
    assert published_accuracy("knn")["id"].nunique() == 20
    assert published_accuracy("zero_shot")["dataset"].nunique() == 14
    assert long["value"].between(0, 100).all()
    with pytest.raises(BadInput):
        published_accuracy("guess")


def test_cells_never_mix_protocols():
    cells = published_cells()
    assert {k: len(v) for k, v in cells.items()} == {
        "finetuned_head": 6, "linear": 1, "knn": 1, "zero_shot": 14,
    }  # fmt: skip
    table = published_table("all")
    long = published_accuracy()
    for protocol, names in cells.items():
        for name in names:
            dataset = name.split("|")[1]
            want = long[(long["protocol"] == protocol) & (long["dataset"] == dataset)]
            assert table[name].notna().sum() == len(want)
    assert cell_title("knn|imagenet-1k") == "ImageNet-1k, nearest neighbours"


def test_a_copy_is_returned():
    mine = model_registry()
    mine.loc[0, "family"] = "changed"
    assert model_registry().loc[0, "family"] != "changed"


@pytest.fixture(scope="module")
def smoke():
    table = published_table("all")
    keep = (table["library"] == "timm") & table["finetuned_head|imagenet-1k"].notna()
    table = table[keep].reset_index(drop=True)
    names = ["imagenet-1k", "imagenet-sketch", "imagenet-a"]
    cells = [f"finetuned_head|{name}" for name in names]
    return table, study_correlations(
        table, metrics=["params_M", cells[0]], targets=cells, strata=strata(table)
    )


@pytest.mark.parametrize(
    ("stratum", "rho", "lo", "hi", "n", "g"),
    [
        ("All", 0.733, 0.637, 0.808, 282, 37),
        ("ViT", 0.660, 0.501, 0.812, 83, 15),
        ("ResNet", 0.679, 0.596, 0.824, 91, 9),
        ("ConvNeXt", 0.948, 0.794, 0.982, 37, 4),
        ("RegNet", 0.773, 0.617, 0.954, 61, 6),
    ],
)
def test_published_smoke_values(smoke, stratum, rho, lo, hi, n, g):
    found = smoke[1].set_index(["stratum", "metric", "target"])
    cell = found.loc[(stratum, "params_M", "finetuned_head|imagenet-1k")]
    assert cell["rho"] == pytest.approx(rho, abs=6e-4)
    assert cell["lo"] == pytest.approx(lo, abs=0.02)
    assert cell["hi"] == pytest.approx(hi, abs=0.02)
    assert cell["n_clusters"] == g
    assert cell["n"] == n
    assert cell["status"] == ("ok" if g >= 8 else "few families")
    assert bool(cell["stars"]) == (g >= 8)


def test_published_smoke_between_test_sets(smoke):
    found = smoke[1].set_index(["stratum", "metric", "target"]).loc["All"]
    first = "finetuned_head|imagenet-1k"
    sketch = found.loc[(first, "finetuned_head|imagenet-sketch")]
    assert sketch["rho"] == pytest.approx(0.938, abs=6e-4)
    assert sketch["lo"] == pytest.approx(0.886, abs=0.015)
    adversarial = found.loc[(first, "finetuned_head|imagenet-a")]
    assert adversarial["rho"] == pytest.approx(0.972, abs=6e-4)
    assert adversarial["n"] == 281


def test_neighbours_against_linear():
    table = published_table("all")
    both = table[["knn|imagenet-1k", "linear|imagenet-1k"]].dropna()
    assert both.corr("spearman").iloc[0, 1] == pytest.approx(0.962, abs=6e-4)


def toy(seed=0, n=80, families=16):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"family": np.arange(n) % families, "m": rng.standard_normal(n)})
    frame["acc"] = frame["m"] + rng.standard_normal(n)
    frame["other"] = rng.standard_normal(n)
    return frame


def test_cells_equal_the_single_bootstrap_and_q_adjusts_a_stratum():
    table = toy()
    masks = {"All": np.ones(80, bool), "first": np.arange(80) < 40}
    out = study_correlations(
        table, metrics=["m", "other"], targets=["acc"], strata=masks, n_boot=300, seed=4
    )
    for row in out.itertuples():
        keep = masks[row.stratum]
        one = spearman_cluster_bootstrap(
            table[row.metric][keep], table["acc"][keep], table["family"][keep], n_boot=300, seed=4
        )
        assert (row.rho, row.lo, row.hi, row.p) == (one.rho, one.lo, one.hi, one.p)
    for _, cells in out.groupby("stratum"):
        np.testing.assert_allclose(cells["q"], benjamini_hochberg(cells["p"].to_numpy()))


def test_missing_values_leave_one_cell_only():
    table = toy()
    table.loc[:9, "acc"] = np.nan
    table["acc2"] = table["m"]
    out = study_correlations(table, metrics=["m"], targets=["acc", "acc2"], n_boot=100)
    assert out["n"].tolist() == [70, 80]


@pytest.mark.parametrize(
    ("n", "families", "status"), [(7, 7, "n/a"), (40, 3, "n/a"), (40, 5, "few families")]
)
def test_too_little_says_so(n, families, status):
    out = study_correlations(
        toy(n=n, families=families), metrics=["m"], targets=["acc"], n_boot=100
    )
    assert out.loc[0, "status"] == status
    assert out.loc[0, "stars"] == ""
    assert np.isnan(out.loc[0, "rho"]) == (status == "n/a")


def test_a_column_is_not_correlated_with_itself_and_must_exist():
    table = toy()
    out = study_correlations(table, metrics=["m", "acc"], targets=["acc"], n_boot=100)
    assert out["metric"].tolist() == ["m"]
    with pytest.raises(BadInput, match="nothing"):
        study_correlations(table, metrics=["nothing"], targets=["acc"])


def test_three_stars_need_many_resamples():
    table = toy(n=160, families=40)
    table["acc"] = table["m"]
    two = study_correlations(table, metrics=["m"], targets=["acc"], n_boot=2000)
    three = study_correlations(table, metrics=["m"], targets=["acc"], n_boot=10_000)
    assert two.loc[0, "stars"] == "**"
    assert three.loc[0, "stars"] == "***"


def test_simpson_reversal_is_flagged():
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1], 60)
    metric = rng.standard_normal(120) + 6 * group
    table = pd.DataFrame({"m": metric, "acc": metric - 12 * group + 0.2 * rng.standard_normal(120)})
    table["family"] = np.arange(120) // 5
    masks = {"All": group >= 0, "a": group == 0, "b": group == 1}
    out = study_correlations(table, metrics=["m"], targets=["acc"], strata=masks, n_boot=100)
    check = simpson_check(out, within=["a", "b"])
    assert check.loc[0, "reversed"]
    assert check.loc[0, "pooled"] < 0 < check.loc[0, "within"]
    assert simpson_check(out, within=["missing"]).empty


def test_the_published_panel_opens_without_torch():
    import subprocess

    code = (
        "import sys, core.quality as q, core.quality.study, core.stats; "
        "q.model_registry(); print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
