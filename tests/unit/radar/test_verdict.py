"""From scores to words."""

from types import SimpleNamespace

import numpy as np
import pytest

from core.radar.curves import smooth_density
from core.radar.verdict import ADD, LEAVE, UNSURE, decide, headline


def scored(excess, sd=0.02, null=0.2):
    return SimpleNamespace(score=null + excess, null=null, excess=excess, excess_sd=sd)


def verdicts(far=None, **singles):
    return {d.source: d.decision for d in decide(singles, far)}


def test_near_is_added_far_is_left_out_and_between_it_cannot_tell():
    out = verdicts(far=0.5, a=scored(0.1), b=scored(3.0), c=scored(0.45, sd=0.1))
    assert out == {"a": ADD, "b": LEAVE, "c": UNSURE}


def test_noise_never_becomes_advice():
    assert verdicts(far=0.5, a=scored(0.3, sd=2.0)) == {"a": UNSURE}
    nothing = scored(float("nan"), sd=float("nan"))
    assert verdicts(far=0.5, a=nothing) == {"a": UNSURE}


def test_when_nothing_is_near_it_says_so():
    out = decide({"a": scored(2.0), "b": scored(9.0)}, far=1.0)
    assert {d.decision for d in out} == {UNSURE}
    assert headline(out).startswith("Cannot tell: no source is near")


def test_what_more_items_would_settle_is_counted():
    out = decide({"a": scored(0.4, sd=0.1)}, far=0.5)[0]
    assert out.decision == UNSURE
    assert out.pairs_needed == pytest.approx(4.0)
    assert np.isnan(decide({"a": scored(0.4999, sd=0.1)}, far=0.5)[0].pairs_needed)


def test_without_classes_far_means_clearly_farther_than_the_nearest():
    assert verdicts(a=scored(0.3), b=scored(0.35), c=scored(5.0)) == {
        "a": ADD, "b": ADD, "c": LEAVE,
    }  # fmt: skip


def test_the_reason_names_a_source_like_the_target():
    out = decide({"a": scored(0.01)}, far=0.5)[0]
    assert "own halves" in out.reason


def test_the_order_is_nearest_first_and_the_headline_names_all():
    out = decide({"z": scored(0.01), "a": scored(5.0), "m": scored(0.1)}, far=0.5)
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
