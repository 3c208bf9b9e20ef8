"""The packaged encoders with their real weights, fetched once and kept between runs.

Each recomputes features that ship with the demo from the pictures and texts themselves.
"""

import io
import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from core.encoders import load
from core.encoders.base import Encoder
from core.encoders.catalogue import DEMO, LIT_PAIRS
from core.encoders.demo_image import TRANSFORMS
from core.paths import assets_dir
from core.workspace.tensors import open_tensors

IDS = [0, 1, 500, 1001, 1502, 1919]
TEXTS = ["smiling cat", "ein lächelndes Gesicht mit Herzen", "赤いハート", "x"]


@pytest.fixture(scope="module", params=list(DEMO))
def encoder(request, real_space):
    return load(request.param, "cpu", real_space)


@pytest.fixture(scope="module")
def emoji():
    folder = assets_dir() / "demo" / "emoji"
    items = pd.read_parquet(folder / "items.parquet").set_index("id").loc[IDS]
    held = pd.read_parquet(folder / "images.parquet").set_index("sha256")["bytes"]
    pictures = [Image.open(io.BytesIO(held[sha])).convert("RGB") for sha in items["sha256"]]
    return pictures, items["caption"].tolist()


def gap(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


def test_keeps_the_contract(encoder, pictures):
    items = pictures if encoder.info.modality == "image" else TEXTS
    assert isinstance(encoder, Encoder)
    found = encoder.encode(items)
    assert tuple(found) == encoder.info.layers
    assert found[encoder.info.default_layer].shape == (len(items), encoder.info.dim)
    assert all(rows.dtype == np.float32 for rows in found.values())
    json.dumps(encoder.transform)


def test_does_not_depend_on_the_batch(encoder, pictures):
    items = pictures if encoder.info.modality == "image" else TEXTS
    whole = encoder.encode(items)
    alone = [encoder.encode([item]) for item in items]
    for name, rows in whole.items():
        assert gap(np.concatenate([one[name] for one in alone]), rows) <= 1e-4


def test_gives_the_features_that_ship(encoder, emoji):
    stem = f"emoji--{encoder.info.id.replace('/', '--')}"
    path = assets_dir() / "demo" / "features" / f"{stem}.safetensors"
    shipped = open_tensors(path)
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["recipe"]["weights_digest"] == encoder.weights_digest
    assert about["recipe"]["transform"] == encoder.transform
    rows = np.searchsorted(shipped["ids"], IDS)
    found = encoder.encode(emoji[0] if encoder.info.modality == "image" else emoji[1])
    # Stored in half precision where the file says so: three decimal digits.
    for layer in about["layers"]:
        tolerance = 2e-3 if shipped[layer].dtype == np.float16 else 1e-4
        assert gap(found[layer], np.asarray(shipped[layer])[rows].astype(np.float32)) <= tolerance


@pytest.fixture(scope="module")
def vit(real_space):
    return load("demo/vit-s14", "cpu", real_space)


@pytest.fixture(scope="module")
def encoders(real_space):
    names = ("minilm-l6", "minilm-l6-int8", "use-m3")
    return {name: load(f"demo/{name}", "cpu", real_space) for name in names}


class TestVisionTransformer:
    def test_mean_of_patches_is_another_reading(self, vit, pictures):
        cls = vit.encode(pictures, pooling="cls")
        mean = vit.encode(pictures, pooling="mean")
        # Before the first block the class token is the same for every picture.
        assert np.abs(cls["block00"] - cls["block00"][0]).max() == 0
        assert np.abs(mean["block00"] - mean["block00"][0]).max() > 1e-3
        assert gap(mean["block11"], cls["block11"]) > 0.1

    def test_positions_matter(self, vit, pictures):
        turned = [p.transpose(Image.Transpose.ROTATE_180) for p in pictures]
        assert gap(vit.encode(turned)["block11"], vit.encode(pictures)["block11"]) > 0.01

    def test_the_input_is_imagenets(self):
        x = TRANSFORMS["vit-s14"](Image.new("RGB", (224, 224), (124, 116, 104)))
        assert np.abs(x).max() < 0.02


def test_the_lite_network_knows_what_it_was_trained_on(real_space):
    """Its own classifier, on a drawn traffic light (ImageNet 920): five highest classes."""
    import timm

    from core.encoders.weights import need_folder, read_tensors

    module = timm.create_model("tf_efficientnet_lite0").eval()
    tensors = read_tensors(need_folder("efficientnet-lite0", real_space) / "model.safetensors")
    module.load_state_dict({k: torch.from_numpy(v) for k, v in tensors.items()}, strict=False)
    y, x = np.mgrid[0:224, 0:224]
    picture = np.full((224, 224, 3), (150, 190, 230), np.uint8)
    picture[20:204, 70:154] = (30, 30, 30)
    for centre, colour in ((50, (250, 40, 30)), (112, (90, 80, 20)), (174, (20, 80, 40))):
        picture[(y - centre) ** 2 + (x - 112) ** 2 < 25**2] = colour
    with torch.no_grad():
        scores = module(
            torch.from_numpy(TRANSFORMS["efficientnet-lite0"](Image.fromarray(picture)))[None]
        )
    assert 920 in scores[0].topk(5).indices.tolist()


class TestText:
    def cosines(self, encoder, texts):
        x = encoder.encode(texts, layers="default")[encoder.info.default_layer]
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return x @ x.T

    @pytest.mark.parametrize("name", ["minilm-l6", "minilm-l6-int8", "use-m3"])
    def test_meaning(self, encoders, name):
        found = self.cosines(encoders[name], ["a small dog", "a puppy", "the stock market fell"])
        assert found[0, 1] > found[0, 2] + 0.2

    def test_only_one_reads_many_languages(self, encoders):
        english = ["a red heart", "a sleeping cat", "a fast train", "the moon"]
        german = ["ein rotes Herz", "eine schlafende Katze", "ein schneller Zug", "der Mond"]
        japanese = ["赤いハート", "眠っている猫", "速い電車", "月"]
        for texts in (german, japanese):
            near = self.cosines(encoders["use-m3"], english + texts)[:4, 4:]
            assert (near.argmax(axis=1) == np.arange(4)).all()
        lost = self.cosines(encoders["minilm-l6"], english + japanese)[:4, 4:]
        assert (lost.argmax(axis=1) == np.arange(4)).sum() < 4

    def test_eight_bits_stay_near(self, encoders):
        texts = ["a small dog", "the stock market fell", "winter is cold", "x"]
        full = encoders["minilm-l6"].encode(texts)["block06"]
        eight = encoders["minilm-l6-int8"].encode(texts)["final"]
        cosine = (
            (full * eight).sum(1) / np.linalg.norm(full, axis=1) / np.linalg.norm(eight, axis=1)
        )
        assert cosine.min() > 0.95
        assert gap(eight, full) > 1e-3

    def test_very_long_and_very_short_texts(self, encoders):
        for encoder in encoders.values():
            found = encoder.encode(["word " * 2000, ".", "😀"], layers="default")
            assert np.isfinite(found[encoder.info.default_layer]).all()


@pytest.mark.parametrize("pair", list(LIT_PAIRS))
def test_a_pair_matches_pictures_it_never_saw(pair, real_space, emoji):
    image, text = (load(f"demo/{pair}/{side}", "cpu", real_space) for side in ("image", "text"))
    folder = assets_dir() / "demo" / "emoji"
    items = pd.read_parquet(folder / "items.parquet")
    items = items[items["domain"] == "noto"].iloc[::8]  # 40 concepts
    held = pd.read_parquet(folder / "images.parquet").set_index("sha256")["bytes"]
    pictures = [Image.open(io.BytesIO(held[sha])).convert("RGB") for sha in items["sha256"]]
    score = image.encode(pictures)["joint"] @ text.encode(items["caption"].tolist())["joint"].T
    assert (score.argmax(axis=1) == np.arange(len(items))).mean() > 0.3  # chance: 0.025
