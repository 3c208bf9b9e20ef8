"""``theodolite models fetch``: bring weights into their library's cache, on a network.

The only place that downloads a model that is not packaged; extraction never does. Weights come as
safetensors with their config and tokenizer. A PyTorch file is taken only where the repository has
no safetensors in its place, and read as tensors only; no code of a repository is taken.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders.checkpoints import safe_first
from core.encoders.registry import describe, load
from core.encoders.vision_registry import hub_folder
from core.errors import BadInput, NeedsWeights, NotFound

if TYPE_CHECKING:
    from core.workspace import Workspace

#: What is taken of a repository first; code and pickles are not.
PATTERNS = ("*.safetensors", "*.json", "*.txt", "*.model", "merges.txt", "vocab.*")

Progress = Callable[[float, str], None]


def hub_id_of(model_id: str) -> str:
    """Return the hub repository of a model.

    Raises
    ------
    NotFound
        The library does not say where the weights lie.
    """
    info = describe(model_id)
    library, _, name = model_id.partition("/")
    if library == "timm":
        import timm

        found = str(getattr(timm.get_pretrained_cfg(name), "hf_hub_id", "") or "")
    elif library == "open_clip":
        # The library writes REPOSITORY/ or REPOSITORY/FILE.
        found = str(_open_clip_config(name).get("hf_hub", "")).rpartition("/")[0]
    elif library == "transformers":
        found = name.removesuffix("/image").removesuffix("/text")
    else:
        found = ""
    if not found:
        raise NotFound(
            f"{info.id} names no hub repository.",
            "Download it with its library on a machine with a network, and copy the cache here.",
        )
    return found


def fetch_models(
    workspace: Workspace, *, ids: list[str], progress: Progress | None = None
) -> dict[str, str]:
    """Download the weights of models into the hub's cache; return a state for each id.

    Parameters
    ----------
    workspace : Workspace
        Unused but for the common signature of jobs.
    ids : list of str
        Model ids of timm, open_clip or transformers.
    progress : callable, optional
        Called before each model.

    Returns
    -------
    dict of str to str
        "fetched" or "was here"; what failed is raised at the end, after the others.

    Raises
    ------
    NeedsWeights
        A repository could not be reached or is gated: which, where it would lie, what to do.
    BadInput
        ``ids`` is empty.
    """
    if not ids:
        raise BadInput(
            "No model was named.", "For instance: theodolite models fetch timm/resnet18.a1_in1k"
        )
    done: dict[str, str] = {}
    failed: list[str] = []
    for at, model_id in enumerate(ids):
        if progress is not None:
            progress(at / len(ids), model_id)
        if _is_here(model_id):
            done[model_id] = "was here"
            continue
        problem = _download(hub_id_of(model_id), model_id)
        if problem:
            failed.append(f"{model_id}: {problem}")
        else:
            done[model_id] = "fetched"
    if failed:
        raise NeedsWeights(
            "; ".join(failed) + ".",
            "Check the network, accept the model's licence on its page and set HF_TOKEN, or copy "
            "the cache folder from another machine.",
        )
    return done


def _is_here(model_id: str) -> bool:
    return describe(model_id).status == "ready" and _loads(model_id)


def _loads(model_id: str) -> bool:
    try:
        load(model_id, "cpu")
    except (NeedsWeights, NotFound, BadInput):
        return False
    return True


def _download(hub_id: str, model_id: str) -> str:
    """Return why it failed, empty when it did not."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    where = f"it would lie in {hub_folder(hub_id)}"
    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=list(PATTERNS)))
        lacking = pytorch_files(folder, model_id)
        if lacking:
            snapshot_download(hub_id, allow_patterns=lacking)
    except GatedRepoError:
        return f"{hub_id} asks for its licence to be accepted first; {where}"
    except RepositoryNotFoundError:
        return f"there is no repository {hub_id}"
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as err:
        if isinstance(err, OSError) and err.errno == errno.ENOSPC:
            return f"the disk is full: {hub_id} was not fetched whole; {where}"
        return f"{hub_id} could not be reached ({_line(err)}); {where}"
    return ""


def pytorch_files(folder: Path, model_id: str) -> list[str]:
    """Return the PyTorch files to ask for, where the fetched folder has no safetensors.

    Parameters
    ----------
    folder : Path
        What came of the repository so far.
    model_id : str
        Its library decides under which names weights lie.
    """
    own = _own_file(model_id)
    plain = own or ("open_clip_pytorch_model.bin" if model_id.startswith("open_clip/")
                    else "pytorch_model.bin")  # fmt: skip
    safe = [name for name in safe_first(plain) if name.endswith(".safetensors")]
    if not own:
        safe += ["model.safetensors", "model.safetensors.index.json"]
    inner = "0_Transformer"  # of a sentence-transformers folder
    lacking = []
    if not any((place / name).is_file() for place in (folder, folder / inner) for name in safe):
        many = plain.replace("model.bin", "model*.bin")
        lacking += [many, f"{inner}/{many}"]
    # The layers that sentence-transformers puts behind its transformer, each in its folder.
    lacking += [
        f"{config.parent.name}/pytorch_model.bin"
        for config in sorted(folder.glob("*_Dense/config.json"))
        if not (config.parent / "model.safetensors").is_file()
    ]
    return lacking


def _own_file(model_id: str) -> str:
    """Return the file that the model's library names in its repository, or nothing."""
    library, _, name = model_id.partition("/")
    if library == "timm":
        import timm

        return str(getattr(timm.get_pretrained_cfg(name), "hf_hub_filename", "") or "")
    if library == "open_clip":
        return str(_open_clip_config(name).get("hf_hub", "")).rpartition("/")[2]
    return ""


def _open_clip_config(name: str) -> dict[str, Any]:
    import open_clip

    arch, _, tag = name.rpartition("/")[0].partition(":")
    return dict(open_clip.pretrained.get_pretrained_cfg(arch, tag) or {})


def _line(err: Any) -> str:
    text = str(err).strip().splitlines()
    return text[0][:140] if text else type(err).__name__
