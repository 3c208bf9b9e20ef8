"""All measures over all blends: one row each, honest about what they cannot say."""

import numpy as np
import pytest

from core.errors import BadInput
from core.transferability import MEASURES, measure_blends, s_otdd

BLENDS = [["near"], ["far"], ["far", "near"]]


def rows(seed, shift=0.0, wrong=False, n=120):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    centres = np.random.default_rng(9).normal(0, 2, (3, 8))
    x = centres[y] + rng.standard_normal((n, 8)) + shift
    return x, (y + 1) % 3 if wrong else y


SOURCES = {"near": rows(2), "far": rows(3, shift=4.0, wrong=True)}


@pytest.fixture(scope="module")
def table():
    return measure_blends(rows(1), SOURCES, BLENDS, names=list(MEASURES), n_projections=64)


@pytest.mark.parametrize("name", [name for name, m in MEASURES.items() if m.better == "lower"])
def test_every_distance_prefers_the_near_source(table, name):
    near, far, _ = table.values[name]
    assert near < far


@pytest.mark.parametrize("name", [name for name, m in MEASURES.items() if m.adapted])
def test_every_measure_of_labels_prefers_true_ones(name):
    x, y = SOURCES["near"]
    noise = x, np.random.default_rng(0).permutation(y)
    out = measure_blends(rows(1), {"a": (x, y), "b": noise}, [["a"], ["b"]], names=[name])
    assert out.values[name][0] > out.values[name][1] + 0.01


def test_what_is_the_same_for_every_blend_is_said(table):
    out = measure_blends(rows(1), SOURCES, BLENDS[:2], names=["size"])
    assert out.unavailable == {"size": "the same for every blend: it cannot rank them"}
    assert "size" not in table.unavailable
    assert set(table.seconds) == set(MEASURES)


def test_without_labels_only_what_needs_none():
    blank = {name: (x, np.full(len(x), "")) for name, (x, _) in SOURCES.items()}
    out = measure_blends((rows(1)[0], np.full(120, "")), blank, BLENDS, has_labels=False)
    assert set(out.unavailable.values()) == {"needs labels"}
    assert np.isfinite(out.values["distance_of_means"]).all()
    assert out.values["leep"].isna().all()


def test_order_of_members_and_heavy_measures(table):
    seen = []
    out = measure_blends(
        rows(1), dict(reversed(SOURCES.items())), [["near", "far"]], n_projections=64,
        progress=lambda f, m: seen.append(f),
    )  # fmt: skip
    for name in out.values.columns[1:]:
        assert out.values[name][0] == table.values[name][2]
    assert "otdd" not in out.values
    assert seen == [0.0]


def test_the_adapted_ones_say_so():
    adapted = {name for name, measure in MEASURES.items() if measure.adapted}
    assert adapted == {"leep", "nce", "logme", "transrate", "h_score"}


def test_a_row_is_the_function_itself(table):
    target, near = rows(1), SOURCES["near"]
    everything = np.concatenate([target[0], *(x for x, _ in SOURCES.values())])
    scale = np.sqrt((everything**2).sum(1).mean())
    want = s_otdd(*target, *near, n_projections=64, scale=scale)
    assert table.values["s_otdd"][0] == pytest.approx(want, rel=1e-12)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="'magic' is not a measure"):
        measure_blends(rows(1), SOURCES, BLENDS, names=["magic"])
    with pytest.raises(BadInput, match="'ghost'"):
        measure_blends(rows(1), SOURCES, [["ghost"]])
    with pytest.raises(BadInput, match="no member"):
        measure_blends(rows(1), SOURCES, [[]])
