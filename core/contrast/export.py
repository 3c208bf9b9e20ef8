"""Clusters that leave the workspace: a table, a JSON that opens again, a page with pictures.

Captions and labels are other people's data: the page escapes them, and nothing in it runs or
is fetched. What the JSON holds is enough to show the same clusters again without the result.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.data.export import csv_text
from core.errors import BadInput
from core.results import Result

if TYPE_CHECKING:
    from core.data.dataset import Dataset

FORMAT = "theodolite-contrast"
VERSION = 1
MOST_BYTES = 50_000_000
MOST_PICTURES = 300
_THUMB = 96
_SHOWN = ("title", "n_members", "k_a", "k_b", "quotient", "rel_gap", "status")

Notes = Mapping[str, Any]


def clusters_csv(dataset: Dataset, result: Result, notes: Notes) -> bytes:
    """Return one row a member with caption, domain, label, verdict, tag and note (UTF-8)."""
    about = dataset.items[["id", "caption", "domain", "label", "sha256"]]
    frame = result.tables["members"].merge(about, on="id", how="left")
    titles = result.tables["directions"].set_index("direction")
    if "title" in titles:
        frame.insert(1, "title", frame["direction"].map(titles["title"]))
    for name in ("verdict", "tag", "note"):
        frame[name] = [notes.get(str(d), {}).get(name, "") for d in frame["direction"]]
    return csv_text(frame).encode("utf-8", "replace")


def clusters_json(dataset: Dataset, result: Result, notes: Notes) -> bytes:
    """Return settings, summary, certificates, members and what people noted, as JSON.

    :func:`reopen` reads it.
    """
    captions = dict(zip(dataset.items["id"], dataset.items["caption"], strict=True))
    members = result.tables["members"]
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": result.kind,
        "key": result.key,
        "created": result.created,
        "dataset": {"name": dataset.name, "digest": dataset.digest, "kind": dataset.kind},
        "params": result.params,
        "summary": result.summary,
        "directions": [],
    }
    for row in json.loads(result.tables["directions"].to_json(orient="records")):
        mine = members[members["direction"] == row["direction"]]
        row["members"] = [
            {**m, "caption": str(captions.get(m["id"], ""))} for m in mine.to_dict("records")
        ]
        row["yours"] = dict(notes.get(str(row["direction"]), {}))
        out["directions"].append(row)
    return json.dumps(out, ensure_ascii=False, indent=1).encode()


def reopen(data: bytes) -> tuple[Result, dict[str, Any], dict[int, str]]:
    """Read clusters from a JSON export.

    Parameters
    ----------
    data : bytes
        From :func:`clusters_json`, at most 50 MB.

    Returns
    -------
    result : Result
        With the tables ``directions`` and ``members``, as they were.
    notes : dict
        Verdict, tag and note by number of the direction.
    captions : dict
        Caption by item id, as they were when exported.

    Raises
    ------
    BadInput
        Not such a file, with what is wrong about it.
    """
    if len(data) > MOST_BYTES:
        raise BadInput(f"The file has {len(data):,} bytes; {MOST_BYTES:,} is the most.")
    try:
        found = json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as err:
        raise BadInput(
            f"The file is not JSON ({type(err).__name__}).", "Choose a clusters export of Contrast."
        ) from err
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadInput(
            "The file is JSON, but no export of clusters.", "Choose a clusters export of Contrast."
        )
    if found.get("version") != VERSION:
        raise BadInput(
            f"The export has version {str(found.get('version'))[:20]!r}; {VERSION} can be read."
        )
    directions, members, notes, captions = [], [], {}, {}
    for number, row in enumerate(_list(found, "directions")):
        direction = _whole(row, "direction", f"directions[{number}]")
        plain = {k: v for k, v in row.items() if not isinstance(v, dict | list)}
        directions.append({**plain, "title": str(plain.get("title") or "mixed")})
        notes[str(direction)] = {k: str(v)[:2000] for k, v in _object(row.get("yours")).items()}
        for place, member in enumerate(_list(row, "members")):
            where = f"directions[{number}].members[{place}]"
            item = _whole(member, "id", where)
            members.append(
                {
                    "direction": direction,
                    "rank": _whole(member, "rank", where),
                    "id": item,
                    "score": _number(member, "score", where),
                    "pole": -1 if member.get("pole") == -1 else 1,
                }
            )
            captions[item] = str(member.get("caption", ""))[:2000]
    if not directions:
        raise BadInput("The export holds no direction.")
    table = pd.DataFrame(directions)
    for name in ("is_group", "named"):
        if name in table:
            table[name] = table[name].fillna(False).astype(bool)
    tables = {"directions": table, "members": _members(members)}
    summary, params = _object(found.get("summary")), _object(found.get("params"))
    key = str(found.get("key", ""))[:64]
    result = Result("contrast", dict(params), dict(summary), tables, key=key)
    return result, notes, captions


def _members(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["direction", "rank", "id", "score", "pole"])


def _list(holder: Any, name: str) -> list[dict[str, Any]]:
    value = holder.get(name)
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise BadInput(f"{name} in the export must be a list of objects.")
    return value


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(row: dict[str, Any], name: str, where: str) -> int:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**62:
        raise BadInput(f"{where}.{name} must be a whole number, not {str(value)[:40]!r}.")
    return value


def _number(row: dict[str, Any], name: str, where: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"{where}.{name} must be a number, not {str(value)[:40]!r}.")
    return float(value)


_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1180px;
padding:0 1rem;color:#1b1f24;background:#fff}h1{font-size:1.6rem}
h2{font-size:1.15rem;margin:2rem 0 .2rem}
p{margin:.2rem 0}.dim{color:#59636e}.grid{display:grid;gap:.7rem;
grid-template-columns:repeat(auto-fill,minmax(104px,1fr));margin:.6rem 0}figure{margin:0}
img{width:100%;aspect-ratio:1;object-fit:contain;background:#fff;border:1px solid #d0d7de;
border-radius:6px;padding:5px;box-sizing:border-box}figcaption{font-size:.8rem;
overflow-wrap:anywhere}dl{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.3rem 0}
dt{font-size:.8rem;color:#59636e}dd{margin:0;font-weight:600}
@media(prefers-color-scheme:dark){body{background:#0e1117;color:#e6edf3}.dim,dt{color:#9aa4af}}"""


def gallery_html(dataset: Dataset, result: Result, notes: Notes) -> bytes:
    """Return a page of its own with the clusters' pictures inside: it opens without a network.

    At most 300 pictures in all, shared among the clusters; of the rest the captions stand.
    """
    table = result.tables["directions"]
    table = table[table["title"].notna()] if "title" in table else table.iloc[:0]
    share = max(1, MOST_PICTURES // max(len(table), 1))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        # Nothing is fetched and nothing runs, whatever a caption holds.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; style-src 'unsafe-inline'\">",
        f"<title>Contrast: {escape(dataset.title)}</title><style>{_STYLE}</style></head><body>",
        "<h1>What does A see that B misses?</h1>",
        f'<p class="dim">A: {escape(str(result.params.get("target")))} · B: '
        f"{escape(str(result.params.get('reference')))} · {escape(dataset.title)}, "
        f"{dataset.n:,} items · epsilon {result.summary.get('epsilon', 0.0):.3g}</p>",
        f"<p>{escape(result.headline)}</p>",
    ]
    members = result.tables["members"]
    for row in table.to_dict("records"):
        mine = members[(members["direction"] == row["direction"]) & (members["pole"] == 1)]
        parts.append(_section(dataset, row, mine, notes.get(str(row["direction"]), {}), share))
    parts.append(f'<p class="dim">Key {escape(result.key[:16])}. Settings: ')
    parts.append(f"{escape(json.dumps(result.params, ensure_ascii=False))}</p></body></html>")
    return "\n".join(parts).encode("utf-8", "replace")


def _section(
    dataset: Dataset,
    row: dict[str, Any],
    members: pd.DataFrame,
    yours: Mapping[str, Any],
    most: int,
) -> str:
    kind = "" if row.get("is_group") else " · contrast, not a cluster"
    said = " · ".join(str(yours[k]) for k in ("verdict", "tag", "note") if yours.get(k))
    facts = "".join(
        f"<div><dt>{escape(name.replace('_', ' '))}</dt>"
        f"<dd>{escape(_plain(row.get(name)))}</dd></div>"
        for name in _SHOWN[1:]
    )
    about = {int(r["id"]): r for r in dataset.items.to_dict("records")} if len(members) else {}
    known = [(m, about[int(m["id"])]) for m in members.to_dict("records") if int(m["id"]) in about]
    tiles = [_tile(dataset, item, float(m["score"])) for m, item in known[:most]]
    rest = [escape(str(item.get("caption", ""))) for _, item in known[most:]]
    more = f'<p class="dim">And {len(rest):,} more: {"; ".join(rest)}</p>' if rest else ""
    return (
        f"<section><h2>{int(row['direction']) + 1}. {escape(str(row['title']))}</h2>"
        f'<p class="dim">{len(members):,} samples{kind}{" · " if said else ""}{escape(said)}</p>'
        f'<dl>{facts}</dl><div class="grid">{"".join(tiles)}</div>{more}</section>'
    )


def _plain(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.3g}" if math.isfinite(value) else "n/a"
    return "n/a" if value is None else str(value)


def _tile(dataset: Dataset, item: dict[str, Any], score: float) -> str:
    caption = escape(str(item.get("caption", "")))
    picture = ""
    if dataset.kind == "image":
        try:
            picture = f'<img alt="{caption}" src="{_data_uri(dataset, int(item["id"]))}">'
        except BadInput as err:
            # A picture that was lost leaves its caption; the page says why.
            picture = f'<p class="dim">{escape(err.message)}</p>'
    place = " · ".join(escape(str(item[k])) for k in ("domain", "label") if item.get(k))
    return (
        f"<figure>{picture}<figcaption>{caption}<br>"
        f'<span class="dim">{place} · {score:.2f}</span></figcaption></figure>'
    )


def _data_uri(dataset: Dataset, item: int) -> str:
    from core.data.images import thumbnail_bytes

    data = thumbnail_bytes(dataset.image_bytes(item), f"item {item}", _THUMB)
    kind = "png" if data.startswith(b"\x89PNG") else "webp" if data[8:12] == b"WEBP" else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
