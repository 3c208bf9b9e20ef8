"""Fetching weights where there is a network: what is taken, where from, and plain failures."""

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

    answer.error = None
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
        pattern.endswith((".py", ".pkl", "*")) for pattern in PATTERNS if pattern != "vocab.*"
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
    _, answer = hub
    reply = SimpleNamespace(headers={}, request=None, status_code=403)
    answer.error = kind("no", response=reply) if kind is not LocalEntryNotFoundError else kind("no")
    with pytest.raises(NeedsWeights, match=f"resnet18.*{words}"):
        fetch_models(space, ids=[MODEL])


def test_nothing_named_is_refused(space):
    with pytest.raises(BadInput, match="No model was named"):
        fetch_models(space, ids=[])


def test_the_command_says_what_it_did(space, hub, capsys):
    assert main(["models", "fetch", MODEL, "--workspace", str(space.root), "--json"]) == 0
    assert '"fetched"' in capsys.readouterr().out
