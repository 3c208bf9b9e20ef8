"""Pictures with captions, or texts as cards: what a selection, a cluster or a cell really is.

One block of HTML with lazy images from the app's own ``/thumb/<sha256>`` route: the page
carries addresses, not pixels, and the browser keeps what it has seen. Captions and labels
are other people's data and are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from pages._shell.words import number, plural, safe

# Past this many, pages: a browser lays out a few hundred tiles at once without a pause.
MOST = 300


def thumb_url(sha: str) -> str:
    """Return the address of a thumbnail."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/thumb/{sha}" if base else f"/thumb/{sha}"


def items(
    dataset: Dataset,
    ids: Iterable[int],
    *,
    key: str,
    scores: Mapping[int, float] | None = None,
    badge: Callable[[float], str] = lambda value: number(value, 2),
    captions: Mapping[int, str] | None = None,
    notes: Mapping[int, str] | None = None,
    note_column: str = "",
    marked: Collection[int] = (),
    page_size: int = 60,
    cell: int = 104,
    label: str = "Items",
) -> None:
    """Draw items as a grid of pictures (image dataset) or of cards (text dataset).

    Parameters
    ----------
    dataset : Dataset
        Where the ids belong; ids it does not hold are left away.
    ids : iterable of int
        In the order to be shown.
    key : str
        Unique on the page.
    scores : mapping of id to float, optional
        A small badge on each item, written by ``badge``.
    captions : mapping of id to str, optional
        Instead of the dataset's own caption.
    notes : mapping of id to str, optional
        A second line, for instance the domain or the wrong prediction.
    note_column : str
        A column of the dataset as the second line, where ``notes`` says nothing.
    marked : collection of int
        Items with an outline (anchors, errors); say in words what it means.
    page_size : int
        Items a page, at most 300.
    cell : int
        Smallest width of a picture, in pixels.
    label : str
        Read to those who cannot see the grid.
    """
    rows = positions(dataset, ids)
    if not len(rows):
        st.caption("Nothing to show here.")
        return
    size = min(page_size, MOST)
    shown = rows
    if len(rows) > size:
        pages = -(-len(rows) // size)
        at = st.pagination(pages, key=f"{key}_page")
        at = min(max(int(at or 1), 1), pages)
        shown = rows[(at - 1) * size : at * size]
        st.caption(f"{(at - 1) * size + 1:,} to {(at - 1) * size + len(shown):,} of {len(rows):,}")
    draw = _picture if dataset.kind == "image" else _card
    width = cell if dataset.kind == "image" else max(cell, 200)
    tiles = []
    for row in dataset.items.iloc[shown].to_dict("records"):
        item = int(row["id"])
        score = scores.get(item) if scores else None
        tiles.append(
            draw(
                row,
                caption=str(
                    (captions or {}).get(item, row.get("caption") or row.get("label") or "")
                ),
                note=str((notes or {}).get(item, row.get(note_column, ""))),
                badge=badge(score) if score is not None else "",
                marked=item in marked,
            )
        )
    st.html(
        f'<div class="th-grid" role="list" aria-label="{safe(label)}: {plural(len(rows), "item")}"'
        f' style="--th-cell:{int(width)}px">{"".join(tiles)}</div>'
    )


def thumbs(
    dataset: Dataset, ids: Iterable[int], *, cell: int = 52, label: str = "Examples"
) -> None:
    """Draw one row of small pictures without captions; what does not fit is left away."""
    rows = _rows(dataset, ids)
    if dataset.kind != "image":
        texts = " · ".join(str(text) for text in rows["caption"].head(6))
        st.html(f'<p class="th-dim">{safe(texts)}</p>')
        return
    tiles = "".join(
        f'<figure class="th-cell" role="listitem" title="{safe(row["caption"])}">'
        f'<img loading="lazy" src="{thumb_url(row["sha256"])}" alt="{safe(row["caption"])}">'
        "</figure>"
        for row in rows.to_dict("records")
    )
    st.html(
        f'<div class="th-grid th-strip" role="list" aria-label="{safe(label)}"'
        f' style="--th-cell:{int(cell)}px;column-gap:.3rem">{tiles}</div>'
    )


def sample(dataset: Dataset, most: int) -> list[int]:
    """Return up to ``most`` ids drawn without order, the same each time."""
    if dataset.n <= most:
        return [int(i) for i in dataset.ids]
    drawn = np.random.default_rng(0).choice(dataset.ids, most, replace=False)
    return [int(i) for i in drawn]


def positions(dataset: Dataset, ids: Iterable[int] | np.ndarray) -> np.ndarray:
    """Return where ids are in the dataset's table, in their order; unknown ids are left away."""
    wanted = ids if isinstance(ids, np.ndarray) else np.array([int(i) for i in ids], dtype=np.int64)
    own = dataset.ids
    if len(own) and len(wanted) and (np.diff(own) > 0).all():
        if own[-1] - own[0] + 1 == len(own):  # no gaps: the row is the id's distance
            return wanted[(wanted >= own[0]) & (wanted <= own[-1])] - own[0]
        at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        return at[own[at] == wanted]
    at = pd.Index(own).get_indexer(pd.Index(wanted))
    return at[at >= 0]


def _rows(dataset: Dataset, ids: Iterable[int]) -> pd.DataFrame:
    return dataset.items.iloc[positions(dataset, ids)]


def _picture(
    row: Mapping[str, object], *, caption: str, note: str, badge: str, marked: bool
) -> str:
    sha = str(row.get("sha256") or "")
    alt = ", ".join(dict.fromkeys(str(p) for p in (caption, row.get("domain"), note) if p))
    mark = " th-mark" if marked else ""
    return (
        f'<figure class="th-cell{mark}" role="listitem" tabindex="0" title="{safe(alt)}">'
        f'<img loading="lazy" decoding="async" src="{safe(thumb_url(sha))}" alt="{safe(alt)}">'
        f"{_badge(badge)}<figcaption>{safe(caption)}{_note(note)}</figcaption></figure>"
    )


def _card(row: Mapping[str, object], *, caption: str, note: str, badge: str, marked: bool) -> str:
    mark = " th-mark" if marked else ""
    place = " · ".join(str(part) for part in (row.get("domain"), row.get("label"), note) if part)
    return (
        f'<div class="th-cell th-text{mark}" role="listitem" tabindex="0">{_badge(badge)}'
        f"{safe(caption)}<small>{safe(place)}</small></div>"
    )


def _badge(text: str) -> str:
    return f'<span class="th-badge">{safe(text)}</span>' if text else ""


def _note(text: str) -> str:
    return f'<br><span class="th-dim">{safe(text)}</span>' if text else ""
