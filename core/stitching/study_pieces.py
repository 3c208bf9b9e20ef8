"""The pieces of the stitching study: one method under one setting, kept in the store.

A piece is found again by its parameters, so a study that was stopped goes on where it was.
Pieces of one data set share what they can in memory: spectra, native heads, anchors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.analyses import inputs
from core.results import Result
from core.stitching import tables
from core.stitching.advice import retention_intervals
from core.stitching.matrix import StitchResult, run_method
from core.stitching.methods import method_of
from core.stitching.rows import Rows, read_rows
from core.stitching.setting import Setting, StitchOptions, prepare

if TYPE_CHECKING:
    from core.workspace import Workspace

KIND = "stitching-study-piece"
Progress = Callable[[float, str], None]


@dataclass
class Pieces:
    """The pieces of one data set and one choice of spaces."""

    workspace: Workspace
    dataset: str
    spaces: list[str]
    label: str
    head: str
    seed: int
    _rows: Rows | None = None
    _base: Setting | None = None
    _settings: dict[StitchOptions, Setting] = field(default_factory=dict)

    def get(self, method: str, options: dict[str, Any], progress: Progress | None = None) -> Result:
        """Return one piece: the stored one, else computed and stored.

        Parameters
        ----------
        method : str
            See :data:`core.stitching.METHODS`.
        options : dict
            ``n_anchors``, ``n_support``, ``n_parallel``, ``shrink``, ``steps``, ``seeds``.

        Returns
        -------
        Result
            Tables ``runs`` (seed, i, j, accuracy, f1), ``cells``, ``native``, ``advice`` and
            ``similarity``; the summary holds the shrinkage taken.
        """
        params = {
            "dataset": self.dataset, "models": self.spaces, "label": self.label,
            "head": self.head, "seed": self.seed, "method": method, **options,
        }  # fmt: skip
        sources = inputs(self.workspace, params)
        stored = self.workspace.results.find(KIND, params, sources)
        if stored is not None:
            return stored
        setting = self._setting(options)
        got = run_method(setting, method, progress)
        return self.workspace.results.put(self._result(params, setting, got), sources)

    def _setting(self, options: dict[str, Any]) -> Setting:
        wanted = StitchOptions(
            options["n_anchors"], options["n_support"], options["n_parallel"], options["shrink"],
            tuple(range(self.seed, self.seed + options["seeds"])), self.head, options["steps"],
        )  # fmt: skip
        if wanted not in self._settings:
            if self._base is None:
                self._rows = read_rows(
                    self.workspace, self.dataset, self.spaces, self.label, self.seed
                )
                r = self._rows
                self._base = prepare(r.train, r.test, r.y_train, r.y_test, wanted)
            # Spectra and native heads do not depend on the options, anchors do.
            self._settings[wanted] = replace(self._base, options=wanted, _fits={}, _choices={})
        return self._settings[wanted]

    def _result(self, params: dict[str, Any], setting: Setting, got: StitchResult) -> Result:
        if self._rows is None:
            raise RuntimeError("a piece has rows once it has a setting")
        off = float(got.off_diagonal.mean())
        advice = retention_intervals(got, self._rows.y_test, self._rows.groups_test, seed=self.seed)
        advice["i"], advice["j"] = (np.take(self.spaces, advice[c]) for c in ("i", "j"))
        kind = method_of(got.method).shrinkage_kind
        found = {
            "runs": tables.matrix_table([got], self.spaces),
            "cells": tables.cell_table([got], self.spaces),
            "native": tables.native_table(setting, got, self.spaces),
            "advice": advice,
            "similarity": tables.similarity_table(setting, self.spaces),
            "shrinkage": tables.shrinkage_table(setting, [kind] if kind else []),
        }
        summary = {
            "headline": f"{method_of(got.method).title}: {100 * off:.1f} % off the diagonal.",
            "n": len(setting.y_test), "n_train": len(setting.y_train),
            "n_parallel": setting.n_parallel, "seconds": got.seconds,
            "shrinkage": "" if got.shrinkage is None else str(got.shrinkage),
            "majority": float(np.bincount(setting.y_test).max() / len(setting.y_test)),
            "n_classes": len(setting.classes), "split": self._rows.split_note,
        }  # fmt: skip
        return Result(KIND, params, summary, found, left_out=self._rows.left_out)


def matrices(pieces: dict[str, Result], spaces: list[str], value: str) -> dict[str, np.ndarray]:
    """Return the matrices (S, N, N) of pieces, by method."""
    out = {}
    for method, piece in pieces.items():
        runs = piece.tables["runs"]
        wide = runs.set_index(["seed", "i", "j"])[value].unstack("j")[spaces]
        seeds = runs["seed"].unique()
        out[method] = np.stack([wide.loc[s].loc[spaces].to_numpy(float) for s in seeds])
    return out


def stacked(parts: list[tuple[dict[str, Any], pd.DataFrame]]) -> pd.DataFrame:
    """Return tables under each other, each with its own leading columns."""
    made = [
        pd.concat([pd.DataFrame(head, index=frame.index), frame], axis=1) for head, frame in parts
    ]
    return pd.concat(made, ignore_index=True)
