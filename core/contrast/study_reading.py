"""What the study says in words, made from its own tables: nothing is written by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd


def headline(pairs: pd.DataFrame) -> str:
    """Return the study in one sentence."""
    groups, sets = int(pairs["groups"].sum()), int(pairs["sets"].sum())
    return (
        f"{groups} of {sets} first directions are groups; {int(pairs['passed'].sum())} of "
        f"{len(pairs)} ordered pairs pass the test that a median-rule kernel fails."
    )


def reading(pairs: pd.DataFrame, directions: pd.DataFrame) -> pd.DataFrame:
    """Return one line a data set and modality, and one an ordered pair.

    Returns
    -------
    DataFrame
        Columns ``dataset``, ``modality``, ``target``, ``reference`` (empty for the lines about
        a whole set) and ``text``.
    """
    lines: list[dict[str, Any]] = []
    for (dataset, modality), part in pairs.groupby(["dataset", "modality"], sort=False):
        text = (
            f"{int(part['groups'].sum())} of {int(part['sets'].sum())} sets are groups; "
            f"{int(part['one_style'].sum())} are of one style and "
            f"{int(part['one_label'].sum())} of one label (80 % or more). "
            f"Mean kernel similarity {part['k_a'].mean():.2f} under A, "
            f"{part['k_b'].mean():.2f} under B. {int(part['passed'].sum())} of {len(part)} "
            "ordered pairs pass."
        )
        lines.append(_line(dataset, modality, "", "", text))
    keys = ["dataset", "modality", "target", "reference"]
    sets = dict(iter(directions.groupby(keys, sort=False)))
    for row in pairs.to_dict("records"):
        key = tuple(str(row[k]) for k in keys)
        lines.append(_line(key[0], key[1], key[2], key[3], pair_text(row, sets[key])))
    return pd.DataFrame(lines)


def _line(dataset: str, modality: str, target: str, reference: str, text: str) -> dict[str, str]:
    return {
        "dataset": dataset, "modality": modality, "target": target, "reference": reference,
        "text": text,
    }  # fmt: skip


def pair_text(row: dict[str, Any], sets: pd.DataFrame) -> str:
    """Say what A holds together, and why the test fails where it does."""
    groups = sets[sets["is_group"].fillna(False).astype(bool)]
    if groups.empty:
        told = "No group among the first directions: all are wide contrasts."
    else:
        best = groups.assign(lead=groups["k_a"] - groups["k_b"]).sort_values(
            ["named", "lead"], ascending=False
        )
        told = "; ".join(str(t) for t in best["title"].head(4)) + "."
    if row["passed"]:
        return told
    if row["pure_by_median_rule"] >= 3:
        why = f"the median rule does as well ({row['pure_by_median_rule']} pure sets)"
    else:
        why = f"only {row['pure']} of {row['sets']} sets are of one style or one label"
    return f"{told} The test is not passed: {why}."
