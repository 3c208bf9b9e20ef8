"""The parts of the page that takes a dataset in: source, preview, roles, import, outcome."""

from __future__ import annotations

import base64
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.data.importers import ImportLimits, Plan, Preview
from core.data.importers.apart import preview_apart
from core.data.importers.inbox import Inbox
from core.data.importers.plan import clean_name
from core.data.importers.roles import ROLE_WORDS
from core.data.importers.sniff import ENCODINGS, SEPARATORS
from core.data.importers.work import allowed_folders, allowed_path
from core.errors import NotFound
from core.workspace import Workspace
from pages._shell import errors, jobs, layout
from pages._shell.outcome_view import outcome
from pages._shell.table import page_path
from pages._shell.uploader import uploader
from pages._shell.words import as_text, plural

PAGE = "add"
_NONE = "none"
_INBOX, _JOB, _SAID = "add_inbox", "add_job", "add_said"
# In the order a person thinks of them.
_ROLES = ("image", "text", "label", "domain", "split", "caption", "id")
_ASKED = {
    "image": "Pictures", "text": "Texts, where there are no pictures", "label": "Classes",
    "domain": "Domains", "split": "Splits", "caption": "Captions", "id": "Ids",
}  # fmt: skip
_HELP = {
    "image": "A path, bytes, base64; each picture becomes an item.",
    "text": "Each text becomes an item.",
    "label": "What an item shows: the classes that probes are trained on.",
    "domain": "Where an item comes from: a style, a site, a language.",
    "split": "Train, test and the like.",
    "caption": "What is said of the picture.",
    "id": "A value of its own in each row. Without one, the row's number is the id.",
}  # fmt: skip


def shown(ws: Workspace) -> str:
    """Say in one line what the page is for."""
    return "Pictures, captions or texts become a dataset; every row is accounted for"


def running(ws: Workspace) -> bool:
    """Draw the import that was started here, or its outcome; say whether there is one."""
    job_id = st.session_state.get(_JOB)
    if job_id is None:
        return False
    try:
        job = ws.jobs.get(job_id)
    except NotFound:
        del st.session_state[_JOB]
        return False
    if job.active:
        st.subheader(f"Importing {as_text(job.params['plan']['title'])}", anchor=False)
        st.caption("It goes on when you close this page; the Jobs page shows it too.")
        jobs.watch(job.id)
        return True
    if job.state == "done":
        _done(ws, str(job.params["plan"]["name"]))
        return True
    layout.state_panel(
        "Stopped" if job.state == "cancelled" else "This could not be imported",
        job.error or "Nothing was changed.", job.error_hint,
    )  # fmt: skip
    with st.container(horizontal=True):
        if st.button("Change the choices", type="primary", key="add_back"):
            del st.session_state[_JOB]
            st.rerun()
        st.button("Start over", key="add_over", on_click=_forget, args=(ws,))
    return True


def _done(ws: Workspace, name: str) -> None:
    report = ws.datasets.report(name)
    layout.verdict(
        f"{ws.dataset(name).title} is in the workspace.",
        [
            layout.Tile("Taken", f"{report.taken:,}", "items"),
            layout.Tile("Left out", f"{report.n_left_out:,}", "each with its reason below"),
            layout.Tile("Repaired", f"{report.n_repaired:,}", "read otherwise than given"),
        ],
    )
    with st.container(horizontal=True):
        if st.button("Look at it", type="primary", key="add_look"):
            _forget(ws)
            st.switch_page(page_path("datasets"), query_params={"dataset": ws.dataset(name).title})
        st.button("Add another", key="add_another", on_click=_forget, args=(ws,))
    outcome(report, key="add_outcome", open_first=True)


def _forget(ws: Workspace) -> None:
    _discard(ws)
    for key in [key for key in st.session_state if str(key).startswith("add_")]:
        del st.session_state[key]


def _discard(ws: Workspace) -> None:
    name = st.session_state.pop(_INBOX, None)
    with contextlib.suppress(NotFound):
        Inbox(ws.root, str(name), ImportLimits.from_environment()).discard()


def source(ws: Workspace, limits: ImportLimits) -> dict[str, Any] | None:
    """Draw the ways in and return what was given, as a job's ``source``; None until then."""
    way = "Upload"
    if allowed_folders():
        way = str(
            st.segmented_control(
                "Where it is", ["Upload", "On the server"], default="Upload", key="add_way",
                required=True,
            )
        )  # fmt: skip
    path = _server_path() if way == "On the server" else _upload(ws, limits)
    with st.expander("What is read, and the limits of this server"):
        st.markdown(
            "- **Pictures**: a folder or a zip, classes and domains by folder; PNG, JPEG, WebP, "
            "GIF, BMP, TIFF, AVIF\n"
            "- **A table with pictures**: CSV, TSV, JSONL, Parquet, Arrow, Feather; the picture "
            "is a path, bytes or base64. A `metadata.csv` inside a folder or zip, or beside it, "
            "is found by itself\n"
            "- **Texts alone**: a table with a column of texts\n"
            "- **A saved Hugging Face dataset**: the folder that `save_to_disk` wrote"
        )
        st.markdown("\n".join(f"- At most for {line}" for line in limits.in_words()))
    return {"path": str(path)} if path is not None else None


def _server_path() -> Path | None:
    folders = allowed_folders()
    given = st.text_input(
        "Folder or file", key="add_path", placeholder=str(folders[0]),
        help=f"Below one of: {', '.join(map(str, folders))}",
    )  # fmt: skip
    if not given.strip():
        return None
    with errors.plainly():
        return allowed_path(given)
    return None


def _upload(ws: Workspace, limits: ImportLimits) -> Path | None:
    inbox = _inbox(ws, limits)
    arrived = uploader(inbox.name, key=f"add_upload_{inbox.name[:8]}")
    if arrived:
        st.session_state[_SAID] = arrived
    said = st.session_state.get(_SAID)
    if said:
        _say_arrived(said)
    files, _ = inbox.content()
    if not files:
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{plural(files, 'file')} here")
        if st.button("Start over", key="add_again"):
            _forget(ws)
            st.rerun()
    return inbox.source()


def _say_arrived(said: dict[str, Any]) -> None:
    if said.get("error"):
        st.warning("The upload did not finish.", icon=":material/info:")
        layout.state_panel("What happened", str(said["error"]), "What arrived whole is kept.")
    refused = said.get("refused") or []
    if refused:
        with st.expander(f"Not accepted: {plural(len(refused), 'file')}"):
            st.dataframe(pd.DataFrame(refused)[["what", "reason"]], hide_index=True,
                         alt="Files that were not accepted")  # fmt: skip


def _inbox(ws: Workspace, limits: ImportLimits) -> Inbox:
    name = st.session_state.get(_INBOX)
    if name is not None:
        with contextlib.suppress(NotFound):
            return Inbox(ws.root, str(name), limits)
    inbox = Inbox.new(ws.root, limits)
    st.session_state[_INBOX] = inbox.name
    return inbox


def choose(ws: Workspace, given: dict[str, Any]) -> None:
    """Draw the preview of what was given, its roles, and the button that imports it."""
    given = {**given, **_text_choices(given)}
    with st.spinner("Looking at the first rows"):
        found = _preview(given, _mark(given))
    st.subheader(f"{found.form.capitalize()}: {_rows(found)}", anchor=False)
    if found.facts:
        layout.chips(f"{name}: {value}" for name, value in found.facts.items())
    for note in found.notes:
        st.html(f'<p class="th-dim">{layout.safe(note)}</p>')
    if "encoding" in found.facts:
        _correct_text("separator" in found.facts)
    plan = _roles(found)
    _table(found, plan)
    layout.left_out(found.left_out)
    _start(ws, given, found, plan)


def _rows(found: Preview) -> str:
    return plural(found.n, "row") if found.n is not None else "rows are counted as they are read"


def _mark(given: dict[str, Any]) -> float:
    # An inbox that another file came into is another source.
    path = Path(given["path"])
    return max(path.stat().st_mtime, path.parent.stat().st_mtime)


@st.cache_data(max_entries=16, show_spinner=False)
def _preview(given: dict[str, Any], mark: float) -> Preview:
    return preview_apart(given)


def _text_choices(given: dict[str, Any]) -> dict[str, Any]:
    detect = "detect"
    encoding = st.session_state.get("add_encoding", detect)
    separator = st.session_state.get("add_separator", detect)
    header = st.session_state.get("add_header", detect)
    marks = {word: mark for mark, word in SEPARATORS.items()}
    return {
        "encoding": None if encoding == detect else encoding,
        "separator": marks.get(separator),
        "header": {"names": True, "values": False}.get(header),
    }


def _correct_text(csv: bool) -> None:
    with st.expander("Read the table otherwise"):
        first, second, third = st.columns(3)
        first.selectbox("Encoding", ["detect", *ENCODINGS], key="add_encoding")
        if csv:
            second.selectbox("Separator", ["detect", *SEPARATORS.values()], key="add_separator")
            third.selectbox("The first line holds", ["detect", "names", "values"], key="add_header")


def _roles(found: Preview) -> Plan:
    """Draw one chooser a role and return the corrected plan."""
    st.subheader("Which column is what", anchor=False)
    names = [column.name for column in found.columns]
    why = {column.name: column.why for column in found.columns}
    mark = abs(hash((found.title, *names))) % 10**8
    picked: dict[str, str | None] = {}
    # Two rows of their own, so that a narrow page keeps the order.
    cells = [*st.columns(4), *st.columns(4)]
    for at, role in enumerate(_ROLES):
        guess = found.plan.column(role)
        with cells[at]:
            chosen = st.selectbox(
                _ASKED[role], [_NONE, *names], index=names.index(guess) + 1 if guess else 0,
                key=f"add_role_{role}_{mark}",
                help=f"{_HELP[role]} {'Guessed: ' + why[guess] + '.' if guess else ''}".strip(),
            )  # fmt: skip
        picked[role] = None if chosen == _NONE else str(chosen)
    others = [name for name in names if name not in picked.values()]
    away = [name for name in others if found.plan.roles[name] == "ignore"]
    ignored = [] if not others else st.multiselect(
        "Leave these columns away", others, default=away, key=f"add_ignore_{mark}",
        help="All others are kept with the items and can be searched.",
    )  # fmt: skip
    roles = {name: "ignore" if name in ignored else "keep" for name in names}
    twice = [name for name in names if list(picked.values()).count(name) > 1]
    if twice:
        st.warning("One column has two roles; the first of them counts.", icon=":material/info:")
    for role in reversed(_ROLES):
        if picked[role] is not None:
            roles[str(picked[role])] = role
    return replace(found.plan, roles=roles)


def _table(found: Preview, plan: Plan) -> None:
    """Draw the first rows, each column headed by its role."""
    columns: dict[str, list[Any]] = {}
    if plan.kind == "image" and any(found.thumbs):
        thumbs = [_uri(data) for data in found.thumbs]
        columns[" "] = thumbs + [None] * (len(found.rows) - len(thumbs))
    for name, role in plan.roles.items():
        columns[f"{ROLE_WORDS[role]}: {name}"] = [row[name] for row in found.rows]
    frame = pd.DataFrame({name: values[: len(found.rows)] for name, values in columns.items()})
    st.dataframe(
        frame, hide_index=True, alt="The first rows, with the role of each column",
        column_config={" ": st.column_config.ImageColumn("")}, row_height=44,
        placeholder="",
    )  # fmt: skip


def _uri(data: bytes | None) -> str | None:
    if data is None:
        return None
    return f"data:image/webp;base64,{base64.b64encode(data).decode()}"


def _start(ws: Workspace, given: dict[str, Any], found: Preview, plan: Plan) -> None:
    st.subheader("Its name", anchor=False)
    left, right = st.columns(2)
    mark = abs(hash(found.title)) % 10**8
    title = left.text_input("Title", value=plan.title, key=f"add_title_{mark}", max_chars=100)
    licence = right.text_input(
        "Licence", key=f"add_licence_{mark}", placeholder="For instance CC BY 4.0", max_chars=200
    )
    first_frame = plan.kind == "image" and st.checkbox(
        "Take the first frame of animations", key=f"add_frame_{mark}",
        help="Otherwise they are left out and named.",
    )  # fmt: skip
    plan = replace(
        plan, name=clean_name(title or plan.name, ws.dataset_names()), title=title or plan.title,
        licence=licence, first_frame=bool(first_frame),
    )  # fmt: skip
    st.caption(f"Its name in links and commands: {plan.name}")
    label = f"Import {plural(found.n, 'row')}" if found.n is not None else "Import"
    if st.button(label, type="primary", key="add_import"):
        plan.check([column.name for column in found.columns])
        params = {"source": given, "plan": plan.as_dict(), "rows": found.n or 0}
        st.session_state[_JOB] = ws.jobs.submit("import", params)
        st.rerun()
