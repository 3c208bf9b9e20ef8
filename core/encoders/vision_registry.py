"""The 554 pretrained vision models of ``assets/registry/model_registry.csv`` as encoder infos.

Whether the weights are on this machine is seen from the libraries' cache folders alone, so
that the list costs no import of torch.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.paths import assets_dir
from core.types import EncoderInfo

_LOADED_BY_US = {"timm", "torchvision", "open_clip", "transformers"}


def infos() -> list[EncoderInfo]:
    """Return one info a model of the registry, with its status on this machine."""
    return [_info(row) for row in _rows(assets_dir() / "registry" / "model_registry.csv")]


@lru_cache(maxsize=2)
def _rows(path: Path) -> list[dict[str, Any]]:
    import pandas as pd

    table = pd.read_csv(path, dtype={"id": str})
    return [
        {key: value for key, value in row.items() if value == value}
        for row in table.to_dict("records")
    ]


def _info(row: dict[str, Any]) -> EncoderInfo:
    library = str(row["library"])
    status, reason = _status(row)
    return EncoderInfo(
        id=model_id(row),
        title=str(row.get("load_ref", row["id"])) if library in _LOADED_BY_US else str(row["id"]),
        library=library,
        modality="image",
        family=str(row.get("family", "")),
        arch_class=str(row.get("arch_class", "")),
        objective=str(row.get("objective", "")),
        dim=int(row.get("embed_dim", 0)),
        params_m=float(row.get("params_M", 0.0)),
        licence=str(row.get("license", "not stated")),
        source=str(row.get("hf_hub_id", row.get("load_ref", ""))),
        status=status,
        reason=reason,
    )


def model_id(row: dict[str, Any]) -> str:
    """Return the id that :func:`core.encoders.load` takes for a row of the registry."""
    reference = str(row.get("load_ref", ""))
    if row["library"] == "transformers":
        return f"transformers/{reference}"
    if row["library"] == "open_clip":
        arch, _, tag = reference.partition(" ")
        return f"open_clip/{arch}:{tag}/image"
    return str(row["id"])


def hub_cache() -> Path:
    """Return the Hugging Face hub's cache folder, as its own variables name it."""
    given = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if given:
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME")
    base = Path(home) if home else Path.home() / ".cache" / "huggingface"
    return base.expanduser() / "hub"


def torch_checkpoints() -> Path:
    """Return the folder where torchvision keeps downloaded checkpoints."""
    home = os.environ.get("TORCH_HOME")
    base = Path(home) if home else Path.home() / ".cache" / "torch"
    return base.expanduser() / "hub" / "checkpoints"


def hub_folder(hub_id: str) -> Path:
    """Return where the cache keeps a hub repository, or would keep it."""
    return hub_cache() / f"models--{hub_id.replace('/', '--')}"


def _status(row: dict[str, Any]) -> tuple[str, str]:
    library = row["library"]
    if library not in _LOADED_BY_US:
        return (
            "not-loadable",
            f"Published as a raw checkpoint ({library}) that none of the installed libraries "
            "loads by name. Its features can be computed elsewhere.",
        )
    if library == "torchvision":
        folder = torch_checkpoints()
        stem = str(row["load_ref"]).partition("/")[0]
        here = any(folder.glob(f"{stem}-*.pth")) if folder.is_dir() else False
        return _verdict(here, f"{folder} ({stem}-*.pth)")
    hub_id = row.get("hf_hub_id") or (row["load_ref"] if library == "transformers" else "")
    if not hub_id:
        return _verdict(False, "the cache of open_clip")
    folder = hub_folder(str(hub_id))
    return _verdict((folder / "snapshots").is_dir(), str(folder))


def _verdict(here: bool, where: str) -> tuple[str, str]:
    if here:
        return "ready", ""
    return (
        "needs-weights",
        f"Its weights are not on this machine: looked in {where}. Download it with its library "
        "on a machine with a network, and copy that folder here.",
    )
