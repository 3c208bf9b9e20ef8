"""The packaged encoders with their real weights, fetched once and kept between runs.

Each recomputes features that ship with the demo from the pictures and texts themselves.
"""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from core.data.demo_recipe import FEATURES
from core.data.images import open_rgb
from core.data.shipped import feature_path
from core.encoders import load
from core.encoders.base import Encoder
from core.encoders.catalogue import DEMO, LIT_PAIRS
from core.encoders.demo_image import TRANSFORMS
from core.paths import assets_dir
from core.workspace.tensors import open_tensors

TEXTS = ["smiling cat", "ein lächelndes Gesicht mit Herzen", "赤いハート", "x"]


@pytest.fixture(scope="module", params=list(DEMO))
def encoder(request, real_space):
    return load(request.param, "cpu", real_space)


def some_items(dataset, ids):
    """Return the pictures (none for texts) and the captions of some shipped items."""
    folder = assets_dir() / "demo" / dataset
    items = pd.read_parquet(folder / "items.parquet").set_index("id").loc[ids]
    pictures = []
    if (folder / "images.parquet").is_file():
        held = pd.read_parquet(folder / "images.parquet").set_index("sha256")["bytes"]
        pictures = [open_rgb(held[sha], sha) for sha in items["sha256"]]
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


@pytest.mark.parametrize(
    "recipe", [r for r in FEATURES if r.ship], ids=lambda r: f"{r.dataset}-{r.model}"
)
def test_gives_the_features_that_ship(recipe, real_space):
    path = feature_path(recipe)
    shipped = open_tensors(path)
    about = json.loads(path.with_suffix(".json").read_text())
    encoder = load(recipe.model, "cpu", real_space)
    assert about["recipe"]["weights_digest"] == encoder.weights_digest
    assert about["recipe"]["transform"] == encoder.transform
    ids = shipped["ids"][:: len(shipped["ids"]) // 5]
    pictures, captions = some_items(recipe.dataset, ids)
    found = encoder.encode(pictures if encoder.info.modality == "image" else captions)
    for layer in about["layers"]:
        stored = np.asarray(shipped[layer])[np.searchsorted(shipped["ids"], ids)]
        assert gap(found[layer], stored) <= 1e-4


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
def test_a_pair_matches_pictures_it_never_saw(pair, real_space):
    image, text = (load(f"demo/{pair}/{side}", "cpu", real_space) for side in ("image", "text"))
    items = pd.read_parquet(assets_dir() / "demo" / "emoji" / "items.parquet")
    ids = items.loc[items["domain"] == "noto", "id"].iloc[::8]  # 40 concepts
    pictures, captions = some_items("emoji", ids)
    score = image.encode(pictures)["joint"] @ text.encode(captions)["joint"].T
    assert (score.argmax(axis=1) == np.arange(len(ids))).mean() > 0.15  # chance: 0.025
