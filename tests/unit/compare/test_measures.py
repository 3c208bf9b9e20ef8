"""Similarities against other packages' values, scipy, the formulas, invariances, flat spaces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from core.compare import cka, dissimilarity, linear_cka, procrustes_similarity, rbf_cka, rsa
from core.compare.measures import MEASURES, measure
from core.errors import BadInput

# Made by pytorch-cka, repsim and rsatoolbox; the file says how.
REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "similarity_values.json").read_text()
)


def pair(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    u = np.random.default_rng(61).standard_normal((200, 12))
    noise = np.random.default_rng(63).standard_normal((200, 20))
    b = u @ np.random.default_rng(62).standard_normal((12, 20)) + noise
    return u[:n], b[:n]


def rotated(x: np.ndarray) -> np.ndarray:
    return 2.5 * x @ np.linalg.qr(np.random.default_rng(5).normal(size=(x.shape[1],) * 2))[0]


def hsic_by_quadruples(K: np.ndarray, L: np.ndarray) -> float:
    """The unbiased HSIC from its definition, a sum over all ordered quadruples of rows."""
    n, total = len(K), 0.0
    for i in range(n):
        for j in set(range(n)) - {i}:
            for q in set(range(n)) - {i, j}:
                for r in set(range(n)) - {i, j, q}:
                    total += K[i, j] * (L[i, j] + L[q, r] - 2.0 * L[i, q])
    return total / (n * (n - 1) * (n - 2) * (n - 3))


@pytest.mark.parametrize("n", [200, 11])
def test_values_of_other_packages(n: int) -> None:
    a, b = pair(n)
    found = {
        "linear_debiased": linear_cka(a, b, debiased=True),
        "linear": linear_cka(a, b),
        "rbf": rbf_cka(a, b),
        "rsa_correlation": rsa(a, b),
        "rsa_euclidean": rsa(a, b, dissimilarity="euclidean"),
    }
    for name, value in found.items():
        assert np.isclose(value, REFERENCE[str(n)][name], rtol=1e-9), name


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_debiased_cka_is_its_definition(kind: str) -> None:
    a, b = pair(9)
    kernels = []
    for x in (a, b):
        far = ((x[:, None] - x[None]) ** 2).sum(axis=2)
        gaussian = np.exp(-far / (2 * np.median(far[np.triu_indices(9, 1)])))
        kernels.append(x @ x.T if kind == "linear" else gaussian)
    K, L = kernels
    expected = hsic_by_quadruples(K, L) / np.sqrt(
        hsic_by_quadruples(K, K) * hsic_by_quadruples(L, L)
    )
    function = linear_cka if kind == "linear" else rbf_cka
    assert np.isclose(function(a, b, debiased=True), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", dissimilarity.DISSIMILARITIES)
def test_rsa_against_scipy(kind: str) -> None:
    a, b = pair(60)
    expected = spearmanr(pdist(a, kind), pdist(b, kind)).statistic
    assert np.isclose(rsa(a, b, dissimilarity=kind), expected, rtol=1e-9)


def test_drawn_pairs_estimate_all_pairs() -> None:
    a, b = pair()
    drawn = [rsa(a, b, max_pairs=4_000, seed=seed) for seed in range(8)]
    assert abs(np.mean(drawn) - rsa(a, b)) < 3 / np.sqrt(8 * 4_000)
    assert len(set(drawn)) == 8
    assert rsa(a, b, max_pairs=4_000, seed=3) == drawn[3]


def test_blocks_do_not_change_cka(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [np.random.default_rng(s).normal(size=(50, 80)) for s in (0, 1)]
    values = [f(*wide, debiased=d) for f in (linear_cka, rbf_cka) for d in (True, False)]
    monkeypatch.setattr(cka, "BLOCK", 7)
    again = [f(*wide, debiased=d) for f in (linear_cka, rbf_cka) for d in (True, False)]
    np.testing.assert_allclose(again, values, rtol=1e-10)


def test_only_the_debiased_cka_of_noise_is_near_zero() -> None:
    """With d well above n the plain CKA of unrelated spaces is near 1."""
    values = np.array(
        [
            [linear_cka(a, b), linear_cka(a, b, debiased=True)]
            for a, b in (np.random.default_rng(s).normal(size=(2, 30, 300)) for s in range(20))
        ]
    )
    assert values[:, 0].min() > 0.8
    assert abs(values[:, 1].mean()) < 3 * values[:, 1].std() / np.sqrt(20) + 0.01


def test_procrustes_similarity_in_closed_form() -> None:
    # Two orthogonal unit columns against one of them: the nuclear norm is 1 / sqrt(2).
    a = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    assert np.isclose(procrustes_similarity(a, a[:, :1]), 1 / np.sqrt(2))


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("n", [200, 15])
def test_both_forms_of_a_measure_agree(name: str, n: int) -> None:
    a, b = pair(n)
    how = measure(name)
    ready = [how.ready(how.raw(x), 3) for x in (a, b)]
    assert np.isclose(how.of(*ready), how.function(a, b, 3), rtol=1e-8)


@pytest.mark.parametrize("name", list(MEASURES))
def test_what_a_measure_does_not_see(name: str) -> None:
    a, b = pair(60)
    how = measure(name)
    value = how.function(a, b, 5)
    assert np.isclose(how.function(b, a, 5), value)
    if name != "rsa":  # a correlation over dimensions is not blind to a rotation
        assert np.isclose(how.function(rotated(a), b, 5), value)
    assert np.isclose(how.function(3.0 * a, b, 5), value)
    assert np.isclose(how.function(a, 2.0 * a, 5), 1.0)
    order = np.random.default_rng(0).permutation(60)
    ready = [how.ready(how.raw(x), 5) for x in (a, b)]
    mixed = how.ready(how.raw(b[order]), 5)
    assert np.isclose(how.of(ready[0], how.permuted(ready[1], order)), how.of(ready[0], mixed))


@pytest.mark.parametrize("name", list(MEASURES))
def test_a_flat_space_has_no_similarity(name: str) -> None:
    how = measure(name)
    flat, b = np.full((20, 4), 0.1), pair(20)[1]
    ready = [how.ready(how.raw(x), 3) for x in (flat, b)]
    assert np.isnan(how.of(*ready))
    if name != "knn":  # among equally far rows the function's neighbours are arbitrary
        assert np.isnan(how.function(flat, b, 3))


def test_refusals() -> None:
    a, b = pair()
    with pytest.raises(BadInput, match="n >= 4"):
        linear_cka(a[:3], b[:3], debiased=True)
    with pytest.raises(BadInput, match="width"):
        rbf_cka(a, b, width=0.0)
    with pytest.raises(BadInput, match="dissimilarity"):
        rsa(a, b, dissimilarity="l1")
    with pytest.raises(BadInput, match="no pair"):
        rsa(a, b, max_pairs=0)
    with pytest.raises(BadInput, match="cca"):
        measure("cca")
