"""The parts every page is made of, in the order a reader meets them.

:func:`header` the question and what is shown · :func:`verdict` the answer in words, then
tiles · figures and pictures · :func:`explain` how to read it, when it misleads, the method ·
:func:`footer` seed, versions, left out, command, link, downloads.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.data.export import csv_text
from core.results import Result
from core.types import LeftOut
from pages._shell.state import share_link
from pages._shell.words import count, plural, safe, seconds

# Whether this run of the script has drawn its page's question.
_asked: ContextVar[bool] = ContextVar("asked", default=False)

# A longer table would travel to the browser with every run of the page.
MOST_ROWS = 5_000

_COMMAND = {"stitching": "stitch", "stitching-study": "stitch study"}


@dataclass(frozen=True)
class Tile:
    """One number of a verdict.

    Attributes
    ----------
    label : str
        What it is, in the page's words.
    value : str
        The number as text (``words.number`` and its kin), with ± or an interval.
    note : str
        n, what was left out, the unit: a short second line.
    tone : {"", "good", "bad", "unknown"}
        Adds a sign, never only a colour.
    help : str
        Tooltip; defaults to none.
    """

    label: str
    value: str
    note: str = ""
    tone: str = ""
    help: str = ""


def header(question: str, shown: str | Sequence[str], *, share: bool = True) -> None:
    """Draw the page's question as H1 and one line that says what is shown.

    Parameters
    ----------
    question : str
        For instance "Will these sources help?".
    shown : str or sequence of str
        Parts joined by a middle dot: method, dataset, model, n.
    share : bool
        Offer the address that rebuilds this view.
    """
    _asked.set(True)
    parts = [shown] if isinstance(shown, str) else [part for part in shown if part]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width="stretch"):
            st.title(question, anchor=False)
        if share:
            with st.popover("Share", help="A link that rebuilds this view"):
                st.caption("This address rebuilds the view: data, models and settings.")
                st.code(share_link(), language=None, wrap_lines=True)
    st.html(f'<p class="th-dim">{" · ".join(safe(part) for part in parts)}</p>')


def begin() -> None:
    """Begin a page: its question has not been drawn."""
    _asked.set(False)


def ensure_header(question: str) -> None:
    """Draw the page's question if the page stopped before it did so itself."""
    if not _asked.get():
        header(question, "", share=False)


def verdict(words: str, tiles: Iterable[Tile] = ()) -> None:
    """Draw the answer: words first, then one to four numbers.

    Parameters
    ----------
    words : str
        One or two plain sentences, usually ``result.headline``.
    tiles : iterable of Tile
        Each with ±, n and what was left out, where it has them.
    """
    cells = "".join(
        f'<div class="th-tile" data-tone="{safe(tile.tone)}" title="{safe(tile.help)}">'
        f"<span>{safe(tile.label)}</span><strong>{safe(tile.value)}</strong>"
        f"{f'<small>{safe(tile.note)}</small>' if tile.note else ''}</div>"
        for tile in tiles
    )
    listing = f'<div class="th-tiles">{cells}</div>' if cells else ""
    st.html(
        f'<section class="th-verdict" aria-label="Verdict"><p class="th-words">{safe(words)}</p>'
        f"{listing}</section>"
    )


def state_panel(title: str, *lines: str) -> None:
    """Draw a designed empty, failed or stale state: a title and one or two lines."""
    body = "".join(f"<p>{safe(line)}</p>" for line in lines if line)
    st.html(f'<section class="th-state"><h2>{safe(title)}</h2>{body}</section>')


def chips(words: Iterable[str]) -> None:
    """Draw short facts as a row of chips."""
    st.html("".join(f'<span class="th-chip">{safe(word)}</span>' for word in words))


def explain(
    *, read: Sequence[str], misleads: Sequence[str], method: str = "", paper: str = ""
) -> None:
    """Draw "How to read this", "When it misleads" and "Method", folded.

    Parameters
    ----------
    read, misleads : sequence of str
        About three short lines each.
    method : str
        Markdown; what is computed, with equation numbers.
    paper : str
        The reference.
    """
    with st.expander("How to read this, and when it misleads"):
        left, right = st.columns(2, gap="large")
        with left:
            st.markdown("**How to read this**\n\n" + "\n".join(f"- {line}" for line in read))
        with right:
            st.markdown("**When it misleads**\n\n" + "\n".join(f"- {line}" for line in misleads))
    if method:
        with st.expander("Method"):
            st.markdown(method)
            if paper:
                st.caption(paper)


def left_out(lines: Sequence[LeftOut]) -> None:
    """Draw what was left out and why, folded; nothing when nothing was."""
    if not lines:
        return
    total = sum(line.count for line in lines)
    with st.expander(f"Left out: {plural(total, 'item')}"):
        frame = pd.DataFrame([line.as_dict() for line in lines])
        st.dataframe(
            frame,
            hide_index=True,
            column_config={"what": "What", "reason": "Why", "count": "Items"},
            alt="What was left out and why",
        )


def command_line(result: Result, defaults: Mapping[str, Any] | None = None) -> str:
    """Return the command that gives this result, with only what differs from the defaults."""
    known = dict(defaults or {})
    words = ["theodolite", *_COMMAND.get(result.kind, result.kind).split()]
    for name, value in result.params.items():
        if name in known and known[name] == value:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--set", f"{name}={text}"]
    return shlex.join(words)


def footer(result: Result, *, defaults: Mapping[str, Any] | None = None) -> None:
    """Draw the last part of an analysis page: where the numbers come from, and how to take them.

    Parameters
    ----------
    result : Result
        Its tables can be downloaded as CSV or Parquet.
    defaults : mapping, optional
        The analysis module's ``DEFAULTS``; parameters at their default leave the command.
    """
    left_out(result.left_out)
    tables(result)
    with st.expander("Reproduce this"):
        st.caption("The same numbers from the command line; the page shows them at once.")
        st.code(command_line(result, defaults), language="bash", wrap_lines=True)
        st.json(dict(result.params), expanded=False)
    facts = [
        f"seed {result.params['seed']}" if "seed" in result.params else "",
        f"n {count(result.summary.get('n'))}",
        f"left out {count(sum(line.count for line in result.left_out))}",
        f"computed in {seconds(result.seconds)}" if result.seconds else "",
        result.created[:10],
        ", ".join(f"{name} {number}" for name, number in list(result.versions.items())[:4]),
        f"key {result.key[:12]}" if result.key else "",
        "± is one standard deviation",
    ]
    line = " · ".join(safe(fact) for fact in facts if fact)
    st.html(f'<footer class="th-foot">{line}</footer>')


def tables(result: Result) -> None:
    """Draw every table of a result, folded, with its downloads."""
    frames = {name: frame for name, frame in result.tables.items() if len(frame)}
    if not frames:
        return
    with st.expander("Tables and downloads"):
        name = next(iter(frames))
        if len(frames) > 1:
            name = st.selectbox(
                "Table",
                list(frames),
                key=f"{result.kind}_table",
                format_func=lambda key: (
                    f"{key.replace('_', ' ')} ({plural(len(frames[key]), 'row')})"
                ),
            )
        table(frames[name], name=f"{result.kind}-{name}", key=f"{result.kind}_{name}")


def table(frame: pd.DataFrame, *, name: str, key: str, height: int | None = None) -> None:
    """Draw a table with its CSV and Parquet downloads.

    Parameters
    ----------
    name : str
        File name without its ending.
    key : str
        Unique on the page.
    """
    size: dict[str, Any] = {"height": height} if height else {}
    if len(frame) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {len(frame):,} rows; the files hold all of them.")
    st.dataframe(frame.head(MOST_ROWS), hide_index=True, alt=f"Table {name}", **size)
    downloads(frame, name=name, key=key)


def downloads(frame: pd.DataFrame, *, name: str, key: str) -> None:
    """Draw the CSV and Parquet downloads of a table."""
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "CSV",
            lambda: csv_text(frame).encode("utf-8", "replace"),
            f"{name}.csv",
            "text/csv",
            key=f"{key}_csv",
            on_click="ignore",
        )
        st.download_button(
            "Parquet",
            lambda: _parquet(frame),
            f"{name}.parquet",
            "application/vnd.apache.parquet",
            key=f"{key}_parquet",
            on_click="ignore",
        )


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
