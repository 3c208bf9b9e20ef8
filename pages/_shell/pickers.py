"""Choosers in the sidebar's "Selection": dataset, model, layer, domain.

Draw them inside ``with selection():``; each is bound to the address and explains its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from core.data.dataset import Dataset
from core.errors import NotFound
from core.workspace import Workspace
from pages._shell import state
from pages._shell.words import tip

# Short names for the packaged encoders; others are shown by their id.
_SHORT = {
    "demo/vit-s14": "ViT-S/14",
    "demo/efficientnet-lite0": "EfficientNet-Lite0",
    "demo/squeezenet1.1": "SqueezeNet 1.1",
    "demo/mobilenetv2": "MobileNetV2",
    "demo/minilm-l6": "MiniLM-L6",
    "demo/minilm-l6-int8": "MiniLM-L6 int8",
    "demo/use-m3": "USE multilingual v3",
    "demo/e5-small": "e5-small",
    "demo/lit-cnn-minilm/image": "LiT CNN, image tower",
    "demo/lit-cnn-minilm/text": "LiT CNN, text tower",
    "demo/lit-vit-minilm/image": "LiT ViT, image tower",
    "demo/lit-vit-minilm/text": "LiT ViT, text tower",
}


@contextmanager
def selection(title: str = "Selection") -> Iterator[None]:
    """Open the sidebar block that holds a page's choices."""
    with st.sidebar:
        st.subheader(title, anchor=False)
        yield


@contextmanager
def settings(
    note: str = "The defaults are good enough; nothing here must be set.",
) -> Iterator[None]:
    """Open the folded settings in the sidebar."""
    with st.sidebar, st.expander("Settings"):
        st.caption(note)
        yield


def model_title(model: str) -> str:
    """Return the name people read for a model id."""
    return _SHORT.get(model, model)


def dataset_title(workspace: Workspace, name: str) -> str:
    """Return the title of a dataset."""
    return workspace.dataset(name).title or name


def dataset(
    workspace: Workspace, *, kind: str | None = None, names: Sequence[str] | None = None
) -> Dataset:
    """Choose a dataset; the choice is shared by all pages.

    Parameters
    ----------
    kind : {"image", "text"}, optional
        Offer only this kind.
    names : sequence of str, optional
        Offer only these.

    Raises
    ------
    NotFound
        The workspace holds no such dataset.
    """
    offered = [
        name
        for name in workspace.dataset_names()
        if (names is None or name in names)
        and (kind is None or workspace.dataset(name).kind == kind)
    ]
    if not offered:
        what = f"{kind} dataset" if kind else "dataset"
        raise NotFound(
            f"This workspace holds no {what} yet.",
            "Bring one on the page Add data, or with `theodolite import PATH`.",
        )
    default = "emoji" if "emoji" in offered else offered[0]
    name = state.select(
        "",
        "dataset",
        "Dataset",
        offered,
        default=default,
        show=lambda key: dataset_title(workspace, key),
        help=tip("dataset"),
    )
    return workspace.dataset(name)


def models_with_features(workspace: Workspace, dataset_name: str) -> list[str]:
    """Return the models whose features of a dataset are in the store, packaged ones first."""
    found = {
        entry["model"] for entry in workspace.features.list() if entry["dataset"] == dataset_name
    }
    order = list(_SHORT)
    return sorted(found, key=lambda m: (order.index(m) if m in order else len(order), m))


def model(
    workspace: Workspace,
    page: str,
    dataset_name: str,
    *,
    name: str = "model",
    label: str = "Model",
    default: str | None = None,
    only: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    help: str | None = None,
) -> str:
    """Choose one model that has features of the dataset.

    Raises
    ------
    NotFound
        No features yet.
    """
    offered = [
        m
        for m in models_with_features(workspace, dataset_name)
        if m not in exclude and (only is None or m in only)
    ]
    if not offered:
        raise NotFound(
            f"There are no features of {dataset_name!r} that can be used here yet.",
            f"Extract them: `theodolite extract {dataset_name} MODEL`, "
            "or start it on the Models page.",
        )
    chosen = state.select(
        page,
        name,
        label,
        offered,
        default=default,
        show=model_title,
        help=help or tip("model"),
    )
    return str(chosen)


def models(
    workspace: Workspace,
    page: str,
    dataset_name: str,
    *,
    name: str = "models",
    label: str = "Models",
    default: Sequence[str] | None = None,
    most: int | None = None,
) -> list[str]:
    """Choose several models that have features of the dataset."""
    return state.choose_many(
        page,
        name,
        label,
        models_with_features(workspace, dataset_name),
        default=default,
        show=model_title,
        help=tip("model"),
        most=most,
    )


def layer(page: str, layers: Sequence[str], *, default: str = "", name: str = "layer") -> str:
    """Choose a layer of the model, from input to output."""
    return str(
        state.select(page, name, "Layer", layers, default=default or layers[-1], help=tip("layer"))
    )


def domain(
    page: str,
    domains: Sequence[str],
    *,
    name: str = "target",
    label: str = "Target domain",
    default: str = "",
    help: str | None = None,
) -> str:
    """Choose one domain."""
    return str(
        state.select(
            page, name, label, domains, default=default or None, help=help or tip("target domain")
        )
    )


def domains(
    page: str,
    offered: Sequence[str],
    *,
    name: str = "sources",
    label: str = "Sources",
    default: Sequence[str] | None = None,
) -> list[str]:
    """Choose several domains; all of them unless ``default``."""
    return state.choose_many(page, name, label, offered, default=default, help=tip("source"))
