"""Figures of "transfer": every one reads a stored result and computes nothing again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures import style
from core.results import Result

KINDS = ("within", "cross")
LAYER_UNIT = "symmetric KL, nats"
_LEAST = 1e-4  # a divergence estimated at zero still has a place on a log axis


def short_layer(name: str) -> str:
    """Return "6→7" for "block06 → block07", else the name as it is.

    Examples
    --------
    >>> short_layer("block06 → block07")
    '6→7'
    """
    ends = [part.strip() for part in name.split("→")]
    digits = ["".join(c for c in end if c.isdigit()) for end in ends]
    return "→".join(str(int(d)) for d in digits) if all(digits) else name


def layer_strip(result: Result, *, chosen: int | None = None) -> go.Figure:
    """Divergence by layer, one line a source, with the null band; points are clickable.

    The band around a line is one standard deviation over repeats. ``customdata`` of a point
    is its transition number.
    """
    frame = result.tables["per_layer"]
    sources = sorted(set(frame["source"]))
    fig = go.Figure()
    first = frame[frame["source"] == sources[0]]
    ticks = [short_layer(name) for name in first["name"]]
    _band(fig, first["layer"], first["null"], first["null_sd"], style.ROLE["null"], "null")
    for source in sources:
        mine = frame[frame["source"] == source]
        colour = style.domain_colour(source, [*sources, str(result.params["target"])])
        _band(fig, mine["layer"], mine["value"], mine["sd"], colour, "")
        fig.add_scatter(
            x=mine["layer"], y=np.maximum(mine["value"], _LEAST), mode="lines+markers", name=source,
            line={"color": colour, "width": 2}, marker={"size": 8},
            customdata=mine["layer"], legendgroup=source,
            hovertemplate=f"{source}<br>%{{y:.3f}} nats<extra></extra>",
        )  # fmt: skip
    style.layout(fig, title="Divergence at each layer", x="layer step", y=LAYER_UNIT, height=330)
    fig.update_xaxes(tickvals=list(first["layer"]), ticktext=ticks)
    values = frame["value"].clip(lower=_LEAST)
    if _axis_type(values) == "log":
        floor = math.log10(max(float(frame["null"].min()), _LEAST) / 3)
        fig.update_yaxes(type="log", dtick=1, range=[floor, math.log10(float(values.max()) * 2)])
    else:
        fig.update_yaxes(rangemode="tozero")
    if chosen is not None:
        fig.add_vline(
            x=chosen, line={"color": style.LINE, "width": 14}, opacity=0.35, layer="below"
        )
    return fig


def _band(
    fig: go.Figure, x: pd.Series, mid: pd.Series, sd: pd.Series, colour: str, name: str
) -> None:
    spread = sd.fillna(0.0)
    low, high = np.maximum(mid - spread, _LEAST), mid + spread
    fig.add_scatter(
        x=[*x, *x[::-1]], y=[*high, *low[::-1]], fill="toself", mode="lines", line={"width": 0},
        fillcolor=style.rgba(colour, 0.3 if name else 0.13), hoverinfo="skip",
        name=name, showlegend=bool(name),
    )  # fmt: skip


def ridges(result: Result, source: str, descriptor: str, *, chosen: int | None = None) -> go.Figure:
    """Within over cross densities of one descriptor, one ridge a layer, the chosen one strong.

    Parameters
    ----------
    descriptor : {"theta", "d"}
    """
    frame = result.tables["densities"]
    frame = frame[(frame["source"] == source) & (frame["descriptor"] == descriptor)]
    names = list(result.summary["layers"])
    fig = go.Figure()
    for layer in range(len(names)):
        mine = frame[frame["layer"] == layer]
        peak = max(float(mine["density"].max()), 1e-12)
        strong = chosen is None or layer == chosen
        for kind in KINDS:
            part = mine[mine["kind"] == kind]
            height = layer + 0.92 * part["density"].to_numpy() / peak
            x = part["x"].to_numpy()
            colour = style.ROLE[kind]
            fig.add_scatter(
                x=[x[0], *x, x[-1]], y=[layer, *height, layer], mode="lines", fill="toself",
                name=kind, legendgroup=kind, showlegend=layer == 0,
                line={"color": style.rgba(colour, 1.0 if strong else 0.4), "width": 1.6},
                fillcolor=style.rgba(colour, 0.3 if strong else 0.07),
                hovertemplate=f"{kind}, step {short_layer(names[layer])}<br>%{{x:.3g}}"
                "<extra></extra>",
            )  # fmt: skip
    unit = "theta, radians" if descriptor == "theta" else "relative distance d (log scale)"
    title = "Angle theta" if descriptor == "theta" else "Relative distance d"
    height = 90 + 44 * max(len(names), 4)
    style.layout(fig, title=f"{title}: within over cross", x=unit, y="layer step", height=height)
    fig.update_yaxes(
        tickvals=list(range(len(names))), ticktext=[short_layer(n) for n in names], showgrid=False
    )
    if descriptor == "d":
        fig.update_xaxes(type="log", dtick=1 if _decades(frame["x"]) > 1.5 else "D1")
    return fig


def _decades(values: pd.Series) -> float:
    return float(np.log10(values.max() / max(values.min(), 1e-12)))


def plane(result: Result, source: str, layer: int, *, chosen: int | None = None) -> go.Figure:
    """Theta against d at one layer with the bound d = sec(theta/2) - 1; points are pairs.

    ``customdata`` of a point is its pair number; +1,000 for cross pairs.
    """
    at = source_row(result, source)
    fig = go.Figure()
    theta = np.asarray(result.arrays["pair_theta"])[at, :, :, layer]
    d = np.asarray(result.arrays["pair_d"])[at, :, :, layer]
    for index, kind in enumerate(KINDS):
        fig.add_scatter(
            x=theta[index], y=d[index], mode="markers", name=kind,
            customdata=np.arange(theta.shape[1]) + 1_000 * index,
            marker={
                "color": style.rgba(style.ROLE[kind], 0.55), "size": 7,
                "symbol": "circle" if kind == "within" else "diamond",
            },
            hovertemplate=f"{kind} pair<br>theta %{{x:.3f}}, d %{{y:.3f}}<extra></extra>",
        )  # fmt: skip
    if chosen is not None and chosen % 1_000 < theta.shape[1]:
        index, pair = divmod(chosen, 1_000)
        fig.add_scatter(
            x=[theta[index, pair]], y=[d[index, pair]], mode="markers", name="chosen pair",
            marker={
                "size": 15, "color": "rgba(0,0,0,0)",
                "line": {"width": 3, "color": style.ROLE["b"]},
            },
            hoverinfo="skip",
        )  # fmt: skip
    if result.params["geometry"] == "euclidean":
        _bound(fig, theta, d)
    name = short_layer(result.summary["layers"][layer])
    style.layout(
        fig, title=f"Pairs at step {name}", x="theta, radians", y="relative distance d", height=380
    )
    room_x, room_y = 0.06 * float(np.ptp(theta)) + 1e-3, 0.08 * float(np.ptp(d)) + 1e-3
    fig.update_xaxes(range=[float(theta.min()) - room_x, float(theta.max()) + room_x])
    fig.update_yaxes(range=[max(float(d.min()) - room_y, -room_y), float(d.max()) + room_y])
    return fig


def _bound(fig: go.Figure, theta: np.ndarray, d: np.ndarray) -> None:
    grid = np.linspace(float(theta.min()), min(float(theta.max()) + 0.05, math.pi - 1e-3), 120)
    fig.add_scatter(
        x=grid, y=1.0 / np.cos(grid / 2) - 1.0, mode="lines", name="bound",
        line={"color": style.ROLE["null"], "width": 1.5, "dash": "dash"}, hoverinfo="skip",
    )  # fmt: skip


def source_row(result: Result, source: str) -> int:
    """Return the place of a source in the result's arrays."""
    return list(result.params["sources"]).index(source)


def triangle(result: Result, source: str, layer: int, pair: int) -> go.Figure:
    """Draw the triangle of one pair flat from its three side lengths.

    Three points always span a plane, so in flat space the drawing is exact; in a curved
    geometry the lengths are, and the angle is written out.

    Parameters
    ----------
    pair : int
        Pair number; +1,000 for a cross pair.
    """
    index, row = divmod(pair, 1_000)
    at = source_row(result, source)
    sides = np.asarray(result.arrays["pair_sides"])[at, index, row, layer].astype(float)
    theta = float(np.asarray(result.arrays["pair_theta"])[at, index, row, layer])
    d = float(np.asarray(result.arrays["pair_d"])[at, index, row, layer])
    sep, detour, traj = sides
    # Anchor at the origin, the anchor one layer on along x, the partner by its two distances.
    x = (sep**2 - detour**2 + traj**2) / (2 * traj) if traj > 0 else 0.0
    y = math.sqrt(max(sep**2 - x**2, 0.0))
    corners = {"anchor": (0.0, 0.0), "partner": (x, y), "anchor, next layer": (traj, 0.0)}
    fig = go.Figure()
    colour = style.ROLE[KINDS[index]]
    start, top, end = corners.values()
    low, high = min(0.0, x), max(traj, x)
    _side(fig, start, top, f"separation {sep:.3g} ", colour, anchor="right")
    _side(fig, top, end, f" detour {detour:.3g}", colour, anchor="left")
    _side(fig, start, end, f"trajectory {traj:.3g}", style.ROLE["null"], shift=-34)
    fig.add_scatter(
        x=[c[0] for c in corners.values()], y=[c[1] for c in corners.values()],
        mode="markers+text", text=list(corners), showlegend=False, hoverinfo="text",
        textposition=_corner_places(traj, max(high - low, y)),
        marker={"size": 11, "color": [style.ROLE["null"], colour, style.ROLE["null"]]},
    )  # fmt: skip
    title = f"{KINDS[index].capitalize()} pair: theta {theta:.3f} rad, d {d:.3f}"
    style.layout(fig, title=title, height=380, legend=False)
    room = 0.42 * max(high - low, y)
    fig.update_xaxes(visible=False, range=[low - room, high + room])
    fig.update_yaxes(visible=False, scaleanchor="x", range=[-room, y + 0.5 * room])
    return fig


def _corner_places(base: float, extent: float) -> list[str]:
    """Put the two lower labels apart where the trajectory is short."""
    if base < 0.5 * extent:
        return ["bottom left", "top center", "bottom right"]
    return ["bottom center", "top center", "bottom center"]


def _side(
    fig: go.Figure, a: tuple[float, float], b: tuple[float, float], text: str, colour: str,
    *, anchor: str = "center", shift: int = 0,
) -> None:  # fmt: skip
    fig.add_scatter(
        x=[a[0], b[0]], y=[a[1], b[1]], mode="lines", line={"color": colour, "width": 2.5},
        showlegend=False, hoverinfo="skip",
    )  # fmt: skip
    fig.add_annotation(
        x=0.5 * (a[0] + b[0]), y=0.5 * (a[1] + b[1]), text=text, showarrow=False,
        xanchor=anchor, yshift=shift, font={"size": 12},
    )  # fmt: skip


def ranking(
    result: Result, *, reading: str = "score", titles: Mapping[str, str] | None = None
) -> go.Figure:
    """All blends, nearest first: a point each (a diamond for one source), its members under it.

    Parameters
    ----------
    reading : {"score", "excess", "joint", "per_layer"}
        What the points are; a log axis where they span more than a factor of twenty.
    """
    from plotly.subplots import make_subplots

    frame = result.tables["ranking"].sort_values(reading, ignore_index=True)
    sources = list(result.params["sources"])
    x = np.arange(len(frame))
    fig = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.03,
        row_heights=[0.6, 0.4],
    )  # fmt: skip
    sd = {"score": "sd", "excess": "excess_sd"}.get(reading)
    single = frame["n_members"] == 1
    fig.add_scatter(
        x=x, y=frame[reading], row=1, col=1, mode="markers",
        marker={
            "size": 9,
            "color": [style.ROLE["a"] if one else style.ROLE["null"] for one in single],
            "symbol": ["diamond" if one else "circle" for one in single],
        },
        error_y={
            "type": "data", "array": frame[sd] if sd else None, "thickness": 1, "width": 0,
            "color": style.LINE,
        },
        customdata=frame["blend"], showlegend=False,
        hovertemplate="%{customdata}<br>%{y:.3f} nats<extra></extra>",
    )  # fmt: skip
    if reading == "score" and len(frame):
        null, spread = float(frame["null"].iloc[0]), float(frame["null_sd"].fillna(0).iloc[0])
        fig.add_hrect(
            y0=max(null - spread, 0), y1=null + spread, row=1, col=1, line_width=0,
            fillcolor=style.rgba(style.ROLE["null"], 0.3), layer="below",
        )  # fmt: skip
    _members(fig, frame, sources, titles or {})
    word = {"score": "score", "excess": "excess over the null"}.get(reading, reading)
    style.layout(fig, title="All blends, nearest first", height=330 + 22 * len(sources))
    fig.update_layout(showlegend=False)
    kind = _axis_type(frame[reading])
    fig.update_yaxes(
        title={"text": f"{word.replace('_', ' ')}, nats"}, row=1, col=1, type=kind,
        dtick=1 if kind == "log" else None, rangemode="tozero" if kind == "linear" else None,
    )  # fmt: skip
    fig.update_xaxes(showticklabels=False, showgrid=False)
    return fig


def _axis_type(values: pd.Series) -> str:
    """Choose a log axis where one outlier would press all others onto the floor."""
    low, high = float(values.min()), float(values.max())
    return "log" if low > 0 and high > 20 * low else "linear"


def _members(
    fig: go.Figure, frame: pd.DataFrame, sources: Sequence[str], titles: Mapping[str, str]
) -> None:
    """Dots: filled for a member, faint otherwise."""
    x = np.arange(len(frame))
    for row, source in enumerate(reversed(sources)):
        inside = np.array([source in set(members) for members in frame["members"]])
        for shown, colour, size in ((~inside, style.GRID, 7), (inside, style.ROLE["a"], 10)):
            fig.add_scatter(
                x=x[shown], y=np.full(int(shown.sum()), row), mode="markers", row=2, col=1,
                marker={"size": size, "color": colour}, showlegend=False, hoverinfo="skip",
            )  # fmt: skip
    names = [titles.get(source, source) for source in reversed(sources)]
    fig.update_yaxes(
        tickvals=list(range(len(sources))), ticktext=names, showgrid=False, row=2, col=1,
        range=[-0.6, len(sources) - 0.4], zeroline=False,
    )  # fmt: skip


def gain_scatter(result: Result, measure: str = "score") -> go.Figure:
    """Score against measured gain, one point a blend, error bars one standard deviation.

    Parameters
    ----------
    measure : str
        A column of the ranking; lower-is-better columns are drawn with their axis turned, so
        that a good measure rises to the right.
    """
    frame = result.tables["ranking"]
    if "gain" not in frame:
        return style.empty(f"No measured gain: {result.summary.get('gain_reason', '')}.")
    turned = measure != "size"
    fig = go.Figure()
    for size, mine in frame.groupby("n_members"):
        fig.add_scatter(
            x=mine[measure], y=100 * mine["gain"], mode="markers", name=f"{size} source"
            + ("s" if size > 1 else ""),
            marker={
                "size": 10, "color": style.OKABE_ITO[(int(size) - 1) % 8],
                "symbol": style.SYMBOLS[(int(size) - 1) % len(style.SYMBOLS)],
            },
            error_y={"type": "data", "array": 100 * mine["gain_sd"], "thickness": 1, "width": 0},
            error_x={
                "type": "data", "array": mine["sd"] if measure == "score" else None,
                "thickness": 1, "width": 0,
            },
            customdata=mine["blend"],
            hovertemplate="%{customdata}<br>%{x:.3g}, gain %{y:.1f} points<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.LINE, "width": 1})
    words = {"score": "score, nats", "size": "items in the blend"}
    label = words.get(measure, measure.replace("_", " "))
    style.layout(
        fig, title="Does the score foretell the gain?",
        x=label + (" (nearer to the right)" if turned else ""),
        y="gain in accuracy, points", height=380,
    )  # fmt: skip
    kind = _axis_type(frame[measure])
    fig.update_xaxes(type=kind, dtick=1 if kind == "log" else None)
    if turned:
        fig.update_xaxes(autorange="reversed")
    return fig


def small(result: Result) -> go.Figure:
    """Draw the single sources' scores beside the null: the card on Home."""
    frame = result.tables["ranking"]
    frame = frame[frame["n_members"] == 1].sort_values("score", ascending=False)
    fig = go.Figure()
    fig.add_bar(
        x=frame["score"], y=frame["blend"], orientation="h",
        marker={"color": style.ROLE["cross"]},
        error_x={"type": "data", "array": frame["sd"], "thickness": 1, "width": 0,
                 "color": style.LINE},
        hovertemplate="%{y}: %{x:.3f} nats<extra></extra>",
    )  # fmt: skip
    null, spread = float(frame["null"].iloc[0]), float(frame["null_sd"].fillna(0).iloc[0])
    fig.add_vrect(
        x0=max(null - spread, 0), x1=null + spread, line_width=0, layer="below",
        fillcolor=style.rgba(style.ROLE["null"], 0.35),
    )  # fmt: skip
    style.layout(fig, height=220, legend=False)
    return style.compact(fig)
