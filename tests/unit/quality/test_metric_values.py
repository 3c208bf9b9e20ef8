"""Every value of the specification's sections 2 and 3, against closed forms and peers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import skdim

import core.quality as q
from core.quality.metrics.alpha_req import power_law
from core.quality.metrics.twonn import dimension
from core.stats import spearman

GOLDEN = np.random.default_rng(0).standard_normal((200, 16)) * np.arange(1, 17) ** -0.5 + 0.3


def planted(eigenvalues, n=None, seed=0, rotate=True):
    """Features whose sample covariance has exactly these eigenvalues."""
    d = len(eigenvalues)
    n = n or d + 40
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, d))])[0][:, 1:]
    x = basis * np.sqrt(np.asarray(eigenvalues) * (n - 1))
    return x @ np.linalg.qr(rng.standard_normal((d, d)))[0] if rotate else x


def test_golden_matrix_is_the_specified_one():
    assert GOLDEN.sum() == pytest.approx(915.112978, abs=1e-6)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (lambda x: q.rankme(x), 13.901815),
        (lambda x: q.rankme(x, centered=True), 14.562591),
        (lambda x: q.ne_sum(x), 3.490237),
        (lambda x: q.condition_number(x), 4.338147),
        (lambda x: q.participation_ratio(x), 7.475788),
        (lambda x: q.alpha_req(x, fit_range=(3, 16)), 1.121827),
        (lambda x: q.self_cluster(x), 0.103637),
        (lambda x: q.self_cluster(x - x.mean(0)), 0.043273),
        (lambda x: q.diffusion_spectral_entropy(x, l2=False), 0.320249),
        (lambda x: q.diffusion_spectral_entropy(x, sigma=2, t=2, l2=False), 0.545314),
        (lambda x: q.diffusion_spectral_entropy(x, sigma=1), 3.527269),
        (lambda x: q.diffusion_spectral_entropy(x, sigma=0.5), 6.753489),
        (lambda x: q.twonn(x), 13.170279),
        (lambda x: q.twonn(x, method="mle"), 12.753687),
        (lambda x: q.twonn(x, method="censored"), 12.711766),
        (lambda x: q.levina_bickel(x, k=20), 9.169894),
        (lambda x: q.stable_rank(x), 2.921752),
        (lambda x: q.coherence(x), 1.951100),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_golden(got, want, dtype):
    tolerance = 1e-6 if dtype is np.float64 else 2e-6
    assert got(GOLDEN.astype(dtype)) == pytest.approx(want, abs=tolerance)


def test_golden_unweighted_alpha():
    eigenvalues = np.linalg.eigvalsh(np.cov(GOLDEN.T))[::-1]
    assert power_law(eigenvalues, (3, 16), weighted=False).alpha == pytest.approx(
        1.149289, abs=1e-6
    )


POPULATION = [
    (64, 0, 64, 64, 1, 64),
    (64, 1, 54.9904, 4.7439, 8, 13.8113),
    (64, 2, 29.1179, 1.6294, 64, 2.4531),
    (256, 0.5, 246.4239, 30.5709, 4, 152.6007),
    (256, 1, 209.0328, 6.1243, 16, 22.8561),
    (256, 2, 74.6298, 1.6410, 256, 2.4882),
    (768, 0, 768, 768, 1, 768),
    (768, 0.5, 736.8354, 53.9833, 5.2643, 403.5359),
    (768, 1, 607.9228, 7.2217, 27.7128, 31.7299),
    (768, 1.5, 371.5071, 2.5402, 145.8885, 5.3681),
    (768, 2, 151.9698, 1.6436, 768, 2.4960),
    (768, 3, 17.9209, 1.2021, 21283.44, 1.4203),
]


@pytest.mark.parametrize(("d", "alpha", "rank", "nesum", "kappa", "pr"), POPULATION)
def test_power_law_population(d, alpha, rank, nesum, kappa, pr):
    x = planted(np.arange(1, d + 1.0) ** -alpha)
    assert q.rankme(x) == pytest.approx(rank, abs=6e-5)
    assert q.ne_sum(x) == pytest.approx(nesum, abs=6e-5)
    assert q.condition_number(x) == pytest.approx(kappa, rel=1e-5)
    assert q.participation_ratio(x) == pytest.approx(pr, abs=6e-5)
    if d > 64 or alpha:
        assert q.alpha_req(x) == pytest.approx(alpha, abs=1e-6)


def test_power_law_limits():
    i = np.arange(1, 3001.0)
    total = (i**-2).sum()
    assert total == pytest.approx(1.6449, abs=5e-4)
    # alpha = 4: exp(ln H + 2 sum i^-2 ln i / H), with the tail of the sum in closed form
    weighted = (i**-2 * np.log(i)).sum() + (np.log(3000.5) + 1) / 3000.5
    total = total + 1 / 3000.5
    assert math.exp(math.log(total) + 2 * weighted / total) == pytest.approx(5.1429, abs=1e-4)


@pytest.mark.parametrize(
    ("n", "d", "rank", "nesum", "kappa", "pr", "a100", "a90"),
    [
        (2000, 64, 63.728, 46.07, 1.424, 61.91, 0.273, 0.248),
        (10000, 256, 255.158, 190.42, 1.381, 249.48, 0.088, 0.134),
        (5000, 768, 752.58, 394.2, 2.295, 665.77, 0.084, 0.230),
    ],
)
def test_isotropic_marchenko_pastur(n, d, rank, nesum, kappa, pr, a100, a90):
    names = ["rankme", "ne_sum", "condition_number", "participation_ratio", "alpha_req"]
    names += ["alpha_req_90pct", "self_cluster"]
    draws = []
    # The edges of a small spectrum scatter by more than the tolerance: average a few draws.
    for seed in range(8 if d == 64 else 1):
        x = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
        draws.append({k: m.value for k, m in q.label_free_metrics(x, names=names).items()})
    value = {name: np.mean([draw[name] for draw in draws]) for name in names}
    gamma = d / n
    assert value["rankme"] == pytest.approx(rank, rel=0.02)
    assert value["rankme"] == pytest.approx(d * (1 - gamma / 8), rel=0.02)
    assert value["ne_sum"] == pytest.approx(nesum, rel=0.02)
    assert value["ne_sum"] == pytest.approx(d / (1 + math.sqrt(gamma)) ** 2, rel=0.02)
    assert value["condition_number"] == pytest.approx(kappa, rel=0.02)
    assert value["participation_ratio"] == pytest.approx(pr, rel=0.02)
    assert value["participation_ratio"] == pytest.approx(d / (1 + gamma), rel=0.02)
    assert value["alpha_req"] == pytest.approx(a100, abs=0.02)
    assert value["alpha_req_90pct"] == pytest.approx(a90, abs=0.02)
    assert abs(value["self_cluster"]) < 2e-4


def test_rankme_epsilon_and_variance_option():
    rng = np.random.default_rng(0)
    x = planted(np.r_[np.ones(8)], n=4000, rotate=False) @ np.eye(8, 256)
    assert q.rankme(x) == pytest.approx(8, abs=1e-6)
    # 256 eps ln(1/eps) nats more
    assert q.rankme(x, eps=1e-7) / 8 == pytest.approx(8.0018 / 7.9986, abs=2e-5)
    y = rng.standard_normal((300, 12)) * np.arange(1, 13) ** -1.0
    s = np.linalg.svd(y, compute_uv=False)
    p = s**2 / (s**2).sum()
    want = math.exp(-(p * np.log(p)).sum())
    assert q.rankme(y, spectrum="variance") == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize(
    ("r", "rank", "nesum", "sc"), [(8, 7.9986, 7.54, 0.1215), (32, 31.9676, 27.50, 0.0274)]
)
def test_low_rank_isotropic(r, rank, nesum, sc):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4000, r)) @ np.linalg.qr(rng.standard_normal((256, r)))[0].T
    out = q.label_free_metrics(x, names=["rankme", "ne_sum", "self_cluster", "condition_number"])
    assert out["rankme"].value == pytest.approx(rank, rel=2e-3)
    assert out["ne_sum"].value == pytest.approx(nesum, rel=0.03)
    assert out["self_cluster"].value == pytest.approx(sc, abs=5e-4)
    assert out["self_cluster"].value == pytest.approx((1 / r - 1 / 256) / (1 - 1 / 256), abs=5e-4)
    assert out["condition_number"].detail["rank"] == r
    assert "rank_deficient" in out["condition_number"].flags


def test_shift_and_half_normal():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4000, 128))
    assert q.rankme(x + 5) == pytest.approx(52.51, rel=0.02)
    assert q.rankme(x + 5, centered=True) == pytest.approx(127.48, rel=0.01)
    assert q.self_cluster(x + 5) == pytest.approx(0.9248, abs=2e-3)
    assert q.self_cluster(np.abs(x)) == pytest.approx(0.4045, abs=5e-3)
    shifted = GOLDEN + 1
    assert q.rankme(shifted) == pytest.approx(8.29, abs=5e-3)
    assert q.self_cluster(shifted) == pytest.approx(0.792, abs=1e-3)


def test_point_clusters():
    x = np.repeat(np.eye(64)[:10], 50, axis=0)
    exact = (64 * 49 / 499 - 1) / 63
    assert exact == pytest.approx(0.0839, abs=5e-5)
    assert q.self_cluster(x) == pytest.approx(exact, abs=1e-12)
    assert q.diffusion_spectral_entropy(x, sigma=0.05) == pytest.approx(3.3219, abs=1e-4)


def test_diffusion_entropy_limits():
    x = np.random.default_rng(4).standard_normal((300, 20))
    assert q.diffusion_spectral_entropy(x, sigma=1e-3) == pytest.approx(8.2288, abs=1e-4)
    for d, measured in ((16, 0.1206), (64, 0.1401)):
        y = np.random.default_rng(5).standard_normal((1000, d))
        assert q.diffusion_spectral_entropy(y) == pytest.approx(measured, abs=1.5e-3)


def test_self_cluster_bounds():
    frame = np.vstack([np.eye(8), -np.eye(8)])
    assert q.self_cluster(frame) == pytest.approx(-1 / 15, abs=1e-12)
    rows = np.linalg.qr(np.random.default_rng(6).standard_normal((64, 20)))[0].T
    assert q.self_cluster(rows) == pytest.approx(-0.0159, abs=5e-5)
    w = GOLDEN / np.linalg.norm(GOLDEN, axis=1, keepdims=True)
    gram = w @ w.T
    c = (np.square(gram).sum() - 200) / (200 * 199)
    assert q.self_cluster(GOLDEN) == pytest.approx((16 * c - 1) / 15, abs=1e-12)
    p = np.linalg.eigvalsh(gram) / 200
    expected = 200 + 200 * 199 / 16
    purity = (200**2 * (p**2).sum() - expected) / (200**2 - expected)
    assert q.self_cluster(GOLDEN) == pytest.approx(purity, abs=1e-10)


@pytest.mark.parametrize(
    ("d", "mean", "sd"), [(2, 1.985, 0.046), (5, 4.689, 0.139), (10, 8.552, 0.285)]
)
def test_twonn_cube(d, mean, sd):
    rng = np.random.default_rng(7)
    basis = np.linalg.qr(rng.standard_normal((50, d)))[0].T
    assert q.twonn(rng.random((2000, d)) @ basis) == pytest.approx(mean, abs=4 * sd)


def test_twonn_cube_of_twenty_is_a_lower_bound():
    rng = np.random.default_rng(8)
    x = rng.random((2000, 20)) @ np.linalg.qr(rng.standard_normal((100, 20)))[0].T
    assert q.twonn(x) == pytest.approx(15.15, abs=2)


@pytest.mark.parametrize(
    ("d", "mean", "sd"), [(2, 1.992, 0.047), (5, 4.976, 0.153), (10, 9.29, 0.3)]
)
def test_twonn_sphere(d, mean, sd):
    z = np.random.default_rng(9).standard_normal((2000, d + 1))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    assert q.twonn(z) == pytest.approx(mean, abs=4 * sd)


def test_twonn_exact_pareto_and_gaussian():
    u = np.sort(np.random.default_rng(10).random(20000))
    mu = np.sort((1 - u) ** (-1 / 7))
    assert dimension(mu) == pytest.approx(6.991, abs=0.25)
    assert dimension(mu, method="mle") == pytest.approx(6.965, abs=0.2)
    assert dimension(mu, method="censored") == pytest.approx(6.984, abs=0.2)
    x = np.random.default_rng(11).standard_normal((2000, 64)).astype(np.float32)
    assert q.twonn(x) == pytest.approx(37.7, abs=4)


@pytest.mark.parametrize(
    ("sigma", "want", "within"),
    [(0, 3.00, 0.25), (0.001, 3.31, 0.3), (0.01, 16.3, 2.5), (0.05, 31.2, 4)],
)
def test_twonn_noise(sigma, want, within):
    rng = np.random.default_rng(12)
    x = rng.random((3000, 3)) @ np.linalg.qr(rng.standard_normal((64, 3)))[0].T
    x = x + sigma * rng.standard_normal(x.shape)
    assert q.twonn(x) == pytest.approx(want, abs=within)


def test_twonn_loses_a_dimension_to_unit_rows():
    rng = np.random.default_rng(13)
    x = rng.random((3000, 3)) - 0.5
    assert q.twonn(x / np.linalg.norm(x, axis=1, keepdims=True)) == pytest.approx(2.01, abs=0.2)


def test_twonn_equals_scikit_dimension():
    x = np.random.default_rng(7).random((1500, 6))
    assert q.twonn(x) == pytest.approx(5.2134, abs=5e-5)
    assert q.twonn(x, method="censored") == pytest.approx(5.2337, abs=5e-5)
    assert q.levina_bickel(x, k=20) == pytest.approx(5.2037, abs=5e-5)
    assert q.twonn(x) == pytest.approx(skdim.id.TwoNN().fit(x).dimension_, rel=1e-9)


REFERENCE = json.loads((Path(__file__).parent / "reference_values.json").read_text())


def reference_set(name):
    from sklearn.datasets import load_digits

    if name == "gauss5_in_20":
        rng = np.random.default_rng(0)
        return rng.standard_normal((2000, 5)) @ rng.standard_normal((5, 20))
    if name == "cube3":
        return np.random.default_rng(1).random((3000, 3))
    if name == "sphere9_in_10":
        z = np.random.default_rng(2).standard_normal((2500, 10))
        return z / np.linalg.norm(z, axis=1, keepdims=True)
    return load_digits().data


@pytest.mark.parametrize("name", ["gauss5_in_20", "cube3", "sphere9_in_10", "digits"])
def test_twonn_reference_sets(name):
    want = REFERENCE[f"id/{name}"]["value"]
    x = reference_set(name)
    assert q.twonn(x) == pytest.approx(want["skdim_TwoNN"], rel=1e-7)
    assert q.twonn(x) == pytest.approx(want["dadapy_2nn_base_id"], rel=1e-7)
    # Their likelihood divides by n, the specification's by n - 1.
    n = len(x)
    assert q.twonn(x, method="mle") * n / (n - 1) == pytest.approx(
        want["dadapy_gride_ids"][0], rel=2e-3
    )


def test_spectrum_reference():
    want = REFERENCE["spectrum/powerlaw32"]["value"]
    x = np.random.default_rng(10).standard_normal((500, 32)) * np.arange(1, 33) ** -0.75
    assert q.rankme(x, eps=1e-7) == pytest.approx(want["rankme_uncentred"], rel=1e-6)
    assert q.rankme(x, eps=1e-7, centered=True) == pytest.approx(want["rankme_centred"], rel=1e-6)
    assert q.ne_sum(x) == pytest.approx(want["nesum"], rel=1e-9)
    assert q.condition_number(x) == pytest.approx(want["kappa_centred"], rel=1e-9)
    assert q.participation_ratio(x) == pytest.approx(want["participation_ratio"], rel=1e-9)
    eigenvalues = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    full = power_law(eigenvalues, (1, 32), weighted=False).alpha
    assert full == pytest.approx(want["alpha_full"], rel=1e-9)
    part = power_law(eigenvalues, (4, 24), weighted=False).alpha
    assert part == pytest.approx(want["alpha_4_24"], rel=0.02)
    sc = REFERENCE["relational/selfcluster_powerlaw32"]["value"]["selfcluster"]
    assert q.self_cluster(x) == pytest.approx(sc, rel=1e-9)


def test_sampled_power_law_depends_on_n():
    rng = np.random.default_rng(14)
    basis = np.linalg.qr(rng.standard_normal((256, 256)))[0]
    wanted = {300: (175.5, 5.92, 149.7, 1.045), 8000: (208.0, 6.14, 17.3, 1.005)}
    for n, (rank, nesum, kappa, alpha) in wanted.items():
        x = rng.standard_normal((n, 256)) * np.arange(1, 257) ** -0.5 @ basis
        assert q.rankme(x) == pytest.approx(rank, rel=0.02)
        assert q.ne_sum(x) == pytest.approx(nesum, rel=0.12)
        assert q.condition_number(x) == pytest.approx(kappa, rel=0.15)
        assert q.alpha_req(x) == pytest.approx(alpha, abs=0.08)


def test_broken_power_law():
    i = np.arange(1, 769.0)
    law = np.where(i <= 100, i**-0.8, 100**-0.8 * (i / 100) ** -2.5)
    x = planted(law)
    assert q.alpha_req(x) == pytest.approx(0.800, abs=1e-6)
    assert q.alpha_req(x, fit_range=(11, 0.9)) == pytest.approx(1.553, abs=1e-3)


def test_self_cluster_mirrors_diffusion_entropy():
    sc, dse = [], []
    for at, alpha in enumerate(np.linspace(0, 2.5, 9)):
        rng = np.random.default_rng(at)
        x = rng.standard_normal((400, 48)) * np.arange(1, 49) ** (-alpha / 2)
        x = x + 0.3 * (at % 3) * rng.standard_normal(48)
        sc.append(q.self_cluster(x))
        dse.append(q.diffusion_spectral_entropy(x, sigma=10))
    assert spearman(np.array(sc), np.array(dse)) <= -0.97
