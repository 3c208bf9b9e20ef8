"""The automatic shrinkage: picks by held-out pairs, beats a bad fixed choice, refuses too few."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import BadInput
from core.linalg.whitening import spectrum
from core.stitching import StitchOptions, choose_shrinkage, prepare, run_method


def test_choice_is_the_best_candidate_and_repeats(digits):
    rows = [x[:200] for x in digits[0]]
    spectra = [spectrum(x) for x in digits[0]]
    a, b = (choose_shrinkage(rows, spectra, 30, steps=20) for _ in range(2))
    assert a.shrinkage == a.candidates[int(a.scores.argmax())]
    assert a.n_held_out == 40
    assert (a.scores == b.scores).all()
    assert ((a.scores > 1 / 40) & (a.scores <= 1)).all()
    assert f"{a.scores.max():.3f}" in a.reason


@pytest.mark.parametrize("anchors", ["random", "mixture", "param_single"])
def test_other_anchor_kinds(digits, anchors):
    rows = [x[:150] for x in digits[0][:2]]
    spectra = [spectrum(x) for x in rows]
    got = choose_shrinkage(rows, spectra, 20, anchors=anchors, candidates=(0.2, 0.8), steps=5)
    assert got.shrinkage in (0.2, 0.8)
    assert got.anchors == anchors


def test_few_pairs_do_not_fall_below_random_cosine(digits):
    options = StitchOptions(50, 50, 50, "auto", (0,), "logistic", 60)
    train, test, y, yt = digits
    setting = prepare(train[:2], test[:2], y, yt, options)
    auto = run_method(setting, "wip-param").off_diagonal.mean()
    assert auto > run_method(setting, "cosine-random").off_diagonal.mean()
    assert setting.choice("param").candidates[0] == "lw"


def test_too_few_pairs_are_refused():
    x = np.random.default_rng(0).normal(size=(15, 3))
    with pytest.raises(BadInput, match="20 parallel rows"):
        choose_shrinkage([x, x], [spectrum(x)] * 2)
