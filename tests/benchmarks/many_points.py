"""A workspace of many points for the maps: pictures drawn here, features in clumps, PCA stored.

``python -m tests.benchmarks.many_points HOME N`` makes one; the browser test and the benchmark
of the large map use :func:`build`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from core import analyses
from core.workspace import Workspace, open_workspace

CLUMPS = 12
PICTURES = 48
MODELS = ("wide", "narrow")


def build(home: Path, n: int, *, seed: int = 0) -> Workspace:
    """Fill a workspace with "many": n items, two feature sets of 16 and 8 numbers, both maps.

    Item i is in clump ``i % 12``; its label is the clump and its picture shows it.
    """
    workspace = open_workspace(home)
    shas = [workspace.blobs.put(_picture(k)) for k in range(PICTURES)]
    clump = np.arange(n) % CLUMPS
    items = pd.DataFrame(
        {
            "id": np.arange(n, dtype=np.int64),
            "sha256": np.array(shas, dtype=object)[np.arange(n) % PICTURES],
            "label": pd.Series(clump).map(lambda k: f"clump {k:02d}"),
            "domain": np.where(np.arange(n) % 5 == 0, "drawn", "printed"),
            "caption": [f"item {i}" for i in range(n)],
            "weight": np.random.default_rng(seed).gamma(2.0, size=n).round(3),
        }
    )
    data = workspace.add_dataset("many", "Many points", "image", items, {"source": "drawn here"})
    rng = np.random.default_rng(seed)
    for model, d in zip(MODELS, (16, 8), strict=True):
        centres = rng.normal(size=(CLUMPS, d)) * 5.0
        writer = workspace.features.writer(
            {"dataset_digest": data.digest, "model": model},
            dataset="many",
            model=model,
            default_layer="out",
            n=n,
            shard_size=n,
        )
        noise = rng.standard_normal((n, d), dtype=np.float32)
        writer.write_shard(0, data.ids, {"out": centres[clump].astype(np.float32) + noise})
        writer.finish()
        for metric in ("cosine",):
            analyses.run(
                "explore", workspace, dataset="many", model=model, metric=metric, max_points=n
            )
    return workspace


def _picture(k: int) -> bytes:
    image = Image.new("RGB", (64, 64), "white")
    draw = ImageDraw.Draw(image)
    angle = np.linspace(0, 2 * np.pi, 3 + k % CLUMPS, endpoint=False)
    corners = [(32 + 26 * float(np.cos(a)), 32 + 26 * float(np.sin(a))) for a in angle]
    draw.polygon(corners, fill=tuple(int(v) for v in (40 + 4 * k, 90 + 2 * k, 160)))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]))
