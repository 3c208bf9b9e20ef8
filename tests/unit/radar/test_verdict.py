"""From scores to words."""

from types import SimpleNamespace

import numpy as np
import pytest

from core.radar.curves import smooth_density
from core.radar.verdict import ADD, LEAVE, UNSURE, decide, headline


def scored(score, sd=0.02, null=0.2, jitter=0.01, seed=0):
    repeats = score + jitter * np.random.default_rng(seed).standard_normal(5)
    return SimpleNamespace(
        score=score, sd=sd, null=null, excess=score - null, excess_sd=sd, repeats=repeats
    )


def verdicts(far=None, **singles):
    return {d.source: d.decision for d in decide(singles, far)}


def test_sources_like_the_target_are_added():
    assert verdicts(a=scored(0.21), b=scored(0.22)) == {"a": ADD, "b": ADD}


def test_a_far_source_is_left_out_and_the_nearest_kept():
    assert verdicts(far=0.5, a=scored(0.4), b=scored(3.0)) == {"a": ADD, "b": LEAVE}
    assert verdicts(a=scored(0.4), b=scored(3.0)) == {"a": ADD, "b": LEAVE}


def test_between_near_and_far_it_cannot_tell():
    out = decide({"a": scored(0.3), "b": scored(0.52, sd=0.05)}, 0.5)
    assert [d.decision for d in out] == [ADD, UNSURE]
    assert out[1].pairs_needed > 1


def test_when_nothing_is_near_it_says_so():
    out = decide({"a": scored(2.0), "b": scored(9.0)}, far=1.0)
    assert {d.decision for d in out} == {UNSURE}
    assert headline(out).startswith("Cannot tell: no source is near")


def test_inseparable_from_the_nearest_is_added():
    assert verdicts(far=0.9, a=scored(0.60), b=scored(0.605, seed=3))["b"] == ADD


def test_the_order_is_nearest_first_and_the_headline_names_all():
    out = decide({"z": scored(0.21), "a": scored(5.0), "m": scored(0.3)}, far=0.5)
    assert [d.source for d in out] == ["z", "m", "a"]
    words = headline(out, {"z": "Zeta"})
    assert words == "Add Zeta and m. Leave out a."


def test_smooth_density_is_the_kernel_density_of_scipy():
    from scipy.stats import gaussian_kde

    values = np.random.default_rng(0).normal(1.0, 0.3, 2000)
    grid = np.linspace(-0.5, 2.5, 64)
    ours = smooth_density(values, grid)
    assert np.abs(ours - gaussian_kde(values, "scott")(grid)).max() < 0.02
    assert np.trapezoid(ours, grid) == pytest.approx(1.0, abs=0.01)
    assert np.isfinite(smooth_density(np.ones(10), grid)).all()
