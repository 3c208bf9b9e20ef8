"""Figures of a measured population: metric against accuracy, strata, ridges, ranges, one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.published import HATCH, rho_text
from core.figures.style import (
    DIVERGING,
    OKABE_ITO,
    ROLE,
    SYMBOLS,
    domain_colour,
    empty,
    layout,
    panel,
    small_multiples,
    zero_line,
)
from core.quality.metrics.alpha_req import power_law
from core.quality.population import METRICS, PROBES, Population
from core.quality.registry import ARCHITECTURES

_OBJECTIVE_SYMBOL = {
    "supervised": "circle", "simclr": "diamond", "barlow": "square", "dino": "triangle-up",
    "mae": "cross",
}  # fmt: skip


def metric_title(name: str) -> str:
    """Return the words of a metric."""
    return METRICS[name][0] if name in METRICS else name.replace("_", " ")


def scatter(
    population: Population,
    datasets: Sequence[str],
    metric: str,
    probe: str,
    cells: pd.DataFrame,
    *,
    ranks: bool = False,
    pinned: str = "",
    own: pd.DataFrame | None = None,
    height: int = 470,
) -> go.Figure:
    """Draw a metric against accuracy, one panel a data set.

    Parameters
    ----------
    cells : DataFrame
        Correlations with columns dataset, stratum, metric and rho; each panel gets its "All".
    own : DataFrame, optional
        The user's own encoders: model, dataset, value and the probe; drawn as stars.
    """
    many = len(datasets) > 1
    x, y = metric_title(metric), f"{PROBES[probe]}, percent"
    if ranks:
        x, y = f"rank of {x}", f"rank of {PROBES[probe]} accuracy"
    if many:
        names = [population.datasets[name] for name in datasets]
        fig = small_multiples(
            names, columns=3, x=x, y=y, panel_height=250, shared_x=False, shared_y=False
        )
    else:
        fig = go.Figure()
    for at, name in enumerate(datasets):
        rows = population.table[population.table["dataset"] == name]
        where = panel(at, 3) if many else {}
        for trace in _points(rows, metric, probe, ranks, pinned):
            fig.add_trace(trace, **where)
        if own is not None and len(own) and not ranks:
            fig.add_trace(_own(own[own["dataset"] == name], probe), **where)
        if many:
            found = _cell(cells, name, "All", metric)
            if found is not None:
                words = rho_text(found).replace(" families", " fam.")
                title = fig.layout.annotations[at]
                title.update(text=f"{title.text}<br><span style='font-size:11px'>{words}</span>")
    if METRICS.get(metric, ("", 0, False))[2] and not ranks:
        fig.update_xaxes(type="log")
    if not many:
        found = _cell(cells, datasets[0], "All", metric)
        words = rho_text(found) if found is not None else ""
        where_words = population.datasets[datasets[0]]
        layout(fig, title=f"{metric_title(metric)} on {where_words}. {words}", x=x, y=y,
               height=height)  # fmt: skip
    _legend(fig, population.table)
    fig.update_layout(showlegend=True, legend={"itemclick": False, "itemdoubleclick": False})
    if many:
        fig.update_layout(margin={"t": 96, "b": 58}, height=(fig.layout.height or 400) + 64)
        fig.update_layout(legend={"y": 1.0, "yref": "container", "yanchor": "top"})
    return fig


def _cell(cells: pd.DataFrame, dataset: str, stratum: str, metric: str) -> pd.Series | None:
    rows = cells[
        (cells["dataset"] == dataset) & (cells["stratum"] == stratum) & (cells["metric"] == metric)
    ]
    return rows.iloc[0] if len(rows) else None


def _points(
    rows: pd.DataFrame, metric: str, probe: str, ranks: bool, pinned: str
) -> list[go.Scattergl]:
    known = rows[np.isfinite(rows[metric].astype(float)) & np.isfinite(rows[probe].astype(float))]
    across, up = known[metric].astype(float), 100 * known[probe].astype(float)
    if ranks:
        across, up = across.rank(), up.rank()
    mine = (known["model"] == pinned).to_numpy()
    colours = {a: domain_colour(a, ARCHITECTURES) for a in known["architecture"].unique()}
    out = [
        go.Scattergl(
            x=across.to_numpy(),
            y=up.to_numpy(),
            mode="markers",
            marker={
                "color": known["architecture"].map(colours).tolist(),
                "symbol": known["objective"].map(_OBJECTIVE_SYMBOL).fillna("circle").tolist(),
                "size": 5 + 2.2 * np.clip(np.log10(known["n_params"].to_numpy(float)) - 3, 0, 4),
                "opacity": 0.75,
                "line": {"width": 0.5, "color": "rgba(255,255,255,0.7)"},
            },
            customdata=known[["model", "family", "n_params", "d"]]
            .assign(v=known[metric], flags=known.get(f"flags.{metric}", ""))
            .to_numpy(),
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>value %{customdata[4]:.4g}, "
            "accuracy %{y:.1f}<br>%{customdata[2]:,} parameters, width %{customdata[3]}"
            "<br>%{customdata[5]}<extra></extra>",
            showlegend=False,
        )
    ]
    if mine.any():
        out.append(
            go.Scattergl(
                x=across.to_numpy()[mine], y=up.to_numpy()[mine], mode="markers",
                hoverinfo="skip", showlegend=False,
                marker={"symbol": "circle-open", "size": 22, "color": ROLE["cross"],
                        "line": {"width": 3}},
            )
        )  # fmt: skip
    return out


def _own(own: pd.DataFrame, probe: str) -> go.Scattergl:
    return go.Scattergl(
        x=own["value"],
        y=100 * own[probe].astype(float),
        mode="markers",
        marker={"symbol": "star", "size": 15, "color": ROLE["cross"],
                "line": {"width": 1, "color": "rgba(255,255,255,0.9)"}},
        customdata=own[["model"]],
        hovertemplate="%{customdata[0]}, yours<br>value %{x:.4g}<br>accuracy %{y:.1f} %"
        "<extra></extra>",
        showlegend=False,
    )  # fmt: skip


def _legend(fig: go.Figure, table: pd.DataFrame) -> None:
    known = set(table["architecture"])
    kinds = [name for name in ARCHITECTURES if name in known]
    entries = [(name, "circle", domain_colour(name, ARCHITECTURES)) for name in kinds]
    entries += [
        (str(name), _OBJECTIVE_SYMBOL.get(str(name), "circle"), ROLE["null"])
        for name in dict.fromkeys(table["objective"])
    ]
    fig.add_traces(
        [
            {"type": "scatter", "x": [None], "y": [None], "mode": "markers", "name": name,
             "marker": {"symbol": symbol, "color": colour, "size": 10}}
            for name, symbol, colour in entries
        ]
    )  # fmt: skip


def strata_heatmap(cells: pd.DataFrame, *, columns: str, titles: dict[str, str]) -> go.Figure:
    """Draw rho of every metric (rows) by ``columns`` ("stratum" or "dataset").

    Hatched: fewer than 8 families. n/a: too few models. Blue positive, brown negative.
    """
    if cells.empty:
        return empty("No model passes these filters.")
    names = list(dict.fromkeys(cells[columns]))
    metrics = list(dict.fromkeys(cells["metric"]))[::-1]
    # One record a cell: label look-ups in a frame would cost more than the drawing.
    needed = ["metric", columns, "rho", "lo", "hi", "stars", "status", "n", "n_clusters"]
    grid = {(row["metric"], row[columns]): row for row in cells[needed].to_dict("records")}
    z = np.array([[grid[m, c]["rho"] for c in names] for m in metrics], dtype=float)
    words = [[_words(grid[m, c]) for c in names] for m in metrics]
    hover = [[rho_text(grid[m, c]) for c in names] for m in metrics]
    fig = go.Figure(
        go.Heatmap(
            z=z, x=list(range(len(names))), y=list(range(len(metrics))), text=words,
            customdata=hover, texttemplate="%{text}",
            hovertemplate="%{customdata}<extra></extra>", colorscale=DIVERGING,
            showscale=False, zmin=-1, zmid=0, zmax=1, xgap=2, ygap=2,
        )
    )  # fmt: skip
    few = np.array([[grid[m, c]["status"] == "few families" for c in names] for m in metrics])
    _hatched(fig, few)
    gone = np.argwhere(np.isnan(z))
    if len(gone):
        fig.add_scatter(
            x=gone[:, 1], y=gone[:, 0], mode="text", text="n/a", textfont={"size": 11},
            customdata=[hover[j][i] for j, i in gone],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(
        tickmode="array", tickvals=list(range(len(names))), side="top",
        ticktext=[titles.get(n, n) for n in names],
    )  # fmt: skip
    fig.update_yaxes(
        tickmode="array", tickvals=list(range(len(metrics))),
        ticktext=[metric_title(m) for m in metrics],
    )  # fmt: skip
    layout(fig, height=46 * len(metrics) + 70, legend=False)
    fig.update_xaxes(showgrid=False, zeroline=False)
    fig.update_yaxes(showgrid=False, zeroline=False)
    return fig


def _words(row: Mapping[Any, Any]) -> str:
    if row["status"] == "n/a" or not np.isfinite(row["rho"]):
        return ""
    star = row.get("stars", "")
    return f"<b>{row['rho']:.2f}{star}</b><br>[{row['lo']:.2f}, {row['hi']:.2f}]"


def _hatched(fig: go.Figure, few: np.ndarray) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    half = 0.46
    for j, i in np.argwhere(few):
        for shift in (-0.6, -0.3, 0.0, 0.3, 0.6):
            left, right = max(-half, -half - shift), min(half, half - shift)
            x += [i + left, i + right, None]
            y += [j + left + shift, j + right + shift, None]
    if x:
        fig.add_scatter(x=x, y=y, mode="lines", line=HATCH, hoverinfo="skip")


def forest(cells: pd.DataFrame, *, title: str) -> go.Figure:
    """Draw rho with its interval for every stratum, one colour a data set."""
    known = cells[cells["rho"].notna()]
    if known.empty:
        return empty("Too few models or families for a correlation.")
    strata = list(dict.fromkeys(cells["stratum"]))[::-1]
    # One record a cell, and arrays for plotly: a frame a data set took most of the time.
    columns = ["dataset", "stratum", "rho", "lo", "hi", "stars", "status", "n", "n_clusters"]
    grouped: dict[str, list[dict[Any, Any]]] = {}
    for row in known[columns].to_dict("records"):
        grouped.setdefault(row["dataset"], []).append(row)
    traces = []
    for at, (name, rows) in enumerate(grouped.items()):
        rho, lo, hi = np.array([[row["rho"], row["lo"], row["hi"]] for row in rows]).T
        shift = 0.28 - 0.56 * at / max(1, len(grouped) - 1) if len(grouped) > 1 else 0.0
        traces.append(
            go.Scatter(
                x=rho, y=[strata.index(row["stratum"]) + shift for row in rows],
                mode="markers", name=name,
                marker={"size": 8, "color": OKABE_ITO[at % len(OKABE_ITO)],
                        "symbol": SYMBOLS[at % len(SYMBOLS)]},
                error_x={"type": "data", "symmetric": False, "array": hi - rho,
                         "arrayminus": rho - lo, "thickness": 1.4, "width": 0},
                customdata=[rho_text(row) for row in rows],
                hovertemplate=f"{name}<br>%{{customdata}}<extra></extra>",
            )
        )  # fmt: skip
    fig = go.Figure(traces)
    zero_line(fig, "x")
    fig.update_yaxes(
        tickmode="array", tickvals=list(range(len(strata))), ticktext=strata,
        range=[-0.6, len(strata) - 0.4],
    )  # fmt: skip
    layout(fig, title=title, x="Spearman's rho with its 95 % interval",
           height=58 * len(strata) + 120)  # fmt: skip
    fig.update_xaxes(range=[-1.02, 1.02])
    return fig


def metric_matrix(rho: np.ndarray, names: Sequence[str]) -> go.Figure:
    """Draw the rank correlations of the metrics among themselves."""
    words = [metric_title(name) for name in names]
    fig = go.Figure(
        go.Heatmap(
            z=rho[::-1], x=words, y=words[::-1], zmin=-1, zmid=0, zmax=1, colorscale=DIVERGING,
            texttemplate="%{z:.2f}", showscale=False, xgap=2, ygap=2,
            hovertemplate="%{y} and %{x}<br>rho %{z:.3f}<extra></extra>",
        )
    )  # fmt: skip
    layout(fig, title="Which metrics say the same", height=38 * len(words) + 150, legend=False)
    fig.update_xaxes(showgrid=False, tickangle=-40)
    fig.update_yaxes(showgrid=False)
    return fig


def ridges(panel_table: pd.DataFrame, titles: dict[str, str]) -> go.Figure:
    """Draw the condition number's rho with each probe, from no ridge to 1-NN."""
    order = [p for p in PROBES if p in set(panel_table["probe"])]
    order = sorted(order, key=["linear.0", "linear", "linear.0.0001", "linear.0.01", "knn"].index)
    names = {"linear.0": "no ridge", "linear": "1e-6", "linear.0.0001": "1e-4",
             "linear.0.01": "1e-2", "knn": "1-NN"}  # fmt: skip
    fig = go.Figure()
    zero_line(fig, "y")
    for at, name in enumerate(dict.fromkeys(panel_table["dataset"])):
        rows = panel_table[panel_table["dataset"] == name].set_index("probe").reindex(order)
        fig.add_scatter(
            x=[names[p] for p in order], y=rows["rho"], mode="lines+markers",
            name=titles.get(name, name),
            line={"color": OKABE_ITO[at % len(OKABE_ITO)], "width": 2},
            error_y={"type": "data", "symmetric": False, "array": rows["hi"] - rows["rho"],
                     "arrayminus": rows["rho"] - rows["lo"], "thickness": 1, "width": 0},
            hovertemplate="%{x}: rho %{y:.2f}<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(type="category")
    return layout(fig, title="Condition number: rho with each probe", x="probe, by its ridge",
                  y="rho over all models", height=400)  # fmt: skip


def alpha_range(found: pd.DataFrame, titles: dict[str, str]) -> go.Figure:
    """Draw alpha-ReQ's rho on each data set for one range of the fit."""
    known = found[found["rho"].notna()]
    if known.empty:
        return empty("Fewer than five eigenvalues in this range for every model.")
    names = [titles.get(n, n) for n in known["dataset"]][::-1]
    rho = known["rho"].to_numpy()[::-1]
    fig = go.Figure(
        go.Bar(
            x=rho, y=names, orientation="h",
            marker={"color": [ROLE["accent"] if r > 0 else ROLE["cross"] for r in rho]},
            text=[f"{r:+.2f}, n {n}" for r, n in zip(rho, known["n"][::-1], strict=True)],
            hovertemplate="%{y}: rho %{x:.2f}<extra></extra>",
        )
    )  # fmt: skip
    zero_line(fig, "x")
    layout(fig, title="alpha-ReQ: rho with accuracy for this range", x="Spearman's rho",
           height=300, legend=False)  # fmt: skip
    fig.update_xaxes(range=[-1, 1])
    return fig


def spectrum(row: pd.Series, fit_range: tuple[int, int | float]) -> go.Figure:
    """Draw one model's eigenvalues on log axes with the fitted power law."""
    values = np.asarray(row["eigenvalues"], dtype=np.float64)
    values = values[values > 0]
    if not len(values):
        return empty("The features are constant: there is no spectrum.")
    index = np.arange(1, len(values) + 1)
    fig = go.Figure()
    fig.add_scatter(
        x=index, y=values, mode="lines", name="eigenvalues",
        line={"color": ROLE["accent"], "width": 2},
        hovertemplate="%{x}: %{y:.3g}<extra></extra>",
    )  # fmt: skip
    fit = power_law(values, fit_range)
    if np.isfinite(fit.alpha):
        at = np.array([fit.first, fit.last])
        fig.add_scatter(
            x=at, y=np.exp(fit.intercept) * at**-fit.alpha, mode="lines",
            name=f"alpha {fit.alpha:.2f} over {fit.first} to {fit.last}",
            line={"color": ROLE["cross"], "width": 3, "dash": "dash"}, hoverinfo="skip",
        )  # fmt: skip
    fig.update_xaxes(type="log")
    fig.update_yaxes(type="log")
    return layout(fig, title="Eigenspectrum", x="eigenvalue, from the largest", y="variance",
                  height=360)  # fmt: skip


def twonn(row: pd.Series) -> go.Figure:
    """Draw one model's TwoNN points and the line through the origin."""
    x, y = (np.asarray(row[name], dtype=np.float64) for name in ("twonn_x", "twonn_y"))
    value = float(row["twonn"]) if row["twonn"] == row["twonn"] else float("nan")
    if not len(x) or not np.isfinite(value):
        return empty("Too few distinct samples for the TwoNN line.")
    used = y <= -np.log(0.1) + 1e-9
    reach = float(x[used].max()) if used.any() else float(x.max())
    fig = go.Figure()
    fig.add_scatter(x=x, y=y, mode="markers", name="samples",
                    marker={"size": 5, "color": ROLE["accent"], "opacity": 0.7},
                    hovertemplate="ln mu %{x:.3g}, height %{y:.3g}<extra></extra>")  # fmt: skip
    fig.add_scatter(x=[0, reach], y=[0, value * reach], mode="lines", name=f"slope {value:.1f}",
                    line={"color": ROLE["cross"], "width": 2}, hoverinfo="skip")  # fmt: skip
    fig.update_xaxes(range=[0, 1.6 * reach])
    return layout(fig, title=f"TwoNN: dimension {value:.1f}", x="ln mu, ratio of distances",
                  y="-ln(1 - F)", height=360)  # fmt: skip
