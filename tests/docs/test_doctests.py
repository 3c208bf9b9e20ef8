"""Every example in a docstring of ``core`` runs and says what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import core

MODULES = sorted(m.name for m in pkgutil.walk_packages(core.__path__, "core."))
SCRIPTS = {name for name in MODULES if name.endswith("__main__")}


@pytest.mark.parametrize("name", [m for m in MODULES if m not in SCRIPTS])
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS, raise_on_error=False
    )
    assert found.failed == 0, f"{found.failed} of {found.attempted} examples of {name} fail"


def test_examples_are_there_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [d for name in MODULES if name not in SCRIPTS
             for d in finder.find(importlib.import_module(name)) if d.examples]  # fmt: skip
    assert len(found) > 150
