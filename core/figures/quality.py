"""Figures of the Quality page: the encoders of a result, their spectra and their probes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import (
    OKABE_ITO,
    ROLE,
    compact,
    domain_colour,
    empty,
    layout,
    rgba,
    zero_line,
)
from core.quality.tables import short_title
from core.results import Result

LINEAR, KNN = OKABE_ITO[0], OKABE_ITO[1]


def titles(result: Result) -> dict[str, str]:
    """Return the short title of every encoder; ids where two titles would be the same."""
    models = result.tables["models"]
    short = {str(r["model"]): short_title(str(r["title"])) for r in models.to_dict("records")}
    seen = pd.Series(list(short.values())).value_counts()
    return {
        model: text if seen[text] == 1 else model.removeprefix("demo/")
        for model, text in short.items()
    }


def accuracies(result: Result, *, height: int = 360) -> go.Figure:
    """Draw each encoder's probe accuracies with their intervals, best on top."""
    models = result.tables["models"].iloc[::-1]
    names = titles(result)
    fig = go.Figure()
    for column, name, colour, symbol, shift in (
        ("linear", "linear probe", LINEAR, "circle", 0.12),
        ("knn", "1-NN", KNN, "diamond", -0.12),
    ):
        value = 100 * models[column]
        fig.add_scatter(
            x=value,
            y=np.arange(len(models)) + shift,
            mode="markers",
            name=name,
            marker={"color": colour, "symbol": symbol, "size": 10},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": 100 * models[f"{column}_hi"] - value,
                "arrayminus": value - 100 * models[f"{column}_lo"],
                "thickness": 1.5,
                "width": 0,
            },
            customdata=np.c_[
                models["model"].map(names),
                (100 * models[f"{column}_lo"]).round(1),
                (100 * models[f"{column}_hi"]).round(1),
            ],
            hovertemplate="%{customdata[0]}<br>"
            + name
            + " %{x:.1f} % [%{customdata[1]}, %{customdata[2]}]<extra></extra>",
        )
    fig.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(models))),
        ticktext=[names[m] for m in models["model"]],
        range=[-0.6, len(models) - 0.4],
    )
    return layout(
        fig,
        title="Accuracy on held-out items, with 95 % intervals",
        x="test accuracy, percent",
        height=max(height, 34 * len(models) + 110),
    )


def metric_values(result: Result, metric: str) -> pd.DataFrame:
    """Return one metric of every encoder beside its accuracies."""
    values = result.tables["metrics"]
    values = values[values["metric"] == metric].drop(columns="metric")
    return result.tables["models"].drop(columns=["d"]).merge(values, on="model")


def metric_scatter(
    result: Result, metric: str, *, accuracy: str = "linear", pinned: str = "", height: int = 360
) -> go.Figure:
    """Draw one label-free metric against the accuracy of this result's encoders."""
    spec = result.tables["specs"].set_index("metric").loc[metric]
    frame = metric_values(result, metric)
    names = titles(result)
    known = frame[np.isfinite(frame["value"].astype(float))]
    if known.empty:
        return empty(f"{spec['title']} could not be computed for any encoder.", height=height)
    fig = go.Figure()
    value = known["value"]
    fig.add_scatter(
        x=value,
        y=100 * known[accuracy],
        mode="markers+text",
        text=[names[m] for m in known["model"]],
        textposition=_text_sides(value.to_numpy(), bool(spec["log"])),
        textfont={"size": 12},
        marker={
            "size": 11,
            "color": [
                ROLE["accent"] if m == pinned else ROLE["unselected"] for m in known["model"]
            ],
            "line": {"width": 1.5, "color": ROLE["accent"]},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": (known["hi"] - value).fillna(0),
            "arrayminus": (value - known["lo"]).fillna(0),
            "thickness": 1.2,
            "width": 0,
            "color": rgba(ROLE["accent"], 0.5),
        },
        error_y={
            "type": "data",
            "symmetric": False,
            "array": 100 * (known[f"{accuracy}_hi"] - known[accuracy]),
            "arrayminus": 100 * (known[accuracy] - known[f"{accuracy}_lo"]),
            "thickness": 1.2,
            "width": 0,
            "color": rgba(ROLE["accent"], 0.35),
        },
        customdata=np.c_[known["model"].map(names), known["flags"].replace("", "none")],
        hovertemplate="%{customdata[0]}<br>"
        + str(spec["title"])
        + " %{x:.4g}<br>accuracy %{y:.1f} %<br>flags: %{customdata[1]}<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )
    unit = f", {spec['unit']}" if spec["unit"] else ""
    axis = {"linear": "linear probe", "knn": "1-NN"}[accuracy]
    fig = layout(
        fig,
        title=f"{spec['title']} against accuracy: {len(known)} encoders",
        x=f"{spec['title']}{unit}",
        y=f"{axis} accuracy, percent",
        height=height,
        legend=False,
    )
    if spec["log"]:
        fig.update_xaxes(type="log")
    return fig


def _text_sides(x: np.ndarray, log: bool) -> list[str]:
    """Place labels towards the middle, above and below in turn: near points stay legible."""
    at = np.log(x) if log and np.all(x > 0) else np.asarray(x, dtype=float)
    middle = (np.min(at) + np.max(at)) / 2
    sides = np.empty(len(at), dtype=object)
    for turn, point in enumerate(np.argsort(at, kind="stable")):
        height = "top" if turn % 2 == 0 else "bottom"
        sides[point] = f"{height} {'right' if at[point] <= middle else 'left'}"
    return list(sides)


def spectrum(result: Result, model: str, *, height: int = 360) -> go.Figure:
    """Draw the eigenvalues of an encoder's covariance with the fitted power law."""
    rows = result.tables["spectrum"]
    rows = rows[(rows["model"] == model) & (rows["eigenvalue"] > 0)]
    if rows.empty:
        return empty("The features are constant: there is no spectrum.", height=height)
    fig = go.Figure()
    fig.add_scatter(
        x=rows["i"],
        y=rows["eigenvalue"],
        mode="lines",
        name="eigenvalues",
        line={"color": ROLE["unselected"], "width": 2.5},
        hovertemplate="eigenvalue %{x}<br>%{y:.3g}<extra></extra>",
    )
    extra = _details(result, model)
    for metric, colour, name in (
        ("alpha_req", OKABE_ITO[0], "fit, 11 to 100"),
        ("alpha_req_90pct", OKABE_ITO[5], "fit, 11 to 90 %"),
    ):
        wanted = (metric, *(f"{metric}.{part}" for part in ("intercept", "first", "last")))
        alpha, start, first, last = (extra.get(name, float("nan")) for name in wanted)
        if not np.isfinite([alpha, start]).all():
            continue
        i = np.array([first, last])
        fig.add_scatter(
            x=i,
            y=np.exp(start - alpha * np.log(i)),
            mode="lines",
            name=f"{name}: alpha {alpha:.2f}",
            line={"color": colour, "width": 2, "dash": "dash"},
            hoverinfo="skip",
        )
    fig.update_xaxes(type="log", dtick=1)
    fig.update_yaxes(type="log", exponentformat="power")
    return layout(
        fig,
        title=f"Eigenspectrum of {titles(result)[model]}",
        x="eigenvalue, from the largest",
        y="variance",
        height=height,
    )


def twonn(result: Result, model: str, *, height: int = 360) -> go.Figure:
    """Draw TwoNN's points and the line whose slope is the intrinsic dimension."""
    rows = result.tables["twonn"]
    rows = rows[rows["model"] == model]
    value = _details(result, model).get("twonn", float("nan"))
    if rows.empty or not np.isfinite(value):
        return empty("Too few distinct samples for the TwoNN line.", height=height)
    used = rows["height"] <= -np.log(0.1) + 1e-9
    fig = go.Figure()
    for mask, colour, name in (
        (used, ROLE["accent"], "lowest 90 %"),
        (~used, ROLE["unselected"], "left out of the fit"),
    ):
        fig.add_scatter(
            x=rows.loc[mask, "ln_mu"],
            y=rows.loc[mask, "height"],
            mode="markers",
            name=name,
            marker={"size": 4, "color": colour, "opacity": 0.7},
            hovertemplate="ln mu %{x:.3g}<br>-ln(1 - F) %{y:.3g}<extra></extra>",
        )
    # Beyond the fit the largest ratios would flatten everything that matters.
    reach = float(rows.loc[used, "ln_mu"].max())
    fig.add_scatter(
        x=[0, reach],
        y=[0, value * reach],
        mode="lines",
        name=f"slope {value:.1f}",
        line={"color": ROLE["cross"], "width": 2},
        hoverinfo="skip",
    )
    fig.update_xaxes(range=[0, 1.6 * reach])
    fig.update_yaxes(rangemode="tozero")
    return layout(
        fig,
        title=f"TwoNN: intrinsic dimension {value:.1f}",
        x="ln mu, ratio of the two nearest distances",
        y="-ln(1 - F)",
        height=height,
    )


def _details(result: Result, model: str) -> dict[str, float]:
    rows = result.tables["metrics"]
    rows = rows[rows["model"] == model]
    return dict(zip(rows["metric"], rows["value"].astype(float), strict=True))


def ridge_sweep(result: Result, *, height: int = 360) -> go.Figure:
    """Draw the linear probe's accuracy over ridges, one line an encoder."""
    rows, names = result.tables["sweep"], titles(result)
    order = sorted(rows["ridge"].unique())
    labels = ["0" if r == 0 else f"{r:g}" for r in order]
    fig = go.Figure()
    for model in result.tables["models"]["model"]:
        mine = rows[rows["model"] == model].set_index("ridge").loc[order]
        fig.add_scatter(
            x=labels,
            y=100 * mine["accuracy"].to_numpy(),
            mode="lines+markers",
            name=names[model],
            line={"color": domain_colour(model, list(names)), "width": 2},
            customdata=mine["rows_per_feature"],
            hovertemplate=names[model]
            + "<br>ridge %{x}: %{y:.1f} %<br>%{customdata:.1f} rows a feature<extra></extra>",
        )
    fig.update_xaxes(type="category")
    return layout(
        fig,
        title="The ridge decides where features are many",
        x="ridge of the linear probe",
        y="test accuracy, percent",
        height=height,
    )


def conditioning(result: Result, *, height: int = 360) -> go.Figure:
    """Draw what the ridge gains against the condition number."""
    rows = result.tables["sweep"].pivot(index="model", columns="ridge", values="accuracy")
    frame = metric_values(result, "condition_number").set_index("model")
    gain = 100 * (rows[max(rows.columns)] - rows[0.0]).loc[frame.index]
    names = titles(result)
    kappa = frame["value"].astype(float)
    known = np.isfinite(kappa)
    fig = go.Figure()
    zero_line(fig, "y")
    fig.add_scatter(
        x=kappa[known],
        y=gain[known],
        mode="markers+text",
        text=[names[m] for m in frame.index[known]],
        textposition=_text_sides(kappa[known].to_numpy(), True) if known.any() else "top center",
        textfont={"size": 12},
        marker={
            "size": 11,
            "color": [domain_colour(m, list(names)) for m in frame.index[known]],
        },
        customdata=frame.loc[known, "rows_per_feature"],
        hovertemplate="%{text}<br>kappa %{x:.3g}<br>ridge gains %{y:.1f} points"
        "<br>%{customdata:.1f} rows a feature<extra></extra>",
        cliponaxis=False,
    )
    fig.update_xaxes(type="log", dtick=1, exponentformat="power")
    return layout(
        fig,
        title="What a ridge of 0.01 gains over none",
        x="condition number",
        y="gain, points of accuracy",
        height=height,
        legend=False,
    )


def small(result: Result) -> go.Figure:
    """Draw the accuracies for the card on Home."""
    return compact(accuracies(result), height=220)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def metric_table(result: Result, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table to read: a row an encoder, a column a metric (four digits), then flags."""
    specs = result.tables["specs"].set_index("metric")
    rows = result.tables["metrics"]
    rows = rows[rows["metric"].isin(specs.index)]
    wide = rows.pivot(index="model", columns="metric", values="value")[list(specs.index)]
    flags = rows.groupby("model")["flags"].agg(
        lambda s: ", ".join(sorted({word.replace("_", " ") for text in s for word in text.split()}))
    )
    wide.columns = [str(specs.loc[name, "title"]) for name in wide.columns]
    base = result.tables["models"].set_index("model")
    wide = wide.apply(lambda column: column.map(_four_digits))
    first = pd.DataFrame(
        {
            "Encoder": [titles(result)[m] for m in base.index],
            "Width": base["d"],
            "Rows measured": base["n_train"],
            "Linear probe, %": (100 * base["linear"]).round(1),
            "1-NN, %": (100 * base["knn"]).round(1),
        },
        index=base.index,
    )
    out = first.join(wide).assign(Flags=flags.replace("", "none"))
    keep = list(base.index) if models is None else list(models)
    return out.loc[keep].reset_index(drop=True)
