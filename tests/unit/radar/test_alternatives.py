"""Other densities, transport, the other angle, and states of unequal width."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal
from toy import domain

from core.errors import BadInput
from core.linalg.divergence import variational_kl
from core.linalg.gmm import GaussianMixture
from core.radar import Domain, RadarConfig, rank_blends, triplet_descriptors
from core.radar.alternatives import histogram_kl, kde_kl, transport
from core.radar.triplets import PairSpace

M1, S1 = np.array([0.8, -0.5]), np.array([[1.5, 0.4], [0.4, 0.7]])
# Closed form of the symmetric KL of N(0, I) and N(M1, S1).
INVERSE = np.linalg.inv(S1)
TRUTH = 0.25 * np.trace(S1 + INVERSE - 2 * np.eye(2)) + 0.25 * M1 @ (np.eye(2) + INVERSE) @ M1


def clouds(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)), rng.multivariate_normal(M1, S1, n)


def test_the_closed_form_in_this_file_is_right():
    p, q = multivariate_normal(np.zeros(2), np.eye(2)), multivariate_normal(M1, S1)

    def integrand(y, x):
        at = (x, y)
        return 0.5 * (p.pdf(at) - q.pdf(at)) * (p.logpdf(at) - q.logpdf(at))

    assert dblquad(integrand, -6, 6, -6, 6, epsabs=1e-4)[0] == pytest.approx(TRUTH, abs=1e-3)


def test_a_kernel_density_comes_near_the_closed_form():
    w, x = clouds()
    # Kernels thin out the tails, where the two differ most: the value is on the high side.
    assert TRUTH < kde_kl(w, x, 0) < 1.3 * TRUTH
    assert abs(kde_kl(w[::2], w[1::2], 0)) < 0.02 * TRUTH + 0.02
    assert kde_kl(np.ones((60, 1)), np.ones((60, 1)), 0) == 0.0


def test_a_histogram_is_the_sum_written_out():
    rng = np.random.default_rng(1)
    w, x = (
        np.stack([rng.uniform(0, math.pi, 500), rng.gamma(k, 1.0, 500)], axis=1) for k in (2, 3)
    )
    top = np.quantile(np.concatenate([w, x])[:, 1], 0.995)

    def counts(rows):
        out = np.full((30, 30), 0.5)
        for theta, d in rows:
            out[min(int(theta / math.pi * 30), 29), min(int(min(d, top) / top * 30), 29)] += 1
        return out / out.sum()

    p, q = counts(w), counts(x)
    want = 0.5 * ((p - q) * np.log(p / q)).sum()
    assert histogram_kl(w, x, angled=True) == pytest.approx(want, rel=1e-9)
    assert histogram_kl(w, w, angled=True) == 0.0


def test_the_variational_kl_is_exact_for_gaussians_and_near_for_mixtures():
    one = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    two = GaussianMixture(np.ones(1), M1[None], S1[None])
    assert 0.5 * (variational_kl(one, two) + variational_kl(two, one)) == pytest.approx(TRUTH)
    p = GaussianMixture(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.full((2, 1, 1), 0.25))
    q = GaussianMixture(
        np.array([0.3, 0.7]), np.array([[-1.0], [1.5]]), np.array([[[0.49]], [[0.36]]])
    )
    assert variational_kl(p, p) == pytest.approx(0.0, abs=1e-12)
    assert variational_kl(p, q) == pytest.approx(0.301424, abs=0.1)


def test_transport_scores_shift_and_nothing_else():
    w, x = clouds(400)
    for kind in ("sliced", "sinkhorn"):
        assert transport(w, x, kind, 0, "cpu") > 4 * transport(w[::2], w[1::2], kind, 0, "cpu")


@pytest.mark.parametrize("density", ["variational", "kde", "histogram", "sliced", "sinkhorn"])
def test_every_density_sees_a_planted_shift(density):
    options = {
        "density": density, "n_pairs": 200, "repeats": 1, "mode": "per_layer", "layers": "late",
        "n_components": (1, 2), "n_components_layer": (1, 2),
    }  # fmt: skip
    target = domain("t", seed=1)
    out = rank_blends(target, [domain("near", 0, seed=2), domain("far", 8, seed=3)], **options)
    near, far = out.results["near"], out.results["far"]
    assert near.score < far.score
    assert far.excess > 0
    assert np.isfinite(far.per_layer).all()
    assert np.isnan(far.joint) == (density in ("kde", "histogram"))


def test_densities_of_one_layer_have_no_joint_reading():
    with pytest.raises(BadInput, match="no joint reading"):
        RadarConfig(density="kde", mode="joint")


def test_the_other_angle_is_the_interior_one_at_the_anchor():
    anchor, partner = np.array([[[0.0, 0.0], [2.0, 0.0]]]), np.array([[[1.0, 1.0], [9.0, 9.0]]])
    out = triplet_descriptors(anchor, partner, angle_pair="sep_traj")
    assert out.theta[0, 0] == pytest.approx(math.pi / 4)
    assert out.d[0, 0] == pytest.approx(0.414214, abs=1e-6)
    with pytest.raises(BadInput, match="sep and detour"):
        triplet_descriptors(anchor, partner, angle_pair="sep_traj", angle_mode="paper")


@pytest.mark.parametrize("geometry", ["euclidean", "sphere", "poincare"])
def test_the_other_angle_by_table_and_by_pair(geometry):
    rng = np.random.default_rng(6)
    a, z = list(rng.standard_normal((2, 30, 6))), list(rng.standard_normal((2, 30, 6)))
    i, j = rng.integers(30, size=(2, 100))
    options = {"geometry": geometry, "angle_pair": "sep_traj", "scale": 0.3}
    table = PairSpace(a, z, [(0, 1)], n_expected=100, **options).at(i, j)
    pairs = triplet_descriptors([s[i] for s in a], [s[j] for s in z], **options)
    assert np.allclose(table.theta, pairs.theta, atol=1e-8)
    if geometry == "euclidean":
        sep, traj = z[0][j] - a[0][i], a[1][i] - a[0][i]
        cosine = (sep * traj).sum(1) / np.linalg.norm(sep, axis=1) / np.linalg.norm(traj, axis=1)
        assert np.allclose(pairs.theta[:, 0], np.arccos(cosine))


def test_unequal_widths_are_projected_when_asked_and_said_to_be_approximate():
    def widened(part):
        turn = np.linalg.qr(np.random.default_rng(5).standard_normal((64, 16)))[0].T
        wide = [state @ turn.astype(np.float32) for state in part.layers[2:]]
        return Domain((*part.layers[:2], *wide), None, part.name)

    target, near, far = domain("t", seed=1), domain("near", 0, seed=2), domain("far", 8, seed=3)
    options = {"density": "gaussian", "n_pairs": 500, "repeats": 3}
    plain = rank_blends(widened(target), [widened(near), widened(far)], **options)
    out = rank_blends(widened(target), [widened(near), widened(far)], project="jl", **options)
    assert [len(r.results["far"].kept_layers) for r in (plain, out)] == [3, 4]
    assert "unequal width" in plain.results["far"].dropped_layers[0].reason
    assert any("projected at random to 16" in text for text in out.warnings)
    assert out.results["near"].score < out.results["far"].score
    same = rank_blends(target, [near, far], project="jl", **options)
    assert (
        same.results["far"].score
        == rank_blends(target, [near, far], **options).results["far"].score
    )
    assert not any("projected" in text for text in same.warnings)
