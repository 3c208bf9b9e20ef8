"""The compiled kernel against the torch path, and what happens where it cannot run."""

import numpy as np
import pytest

from core.errors import BadInput
from core.radar import kernel, triplet_descriptors
from core.radar.triplets import PairSpace


def stream(seed, n=60, width=17, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return list(rng.standard_normal((4, n, width)).cumsum(0).astype(dtype))


@pytest.fixture
def fused(monkeypatch):
    monkeypatch.setattr(kernel, "LEAST_WORK", 0)


def torch_path(monkeypatch, *args, **options):
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "LEAST_WORK", 10**18)
        return triplet_descriptors(*args, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_torch_to_the_last_digits(fused, monkeypatch, dtype):
    a, z = stream(0, 300, dtype=dtype), stream(1, 300, dtype=dtype)
    # Flat triangles and degenerate ones among them.
    z[0][:50] = a[0][:50] + 0.5 * (a[1][:50] - a[0][:50])
    z[1][50:60] = a[1][50:60]
    z[1][60:70] = a[2][60:70]
    a[3][70:80] = a[2][70:80]
    ours, want = triplet_descriptors(a, z), torch_path(monkeypatch, a, z)
    assert np.array_equal(ours.mask, want.mask)
    assert not want.mask.all()
    mask = want.mask
    assert np.allclose(ours.theta, want.theta, rtol=0, atol=1e-12)
    assert np.allclose(ours.d[mask], want.d[mask], rtol=0, atol=1e-12)
    assert np.allclose(ours.sides, want.sides, rtol=1e-13, atol=0)


def test_rows_are_looked_up_without_gathering(fused):
    a, z = stream(0, 40), stream(1, 30)
    rng = np.random.default_rng(2)
    i, j = rng.integers(40, size=200), rng.integers(30, size=200)
    steps = [(0, 1), (1, 2), (2, 3)]
    out = PairSpace(a, z, steps, n_expected=1).at(i, j)
    want = triplet_descriptors([s[i] for s in a], [s[j] for s in z])
    assert np.array_equal(out.theta, want.theta)
    assert np.array_equal(out.d, want.d)


def test_other_types_and_layouts_take_the_torch_path(fused, monkeypatch):
    a, z = stream(0), stream(1)
    half = [s.astype(np.float16) for s in a]
    cube = np.stack(a, axis=1)
    assert kernel.fused_sides(half, z, [(0, 1)], np.arange(9), np.arange(9)) is None
    strided = triplet_descriptors(cube, np.stack(z, axis=1))
    assert np.allclose(strided.theta, triplet_descriptors(a, z).theta, atol=1e-12)
    monkeypatch.setattr(kernel, "_compiled", lambda: None)
    assert kernel.fused_sides(a, z, [(0, 1)], np.arange(9), np.arange(9)) is None
    assert np.array_equal(triplet_descriptors(a, z).theta, torch_path(monkeypatch, a, z).theta)


def test_read_only_and_mapped_states_work(fused, tmp_path):
    a, z = stream(0), stream(1)
    want = triplet_descriptors(a, z)
    for index, state in enumerate(a):
        np.save(tmp_path / f"{index}.npy", state)
    mapped = [np.load(tmp_path / f"{index}.npy", mmap_mode="r") for index in range(4)]
    assert np.array_equal(triplet_descriptors(mapped, z).theta, want.theta)


def test_values_that_are_not_finite_are_named_on_either_path(fused):
    a, z = stream(0), stream(1)
    z[3][5, 2] = np.nan
    with pytest.raises(BadInput, match="partner state 3 holds 1"):
        triplet_descriptors(a, z)
    z[3][5, 2], a[1][4, 0] = 0.0, np.inf
    with pytest.raises(BadInput, match="anchor state 1 holds 1"):
        triplet_descriptors(a, z)


def test_a_folder_that_cannot_be_written_costs_only_the_cache(fused, monkeypatch):
    import numba

    real, seen = numba.njit, []

    def njit(cache, **options):
        seen.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(cache=cache, **options)

    monkeypatch.setattr(numba, "njit", njit)
    kernel._compiled.cache_clear()
    try:
        assert kernel._compiled() is not None
        assert seen == [True, False]
    finally:
        kernel._compiled.cache_clear()
