"""Fetching weights where there is a network: what is taken, where from, and plain failures."""

import errno
from fnmatch import fnmatch
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

from core.cli import main
from core.encoders.fetch_hub import PATTERNS, fetch_models, hub_id_of
from core.errors import BadInput, NeedsWeights, NotFound

MODEL = "timm/resnet18.a1_in1k"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty cache, and what was asked of the hub."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    asked = []

    def answer(repository, *, allow_patterns):
        asked.append((repository, tuple(allow_patterns)))
        if answer.error:
            raise answer.error
        for name in answer.holds:
            if any(fnmatch(name, pattern) for pattern in allow_patterns):
                (tmp_path / "got" / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "got" / name).write_bytes(b"")
        return str(tmp_path / "got")

    answer.error, answer.holds = None, ["config.json", "model.safetensors", "pytorch_model.bin"]
    monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)
    return asked, answer


@pytest.mark.parametrize(
    ("model", "repository"),
    [
        (MODEL, "timm/resnet18.a1_in1k"),
        ("open_clip/ViT-B-32:laion2b_s34b_b79k/text", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
        ("transformers/some/model/image", "some/model"),
    ],
)
def test_where_the_weights_lie(model, repository):
    assert hub_id_of(model) == repository


def test_a_model_without_a_repository_says_what_to_do():
    with pytest.raises(NotFound, match="copy the cache"):
        hub_id_of("torchvision/resnet18.IMAGENET1K_V1")


def test_tensors_configs_and_tokenizers_are_taken_and_no_code(space, hub):
    asked, _ = hub
    assert fetch_models(space, ids=[MODEL]) == {MODEL: "fetched"}
    assert asked == [("timm/resnet18.a1_in1k", PATTERNS)]
    assert not any(
        pattern.endswith((".py", ".pkl", ".bin", "*"))
        for pattern in PATTERNS
        if pattern != "vocab.*"
    )


@pytest.mark.parametrize(
    ("model", "holds", "then"),
    [
        (MODEL, ["model.safetensors", "pytorch_model.bin"], None),
        (MODEL, ["pytorch_model.bin"], "pytorch_model.bin"),
        ("transformers/a/b", ["model.safetensors.index.json", "model-1-of-1.safetensors"], None),
        ("transformers/a/b", ["pytorch_model-1-of-1.bin"], "pytorch_model-1-of-1.bin"),
        ("transformers/a/b", ["adapter.safetensors", "pytorch_model.bin"], "pytorch_model.bin"),
        (
            "open_clip/ViT-B-32:laion2b_s34b_b79k/text",
            ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"],
            None,
        ),
        (
            "open_clip/ViT-B-32:laion2b_s34b_b79k/text",
            ["open_clip_pytorch_model.bin"],
            "open_clip_pytorch_model.bin",
        ),
        (
            "transformers/a/b",
            ["model.safetensors", "2_Dense/config.json", "2_Dense/pytorch_model.bin"],
            "2_Dense/pytorch_model.bin",
        ),
        (
            "transformers/a/b",
            ["0_Transformer/config.json", "0_Transformer/pytorch_model.bin"],
            "0_Transformer/pytorch_model.bin",
        ),
    ],
)
def test_a_pytorch_file_is_asked_for_only_without_safetensors(space, hub, model, holds, then):
    asked, answer = hub
    answer.holds = holds
    fetch_models(space, ids=[model])
    assert asked[0][1] == PATTERNS
    assert len(asked) == (1 if then is None else 2)
    assert then is None or any(fnmatch(then, pattern) for pattern in asked[1][1])
    assert not any(
        fnmatch(f"x{end}", p) for _, all_ in asked for p in all_ for end in (".py", ".pkl")
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (GatedRepoError, "asks for its licence"),
        (RepositoryNotFoundError, "there is no repository"),
        (LocalEntryNotFoundError, "could not be reached"),
    ],
)
def test_failures_name_the_repository_and_the_folder(space, hub, kind, words):
    """Bank 29: gated, gone or unreachable."""
    _, answer = hub
    reply = SimpleNamespace(headers={}, request=None, status_code=403)
    answer.error = kind("no", response=reply) if kind is not LocalEntryNotFoundError else kind("no")
    with pytest.raises(NeedsWeights, match=f"resnet18.*{words}"):
        fetch_models(space, ids=[MODEL])


def test_a_full_disk_is_named_as_one(space, hub):
    """Bank 29: no room for the weights is not an unreachable hub."""
    hub[1].error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(NeedsWeights, match=r"the disk is full.*models--timm--resnet18"):
        fetch_models(space, ids=[MODEL])


def test_nothing_named_is_refused(space):
    with pytest.raises(BadInput, match="No model was named"):
        fetch_models(space, ids=[])


def test_the_command_says_what_it_did(space, hub, capsys):
    assert main(["models", "fetch", MODEL, "--workspace", str(space.root), "--json"]) == 0
    assert '"fetched"' in capsys.readouterr().out
