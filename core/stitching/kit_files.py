"""A stitching kit on disk: ``kit.safetensors``, ``kit.json`` and a ten-line ``example.py``.

The folder, or the same three files in one zip, needs nothing of Theodolite: the example reads it
with numpy and safetensors alone. Arrays are float64, so that a kit read again predicts the same.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import BadInput, NotFound
from core.linalg.whitening import Whitening
from core.stitching.heads import Head
from core.stitching.kit import FORMAT, VERSION, Kit, KitEncoder
from core.stitching.representation import unit_rows

ARRAYS, ABOUT, EXAMPLE = "kit.safetensors", "kit.json", "example.py"
_PARTS = ("mean", "scale", "directions", "gains", "eigenvalues")
_MOST_BYTES = 2 << 30

_WIP_LINES = (
    """r = x @ kit[f"{at}.fold"].T - kit[f"{at}.offset"]  # whitened inner products with anchors"""
)
_COSINE_LINES = (
    """u = (x - kit[f"{at}.centre"]) / kit[f"{at}.spread"]; """
    """r = u / np.linalg.norm(u, axis=1, keepdims=True) @ kit[f"{at}.unit_anchors"].T"""
)


def example_code(kit: Kit) -> str:
    """Return the ten lines that classify with this kit, by numpy and safetensors alone."""
    other = next((name for name in kit.encoders if name != kit.head_of), kit.head_of)
    line = _WIP_LINES if kit.similarity == "wip" else _COSINE_LINES
    return f'''import json, sys
import numpy as np
from safetensors.numpy import load_file
about, kit = json.load(open("{ABOUT}")), load_file("{ARRAYS}")
x = np.load(sys.argv[1]).astype(float)  # features (n, d), say of {other}
encoder = sys.argv[2] if len(sys.argv) > 2 else "{other}"
at = about["encoders"][encoder]["prefix"]
{line}
scores = (r - kit["head.mean"]) / kit["head.scale"] @ kit["head.weights"] + kit["head.bias"]
print("\\n".join(about["classes"][c] for c in scores.argmax(axis=1)))
'''


def kit_arrays(kit: Kit) -> dict[str, np.ndarray]:
    """Return everything of the kit that is a number, by name."""
    out = {
        "mixing": kit.mixing, "support_ids": kit.support_ids, "train_ids": kit.train_ids,
        "head.mean": kit.head.mean, "head.scale": kit.head.scale,
        "head.weights": kit.head.weights, "head.bias": kit.head.bias,
    }  # fmt: skip
    for at, known in enumerate(kit.encoders.values()):
        head = f"encoder{at}"
        out[f"{head}.anchors"] = known.anchors
        w = known.whitening
        if w is not None:
            out |= {f"{head}.{name}": getattr(w, name) for name in _PARTS}
            out[f"{head}.floor"] = np.array([w.floor])
        if kit.similarity == "wip" and w is not None:
            out[f"{head}.fold"], out[f"{head}.offset"] = w.fold(known.anchors)
        else:
            wide = known.anchors.shape[1]
            centre = np.zeros(wide) if w is None else w.mean
            spread = w.scale if w is not None and kit.similarity == "scosine" else np.ones(wide)
            out |= {f"{head}.centre": centre, f"{head}.spread": spread}
            out[f"{head}.unit_anchors"] = unit_rows((known.anchors - centre) / spread)
    return {name: np.ascontiguousarray(value) for name, value in out.items()}


def kit_about(kit: Kit) -> dict[str, Any]:
    """Return everything of the kit that is words, as plain JSON."""
    encoders = {}
    for at, (name, known) in enumerate(kit.encoders.items()):
        w = known.whitening
        encoders[name] = {
            "prefix": f"encoder{at}", "layer": known.layer, "dim": known.anchors.shape[1],
            "test_accuracy": None if np.isnan(known.accuracy) else known.accuracy,
            "whitening": None if w is None else {
                "shrinkage": w.shrinkage, "n": w.n, "rank": w.rank, "dead": w.dead,
            },
        }  # fmt: skip
    return {
        "format": FORMAT, "version": VERSION, "head_of": kit.head_of,
        "classes": list(kit.classes), "similarity": kit.similarity, "shrinkage": kit.shrinkage,
        "n_anchors": len(kit.mixing), "n_support": len(kit.support_ids), "encoders": encoders,
        **kit.about,
    }  # fmt: skip


def kit_files(kit: Kit) -> dict[str, bytes]:
    """Return the three files of a kit."""
    from core.workspace.tensors import write_tensors

    buffer = io.BytesIO()
    write_tensors(buffer, kit_arrays(kit))
    return {
        ARRAYS: buffer.getvalue(),
        ABOUT: json.dumps(kit_about(kit), indent=1, ensure_ascii=False).encode(),
        EXAMPLE: example_code(kit).encode(),
    }


def kit_zip(kit: Kit) -> bytes:
    """Return the kit as one zip; the same kit gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for name, data in kit_files(kit).items():
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def save_kit(kit: Kit, path: Path | str) -> Path:
    """Write a kit as a folder, or as one file when the name ends in ``.zip``.

    Raises
    ------
    WorkspaceError
        The place cannot be written.
    """
    from core.workspace.files import storing

    target = Path(path)
    with storing(target):
        if target.suffix == ".zip":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(kit_zip(kit))
        else:
            target.mkdir(parents=True, exist_ok=True)
            for name, data in kit_files(kit).items():
                (target / name).write_bytes(data)
    return target


def load_kit(path: Path | str) -> Kit:
    """Read a kit back, from a folder or a zip.

    Raises
    ------
    NotFound
        Nothing lies there.
    BadInput
        It is no kit, of a newer version, or damaged.
    """
    source = Path(path)
    if not source.exists():
        raise NotFound(f"There is no kit at {source}.", "Make one: `theodolite stitch kit OUT`.")
    about, arrays = _read(source)
    if about.get("format") != FORMAT:
        raise BadInput(f"{source} is not a stitching kit.", "Make one: `theodolite stitch kit`.")
    if int(about["version"]) > VERSION:
        raise BadInput(
            f"{source} is a kit of version {about['version']}; this program reads {VERSION}.",
            "Update Theodolite.",
        )
    try:
        return _kit(about, arrays)
    except KeyError as err:
        raise BadInput(f"{source} is damaged: {err} is missing.", "Make the kit again.") from err


def _read(source: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        if source.is_dir():
            words, data = (source / ABOUT).read_bytes(), (source / ARRAYS).read_bytes()
        else:
            with zipfile.ZipFile(source) as packed:
                if sum(entry.file_size for entry in packed.infolist()) > _MOST_BYTES:
                    raise BadInput(f"{source} unpacks to more than 2 GiB and was not read.")
                words, data = packed.read(ABOUT), packed.read(ARRAYS)
        return json.loads(words), load(data)
    except (KeyError, OSError, ValueError, zipfile.BadZipFile, SafetensorError) as err:
        raise BadInput(
            f"{source} cannot be read as a kit ({err}).", "Make it again: `theodolite stitch kit`."
        ) from err


def _kit(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kit:
    encoders = {}
    for name, facts in about["encoders"].items():
        head, w = facts["prefix"], facts["whitening"]
        stats = None
        if w is not None:
            parts = {part: arrays[f"{head}.{part}"] for part in _PARTS}
            stats = Whitening(
                **parts, floor=float(arrays[f"{head}.floor"][0]), shrinkage=w["shrinkage"],
                n=w["n"], rank=w["rank"], dead=w["dead"],
            )  # fmt: skip
        reached = float("nan") if facts["test_accuracy"] is None else facts["test_accuracy"]
        encoders[name] = KitEncoder(arrays[f"{head}.anchors"], stats, facts["layer"], reached)
    head = Head(*(arrays[f"head.{part}"] for part in ("mean", "scale", "weights", "bias")))
    known = {
        "format", "version", "head_of", "classes", "similarity", "shrinkage", "n_anchors",
        "n_support", "encoders",
    }  # fmt: skip
    return Kit(
        head, about["head_of"], tuple(about["classes"]), about["similarity"], arrays["mixing"],
        arrays["support_ids"], arrays["train_ids"], about["shrinkage"], encoders,
        {key: value for key, value in about.items() if key not in known},
    )  # fmt: skip
