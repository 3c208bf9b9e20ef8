"""Floors on ratios against straightforward code; seconds are printed, never gated."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


bench, large = _load("bench_stitching"), _load("bench_stitching_matrix")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "floor"), [("wip_case", 1.8), ("param_case", 1.1), ("cka_case", 3.0)]
)
def test_faster_than_straightforward_code(case, floor):
    seconds = getattr(bench, case)()
    assert seconds["plain"] / seconds["ours"] >= floor, seconds


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize(("case", "floor"), [("matrix_case", 1.1), ("training_case", 1.0)])
def test_the_whole_is_faster_than_straightforward_code(case, floor):
    # The best of three each: a neighbour on the machine slows one run, rarely all of them.
    runs = [getattr(large, case)() for _ in range(3)]
    best = {side: min(run[side] for run in runs) for side in ("ours", "plain")}
    assert best["plain"] / best["ours"] >= floor, runs


def test_ranking_holds_no_n_by_n_matrix():
    found = large.memory_case()
    # Four times the rows: sixteen times the memory if all similarities were held.
    assert found["large"] <= 5 * found["small"], found
    assert found["large"] < 0.25 * found["large_n_by_n"], found
