"""Every geometric value and property of the specification's section 8."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.radar import geometry as geo
from core.radar import triplet_descriptors
from core.radar.triplets import PairSpace

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "reference_values.json").read_text()
)


def one(z, x=(0.0, 0.0), nxt=(2.0, 0.0), **options):
    anchor = np.array([[x, nxt]], dtype=float)
    partner = np.array([[z, (7.0, -3.0)]], dtype=float)
    return triplet_descriptors(anchor, partner, **options)


@pytest.mark.parametrize("mode", ["stable", "paper"])
@pytest.mark.parametrize(
    ("z", "theta", "d"),
    [
        ((1, 0), 0.0, 0.0),
        ((1, 1), math.pi / 2, 0.414214),
        ((1, 3), 2.498092, 2.162278),
        ((0, 1), 2.034444, 0.618034),
        ((3, 0), math.pi, 1.0),
        ((-1, 0), math.pi, 1.0),
    ],
)
def test_fixtures(z, theta, d, mode):
    out = one(z, angle_mode=mode)
    assert out.theta[0, 0] == pytest.approx(theta, abs=1e-6)
    assert out.d[0, 0] == pytest.approx(d, abs=1e-6)
    assert out.mask[0, 0]


@pytest.mark.parametrize("mode", ["stable", "paper"])
@pytest.mark.parametrize("z", [(0, 0), (2, 0)])
def test_a_partner_on_a_corner_is_masked(z, mode):
    out = one(z, angle_mode=mode)
    assert out.theta[0, 0] == pytest.approx(math.pi / 2)
    assert out.d[0, 0] == 0.0
    assert not out.mask[0, 0]


def test_no_trajectory_is_masked_and_takes_the_papers_value():
    out = one((1, 0), nxt=(0.0, 0.0), angle_mode="paper")
    assert out.theta[0, 0] == pytest.approx(math.pi)
    assert out.d[0, 0] == pytest.approx(2e8)
    assert not out.mask[0, 0]


def test_the_papers_epsilon_depends_on_scale_and_ours_does_not():
    paper = one((1e-5, 0), nxt=(2e-5, 0), angle_mode="paper")
    stable = one((1e-5, 0), nxt=(2e-5, 0))
    assert paper.theta[0, 0] == pytest.approx(1.5608, abs=1e-4)
    assert stable.theta[0, 0] == 0.0


def test_stored_reference():
    want = REFERENCE["radar/theta_d"]["value"]
    h = np.random.default_rng(30).standard_normal((4, 50, 16))
    for layer in range(1, 4):
        h[layer] = h[layer - 1] + 0.4 * h[layer]
    out = triplet_descriptors(list(h), list(h[:, (np.arange(50) + 7) % 50]))
    assert np.allclose(out.theta[:5].T, want["theta_first5"], rtol=1e-9)
    assert np.allclose(out.d[:5].T, want["d_first5"], rtol=1e-9)
    assert np.allclose(out.theta.mean(0), want["theta_mean"], rtol=1e-9)
    assert np.allclose(out.d.mean(0), want["d_mean"], rtol=1e-9)


def test_against_a_loop_written_from_the_equations():
    rng = np.random.default_rng(0)
    a, z = rng.standard_normal((2, 30, 5, 7))
    out = triplet_descriptors(a, z)
    for i in range(30):
        for layer in range(4):
            sep, detour = z[i, layer] - a[i, layer], a[i, layer + 1] - z[i, layer]
            traj = a[i, layer + 1] - a[i, layer]
            assert np.allclose(sep + detour, traj)
            lengths = [math.sqrt(v @ v) for v in (sep, detour, traj)]
            theta = math.acos(sep @ detour / (lengths[0] * lengths[1]))
            assert out.theta[i, layer] == pytest.approx(theta, abs=1e-12)
            d = (lengths[0] + lengths[1] - lengths[2]) / lengths[2]
            assert out.d[i, layer] == pytest.approx(d, abs=1e-12)
            assert np.allclose(out.sides[i, layer], lengths)


def test_bounds_and_the_law_of_cosines_on_twenty_thousand_triangles():
    rng = np.random.default_rng(1)
    a, z = rng.standard_normal((2, 20_000, 2, 3))
    out = triplet_descriptors(a, z)
    sep, detour, traj = np.moveaxis(out.sides, -1, 0)
    assert (out.d >= 0).all()
    assert ((out.theta >= 0) & (out.theta <= math.pi)).all()
    cosines = sep**2 + detour**2 + 2 * sep * detour * np.cos(out.theta)
    assert np.allclose(traj**2, cosines, atol=1e-12)
    bound = 1 / np.cos(out.theta / 2) - 1
    assert (out.d - bound <= 1e-13 * np.maximum(bound, 1)).all()


@given(st.floats(0.05, 3.0), st.floats(0.1, 10.0))
@settings(max_examples=50, deadline=None)
def test_the_bound_is_met_where_separation_and_detour_are_equal(theta, side):
    nxt = side * np.array([1 + math.cos(theta), math.sin(theta)])
    out = one((side, 0.0), nxt=nxt)
    assert out.theta[0, 0] == pytest.approx(theta, abs=1e-9)
    assert out.d[0, 0] == pytest.approx(1 / math.cos(theta / 2) - 1, rel=1e-9, abs=1e-12)


def test_d_is_zero_only_on_the_segment():
    rng = np.random.default_rng(2)
    x, nxt = rng.standard_normal((2, 5))
    on = np.stack([x + t * (nxt - x) for t in (0.0, 0.1, 0.5, 0.9, 1.0)])
    off = on + 0.1 * rng.standard_normal(on.shape)
    anchor = np.repeat(np.stack([x, nxt])[None], 5, axis=0)
    far = np.zeros((5, 5))
    assert np.allclose(triplet_descriptors(anchor, np.stack([on, far], axis=1)).d, 0, atol=1e-12)
    assert (triplet_descriptors(anchor, np.stack([off, far], axis=1)).d > 1e-4).all()


def test_translation_rotation_reflection_and_scale_change_nothing():
    rng = np.random.default_rng(3)
    a, z = rng.standard_normal((2, 40, 3, 6))
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    turn[0] *= -1
    base = triplet_descriptors(a, z)
    for scale in (1e-6, 1.0, 1e6):
        shift = scale * rng.standard_normal(6)
        moved = triplet_descriptors(scale * a @ turn + shift, scale * z @ turn + shift)
        assert np.allclose(moved.theta, base.theta, atol=1e-8)
        assert np.allclose(moved.d, base.d, rtol=1e-7, atol=1e-9)


def test_what_must_change_does_change():
    rng = np.random.default_rng(4)
    a, z = rng.standard_normal((2, 40, 2, 6))
    base = triplet_descriptors(a, z)
    turned = a.copy()
    turned[:, 1] = a[:, 1] @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert not np.allclose(triplet_descriptors(turned, z).theta, base.theta, atol=1e-3)
    assert not np.allclose(triplet_descriptors(z, a).theta, base.theta, atol=1e-3)
    later = z.copy()
    later[:, 1] = rng.standard_normal((40, 6))
    assert np.array_equal(triplet_descriptors(a, later).theta, base.theta)


def test_flat_angles_keep_their_digits():
    nxt = (2.0, 2.8e-3)
    near_pi = one((3.0, 0.0), nxt=nxt)
    want = math.pi - math.atan2(2.8e-3, 1.0)
    assert near_pi.theta[0, 0] == pytest.approx(want, abs=1e-14)


def test_sphere_fixture_and_its_law_of_cosines():
    e = np.eye(3)
    out = triplet_descriptors(e[[0, 2]][None], e[[1, 1]][None], geometry="sphere")
    assert out.theta[0, 0] == pytest.approx(math.pi / 2)
    assert out.d[0, 0] == pytest.approx(1.0)
    rng = np.random.default_rng(5)
    a, z = rng.standard_normal((2, 500, 2, 4))
    out = triplet_descriptors(a, z, geometry="sphere")
    la, lb, lc = np.moveaxis(out.sides, -1, 0)
    gamma = math.pi - out.theta
    want = np.cos(la) * np.cos(lb) + np.sin(la) * np.sin(lb) * np.cos(gamma)
    assert np.allclose(np.cos(lc), want, atol=2e-13)
    scaled = triplet_descriptors(7 * a, 3 * z, geometry="sphere")
    assert np.allclose(scaled.theta, out.theta)


@pytest.mark.parametrize(
    ("scale", "theta", "d"), [(1.0, 1.786881, 0.456203), (1e-3, 1.5707965, 0.41421360)]
)
def test_poincare_fixture(scale, theta, d):
    points = scale * torch.tensor([[0.0, 0.0], [0.3, 0.3], [0.6, 0.0]], dtype=torch.float64)
    angle, (a, b, c) = geo.triangle(*points[:, None], "poincare")
    assert float(angle[0]) == pytest.approx(theta, abs=1e-6)
    assert float((a + b - c)[0] / c[0]) == pytest.approx(d, abs=1e-6)


def test_poincare_law_of_cosines_and_stored_distances():
    want = REFERENCE["hyperbolic/poincare"]["value"]
    u = torch.as_tensor(np.random.default_rng(31).standard_normal((6, 4)) * 0.15)
    v = torch.as_tensor(np.random.default_rng(32).standard_normal((6, 4)) * 0.2)
    assert np.allclose(geo.ball_distance(u, v), want["dist"], rtol=1e-9)
    assert np.allclose(geo.pair_distance(u, v, "poincare").diagonal(), want["dist"], rtol=1e-9)
    w = 0.5 * (u + v).flip(0)
    theta, (a, b, c) = geo.triangle(u, v, w, "poincare")
    gamma = math.pi - theta
    want_cosh = a.cosh() * b.cosh() - a.sinh() * b.sinh() * torch.cos(gamma)
    assert torch.allclose(c.cosh(), want_cosh, atol=2e-13)


@pytest.mark.parametrize("geometry", ["euclidean", "sphere", "poincare"])
def test_the_table_of_all_pairs_agrees_with_each_pair(geometry):
    rng = np.random.default_rng(6)
    a, z = list(rng.standard_normal((3, 40, 9))), list(rng.standard_normal((3, 30, 9)) + 1)
    i, j = rng.integers(40, size=200), rng.integers(30, size=200)
    steps = [(0, 1), (1, 2)]
    tabled = PairSpace(a, z, steps, n_expected=200, geometry=geometry, scale=0.3).at(i, j)
    direct = triplet_descriptors([s[i] for s in a], [s[j] for s in z], geometry=geometry, scale=0.3)
    single = PairSpace(a, z, steps, n_expected=1, geometry=geometry, scale=0.3).at(i, j)
    assert np.allclose(tabled.theta, direct.theta, atol=1e-9)
    assert np.allclose(tabled.d, direct.d, atol=1e-9)
    assert np.array_equal(tabled.mask, direct.mask)
    assert np.array_equal(single.theta, direct.theta)


def test_the_table_masks_the_same_item():
    h = list(np.random.default_rng(7).standard_normal((2, 20, 5)))
    out = PairSpace(h, h, [(0, 1)], n_expected=400).at(np.arange(20), np.arange(20))
    assert not out.mask.any()


@pytest.mark.parametrize(
    ("anchor", "partner", "words"),
    [
        (np.zeros((5, 1, 3)), np.zeros((5, 1, 3)), "1 states"),
        (np.full((5, 2, 3), np.nan), np.zeros((5, 2, 3)), "state 0 holds 15 values"),
        ([np.zeros((5, 3)), np.zeros((5, 4))], [np.zeros((5, 3)), np.zeros((5, 4))], "widths 3"),
        (np.zeros((5, 2, 3)), np.zeros((4, 2, 3)), "one row a pair"),
        (np.zeros((5, 2)), np.zeros((5, 2)), r"\(n, L\+1, d\)"),
        ([np.zeros((5, 3)), np.zeros((4, 3))], [np.zeros((5, 3))] * 2, "expected"),
    ],
)
def test_bad_input_is_named(anchor, partner, words):
    with pytest.raises(BadInput, match=words):
        triplet_descriptors(anchor, partner)


def test_paper_mode_is_flat_only():
    with pytest.raises(BadInput, match="Euclidean"):
        one((1, 1), angle_mode="paper", geometry="sphere")
