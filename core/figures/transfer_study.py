"""Figures of "transfer-study": mean rho by configuration, every piece, score against gain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures import style
from core.results import Result

FAMILY = {"RADAR": style.ROLE["a"], "plain": style.ROLE["null"], "published": style.ROLE["b"]}
_SYMBOL = {"RADAR": "circle", "plain": "square", "published": "diamond"}


def configurations(result: Result, dataset: str, scope: str, *, most: int = 60) -> go.Figure:
    """Mean rho of every measure over targets with its interval, best at the top."""
    table = result.tables["configurations"]
    mine = table[(table["dataset"] == dataset) & (table["scope"] == scope)]
    mine = mine.sort_values("rho").tail(most)
    if not len(mine):
        return style.empty("All blends gained alike: there is no order to foretell.")
    fig = go.Figure()
    for family, colour in FAMILY.items():
        part = mine[mine["family"] == family]
        if not len(part):
            continue
        known = part["low"].notna()
        bars = {
            "type": "data", "array": (part["high"] - part["rho"]).where(known, 0.0),
            "arrayminus": (part["rho"] - part["low"]).where(known, 0.0),
            "thickness": 1.2, "width": 0,
        }  # fmt: skip
        fig.add_scatter(
            x=part["rho"], y=part["measure"], mode="markers", name=family, error_x=bars,
            marker={"size": 9, "color": colour, "symbol": _SYMBOL[family]},
            customdata=part[["pieces"]],
            hovertemplate="%{y}<br>mean rho %{x:+.2f}, %{customdata[0]} pairs<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=0, line={"color": style.LINE, "width": 1})
    style.layout(
        fig, title="Mean rho over targets, with 95 % interval", x="rho with the gain", y="",
        height=130 + 19 * max(len(mine), 4),
    )  # fmt: skip
    fig.update_yaxes(categoryorder="array", categoryarray=list(mine["measure"]),
                     tickfont={"size": 11})  # fmt: skip
    return fig


def pieces(result: Result, dataset: str, column: str) -> go.Figure:
    """Rho of one measure for every encoder and target, written into a heat map."""
    table = result.tables["rho"]
    mine = table[(table["dataset"] == dataset) & (table["column"] == column)]
    wide = mine.pivot(index="model", columns="target", values="rho")
    sure = mine.assign(sure=mine["q"] < 0.05).pivot(index="model", columns="target", values="sure")
    text = [
        [_cell(v, s) for v, s in zip(row, marks, strict=True)]
        for row, marks in zip(wide.to_numpy(dtype=float), sure.to_numpy(), strict=True)
    ]
    fig = go.Figure()
    fig.add_heatmap(
        z=wide.to_numpy(dtype=float), x=list(wide.columns), y=[m.split("/", 1)[-1] for m in
                                                              wide.index],
        text=text, texttemplate="%{text}", textfont={"size": 12}, zmin=-1, zmax=1,
        colorscale=style.DIVERGING, xgap=2, ygap=2,
        colorbar={"title": {"text": "rho"}, "thickness": 12}, hoverongaps=False,
        hovertemplate="%{y}, target %{x}<br>rho %{z:+.2f}<extra></extra>",
    )  # fmt: skip
    style.layout(
        fig, title="Every encoder and target", x="target", y="", legend=False,
        height=160 + 44 * max(len(wide), 2),
    )  # fmt: skip
    return fig


def _cell(value: float, sure: object) -> str:
    if not np.isfinite(value):
        return "n/a"
    return f"<b>{value:+.2f}</b>" if bool(sure) else f"{value:+.2f}"


def held_out(result: Result, dataset: str) -> go.Figure:
    """Draw what choosing buys: base, chosen on other targets, best in hindsight, baselines."""
    table = result.tables["chosen"]
    mine = table[table["dataset"] == dataset] if len(table) else table
    if not len(mine):
        return style.empty("Fewer than three targets: there is nothing to choose on.")
    shown = {
        "base": ("base of the page", style.ROLE["a"], "circle"),
        "rho": ("chosen on the other targets", style.ROLE["good"], "diamond"),
        "best": ("best in hindsight", style.ROLE["unselected"], "circle-open"),
        "size": ("blend size", style.ROLE["null"], "square"),
        "other_rho": ("baseline chosen alike", style.ROLE["b"], "triangle-up"),
    }
    mean = mine.groupby("target")[list(shown)].mean()
    fig = go.Figure()
    for column, (name, colour, symbol) in shown.items():
        fig.add_scatter(
            x=list(mean.index), y=mean[column], mode="markers", name=name,
            marker={"size": 11, "color": colour, "symbol": symbol},
            hovertemplate=f"{name}, %{{x}}<br>rho %{{y:+.2f}}<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.LINE, "width": 1})
    style.layout(
        fig, title="On a target that had no part in the choice", x="target left out",
        y="rho, mean over encoders", height=380,
    )  # fmt: skip
    return fig


def scatter(result: Result, dataset: str, model: str, target: str, column: str) -> go.Figure:
    """One measure against the gain of every blend, with the interval over seeds."""
    table = result.tables["blends"]
    mine = table[
        (table["dataset"] == dataset) & (table["model"] == model) & (table["target"] == target)
    ]
    lines = result.tables["rho"]
    line = lines[(lines["dataset"] == dataset) & (lines["column"] == column)].iloc[0]
    if column not in mine or not mine[column].notna().any():
        return style.empty("This measure has no value here.")
    fig = go.Figure()
    for size, part in mine.groupby("n_members"):
        fig.add_scatter(
            x=part[column], y=100 * part["gain"], mode="markers",
            name=f"{size} source" + ("s" if size > 1 else ""),
            marker={"size": 9, "color": style.OKABE_ITO[(int(size) - 1) % 8],
                    "symbol": style.SYMBOLS[(int(size) - 1) % len(style.SYMBOLS)]},
            error_y=_bars(part), customdata=part["blend"],
            hovertemplate="%{customdata}<br>%{x:.3g}, gain %{y:.1f} points<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.LINE, "width": 1})
    lower = line["better"] == "lower"
    style.layout(
        fig, title=f"{line['measure']} against the gain",
        x=str(line["measure"]) + (" (nearer to the right)" if lower else ""),
        y="gain in accuracy, points", height=400,
    )  # fmt: skip
    values = mine[column]
    if float(values.min()) > 0 and float(values.max()) > 20 * float(values.min()):
        fig.update_xaxes(type="log", dtick=1)
    if lower:
        fig.update_xaxes(autorange="reversed")
    return fig


def _bars(part: pd.DataFrame) -> dict[str, object]:
    if not part["gain_low"].notna().all():
        return {}
    return {
        "type": "data", "array": 100 * (part["gain_high"] - part["gain"]),
        "arrayminus": 100 * (part["gain"] - part["gain_low"]), "thickness": 1, "width": 0,
    }  # fmt: skip


def distance(result: Result, dataset: str) -> go.Figure:
    """RADAR's rho against how far the nearest source is: where it can be trusted."""
    table = result.tables["pieces"]
    mine = table[(table["dataset"] == dataset) & table["rho"].notna() & table["far"].notna()]
    if not len(mine):
        return style.empty("No encoder here has a score and a yardstick.")
    models = sorted(set(mine["model"]))
    fig = go.Figure()
    for at, model in enumerate(models):
        part = mine[mine["model"] == model]
        fig.add_scatter(
            x=np.maximum(part["nearest"] / part["far"], 1e-3), y=part["rho"], mode="markers",
            name=model.split("/", 1)[-1], text=part["target"],
            marker={"size": 11, "color": style.OKABE_ITO[at % 8],
                    "symbol": style.SYMBOLS[at % len(style.SYMBOLS)]},
            hovertemplate="%{text}<br>%{x:.2f} times, rho %{y:+.2f}<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.LINE, "width": 1})
    fig.add_vline(x=1, line={"color": style.ROLE["null"], "width": 1.5, "dash": "dash"})
    style.layout(
        fig, title="Does distance decide whether it ranks?", height=400,
        x="excess of the nearest source, in yardsticks",
        y="rho of RADAR with the gain",
    )  # fmt: skip
    fig.update_xaxes(type="log")
    return fig
