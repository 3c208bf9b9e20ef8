"""Floors on ratios against straightforward code; seconds are printed, never gated."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "bench_stitching", Path(__file__).with_name("bench_stitching.py")
)
bench = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "floor"), [("wip_case", 1.8), ("param_case", 1.1), ("cka_case", 3.0)]
)
def test_faster_than_straightforward_code(case, floor):
    seconds = getattr(bench, case)()
    assert seconds["plain"] / seconds["ours"] >= floor, seconds
