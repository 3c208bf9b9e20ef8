"""The analysis "alignment": how far the reference can learn what the target holds together.

KODA (arXiv 2606.04180) Section 6 fine-tunes the weaker model on the samples of its
contrastive sets, with the kernel alignment objective of KUEA (Gong 2025). Here the features
are frozen and a residual adapter f(z) = z + W2 gelu(W1 z) is trained on them: "adapter
alignment", not the paper's fine-tuning. Half of every set is held out; agreement of k-means
with the sets, drift elsewhere and retrieval are measured on what training has not seen.

Axes: n samples, d features, k sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.results import Result

if TYPE_CHECKING:
    from core.contrast.adapter import Adapter
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "alignment"
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "target": "demo/vit-s14",
    "reference": "demo/squeezenet1.1",
    "modality": "image",
    "epsilon": 2.0,
    "group_size": None,
    "n_directions": 10,
    "directions": [],
    "steps": 300,
    "batch": 256,
    "weight": 1.0,
    "keep": 0.1,
    "seed": 0,
}
LEAST_SETS = 2
_PASSED_ON = ("dataset", "target", "reference", "modality", "epsilon", "group_size",
              "n_directions", "seed")  # fmt: skip


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; empty ``directions`` means every group that was found.

    Raises
    ------
    BadInput, NotFound
        As the contrast analysis; or a number out of range.
    """
    from core.contrast import analysis

    full = {**DEFAULTS, **params}
    settled = analysis.resolve(workspace, {k: full[k] for k in _PASSED_ON})
    full |= {k: settled[k] for k in _PASSED_ON}
    for name, low, high in (("steps", 1, 20_000), ("batch", 16, 4_096)):
        if not isinstance(full[name], int) or not low <= full[name] <= high:
            raise BadInput(f"{name}={full[name]!r} must be a whole number, {low} to {high:,}.")
    for name in ("weight", "keep"):
        full[name] = float(full[name])
        if not 0.0 <= full[name] <= 1e6:
            raise BadInput(
                f"{name}={full[name]} must be at least 0.", f"The default is {DEFAULTS[name]:g}."
            )
    full["directions"] = sorted({int(d) for d in full["directions"]})
    return full


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Train the adapter on half of the sets and measure it on the other half.

    Returns
    -------
    Result
        Tables ``agreement`` (before, after, target: AMI, NMI, ARI and silhouette on the
        held-out half), ``drift``, ``retrieval``, ``losses`` and ``samples`` (id, direction,
        split: the list for a fine-tuning of the encoder itself).
    """
    from core import analyses
    from core.contrast.adapter import train
    from core.contrast.analysis import read_inputs
    from core.device import single_threaded

    report = progress or (lambda _fraction, _message: None)
    wanted = {k: params[k] for k in _PASSED_ON}
    found = analyses.run("contrast", workspace, progress=lambda f, m: report(0.6 * f, m), **wanted)
    items, tables, left_out = read_inputs(workspace, found.params)
    ids = items["id"].to_numpy(dtype=np.int64)
    samples = split_samples(found, params["directions"], params["seed"])
    at = pd.Series(np.arange(len(ids)), index=ids)
    rows = at.loc[samples["id"]].to_numpy()
    first = next(iter(tables[0]))
    target, reference = (unit(t[first]) for t in tables)
    trained = rows[(samples["split"] == "train").to_numpy()]
    with single_threaded():
        adapter = train(
            reference, target, trained, steps=params["steps"], batch=params["batch"],
            weight=params["weight"], keep=params["keep"], seed=params["seed"],
            progress=lambda f, m: report(0.6 + 0.35 * f, m),
        )  # fmt: skip
        out = _measures(adapter, target, reference, samples, rows, tables, params["seed"])
    caption = items.set_index("id")["caption"]
    samples["caption"] = samples["id"].map(caption)
    out |= {"samples": samples, "losses": adapter.losses}
    summary = _summary(out, samples, len(items), found)
    return Result(KIND, params, summary, out, left_out=tuple(left_out))


def unit(x: np.ndarray) -> np.ndarray:
    """Return rows centred and of unit length, float32."""
    from core.linalg.kernels import unit_rows

    return unit_rows(x).astype(np.float32)


def split_samples(contrast: Result, directions: list[int], seed: int) -> pd.DataFrame:
    """Return the samples of the chosen sets, half of each for training and half held out.

    A sample of several sets belongs to the first.

    Raises
    ------
    BadInput
        Fewer than two sets: agreement needs something to tell apart.
    """
    table = contrast.tables["directions"]
    if "is_group" not in table:
        raise BadInput("No direction meets this epsilon, so there is nothing to align.")
    groups = table[table["is_group"].fillna(False).astype(bool)]["direction"].astype(int)
    chosen = [d for d in (directions or list(groups)) if d in set(table["direction"])]
    if len(chosen) < LEAST_SETS:
        raise BadInput(
            f"{len(chosen)} groups were found; an alignment needs at least {LEAST_SETS}.",
            "Choose a finer group size, or name directions.",
        )
    members = contrast.tables["members"]
    mine = members[members["direction"].isin(chosen) & (members["pole"] == 1)]
    mine = mine.drop_duplicates("id")[["id", "direction", "score"]].reset_index(drop=True)
    rng = np.random.default_rng([seed, 5])
    split = np.empty(len(mine), dtype=object)
    for _, rows in mine.groupby("direction").indices.items():
        turned = rng.permutation(rows)
        split[turned] = ["train" if i % 2 == 0 else "held out" for i in range(len(turned))]
    return mine.assign(split=split)


def _measures(
    adapter: Adapter,
    target: np.ndarray,
    reference: np.ndarray,
    samples: pd.DataFrame,
    rows: np.ndarray,
    tables: list[dict[str, np.ndarray]],
    seed: int,
) -> dict[str, pd.DataFrame]:
    from core.contrast.agreement import agreement

    after = adapter(reference)
    held = (samples["split"] == "held out").to_numpy()
    labels = samples["direction"].to_numpy()[held]
    spaces = {"before": reference, "after": after, "target": target}
    scores = [
        {"space": name, **agreement(x[rows[held]], labels, seed=seed), "samples": int(held.sum())}
        for name, x in spaces.items()
    ]
    moved = 1.0 - (reference * after).sum(axis=1)
    inside = np.zeros(len(reference), dtype=bool)
    inside[rows] = True
    out = {
        "agreement": pd.DataFrame(scores),
        "drift": pd.DataFrame(
            [
                _drift("held-out samples of the sets", moved[rows[held]]),
                _drift("samples outside the sets", moved[~inside]),
            ]
        ),
    }
    out["retrieval"] = pd.DataFrame(
        [
            {"space": name, "samples": part, "recall_at_1": recall_at_1(x[r], target[r]),
             "queries": len(r)}
            for name, x in (("before", reference), ("after", after))
            for part, r in (("outside", np.flatnonzero(~inside)), ("held out", rows[held]))
        ]
    )  # fmt: skip
    return out


def _drift(where: str, moved: np.ndarray) -> dict[str, object]:
    if not len(moved):
        return {"where": where, "mean": np.nan, "highest_95": np.nan, "samples": 0}
    return {
        "where": where,
        "mean": float(moved.mean()),
        "highest_95": float(np.quantile(moved, 0.95)),
        "samples": len(moved),
    }


def recall_at_1(x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of samples whose nearest neighbour in ``x`` is also their nearest in ``y``.

    Two encoders of one picture have no common space, so this asks whether neighbours are kept.
    nan for fewer than three samples.

    Examples
    --------
    >>> recall_at_1(np.eye(3), np.eye(3))
    1.0
    """
    if len(x) < 3:
        return float("nan")
    nearest = []
    for space in (x, y):
        similarity = space @ space.T
        np.fill_diagonal(similarity, -np.inf)
        nearest.append(similarity.argmax(axis=1))
    return float((nearest[0] == nearest[1]).mean())


def _summary(
    out: dict[str, pd.DataFrame], samples: pd.DataFrame, n: int, contrast: Result
) -> dict[str, Any]:
    ami = out["agreement"].set_index("space")["AMI"]
    drift = out["drift"]["mean"]
    elsewhere = float(drift.iloc[1])
    headline = (
        f"AMI on held-out samples {ami['before']:.2f} before, {ami['after']:.2f} after, "
        f"{ami['target']:.2f} in the target; drift elsewhere {elsewhere:.3f}."
    )
    return {
        "headline": headline,
        "n": n,
        "n_sets": int(samples["direction"].nunique()),
        "n_train": int((samples["split"] == "train").sum()),
        "n_held_out": int((samples["split"] == "held out").sum()),
        "ami_before": float(ami["before"]),
        "ami_after": float(ami["after"]),
        "ami_target": float(ami["target"]),
        "drift_elsewhere": elsewhere,
        "contrast_key": contrast.key,
    }
