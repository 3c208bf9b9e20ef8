"""A picture goes in as the model's own library prepares it, whatever its shape and mode."""

import json

import numpy as np
import open_clip
import pytest
import timm
import torch
import transformers as hf
from PIL import Image
from safetensors.torch import save_file
from timm.data import create_transform, resolve_model_data_config
from torchvision import models

from core.data.images import to_rgb
from core.encoders import load
from core.encoders.transforms import of_library
from core.errors import BadInput
from tests.unit.encoders.test_adapters import SMALL

SIZES = [(60, 40), (41, 67), (301, 223), (3, 3), (1, 5), (400, 31)]


@pytest.fixture(scope="module")
def noise():
    """Pictures of awkward sizes; noise shows every difference of filter and of cut."""
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 255, (h, w, 3), dtype=np.uint8)) for w, h in SIZES]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def same(encoder, theirs, pictures):
    for picture in pictures:
        want = np.asarray(theirs(picture), np.float32)
        assert np.array_equal(encoder.prepare(picture), want), picture.size


@pytest.mark.parametrize(
    ("processor", "module"),
    [
        (
            lambda: hf.ConvNextImageProcessor(size={"shortest_edge": 224}, crop_pct=0.875),
            lambda: hf.ConvNextModel(hf.ConvNextConfig(hidden_sizes=[8] * 4, depths=[1] * 4)),
        ),
        (
            lambda: hf.ConvNextImageProcessor(size={"shortest_edge": 384}),
            lambda: hf.ConvNextModel(hf.ConvNextConfig(hidden_sizes=[8] * 4, depths=[1] * 4)),
        ),
        (
            lambda: hf.CLIPImageProcessor(
                size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32}
            ),
            lambda: hf.CLIPVisionModel(hf.CLIPVisionConfig(**SMALL, image_size=32, patch_size=8)),
        ),
        (
            lambda: hf.SiglipImageProcessor(size={"height": 32, "width": 32}),
            lambda: hf.SiglipVisionModel(
                hf.SiglipVisionConfig(**SMALL, image_size=32, patch_size=8)
            ),
        ),
        (
            lambda: hf.ViTImageProcessor(size={"height": 32, "width": 32}, resample=3),
            lambda: hf.ViTModel(hf.ViTConfig(**SMALL, image_size=32, patch_size=8)),
        ),
    ],
    ids=["convnext-224", "convnext-384", "clip", "siglip", "vit"],
)
def test_transformers(tmp_path, noise, processor, module):
    """Bank 28: the processor's own cut, proportions and filter, to the bit."""
    held = processor()
    module().eval().save_pretrained(tmp_path)
    held.save_pretrained(tmp_path)
    encoder = load(f"transformers/{tmp_path}", "cpu")
    same(encoder, lambda p: held(p, return_tensors="pt")["pixel_values"][0], noise)
    assert encoder.transform["by"].startswith("transformers ")
    json.dumps(encoder.transform)


def test_a_folder_without_a_preprocessor_says_what_is_assumed(tmp_path):
    hf.ViTModel(hf.ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(tmp_path)
    assert (
        "no preprocessor was saved" in load(f"transformers/{tmp_path}", "cpu").transform["assumed"]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{not json", "cannot be read"),
        ('{"image_processor_type": "Unheard"}', "cannot be used"),
        ('{"image_processor_type": "ViTImageProcessor", "do_resize": false}', "one size|Unable"),
        ('{"auto_map": {"AutoImageProcessor": "evil.Own"}, "image_processor_type": "Own"}',
         "cannot be used"),
    ],
)  # fmt: skip
def test_a_preprocessor_that_cannot_be_used_is_refused(tmp_path, text, said):
    hf.ViTModel(hf.ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(text)
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(BadInput, match=said):
        load(f"transformers/{tmp_path}", "cpu")


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "levit_128s"])
def test_timm(tmp_path, noise, name):
    """Bank 28: the transform of the model's own config."""
    module = timm.create_model(name, num_classes=3).eval()
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    config = resolve_model_data_config(module)
    encoder = load(f"timm/{name}@{tmp_path}/w.safetensors", "cpu")
    same(encoder, create_transform(**config, is_training=False), noise)


def test_torchvision(tmp_path, noise):
    torch.save(models.squeezenet1_1().state_dict(), tmp_path / "w.pth")
    encoder = load(f"torchvision/squeezenet1_1@{tmp_path}/w.pth", "cpu")
    same(encoder, models.SqueezeNet1_1_Weights.DEFAULT.transforms(), noise)


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
def test_open_clip(tmp_path, noise, mode):
    """Bank 28: mean, filter and how the proportions are kept, of the folder's own config."""
    from open_clip.transform import PreprocessCfg, image_transform_v2

    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
        "text_cfg": {"context_length": 8, "vocab_size": 49408, "width": 32, "heads": 2,
                     "layers": 1},
    }  # fmt: skip
    about = {"mean": [0.4] * 3, "std": [0.3] * 3, "resize_mode": mode, "interpolation": "bilinear"}
    (tmp_path / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": config, "preprocess_cfg": about})
    )
    save_file(open_clip.CLIP(**config).state_dict(), tmp_path / "open_clip_model.safetensors")
    encoder = load(f"open_clip/local-dir:{tmp_path}/image", "cpu")
    theirs = image_transform_v2(PreprocessCfg(size=32, **about), is_train=False)
    same(encoder, theirs, noise)


MODES = ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "I;16", "I", "F"]


@pytest.mark.parametrize("mode", MODES)
def test_grey_cmyk_and_deep_pictures_go_in_as_rgb(tmp_path, mode):
    """Bank 28: what an adapter is given is turned to RGB first, 16 bits with their contrast."""
    ramp = np.linspace(0, 65535, 40 * 40).reshape(40, 40)
    picture = (
        Image.fromarray(ramp.astype(np.uint16))
        if mode == "I;16"
        else Image.fromarray((ramp / 257).astype(np.uint8)).convert(mode)
    )
    assert picture.mode == mode
    hf.ViTModel(hf.ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(tmp_path)
    folder = tmp_path / "with"
    hf.ViTModel(hf.ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(folder)
    hf.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    for encoder in (load(f"transformers/{tmp_path}", "cpu"), load(f"transformers/{folder}", "cpu")):
        found = encoder.prepare(picture)
        assert np.array_equal(found, encoder.prepare(to_rgb(picture)))
        assert found.max() - found.min() > 1.5  # black to white, not one clipped value


def test_a_transform_of_many_sizes_is_refused():
    with pytest.raises(BadInput, match="one size"):
        of_library(lambda p: np.zeros((3, p.height, p.width)), "numpy", {}, "own/x")
    odd = of_library(lambda p: np.zeros((3, 8, 8 if p.width > 2 else 4)), "numpy", {}, "own/x")
    with pytest.raises(BadInput, match="A picture of 2 x 9"):
        odd(Image.new("RGB", (2, 9)))
    assert odd.describe() == {"by": f"numpy {np.__version__}", "input": [3, 8, 8]}
