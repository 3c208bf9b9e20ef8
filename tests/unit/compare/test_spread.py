"""Intervals that cover the truth, p-values that are uniform under chance, both ways of reading."""

from __future__ import annotations

import numpy as np
import pytest

from core.compare import spread as module
from core.compare.measures import measure
from core.compare.spread import spread
from core.errors import BadInput


def related(n: int, seed: int, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    return a, a @ np.random.default_rng(99).normal(size=(d, d)) + 6.0 * rng.normal(size=(n, d))


def test_the_interval_of_cka_covers_the_truth() -> None:
    """Truth: the estimate on 40,000 rows. 80 data sets of 80 rows; 95 % is meant."""
    truth = measure("cka").function(*related(40_000, 1_000), 0)
    inside = 0
    for seed in range(80):
        found = spread(related(80, seed), [(0, 1)], measure("cka"), n_draws=40, n_permutations=1)
        inside += found.low[0] <= truth <= found.high[0]
    assert inside >= 68  # 85 %: the interval is asymptotic; below it something is wrong


def test_deviation_is_that_of_repeated_samples() -> None:
    values = [measure("rsa").function(*related(120, seed), 0) for seed in range(60)]
    told = [
        spread(related(120, seed), [(0, 1)], measure("rsa"), n_draws=40, n_permutations=1).sd[0]
        for seed in range(10)
    ]
    assert 0.7 < np.mean(told) / np.std(values) < 1.4


def test_copies_drawn_apart_would_look_sure() -> None:
    """Six copies of each row: drawn by group the deviation is that of the rows without copies."""
    a, b = related(60, 3)
    once = spread([a, b], [(0, 1)], measure("cka"), n_draws=60, n_permutations=1).sd[0]
    many = [np.repeat(x, 6, axis=0) for x in (a, b)]
    groups = np.repeat(np.arange(60), 6)
    whole = spread(many, [(0, 1)], measure("cka"), groups=groups, n_draws=60, n_permutations=1).sd[
        0
    ]
    apart = spread(many, [(0, 1)], measure("cka"), n_draws=60, n_permutations=1).sd[0]
    assert 0.6 < whole / once < 1.6
    assert apart < 0.7 * whole


def test_unrelated_spaces_are_not_told_from_chance() -> None:
    rng = np.random.default_rng(0)
    p = np.array(
        [
            spread(rng.normal(size=(2, 40, 5)), [(0, 1)], measure("cka"), n_draws=2,
                   n_permutations=19, seed=seed).p[0]
            for seed in range(100)
        ]
    )  # fmt: skip
    # Uniform on 0.05, 0.10 ... 1: the share at or below 0.1 is a tenth.
    assert (p <= 0.1).mean() < 0.21
    assert 0.4 < p.mean() < 0.65


def test_related_spaces_are_beyond_chance() -> None:
    a, b = related(100, 0)
    for name in ("cka", "cka-rbf", "knn", "rsa", "procrustes"):
        found = spread([a, b], [(0, 1)], measure(name), n_draws=5, n_permutations=39)
        assert found.p[0] == 0.025
        assert found.drawn_value[0] > found.chance_high[0] > found.chance[0]
        assert found.low[0] <= found.value[0] <= found.high[0] <= 1.0


@pytest.mark.parametrize("name", ["cka", "knn", "procrustes"])
def test_kept_and_unkept_spaces_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = related(60, 2)
    kept = spread([a, b], [(0, 1)], measure(name), n_draws=4, n_permutations=3)
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    again = spread([a, b], [(0, 1)], measure(name), n_draws=4, n_permutations=3)
    for field in ("value", "sd", "low", "high", "drawn_value", "chance", "p"):
        np.testing.assert_allclose(getattr(again, field), getattr(kept, field), rtol=1e-6)


def test_a_flat_space_is_told_as_such() -> None:
    a, b = related(40, 0)
    found = spread([a, np.ones((40, 3)), b], [(0, 1), (0, 2)], measure("cka"), n_draws=4)
    assert np.isnan([found.value[0], found.sd[0], found.p[0], found.q[0]]).all()
    assert found.q[1] == found.p[1] == 0.01


def test_same_seed_same_numbers_and_refusals() -> None:
    a, b = related(40, 0)
    one, two = (spread([a, b], [(0, 1)], measure("rsa"), n_draws=5, seed=4) for _ in range(2))
    assert one.sd[0] == two.sd[0]
    with pytest.raises(BadInput, match="12 samples"):
        spread([a[:11], b[:11]], [(0, 1)], measure("cka"))
    with pytest.raises(BadInput, match="40 and 39"):
        spread([a, b[1:]], [(0, 1)], measure("cka"))
    with pytest.raises(BadInput, match="k must"):
        spread([a, b], [(0, 1)], measure("knn"), k=40)
    with pytest.raises(BadInput, match="four groups"):
        spread([a, b], [(0, 1)], measure("cka"), groups=np.arange(40) % 3)
    with pytest.raises(BadInput, match="too few"):
        spread([a, b], [(0, 1)], measure("cka"), n_draws=1)
