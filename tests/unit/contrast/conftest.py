"""Make the shared problems importable without a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PATH = Path(__file__).with_name("problems.py")
_SPEC = importlib.util.spec_from_file_location("contrast_problems", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules["contrast_problems"] = _MODULE
_SPEC.loader.exec_module(_MODULE)
