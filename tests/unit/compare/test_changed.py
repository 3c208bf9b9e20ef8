"""What changed between two spaces: planted moves, the null's level, invariances, a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import kstest
from sklearn.neighbors import NearestNeighbors

from core.compare.changed import Changed, changed
from core.errors import BadInput


def turn(d: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def clumps(n: int = 600, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, d)) * 4
    return centres[np.arange(n) % 12] + rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def planted() -> tuple[np.ndarray, Changed]:
    """Sixty rows change places with one another; the rest are turned, scaled and shifted."""
    x = clumps()
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(len(x), 60, replace=False))
    y = x.copy()
    y[rows] = x[np.roll(rows, 7)]
    y = 3.0 * y @ turn(12, 2) + 5.0 + 0.05 * rng.normal(size=x.shape)
    return rows, changed(x, y, metric="euclidean", k=10)


def test_planted_rows_are_found(planted: tuple[np.ndarray, Changed]) -> None:
    rows, found = planted
    moved = np.isin(np.arange(len(found.overlap)), rows)
    assert (found.verdict[~moved] == "kept").mean() > 0.98
    # A row that lands in a clump like its own has kept something: about one in twelve does.
    assert (found.verdict[moved] == "moved").mean() > 0.8
    order = np.lexsort((-found.displacement, found.overlap))
    assert np.isin(order[:60], rows).mean() > 0.9
    assert np.median(found.displacement[moved]) > 0.7
    assert found.displacement[~moved].max() < 0.3


def test_unrelated_spaces_keep_nothing_and_p_is_uniform() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(800, 30)), rng.normal(size=(800, 20))
    found = changed(x, y, metric="euclidean")
    # Rows share folds and partners, so a little more than the sampling error is allowed.
    assert kstest(found.p_place, "uniform").statistic < 0.08
    assert (found.p_neighbours <= 0.05).mean() <= 0.07
    assert (found.verdict == "moved").mean() > 0.95
    assert abs(np.median(found.displacement) - 1) < 0.05


def test_a_map_that_saw_the_rows_would_have_lied() -> None:
    """With d near n an in-sample map lays noise on noise: cross-fitting must not."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(300, 250)), rng.normal(size=(300, 250))
    r, _ = orthogonal_procrustes(x, y)
    inside = np.linalg.norm(x @ r - y, axis=1)
    outside = np.linalg.norm((x @ r)[::-1] - y, axis=1)
    assert inside.mean() < 0.8 * outside.mean()
    found = changed(x, y, metric="euclidean")
    assert abs(found.displacement.mean() - 1) < 0.03


def test_a_group_that_moves_as_one_keeps_its_neighbours() -> None:
    x = clumps()
    y = x.copy()
    group = np.arange(len(x)) % 12 == 0
    y[group] += 40.0 * turn(12, 5)[0]
    found = changed(x, y, metric="euclidean")
    assert (found.overlap[group] == 1).all()
    assert (found.verdict[group] == "moved with its group").mean() > 0.9
    assert (found.verdict[~group] == "kept").mean() > 0.95


def test_a_clump_that_is_shuffled_inside_keeps_its_place_and_finds_new_neighbours() -> None:
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(40, 8)) * 60
    label = np.arange(1_200) % 40
    x, y = (centres[label] + rng.normal(size=(1_200, 8)) for _ in range(2))
    found = changed(x, y, metric="euclidean", k=5)
    # One partner in forty lies in the same clump and is as near: p is about 0.025.
    lost = found.overlap == 0
    assert lost.mean() > 0.3
    assert (found.verdict[lost] == "new neighbours").mean() > 0.95
    assert np.median(found.displacement) < 0.1


def test_it_agrees_with_a_plain_loop() -> None:
    x, y = clumps(120, 5), clumps(120, 5) @ turn(5, 7) + 0.8 * clumps(120, 5, seed=8)
    found = changed(x, y, metric="euclidean", k=6, partners=1_000_000)
    near = [
        NearestNeighbors(n_neighbors=6).fit(side).kneighbors(return_distance=False)
        for side in (x, y)
    ]
    sets_a, sets_b = ([set(map(int, row)) for row in side] for side in near)
    shared = np.array([len(p & q) for p, q in zip(sets_a, sets_b, strict=True)])
    np.testing.assert_allclose(found.overlap, shared / 6)
    union = np.array([len(p | q) for p, q in zip(sets_a, sets_b, strict=True)])
    np.testing.assert_allclose(found.jaccard, shared / union)
    p = [
        (1 + sum(len(sets_a[i] & sets_b[j]) >= shared[i] for j in range(120) if j != i)) / 120
        for i in range(120)
    ]
    np.testing.assert_allclose(found.p_neighbours, p)


def test_places_agree_with_scipy_fold_by_fold() -> None:
    x, y = clumps(100, 4), clumps(100, 4) @ turn(4, 9) + clumps(100, 4, seed=10) * 0.5
    found = changed(x, y, metric="euclidean", k=3, partners=1_000_000, seed=5)
    # The folds, drawn as the module says: after the partners of the neighbours.
    rng = np.random.default_rng(5)
    rng.choice(100, 100, replace=False)
    parts = [np.sort(part) for part in np.array_split(rng.permutation(100), 2)]
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    x, y = (side / np.sqrt((side**2).sum(axis=1).mean()) for side in (x, y))
    for part in parts:
        rest = np.setdiff1d(np.arange(100), part)
        r, _ = orthogonal_procrustes(x[rest], y[rest])
        far = np.linalg.norm((x[part] @ r)[:, None] - y[part][None], axis=2)
        own = np.diag(far)
        others = far[~np.eye(len(part), dtype=bool)].reshape(len(part), -1)
        np.testing.assert_allclose(found.displacement[part], own / np.median(others, axis=1))
        np.testing.assert_allclose(
            found.p_place[part], (1 + (others <= own[:, None]).sum(axis=1)) / len(part)
        )


def test_rotation_scale_shift_and_padding_change_nothing() -> None:
    x, y = clumps(300, 6), clumps(300, 6) + clumps(300, 6, seed=11)
    one = changed(x, y, metric="euclidean")
    wide = np.hstack([0.5 * y @ turn(6, 12) - 3.0, np.full((300, 3), 2.0)])
    two = changed(7.0 * x @ turn(6, 13) + 1.0, wide, metric="euclidean")
    np.testing.assert_allclose(one.overlap, two.overlap)
    np.testing.assert_allclose(one.displacement, two.displacement, atol=1e-9)
    assert (one.verdict == two.verdict).all()


def test_cosine_ignores_the_length_of_rows() -> None:
    x, y = clumps(200, 6), clumps(200, 6, seed=14)
    lengths = np.random.default_rng(15).uniform(0.1, 9.0, size=(200, 1))
    one, two = changed(x, y), changed(x * lengths, y / lengths)
    np.testing.assert_allclose(one.displacement, two.displacement, atol=1e-9)
    assert (one.verdict == two.verdict).all()


def test_the_same_seed_gives_the_same_numbers() -> None:
    x, y = clumps(1_100, 4), clumps(1_100, 4, seed=16)
    one, two = changed(x, y, seed=3), changed(x, y, seed=3)
    np.testing.assert_array_equal(one.p_place, two.p_place)
    np.testing.assert_array_equal(one.p_neighbours, two.p_neighbours)
    assert one.folds == 5
    assert one.partners == 219


def test_few_items_cannot_tell() -> None:
    x = clumps(24, 3)
    found = changed(x, x, k=3)
    assert set(found.verdict) == {"cannot tell"}
    assert (found.overlap == 1).all()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"b": np.ones((40, 3))}, "b does not vary"),
        ({"b": np.full((40, 3), np.nan)}, "b"),
        ({"b": np.ones((39, 3))}, "same samples"),
        ({"k": 40}, "k must be"),
        ({"metric": "hamming"}, "metric"),
        ({"partners": 5}, "partners"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_bad_input_is_refused(change: dict, word: str) -> None:
    good = {"a": clumps(40, 3), "b": clumps(40, 3, seed=1), "metric": "euclidean", "k": 5}
    with pytest.raises(BadInput, match=word):
        changed(**{**good, **change})
