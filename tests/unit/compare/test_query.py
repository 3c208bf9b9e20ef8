"""Questions of a search: an encoder that can be told what it says, sizes, refusals."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from core.compare import query
from core.errors import BadInput, NotFound
from core.types import Features
from core.workspace import Workspace, open_workspace


class Mean:
    """The mean colour of a picture; of words, how many and how long."""

    def __init__(self, modality: str) -> None:
        self.info = SimpleNamespace(modality=modality, default_layer="out")

    def encode(self, batch: list, *, layers: object, pooling: str | None = None) -> dict:
        if self.info.modality == "text":
            rows = [[len(t.split()), len(t), 0.0] for t in batch]
        else:
            rows = [np.asarray(i, dtype=float).mean(axis=(0, 1)) for i in batch]
        return {"out": np.array(rows, dtype=np.float32), "wide": np.ones((len(batch), 4))}


@pytest.fixture
def workspace(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    loaded = lambda model, root: Mean("text" if model.endswith("/text") else "image")  # noqa: E731
    monkeypatch.setattr(query, "_loaded", loaded)
    return open_workspace(tmp_path)


def features(model: str = "open_clip/X:y/image") -> Features:
    x = np.eye(3, dtype=np.float32)
    return Features(np.array([7, 8, 9]), {"out": x, "wide": x}, "d", model, "out")


def png(colour: tuple[int, int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (5, 5), colour).save(out, "PNG")
    return out.getvalue()


def test_rows_of_the_three_questions(workspace: Workspace) -> None:
    assert query.item(features(), "out", 8).tolist() == [0, 1, 0]
    assert query.words(workspace, features(), "  two \n words ").tolist() == [2, 9, 0]
    row = query.picture(workspace, features(), "out", png((10, 20, 30)), "a.png")
    assert row.tolist() == [10, 20, 30]


def test_which_encoders_read_words() -> None:
    assert query.text_tower("demo/lit-cnn-minilm/image") == "demo/lit-cnn-minilm/text"
    assert query.text_tower("demo/lit-cnn-minilm/text") == ""
    assert query.text_tower("demo/vit-s14") == ""
    assert query.text_tower("nobody/x/image") == ""


def test_refusals(workspace: Workspace) -> None:
    with pytest.raises(BadInput, match="got 0"):
        query.words(workspace, features(), " \n ")
    with pytest.raises(BadInput, match="1 to 500"):
        query.words(workspace, features(), "x" * 501)
    with pytest.raises(BadInput, match="reads no words"):
        query.words(workspace, features("demo/vit-s14"), "a dog")
    with pytest.raises(BadInput, match="cannot be read"):
        query.picture(workspace, features(), "out", b"no picture", "a.png")
    with pytest.raises(BadInput, match="bytes"):
        query.picture(workspace, features(), "out", bytes(query.MAX_PICTURE + 1), "a.png")
    with pytest.raises(BadInput, match="reads texts"):
        query.picture(workspace, features("demo/x/text"), "out", png((0, 0, 0)), "a.png")
    with pytest.raises(BadInput, match="stored layer"):
        query.picture(workspace, features(), "wide", png((0, 0, 0)), "a.png")
    with pytest.raises(BadInput):
        query.item(features(), "out", 1)
    with pytest.raises(NotFound):
        query.item(features(), "deep", 7)


def test_an_encoder_that_cannot_run_says_why(workspace: Workspace) -> None:
    assert "computed elsewhere" in query.can_run("import/mine", workspace)
    assert query.can_run("demo/vit-s14", workspace).startswith("Needs ")
