"""Transfer: the stored answer, another layer by a click, a pair by a click, its pictures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_kit import Open, assert_sound, html_of
from streamlit.testing.v1 import AppTest

from core import analyses
from core.radar import robustness
from core.workspace import Workspace, open_workspace

PARAMS = {"dataset": "emoji", "model": "demo/vit-s14", "target": "noto"}


@pytest.fixture(scope="module")
def home(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with one transfer result."""
    copy = tmp_path_factory.mktemp("transfer") / "home"
    shutil.copytree(small_home, copy)
    analyses.run("transfer", open_workspace(copy), **PARAMS)
    return copy


@pytest.fixture
def opened(open_page: Open, home: Path) -> AppTest:
    return open_page("transfer", home, transfer_target="noto")


def click(at: AppTest, key: str, number: int) -> AppTest:
    """Leave a chart's selection as a click in the browser would, and run its callback's effect."""
    name = {"transfer_strip": "transfer_layer", "transfer_plane": "transfer_pair"}[key]
    at.session_state[name] = number
    return at.run()


def test_the_stored_answer_is_shown(opened: AppTest) -> None:
    assert_sound(opened)
    assert "th-verdict" in html_of(opened)
    assert len(opened.get("plotly_chart")) == 8
    assert html_of(opened).count('loading="lazy"') == 3


def test_another_layer_and_another_pair(opened: AppTest) -> None:
    at = click(opened, "transfer_strip", 2)
    assert at.selectbox(key="transfer_layer").value == 2
    at = click(at, "transfer_plane", 5)
    assert at.selectbox(key="transfer_pair").value == 5
    assert_sound(at)
    assert "Within pair" in html_of(at)


def test_every_reading_and_measure_can_be_drawn(opened: AppTest) -> None:
    for reading in ("excess", "joint", "per_layer"):
        opened.session_state["transfer_reading"] = reading
        assert_sound(opened.run())
    for measure in ("size", "distance_of_means", "distance_of_class_means"):
        opened.session_state["transfer_against"] = measure
        assert_sound(opened.run())


def test_another_target_offers_to_run(open_page: Open, home: Path) -> None:
    at = open_page("transfer", home, transfer_target="openmoji")
    assert_sound(at)
    assert "Not computed yet" in html_of(at)
    assert "Rank the sources" in [button.label for button in at.button]


def test_without_sources_it_asks_for_one(opened: AppTest) -> None:
    opened.multiselect(key="transfer_sources").set_value([]).run()
    assert_sound(opened)
    assert "Choose at least one source" in html_of(opened)


QUICK = {
    "transfer-truth": {"gain_seeds": 2, "measures": ["leep", "size"], "n_projections": 10},
    "transfer-robustness": {"pair_counts": [200], "seeds": [1], "slow": False},
    "transfer-classes": {"n_pairs": 100, "repeats": 2, "least": 4},
}
STUDY = {
    "datasets": ["letters"], "configs": ["base", "late"], "slow_models": [],
    "measures": ["size", "distance_of_means"], "n_pairs": 100, "gain_per_class": 1,
    "gain_seeds": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def full_home(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what the page offers on demand, quickly, and a study of four domains."""
    copy = tmp_path_factory.mktemp("transfer_full") / "home"
    shutil.copytree(home, copy)
    space = open_workspace(copy)
    with pytest.MonkeyPatch.context() as patch:
        few = {name: robustness._QUICK[name] for name in ("sphere", "same class")}
        patch.setattr(robustness, "_QUICK", few)
        for kind, change in QUICK.items():
            _quicken(patch, kind, change)
            analyses.run(kind, space, **PARAMS)
    _letters(space)
    analyses.run("transfer-study", space, **STUDY)
    return copy


def _quicken(patch: pytest.MonkeyPatch, kind: str, change: dict[str, object]) -> None:
    """The page asks for the defaults: make them small, for the stored result and the page."""
    defaults = analyses.module(kind).DEFAULTS
    for name, value in change.items():
        patch.setitem(defaults, name, value)


def _letters(space: Workspace) -> None:
    """Four domains of texts whose probes are not perfect, so that gains differ."""
    rng = np.random.default_rng(0)
    rows = [
        {"id": c * 4 + d, "domain": "abcd"[d], "label": f"kind {c % 3}", "caption": f"{c} {d}",
         "split": "test" if c % 4 == 0 else "train", "concept": str(c)}
        for c in range(60) for d in range(4)
    ]  # fmt: skip
    data = space.add_dataset("letters", "Letters", "text", pd.DataFrame(rows))
    code = data.items["label"].str[-1].astype(int).to_numpy()
    at = data.items["domain"].map("abcd".index).to_numpy()
    centres, shifts = 0.4 * rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    h = centres[code] + at[:, None] * shifts[at] + rng.normal(size=(data.n, 12))
    layers = {f"state {k}": (h * (1 + k) + k * rng.normal(size=h.shape)).astype(np.float32)
              for k in range(4)}  # fmt: skip
    writer = space.features.writer(
        {"dataset_digest": data.digest, "model": "own/letters"}, dataset="letters",
        model="own/letters", default_layer="state 3", n=data.n,
    )  # fmt: skip
    writer.write_shard(0, data.ids, layers)
    writer.finish()


@pytest.fixture
def whole(open_page: Open, full_home: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    for kind, change in QUICK.items():
        _quicken(monkeypatch, kind, change)
    return open_page("transfer", full_home, transfer_target="noto")


def test_advice_comes_first_and_sections_in_the_order_of_the_questions(opened: AppTest) -> None:
    # Models of one stored layer have no step to look at: they are not offered.
    assert opened.selectbox(key="transfer_model").options == ["ViT-S/14"]
    frame = opened.dataframe[0].value
    assert list(frame.columns[:3]) == ["source", "advice", "confidence"]
    assert set(frame["advice"]) <= {"add", "leave out", "cannot tell"}
    assert frame["confidence"].str.contains("%|n/a").all()
    assert [h.value for h in opened.header] == [
        "How do the triangles differ?",
        "Where in the network do the domains part?",
        "One pair, and what it is",
        "All blends",
        "Which measure foretold the gain?",
        "Does the answer depend on the settings?",
        "Which class carries the divergence?",
        "What to do",
    ]


def test_sources_stand_side_by_side(opened: AppTest) -> None:
    one = opened.multiselect(key="transfer_compared").set_value(["twemoji"]).run()
    assert_sound(one)
    titles = _annotations(one, 0)
    assert titles == ["twemoji"]
    two = one.multiselect(key="transfer_compared").set_value(["openmoji", "twemoji"]).run()
    assert _annotations(two, 0) == ["openmoji", "twemoji"]
    whole = two.toggle(key="transfer_whole").set_value(True).run()
    spec = json.loads(whole.get("plotly_chart")[0].proto.spec)
    assert spec["layout"]["xaxis"]["range"][0] == 0


def _annotations(at: AppTest, chart: int) -> list[str]:
    spec = json.loads(at.get("plotly_chart")[chart].proto.spec)
    return [note["text"] for note in spec["layout"].get("annotations", [])]


def test_what_is_not_computed_is_offered_as_a_job(opened: AppTest, home: Path) -> None:
    labels = [button.label for button in opened.button]
    wanted = ["Measure it thoroughly", "Change every setting once", "Look inside the classes"]
    assert [label for label in labels if label in wanted] == wanted
    next(b for b in opened.button if b.label == "Look inside the classes").click().run()
    jobs = [job for job in open_workspace(home).jobs.list() if job.kind == "analysis"]
    assert jobs
    assert jobs[0].params["name"] == "transfer-classes"
    for job in jobs:
        open_workspace(home).jobs.cancel(job.id)


def test_truth_robustness_and_classes_are_shown(whole: AppTest) -> None:
    assert_sound(whole)
    assert len(whole.get("plotly_chart")) == 13
    labels = {button.label for button in whole.button}
    assert not labels & {"Measure it thoroughly", "Change every setting once"}
    text = " ".join(m.value for m in whole.markdown) + " ".join(c.value for c in whole.caption)
    assert "Test concepts among the sources' items: 0" in text
    assert "What would settle it" in text or "Confidence" in text
    for measure in ("leep", "size"):
        whole.session_state["transfer_truth"] = measure
        assert_sound(whole.run())
    whole.selectbox(key="transfer_class_source").set_value("twemoji").run()
    assert_sound(whole)


def test_the_study_opens_with_its_reading(open_page: Open, full_home: Path) -> None:
    at = open_page("transfer", full_home, transfer_tab="study")
    assert_sound(at)
    assert "RADAR ranks the blends on" in html_of(at)
    assert len(at.get("plotly_chart")) == 5
    for key in ("transfer_study_measure", "transfer_study_against"):
        at.session_state[key] = "size"
        assert_sound(at.run())
    at.session_state["transfer_study_target"] = "c"
    assert_sound(at.run())


def test_without_a_study_the_page_says_how_to_make_one(open_page: Open, home: Path) -> None:
    at = open_page("transfer", home, transfer_tab="study")
    assert_sound(at)
    assert "theodolite transfer-study" in html_of(at)
