"""Reading other people's checkpoints: from the local caches only, and as data only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders.vision_registry import hub_cache, hub_folder
from core.errors import BadInput, NeedsWeights

if TYPE_CHECKING:
    import torch

HUB_HINT = (
    "On a machine with a network run `hf download {hub_id}` and copy the folder here, "
    "or set HF_HUB_CACHE to where it lies."
)


def hub_file(hub_id: str, names: Sequence[str], model: str) -> Path:
    """Return the first of ``names`` that the local hub cache holds of a repository.

    Raises
    ------
    NeedsWeights
        None is there; the files and the folder are named.
    """
    from huggingface_hub import try_to_load_from_cache

    for name in names:
        found = try_to_load_from_cache(hub_id, name, cache_dir=str(hub_cache()))
        if isinstance(found, str):
            return Path(found)
    raise NeedsWeights(
        f"The weights of {model} are not on this machine: looked for {' or '.join(names)} of "
        f"{hub_id} in {hub_folder(hub_id)}.{_remains(hub_folder(hub_id), names)}",
        HUB_HINT.format(hub_id=hub_id),
    )


def _remains(folder: Path, names: Sequence[str]) -> str:
    """Return what else the cache says of a repository: broken off, or another revision."""
    if any((folder / "blobs").glob("*.incomplete")):
        return " A download of it was broken off: fetch it again."
    found = [path for name in names for path in (folder / "snapshots").glob(f"*/{name}")]
    held = sorted(path.relative_to(folder / "snapshots").parts[0] for path in found)
    if not held:
        return ""
    return f" The repository moved on; what is here is of revision {held[0][:12]}."


def safe_first(name: str) -> list[str]:
    """Return the names under which a file of weights is looked for, safetensors first.

    Examples
    --------
    >>> safe_first("b16.bin")
    ['b16.safetensors', 'b16.bin']
    >>> safe_first("model.safetensors")
    ['model.safetensors']
    """
    if name.endswith(".safetensors"):
        return [name]
    if name == "open_clip_pytorch_model.bin":
        return ["open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", name]
    return [f"{name.rpartition('.')[0] or name}.safetensors", name]


def revision_of(path: Path) -> str:
    """Return the revision of a file in the hub's cache; another file's own name.

    Examples
    --------
    >>> revision_of(Path("hub/models--a--b/snapshots/1f2e/model.safetensors"))
    '1f2e'
    >>> revision_of(Path("w.safetensors"))
    'w.safetensors'
    """
    parts = path.parts
    return parts[parts.index("snapshots") + 1] if "snapshots" in parts[:-1] else path.name


def read_state(path: Path, model: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint file, on the CPU.

    A ``.safetensors`` file, or a PyTorch file that holds tensors only, either at the top or
    under ``state_dict``, ``model_state_dict`` or ``model``.

    Raises
    ------
    NeedsWeights
        There is no such file.
    BadInput
        The file is no checkpoint, or asks for code to be run.
    """
    import pickle

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise NeedsWeights(
            f"The checkpoint of {model} is not there: looked for {path}.", "Check the path."
        )
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        held = torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, SafetensorError, RuntimeError, OSError, EOFError) as err:
        reason = str(err).split("\n")[0][:200]
        raise BadInput(
            f"{path} cannot be read as the checkpoint of {model} ({reason}).",
            "Only tensors are read, no pickled code: save the state dict as safetensors.",
        ) from err
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(held, dict) and isinstance(held.get(key), dict):
            held = held[key]
    if not isinstance(held, dict) or not all(isinstance(v, torch.Tensor) for v in held.values()):
        raise BadInput(
            f"{path} holds no state dict of tensors.", "Save model.state_dict() as safetensors."
        )
    return {str(name).removeprefix("module."): value for name, value in held.items()}


def does_not_fit(model: str, path: Any, err: Exception) -> BadInput:
    """Return the error for a checkpoint whose tensors are not those of the model."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    reason = " ".join(lines[:2])[:300]
    return BadInput(
        f"The checkpoint {path} does not fit {model}: {reason}",
        "Name the architecture it was saved from.",
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the loaders' progress bars and reports off standard error."""
    from transformers.utils import logging as talk

    level, bars = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity_error()
    talk.disable_progress_bar()
    root = logging.getLogger()
    before = root.level
    root.setLevel(max(before, logging.ERROR))
    try:
        yield
    finally:
        root.setLevel(before)
        talk.set_verbosity(level)
        if bars:
            talk.enable_progress_bar()
