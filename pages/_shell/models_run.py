"""One encoder of the Models page: what it is, how it is read, and where it can be run."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.data.importers.work import allowed_folders
from core.encoders.naming import named_by_visitor
from core.errors import UserError
from core.extract.forecast import forecast
from core.types import EncoderInfo
from core.workspace import Workspace
from pages._shell import layout, state
from pages._shell.models_view import OWN, PAGE, STATUS, facts, pooling_words
from pages._shell.words import as_text, number, plural, tip

DEFAULT, ALL, CHOSEN = "default", "all", "chosen"
#: Readings an encoder may turn out to have, where they are known once its weights are read.
_GUESSES = {"image": (OWN, "cls", "mean"), "text": (OWN, "mean", "cls", "last")}


def detail(ws: Workspace, model: EncoderInfo | None) -> None:
    """Draw one encoder: what it is, what it needs, and where it can be run."""
    if model is None:
        return
    with st.container(border=True):
        st.markdown(f"**{as_text(model.title)}**")
        st.caption(as_text(_about(model)))
        for text in (model.note, model.reason):
            if text:
                st.text(text)
        if model.status == "ready":
            _extract(ws, model, PAGE)


def by_name(ws: Workspace) -> None:
    """Offer to run a model that the table does not list: a hub id, or a file."""
    with st.expander("A model that is not in the table"):
        folders = allowed_folders()
        where = (
            f"Files are read from {as_text(', '.join(map(str, folders)))}."
            if folders
            else "Files of this server can be named where its administrator sets "
            "THEODOLITE_IMPORT_DIRS."
        )
        st.caption(
            "By its id: transformers/ORGANISATION/NAME (dual encoders end in /image or /text), "
            f"timm/NAME@FILE, open_clip/ARCH:TAG/image, onnx/FILE.onnx. {where}"
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container(width=420):
                name = st.text_input("Model id", key=f"{PAGE}_id", max_chars=400)
            with st.container(width=150):
                reads = state.select(PAGE, "reads", "It reads", ["pictures", "texts"])
        if not name.strip():
            return
        try:
            model = named_by_visitor(name)
        except UserError as err:
            layout.state_panel("This id cannot be used", err.message, err.hint)
            return
        if model.reason or not model.layers:
            st.caption(
                as_text(model.reason) or "Whether its weights are here is seen when the job starts."
            )
        if model.status == "ready":
            modality = "text" if reads == "texts" or model.id.endswith("/text") else "image"
            _extract(ws, replace(model, modality=modality), f"{PAGE}_named")


def _about(model: EncoderInfo) -> str:
    told = facts(model)
    kind = " ".join(told[n] for n in ("library", "arch", "modality") if told[n] != "unknown")
    lines = [
        f"{kind} encoder",
        f"{STATUS[model.status]}",
        f"{number(model.params_m)} million parameters" if model.params_m else "",
        f"{model.dim} numbers a row" if model.dim else "",
        plural(len(model.layers), "layer") if model.layers else "",
        f"licence {told['licence']}",
        model.id,
    ]
    return " · ".join(line for line in lines if line)


def layer_words(name: str) -> str:
    """Return a layer's name as people say it.

    Examples
    --------
    >>> [layer_words(n) for n in ("block00", "block07", "stage3", "pool", "joint")]
    ['before block 1', 'after block 7', 'stage 3', 'pooled output', 'shared space']
    """
    kind, tail = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if kind == "block" and tail:
        return f"after block {int(tail)}" if int(tail) else "before block 1"
    if kind == "stage" and tail:
        return f"stage {int(tail)}"
    known = {"pool": "pooled output", "joint": "shared space", "sentence": "sentence vector"}
    return known.get(name, name)


def reading(model: EncoderInfo, layers: str | list[str], pooling: str) -> str:
    """Return which layers are kept and how, in one sentence.

    Examples
    --------
    >>> from core.types import EncoderInfo
    >>> vit = EncoderInfo("a/b", "B", "a", "image", layers=("block00", "block01"))
    >>> reading(vit, "all", "mean"), reading(vit, ["block01"], "cls")
    ('All 2 layers, mean of patches.', 'After block 1, class token.')
    """
    if layers == ALL:
        kept = f"all {plural(len(model.layers), 'layer')}" if model.layers else "all layers"
    elif layers == DEFAULT:
        default = model.default_layer
        kept = f"one layer ({layer_words(default)})" if default else "its own output layer"
    else:
        kept = ", ".join(layer_words(name) for name in layers)
    text = f"{kept}, {pooling_words(pooling, model.modality)}."
    return text[0].upper() + text[1:]


def _extract(ws: Workspace, model: EncoderInfo, page: str) -> None:
    names = [n for n in ws.dataset_names() if _reads(ws, n, model)]
    if not names:
        st.caption(f"This workspace holds no {model.modality} dataset.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=280):
            name = state.select(
                page, "on", "Dataset", names, show=lambda n: ws.dataset(n).title,
                help=tip("dataset"),
            )  # fmt: skip
        layers = _layers(model, page)
        pooling = _pooling(model, page)
    if layers == []:
        st.caption("Choose at least one layer.")
        return
    ahead = forecast(ws, name, model, layers=layers)
    can = ahead.sentence() if ahead.fits else f"This cannot run here: {ahead.problem}."
    st.caption(f"{reading(model, layers, pooling)} {can}")
    if st.button(
        "Extract features", type="primary", key=f"{page}_extract", disabled=not ahead.fits
    ):
        wanted = {"dataset": name, "model": model.id, "layers": layers}
        ws.jobs.submit("extract", {**wanted, "pooling": pooling} if pooling else wanted)
        st.toast("Extraction started; see Jobs.")
        st.rerun()


def _layers(model: EncoderInfo, page: str) -> str | list[str]:
    default = layer_words(model.default_layer)
    show = {
        DEFAULT: f"one: {default}" if default else "its own output",
        ALL: f"all {len(model.layers)} layers" if model.layers else "all layers",
        CHOSEN: "chosen layers",
    }
    options = [DEFAULT, ALL, CHOSEN] if len(model.layers) > 1 else [DEFAULT, ALL]
    options = options[:1] if len(model.layers) == 1 else options
    with st.container(width=220):
        how = str(
            state.select(page, "layers", "Layers", options, show=show.__getitem__,
                         help=tip("layer"))
        )  # fmt: skip
    if how != CHOSEN:
        return how
    with st.container(width=360):
        return list(
            st.multiselect("Which layers", model.layers, [model.default_layer],
                           format_func=layer_words, key=f"{page}_which_{model.id}")
        )  # fmt: skip


def _pooling(model: EncoderInfo, page: str) -> str:
    if len(model.poolings) == 1:
        return model.poolings[0]
    options = model.poolings or _GUESSES.get(model.modality, (OWN,))
    why = "How tokens become one row. An encoder without a class token refuses to read one."
    with st.container(width=250):
        chosen = state.select(
            page, "pooling", "Pooling", options, help=why,
            show=lambda p: pooling_words(p, model.modality),
        )  # fmt: skip
        return str(chosen)


def _reads(ws: Workspace, name: str, model: EncoderInfo) -> bool:
    data = ws.dataset(name)
    return model.modality == "text" or data.kind == "image"
