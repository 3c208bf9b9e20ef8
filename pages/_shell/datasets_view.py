"""The parts of the Datasets page."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.data.overview import Overview, examples, find_items, siblings
from core.workspace import Workspace
from pages._shell import grid, layout, pickers, state
from pages._shell.layout import Tile
from pages._shell.outcome_view import outcome
from pages._shell.table import link
from pages._shell.words import as_text, count, listed, percent, plural, safe, tip

PAGE = "datasets"
ALL = "all"
# A cell is read at a glance: about 24 pictures a row, at least four a cell, or two texts.
# Past these many rows and columns a mosaic is no longer one.
_ROW_PICTURES, _PICTURES, _TEXTS = 24, 4, 2
_MOST_CLASSES, _MOST_DOMAINS = 24, 8
_TABLE_ROWS = 5_000

# A little larger than the shell's own mosaic: here the pictures are the subject.
_CSS = ".th-holdings img { width: 42px; height: 42px; } .th-holdings td { min-width: 100px; }"


def kind(data: Dataset) -> str:
    """Say what an item is."""
    return plural(data.n, "picture") if data.kind == "image" else plural(data.n, "text")


def splits(found: Overview) -> str:
    """Say how the items are split."""
    named = [f"{name} {n:,}" for name, n in found.splits.items() if name != "none"]
    return listed(named) if named else "not split"


def verdict(found: Overview) -> None:
    """Draw what the dataset holds in words and tiles."""
    per_class = f"{found.classes.min():,} to {found.classes.max():,} items each"
    captions = f"{percent(found.captioned / found.n)} of the items"
    layout.verdict(
        found.headline,
        [
            Tile("Items", count(found.n), splits(found)),
            Tile("Classes", count(len(found.classes)), per_class, help="The column label"),
            Tile(
                "Domains",
                count(len(found.domains)),
                listed(found.domains.index, most=3),
                help=tip("domain") or "",
            ),
            Tile("Different captions", count(found.distinct_captions), captions),
            Tile("Left out", count(found.n_left_out), "see why below" if found.left_out else ""),
        ],
    )


def mosaic(data: Dataset, found: Overview) -> None:
    """Draw examples of each class in each domain, with their counts."""
    st.subheader("Classes by domains", anchor=False)
    cells = found.cells.iloc[:_MOST_CLASSES, :_MOST_DOMAINS]
    if cells.shape != found.cells.shape:
        st.caption(
            f"The {cells.shape[0]} largest of {plural(found.cells.shape[0], 'class', 'classes')} "
            f"and {cells.shape[1]} of {plural(found.cells.shape[1], 'domain')}; the search below "
            "reaches the rest."
        )
    most = max(_PICTURES, _ROW_PICTURES // cells.shape[1]) if data.kind == "image" else _TEXTS
    head = "".join(_head("col", domain, found.domains[domain]) for domain in cells.columns)
    body = "".join(
        f"<tr>{_head('row', label, found.classes[label])}"
        + "".join(
            _cell(data, str(label), str(d), int(cells.at[label, d]), most) for d in cells.columns
        )
        + "</tr>"
        for label in cells.index
    )
    st.html(
        f'<style>{_CSS}</style><div class="th-scroll"><table class="th-mosaic th-holdings" '
        'aria-label="Examples of each class in each domain, with counts"><thead><tr><th></th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    with st.expander("Counts as a table"):
        layout.table(
            found.cells.rename_axis("class").reset_index(),
            name=f"{data.name}-counts",
            key=f"{PAGE}_counts",
        )


def _head(scope: str, name: object, n: int) -> str:
    return f'<th scope="{scope}">{safe(name)} <small>{n:,}</small></th>'


def _cell(data: Dataset, label: str, domain: str, n: int, most: int) -> str:
    ids = examples(data.items, label, domain, most)
    if not ids:
        return "<td><small>none</small></td>"
    rows = data.subset(ids)
    if data.kind == "image":
        inside = "".join(
            f'<img loading="lazy" decoding="async" src="{safe(grid.thumb_url(sha))}" '
            f'alt="{safe(text)}" title="{safe(text)}">'
            for sha, text in zip(rows["sha256"], rows["caption"], strict=True)
        )
    else:
        inside = "".join(f"<span>{safe(_short(text, 36))}</span>" for text in rows["caption"])
    return f"<td><div>{inside}</div><small>{n:,}</small></td>"


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def search(data: Dataset, found: Overview) -> None:
    """Draw the items that match what is looked for, as pictures or as a table."""
    st.subheader("Items", anchor=False)
    first, second, third, fourth = st.columns([4, 2, 2, 2], vertical_alignment="bottom")
    with first:
        text = st.text_input(
            "Search",
            key=f"{PAGE}_search",
            placeholder="Words of a caption, a name in any language, an id",
            bind="query-params",
            help="Every word has to occur in the item's texts.",
        )
    with second:
        label = _filter("label", "Class", found.classes.index)
    with third:
        domain = _filter("domain", "Domain", found.domains.index)
    with fourth:
        split = _filter("split", "Split", found.splits.index)
    rows = find_items(data.items, text or "", label=label, domain=domain, split=split)
    view = state.choose_one(
        PAGE,
        "view",
        "Show as",
        ["pictures" if data.kind == "image" else "texts", "table"],
        show=lambda name: str(name).capitalize(),
    )
    if rows.empty:
        layout.state_panel(
            "No item matches", "Use fewer words, or set the filters back to all of them."
        )
        return
    st.caption(f"{plural(len(rows), 'item')} of {data.n:,}")
    if view == "table":
        _table(data, rows)
        return
    notes = {int(i): str(d) for i, d in zip(rows["id"], rows["domain"], strict=True)}
    grid.items(data, rows["id"], key=f"{PAGE}_grid", notes=notes, label="Items found")
    _choose_detail(data, rows)


def _filter(column: str, label: str, names: Iterable[object]) -> str:
    chosen = state.select(PAGE, column, label, [ALL, *(str(name) for name in names)])
    return "" if chosen == ALL else str(chosen)


def _table(data: Dataset, rows: pd.DataFrame) -> None:
    """Draw the rows; the selected one is shown with all that is known of it."""
    shown = rows.drop(columns="sha256").head(_TABLE_ROWS)
    if len(rows) > len(shown):
        st.caption(f"The first {len(shown):,}; narrow the search to see others.")
    event = st.dataframe(
        shown,
        hide_index=True,
        key=f"{PAGE}_rows",
        on_select="rerun",
        selection_mode="single-row",
        height=360 if len(shown) > 9 else "content",
        alt=f"Items of {data.title}",
    )
    layout.downloads(rows.drop(columns="sha256"), name=f"{data.name}-items", key=f"{PAGE}_found")
    picked = event["selection"]["rows"]
    if picked and picked[0] < len(shown):
        _detail(data, int(shown["id"].iloc[picked[0]]))
    else:
        st.caption("Select a row to see the item.")


def _choose_detail(data: Dataset, rows: pd.DataFrame) -> None:
    ids = [int(i) for i in rows["id"].head(_TABLE_ROWS)]
    captions = dict(zip(rows["id"], rows["caption"], strict=True))
    domains = dict(zip(rows["id"], rows["domain"], strict=True))
    item = state.select(
        PAGE,
        "item",
        "Look at one item",
        ids,
        show=lambda i: f"{i} · {_short(str(captions[i]), 40)} · {domains[i]}",
    )
    _detail(data, int(item))


def _detail(data: Dataset, item: int) -> None:
    """Draw one item: the picture as an encoder gets it, and every column."""
    row = data.row(item)
    left, right = st.columns([1, 3], gap="large")
    with left:
        if data.kind == "image":
            picture = data.image(item)
            st.image(picture, width=192)
            st.caption(f"{picture.width} x {picture.height} pixels")
        else:
            st.html(f"<blockquote>{safe(row['caption'])}</blockquote>")
    with right:
        facts = {name: value for name, value in row.items() if not str(name).startswith("name_")}
        frame = pd.DataFrame({"column": list(facts), "value": [str(v) for v in facts.values()]})
        st.dataframe(frame, hide_index=True, alt=f"Columns of item {item}")
        names = {str(k)[5:]: v for k, v in row.items() if str(k).startswith("name_")}
        if names:
            with st.expander(f"Names in {len(names)} locales"):
                st.dataframe(
                    pd.DataFrame({"locale": list(names), "name": list(names.values())}),
                    hide_index=True,
                    alt=f"Names of item {item}",
                )
    others = siblings(data.items, item)
    if others:
        st.caption("The same concept in the other domains")
        by_domain = dict(zip(data.items["id"], data.items["domain"], strict=True))
        grid.items(
            data,
            others,
            key=f"{PAGE}_siblings",
            notes={i: str(by_domain[i]) for i in others},
            label="The same concept",
        )


def origin(ws: Workspace, data: Dataset) -> None:
    """Draw where the data come from, under which licence, and what is computed from them."""
    st.subheader("Where it comes from", anchor=False)
    meta = data.meta
    rows = [
        ("Source", meta.get("source") or "not stated"),
        ("Licence", meta.get("licence") or "not stated: find out before you share results"),
        ("Note", meta.get("note", "")),
        ("Imported", str(meta.get("created", ""))[:10]),
        ("Digest", data.digest[:16]),
    ]
    st.markdown("\n".join(f"- **{name}**: {as_text(text)}" for name, text in rows if text))
    _features(ws, data)
    if "report" in meta:
        outcome(ws.datasets.report(data.name), key=f"{PAGE}_outcome")
    with st.container(horizontal=True):
        link("add", "Add a dataset")
        link("models", "Models")
        link("explore", "See where everything is")


def _features(ws: Workspace, data: Dataset) -> None:
    rows = [
        {
            "Encoder": pickers.model_title(entry["model"]),
            "Layers": len(entry["layers"]),
            "Rows": entry["n"],
            "MB": round(entry["bytes"] / 2**20, 1),
        }
        for entry in ws.features.list()
        if entry["dataset"] == data.name
    ]
    with st.expander(f"Features in the store: {plural(len(rows), 'encoder')}"):
        if rows:
            st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Features of this dataset")
        else:
            st.caption("None yet.")
        st.code(f"theodolite extract {data.name} MODEL", language="bash")
