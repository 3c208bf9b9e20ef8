"""What an anchor does: coverage, correlation, the effect of its absence, failing items."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.stitching import fit_head, random_anchors, whitening_stats
from core.stitching.effects import correlations, cover_gap, drop_one, nearest_anchors


def test_a_sample_is_closest_to_itself():
    x = np.random.default_rng(0).normal(size=(80, 6))
    stats = whitening_stats(x)
    nearest, cosine = nearest_anchors(x, x[:20], stats)
    assert (nearest[:20] == np.arange(20)).all()
    np.testing.assert_allclose(cosine[:20], 1.0)
    assert (cosine[20:] < 1.0).all()


def test_equal_anchors_are_fully_correlated():
    x = np.random.default_rng(1).normal(size=(80, 6))
    anchors = x[[0, 1, 2, 0]]
    found = correlations(anchors, whitening_stats(x))
    np.testing.assert_allclose(found[[0, 3]], 1.0)
    assert (found[[1, 2]] < 1.0).all()


def test_drop_one_against_setting_the_column_to_its_mean(digits):
    train, test, y, yt = digits
    P = random_anchors(len(y), 15, seed=0)
    a, b = train[0] @ (P @ train[0]).T, test[0] @ (P @ train[0]).T
    head = fit_head(a, y)
    got = drop_one(head, b, yt)
    base = (head.predict(b) == yt).mean()
    for r in range(15):
        silent = b.copy()
        silent[:, r] = head.mean[r]
        np.testing.assert_allclose(got[r], (head.predict(silent) == yt).mean() - base, atol=1e-12)


def test_failing_items_that_lie_far_from_all_anchors_are_found():
    rng = np.random.default_rng(2)
    ids = np.arange(300)
    fails = ids[:60]
    cosine = np.where(ids < 60, 0.2, 0.5) + 0.05 * rng.normal(size=300)
    cover = pd.DataFrame({"id": ids, "cosine": cosine})
    groups = pd.Series([f"c{i // 3}" for i in ids], index=ids)
    got = cover_gap(cover, pd.Series(fails), groups)
    assert got["n_failing"] == 60
    assert abs(got["difference"] + 0.3) < 0.02
    assert got["low"] < got["difference"] < got["high"] < 0
    same = cover_gap(cover.assign(cosine=0.5 + 0.05 * rng.normal(size=300)), pd.Series(fails),
                     groups)  # fmt: skip
    assert same["low"] < 0 < same["high"]
    assert np.isnan(cover_gap(cover, pd.Series([], dtype=int), groups)["difference"])
