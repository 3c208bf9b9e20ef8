"""The shipped table: complete, sound, and made by the committed recipe."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from core.quality.population import METRICS, PROBES, zoo
from core.quality.stored import zoo_cells
from core.quality.zoo.measure import study_model
from core.quality.zoo.plan import plan
from core.quality.zoo.sets import study_dir, study_sets, training_set

#: Cheap ones of three classes and objectives: few steps, small width.
AGAIN = (39, 61, 145)
TABLE = pd.read_parquet(study_dir() / "zoo.parquet")


def test_every_planned_model_is_there_with_its_specification():
    about = json.loads((study_dir() / "zoo.json").read_text())
    specs = {s.name: s for s in plan()}
    assert about["n_models"] == TABLE["model"].nunique() == about["planned"] == 260
    assert not about["failures"]
    first = TABLE.drop_duplicates("model").set_index("model")
    for name, row in first.iterrows():
        spec = specs[name]
        assert (row.architecture, row.objective, row.augmentation, row.steps, row.seed) == (
            spec.architecture, spec.objective, spec.augmentation, spec.steps, spec.seed,
        )  # fmt: skip


def test_the_table_holds_six_sets_with_accuracies_above_nothing_and_below_one():
    assert TABLE.groupby("dataset")["model"].nunique().tolist() == [TABLE["model"].nunique()] * 6
    for probe in PROBES:
        assert TABLE[probe].between(0, 1).all()
    spread = TABLE.groupby("dataset")["knn"].agg(np.ptp)
    assert (spread > 0.08).all()  # a wide range of quality on every set


def test_a_metric_without_a_value_says_why():
    for name in METRICS:
        if f"metric.{name}" in TABLE:
            gone = TABLE[f"metric.{name}"].isna()
            assert (TABLE.loc[gone, f"flags.{name}"] != "").all(), name


def test_stored_correlations_are_those_of_the_table():
    from core.quality.population import Correlations

    cells = zoo_cells("knn").set_index(["dataset", "stratum", "metric"])
    found = Correlations(zoo(), "letters", metrics=["ne_sum"], probes=["knn"], n_boot=2000)
    again = found.cell("ViT", "ne_sum", "knn")
    stored = cells.loc[("letters", "ViT", "ne_sum")]
    assert stored["rho"] == pytest.approx(again.rho, abs=1e-9)
    assert stored["lo"] == pytest.approx(again.lo, abs=1e-4)


@pytest.fixture(scope="module")
def data():
    sets = {s.name: s for s in study_sets()}
    return training_set(), sets


@pytest.mark.parametrize("index", AGAIN)
def test_three_models_trained_again_give_their_rows(index, data):
    """On one kind of processor the rows are equal; on another, sums round differently.

    Stated tolerance: accuracy within .03 (three times the binomial error of two runs' flips),
    metrics within 3 %, which is what a few steps of training leave of rounding.
    """
    (images, labels), sets = data
    spec = plan()[index]
    names = ["mnist", "letters"]
    found = study_model(spec, images, labels, [sets[name] for name in names])
    stored = TABLE[TABLE["model"] == spec.name].set_index("dataset")
    assert found["n_params"] == stored["n_params"].iloc[0]
    for row in found["rows"]:
        want = stored.loc[row["dataset"]]
        for probe in ("knn", "linear", "linear.0.01"):
            assert row[probe] == pytest.approx(want[probe], abs=0.03)
        for name in METRICS:
            column = f"metric.{name}"
            if column in row and row[column] is not None and name != "condition_number":
                # NaN in the table is None in a row
                assert row[column] == pytest.approx(want[column], rel=0.03, abs=0.01), name
