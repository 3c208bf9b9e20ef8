"""The floors of ``bench_radar``, collected: seconds are printed, never gated."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location(
    "bench_radar", Path(__file__).with_name("bench_radar.py")
)
bench = importlib.util.module_from_spec(_SPEC)
sys.modules["bench_radar"] = bench
_SPEC.loader.exec_module(bench)

pytestmark = bench.pytestmark
test_descriptors_of_given_pairs = bench.test_descriptors_of_given_pairs
test_memory_is_flat_in_the_number_of_pairs = bench.test_memory_is_flat_in_the_number_of_pairs
test_descriptors_of_repeated_draws = bench.test_descriptors_of_repeated_draws_from_small_domains
test_sliced_distance_against_pot = bench.test_sliced_distance_against_pot
test_measures_against_plain_implementations = bench.test_measures_against_plain_implementations
test_all_blends_of_five_sources = bench.test_all_blends_of_five_sources
test_batched_em_against_scikit_learn = bench.test_batched_em_against_scikit_learn
