"""The encoder that ships: real weights, known properties, the contract every encoder keeps."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import squeezenet1_1

from core.encoders import load
from core.encoders.base import Encoder
from core.encoders.weights import encoder_assets, read_tensors
from core.errors import BadInput, NotFound, WorkspaceError


@pytest.fixture(scope="module")
def encoder():
    return load("demo/squeezenet1.1", "cpu")


def test_keeps_the_contract(encoder, pictures):
    assert isinstance(encoder, Encoder)
    found = encoder.encode(pictures)
    assert tuple(found) == encoder.info.layers
    widths = {name: rows.shape for name, rows in found.items()}
    assert widths["stage1"] == (5, 64)
    assert widths["pool"] == (5, encoder.info.dim) == (5, 512)
    assert all(rows.dtype == np.float32 for rows in found.values())
    assert encoder.info.params_m == pytest.approx(1.24, abs=0.01)


def test_two_runs_give_the_same_bytes(encoder, pictures):
    first, second = encoder.encode(pictures), encoder.encode(pictures)
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_does_not_depend_on_the_batch(encoder, pictures, size):
    whole = encoder.encode(pictures)
    parts = [encoder.encode(pictures[i : i + size]) for i in range(0, len(pictures), size)]
    for name, rows in whole.items():
        joined = np.concatenate([part[name] for part in parts])
        assert np.abs(joined - rows).max() <= 1e-5 * np.abs(rows).max()


def test_the_network_is_torchvisions_own(encoder, pictures):
    # An independent forward pass: torchvision's module with hooks on its own layers.
    module = squeezenet1_1(weights=None).eval()
    tensors = read_tensors(encoder_assets() / "squeezenet1.1.safetensors")
    module.load_state_dict({name: torch.from_numpy(a) for name, a in tensors.items()})
    seen = []
    module.features[12].register_forward_hook(lambda _m, _i, out: seen.append(out))
    x = torch.from_numpy(np.stack([encoder.prepare(p) for p in pictures]))
    with torch.no_grad():
        module(x)
    expected = torch.nn.functional.adaptive_avg_pool2d(seen[0], 1).flatten(1).numpy()
    assert np.allclose(encoder.encode(pictures)["pool"], expected, atol=1e-5)


def test_it_was_trained_on_imagenet(encoder):
    """Drawn in blue it is not what it is in red: class scores follow known colours.

    A disc of orange on green is nearest to ImageNet's "orange" (950) or "lemon" (951) or
    "Granny Smith" (948) among fruit; random weights would not say so.
    """
    y, x = np.mgrid[-1:1:256j, -1:1:256j]
    disc = (x**2 + y**2) < 0.5
    shade = np.clip(1.1 - 0.5 * ((x + 0.3) ** 2 + (y + 0.3) ** 2), 0, 1)[..., None]
    picture = np.where(disc[..., None], shade * (250, 140, 20), (235, 240, 235)).astype(np.uint8)
    module = squeezenet1_1(weights=None).eval()
    tensors = read_tensors(encoder_assets() / "squeezenet1.1.safetensors")
    module.load_state_dict({name: torch.from_numpy(a) for name, a in tensors.items()})
    with torch.no_grad():
        scores = module(torch.from_numpy(encoder.prepare(Image.fromarray(picture)))[None])[0]
    assert int(scores[948:958].argmax()) == 2


def test_layers_can_be_chosen(encoder, pictures):
    assert list(encoder.encode(pictures[:1], layers=["pool", "stage2"])) == ["stage2", "pool"]
    assert list(encoder.encode(pictures[:1], layers="default")) == ["pool"]
    with pytest.raises(NotFound, match="stage1, stage2"):
        encoder.encode(pictures[:1], layers=["block3"])


def test_an_empty_batch_and_an_unknown_pooling(encoder, pictures):
    with pytest.raises(BadInput, match="batch is empty"):
        encoder.encode([])
    with pytest.raises(BadInput, match=r"pooling='cls'.*mean"):
        encoder.encode(pictures, pooling="cls")


def test_a_cut_weight_file(tmp_path):
    data = (encoder_assets() / "squeezenet1.1.safetensors").read_bytes()
    (tmp_path / "w.safetensors").write_bytes(data[:100_000])
    with pytest.raises(WorkspaceError, match="cannot be read as weights"):
        read_tensors(tmp_path / "w.safetensors")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_cpu(encoder, pictures):
    there = load("demo/squeezenet1.1", "cuda").encode(pictures)
    for name, rows in encoder.encode(pictures).items():
        assert np.abs(there[name] - rows).max() <= 1e-4 * np.abs(rows).max()
