"""Figures of what a metric can say: power-law curves, and what a ridge changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.population import metric_title
from core.figures.style import LINE, OKABE_ITO, ROLE, domain_colour, empty, layout
from core.quality.population import Population
from core.quality.registry import ARCHITECTURES

#: Exponents drawn where the width is the axis.
_SHOWN_ALPHAS: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def sensitivity(
    curves: pd.DataFrame, metric: str, *, sampled: pd.DataFrame | None = None, per_width: bool
) -> go.Figure:
    """Draw a metric against the exponent, one line a width, with a sample's values on top.

    Parameters
    ----------
    curves : DataFrame
        From :func:`core.quality.sensitivity.exact_curves`.
    sampled : DataFrame, optional
        From :func:`core.quality.sensitivity.sampled_curve`.
    per_width : bool
        Divide by the width.
    """
    fig = go.Figure()
    widths = sorted(curves["d"].unique())
    for at, d in enumerate(widths):
        rows = curves[curves["d"] == d]
        fig.add_scatter(
            x=rows["alpha"], y=rows[metric] / (d if per_width else 1), mode="lines",
            name=f"d {d}", line={"color": OKABE_ITO[at % len(OKABE_ITO)], "width": 2},
            hovertemplate=f"d {d}, alpha %{{x}}: %{{y:.4g}}<extra></extra>",
        )  # fmt: skip
    if sampled is not None and len(sampled):
        d = int(sampled["d"].iloc[0])
        fig.add_scatter(
            x=sampled["alpha"], y=sampled[metric] / (d if per_width else 1), mode="markers",
            name=f"sampled, d {d}, {int(sampled['n'].iloc[0]):,} rows",
            marker={"symbol": "x", "size": 9, "color": ROLE["cross"]},
            hovertemplate="sample, alpha %{x}: %{y:.4g}<extra></extra>",
        )  # fmt: skip
    fig.update_yaxes(type="log" if metric != "alpha_req" else "linear")
    unit = ", over the width" if per_width else ""
    return layout(fig, title=f"{metric_title(metric)} of a power-law spectrum",
                  x="alpha, exponent of the eigenvalues", y=f"{metric_title(metric)}{unit}",
                  height=400)  # fmt: skip


def over_width(curves: pd.DataFrame, metric: str, *, per_width: bool) -> go.Figure:
    """Draw a metric against the width on log axes, one line an exponent."""
    fig = go.Figure()
    for at, alpha in enumerate(_SHOWN_ALPHAS):
        rows = curves[np.isclose(curves["alpha"], alpha)].sort_values("d")
        if rows.empty:
            continue
        fig.add_scatter(
            x=rows["d"], y=rows[metric] / (rows["d"] if per_width else 1), mode="lines+markers",
            name=f"alpha {alpha:g}", line={"color": OKABE_ITO[at % len(OKABE_ITO)], "width": 2},
            hovertemplate=f"alpha {alpha:g}, d %{{x}}: %{{y:.4g}}<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(type="log")
    fig.update_yaxes(type="log" if metric != "alpha_req" else "linear")
    unit = ", over the width" if per_width else ""
    return layout(fig, title=f"{metric_title(metric)} by width", x="width d",
                  y=f"{metric_title(metric)}{unit}", height=400)  # fmt: skip


def elasticity(found: pd.DataFrame, metric: str) -> go.Figure:
    """Draw the local elasticity of a metric in the width against the exponent."""
    fig = go.Figure()
    fig.add_hline(y=0, line={"color": LINE, "width": 1})
    for at, d in enumerate(sorted(found["d"].unique())):
        rows = found[found["d"] == d]
        fig.add_scatter(
            x=rows["alpha"], y=rows["elasticity"], mode="lines", name=f"near d {d:.0f}",
            line={"color": OKABE_ITO[at % len(OKABE_ITO)], "width": 2},
            hovertemplate="alpha %{x}: %{y:.3f}<extra></extra>",
        )  # fmt: skip
    return layout(fig, title=f"{metric_title(metric)}: how far the width drives it",
                  x="alpha, exponent of the eigenvalues", y="d ln metric / d ln d",
                  height=400)  # fmt: skip


def ridge_gain(population: Population, dataset: str) -> go.Figure:
    """Draw what a ridge of 1e-2 gains over none against the condition number, a point a model."""
    columns = ["model", "architecture", "d", "n_train", "condition_number", "linear.0",
               "linear.0.01"]  # fmt: skip
    rows = population.table.loc[population.table["dataset"] == dataset, columns]
    kappa = rows["condition_number"].astype(float)
    rows = rows[np.isfinite(kappa) & (kappa > 0)]
    if rows.empty:
        return empty("No model has a condition number here.")
    fig = go.Figure()
    fig.add_hline(y=0, line={"color": LINE, "width": 1})
    for name in ARCHITECTURES:
        part = rows[rows["architecture"] == name]
        if part.empty:
            continue
        fig.add_scatter(
            x=part["condition_number"], y=100 * (part["linear.0.01"] - part["linear.0"]),
            mode="markers", name=name, customdata=part[["model", "d", "n_train"]],
            marker={"color": domain_colour(name, ARCHITECTURES), "size": 8, "opacity": 0.75},
            hovertemplate="%{customdata[0]}<br>%{customdata[2]} rows, %{customdata[1]} features"
            "<br>gain %{y:.1f} points<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(type="log")
    return layout(fig, title=f"What a ridge gains on {population.datasets[dataset]}",
                  x="condition number of the features", y="accuracy, ridge 1e-2 less none, points",
                  height=400)  # fmt: skip
