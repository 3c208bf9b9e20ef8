"""Where the program's own files lie: ``app.py``, ``pages`` and ``assets``."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def app_root() -> Path:
    """Return the folder that holds ``app.py``, ``pages`` and ``assets``.

    In a checkout it is the repository's root; in an installed wheel these files travel
    inside the package, in ``core/_app``.
    """
    core = Path(__file__).resolve().parent
    packed = core / "_app"
    return packed if packed.is_dir() else core.parent


def assets_dir() -> Path:
    """Return the folder of the shipped files: demo data, registry, licences, logo."""
    return app_root() / "assets"
