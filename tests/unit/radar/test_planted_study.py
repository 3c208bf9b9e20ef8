"""A study whose truth is known: sources moved by known amounts, blends, a null and halves.

The net is random, the shift is of its input, so the distance of a source is the shift by
construction. RADAR must find the order of the sources and of their blends, stand far above the
null where there is a shift, and within it where there is none.
"""

import numpy as np
import pytest
from scipy.stats import spearmanr
from toy import domain

from core.radar import Domain, radar_score, rank_blends

SHIFTS = {"a": 0.0, "b": 2.5, "c": 4.0, "d": 6.0}
OPTIONS = {"density": "gaussian", "n_pairs": 1_000, "repeats": 5}


@pytest.fixture(scope="module")
def study():
    target = domain("target", n=400, seed=1)
    sources = [domain(name, s, n=400, seed=10 + k) for k, (name, s) in enumerate(SHIFTS.items())]
    return rank_blends(target, sources, **OPTIONS)


def test_the_order_of_the_sources_is_the_order_of_their_shifts(study):
    singles = [study.results[name] for name in SHIFTS]
    for reading in ("joint", "per_layer_mean"):
        values = [getattr(out, reading) for out in singles]
        assert values == sorted(values)


def test_the_excess_is_far_above_the_null_where_there_is_a_shift(study):
    for name in ("c", "d"):
        out = study.results[name]
        assert out.excess > 5 * out.null
        assert out.excess > 5 * out.excess_sd
    assert study.results["d"].excess > 3 * study.results["c"].excess > 0


def test_no_shift_stays_within_the_null(study):
    out = study.results["a"]
    assert abs(out.excess) < 3 * out.excess_sd
    assert np.all(out.per_layer < out.null_layer + 5 * out.null_layer_sd)


@pytest.mark.parametrize("seed", range(3))
def test_equal_halves_of_one_domain_stay_within_the_null(seed):
    whole = domain("whole", n=600, seed=50 + seed)
    order = np.random.default_rng(seed).permutation(600)
    one, two = (
        Domain(tuple(state[rows] for state in whole.layers), None, name)
        for name, rows in (("one", order[:300]), ("two", order[300:]))
    )
    out = radar_score(one, two, **OPTIONS)
    assert abs(out.excess) < 3 * out.excess_sd
    assert abs(out.excess) < out.null


def test_blends_follow_their_mean_shift(study):
    table = study.table[study.table["n_members"] >= 1]
    truth = [np.mean([SHIFTS[name] for name in members]) for members in table["members"]]
    assert len(table) == 15
    assert spearmanr(table["score"], truth).statistic > 0.9
    by_layer = [study.results[name].per_layer_mean for name in table["blend"]]
    assert spearmanr(by_layer, truth).statistic > 0.9


def test_the_mixture_by_bic_agrees_on_the_order():
    target = domain("target", n=300, seed=1)
    options = {
        "density": "gmm", "n_pairs": 500, "repeats": 1, "n_samples": 2_000, "layers": "late",
        "n_components": (1, 2), "n_components_layer": (1, 2),
    }  # fmt: skip
    scores = [
        radar_score(target, domain(f"s{shift}", shift, n=300, seed=20), **options).score
        for shift in (0, 4, 8)
    ]
    assert scores == sorted(scores)
