"""Errors a person can act on.

A :class:`UserError` is shown plainly on the page and by the command line; any other
exception is a bug. Each message says what was given, what was expected and what to do.
"""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend.

    Parameters
    ----------
    message : str
        What happened, naming the argument, file, row or column.
    hint : str, optional
        What to do next, one sentence.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class BadInput(UserError, ValueError):
    """An argument or a file cannot be used as it is."""


class NotFound(UserError, LookupError):
    """A dataset, model, result, job or file that does not exist here."""

    exit_code = 3


class NeedsWeights(NotFound):
    """The model is known, its weights are not on this machine."""


class WorkspaceError(UserError):
    """The workspace cannot be opened or written: too new, read-only, full, locked."""


class Cancelled(UserError):
    """The user stopped the work. What was finished is kept."""

    exit_code = 130
