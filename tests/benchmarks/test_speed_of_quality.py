"""Floors on ratios against numpy, n x n code, scikit-dimension, FAISS and pandas, never seconds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "bench_quality", Path(__file__).with_name("bench_quality.py")
)
bench = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "floors"),
    [
        (lambda: bench.spectrum_case(3000, 256), {"numpy svd": 1.5}),
        (lambda: bench.self_cluster_case(6000, 256), {"n x n": 3.0}),
        (
            lambda: bench.twonn_case(4000, 512, repeats=2),
            {"scikit-dimension": 1.0, "faiss flat": 1.8},
        ),
        (lambda: bench.bootstrap_case(n_boot=200), {"scipy loop": 60.0}),
        (lambda: bench.matrix_case(), {"pandas": 5.0}),
        (lambda: bench.redraw_case(), {"resampled": 3.0}),
    ],
    ids=["spectrum", "self-cluster", "twonn", "bootstrap-loop", "bootstrap-matrix", "redraw"],
)
def test_agrees_and_is_faster(case, floors):
    seconds = case()
    for peer, floor in floors.items():
        assert seconds[peer] / seconds["ours"] >= floor, (peer, seconds)
