"""The transfer study in words: where RADAR says something, where it does not, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.stats import spearman

RANKS, INVERTS, SILENT, NONE = "ranks", "inverts", "says nothing", "no score"
_SURE = 0.05
_UNRELIABLE = 0.5
_DEEP = "encoders with several layers"
_MANY = (_DEEP, "every encoder")


def piece_verdict(row: dict[str, Any]) -> tuple[str, str]:
    """Return what RADAR's base configuration did on one encoder and target, and a reason.

    Parameters
    ----------
    row : dict
        ``rho``, ``p``, ``nearest``, ``far``, ``reliability``, ``rho_size``,
        ``rho_distance_of_means``, ``transitions``.

    Returns
    -------
    verdict : {"ranks", "inverts", "says nothing", "no score"}
        By the sign of rho where its permutation p is below .05.
    why : str
        What was seen beside it; empty where nothing was. A coincidence is not a cause.

    Examples
    --------
    >>> piece_verdict({"rho": float("nan"), "p": 1.0})
    ('no score', 'one stored layer: RADAR needs two')
    """
    if not np.isfinite(row["rho"]):
        return NONE, "one stored layer: RADAR needs two"
    word = SILENT
    if row["p"] < _SURE:
        word = RANKS if row["rho"] > 0 else INVERTS
    seen = []
    if word != RANKS:
        if np.isfinite(row["reliability"]) and row["reliability"] < _UNRELIABLE:
            seen.append("the seeds do not agree on the gains")
        if np.isfinite(row["far"]) and row["nearest"] > row["far"]:
            seen.append("every source is farther than the target's own classes")
        if max(row["rho_size"], row["rho_distance_of_means"]) > 0.5:
            seen.append("the plain measures do rank them")
        elif row["rho_distance_of_means"] < 0.2 and row["rho_size"] < 0.2:
            seen.append("the plain measures fail as well")
    elif row["rho_distance_of_means"] >= row["rho"]:
        seen.append("the distance of means ranks as well")
    return word, "; ".join(seen)


def headline(pieces: pd.DataFrame, table: pd.DataFrame) -> str:
    """Say in one or two sentences how often RADAR ranked, and how it stands to blend size."""
    scored = pieces[pieces["verdict"] != NONE]
    if not len(scored):
        return "No encoder here has two stored layers, so RADAR has no score."
    counts = scored["verdict"].value_counts()
    said = (
        f"RADAR ranks the blends on {counts.get(RANKS, 0)} of {len(scored)} encoder and target "
        f"pairs, inverts on {counts.get(INVERTS, 0)} and says nothing on the rest."
    )
    parts = []
    for dataset in sorted(set(scored["dataset"])):
        radar, size = (_mean(table, dataset, c) for c in ("radar: base: joint", "size"))
        if radar is not None and size is not None:
            parts.append(f"{dataset} {radar:+.2f} against {size:+.2f}")
    return f"{said} Mean rho against that of blend size alone: {', '.join(parts)}."


def _mean(table: pd.DataFrame, dataset: str, column: str) -> float | None:
    """Return the mean rho over the widest scope that has a score of RADAR."""
    mine = table[(table["dataset"] == dataset) & (table["column"] == column)]
    scored = table[(table["dataset"] == dataset) & (table["family"] == "RADAR")]
    for scope in (_DEEP, *scored["scope"]):
        found = mine[mine["scope"] == scope]
        if len(found) and scope in set(scored["scope"]):
            return float(found["rho"].iloc[0])
    return None


def explain(
    pieces: pd.DataFrame, table: pd.DataFrame, against: pd.DataFrame, chosen: pd.DataFrame,
    reasons: pd.DataFrame,
) -> list[str]:  # fmt: skip
    """Return plain sentences, each resting on a row of a table."""
    said = _places(table)
    for dataset in sorted(set(pieces["dataset"])):
        scope = widest(table, dataset)
        if scope is None:
            continue
        part = table[(table["dataset"] == dataset) & (table["scope"] == scope)]
        said += _standing(dataset, part, against, scope)
        said += _choices(dataset, part)
        said += _held_out(dataset, chosen)
        said += _outlying(dataset, pieces)
        said += _causes(dataset, reasons)
    return said


def _places(table: pd.DataFrame) -> list[str]:
    """Count, as the paper does, how often RADAR is first and among the first three."""
    alone = table[~table["scope"].isin(_MANY) & (table["column"] == "radar: base: joint")]
    if not len(alone):
        return []
    first, three = (int((alone["place"] <= most).sum()) for most in (1, 3))
    return [
        f"Of {len(alone)} configuration{'s' * (len(alone) != 1)} (an encoder on a data set) RADAR "
        f"as the page sets it has the highest mean rho of all measures in {first} and one of the "
        f"three highest in {three}."
    ]


def widest(table: pd.DataFrame, dataset: str) -> str | None:
    """Return the scope to read RADAR in: all encoders with layers, or the one there is."""
    scored = table[(table["dataset"] == dataset) & (table["family"] == "RADAR")]
    scopes = list(dict.fromkeys(scored["scope"]))
    if not scopes:
        return None
    return _DEEP if _DEEP in scopes else scopes[0]


def by_encoder(table: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return the rows of ``configurations`` that compare measures on one encoder each.

    Returns
    -------
    DataFrame
        The baselines and RADAR's base, of encoders that have a score of RADAR.
    """
    mine = table[(table["dataset"] == dataset) & ~table["scope"].isin(_MANY)]
    scored = set(mine.loc[mine["column"] == "radar: base: joint", "scope"])
    return mine[mine["scope"].isin(scored) & mine["place"].notna()]


def _standing(dataset: str, part: pd.DataFrame, against: pd.DataFrame, scope: str) -> list[str]:
    base = part[part["column"] == "radar: base: joint"]
    if not len(base):
        return []
    # A measure read on fewer encoders has another mean for that reason alone.
    others = part[(part["family"] != "RADAR") & (part["pieces"] >= base["pieces"].iloc[0])]
    if not len(others):
        return []
    best = others.loc[others["rho"].idxmax()]
    said = [
        f"{dataset}, {scope}: RADAR as the page sets it has mean rho {_with(base.iloc[0])}; the "
        f"best other measure is {best['measure']} with {_with(best)}."
    ]
    mine = against[(against["dataset"] == dataset) & (against["scope"] == scope)]
    for word, text in (("above", "is above"), ("below", "is below")):
        found = mine[(mine["verdict"] == word) & (mine["family"] != "RADAR")]["other"]
        if len(found):
            said.append(f"{dataset}: on the same pairs RADAR {text} {', '.join(sorted(found))}.")
    rest = mine[(mine["verdict"] == "cannot tell") & (mine["family"] != "RADAR")]
    if len(rest) and rest["low"].isna().all():
        return [*said, f"{dataset}: fewer than three targets, so no difference has an interval."]
    rest = rest["other"]
    if len(rest):
        said.append(
            f"{dataset}: RADAR cannot be told from {', '.join(sorted(rest))} over these targets."
        )
    return said


def _choices(dataset: str, part: pd.DataFrame) -> list[str]:
    """Say what each choice does to the mean rho, all else as in the base."""
    rho = part.set_index("column")["rho"]
    base = "radar: base: joint"
    if base not in rho:
        return []
    pairs = {
        "anchors from the target": "radar: target: joint",
        "the sphere": "radar: sphere: joint",
        "late layers": "radar: late: joint",
        "sphere and late layers": "radar: sphere, late: joint",
        "partners of the same class": "radar: same class: joint",
        "the mean over layers": "radar: base: per_layer",
        "theta alone": "radar: theta: joint",
        "d alone": "radar: d: joint",
        "the histogram": "radar: histogram: per_layer",
        "sliced transport": "radar: sliced: joint",
        "the Poincaré ball": "radar: poincare: joint",
    }
    moved = {words: rho[c] - rho[base] for words, c in pairs.items() if c in rho}
    if not moved:
        return []
    ordered = sorted(moved.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{words} {round(gap, 2) + 0.0:+.2f}" for words, gap in ordered)
    return [f"{dataset}: what each choice adds to the base's mean rho: {listed}."]


def _held_out(dataset: str, chosen: pd.DataFrame) -> list[str]:
    mine = chosen[chosen["dataset"] == dataset] if len(chosen) else chosen
    if not len(mine):
        return []
    return [
        f"{dataset}: a configuration chosen on the other targets has rho {mine['rho'].mean():+.2f} "
        f"on the one left out, the base {mine['base'].mean():+.2f}, the best in hindsight "
        f"{mine['best'].mean():+.2f}, a baseline chosen alike {mine['other_rho'].mean():+.2f}."
    ]


def _outlying(dataset: str, pieces: pd.DataFrame) -> list[str]:
    mine = pieces[(pieces["dataset"] == dataset) & (pieces["verdict"] != NONE)]
    mine = mine[np.isfinite(mine["far"].to_numpy(dtype=float))]
    lost = mine[mine["nearest"] > mine["far"]]
    near = mine[mine["nearest"] <= mine["far"]]
    if not len(lost):
        return []
    ranks = int((lost["verdict"] == RANKS).sum())
    said = (
        f"{dataset}: on {len(lost)} of {len(mine)} pairs every source is farther than the target's "
        f"own classes, and the page says that it cannot tell what to add. There {_happened(lost)}."
    )
    if len(near):
        said += f" Elsewhere {_happened(near)}."
    if 2 * ranks > len(lost):
        said += " The order held there all the same; whether to add at all needs a measured gain."
    return [said]


def _happened(part: pd.DataFrame) -> str:
    """Say how often RADAR ranked, and how many blends helped and harmed for certain."""
    ranks, blends = int((part["verdict"] == RANKS).sum()), int(part["blends"].sum())
    helped, harmed = (100 * part[name].sum() / blends for name in ("helpful", "harmful"))
    return (
        f"RADAR ranks on {ranks} of {len(part)} (mean rho {part['rho'].mean():+.2f}); {helped:.0f} "
        f"% of the blends helped and {harmed:.0f} % harmed beyond the spread of the seeds"
    )


def _causes(dataset: str, reasons: pd.DataFrame) -> list[str]:
    mine = reasons[reasons["dataset"] == dataset]
    sure = mine[(mine["low"] > 0) | (mine["high"] < 0)]
    if not len(mine):
        return []
    if not len(sure):
        return [f"{dataset}: nothing measured here goes with a high rho beyond chance."]
    listed = "; ".join(f"{row['words']} ({row['rho']:+.2f})" for _, row in sure.iterrows())
    return [f"{dataset}: rho goes with {listed}."]


def _with(row: pd.Series) -> str:
    if not np.isfinite(row["low"]):
        return f"{row['rho']:+.2f}"
    return f"{row['rho']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"


def rank_agreement(values: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rho of every pair of columns, for a heat map.

    Parameters
    ----------
    values : DataFrame
        A row a blend, a column a measure; nan is left out pair by pair.

    Returns
    -------
    DataFrame
        Square; nan where fewer than three rows are shared or one side is constant.
    """
    names = list(values.columns)
    out = np.full((len(names), len(names)), np.nan)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            both = values[[a, b]].dropna().to_numpy(dtype=float) if a != b else None
            if both is None:
                out[i, j] = 1.0
            elif len(both) >= 3:
                out[i, j] = spearman(both[:, 0], both[:, 1])
    return pd.DataFrame(out, index=names, columns=names)
