"""The tables of the transfer study, from its pieces: correlations, intervals, and why.

The interval of a mean rho comes from drawing whole targets anew: the encoders of one target see
the same pictures and the same gains of data.

Axes: P pieces (encoder x target), M measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.radar.study_reading import explain, headline, piece_verdict
from core.results import Result
from core.stats import benjamini_hochberg, cluster_mean_interval, sign_flip_p, spearman
from core.types import LeftOut

KIND = "transfer-study"
BASE = "radar: base: joint"
PLAIN = ("size", "distance_of_means", "distance_of_class_means")
EVERY, DEEP = "every encoder", "encoders with several layers"
_FACTS = (
    "n", "n_train", "leaks", "baseline", "baseline_sd", "reliability", "states", "transitions",
    "projected", "null", "nearest", "farthest", "far", "seconds",
)  # fmt: skip


# Named, because a study in which all blends gained alike has tables without a row.
_CONFIGURATIONS = [
    "dataset", "scope", "measure", "column", "family", "rho", "low", "high", "p", "place",
    "kendall", "rho_within_size", "least", "most", "positive", "significant", "inverted",
    "targets", "pieces", "blends", "unknown", "seconds",
]  # fmt: skip
_VERSUS = [
    "dataset", "scope", "other", "column", "family", "difference", "low", "high", "verdict",
    "pieces",
]  # fmt: skip
_CHOSEN = [
    "dataset", "model", "target", "chosen", "rho", "base", "best", "size", "other", "other_rho",
]  # fmt: skip


def collect(
    params: dict[str, Any], done: Sequence[tuple[dict[str, Any], Result]],
    left_out: tuple[LeftOut, ...] = (),
) -> Result:  # fmt: skip
    """Return the study as one result; every number comes from the pieces given.

    Returns
    -------
    Result
        ``pieces`` (a row an encoder and target: gains, reliability, distances, verdict, why),
        ``rho`` (a row a piece and measure), ``configurations`` (mean rho over targets with its
        interval, by data set and scope), ``versus`` (RADAR minus each plain measure, paired),
        ``chosen`` (leave one domain out: the configuration that was best on the other targets),
        ``why`` (what goes with a high rho over pieces) and ``blends`` (every value and gain).
    """
    rho = pd.concat([_rho(case, result) for case, result in done], ignore_index=True)
    rho["q"] = _adjusted(rho)
    pieces = pd.DataFrame([_piece(case, result, rho) for case, result in done])
    table = configurations(rho, params["seed"])
    against = versus(rho, params["seed"])
    chosen = leave_one_out(rho)
    reasons = why(pieces)
    summary: dict[str, Any] = {
        "headline": headline(pieces, table),
        "n": int(rho.groupby(["dataset", "model", "target"])["n"].max().sum()),
        "pieces": len(pieces), "leaks": int(pieces["leaks"].sum()),
        "targets": {d: sorted(set(part["target"])) for d, part in pieces.groupby("dataset")},
        "models": {d: sorted(set(part["model"])) for d, part in pieces.groupby("dataset")},
        "piece_seconds": float(pieces["seconds"].sum()),
        "gain_seeds": params["gain_seeds"],
        "explained": explain(pieces, table, against, chosen, reasons),
    }  # fmt: skip
    dropped = {line for _, result in done for line in result.left_out if "RADAR" in line.what}
    return Result(
        KIND, params, summary,
        {
            "pieces": pieces, "rho": rho, "configurations": table, "versus": against,
            "chosen": chosen, "why": reasons,
            "blends": pd.concat([_blends(c, r) for c, r in done], ignore_index=True),
        },
        left_out=(*left_out, *sorted(dropped, key=lambda line: line.what)),
    )  # fmt: skip


def family(column: str) -> str:
    """Return "RADAR", "plain" or "published" for a measure's column."""
    if column.startswith("radar: "):
        return "RADAR"
    return "plain" if column in PLAIN else "published"


def _rho(case: dict[str, Any], result: Result) -> pd.DataFrame:
    frame = result.tables["measures"].copy()
    for at, name in enumerate(("dataset", "model", "target")):
        frame.insert(at, name, case[name])
    frame["family"] = frame["column"].map(family)
    frame["deep"] = bool(result.summary["transitions"])
    return frame


def _adjusted(rho: pd.DataFrame) -> np.ndarray:
    """Benjamini and Hochberg over the targets and encoders of one measure on one data set."""
    out = np.full(len(rho), np.nan)
    for at in rho.groupby(["dataset", "column"]).indices.values():
        p = rho["p"].to_numpy()[at]
        known = np.isfinite(p)
        if known.any():
            out[at[known]] = benjamini_hochberg(p[known])
    return out


def _piece(case: dict[str, Any], result: Result, rho: pd.DataFrame) -> dict[str, Any]:
    mine = rho.query("dataset == @case['dataset'] and model == @case['model']")
    mine = mine[mine["target"] == case["target"]].set_index("column")
    gains = result.tables["blends"]
    row: dict[str, Any] = {name: case[name] for name in ("dataset", "model", "target")}
    for name in _FACTS:
        value = result.summary.get(name)
        row[name] = np.nan if value is None else value
    row |= {
        "blends": len(gains), "gain_min": float(gains["gain"].min()),
        "gain_max": float(gains["gain"].max()), "gain_sd": float(gains["gain_sd"].mean()),
        "harmful": int((gains["gain_high"] < 0).sum()),
        "helpful": int((gains["gain_low"] > 0).sum()),
    }  # fmt: skip
    for name, column in (("rho", BASE), *((f"rho_{c}", c) for c in PLAIN)):
        row[name] = float(mine.loc[column, "rho"]) if column in mine.index else np.nan
    row["p"] = float(mine.loc[BASE, "p"]) if BASE in mine.index else np.nan
    radar = mine[(mine["family"] == "RADAR") & mine["rho"].notna()]
    row["best_config"] = str(radar["rho"].idxmax()) if len(radar) else ""
    row["best_rho"] = float(radar["rho"].max()) if len(radar) else np.nan
    row["verdict"], row["why"] = piece_verdict(row)
    return row


def _scopes(rho: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return each encoder on its own, all that have layers, and all."""
    found = [(model, part) for model, part in rho.groupby("model")]
    deep = rho[rho["deep"]]
    if deep["model"].nunique() > 1:
        found.append((DEEP, deep))
    return [*found, (EVERY, rho)] if rho["model"].nunique() > 1 else found


def configurations(rho: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the mean rho of every measure with a 95 % interval over targets.

    Returns
    -------
    DataFrame
        dataset, scope, measure, column, family, rho, low, high (nan below three targets), p
        (every sign of the targets' means tried), place (1 = highest rho, among the baselines and
        RADAR's base, where read on every piece; nan for its other configurations), kendall,
        rho_within_size, least, most, positive (share of pieces), significant (pieces with q < .05
        and rho > 0), inverted (the same with rho < 0), targets, pieces, blends (over all pieces),
        unknown (pieces without a value), seconds.
    """
    rows = []
    for dataset, of_set in rho.groupby("dataset"):
        for scope, part in _scopes(of_set):
            for column, mine in part.groupby("column", sort=False):
                known = mine[mine["rho"].notna()]
                if not len(known):
                    continue
                values, targets = known["rho"].to_numpy(), known["target"].to_numpy()
                low, high = _interval(values, targets, seed)
                sure = known["q"] < 0.05
                rows.append({
                    "dataset": dataset, "scope": scope, "measure": known["measure"].iloc[0],
                    "column": column, "family": known["family"].iloc[0],
                    "rho": values.mean(), "low": low, "high": high,
                    "p": sign_flip_p(known.groupby("target")["rho"].mean().to_numpy()),
                    "kendall": known["kendall"].mean(),
                    "rho_within_size": known["rho_within_size"].mean(),
                    "least": values.min(), "most": values.max(),
                    "positive": float((values > 0).mean()),
                    "significant": int((sure & (values > 0)).sum()),
                    "inverted": int((sure & (values < 0)).sum()),
                    "targets": len(set(targets)), "pieces": len(known),
                    "blends": int(known["n"].sum()), "unknown": len(mine) - len(known),
                    "seconds": known["seconds"].mean(),
                })  # fmt: skip
    out = pd.DataFrame(rows, columns=_CONFIGURATIONS)
    # Only what was read on all pairs of its scope: other pairs have other means.
    whole = out["pieces"] + out["unknown"]
    whole = whole == whole.groupby([out["dataset"], out["scope"]]).transform("max")
    rivals = out[whole & ((out["family"] != "RADAR") | (out["column"] == BASE))]
    out["place"] = rivals.groupby(["dataset", "scope"])["rho"].rank(ascending=False, method="min")
    return out.sort_values(
        ["dataset", "scope", "rho"], ascending=[True, True, False], ignore_index=True
    )


def _interval(values: np.ndarray, targets: np.ndarray, seed: int) -> tuple[float, float]:
    if len(set(targets)) < 3:
        return float("nan"), float("nan")
    out = cluster_mean_interval(values, targets, seed=seed)
    return out.lo, out.hi


def versus(rho: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return RADAR's base configuration minus every other measure, on the same pieces.

    Returns
    -------
    DataFrame
        dataset, scope, other, column, difference, low, high, verdict ("above", "below" or
        "cannot tell", by the interval over targets), pieces.
    """
    rows = []
    for dataset, of_set in rho.groupby("dataset"):
        for scope, part in _scopes(of_set):
            wide = part.pivot_table(index=["model", "target"], columns="column", values="rho")
            if BASE not in wide:
                continue
            names = part.drop_duplicates("column").set_index("column")["measure"]
            for column in wide.columns.drop(BASE):
                gap = (wide[BASE] - wide[column]).dropna()
                if not len(gap):
                    continue
                targets = gap.index.get_level_values("target").to_numpy()
                low, high = _interval(gap.to_numpy(), targets, seed)
                side = "above" if low > 0 else "below" if high < 0 else "cannot tell"
                rows.append({
                    "dataset": dataset, "scope": scope, "other": names[column], "column": column,
                    "family": family(column), "difference": gap.mean(), "low": low, "high": high,
                    "verdict": side, "pieces": len(gap),
                })  # fmt: skip
    return pd.DataFrame(rows, columns=_VERSUS)


def leave_one_out(rho: pd.DataFrame) -> pd.DataFrame:
    """Choose RADAR's configuration on all targets but one and read it on that one.

    What was best on the data it is judged on is flattered; this is not. With fewer than three
    targets there is nothing to choose on.

    Returns
    -------
    DataFrame
        dataset, model, target, chosen (column), rho (on the target left out), base, best (the
        highest rho of any configuration there: hindsight), size, other (the baseline chosen in
        the same way), other_rho.
    """
    rows = []
    for (dataset, model), part in rho.groupby(["dataset", "model"]):
        wide = part.pivot_table(index="target", columns="column", values="rho")
        radar = [c for c in wide.columns if family(c) == "RADAR" and wide[c].notna().all()]
        plain = [c for c in wide.columns if family(c) != "RADAR" and wide[c].notna().all()]
        if len(wide) < 3 or not radar or BASE not in radar:
            continue
        for target in wide.index:
            rest, here = wide.drop(index=target).mean(), wide.loc[target]
            chosen, other = rest[radar].idxmax(), rest[plain].idxmax() if plain else ""
            rows.append({
                "dataset": dataset, "model": model, "target": target, "chosen": chosen,
                "rho": here[chosen], "base": here[BASE], "best": here[radar].max(),
                "size": here.get("size", np.nan), "other": other,
                "other_rho": here[other] if other else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows, columns=_CHOSEN)


CAUSES: dict[str, str] = {
    "nearest_over_far": "how far the nearest source is, in units of the target's own classes",
    "farthest_over_nearest": "how much farther the farthest source is than the nearest",
    "reliability": "how alike the seeds rank the gains",
    "harmed": "the share of blends that harmed",
    "gain_range": "the spread of the gains",
    "rho_size": "how well blend size alone does",
    "transitions": "layer steps of the encoder",
}


def why(pieces: pd.DataFrame) -> pd.DataFrame:
    """Correlate RADAR's rho over pieces with what might explain it.

    Returns
    -------
    DataFrame
        dataset, cause, words, rho, low, high (targets drawn anew; nan below four), pieces.
    """
    rows = []
    for dataset, part in pieces[pieces["rho"].notna()].groupby("dataset"):
        causes = part.assign(
            nearest_over_far=part["nearest"] / part["far"],
            farthest_over_nearest=part["farthest"] / part["nearest"].clip(lower=1e-9),
            gain_range=part["gain_max"] - part["gain_min"],
            harmed=part["harmful"] / part["blends"],
        )
        for cause, words in CAUSES.items():
            x, y = causes[cause].to_numpy(dtype=float), causes["rho"].to_numpy()
            known = np.isfinite(x)
            if known.sum() < 4 or np.ptp(x[known]) == 0:
                continue
            x, y, targets = x[known], y[known], causes["target"].to_numpy()[known]
            low, high = _rho_interval(x, y, targets)
            rows.append({
                "dataset": dataset, "cause": cause, "words": words, "rho": spearman(x, y),
                "low": low, "high": high, "pieces": len(x),
            })  # fmt: skip
    columns = ["dataset", "cause", "words", "rho", "low", "high", "pieces"]
    return pd.DataFrame(rows, columns=columns)


def _rho_interval(x: np.ndarray, y: np.ndarray, targets: np.ndarray) -> tuple[float, float]:
    from core.stats import spearman_cluster_bootstrap

    if len(set(targets)) < 4:
        return float("nan"), float("nan")
    out = spearman_cluster_bootstrap(x, y, targets)
    return out.lo, out.hi


def _blends(case: dict[str, Any], result: Result) -> pd.DataFrame:
    frame = result.tables["blends"].copy()
    # Read on a chart: seven digits are enough and halve the file.
    numbers = frame.select_dtypes("float").columns
    frame[numbers] = frame[numbers].astype(np.float32)
    for at, name in enumerate(("dataset", "model", "target")):
        frame.insert(at, name, case[name])
    return frame
