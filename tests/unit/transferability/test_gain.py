"""What a blend gains, against a plain loop and on planted domains."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from core.errors import BadInput
from core.transferability import probe_gain


def rows(seed, n=240, shift=0.0, wrong=False):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    centres = np.random.default_rng(99).normal(0, 1.2, (3, 10))
    x = centres[y] + rng.standard_normal((n, 10)) + shift
    return x, (y + 1) % 3 if wrong else y


@pytest.fixture(scope="module")
def gains():
    sources = {"good": rows(2), "bad": rows(3, wrong=True)}
    return probe_gain(
        rows(0), rows(1), sources, [["good"], ["bad"], ["bad", "good"]], per_class=4, seeds=3
    )


def test_good_data_helps_and_wrong_labels_hurt(gains):
    table = gains.table.set_index("blend")
    assert table.loc["good", "gain"] > 0.02
    assert table.loc["bad", "gain"] < 0
    assert table.loc["bad", "gain"] < table.loc["bad + good", "gain"] < table.loc["good", "gain"]
    assert np.allclose(table["accuracy"] - table["gain"], gains.baseline)


def test_a_seed_is_the_probe_written_out():
    x, y = rows(0)
    out = probe_gain((x, y), rows(1), {"s": rows(2)}, [["s"]], per_class=1000, seeds=1)
    x_all, y_all = np.concatenate([x, rows(2)[0]]), np.concatenate([y, rows(2)[1]])
    want = []
    for a, b in ((x, y), (x_all, y_all)):
        scaler = StandardScaler().fit(a)
        head = LogisticRegression(C=1.0, max_iter=5000).fit(scaler.transform(a), b)
        want.append(head.score(scaler.transform(rows(1)[0]), rows(1)[1]))
    assert out.baseline == pytest.approx(want[0], abs=1e-9)
    assert out.table["accuracy"][0] == pytest.approx(want[1], abs=1e-9)
    assert np.isnan(out.table["gain_sd"][0])


def test_the_budget_the_seed_and_the_order_hold(gains):
    again = probe_gain(
        rows(0), rows(1), {"bad": rows(3, wrong=True), "good": rows(2)},
        [["good"], ["bad"], ["good", "bad"]], per_class=4, seeds=3,
    )  # fmt: skip
    assert again.table["gain"].tolist() == gains.table["gain"].tolist()
    assert gains.table["blend"].tolist() == ["good", "bad", "bad + good"]
    assert (gains.per_class, gains.seeds, gains.n_test) == (4, 3, 240)


def test_progress_is_reported():
    seen = []
    probe_gain(
        rows(0), rows(1), {"s": rows(2)}, [["s"]], per_class=3, seeds=2,
        progress=lambda f, m: seen.append(f),
    )  # fmt: skip
    assert seen == [0.0, 0.5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target_train": (np.zeros((4, 2)), np.zeros(4))}, "fewer than two classes"),
        ({"target_test": (np.zeros((0, 10)), np.zeros(0))}, "no test rows"),
        ({"blends": [["s", "ghost"]]}, "'ghost'"),
        ({"seeds": 0}, "seeds=0"),
    ],
)
def test_bad_input_is_named(change, words):
    given = {
        "target_train": rows(0), "target_test": rows(1), "sources": {"s": rows(2)},
        "blends": [["s"]], **change,
    }  # fmt: skip
    with pytest.raises(BadInput, match=words):
        probe_gain(**given)
