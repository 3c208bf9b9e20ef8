"""Mixtures against scikit-learn, stored reference values and what must hold by construction."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture as Peer

from core.errors import BadInput
from core.linalg.gmm import (
    GaussianMixture,
    MixtureBatch,
    fit_gaussian,
    fit_mixtures,
    select_mixtures,
)

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "reference_values.json").read_text()
)


def three_blobs(seed=20, n=1500):
    rng = np.random.default_rng(seed)
    c = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = np.array([1.2, 1.7, 2.3])[c] + 0.12 * rng.standard_normal(n)
    y = np.array([0.6, 1.4, 2.4])[c] + 0.25 * rng.standard_normal(n)
    return np.stack([x, y], axis=1)


def start_at(points, k):
    cov = torch.as_tensor(np.cov(points.T)).repeat(1, k, 1, 1)
    nothing = torch.zeros(1)
    return MixtureBatch(
        torch.full((1, k), 1.0 / k, dtype=torch.float64),
        torch.as_tensor(points[::500][:k])[None],
        cov, nothing, nothing, nothing,
    )  # fmt: skip


@pytest.mark.parametrize("k", [1, 2])
def test_reaches_the_reference_from_the_same_start(k):
    want = REFERENCE[f"gmm/2d_K{k}"]["value"]
    z = three_blobs()
    fit = fit_mixtures(z, k, start=start_at(z, k), tol=1e-10, max_iter=5000)
    assert float(fit.log_likelihood[0]) == pytest.approx(want["score"], rel=1e-5)
    assert float(fit.bic(len(z))[0]) == pytest.approx(want["bic"], rel=1e-5)
    assert np.allclose(fit.weights[0], want["weights"], rtol=1e-4)
    assert np.allclose(fit.means[0], want["means"], rtol=1e-4)
    assert np.allclose(fit.covariances[0], want["cov"], rtol=1e-3)
    assert int(fit.n_iter[0]) == want["n_iter"]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("dim", "k"), [(2, 3), (6, 2)])
def test_is_as_good_a_fit_as_scikit_learns(seed, dim, k):
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 4, (k, dim))
    z = centres[rng.integers(k, size=400)] + rng.standard_normal((400, dim))
    ours = fit_mixtures(z, k, n_init=3, seed=seed, tol=1e-7, max_iter=2000)
    peer = Peer(k, n_init=3, random_state=seed, tol=1e-7, max_iter=2000).fit(z)
    assert float(ours.log_likelihood[0]) >= peer.score(z) - 1e-5
    density = ours.one(0)
    twin = Peer(k)
    twin.weights_, twin.means_, twin.covariances_ = (
        density.weights, density.means, density.covariances,
    )  # fmt: skip
    twin.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(density.covariances)).transpose(
        0, 2, 1
    )
    assert np.allclose(density.logpdf(z), twin.score_samples(z), atol=1e-9)


def test_a_batch_is_the_same_as_one_at_a_time():
    z = np.stack([three_blobs(1), three_blobs(2), three_blobs(3)])
    options = {"tol": 1e-6, "max_iter": 500}
    begin = [start_at(one, 2) for one in z]
    joined = MixtureBatch(
        *(torch.cat([getattr(b, name) for b in begin]) for name in MixtureBatch.__annotations__)
    )
    together = fit_mixtures(z, 2, start=joined, **options)
    for index, one in enumerate(z):
        alone = fit_mixtures(one, 2, start=begin[index], **options)
        assert torch.allclose(together.means[index], alone.means[0], atol=1e-10)
        assert int(together.n_iter[index]) == int(alone.n_iter[0])


def test_the_log_likelihood_never_falls():
    z = three_blobs()
    values = [
        float(fit_mixtures(z, 3, start=start_at(z, 3), tol=0.0, max_iter=n).log_likelihood[0])
        for n in (1, 2, 5, 20)
    ]
    assert all(b >= a - 1e-9 for a, b in pairwise(values))


def test_bic_finds_the_number_of_blobs():
    chosen, fits = select_mixtures(three_blobs(), [1, 2, 3, 5], n_init=3, seed=0)
    assert chosen == [3]
    assert len(fits) == 4


def test_the_same_seed_gives_the_same_fit():
    z = three_blobs()
    a, b = (fit_mixtures(z, 3, seed=4) for _ in range(2))
    assert torch.equal(a.means, b.means)


def test_one_component_is_the_sample_mean_and_covariance():
    z = three_blobs()
    fit, plain = fit_mixtures(z, 1, reg_covar=0.0).one(0), fit_gaussian(z)
    assert np.allclose(plain.means[0], z.mean(0))
    assert np.allclose(plain.covariances[0], np.cov(z.T, bias=True))
    assert np.allclose(fit.covariances, plain.covariances, atol=1e-12)


def test_sampling_gives_back_the_moments():
    mixture = GaussianMixture(
        np.array([0.3, 0.7]),
        np.array([[0.0, 0.0], [4.0, 1.0]]),
        np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.0]]]),
    )
    z = mixture.sample(200_000, np.random.default_rng(0))
    assert np.allclose(z.mean(0), [2.8, 0.7], atol=0.02)
    assert mixture.n_params == fit_mixtures(three_blobs(), 2).n_params == 11


def test_doubled_points_change_nothing():
    z = three_blobs(n=300)
    begin = start_at(np.repeat(z, 5, axis=0), 2)
    a = fit_mixtures(z, 2, start=begin, tol=1e-8, max_iter=500)
    b = fit_mixtures(np.concatenate([z, z]), 2, start=begin, tol=1e-8, max_iter=500)
    assert torch.allclose(a.means, b.means, atol=1e-9)


@pytest.mark.parametrize(
    ("points", "k", "words"),
    [
        (np.zeros((3, 2)), 4, "no more components"),
        (np.full((9, 2), np.nan), 1, "not finite"),
        (np.zeros(5), 1, r"\(B, n, D\)"),
    ],
)
def test_bad_input_is_named(points, k, words):
    with pytest.raises(BadInput, match=words):
        fit_mixtures(points, k)


def test_a_gaussian_needs_more_points_than_dimensions():
    with pytest.raises(BadInput, match="needs 4"):
        fit_gaussian(np.zeros((3, 3)))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_both_ways_of_a_step_give_the_same_fit(offset, monkeypatch):
    from core.linalg import em

    z = three_blobs() + offset
    begin = start_at(z, 3)
    options = {"start": begin, "tol": 1e-6, "max_iter": 300}
    monomials = fit_mixtures(z, 3, **options)
    monkeypatch.setattr(em, "_MONOMIAL_DIMS", 0)
    solves = fit_mixtures(z, 3, **options)
    assert int(monomials.n_iter[0]) == int(solves.n_iter[0])
    assert torch.allclose(monomials.means, solves.means, rtol=1e-10)
    assert torch.allclose(monomials.covariances, solves.covariances, rtol=1e-6, atol=1e-9)
