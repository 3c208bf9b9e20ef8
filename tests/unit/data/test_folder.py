"""Import of a picture folder: what is taken, what is left out and why."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.folder import import_folder
from core.errors import BadInput, Cancelled, NotFound
from core.workspace import open_workspace


@pytest.fixture
def workspace(tmp_path):
    return open_workspace(tmp_path / "space")


@pytest.fixture
def folder(tmp_path) -> Path:
    root = tmp_path / "My Pets"
    rng = np.random.default_rng(0)
    for label, name in [("cats", "black_cat.png"), ("cats", "b.jpg"), ("dogs", "old-dog.webp")]:
        (root / label).mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / label / name)
    return root


def test_labels_captions_and_name(workspace, folder):
    data = import_folder(workspace, folder)
    assert data.name == "my-pets"
    assert list(data.items["label"]) == ["cats", "cats", "dogs"]
    assert list(data.items["caption"]) == ["b", "black cat", "old dog"]
    assert data.image(1).size == (32, 24)


def test_what_cannot_be_read_is_named(workspace, folder, tmp_path):
    (folder / "cats" / "torn.png").write_bytes(
        (folder / "cats" / "black_cat.png").read_bytes()[:60]
    )
    (folder / "cats" / "empty.png").write_bytes(b"")
    (folder / "notes.txt").write_text("no picture")
    (folder / "fake.png").write_text("<svg/>")
    outside = tmp_path / "secret.png"
    Image.new("RGB", (8, 8)).save(outside)
    (folder / "dogs" / "link.png").symlink_to(outside)
    (folder / "dogs" / "dangling.png").symlink_to(tmp_path / "nothing.png")
    data = import_folder(workspace, folder)
    reasons = {line["what"]: line["reason"] for line in data.meta["left_out"]}
    assert set(reasons) == {
        "cats/torn.png", "cats/empty.png", "notes.txt", "fake.png",
        "dogs/link.png", "dogs/dangling.png",
    }  # fmt: skip
    assert reasons["cats/empty.png"] == "the file is empty"
    assert "leads out" in reasons["dogs/link.png"]
    assert data.n == 3


def test_refusals_say_what_to_do(workspace, folder, tmp_path):
    with pytest.raises(NotFound, match="no folder"):
        import_folder(workspace, tmp_path / "absent")
    with pytest.raises(BadInput, match="is a file"):
        import_folder(workspace, folder / "cats" / "b.jpg")
    (tmp_path / "bare").mkdir()
    with pytest.raises(BadInput, match="it is empty"):
        import_folder(workspace, tmp_path / "bare")


def test_cancel_leaves_no_dataset(workspace, folder):
    def stop(fraction, message):
        if fraction > 0:
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        import_folder(workspace, folder, progress=stop)
    assert workspace.dataset_names() == []
