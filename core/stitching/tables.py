"""What the stitching page and the downloads read: results as flat tables with model ids.

Axes: S seeds, N encoders, n_test rows, k anchors, m support rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.compare.cka import linear_cka
from core.compare.neighbours import mutual_knn
from core.compare.procrustes import procrustes_distance
from core.stitching.effects import correlations, drop_one, nearest_anchors
from core.stitching.heads import fit_linear
from core.stitching.matrix import StitchResult, spread
from core.stitching.methods import Method, method_of
from core.stitching.param import ParamAnchors
from core.stitching.rows import Rows
from core.stitching.setting import Setting

TOP_WEIGHTS = 10
MOST_FAILURES = 240  # a cell shows pages of pictures; more than this nobody turns
LOSS_EVERY = 5
MUTUAL_K = 10


def matrix_table(results: Sequence[StitchResult], models: list[str]) -> pd.DataFrame:
    """Return one row per method, pair and seed: accuracy, f1."""
    parts = []
    for r in results:
        s, i, j = (a.ravel() for a in np.indices(r.accuracy.shape))
        parts.append(pd.DataFrame({
            "method": r.method, "i": np.take(models, i), "j": np.take(models, j), "seed": s,
            "accuracy": r.accuracy.ravel(), "f1": r.f1.ravel(),
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def cell_table(results: Sequence[StitchResult], models: list[str]) -> pd.DataFrame:
    """Return one row per method and pair: means, spreads, gap, retention, retrieval."""
    parts = []
    for r in results:
        i, j = (a.ravel() for a in np.indices(r.mean.shape))
        cells = pd.DataFrame({
            "method": r.method, "at_i": i, "at_j": j,
            "i": np.take(models, i), "j": np.take(models, j),
            "accuracy": r.mean.ravel(), "accuracy_sd": r.sd.ravel(),
            "f1": r.f1.mean(axis=0).ravel(), "f1_sd": spread(r.f1).ravel(),
            "gap": r.gap.ravel(), "retention": r.retention.ravel(),
        })  # fmt: skip
        found = r.retrieval.rename(columns={"i": "at_i", "j": "at_j", "cka": "relative_cka"})
        parts.append(cells.merge(found.drop(columns="n"), how="left", on=["at_i", "at_j"]))
    return pd.concat(parts, ignore_index=True).drop(columns=["at_i", "at_j"])


def summary_table(results: Sequence[StitchResult], models: list[str]) -> pd.DataFrame:
    """Return one row per method, best first by mean off-diagonal accuracy."""
    rows = []
    for r in results:
        n = len(models)
        off = ~np.eye(n, dtype=bool)
        worst = np.where(off, r.mean, np.inf)
        at = np.unravel_index(int(worst.argmin()), worst.shape)
        f1 = r.f1[:, off].mean(axis=1)
        rows.append({
            "method": r.method, "title": method_of(r.method).title,
            "accuracy": r.off_diagonal.mean(), "accuracy_sd": float(spread(r.off_diagonal)),
            "f1": f1.mean(), "f1_sd": float(spread(f1)),
            "worst": float(worst.min()), "worst_i": models[at[0]], "worst_j": models[at[1]],
            "diagonal": float(r.mean.diagonal().mean()),
            "gap": float(r.gap[off].mean()), "retention": float(r.retention[off].mean()),
            "R@1": r.retrieval["R@1"].mean(), "R@5": r.retrieval["R@5"].mean(),
            "MRR": r.retrieval["MRR"].mean(), "maps": r.n_maps,
            "shrinkage": "" if r.shrinkage is None else str(r.shrinkage), "seconds": r.seconds,
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values("accuracy", ascending=False, ignore_index=True)


def native_table(setting: Setting, result: StitchResult, models: list[str]) -> pd.DataFrame:
    """Return the absolute accuracy and macro F1 of each encoder's own head."""
    return pd.DataFrame({
        "model": models, "accuracy": result.native, "f1": result.native_f1,
        "dim": [x.shape[1] for x in setting.train],
    })  # fmt: skip


def similarity_table(setting: Setting, models: list[str]) -> pd.DataFrame:
    """Return CKA, mutual neighbours and Procrustes distance of each unordered pair (test rows)."""
    rows = []
    k = min(MUTUAL_K, len(setting.y_test) - 1)
    for i in range(len(models)):
        for j in range(i + 1, len(models)):
            a, b = setting.test[i], setting.test[j]
            rows.append({
                "i": models[i], "j": models[j], "cka": linear_cka(a, b),
                "mutual_knn": mutual_knn(a, b, k=k), "procrustes": procrustes_distance(a, b),
                "mutual_chance": k / (len(a) - 1),
            })  # fmt: skip
    return pd.DataFrame(rows)


def failure_tables(
    results: Sequence[StitchResult], models: list[str], rows: Rows
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the items that fail when stitched though native is right, and the confusions.

    Returns
    -------
    failures : DataFrame
        method, i, j, id, true, stitched (most frequent wrong answer), share (of seeds that
        fail); sorted by share; at most 240 a cell.
    confusion : DataFrame
        method, i, j, true, predicted, count (mean over seeds; zeros are not stored).
    """
    failures, confusion = [], []
    for r in results:
        y = np.searchsorted(r.classes, rows.y_test)
        native_right = r.native_predictions == y  # (N, n_test)
        for i in range(len(models)):
            for j in range(len(models)):
                said = r.predictions[:, i, j]  # (S, n_test)
                head = {"method": r.method, "i": models[i], "j": models[j]}
                ids = rows.test_ids_of[j] if rows.test_ids_of else rows.test_ids
                failures.append(_failures(said, y, native_right[j], r.classes, ids).assign(**head))
                confusion.append(_confusion(said, y, r.classes).assign(**head))
    names = ["method", "i", "j"]
    both = [pd.concat(part, ignore_index=True) for part in (failures, confusion)]
    ordered = [f[[*names, *(c for c in f.columns if c not in names)]] for f in both]
    return ordered[0], ordered[1]


def _failures(
    said: np.ndarray, y: np.ndarray, native_right: np.ndarray, classes: np.ndarray, ids: np.ndarray
) -> pd.DataFrame:
    wrong = said != y  # (S, n_test)
    share = wrong.mean(axis=0)
    at = np.flatnonzero(native_right & (share >= 0.5))
    at = at[np.argsort(-share[at], kind="stable")][:MOST_FAILURES]
    answers = [np.bincount(said[wrong[:, a], a]).argmax() for a in at]
    return pd.DataFrame({
        "id": ids[at], "true": classes[y[at]].astype(str),
        "stitched": classes[np.array(answers, dtype=int)].astype(str), "share": share[at],
    })  # fmt: skip


def _confusion(said: np.ndarray, y: np.ndarray, classes: np.ndarray) -> pd.DataFrame:
    C = len(classes)
    pairs = (y[None, :] * C + said).ravel()
    found, counts = np.unique(pairs, return_counts=True)
    return pd.DataFrame({
        "true": classes[found // C].astype(str), "predicted": classes[found % C].astype(str),
        "count": counts / len(said),
    })  # fmt: skip


def anchor_tables(
    fit: ParamAnchors, setting: Setting, seed: int, kind: str, models: list[str], rows: Rows
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the heaviest samples of each anchor, and a line about each anchor.

    Returns
    -------
    weights : DataFrame
        anchor, rank, id, weight; the ten heaviest of each.
    about : DataFrame
        anchor, n_eff, top_share (weight of those ten), label (heaviest class), label_share,
        label_n_eff (effective number of classes), norm (mean length over encoders, in
        whitened units), one ``norm MODEL`` column an encoder, coverage (share of test items it
        is closest to) and correlation (largest cosine with another anchor), both means over
        encoders.
    """
    draw = setting.draw(seed)
    ids = rows.train_ids[draw.rows[0][draw.support]]  # (m,)
    labels = setting.y_train[draw.rows[0][draw.support]]
    order = np.argsort(-fit.mixing, axis=1, kind="stable")[:, :TOP_WEIGHTS]  # (k, 10)
    top = np.take_along_axis(fit.mixing, order, axis=1)
    k = len(fit.mixing)
    weights = pd.DataFrame({
        "anchor": np.repeat(np.arange(k), order.shape[1]),
        "rank": np.tile(np.arange(1, order.shape[1] + 1), k),
        "id": ids[order].ravel(), "weight": top.ravel(),
    })  # fmt: skip
    shares = fit.mixing @ np.eye(len(setting.classes))[labels]  # (k, C)
    safe = np.where(shares > 0, shares, 1.0)
    norms = [
        np.linalg.norm(setting.whitening(i, kind).transform(fit.anchors(x)), axis=1)
        for i, x in enumerate(setting.parallel(draw))
    ]
    about = pd.DataFrame({
        "anchor": np.arange(k), "n_eff": fit.n_eff, "top_share": top.sum(axis=1),
        "label": setting.classes[shares.argmax(axis=1)].astype(str),
        "label_share": shares.max(axis=1),
        "label_n_eff": np.exp(-(shares * np.log(safe)).sum(axis=1)),
        "norm": np.mean(norms, axis=0),
        **{f"norm {m}": v for m, v in zip(models, norms, strict=True)},
    })  # fmt: skip
    made = [(fit.anchors(x), setting.whitening(i, kind))
            for i, x in enumerate(setting.parallel(draw))]  # fmt: skip
    near = [nearest_anchors(x, *m)[0] for x, m in zip(setting.test, made, strict=True)]
    about["coverage"] = np.mean([np.bincount(a, minlength=k) / len(a) for a in near], axis=0)
    about["correlation"] = np.mean([correlations(*m) for m in made], axis=0)
    return weights, about


def cover_table(
    fit: ParamAnchors, setting: Setting, seed: int, kind: str, models: list[str], rows: Rows
) -> pd.DataFrame:
    """Return the closest anchor of every test item: model, id, anchor, cosine (float32)."""
    parts = []
    for i, x in enumerate(setting.parallel(setting.draw(seed))):
        anchor, cosine = nearest_anchors(
            setting.test[i], fit.anchors(x), setting.whitening(i, kind)
        )
        ids = rows.test_ids_of[i] if rows.test_ids_of else rows.test_ids
        parts.append(pd.DataFrame({
            "model": models[i], "id": ids, "anchor": anchor, "cosine": cosine.round(4),
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def drop_table(setting: Setting, method: Method, seed: int) -> pd.DataFrame:
    """Return what each anchor is worth: the change of accuracy without it, over swapped pairs.

    Returns
    -------
    DataFrame
        drop_one (mean over ordered pairs of different encoders; below 0 where it helps) and
        drop_one_sd (over those pairs).
    """
    train, test = setting.relative(method, seed)
    N = setting.n_encoders
    # An anchor can be taken out of a linear head alone; the logistic one stands in for "tanh".
    linear = "logistic" if setting.options.head == "tanh" else setting.options.head
    effects = []
    for i in range(N):
        classes = np.unique(setting.y_train)
        head = fit_linear(train[i], setting.y_train, classes, kind=linear)
        effects += [drop_one(head, test[j], setting.y_test) for j in range(N) if j != i]
    found = np.array(effects)  # (N (N - 1), k)
    return pd.DataFrame({"drop_one": found.mean(axis=0), "drop_one_sd": spread(found)})


def loss_table(fits: Sequence[ParamAnchors]) -> pd.DataFrame:
    """Return the losses over time, every fifth step, one row per seed, step and term."""
    parts = []
    for seed, fit in enumerate(fits):
        for term, values in fit.losses.items():
            steps = np.arange(0, len(values), LOSS_EVERY)
            parts.append(
                pd.DataFrame({"seed": seed, "step": steps, "term": term, "value": values[steps]})
            )
    return pd.concat(parts, ignore_index=True)


def health_table(setting: Setting, kind: str, models: list[str]) -> pd.DataFrame:
    """Return how well each encoder's covariance is known, at the shrinkage taken for ``kind``."""
    rows = []
    for i, model in enumerate(models):
        w, s = setting.whitening(i, kind), setting.spectrum(i)
        rows.append({
            "model": model, "n_train": s.n, "dim": w.dim, "rank": w.rank,
            "effective_rank": w.effective_rank, "condition": w.condition, "dead": w.dead,
            "shrinkage": w.shrinkage, "ledoit_wolf": s.ledoit_wolf,
            "energy_ratio": w.energy_ratio(setting.test[i], setting.train[i]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def shrinkage_table(setting: Setting, kinds: Sequence[str]) -> pd.DataFrame:
    """Return every candidate the automatic choice tried, per kind of anchors."""
    parts = []
    for kind in kinds:
        choice = setting.choice(kind)
        if choice is not None:
            parts.append(pd.DataFrame({
                "anchors": kind, "candidate": [str(c) for c in choice.candidates],
                "mrr": choice.scores, "chosen": [c == choice.shrinkage for c in choice.candidates],
            }))  # fmt: skip
    columns = ["anchors", "candidate", "mrr", "chosen"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
