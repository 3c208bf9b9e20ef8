"""End to end on a random residual net with planted shifts (specification, section 8)."""

import numpy as np
import pytest
from toy import domain, stream

from core.errors import BadInput
from core.radar import Domain, radar_score, rank_blends
from core.radar.densities import compare
from core.radar.types import Descriptors, RadarConfig

FAST = {"density": "gaussian", "n_pairs": 500, "repeats": 4}


@pytest.fixture(scope="module")
def target():
    return domain("target", seed=1)


@pytest.fixture(scope="module")
def planted(target):
    sources = [domain(f"shift {s}", s, seed=10 + s) for s in (0, 2, 4, 6)]
    return rank_blends(target, sources, **FAST)


def test_the_planted_order_is_recovered_far_above_the_null(planted):
    singles = planted.table[planted.table["n_members"] == 1]
    assert singles["blend"].tolist() == ["shift 0", "shift 2", "shift 4", "shift 6"]
    far = planted.results["shift 6"]
    assert far.excess > 3 * far.excess_sd
    assert far.excess > 5 * far.null
    layers = [planted.results[f"shift {s}"].per_layer_mean for s in (2, 4, 6)]
    assert layers == sorted(layers)


def test_halves_of_one_distribution_stay_within_the_null(planted):
    same = planted.results["shift 0"]
    assert abs(same.excess) < 3 * same.excess_sd


@pytest.mark.parametrize("direction", ["target", "both"])
@pytest.mark.parametrize("label_mode", ["any", "same", "different"])
def test_every_direction_and_label_mode_sees_the_shift(direction, label_mode):
    target = domain("t", labelled=True, seed=1)
    sources = [domain("near", 0, labelled=True, seed=2), domain("far", 5, labelled=True, seed=3)]
    out = rank_blends(target, sources, direction=direction, label_mode=label_mode, **FAST)
    assert out.results["near"].score < out.results["far"].score
    assert out.results["near"].score <= out.results["far + near"].score + 0.05


@pytest.mark.parametrize("geometry", ["sphere", "poincare"])
@pytest.mark.parametrize("layers", ["late", (0, 1, 2, 4)])
def test_every_geometry_sees_the_shift(target, geometry, layers):
    out = rank_blends(
        target, [domain("near", 0, seed=2), domain("far", 6, seed=3)],
        geometry=geometry, layers=layers, **FAST,
    )  # fmt: skip
    assert out.results["far"].excess > 3 * out.results["far"].excess_sd
    assert len(out.results["far"].kept_layers) == 2 + (layers != "late")


def test_the_same_seed_gives_the_same_bits(target):
    source = domain("s", 2, seed=4)
    a, b = (radar_score(target, source, **FAST) for _ in range(2))
    assert a.score == b.score
    assert np.array_equal(a.per_layer, b.per_layer)
    assert radar_score(target, source, seed=1, **FAST).score != a.score


def test_order_does_not_matter_and_a_blend_of_one_is_the_source(target):
    one, two = domain("one", 1, seed=5), domain("two", 3, seed=6)
    a = rank_blends(target, [one, two], **FAST)
    b = rank_blends(target, [two, one], **FAST)
    for name in ("one", "two", "one + two"):
        assert a.results[name].score == b.results[name].score
    assert radar_score(target, one, **FAST).score == a.results["one"].score


def test_an_identical_copy_leaves_the_cross_distribution(target):
    source = domain("one", 3, seed=5)
    copy = Domain(source.layers, None, "copy")
    out = rank_blends(target, [source, copy], **FAST)
    alone, doubled = out.results["one"], out.results["copy + one"]
    assert abs(alone.score - doubled.score) < 3 * np.hypot(alone.sd, doubled.sd)
    assert np.allclose(alone.cross.theta.mean(0), doubled.cross.theta.mean(0), atol=0.02)


def test_weights_follow_size_or_not(target):
    big, small = domain("big", 6, n=900, seed=7), domain("small", 0, n=100, seed=8)
    by_size = radar_score(target, [big, small], **FAST)
    equal = radar_score(target, [big, small], source_weight="equal", **FAST)
    assert by_size.score > equal.score


def test_gmm_density_ranks_alike_and_states_its_error(target):
    options = {
        "n_pairs": 300, "repeats": 1, "n_samples": 1000, "layers": "late",
        "n_components": (1, 2), "n_components_layer": (1, 2),
    }  # fmt: skip
    near = radar_score(target, domain("near", 0, seed=2), **options)
    far = radar_score(target, domain("far", 6, seed=3), **options)
    assert near.score < far.score
    assert near.per_layer_mean < far.per_layer_mean


def test_per_layer_mode_scores_by_the_mean_over_layers(target):
    out = radar_score(target, domain("s", 3, seed=4), mode="per_layer", **FAST)
    assert out.score == pytest.approx(out.per_layer_mean)
    assert out.score == pytest.approx(out.per_layer.mean())


@pytest.mark.parametrize("descriptors", ["theta", "d"])
def test_one_descriptor_alone_sees_the_shift_too(target, descriptors):
    out = radar_score(target, domain("s", 8, seed=4), descriptors=descriptors, **FAST)
    assert out.excess > 2 * out.excess_sd
    assert out.excess > 3 * out.null


def test_constant_and_unequal_states_are_dropped_and_listed(target):
    def spoil(part):
        n = len(part.layers[0])
        states = [np.ones((n, 16), np.float32), *part.layers, np.ones((n, 40), np.float32)]
        return Domain(tuple(states), None, part.name)

    out = radar_score(spoil(target), spoil(domain("s", 2, seed=4)), **FAST)
    assert len(out.kept_layers) == 4
    reasons = {line.what: line.reason for line in out.dropped_layers}
    assert "unequal width: 16 then 40" in reasons["state 5 → state 6"]
    assert "degenerate for 100 %" in reasons["state 0 → state 1"]


def test_all_items_or_halves(target):
    source = domain("s", 0, seed=2)
    whole = radar_score(target, source, pool="all", **FAST)
    half = radar_score(target, source, pool="halves", **FAST)
    assert whole.null == half.null
    assert whole.score != half.score


def test_tiny_domains_warn_and_have_no_null():
    tiny = domain("t", n=3, seed=1)
    out = radar_score(tiny, domain("s", 1, n=30, seed=2), **FAST)
    assert np.isnan(out.null)
    assert any("no null" in text for text in out.warnings)
    assert any("repeat the same pictures" in text for text in out.warnings)


def test_few_pairs_a_parameter_warn(target):
    out = radar_score(target, domain("s", seed=2), density="gaussian", n_pairs=100, repeats=1)
    assert any("fewer than three a parameter" in text for text in out.warnings)
    assert np.isnan(out.sd)


def test_more_than_ten_sources_are_searched_greedily(target):
    sources = [domain(f"s{i:02d}", i / 2, n=60, seed=i) for i in range(11)]
    out = rank_blends(target, sources, density="gaussian", n_pairs=200, repeats=1)
    assert not out.exhaustive
    assert len(out.table) == 66
    assert sum(out.table["n_members"] == 1) == 11


def test_progress_runs_from_nothing_to_the_end(target):
    seen = []
    rank_blends(
        target, [domain("a", seed=2), domain("b", seed=3)],
        progress=lambda f, m: seen.append((f, m)), **FAST,
    )  # fmt: skip
    fractions = [f for f, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[0] >= 0
    assert fractions[-1] <= 1


def test_masked_rows_are_dropped_jointly_and_by_layer():
    rng = np.random.default_rng(0)
    mask = np.ones((200, 2), bool)
    mask[:20, 0] = False

    def made(mask):
        theta = rng.uniform(0, 3, (200, 2))
        return Descriptors(theta, theta + rng.normal(0, 1, (200, 2)), mask, np.ones((200, 2, 3)))

    out = compare(made(mask), made(np.ones((200, 2), bool)), RadarConfig(density="gaussian"), 0)
    assert (out.n_within, out.n_cross) == (180, 200)
    with pytest.raises(BadInput, match="Only 40 of 200"):
        compare(made(np.arange(200)[:, None] < [40, 200]), made(mask), RadarConfig(), 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: [s[0]], "1 states"),
        (lambda s: [state[:1] for state in s], "1 items"),
        (lambda s: [np.where(np.arange(16) == 3, np.inf, state) for state in s], "not finite"),
        (lambda s: [s[0], s[1][:, :10], s[2][:, :5]], "same width"),
    ],
)
def test_bad_features_are_named(make, words):
    states, _ = stream(seed=0)
    with pytest.raises(BadInput, match=words):
        radar_score(make(states), {"s": make(states)}, **FAST)


def test_bad_choices_are_named(target):
    source = domain("s", seed=2)
    with pytest.raises(BadInput, match="direction='up'"):
        radar_score(target, source, direction="up")
    with pytest.raises(BadInput, match="layers='deep'"):
        radar_score(target, source, layers="deep")
    with pytest.raises(BadInput, match="layers holds 'block99'"):
        radar_score(target, source, layers=["block99", 1], **FAST)
    with pytest.raises(BadInput, match="n_pairs=10"):
        radar_score(target, source, n_pairs=10)
    with pytest.raises(BadInput, match="repeats=0"):
        radar_score(target, source, repeats=0)
    with pytest.raises(BadInput, match="needs labels"):
        radar_score(target, source, label_mode="same", **FAST)
    with pytest.raises(BadInput, match="empty"):
        radar_score(target, [], **FAST)
    labelled = Domain(target.layers, np.zeros(3), "target")
    with pytest.raises(BadInput, match="shape"):
        radar_score(labelled, source, **FAST)
    with pytest.raises(BadInput, match="state widths"):
        radar_score(target, domain("s", width=12), **FAST)
    flat = Domain(tuple(np.ones((40, 4)) for _ in range(3)), None, "flat")
    with pytest.raises(BadInput, match="Every transition is degenerate"):
        radar_score(flat, Domain(flat.layers, None, "other"), **FAST)
