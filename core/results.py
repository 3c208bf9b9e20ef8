"""A stored answer: what every analysis gives to the page, the command line and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from core.types import LeftOut

# Bump a kind's number when its numbers would change: stored results of an older code are
# then recomputed instead of being shown as if they were today's.
CODE_VERSION = {
    "transfer": 1, "transfer-study": 2, "quality": 2, "contrast": 2, "stitching": 2, "explore": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One analysis, finished.

    Attributes
    ----------
    kind : str
        "transfer", "quality", "contrast", "stitching" or "explore".
    params : dict
        Everything needed to compute it again, plain JSON types, defaults filled in.
    summary : dict
        Plain JSON types. Always holds ``headline`` (one sentence: the answer in words) and
        ``n`` (samples used); the rest is the kind's own.
    tables : mapping of str to DataFrame
        Tables, stored as Parquet.
    arrays : mapping of str to ndarray
        Arrays, stored as safetensors (float64, float32, int64, int32, bool).
    left_out : tuple of LeftOut
        What was left out, and why.
    key : str
        Content key of kind, params, inputs and code version; set when stored.
    seconds : float
        Wall time of the computation.
    created : str
        ISO time (UTC).
    versions : dict
        Library versions that matter for the numbers.
    """

    kind: str
    params: dict[str, Any]
    summary: dict[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    key: str = ""
    seconds: float = 0.0
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return str(self.summary.get("headline", ""))
