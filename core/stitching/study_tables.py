"""The tables of the stitching study, from its pieces: means, intervals, comparisons, predictors.

Axes: S seeds, N spaces, U unordered pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import NotFound
from core.results import Result
from core.stats.bootstrap import spearman_cluster_bootstrap
from core.stitching.analysis import titles
from core.stitching.comparison import compare_methods, method_intervals
from core.stitching.methods import METHODS, method_of
from core.stitching.spaces import split_space
from core.stitching.study_pieces import matrices, stacked
from core.types import LeftOut

if TYPE_CHECKING:
    from core.stitching.study import Case
    from core.workspace import Workspace

MEASURES = ("cka", "mutual_knn", "procrustes")
PREDICTED = ("wip-param", "cosine-random", "ridge")
ALL, CROSS = "all pairs", "CNN with transformer"
CLAIMS = (("wip-param", "cosine-random"), ("wip-random", "cosine-random"))


def collect(
    workspace: Workspace,
    params: dict[str, Any],
    cases: Sequence[Case],
    main: dict[str, dict[str, Result]],
    curves: Sequence[tuple[dict[str, Any], Result]],
    left_out: tuple[LeftOut, ...] = (),
) -> Result:
    """Return the study as one result; every number comes from the pieces given."""
    seed = params["seed"]
    methods, comparison = [], []
    for case in cases:
        values = {
            name: matrices(main[case.name], list(case.spaces), name) for name in ("accuracy", "f1")
        }
        for scope, keep in _scopes(workspace, case):
            head = {"case": case.name, "scope": scope}
            shown = {m: _masked(v, keep) for m, v in values["accuracy"].items()}
            methods.append((head, _methods(shown, main[case.name], case, keep, values, seed)))
            comparison.append((head, _compare(shown, seed)))
    first = {case.name: next(iter(main[case.name].values())) for case in cases}
    cells = [({"case": c.name}, r.tables["cells"]) for c in cases for r in main[c.name].values()]
    tables = {
        "methods": stacked(methods),
        "comparison": stacked(comparison),
        "cells": stacked(cells),
        "native": stacked([({"case": n}, r.tables["native"]) for n, r in first.items()]),
        "similarity": stacked([({"case": n}, r.tables["similarity"]) for n, r in first.items()]),
        "advice": stacked([
            ({"case": c.name, "method": _best(main[c.name])},
             main[c.name][_best(main[c.name])].tables["advice"]) for c in cases
        ]),
        "predicts": _predicts(cases, main, first, seed),
        "curves": _curves(curves, seed),
        "cases": _cases(cases, main, first),
    }  # fmt: skip
    claims = _claims(tables["comparison"])
    spaces = sorted({s for case in cases for s in case.spaces})
    summary = {
        "headline": _headline(tables["methods"], claims),
        "n": int(sum(r.summary["n"] for r in first.values())),
        "claims": claims,
        "explained": _explained(tables["curves"], params),
        "titles": dict(zip(spaces, titles(workspace, spaces), strict=True)),
        "case_titles": {case.name: case.title for case in cases},
        "seeds": params["seeds"], "sweep_seeds": params["sweep_seeds"],
        "piece_seconds": float(
            sum(r.summary["seconds"] for per in main.values() for r in per.values())
            + sum(r.summary["seconds"] for _, r in curves)
        ),
    }  # fmt: skip
    return Result(
        "stitching-study", params, summary, tables, left_out=left_out + _left_out(first, cases)
    )


def _scopes(workspace: Workspace, case: Case) -> list[tuple[str, np.ndarray]]:
    """Return which unordered pairs are looked at: all, and those of CNN with transformer."""
    from core.encoders.registry import describe

    def is_transformer(space: str) -> bool | None:
        try:
            arch = describe(split_space(space)[0], workspace).arch_class.lower()
        except NotFound:
            return None
        if any(word in arch for word in ("vit", "transformer")):
            return True
        # The towers of a dual encoder read another encoder's features: neither of the two.
        return False if any(word in arch for word in ("cnn", "resnet", "conv")) else None

    kinds = [is_transformer(space) for space in case.spaces]
    i, j = np.triu_indices(len(kinds), 1)
    every = np.ones(len(i), dtype=bool)
    cross = np.array([{kinds[a], kinds[b]} == {True, False} for a, b in zip(i, j, strict=True)])
    found = [(ALL, every)]
    if cross.any() and not cross.all() and "|" not in case.spaces[0]:
        found.append((CROSS, cross))
    return found


def _masked(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the matrices with the pairs that are not looked at set to NaN."""
    out = values.copy()
    i, j = np.triu_indices(values.shape[1], 1)
    out[:, i[~keep], j[~keep]] = out[:, j[~keep], i[~keep]] = np.nan
    return out


def _methods(
    shown: dict[str, np.ndarray],
    pieces: dict[str, Result],
    case: Case,
    keep: np.ndarray,
    values: dict[str, dict[str, np.ndarray]],
    seed: int,
) -> pd.DataFrame:
    frame = method_intervals(shown, seed=seed).rename(
        columns={"mean": "accuracy", "low": "accuracy_low", "high": "accuracy_high"}
    )
    f1 = {m: _masked(v, keep) for m, v in values["f1"].items()}
    spread = method_intervals(f1, seed=seed).set_index("method")
    for name, column in (("f1", "mean"), ("f1_low", "low"), ("f1_high", "high")):
        frame[name] = spread.loc[frame["method"], column].to_numpy()
    off = _off_diagonal(case, keep)
    for name in ("gap", "retention", "R@1", "R@5", "MRR"):
        frame[name] = [
            float(_wide(pieces[m].tables["cells"], case, name)[off].mean()) for m in frame["method"]
        ]
    frame["diagonal"] = [
        float(_wide(pieces[m].tables["cells"], case, "accuracy").diagonal().mean())
        for m in frame["method"]
    ]
    frame["worst"] = [
        float(_wide(pieces[m].tables["cells"], case, "accuracy")[off].min())
        for m in frame["method"]
    ]
    frame["shrinkage"] = [pieces[m].summary["shrinkage"] for m in frame["method"]]
    frame["maps"] = [METHODS[m].n_maps(len(case.spaces)) for m in frame["method"]]
    return frame


def _off_diagonal(case: Case, keep: np.ndarray) -> np.ndarray:
    mask = np.zeros((len(case.spaces),) * 2, dtype=bool)
    i, j = np.triu_indices(len(case.spaces), 1)
    mask[i[keep], j[keep]] = mask[j[keep], i[keep]] = True
    return mask


def _wide(cells: pd.DataFrame, case: Case, column: str) -> np.ndarray:
    spaces = list(case.spaces)
    table = cells.pivot(index="i", columns="j", values=column)
    return np.asarray(table.loc[spaces, spaces].to_numpy(float))


def _compare(shown: dict[str, np.ndarray], seed: int) -> pd.DataFrame:
    return compare_methods(shown, seed=seed)


def _best(pieces: dict[str, Result]) -> str:
    """Return the best relative method of a case by its mean off the diagonal."""
    means = {}
    for method, piece in pieces.items():
        if not method_of(method).translator:
            cells = piece.tables["cells"]
            means[method] = float(cells.loc[cells["i"] != cells["j"], "accuracy"].mean())
    return max(means, key=lambda m: means[m]) if means else next(iter(pieces))


def _predicts(
    cases: Sequence[Case], main: dict[str, dict[str, Result]], first: dict[str, Result], seed: int
) -> pd.DataFrame:
    """Return how well each similarity ranks pairs by what a swap keeps, per case and pooled.

    Both directions of a pair form one cluster. Pooled: ranks within each case, so that a case
    with high accuracy throughout does not make the correlation.
    """
    rows, pooled = [], []
    for case in cases:
        similar = first[case.name].tables["similarity"]
        for method in (m for m in PREDICTED if m in main[case.name]):
            cells = main[case.name][method].tables["cells"]
            kept = {(r.i, r.j): r.retention for r in cells.itertuples()}
            pairs = [(r.i, r.j) for r in similar.itertuples()]
            both = np.array([kept[p] for p in pairs] + [kept[p[::-1]] for p in pairs])
            cluster = np.tile(np.arange(len(pairs)), 2)
            for measure in MEASURES:
                x = np.tile(similar[measure].to_numpy(float), 2)
                rows.append(_rho(case.name, method, measure, x, both, cluster, seed))
                ranks = [pd.Series(v).rank(pct=True).to_numpy() for v in (x, both)]
                names = np.array([f"{case.name}/{c}" for c in cluster])
                pooled.append((method, measure, *ranks, names))
    for method in dict.fromkeys(p[0] for p in pooled):
        for measure in MEASURES:
            mine = [p[2:] for p in pooled if p[:2] == (method, measure)]
            x, y, names = (np.concatenate([m[at] for m in mine]) for at in range(3))
            rows.append(_rho("all", method, measure, x, y, names, seed))
    return pd.DataFrame(rows)


def _rho(
    case: str, method: str, measure: str, x: np.ndarray, y: np.ndarray, cluster: np.ndarray,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    got = spearman_cluster_bootstrap(x, y, cluster, seed=seed)
    known = got.n_clusters >= 5  # an interval from fewer pairs would be no interval
    return {
        "case": case, "method": method, "measure": measure, "rho": got.rho,
        "low": got.lo if known else np.nan, "high": got.hi if known else np.nan,
        "p": got.p if known else np.nan, "n_pairs": got.n_clusters,
    }  # fmt: skip


def _curves(curves: Sequence[tuple[dict[str, Any], Result]], seed: int) -> pd.DataFrame:
    """Return the sweeps: one row a case, axis, value and method, with an interval."""
    rows = []
    for head, piece in curves:
        spaces = list(piece.params["models"])
        got = matrices({head["method"]: piece}, spaces, "accuracy")
        line = method_intervals(got, seed=seed).iloc[0]
        cells = piece.tables["cells"]
        off = cells["i"] != cells["j"]
        rows.append({
            **head, "accuracy": line["mean"], "low": line["low"], "high": line["high"],
            "R@1": float(cells.loc[off, "R@1"].mean()), "shrinkage": piece.summary["shrinkage"],
            "n_seeds": int(line["n_seeds"]), "n_pairs": int(line["n_pairs"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _cases(
    cases: Sequence[Case], main: dict[str, dict[str, Result]], first: dict[str, Result]
) -> pd.DataFrame:
    rows = []
    for case in cases:
        s = first[case.name].summary
        rows.append({
            "case": case.name, "title": case.title, "spaces": len(case.spaces), "n_test": s["n"],
            "n_train": s["n_train"], "n_parallel": s["n_parallel"], "classes": s["n_classes"],
            "majority": s["majority"], "best": _best(main[case.name]),
            "native": float(first[case.name].tables["native"]["accuracy"].mean()),
            "split": s["split"],
        })  # fmt: skip
    return pd.DataFrame(rows)


def _claims(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what became of the paper's two statements in each case and scope."""
    found = []
    for (case, scope), part in comparison.groupby(["case", "scope"], sort=False):
        for a, b in CLAIMS:
            line, sign = part[(part["a"] == a) & (part["b"] == b)], 1.0
            if not len(line):
                line, sign = part[(part["a"] == b) & (part["b"] == a)], -1.0
            if not len(line):
                continue
            row = line.iloc[0]
            ends = sorted([sign * row["low"], sign * row["high"]])
            found.append({
                "case": str(case), "scope": str(scope), "a": a, "b": b,
                "difference": float(sign * row["difference"]), "low": float(ends[0]),
                "high": float(ends[1]), "q": float(row["q"]), "n_pairs": int(row["n_pairs"]),
                "verdict": _verdict(ends[0], ends[1], float(row["q"])),
            })  # fmt: skip
    return found


def _verdict(low: float, high: float, q: float) -> str:
    if q < 0.05 and low > 0:
        return "above"
    return "below" if q < 0.05 and high < 0 else "cannot tell"


def _headline(methods: pd.DataFrame, claims: list[dict[str, Any]]) -> str:
    gain = [c for c in claims if (c["a"], c["b"]) == CLAIMS[0] and c["scope"] == ALL]
    noise = [c for c in claims if (c["a"], c["b"]) == CLAIMS[1] and c["scope"] == ALL]
    if not gain:
        best = methods.loc[methods["accuracy"].idxmax()]
        return f"{method_of(best['method']).title} is best: {100 * best['accuracy']:.0f} %."
    up = sum(c["verdict"] == "above" for c in gain)
    span = sorted(100 * c["difference"] for c in gain)
    words = (
        f"PARAM with WIP lies above random anchors with cosine in {up} of {len(gain)} comparisons "
        f"(by {span[0]:.0f} to {span[-1]:.0f} points)"
    )
    if noise:
        below = sum(c["verdict"] == "below" for c in noise)
        words += f"; random anchors with WIP lie below cosine in {below} of {len(noise)}"
    return words + "."


def _explained(curves: pd.DataFrame, params: dict[str, Any]) -> str:
    """Return what the sweep over shrinkage says of random anchors under WIP, in one sentence.

    The paper's shrinkage was not available; its precursor whitens with almost none.
    """
    if not len(curves):
        return ""
    random = curves[curves["method"] == "wip-random"]
    swept = random[(random["axis"] == "shrinkage") & (random["x"] != "lw")]
    plain = curves[
        (curves["method"] == "cosine-random")
        & (curves["axis"] == "anchors")
        & (curves["x"] == str(params["n_anchors"]))
    ]
    if not len(swept) or not len(plain):
        return ""
    least = swept.loc[swept["x"].astype(float).idxmin()]
    best = swept.loc[swept["accuracy"].idxmax()]
    base = plain.iloc[0]
    return (
        f"On {least['case']}, random anchors reach {_percent(least)} under WIP at shrinkage "
        f"{float(least['x']):g}, {_percent(base)} under cosine, and {_percent(best)} under WIP at "
        f"shrinkage {float(best['x']):g}: whether whitening harms them is a matter of how much is "
        "shrunk. The paper's shrinkage was not available; with almost none its ordering appears."
        if least["high"] < base["accuracy"]
        else f"On {least['case']}, random anchors reach {_percent(least)} under WIP at shrinkage "
        f"{float(least['x']):g} and {_percent(base)} under cosine: even almost unshrunk, whitening "
        "does not harm them here."
    )


def _percent(row: pd.Series) -> str:
    low, high = 100 * row["low"], 100 * row["high"]
    return f"{100 * row['accuracy']:.1f} % [{low:.1f}, {high:.1f}]"


def _left_out(first: dict[str, Result], cases: Sequence[Case]) -> tuple[LeftOut, ...]:
    found = [line for result in first.values() for line in result.left_out]
    swept = [case.name for case in cases if case.sweep]
    unswept = [case.name for case in cases if not case.sweep]
    if swept and unswept:
        found.append(LeftOut(
            ", ".join(unswept), f"no sweeps: those on {', '.join(swept)} explain the result",
            len(unswept),
        ))  # fmt: skip
    return tuple(found)
