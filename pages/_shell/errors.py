"""What a person can mend is said plainly; anything else is a bug with a number."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.runtime.scriptrunner_utils.exceptions import RerunException, StopException

from core.errors import NotFound, UserError
from pages._shell.layout import state_panel
from pages._shell.words import as_text

log = logging.getLogger("theodolite")


def show(error: UserError) -> None:
    """Say what happened and what to do; what is not there yet is an empty state, no fault."""
    if isinstance(error, NotFound):
        state_panel("Nothing to show here yet", error.message, error.hint)
        return
    hint = f"\n\n{as_text(error.hint)}" if error.hint else ""
    st.warning(f"{as_text(error.message)}{hint}", icon=":material/info:")


@contextmanager
def plainly(before: Callable[[], None] | None = None) -> Iterator[None]:
    """Run a page or a part of it; a :class:`UserError` becomes a message, not a traceback.

    Anything unexpected is logged with an id, and the page says that id and stays usable.

    Parameters
    ----------
    before : callable, optional
        Called before a message is drawn, for instance to draw the page's heading.
    """
    try:
        yield
    except (RerunException, StopException):
        raise
    except UserError as error:
        if before is not None:
            before()
        show(error)
    except Exception as error:  # the page's last line of defence; the log has the traceback
        number = uuid.uuid4().hex[:8]
        log.error("bug %s", number, exc_info=error)
        if before is not None:
            before()
        st.error(
            f"Something broke here that should not: bug {number} ({type(error).__name__}). "
            "Nothing of your data was changed. The server's log has the details under this "
            "number.",
            icon=":material/error:",
        )
