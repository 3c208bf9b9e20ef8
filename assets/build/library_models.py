"""List what the installed libraries can load by name, as ``assets/registry/library_models.csv``.

Run once by hand for a release of the libraries::

    python assets/build/library_models.py --out assets/registry

Names only: nothing is downloaded and no model is built.
"""

from __future__ import annotations

import argparse
import csv
from importlib.metadata import version
from pathlib import Path

FIELDS = ("id", "library", "arch", "hub_id", "licence", "input_size", "modality")


def timm_rows() -> list[dict[str, str]]:
    """Return timm's pretrained names."""
    import timm

    rows = []
    for name in timm.list_pretrained():
        config = timm.get_pretrained_cfg(name)
        rows.append(
            {
                "id": f"timm/{name}",
                "library": "timm",
                "arch": name.partition(".")[0],
                "hub_id": config.hf_hub_id or "",
                "licence": config.license or "",
                "input_size": str(config.input_size[-1]),
                "modality": "image",
            }
        )
    return rows


def open_clip_rows() -> list[dict[str, str]]:
    """Return both towers of open_clip's pretrained pairs."""
    import open_clip

    rows = []
    for arch, tag in open_clip.list_pretrained():
        config = open_clip.pretrained.get_pretrained_cfg(arch, tag)
        size = open_clip.get_model_config(arch)["vision_cfg"].get("image_size", "")
        for side in ("image", "text"):
            rows.append(
                {
                    "id": f"open_clip/{arch}:{tag}/{side}",
                    "library": "open_clip",
                    "arch": arch,
                    "hub_id": str(config.get("hf_hub", "")).rpartition("/")[0],
                    "licence": "",
                    "input_size": str(size),
                    "modality": side,
                }
            )
    return rows


def torchvision_rows() -> list[dict[str, str]]:
    """Return torchvision's classifiers with their weight sets."""
    from torchvision import models

    rows = []
    for arch in models.list_models(module=models):
        for weights in models.get_model_weights(arch):
            rows.append(
                {
                    "id": f"torchvision/{arch}.{weights.name}",
                    "library": "torchvision",
                    "arch": arch,
                    "hub_id": "",
                    "licence": "",
                    "input_size": "",
                    "modality": "image",
                }
            )
    return rows


def main() -> None:
    """Write the table, sorted, with the libraries' versions in SOURCE.md's words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = sorted(timm_rows() + open_clip_rows() + torchvision_rows(), key=lambda r: r["id"])
    with (args.out / "library_models.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    names = ("timm", "open_clip_torch", "torchvision")
    print(len(rows), "rows:", ", ".join(f"{name} {version(name)}" for name in names))


if __name__ == "__main__":
    main()
