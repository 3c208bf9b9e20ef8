"""The workspace of this server, and widgets whose value lives in the address.

A link rebuilds the view: each widget that changes what is shown is bound to a query
parameter named by its key, ``<page>_<name>``. Session state holds ids and small selections,
never arrays or models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from core.workspace import Workspace, default_root, open_workspace


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(root: str) -> Workspace:
    return open_workspace(root)


def workspace() -> Workspace:
    """Return the open workspace: ``$THEODOLITE_HOME``, else ``~/.theodolite``."""
    return _open(str(default_root()))


def key_of(page: str, name: str) -> str:
    """Return a widget's key, which is also its query parameter."""
    return f"{page}_{name}" if page else name


def _take_plain_value(key: str, options: Sequence[Any], show: Callable[[Any], str]) -> None:
    # The address carries what the widget shows; a hand-written link may carry the id instead.
    raw = st.query_params.get(key)
    if raw is None or key in st.session_state:
        return
    for option in options:
        if str(option) == raw and show(option) != raw:
            st.session_state[key] = option
            return


def select(
    page: str,
    name: str,
    label: str,
    options: Iterable[Any],
    *,
    default: Any = None,
    show: Callable[[Any], str] = str,
    help: str | None = None,
    disabled: bool = False,
) -> Any:
    """Draw a drop-down bound to the address and return the chosen option.

    Parameters
    ----------
    page, name : str
        Make the key and the query parameter, ``<page>_<name>``; ``page=""`` shares the
        choice between pages.
    options : iterable
        At least one.
    default : option, optional
        Chosen when the address says nothing; the first when None or absent.
    show : callable
        Option to the text people read.
    """
    choices = list(options)
    key = key_of(page, name)
    _take_plain_value(key, choices, show)
    if key in st.session_state and st.session_state[key] not in choices:
        del st.session_state[key]
    index = choices.index(default) if default in choices else 0
    # A value set through session state must not be given a default as well.
    extra: dict[str, Any] = {} if key in st.session_state else {"index": index}
    return st.selectbox(
        label,
        choices,
        key=key,
        format_func=show,
        help=help,
        disabled=disabled,
        bind="query-params",
        **extra,
    )


def choose_one(
    page: str,
    name: str,
    label: str,
    options: Iterable[Any],
    *,
    default: Any = None,
    show: Callable[[Any], str] = str,
    help: str | None = None,
    label_visibility: str = "visible",
) -> Any:
    """Draw a row of buttons of which one is on (at most about six options), bound to the address.

    Use it in the main column for the view (a layer, a metric, a colour); for more options use
    :func:`select`.
    """
    choices = list(options)
    key = key_of(page, name)
    _take_plain_value(key, choices, show)
    if key in st.session_state and st.session_state[key] not in choices:
        del st.session_state[key]
    start = default if default in choices else choices[0]
    extra: dict[str, Any] = {} if key in st.session_state else {"default": start}
    picked = st.segmented_control(
        label,
        choices,
        key=key,
        format_func=show,
        help=help,
        required=True,
        label_visibility=label_visibility,
        bind="query-params",
        **extra,
    )
    return start if picked is None else picked


def choose_many(
    page: str,
    name: str,
    label: str,
    options: Iterable[Any],
    *,
    default: Sequence[Any] | None = None,
    show: Callable[[Any], str] = str,
    help: str | None = None,
    most: int | None = None,
) -> list[Any]:
    """Draw a multi-select bound to the address; all options are chosen unless ``default``."""
    choices = list(options)
    key = key_of(page, name)
    if key in st.session_state:
        st.session_state[key] = [v for v in st.session_state[key] if v in choices]
    start = [v for v in (choices if default is None else default) if v in choices]
    extra: dict[str, Any] = {} if key in st.session_state else {"default": start}
    picked = st.multiselect(
        label,
        choices,
        key=key,
        format_func=show,
        help=help,
        max_selections=most,
        bind="query-params",
        **extra,
    )
    return list(picked)


def whole(
    page: str,
    name: str,
    label: str,
    *,
    low: int,
    high: int,
    default: int,
    step: int = 1,
    help: str | None = None,
) -> int:
    """Draw a whole-number field bound to the address."""
    key = key_of(page, name)
    extra: dict[str, Any] = {} if key in st.session_state else {"value": default}
    value = st.number_input(
        label,
        min_value=low,
        max_value=high,
        step=step,
        key=key,
        help=help,
        bind="query-params",
        **extra,
    )
    return int(default if value is None else value)


def slider(
    page: str,
    name: str,
    label: str,
    *,
    low: float,
    high: float,
    default: float,
    step: float,
    help: str | None = None,
) -> float:
    """Draw a slider bound to the address."""
    key = key_of(page, name)
    extra: dict[str, Any] = {} if key in st.session_state else {"value": default}
    return st.slider(label, low, high, step=step, key=key, help=help, bind="query-params", **extra)


def switch(
    page: str, name: str, label: str, *, default: bool = False, help: str | None = None
) -> bool:
    """Draw a toggle bound to the address."""
    key = key_of(page, name)
    extra: dict[str, Any] = {} if key in st.session_state else {"value": default}
    return bool(st.toggle(label, key=key, help=help, bind="query-params", **extra))


def selected_ids(page: str, name: str = "selection") -> list[int]:
    """Return the item ids chosen on a page (a lasso, a click), an empty list at first."""
    return list(st.session_state.get(key_of(page, name), []))


def set_selected_ids(page: str, ids: Iterable[int], name: str = "selection") -> None:
    """Remember the item ids chosen on a page."""
    st.session_state[key_of(page, name)] = [int(i) for i in ids]


def share_link() -> str:
    """Return the address that rebuilds this view."""
    base = (st.context.url or "").split("?")[0]
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    return f"{base}?{urlencode(params, doseq=True)}" if params else base
