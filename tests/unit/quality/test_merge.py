"""Own encoders among the study's models: the same rows, splits and probes, measured once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import BadInput
from core.jobs import handlers
from core.quality import chooser, merge
from core.quality.population import METRICS, Population
from core.quality.probes import knn_probe
from core.quality.registry import model_registry
from core.quality.zoo.sets import demo_items
from core.types import Features

RNG = np.random.default_rng(3)
N = 240


class Notes:
    def __init__(self):
        self.kept, self.writes = {}, 0

    def get(self, scope, key, default=None):
        return self.kept.get((scope, key), default)

    def put(self, scope, key, value):
        self.writes += 1
        self.kept[(scope, key)] = value


class Space:
    """What merging needs of a workspace, without a demo in it."""

    def __init__(self, x, *, ids=None, dataset="emoji"):
        concept = np.arange(N) // 6
        items = pd.DataFrame(
            {"id": np.arange(N), "label": [f"g{c % 2}" for c in concept],
             "subgroup": [f"s{c % 4}" for c in concept],
             "split": np.where(concept % 3, "train", "test")}
        )  # fmt: skip
        # A subgroup that is only ever tested is left out of the fine-grained set.
        items.loc[concept == 0, "subgroup"] = "alone"
        self.items, self.notes = items, Notes()
        ids = np.arange(N) if ids is None else ids
        self.found = Features(ids, {"out": x}, dataset, "mine", "out", key="k1")
        self.features = self

    def dataset(self, _name):
        return self

    def get(self, _dataset, _model):
        return self.found

    def list(self):
        return [{"dataset": self.found.dataset, "model": self.found.model}]


def features(d=12):
    return RNG.standard_normal((N, d)).astype(np.float32)


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    """The spanning tree and k-means take seconds and are tested elsewhere."""
    from core.quality.zoo import measure

    monkeypatch.setattr(
        measure, "metric_specs", lambda **_: ["rankme", "ne_sum", "twonn", "alpha_req"]
    )


def test_rows_are_the_probes_on_the_studys_split():
    space = Space(features())
    rows = merge.study_rows(space, "emoji", "mine")
    assert [row["dataset"] for row in rows] == ["emoji-groups", "emoji-subgroups"]
    part = demo_items("emoji", space.items)[1]
    assert len(part.rows) == (space.items["subgroup"] != "alone").sum()
    x = space.found.layer()[part.rows]
    train = part.train
    want = knn_probe(x[train], part.labels[train], x[~train], part.labels[~train]).accuracy
    assert rows[1]["knn"] == want
    assert rows[1]["n.rankme"] == int(train.sum())


def test_the_order_of_the_stored_rows_does_not_matter_and_it_is_measured_once():
    x = features()
    turn = RNG.permutation(N)
    one, two = Space(x), Space(x[turn], ids=turn)
    first = merge.study_rows(one, "emoji", "mine")
    assert first == merge.study_rows(two, "emoji", "mine")
    assert merge.is_measured(one, "emoji", "mine")
    merge.study_rows(one, "emoji", "mine")
    assert one.notes.writes == 1


def test_missing_items_and_broken_features_are_refused():
    with pytest.raises(BadInput, match="no features of 40 of 240"):
        merge.study_rows(Space(features()[40:], ids=np.arange(40, N)), "emoji", "mine")
    broken = features()
    broken[7, 0] = np.nan
    with pytest.raises(BadInput, match="not finite"):
        merge.study_rows(Space(broken), "emoji", "mine")
    with pytest.raises(BadInput, match="not a dataset of the study"):
        merge.study_rows(Space(features()), "names", "mine")


def test_only_pictures_of_the_study_can_be_merged():
    assert merge.candidates(Space(features())) == {"mine": ["emoji"]}
    assert merge.candidates(Space(features(), dataset="names")) == {}
    assert demo_items("names", pd.DataFrame()) == []


def test_the_job_measures_what_it_is_asked_for():
    space = Space(features())
    said = []
    work = handlers.load("core.quality.merge:run_merge")  # as the worker calls it
    work(space, progress=lambda f, m: said.append((f, m)), models=["mine", "other"])
    assert merge.is_measured(space, "emoji", "mine")
    assert said == [(0.0, "mine on emoji")]
    with pytest.raises(BadInput):
        merge.run_merge(space, models=["other"])


def test_places_count_the_models_below():
    table = pd.DataFrame(
        {"model": [f"m{i}" for i in range(10)], "dataset": "emoji-groups",
         "ne_sum": np.arange(10.0), "knn": np.arange(10) / 10}
    )  # fmt: skip
    table.loc[9, "ne_sum"] = np.nan
    mine = table.iloc[[0]].assign(model="mine", ne_sum=4.5, knn=0.75)
    names = {"emoji-groups": "Emoji"}
    found = merge.places(
        Population("all", table, names), Population("own", mine, names), "ne_sum", "knn"
    )
    row = found.iloc[0]
    assert row["above"] == pytest.approx(5 / 9)  # of the nine with a value
    assert row["ahead_of"] == pytest.approx(0.8)
    gone = merge.places(
        Population("all", table, names),
        Population("own", mine.assign(ne_sum=np.nan), names), "ne_sum", "knn",
    )  # fmt: skip
    assert np.isnan(gone.iloc[0]["above"])
    with pytest.raises(BadInput):
        merge.places(Population("a", table, names), Population("o", mine, names), "beauty", "knn")


def test_own_rows_become_a_population_without_clid():
    space = Space(features())
    rows = merge.study_rows(space, "emoji", "mine")
    lacking = {f"metric.{name}": None for name in METRICS if name != "d"}
    rows = [lacking | row for row in rows]
    whole = Population("zoo", pd.DataFrame(), {"emoji-groups": "A", "emoji-subgroups": "B"})
    own = merge.own_population(rows, whole)
    assert own.n_models == 1
    assert own.table["clid"].isna().all()
    assert own.table["rankme_per_d"].iloc[0] == pytest.approx(own.table["rankme"].iloc[0] / 12)
    with pytest.raises(BadInput):
        merge.own_population([], whole)


@pytest.mark.parametrize("stratum", ["ViT", "ConvNeXt", "supervised", "self-supervised"])
def test_models_to_try_are_the_best_of_their_families(stratum):
    found = chooser.models_to_try(stratum, k=4)
    assert len(found) == 4
    assert found["accuracy"].is_monotonic_decreasing
    assert found["family"].is_unique
    assert ((found["lo"] < found["accuracy"]) & (found["accuracy"] < found["hi"])).all()
    table = model_registry().set_index("id")
    if stratum in ("ViT", "ConvNeXt"):
        rows = table[table["arch_class"] == stratum]
        assert found["accuracy"].iloc[0] == rows["top1_in1k"].max()
    if stratum == "self-supervised":
        assert set(table.loc[found["id"], "objective_group"]) == {"ssl"}
        assert set(found["protocol"]) == {"ImageNet-1k, linear probe"}


def test_across_classes_nothing_is_ranked():
    found = chooser.models_to_try("All")
    assert list(found["architecture"]) == ["ViT", "ResNet", "ConvNeXt", "RegNet"]
    with pytest.raises(BadInput):
        chooser.models_to_try("Swin")
    with pytest.raises(BadInput):
        chooser.models_to_try("ViT", k=0)
