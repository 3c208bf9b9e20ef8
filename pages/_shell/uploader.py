"""A place to drop files, a folder or an archive: they go to the server's disk in bundles.

Many small files travel together: one request a file would take minutes for some thousand
pictures, and the browser would stop at a thousand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

_HTML = """
<div class="drop" role="group" aria-label="Upload your data">
  <p class="lead">Drop pictures, a folder, a zip or a table here</p>
  <div class="row">
    <button type="button" class="files">Choose files</button>
    <button type="button" class="folder">Choose a folder</button>
    <button type="button" class="stop" hidden>Stop</button>
  </div>
  <input class="in-files" type="file" multiple hidden aria-label="Files">
  <input class="in-folder" type="file" webkitdirectory hidden aria-label="Folder">
  <progress max="1" value="0" hidden aria-label="Upload"></progress>
  <p class="say" role="status" aria-live="polite"></p>
</div>
"""

_CSS = """
.drop { border: 1px dashed var(--st-border-color, #888); border-radius: 8px; padding: 1.1rem;
        font: 400 .95rem var(--st-font, sans-serif); color: var(--st-text-color, inherit);
        background: var(--st-secondary-background-color, transparent); }
.drop.over { border-color: var(--st-primary-color, #0072B2); border-style: solid; }
.lead { margin: 0 0 .7rem; font-weight: 500; }
.row { display: flex; flex-wrap: wrap; gap: .5rem; }
button { font: inherit; color: inherit; cursor: pointer; border-radius: 6px; padding: .35rem .8rem;
        background: var(--st-background-color, transparent);
        border: 1px solid var(--st-border-color, #888); }
button:hover { border-color: var(--st-primary-color, #0072B2); }
button:focus-visible { outline: 3px solid var(--st-primary-color, #0072B2); outline-offset: 1px; }
button[disabled] { opacity: .5; cursor: default; }
progress { width: 100%; margin-top: .8rem; accent-color: var(--st-primary-color, #0072B2); }
.say { margin: .5rem 0 0; font-size: .88rem; min-height: 1.2em; overflow-wrap: anywhere; }
.say:empty { display: none; }
[hidden] { display: none; }
"""

_JS = Path(__file__).with_suffix(".js").read_text("utf-8")

_mount = st.components.v2.component("theodolite_uploader", html=_HTML, css=_CSS, js=_JS)


def uploader(inbox: str, *, key: str) -> dict[str, Any] | None:
    """Draw the uploader of one inbox.

    Parameters
    ----------
    inbox : str
        Name of the inbox; see :class:`core.data.importers.inbox.Inbox`.
    key : str
        Unique on the page.

    Returns
    -------
    dict or None
        Once, when an upload has ended: ``files``, ``bytes``, ``refused``, ``error``.
    """
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    url = f"/{base}/upload/{inbox}" if base else f"/upload/{inbox}"
    result = _mount(key=key, data={"url": url}, on_arrived_change=lambda: None)
    arrived = getattr(result, "arrived", None)
    return dict(arrived) if arrived else None
