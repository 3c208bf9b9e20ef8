"""The models the installed libraries load by name, as encoder infos.

554 vision models of ``assets/registry/model_registry.csv`` with family, objective and size, and
what timm, open_clip and torchvision list besides (``library_models.csv``), with what their own
listings say of them and no more.

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
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth"}


def infos() -> list[EncoderInfo]:
    """Return one info a model, the registry's first, each with its status on this machine."""
    folder = assets_dir() / "registry"
    rows = _rows(folder / "library_models.csv")
    hubs = {str(row["id"]): _hub(row) for row in rows}
    studied = _rows(folder / "model_registry.csv")
    known = [_info(row, hubs) for row in studied]
    ids = {info.id for info in known}
    kinds = {_arch(row): str(row["arch_class"]) for row in studied if "arch_class" in row}
    listed = (_listed(row, kinds) for row in rows)
    return known + [info for info in listed if info.id not in ids]


def _arch(row: dict[str, Any]) -> str:
    """Return the architecture of a row of the registry, as its library's listing writes it."""
    if row["library"] == "timm":
        return str(row["load_ref"]).partition(".")[0]
    return str(row.get("load_ref", "")).partition(" ")[0].partition("/")[0]


def _hub(row: dict[str, Any]) -> str:
    """Return ``organisation/repository``; a listing may add the name of a file."""
    return "/".join(str(row.get("hub_id", "")).split("/")[:2])


def _poolings(arch_class: str) -> tuple[str, ...]:
    """Return what maps of convolutions allow; of tokens it is known once the weights are read."""
    return ("mean",) if arch_class in ("CNN", "ResNet", "ConvNeXt", "RegNet") else ()


def _listed(row: dict[str, Any], kinds: dict[str, str]) -> EncoderInfo:
    """Return the info of a model that only its library's listing names."""
    library, name = str(row["library"]), str(row["id"]).partition("/")[2]
    status, reason = _status(
        {"library": library, "hf_hub_id": _hub(row), "id": row["id"],
         "load_ref": str(row["arch"]) if library == "torchvision" else name}
    )  # fmt: skip
    # One architecture is of one kind, whatever its weights were trained on.
    kind = kinds.get(str(row["arch"]), "") if row["modality"] == "image" else ""
    pair = str(row["id"]).rpartition("/")[0] if library == "open_clip" else ""
    return EncoderInfo(
        id=str(row["id"]),
        title=name,
        library=library,
        modality=str(row["modality"]),
        family=str(row["arch"]),
        arch_class=kind,
        objective="vision-language" if library == "open_clip" else "",
        licence=str(row.get("licence", "not stated")),
        source=_hub(row),
        poolings=_poolings(kind) if library != "open_clip" else (),
        pair=pair,
        status=status,
        reason=reason,
    )


@lru_cache(maxsize=2)
def _rows(path: Path) -> list[dict[str, Any]]:
    import pandas as pd

    table = pd.read_csv(path, dtype={"id": str})
    return [
        {key: value for key, value in row.items() if value == value}
        for row in table.to_dict("records")
    ]


def _info(row: dict[str, Any], hubs: dict[str, Any]) -> EncoderInfo:
    library, name = str(row["library"]), model_id(row)
    row = {**row, "id": name, "hf_hub_id": row.get("hf_hub_id") or hubs.get(name, "")}
    status, reason = _status(row)
    return EncoderInfo(
        id=name,
        title=str(row.get("load_ref", row["id"])) if library in _LOADED_BY_US else str(row["id"]),
        library=library,
        modality="image",
        family=str(row.get("family", "")),
        arch_class=str(row.get("arch_class", "")),
        objective=str(row.get("objective", "")),
        dim=int(row.get("embed_dim", 0)),
        params_m=float(row.get("params_M", 0.0)),
        licence=str(row.get("license", "not stated")),
        source=str(row["hf_hub_id"] or row.get("load_ref", "")),
        status=status,
        reason=reason,
        poolings=_poolings(str(row.get("arch_class", ""))) if library != "open_clip" else (),
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
        return _verdict(
            here,
            f"{folder} ({stem}-*.pth). Load it once with torchvision on a machine with a network, "
            "and copy that folder here",
        )
    hub_id = row.get("hf_hub_id") or (row["load_ref"] if library == "transformers" else "")
    if not hub_id:
        return (
            "needs-weights",
            f"{library} publishes no weights for it: name a checkpoint file of your own, "
            f"{library}/{row['load_ref']}@FILE.",
        )
    folder = hub_folder(str(hub_id))
    return _verdict(
        _holds_weights(folder),
        f"{folder}. With a network, `theodolite models fetch {row['id']}` brings them; without "
        "one, copy that folder from a machine that has it",
    )


def _holds_weights(folder: Path) -> bool:
    """Whether a repository's folder holds a file of weights: a broken-off download does not."""
    places = (folder / "snapshots").glob("*/**/*")
    return any(path.suffix in _WEIGHTS and path.is_file() for path in places)


def _verdict(here: bool, where: str) -> tuple[str, str]:
    if here:
        return "ready", ""
    return (
        "needs-weights",
        f"Its weights are not on this machine: looked in {where}.",
    )
