"""The parts the adapters share: the transform, choosing layers, digests."""

import numpy as np
import pytest
from PIL import Image
from torchvision.transforms import v2

from core.encoders.base import ImageTransform, choose_layers, tensors_digest
from core.encoders.catalogue import DEMO
from core.errors import NotFound

PLAIN = ImageTransform(32, 40, (0.0,) * 3, (1.0,) * 3)


class TestTransform:
    @pytest.mark.parametrize("kind", ["bicubic", "bilinear"])
    def test_agrees_with_torchvision(self, pictures, kind):
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        ours = ImageTransform(
            32, 40, tuple(255 * m for m in mean), tuple(255 * s for s in std), interpolation=kind
        )
        theirs = v2.Compose([
            v2.Resize(40, interpolation=v2.InterpolationMode(kind)), v2.CenterCrop(32),
            v2.PILToTensor(), v2.ToDtype(np_float(), scale=True), v2.Normalize(mean, std),
        ])  # fmt: skip
        # Torchvision rounds the longer side down, so only square pictures agree to the bit.
        picture = pictures[0]
        assert np.allclose(ours(picture), theirs(picture).numpy(), atol=1e-5)

    def test_gives_the_size_for_every_shape(self, pictures):
        assert {PLAIN(p).shape for p in pictures} == {(3, 32, 32)}
        squash = ImageTransform(32, 0, (0.0,) * 3, (1.0,) * 3)
        assert {squash(p).shape for p in pictures} == {(3, 32, 32)}

    def test_blue_first(self):
        red = Image.new("RGB", (32, 32), (200, 10, 30))
        values = ImageTransform(32, 32, (1.0, 2.0, 3.0), (1.0,) * 3, bgr=True)(red)
        assert values[:, 0, 0].tolist() == [29.0, 8.0, 197.0]

    def test_one_pixel(self):
        assert (
            PLAIN(Image.new("RGB", (1, 1), (9, 9, 9))).tolist() == np.full((3, 32, 32), 9).tolist()
        )

    def test_a_long_strip_is_cut_in_its_middle(self):
        strip = Image.new("RGB", (400, 40))
        strip.paste((255, 255, 255), (180, 0, 220, 40))
        assert PLAIN(strip).min() > 200


def np_float():
    import torch

    return torch.float32


def test_layers_are_given_in_layer_order():
    vit = DEMO["demo/vit-s14"]
    assert choose_layers(vit, ["block07", "block02"]) == ("block02", "block07")
    assert choose_layers(vit, "default") == ("block11",)
    assert len(choose_layers(vit, "all")) == 13
    assert choose_layers(vit, "block03") == ("block03",)


@pytest.mark.parametrize("layers", [["block99"], [], "last"])
def test_a_layer_that_is_not_there(layers):
    with pytest.raises(NotFound, match="block00"):
        choose_layers(DEMO["demo/vit-s14"], layers)


def test_the_digest_sees_names_types_shapes_and_values():
    base = {"a": np.zeros((2, 3), np.float32), "b": np.ones(1, np.float32)}
    others = [
        {"a": base["a"], "c": base["b"]},
        {"a": base["a"].reshape(3, 2), "b": base["b"]},
        {"a": base["a"].astype(np.int32), "b": base["b"]},
        {"a": base["a"], "b": np.nextafter(base["b"], 2)},
    ]
    digests = {tensors_digest(t) for t in [base, *others]}
    assert len(digests) == 5
    assert tensors_digest(dict(reversed(base.items()))) == tensors_digest(base)


def test_the_digest_takes_torch_tensors_and_scalars():
    import torch

    a = {"x": torch.arange(4.0), "n": torch.tensor(3)}
    assert tensors_digest(a) == tensors_digest({k: v.numpy() for k, v in a.items()})
    half = {"x": torch.ones(3, dtype=torch.bfloat16)}
    assert tensors_digest(half) != tensors_digest({"x": torch.zeros(3, dtype=torch.bfloat16)})
