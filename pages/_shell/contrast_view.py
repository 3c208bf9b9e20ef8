"""The parts of the Contrast page: pair chooser, cards, the open cluster, export."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.errors import NotFound
from core.figures import contrast as figures
from core.figures import contrast_more as more
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, grid, pickers, state
from pages._shell.layout import Tile
from pages._shell.words import as_text, number, plural, safe, tip

PAGE = "contrast"
_CARD_PICTURES = 6
_VERDICTS = ("undecided", "keep", "reject")

_CSS = """
.ct-card h3 { margin: 0; padding: 0; font-size: 1.02rem; line-height: 1.25; }
.ct-bars { display: grid; grid-template-columns: 1.1rem 1fr 2.6rem; gap: .15rem .4rem;
    align-items: center; font-size: .82rem; font-variant-numeric: tabular-nums; margin: .3rem 0 0; }
.ct-bar { height: .55rem; border-radius: 3px; background: color-mix(in srgb, currentColor 10%,
    transparent); overflow: hidden; }
.ct-bar i { display: block; height: 100%; }
.ct-strip { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: .2rem 0 .4rem; padding: 0; }
.ct-strip div { min-width: 4.6rem; }
.ct-strip dt { margin: 0; font-size: .8rem;
    color: color-mix(in srgb, currentColor 68%, transparent); }
.ct-strip dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }
.ct-strip .ok::before { content: "\\2713\\00a0"; color: #009E73; }
.ct-strip .no::before { content: "?\\00a0"; color: #D55E00; }
"""


def styles() -> None:
    """Put the page's own rules on the page."""
    st.html(f"<style>{_CSS}</style>")


def pair(ws: Workspace, dataset: Dataset) -> tuple[str, str]:
    """Choose A and B side by side, with a button that swaps them."""
    offered = pickers.models_with_features(ws, dataset.name)
    if dataset.kind == "image":
        offered = [m for m in offered if m not in _text_models(ws, dataset)]
    if len(offered) < 2:
        raise NotFound(
            f"A contrast needs two encoders; {dataset.name!r} has features of {len(offered)}.",
            f"Extract another on the Models page, or `theodolite extract {dataset.name} MODEL`; "
            "or bring a matrix of another tool there.",
        )
    left, middle, right = st.columns([5, 1, 5], vertical_alignment="bottom")
    # The default comes first: a link leaves out a choice that equals the first option.
    first = sorted(offered, key=lambda m: m != "demo/vit-s14")
    second = sorted(offered, key=lambda m: (m == first[0], m != "demo/squeezenet1.1"))
    target = _model(left, "target", "A: what does it see", first)
    reference = _model(right, "reference", "B: that this one misses", second)
    with middle:
        st.button("⇄", key="contrast_swap", help="Swap A and B", on_click=_swap, width="stretch")
    return target, reference


def _model(column: Any, name: str, label: str, offered: list[str]) -> str:
    with column:
        chosen = state.select(PAGE, name, label, offered, show=pickers.model_title, help=tip(name))
    return str(chosen)


def _swap() -> None:
    keys = state.key_of(PAGE, "target"), state.key_of(PAGE, "reference")
    first, second = (st.session_state[k] for k in keys)
    st.session_state[keys[0]], st.session_state[keys[1]] = second, first
    st.session_state.pop(state.key_of(PAGE, "direction"), None)


def _text_models(ws: Workspace, dataset: Dataset) -> set[str]:
    from core.encoders.registry import describe

    found = set()
    for model in pickers.models_with_features(ws, dataset.name):
        try:
            if describe(model, ws).modality == "text":
                found.add(model)
        except NotFound:
            # Imported features of a model nobody registered: offered as pictures' features.
            continue
    return found


def text_models(ws: Workspace, dataset: Dataset) -> list[str]:
    """Return the text encoders whose features of the captions are in the store."""
    if dataset.kind != "image":
        return []
    known = _text_models(ws, dataset)
    return [m for m in pickers.models_with_features(ws, dataset.name) if m in known]


def tiles(result: Result) -> list[Tile]:
    """Return the numbers beside the verdict."""
    summary = result.summary
    gap = summary.get("worst_rel_gap")
    how = "chosen by what it yields" if summary["group_size_automatic"] else "as set"
    size = summary["group_size"]
    return [
        Tile(
            "groups",
            f"{summary['n_groups']} of {summary['n_directions']} directions",
            "the others are wide contrasts",
            help=tip("cluster") or "",
        ),
        Tile(
            "widest certified gap",
            number(gap, 2),
            "of the optimum, at most; below 1e-6 is certified",
            tone="good" if summary["certified"] else "unknown",
            help=tip("gap") or "",
        ),
        Tile("group size", number(size, 3), how, help=tip("group size") or ""),
        Tile(
            "epsilon",
            number(summary["epsilon"], 3),
            f"identical samples allowed under B; n {summary['n']:,}",
            help=tip("epsilon") or "",
        ),
    ]


def cards(
    dataset: Dataset,
    table: pd.DataFrame,
    members: pd.DataFrame,
    notes: dict[str, Any],
    *,
    buttons: bool = True,
) -> None:
    """Draw one card a direction: pictures, words, size, two bars, a button that opens it.

    ``members`` of directions that are not in ``table`` are passed over.
    """
    full = max(float(table[["k_a", "k_b"]].max().max()), 1e-9)
    for row in table.to_dict("records"):
        number_ = int(row["direction"])
        with st.container(border=True):
            st.html(_card_head(row, notes.get(str(number_), {})))
            ids = members[(members["direction"] == number_) & (members["pole"] == 1)]["id"]
            grid.thumbs(
                dataset, ids.head(_CARD_PICTURES), cell=44, label=f"Direction {number_ + 1}"
            )
            st.html(_bars(row, full))
            if buttons:
                st.button(
                    "Open",
                    key=f"contrast_open_{number_}",
                    on_click=_open,
                    args=(number_,),
                )


def _open(direction: int) -> None:
    st.session_state[state.key_of(PAGE, "direction")] = direction


def title_of(row: dict[str, Any]) -> str:
    """Return number and title of a direction."""
    return f"{int(row['direction']) + 1}. {row['title']}"


def _card_head(row: dict[str, Any], yours: dict[str, Any]) -> str:
    kind = "" if row["is_group"] else " · contrast, not a cluster"
    kept = {"keep": " · kept", "reject": " · rejected"}.get(yours.get("verdict", ""), "")
    kept += f" · {yours['tag']}" if yours.get("tag") else ""
    return (
        f'<div class="ct-card"><h3>{safe(title_of(row))}</h3><p class="th-dim">'
        f"{plural(int(row['n_members']), 'sample')}{safe(kind)}{safe(kept)}</p></div>"
    )


def _bars(row: dict[str, Any], full: float) -> str:
    cells = ""
    for side, colour in (("a", "#0072B2"), ("b", "#E69F00")):
        value = float(row[f"k_{side}"])
        wide = 100 * min(max(value / full, 0.0), 1.0)
        cells += (
            f'<span>{side.upper()}</span><span class="ct-bar"><i style="width:{wide:.0f}%;'
            f'background:{colour}"></i></span><span>{number(value, 2)}</span>'
        )
    help_ = "mean kernel similarity inside the set, both kernels at the same scale"
    return f'<div class="ct-bars" title="{help_}">{cells}</div>'


def certificate(row: dict[str, Any]) -> None:
    """Draw the certificate of one direction as a strip of numbers."""
    sure = row["status"] in ("active", "inactive", "boundary")
    parts = [
        ("objective under A", number(row["objective"]), "", "x' K_A x, raw"),
        ("constraint under B", number(row["constraint"]), "", "x' K_B x, raw"),
        ("epsilon", number(row["epsilon"]), "", tip("epsilon")),
        ("multiplier", number(row["multiplier"]), "", tip("multiplier")),
        ("relative gap", f"{row['rel_gap']:.0e}", "ok" if sure else "no", tip("gap")),
        ("status", row["status"], "", f"proven by {row['certificate']}"),
        ("coherence", f"A {row['k_a']:.2f} · B {row['k_b']:.2f}", "", "mean kernel similarity"),
        ("mean cosine", f"A {row['cos_a']:.2f} · B {row['cos_b']:.2f}", "", "inside the set"),
        ("quotient", number(row["quotient"]), "", "set-level Rayleigh quotient A / B"),
        ("z", f"A {row['z_a']:.0f} · B {row['z_b']:.0f}", "", "against 500 random sets"),
        (
            "neighbours inside",
            f"A {100 * row['knn_a']:.0f} % · B {100 * row['knn_b']:.0f} %",
            "",
            "share of the members' ten nearest neighbours that are members",
        ),
        ("comes back", _again(row), "", "overlap (Jaccard) when found anew on 80 % of the samples"),
        ("range mass", number(row["range_mass"]), "", "below 1: epsilon is too tight"),
    ]
    cells = "".join(
        f'<div title="{safe(help_ or "")}"><dt>{safe(name)}</dt>'
        f'<dd class="{tone}">{safe(value)}</dd></div>'
        for name, value, tone, help_ in parts
    )
    st.html(f'<dl class="ct-strip">{cells}</dl>')


def _again(row: dict[str, Any]) -> str:
    value = row.get("stability")
    return f"{100 * value:.0f} %" if isinstance(value, float) and value == value else "n/a"


def opened(dataset: Dataset, result: Result, row: dict[str, Any]) -> None:
    """Draw the open cluster: certificate, sentence, tabs."""
    direction = int(row["direction"])
    st.subheader(as_text(title_of(row)), anchor=False)
    st.html(f'<p class="th-dim">{safe(in_words(row))}</p>')
    certificate(row)
    members = result.tables["members"]
    mine = members[members["direction"] == direction]
    near = result.tables["neighbours"]
    near = near[near["direction"] == direction]
    styles_ = dict(zip(dataset.items["id"], dataset.items["domain"], strict=True))
    tab_set, tab_other, tab_b, tab_pairs, tab_why = st.tabs(
        ["The cluster", "Its other pole", "What B mixes it with", "Similarities", "What holds it"]
    )
    with tab_set:
        _members(dataset, mine[mine["pole"] == 1], styles_, key=f"contrast_set_{direction}")
    with tab_other:
        st.caption(as_text(_other_pole(row)))
        other = mine[mine["pole"] == -1]
        if len(other):
            _members(dataset, other, styles_, key=f"contrast_other_{direction}")
    with tab_b:
        st.caption(
            "Samples outside the set that B holds closest to it; the badge is the mean "
            "cosine under B."
        )
        grid.items(
            dataset,
            near["id"],
            key=f"contrast_near_{direction}",
            scores=dict(zip(near["id"], near["similarity_b"], strict=True)),
            notes=styles_,
            label="What B mixes the set with",
        )
    with tab_pairs:
        charts.figure(
            figures.similarities(result, direction),
            f"contrast_pairs_{direction}",
            "Histograms of pair similarity inside the set under A and B, over random pairs",
        )
    with tab_why:
        _why(result, direction)


def _why(result: Result, direction: int) -> None:
    if len(result.tables.get("attribution", ())):
        charts.figure(
            more.attribution(result, direction),
            f"contrast_attribution_{direction}",
            "Share of the set's pairs that are alike in the picture, the caption, both or neither",
        )
        st.caption("A pair is alike where its cosine is above the 99th percentile of random pairs.")
    else:
        st.caption(
            "Only pictures count here. Choose picture and caption above to see what each adds."
        )
    charts.figure(
        more.membership(result, direction),
        f"contrast_ends_{direction}",
        "Weights of the direction from the strongest sample to the weakest, with the set's cut",
    )


def in_words(row: dict[str, Any]) -> str:
    """Say what this set is and how far it can be believed."""
    shares = [
        f"{100 * row[f'{c}_share']:.0f} % {row[c]}"
        for c in ("label", "subgroup", "domain")
        if c in row and isinstance(row.get(c), str) and row[c] and row[f"{c}_share"] >= 0.5
    ]
    made = f" {', '.join(shares)}." if shares else ""
    if not row["is_group"]:
        return (
            f"A contrast, not a cluster: about {row['size']:.0f} samples share it, and they are "
            f"hardly alike under A.{made}"
        )
    share = row["k_b"] / row["k_a"] if row["k_a"] > 0 else 1.0
    looser = "scattered" if share < 0.25 else "looser" if share < 0.75 else "nearly as tight"
    return f"About {row['size']:.0f} samples, tight under A, {looser} under B.{made}"


def _other_pole(row: dict[str, Any]) -> str:
    share = f"{100 * float(row['other_energy']):.0f} % of its energy"
    if row["other_energy"] > 0.25:
        return f"The direction also weighs these against the cluster ({share})."
    return (
        f"This direction has one pole only: the other holds {share}, which is too little to show."
    )


def _members(dataset: Dataset, rows: pd.DataFrame, notes: dict[int, str], *, key: str) -> None:
    grid.items(
        dataset,
        rows["id"],
        key=key,
        scores=dict(zip(rows["id"], rows["score"], strict=True)),
        notes=notes,
        label="Samples of the set, strongest first",
    )


def scope(result: Result) -> str:
    """Return the scope of the notes on one result."""
    return f"contrast/{result.key}"


def judge(ws: Workspace, result: Result, direction: int) -> None:
    """Keep or reject the open cluster, tag it and write a note; all stay in the workspace."""
    where, key = scope(result), str(direction)
    stored = ws.notes.get(where, key, {})
    left, middle, right = st.columns([4, 2, 4], vertical_alignment="bottom")
    keys = {name: f"contrast_{name}_{direction}" for name in ("verdict", "tag", "note")}

    def save() -> None:
        ws.notes.put(
            where,
            key,
            {
                "verdict": st.session_state.get(keys["verdict"]) or "undecided",
                "tag": st.session_state.get(keys["tag"], ""),
                "note": st.session_state.get(keys["note"], ""),
            },
        )

    with left:
        st.segmented_control(
            "Your verdict",
            _VERDICTS,
            default=stored.get("verdict", "undecided"),
            key=keys["verdict"],
            format_func=str.capitalize,
            on_change=save,
            help="Kept in the workspace and written into the export.",
        )
    with middle:
        st.text_input(
            "Tag",
            value=stored.get("tag", ""),
            key=keys["tag"],
            on_change=save,
            placeholder="One word",
        )
    with right:
        st.text_input(
            "Note",
            value=stored.get("note", ""),
            key=keys["note"],
            on_change=save,
            placeholder="What you call this group, or why not",
        )
