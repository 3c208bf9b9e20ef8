"""A small workspace that looks like the demo: pictures, texts, features, all drawn here."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from core.types import LeftOut
from core.workspace import Workspace, open_workspace

CONCEPTS = 24
DOMAINS = ("twemoji", "noto", "openmoji")
GROUPS = ("animals", "food", "objects")
LANGUAGES = ("en", "de", "fr")
HUES = {"twemoji": (0, 114, 178), "noto": (230, 159, 0), "openmoji": (0, 158, 115)}


def build(root: Path) -> Workspace:
    """Fill a workspace: "emoji" (72 pictures), "names" (72 texts), features of four encoders."""
    workspace = open_workspace(root)
    workspace.add_dataset(
        "emoji",
        "Drawn shapes",
        "image",
        _emoji(workspace),
        {"source": "drawn by the tests", "licence": "CC0"},
        [LeftOut("broken.png", "it could not be decoded", 2)],
    )
    workspace.add_dataset("names", "Names", "text", _names(), {"source": "tests"})
    layers = [f"block{i:02d}" for i in range(4)]
    _features(workspace, "emoji", "demo/vit-s14", layers, 24, seed=1)
    _features(workspace, "emoji", "demo/efficientnet-lite0", ["pool"], 32, seed=2)
    _features(workspace, "emoji", "demo/squeezenet1.1", ["pool"], 16, seed=3)
    _features(workspace, "names", "demo/minilm-l6", layers, 24, seed=4)
    _features(workspace, "names", "demo/e5-small", ["final"], 24, seed=5)
    return workspace


def _table() -> pd.DataFrame:
    rows = []
    for concept in range(CONCEPTS):
        for style in range(3):
            rows.append({"id": concept * 3 + style, "concept": f"shape {concept}", "style": style})
    frame = pd.DataFrame(rows)
    frame["label"] = [GROUPS[(i // 3) % 3] for i in range(len(frame))]
    frame["subgroup"] = [f"sub {(i // 3) % 6}" for i in range(len(frame))]
    frame["split"] = ["test" if (i // 3) % 3 == 2 else "train" for i in range(len(frame))]
    return frame


def _emoji(workspace: Workspace) -> pd.DataFrame:
    frame = _table()
    frame["domain"] = [DOMAINS[s] for s in frame.pop("style")]
    frame["caption"] = [
        f"{c} & <b>{d}</b>" for c, d in zip(frame.concept, frame.domain, strict=True)
    ]
    frame["sha256"] = workspace.blobs.put_many(
        [_picture(i // 3, d) for i, d in zip(frame.id, frame.domain, strict=True)]
    )
    return frame


def _picture(concept: int, domain: str) -> bytes:
    image = Image.new("RGB", (96, 96), "white")
    draw = ImageDraw.Draw(image)
    size = 20 + (concept * 7) % 24
    box = (48 - size, 48 - size, 48 + size, 48 + size)
    if concept % 3 == 0:
        draw.ellipse(box, fill=HUES[domain], outline="black", width=1 + concept % 4)
    elif concept % 3 == 1:
        draw.rectangle(box, fill=HUES[domain], outline="black", width=1 + concept % 4)
    else:
        draw.regular_polygon((48, 48, size), 3 + concept % 5, fill=HUES[domain], outline="black")
    draw.text((3, 3), str(concept), fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _names() -> pd.DataFrame:
    frame = _table()
    frame["domain"] = [LANGUAGES[s] for s in frame.pop("style")]
    frame["caption"] = [f"{c} in {d}" for c, d in zip(frame.concept, frame.domain, strict=True)]
    frame["sha256"] = ""
    return frame


def _features(
    workspace: Workspace, dataset: str, model: str, layers: list[str], d: int, *, seed: int
) -> None:
    data = workspace.dataset(dataset)
    rng = np.random.default_rng(seed)
    groups, domains = rng.normal(size=(3, d)), rng.normal(size=(3, d))
    concepts = rng.normal(size=(CONCEPTS, d))
    label = pd.Categorical(data.items.label).codes
    domain = pd.Categorical(data.items.domain).codes
    arrays = {}
    for depth, name in enumerate(layers):
        noise = rng.normal(size=(data.n, d))
        signal = groups[label] * (1 + depth) + domains[domain] + concepts[data.ids // 3]
        arrays[name] = (signal + 0.5 * noise).astype(np.float32)
    writer = workspace.features.writer(
        {"dataset_digest": data.digest, "model": model, "seed": seed},
        dataset=dataset,
        model=model,
        default_layer=layers[-1],
        n=data.n,
    )
    writer.write_shard(0, data.ids, arrays)
    writer.finish()
