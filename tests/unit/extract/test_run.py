"""Extraction on real pictures with the encoder that ships, and on encoders made here."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from core.digest import file_digest
from core.encoders import load
from core.errors import BadInput, Cancelled, NotFound, UserError
from core.extract import run_extract
from core.paths import assets_dir
from core.types import EncoderInfo
from core.workspace import open_workspace

N = 60


def png(seed, size=64):
    coarse = np.random.default_rng(seed).integers(0, 255, (5, 5, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).save(out, "PNG")
    return out.getvalue()


def add_pictures(space, n=N, broken=()):
    data = [b"not a picture %d" % i if i in broken else png(i) for i in range(n)]
    shas = space.blobs.put_many(data)
    items = pd.DataFrame({"id": np.arange(n) * 3 + 7, "sha256": shas, "label": "x"})
    return space.add_dataset("pictures", "Pictures", "image", items)


@pytest.fixture(scope="module")
def squeezenet():
    return load("demo/squeezenet1.1", "cpu")


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("core.extract.run.SHARD", 16)


class Counter:
    """An encoder that counts what it is asked, and can be told to fail."""

    revision, weights_digest, poolings, transform = "1", "0" * 64, ("mean",), {}

    def __init__(self, modality="text", layers=("a", "b"), most=10**9):
        self.info = EncoderInfo(
            "demo/counter", "Counter", "demo", modality, layers=layers, default_layer=layers[-1]
        )
        self.batches, self.most = [], most

    def prepare(self, item):
        return item

    def run(self, prepared, *, layers="all", pooling=None):
        if len(prepared) > self.most:
            raise torch.OutOfMemoryError("full")
        self.batches.append(list(prepared))
        rows = np.array([[len(str(p)), sum(map(ord, str(p)))] for p in prepared], np.float32)
        return {name: rows + place for place, name in enumerate(layers)}

    encode = run


def add_texts(space, texts):
    items = pd.DataFrame({"id": range(len(texts)), "caption": texts})
    return space.add_dataset("texts", "Texts", "text", items)


class TestPictures:
    def test_rows_are_those_of_the_encoder(self, space, squeezenet, small_shards):
        data = add_pictures(space)
        found = run_extract(space, "pictures", squeezenet, batch_size=8)
        assert found.layers == squeezenet.info.layers
        assert found.ids.tolist() == data.ids.tolist()
        assert found.meta["left_out"] == []
        for item in (7, 52, 184):
            expected = squeezenet.encode([data.image(item)])
            row = found.take([item])
            for name in found.layers:
                gap = np.abs(row.layer(name) - expected[name]).max()
                assert gap <= 1e-5 * np.abs(expected[name]).max()

    def test_the_batch_size_moves_rounding_only(self, tmp_path, squeezenet, small_shards):
        """Bank 30: batches of 1, 7 and 32 give the same rows."""
        found = {}
        for size in (1, 7, 32):
            space = open_workspace(tmp_path / str(size))
            add_pictures(space, 20)
            found[size] = run_extract(space, "pictures", squeezenet, batch_size=size)
        assert len({f.key for f in found.values()}) == 1
        for name in found[1].layers:
            one = np.asarray(found[1].layer(name))
            for other in (7, 32):
                gap = np.abs(np.asarray(found[other].layer(name)) - one).max()
                assert gap <= 1e-5 * np.abs(one).max()

    def test_stored_features_are_not_computed_again(self, space, squeezenet, monkeypatch):
        add_pictures(space, 8)
        first = run_extract(space, "pictures", squeezenet, layers="default")
        monkeypatch.setattr(squeezenet, "run", None)
        again = run_extract(space, "pictures", squeezenet, layers=["pool"])
        assert again.key == first.key
        assert first.layers == ("pool",)

    def test_broken_pictures_are_named_and_left_out(self, space, squeezenet, small_shards):
        add_pictures(space, 40, broken=(0, 17, 18))
        found = run_extract(space, "pictures", squeezenet, layers="default", batch_size=4)
        assert len(found) == 37
        lines = found.meta["left_out"]
        assert [line["what"] for line in lines] == ["item 7", "item 58", "item 61"]
        assert all("cannot be read as a picture" in line["reason"] for line in lines)
        assert not {7, 58, 61} & set(found.ids.tolist())

    def test_a_whole_shard_of_broken_pictures(self, space, squeezenet, small_shards):
        add_pictures(space, 40, broken=range(16, 32))
        found = run_extract(space, "pictures", squeezenet, layers="default")
        assert len(found) == 24
        assert len(found.meta["left_out"]) == 16

    def test_nothing_but_broken_pictures(self, space, squeezenet):
        add_pictures(space, 3, broken=range(3))
        with pytest.raises(BadInput, match="No item"):
            run_extract(space, "pictures", squeezenet)

    def test_cancelled_between_batches_and_gone_on(self, space, squeezenet, small_shards):
        add_pictures(space, 40, broken=(2,))
        seen = []

        def stop(fraction, message):
            seen.append((fraction, message))
            if fraction > 0.5:
                raise Cancelled("Stopped.")

        with pytest.raises(Cancelled):
            run_extract(
                space, "pictures", squeezenet, layers="default", batch_size=4, progress=stop
            )
        assert "rows/s" in seen[-1][1]
        told = []
        found = run_extract(
            space, "pictures", squeezenet, layers="default", batch_size=4,
            progress=lambda f, m: told.append(f),
        )  # fmt: skip
        # One shard was finished: its broken picture is still reported, its rows not redone.
        assert [line["what"] for line in found.meta["left_out"]] == ["item 13"]
        assert told[1] == pytest.approx(20 / 40)
        assert told == sorted(told)
        assert told[-1] == 1.0


class TestTexts:
    def test_a_text_is_read_once(self, space):
        add_texts(space, ["cat", "dog", "cat", "cat", "bird"])
        encoder = Counter()
        found = run_extract(space, "texts", encoder, batch_size=2)
        assert encoder.batches == [["cat", "dog"], ["bird"]]
        assert found.layer("a")[:, 0].tolist() == [3, 3, 3, 3, 4]
        assert found.layer("b")[0].tolist() == (found.layer("a")[0] + 1).tolist()

    def test_an_empty_text_is_left_out(self, space):
        add_texts(space, ["cat", "  ", "dog"])
        found = run_extract(space, "texts", Counter())
        assert found.ids.tolist() == [0, 2]
        assert found.meta["left_out"] == [
            {"what": "item 1", "reason": "Item 1 has no text.", "count": 1}
        ]

    def test_a_full_gpu_halves_the_batch(self, space):
        """Bank 30: out of memory at 16 and 8 and 4, gone on at 2, no row lost or repeated."""
        add_texts(space, [f"text {i}" for i in range(20)])
        encoder = Counter(most=3)
        found = run_extract(space, "texts", encoder, batch_size=16)
        assert max(map(len, encoder.batches)) == 2
        assert [t for b in encoder.batches for t in b] == [f"text {i}" for i in range(20)]
        assert len(found) == 20

    def test_a_gpu_too_small_for_one(self, space):
        """Bank 30: with a batch of one there is nothing left to halve."""
        add_texts(space, ["cat"])
        with pytest.raises(UserError, match="does not fit into the memory"):
            run_extract(space, "texts", Counter(most=0))

    def test_another_error_of_the_encoder_is_not_hidden(self, space):
        add_texts(space, ["cat"])
        encoder = Counter()

        def fail(*args, **kwargs):
            raise RuntimeError("a bug")

        encoder.run = fail
        with pytest.raises(RuntimeError, match="a bug"):
            run_extract(space, "texts", encoder)

    def test_values_that_are_not_finite(self, space):
        add_texts(space, ["cat", "dog"])
        encoder = Counter()
        real = encoder.run
        encoder.run = lambda prepared, **o: {
            n: np.where(np.array(prepared)[:, None] == "dog", np.nan, rows)
            for n, rows in real(prepared, **o).items()
        }
        found = run_extract(space, "texts", encoder)
        assert found.ids.tolist() == [0]
        assert "NaN" in found.meta["left_out"][0]["reason"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": "none"}, "no dataset 'none'"),
        ({"model": "demo/none"}, "not a model known here"),
        ({"layers": ["none"]}, "no such layer"),
        ({"pooling": "none"}, "pooling='none'"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_bad_arguments(space, change, said):
    add_pictures(space, 2)
    asked = {"dataset": "pictures", "model": "demo/squeezenet1.1", **change}
    with pytest.raises((BadInput, NotFound), match=said):
        run_extract(space, **asked)


def test_pictures_for_a_text_encoder_without_captions(space):
    add_pictures(space, 2)
    with pytest.raises(BadInput, match="no captions"):
        run_extract(space, "pictures", Counter())


def test_texts_for_an_image_encoder(space, squeezenet):
    add_texts(space, ["cat"])
    with pytest.raises(BadInput, match="holds texts"):
        run_extract(space, "texts", squeezenet)


CHILD = """
import sys
import core.extract.run as run
from core.workspace import open_workspace

run.SHARD = 8
run.run_extract(open_workspace(sys.argv[1]), "pictures", "demo/squeezenet1.1", batch_size=4)
"""


def extract_in_a_process(root):
    env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root)], env=env, stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip


def finished_shards(space):
    return len(list((space.root / "features").glob("*.parts/shard-*.json")))


@pytest.mark.slow
def test_killed_at_five_moments_it_ends_in_the_same_bytes(tmp_path):
    spaces = [open_workspace(tmp_path / name) for name in ("whole", "killed")]
    for space in spaces:
        add_pictures(space, broken=(5, 50))
    whole, killed = spaces
    child = extract_in_a_process(whole.root)
    assert child.wait(timeout=180) == 0, child.stderr.read().decode()
    moments = sorted(np.random.default_rng(4).choice(np.arange(1, 8), 5, replace=False))
    for shards in moments:
        child = extract_in_a_process(killed.root)
        deadline = time.monotonic() + 120
        while finished_shards(killed) < shards and child.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
    child = extract_in_a_process(killed.root)
    assert child.wait(timeout=180) == 0, child.stderr.read().decode()
    files = [next(iter((s.root / "features").glob("*.safetensors"))) for s in spaces]
    assert files[0].name == files[1].name
    assert file_digest(files[0]) == file_digest(files[1])
    reports = [s.features.get("pictures", "demo/squeezenet1.1").meta["left_out"] for s in spaces]
    assert reports[0] == reports[1]
    assert [line["what"] for line in reports[0]] == ["item 22", "item 157"]


@pytest.mark.slow
def test_real_emoji_of_a_group_lie_together(space, squeezenet):
    """1-NN finds the Unicode group of an emoji far above chance, as measured on the whole set."""
    folder = assets_dir() / "demo" / "emoji"
    items = pd.read_parquet(folder / "items.parquet")
    items = items[items["domain"] == "twemoji"].iloc[::2]
    pictures = pd.read_parquet(folder / "images.parquet").set_index("sha256")["bytes"]
    space.blobs.put_many(pictures.loc[items["sha256"]].tolist())
    space.add_dataset("some", "Some emoji", "image", items)
    x = np.asarray(run_extract(space, "some", squeezenet, layers="default").layer(), np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    near = x @ x.T
    np.fill_diagonal(near, -np.inf)
    labels = items["label"].to_numpy()
    assert 0.45 <= (labels[near.argmax(axis=1)] == labels).mean() <= 0.8


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_cpu(tmp_path):
    found = {}
    for device in ("cpu", "cuda"):
        space = open_workspace(tmp_path / device)
        add_pictures(space, 20)
        found[device] = run_extract(space, "pictures", "demo/squeezenet1.1", device=device)
    for name in found["cpu"].layers:
        here, there = (np.asarray(f.layer(name)) for f in found.values())
        assert np.abs(here - there).max() <= 1e-4 * np.abs(here).max()
