"""PARAM: convexity, determinism, degenerate input, and that training does what it says."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput, Cancelled
from core.stitching import learn_anchors
from core.stitching.param import ParamOptions, _compact


def pairs(n: int = 120) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 8))
    return [x, np.tanh(x @ rng.normal(size=(8, 14))) + 2.0]


@pytest.mark.parametrize("mode", ["multi", "single"])
def test_anchors_lie_in_the_hull_of_the_support(mode):
    spaces = pairs()
    fit = learn_anchors(spaces, 10, mode=mode, n_support=60, steps=30)
    assert fit.mixing.shape == (10, 60)
    assert (fit.mixing >= 0).all()
    np.testing.assert_allclose(fit.mixing.sum(axis=1), 1.0, atol=1e-12)
    for x in spaces:
        sub, anchors = x[fit.support], fit.anchors(x)
        assert (anchors <= sub.max(axis=0) + 1e-9).all()
        assert (anchors >= sub.min(axis=0) - 1e-9).all()
    assert set(fit.losses) >= {"coverage", "correlation", "length", "nce", "entropy", "total"}
    assert all(len(v) == 30 and np.isfinite(v).all() for v in fit.losses.values())


def test_same_seed_same_bits_other_seed_other_anchors():
    one, two, three = (learn_anchors(pairs(), 6, steps=15, seed=s) for s in (4, 4, 5))
    assert (one.mixing == two.mixing).all()
    assert np.abs(one.mixing - three.mixing).max() > 1e-3


def test_training_lowers_the_nce(digits):
    train = digits[0]
    rows = [x[:400] for x in train]
    options = ParamOptions(tau_nce=0.1, steps=80)
    fit = learn_anchors(rows, 40, n_support=300, options=options)
    assert fit.losses["nce"][-10:].mean() < 0.6 * fit.losses["nce"][:3].mean()


def test_single_keeps_its_mixtures_wide(digits):
    train = digits[0]
    fit = learn_anchors([x[:400] for x in train], 30, mode="single", n_support=400, steps=60)
    assert np.median(fit.n_eff) > 0.7 * 40
    assert (fit.losses["nce"] == 0).all()


def test_more_dimensions_than_rows_and_more_anchors_than_support():
    rng = np.random.default_rng(1)
    wide = [rng.normal(size=(30, 90)), rng.normal(size=(30, 70))]
    fit = learn_anchors(wide, 50, n_support=20, steps=5)
    assert fit.mixing.shape == (20, 20)
    assert np.isfinite(fit.mixing).all()


def test_compact_coordinates_keep_every_inner_product():
    z = np.random.default_rng(2).normal(size=(40, 60))
    short = _compact(z)
    assert short.shape == (40, 40)
    np.testing.assert_allclose(short @ short.T, z @ z.T, atol=1e-10)


def test_stacked_spaces_train_as_separate_ones_do():
    """On a GPU all spaces go through one kernel, padded; the losses and their slope agree."""
    import torch

    from core.linalg.whitening import whitening_stats
    from core.stitching.param import _prepare, _terms, _weighted

    rows = [*pairs(), pairs()[0][:, :3]]
    maps = [whitening_stats(x) for x in rows]
    support, batch = np.arange(40), torch.arange(30, 90)
    options = ParamOptions()
    found = []
    for stack in (False, True):
        data = _prepare(rows, maps, support, "multi", torch.device("cpu"), stack=stack)
        subs = [z[..., data.support, :] for z in data.white]
        data.norms = [sub.norm(dim=-1).median(dim=-1).values for sub in subs]
        Q = torch.randn(7, 40, generator=torch.Generator().manual_seed(0), requires_grad=True)
        P = torch.softmax(Q, dim=1)
        terms = _terms(P, data, subs, subs, batch, [(0, 1), (1, 2)], options)
        (slope,) = torch.autograd.grad(_weighted(terms, options), Q)
        found.append((torch.stack(terms).detach().numpy(), slope.numpy()))
        assert len(data.white) == (1 if stack else 3)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


def test_bad_input_is_named():
    x, y = pairs()
    with pytest.raises(BadInput, match=r"lengths \[120, 119\]"):
        learn_anchors([x, y[:-1]], 5)
    with pytest.raises(BadInput, match="at least 2 encoders"):
        learn_anchors([x], 5)
    with pytest.raises(BadInput, match="mode='both'"):
        learn_anchors([x, y], 5, mode="both")
    with pytest.raises(BadInput, match="reference=7"):
        learn_anchors([x, y], 5, reference=7)


def test_progress_can_stop_the_training():
    def stop(fraction: float, message: str) -> None:
        raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        learn_anchors(pairs(), 5, steps=50, progress=stop)
