"""The parts of the Datasets page."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.types import LeftOut
from core.workspace import Workspace
from pages._shell import grid, layout, state
from pages._shell.layout import Tile
from pages._shell.pickers import model_title
from pages._shell.words import count, listed, percent, plural, safe

PAGE = "datasets"
ALL = "all"
# A mosaic is for looking: more rows or columns than this cannot be taken in.
_MOST_ROWS, _MOST_COLUMNS = 12, 8


@dataclass(frozen=True)
class Filter:
    """Which items are shown."""

    label: str = ALL
    domain: str = ALL
    text: str = ""


def noun(data: Dataset) -> str:
    """Return the count of items in words."""
    return plural(data.n, "picture" if data.kind == "image" else "text")


def _left_out(data: Dataset) -> list[LeftOut]:
    return [
        LeftOut(str(line["what"]), str(line["reason"]), int(line.get("count", 1)))
        for line in data.meta.get("left_out", [])
    ]


def _values(data: Dataset, column: str) -> list[str]:
    return sorted(v for v in data.items[column].astype(str).unique() if v)


def filters(data: Dataset) -> Filter:
    """Draw the filters: label, domain and words of the caption."""
    label = state.select(PAGE, "label", "Label", [ALL, *_values(data, "label")])
    domain = state.select(PAGE, "domain", "Domain", [ALL, *_values(data, "domain")])
    text = st.text_input(
        "Caption contains",
        key=f"{PAGE}_text",
        bind="query-params",
        max_chars=80,
        help="Any part of the caption, upper or lower case",
    )
    return Filter(str(label), str(domain), text.strip())


def words(data: Dataset) -> str:
    """Return what the dataset holds, in one sentence."""
    labels, domains = _values(data, "label"), _values(data, "domain")
    parts = [noun(data)]
    if labels:
        parts.append(f"with {plural(len(labels), 'label')}")
    if domains:
        parts.append(f"from {plural(len(domains), 'domain')} ({listed(domains, most=8)})")
    lost = sum(line.count for line in _left_out(data))
    return f"{' '.join(parts)}. Left out: {count(lost)}."


def tiles(data: Dataset) -> list[Tile]:
    """Return the numbers of the dataset."""
    items = data.items
    captions = float((items["caption"].astype(str) != "").mean()) if data.n else 0.0
    sizes = items["label"].value_counts()
    splits = items["split"].replace("", "none").value_counts()
    return [
        Tile("captions", percent(captions), "of the items have one"),
        Tile(
            "smallest and largest label",
            f"{count(sizes.min())} to {count(sizes.max())}",
            f"{sizes.index[-1] or 'none'} to {sizes.index[0] or 'none'}",
        ),
        Tile("split", " / ".join(count(n) for n in splits), " / ".join(map(str, splits.index))),
    ]


def mosaic(data: Dataset) -> None:
    """Draw a few items of each label and domain, with the count of each cell."""
    st.subheader("By label and domain", anchor=False)
    items = data.items.assign(
        label=data.items["label"].replace("", "none"),
        domain=data.items["domain"].replace("", "none"),
    )
    labels = list(items["label"].value_counts().index[:_MOST_ROWS])
    domains = list(items["domain"].value_counts().sort_index().index[:_MOST_COLUMNS])
    head = "".join(f'<th scope="col">{safe(domain)}</th>' for domain in domains)
    body = "".join(_row(data, items, label, domains) for label in labels)
    st.html(
        f'<div class="th-scroll"><table class="th-mosaic"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    hidden = items["label"].nunique() - len(labels)
    if hidden > 0:
        st.caption(f"The {len(labels)} largest labels; {hidden} more are in the table below.")
    with st.expander("The counts as a table"):
        counts = pd.crosstab(items["label"], items["domain"]).reset_index()
        layout.table(counts, name=f"{data.name}-counts", key=f"{PAGE}_counts")


def _row(data: Dataset, items: pd.DataFrame, label: str, domains: list[str]) -> str:
    cells = []
    for domain in domains:
        part = items[(items["label"] == label) & (items["domain"] == domain)]
        first = part.iloc[:: max(1, len(part) // 4)].head(4)
        inside = "".join(_thumb(row) for row in first.to_dict("records"))
        if data.kind == "text":
            inside = safe(str(first["caption"].iloc[0])[:60]) if len(first) else ""
        cells.append(f"<td><div>{inside}</div><small>{len(part):,}</small></td>")
    return f'<tr><th scope="row">{safe(label)}</th>{"".join(cells)}</tr>'


def _thumb(row: dict[str, object]) -> str:
    if not row.get("sha256"):
        return ""
    source = safe(grid.thumb_url(str(row["sha256"])))
    return f'<img loading="lazy" src="{source}" alt="{safe(row["caption"] or row["label"])}">'


def browse(data: Dataset, chosen: Filter) -> None:
    """Draw the items the filters leave."""
    items = data.items
    keep = pd.Series(True, index=items.index)
    if chosen.label != ALL:
        keep &= items["label"].astype(str) == chosen.label
    if chosen.domain != ALL:
        keep &= items["domain"].astype(str) == chosen.domain
    if chosen.text:
        keep &= items["caption"].astype(str).str.contains(chosen.text, case=False, regex=False)
    found = items[keep]
    st.subheader(f"Items ({len(found):,} of {data.n:,})", anchor=False)
    if found.empty:
        layout.state_panel("No item matches", "Choose another label or domain, or other words.")
        return
    notes = {int(i): str(d) for i, d in zip(found["id"], found["domain"], strict=True)}
    grid.items(data, found["id"], key=f"{PAGE}_grid", notes=notes, page_size=48, label="Items")


def about(ws: Workspace, data: Dataset) -> None:
    """Draw where the data comes from, what was left out, its table and its features."""
    layout.left_out(_left_out(data))
    with st.expander("Items as a table"):
        layout.table(
            data.items.drop(columns="sha256"), name=data.name, key=f"{PAGE}_items", height=360
        )
    with st.expander("Where it comes from"):
        for field in ("note", "source", "licence"):
            if data.meta.get(field):
                st.markdown(f"**{field.capitalize()}**")
                st.text(str(data.meta[field]))
        st.caption(f"Digest {data.digest[:16]}: the same content has the same digest everywhere.")
    with st.expander("Features in the store"):
        rows = [
            {
                "Encoder": model_title(entry["model"]),
                "Layers": len(entry["layers"]),
                "Rows": entry["n"],
                "MB": round(entry["bytes"] / 2**20, 1),
            }
            for entry in ws.features.list()
            if entry["dataset"] == data.name
        ]
        if rows:
            st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Features of this dataset")
        else:
            st.caption("None yet.")
        st.code(f"theodolite extract {data.name} MODEL", language="bash")
    with st.expander("Add a dataset"):
        st.caption("A folder of pictures: one sub-folder a label, the file name is the caption.")
        st.code("theodolite import FOLDER --name NAME", language="bash")
