"""The failure policy, degenerate clouds, invariances and the contract of every metric."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core.quality as q
from core.errors import BadInput, NotFound
from core.quality.base import metric_specs
from core.quality.flags import FLAGS
from core.quality.metrics.alpha_req import power_law
from core.quality.sample import Sample

RNG = np.random.default_rng(0)
GOLDEN = RNG.standard_normal((200, 16)) * np.arange(1, 17) ** -0.5 + 0.3
SEVEN = list(metric_specs())[:7]
SPECTRAL = ("ne_sum", "alpha_req", "condition_number")


def values(x, **kwargs):
    return {name: m.value for name, m in q.label_free_metrics(x, **kwargs).items()}


def test_the_seven_of_the_study_come_first():
    specs = metric_specs()
    assert SEVEN == [
        "rankme", "ne_sum", "alpha_req", "condition_number", "self_cluster",
        "diffusion_spectral_entropy", "twonn",
    ]  # fmt: skip
    assert [name for name, spec in specs.items() if spec.study] == SEVEN


@pytest.mark.parametrize("name", list(metric_specs()))
def test_contract_of_every_metric(name):
    spec = metric_specs()[name]
    x = np.random.default_rng(1).standard_normal((300, 24)).astype(np.float32)
    metric = q.label_free_metrics(x, names=[name])[name]
    assert np.isfinite(metric.value)
    assert metric.n_used == 300
    assert set(metric.flags) <= set(FLAGS)
    assert spec.expected_sign in (-1, 0, 1)
    assert spec.family in ("spectral", "relational", "manifold", "alarm")
    assert spec.meaning.endswith((".", "."))
    assert metric.as_dict()["value"] == metric.value
    again = q.label_free_metrics(x, names=[name])[name]
    assert again == metric


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("level", [0.1, 1.0, -3.7])
def test_constant_cloud(dtype, level):
    out = q.label_free_metrics(np.full((300, 32), level, dtype=dtype))
    assert out["rankme"].value == pytest.approx(1, abs=1e-6)
    assert math.isnan(out["rankme"].detail["centered"])
    for name in (*SPECTRAL, "participation_ratio", "alpha_req_90pct"):
        assert math.isnan(out[name].value)
        assert "collapsed" in out[name].flags
    assert out["self_cluster"].value == pytest.approx(1)
    assert out["diffusion_spectral_entropy"].value == pytest.approx(0, abs=1e-9)
    assert math.isnan(out["twonn"].value)
    assert "too_few_rows" in out["twonn"].flags
    assert "near_collapse" in out["normalized_std"].flags


def test_all_zero_rows_are_nan_everywhere():
    zero = np.zeros((50, 8))
    for name, metric in q.label_free_metrics(zero).items():
        assert math.isnan(metric.value), name
        assert "zero_rows" in metric.flags
    assert q.diffusion_spectral_entropy(zero, l2=False) == pytest.approx(0, abs=1e-12)


def test_near_collapse_is_flagged_because_centred_metrics_cannot_see_it():
    noise = np.random.default_rng(3).standard_normal((500, 64))
    x = 1 + 1e-3 * noise
    out = q.label_free_metrics(x)
    assert out["rankme"].value == pytest.approx(1.0796, abs=3e-3)
    assert out["rankme"].detail["centered"] == pytest.approx(62.90, abs=0.3)
    assert out["self_cluster"].value == pytest.approx(1, abs=1e-3)
    assert q.self_cluster(x - x.mean(0)) == pytest.approx(0, abs=1e-3)
    raw = q.diffusion_spectral_entropy(x, l2=False)
    assert raw == pytest.approx(1.8e-5, abs=1e-6)
    assert out["diffusion_spectral_entropy"].value < 1e-6
    for name in ("ne_sum", "alpha_req", "condition_number", "twonn", "normalized_std"):
        assert "near_collapse" in out[name].flags


def test_rows_that_are_not_finite_are_dropped_and_counted():
    x = np.vstack([GOLDEN, np.full((1, 16), np.nan)])
    out = q.label_free_metrics(x)
    want = values(GOLDEN)
    for name, metric in out.items():
        assert metric.value == pytest.approx(want[name], rel=1e-12, nan_ok=True)
        assert "nonfinite_rows" in metric.flags
        assert "invalid" not in metric.flags
    many = np.vstack([GOLDEN, np.full((5, 16), np.inf)])
    assert all("invalid" in m.flags for m in q.label_free_metrics(many).values())


def test_zero_rows_stay_for_spectra_and_leave_unit_rows():
    x = np.vstack([GOLDEN, np.zeros((10, 16))])
    out = q.label_free_metrics(x)
    assert out["self_cluster"].value == pytest.approx(q.self_cluster(GOLDEN), abs=1e-12)
    assert out["self_cluster"].n_used == 200
    assert out["diffusion_spectral_entropy"].n_used == 200
    assert out["rankme"].n_used == 210
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    assert out["ne_sum"].value == pytest.approx((s**2).sum() / s[0] ** 2, rel=1e-10)
    assert "zero_rows" in out["rankme"].flags


def test_fewer_rows_than_features():
    x = np.random.default_rng(4).standard_normal((20, 64))
    out = q.label_free_metrics(x)
    assert out["rankme"].value == pytest.approx(19.25, abs=0.2)
    assert out["rankme"].detail["centered"] == pytest.approx(18.34, abs=0.2)
    assert out["condition_number"].value == pytest.approx(2.58, abs=0.6)
    assert out["condition_number"].detail["rank"] == 19
    assert out["alpha_req"].detail["n_fit"] == 9
    for name in ("rankme", *SPECTRAL):
        assert "rank_capped" in out[name].flags
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)[:19]
    assert out["condition_number"].value == pytest.approx(s[0] / s[-1], rel=1e-9)


def test_duplicates_count_once():
    clean = np.random.default_rng(5).random((1000, 5))
    doubled = np.vstack([clean, clean[:50]])
    assert q.twonn(doubled) == q.twonn(clean)
    metric = q.label_free_metrics(doubled, names=["twonn"])["twonn"]
    assert metric.n_used == 1000
    assert "duplicates" in metric.flags
    assert metric.detail["n_duplicates"] == 50


def test_quantized_features_are_flagged():
    x = np.random.default_rng(6).integers(0, 4, (800, 6)).astype(np.int8)
    metric = q.label_free_metrics(x, names=["twonn"])["twonn"]
    assert "quantized" in metric.flags
    assert metric.detail["share_mu_one"] > 0.01


def test_high_dimension_is_a_lower_bound():
    x = np.random.default_rng(7).standard_normal((800, 64))
    assert "lower_bound" in q.label_free_metrics(x, names=["twonn"])["twonn"].flags


def test_few_eigenvalues_give_nan_not_zero():
    out = q.label_free_metrics(np.random.default_rng(8).standard_normal((100, 12)))
    assert math.isnan(out["alpha_req"].value)
    assert "few_eigenvalues" in out["alpha_req"].flags
    assert math.isnan(power_law(np.ones(3)).alpha)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_half_precision_is_not_called_constant(dtype):
    x = np.random.default_rng(9).standard_normal((3000, 16)).astype(dtype)
    out = q.label_free_metrics(x, names=["rankme", "ne_sum"])
    assert "collapsed" not in out["ne_sum"].flags
    assert out["rankme"].value == pytest.approx(16, rel=0.01)


def test_subsampling_is_seeded_flagged_and_the_same_for_every_model():
    x = np.random.default_rng(10).standard_normal((2500, 8)).astype(np.float32)
    names = ["rankme", "twonn"]
    a = q.label_free_metrics(x, names=names, max_rows=400, seed=3)
    b = q.label_free_metrics(x * 2, names=names, max_rows=400, seed=3)
    assert a["rankme"].n_used == 400
    assert "subsampled" in a["rankme"].flags
    assert a["twonn"].value == pytest.approx(b["twonn"].value, rel=1e-6)
    assert (
        a["twonn"].value
        != q.label_free_metrics(x, names=names, max_rows=400, seed=4)["twonn"].value
    )
    dse = q.label_free_metrics(x, names=["diffusion_spectral_entropy"])
    metric = dse["diffusion_spectral_entropy"]
    assert metric.n_used == 2000
    assert metric.band[0] <= metric.value <= metric.band[1]
    assert "subsampled" in metric.flags


def test_bands_span_the_value():
    out = q.with_bands(GOLDEN, n_draws=3, seed=1)
    for name in ("rankme", "ne_sum", "twonn", "self_cluster"):
        low, high = out[name].band
        assert low <= out[name].value <= high
        assert low < high
    assert q.with_bands(GOLDEN, n_draws=0)["rankme"].band is None
    messages = []
    q.with_bands(GOLDEN, n_draws=2, names=["rankme"], progress=lambda f, m: messages.append(f))
    assert messages == [0.5, 1.0]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros(5), "shape"),
        (np.zeros((5, 0)), "shape"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.zeros((3, 2), dtype=complex), "real numbers"),
    ],
)
def test_bad_matrices(x, words):
    with pytest.raises(BadInput, match=words):
        q.label_free_metrics(x)


def test_bad_options():
    for call in (
        lambda: q.twonn(GOLDEN, method="other"),
        lambda: q.twonn(GOLDEN, discard=1.0),
        lambda: q.alpha_req(GOLDEN, fit_range=(0, 10)),
        lambda: q.alpha_req(GOLDEN, fit_range=(10, 5)),
        lambda: q.diffusion_spectral_entropy(GOLDEN, sigma=0),
        lambda: q.rankme(GOLDEN, spectrum="other"),
        lambda: q.levina_bickel(GOLDEN, k=1),
        lambda: q.label_free_metrics(GOLDEN, max_rows=1),
    ):
        with pytest.raises(BadInput):
            call()
    with pytest.raises(NotFound, match="rankme"):
        q.label_free_metrics(GOLDEN, names=["rank_me"])
    with pytest.raises(AttributeError):
        q.nothing  # noqa: B018


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows(n):
    for metric in q.label_free_metrics(np.ones((n, 4))).values():
        assert math.isnan(metric.value)
        assert "too_few_rows" in metric.flags


def test_degenerate_extras():
    assert math.isnan(q.coherence(np.ones((3, 5))))
    assert math.isnan(q.levina_bickel(GOLDEN[:5]))
    assert math.isnan(q.normalized_std(np.zeros((4, 3))))
    assert math.isnan(q.self_cluster(np.ones((5, 1))))


small = st.tuples(st.integers(30, 60), st.integers(12, 20), st.integers(0, 10_000))


@settings(max_examples=12, deadline=None)
@given(small)
def test_invariant_to_rotation_order_and_scale(shape):
    n, d, seed = shape
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5 + 0.2
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    want = values(x)
    for changed in (x @ rotation, x[rng.permutation(n)], x * 37.5):
        got = values(changed)
        for name, value in want.items():
            if name == "normalized_std" and changed.shape == x.shape:
                continue  # a mean over channels depends on the axes
            assert got[name] == pytest.approx(value, rel=1e-6, nan_ok=True), name


@settings(max_examples=12, deadline=None)
@given(small)
def test_translation(shape):
    n, d, seed = shape
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5
    moved = x + 3 * rng.standard_normal(d)
    a, b = values(x), values(moved)
    for name in (*SPECTRAL, "participation_ratio", "twonn"):
        assert b[name] == pytest.approx(a[name], rel=1e-6, nan_ok=True), name
    assert q.rankme(moved, centered=True) == pytest.approx(q.rankme(x, centered=True), rel=1e-8)
    raw = q.diffusion_spectral_entropy(moved, l2=False)
    assert raw == pytest.approx(q.diffusion_spectral_entropy(x, l2=False), abs=1e-8)
    assert q.rankme(moved) != pytest.approx(q.rankme(x), rel=1e-3)


def test_raw_diffusion_entropy_follows_the_scale():
    x = np.random.default_rng(11).standard_normal((200, 16)) * np.arange(1, 17) ** -0.5 + 0.3
    small_scale = q.diffusion_spectral_entropy(x, l2=False)
    assert small_scale == pytest.approx(0.32, abs=0.05)
    assert q.diffusion_spectral_entropy(100 * x, l2=False) == pytest.approx(7.64, abs=0.02)


def test_float32_storage_moves_the_values_little():
    for name, value in values(GOLDEN).items():
        got = values(GOLDEN.astype(np.float32))[name]
        assert got == pytest.approx(value, rel=1e-7, nan_ok=True), name


def test_sample_keeps_the_storage_precision():
    assert Sample(GOLDEN.astype(np.float16)).eps == pytest.approx(9.8e-4, rel=0.01)
    assert Sample(GOLDEN).n == 200
    tiny = Sample(GOLDEN.astype(np.float32) * np.float32(1e-30))
    assert float(tiny.unit.norm(dim=1).min()) == pytest.approx(1)
