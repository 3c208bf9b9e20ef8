"""Train and measure the demo's dual encoders; run as ``python -m core.encoders.lit TABLE``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.catalogue import LIT_PAIRS
from core.encoders.demo import projection
from core.encoders.lit import BATCH, EPOCHS, RATE, WIDTH, save, train
from core.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    import pandas as pd

# Never seen in training, so that the demo holds a style that is new to the pairs.
UNSEEN_STYLE = "fluent-hc"


def main(argv: Sequence[str] | None = None) -> int:
    """Train both pairs and print what they reach on the demo's emoji."""
    import pandas as pd

    parser = argparse.ArgumentParser(prog="python -m core.encoders.lit", description=__doc__)
    parser.add_argument("table", type=Path, help="Parquet with id, concept, caption, domain, bytes")
    parser.add_argument("--workspace", type=Path, help="holds the fetched weights and the demo")
    parser.add_argument("--only", choices=sorted(LIT_PAIRS), help="train one pair")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    space = open_workspace(args.workspace)
    table = pd.read_parquet(args.table)
    table = table[table["domain"] != UNSEEN_STYLE]
    add_training_set(space, table)
    for name in [args.only] if args.only else list(LIT_PAIRS):
        about = train_pair(space, name, seed=args.seed)
        print(name, about["held_out"], flush=True)
    return 0


TRAINING_SET = "emoji-rest"


def add_training_set(space: Workspace, table: pd.DataFrame) -> None:
    """Put the training pictures into the workspace, so that their features are stored."""
    space.blobs.put_many(table["bytes"].tolist())
    columns = ["id", "sha256", "label", "domain", "split", "caption", "concept"]
    space.add_dataset(
        TRAINING_SET,
        "Emoji the demo does not hold",
        "image",
        table[columns],
        meta={"note": "Training set of the demo's dual encoders."},
        replace=True,
    )


def train_pair(space: Workspace, name: str, *, seed: int = 0) -> dict[str, Any]:
    """Train one pair, measure it on the demo's emoji, write its file and return its facts."""
    _, image_towers, text_towers = LIT_PAIRS[name]
    image, ids = _joined(space, TRAINING_SET, image_towers)
    text, text_ids = _joined(space, TRAINING_SET, text_towers)
    common, at_image, at_text = np.intersect1d(ids, text_ids, return_indices=True)
    concepts = space.dataset(TRAINING_SET).subset(common)["concept"]
    kinds = np.unique(concepts.to_numpy().astype(str), return_inverse=True)[1]
    tensors = train(image[at_image], text[at_text], kinds, seed=seed)
    about = {
        "title": f"LiT-style pair, trained here: {LIT_PAIRS[name].title}",
        "pairs": len(common),
        "concepts": int(kinds.max()) + 1,
        "seed": seed,
        "recipe": f"linear {WIDTH} each, symmetric InfoNCE with multi-positives, AdamW {RATE}, "
        f"{EPOCHS} epochs, batch {BATCH}",
        "unseen_style": UNSEEN_STYLE,
        "licence": "Apache-2.0",
    }
    about["held_out"] = measure(space, name, tensors)
    save(projection(name), tensors, about)
    return about


def measure(
    space: Workspace, name: str, tensors: dict[str, np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return R@1 and R@5 in both directions on the demo's emoji, one entry a style.

    Within a style every concept has one picture and one caption: chance is 1 and 5 over the
    number of concepts.
    """
    _, image_towers, text_towers = LIT_PAIRS[name]
    joint = {}
    for side, towers in (("image", image_towers), ("text", text_towers)):
        raw, ids = _joined(space, "emoji", towers)
        z = ((raw - tensors[f"{side}.mean"]) * tensors[f"{side}.scale"]) @ tensors[f"{side}.weight"]
        z = z + tensors[f"{side}.bias"]
        joint[side] = (z / np.linalg.norm(z, axis=1, keepdims=True), ids)
    items = space.dataset("emoji").items.set_index("id")
    report = {}
    common = np.intersect1d(joint["image"][1], joint["text"][1])
    style = items.loc[common, "domain"].to_numpy()
    a, b = (_rows(joint[side], common) for side in ("image", "text"))
    for name_of_style in sorted(set(style)):
        own = style == name_of_style
        score = a[own] @ b[own].T
        report[str(name_of_style)] = {
            "n": int(own.sum()),
            **{f"image_text_r{k}": round(recall(score, k), 4) for k in (1, 5)},
            **{f"text_image_r{k}": round(recall(score.T, k), 4) for k in (1, 5)},
        }
    return report


def recall(score: np.ndarray, k: int) -> float:
    """Return the share of rows whose own column is among the k highest; ties count against.

    Examples
    --------
    >>> recall(np.eye(3), 1), recall(np.ones((3, 3)), 1)
    (1.0, 0.0)
    """
    own = np.diag(score)[:, None]
    better = (score >= own).sum(axis=1) - 1
    return float((better < k).mean())


def _rows(side: tuple[np.ndarray, np.ndarray], ids: np.ndarray) -> np.ndarray:
    x, held = side
    order = np.argsort(held)
    return x[order[np.searchsorted(held, ids, sorter=order)]]


def _joined(
    space: Workspace, dataset: str, towers: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the towers' features side by side, and their ids; extracted when not stored."""
    from core.extract import run_extract

    found = []
    for model, layer in towers:
        stored = space.features.find(dataset, model)
        if stored is None or layer not in stored.layers:
            stored = run_extract(space, dataset, model, layers=[layer])
        found.append((stored, layer))
    ids = found[0][0].ids
    parts = [np.asarray(features.layer(layer))[features.rows_of(ids)] for features, layer in found]
    return np.concatenate(parts, axis=1), ids
