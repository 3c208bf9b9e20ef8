"""Who is paired with whom."""

import numpy as np
import pytest

from core.errors import BadInput
from core.radar.blends import all_blends, choose_members, take_rows
from core.radar.pairing import generator, sample_pairs
from core.radar.types import Descriptors

A = np.array(list("aaabbbccd"))
B = np.array(list("aabbbcee"))


def draw(mode, n=4000, seed=0, labels=(A, B)):
    return sample_pairs(
        len(A), len(B), n, np.random.default_rng(seed),
        label_mode=mode, labels_a=labels[0], labels_b=labels[1],
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["any", "same", "different"])
def test_nobody_is_its_own_partner(mode):
    pairs = draw(mode)
    assert (pairs.anchor != pairs.within).all()


def test_labels_are_kept_to():
    same, other = draw("same"), draw("different")
    assert (A[same.anchor] == A[same.within]).all()
    assert (A[same.anchor] == B[same.cross]).all()
    assert (A[other.anchor] != A[other.within]).all()
    assert (A[other.anchor] != B[other.cross]).all()


def test_anchors_without_partners_are_skipped_and_counted():
    pairs = draw("same")  # d stands alone in A and is not in B
    assert pairs.n_skipped == 1
    assert 8 not in pairs.anchor


def test_partners_are_uniform():
    pairs = draw("any", n=80_000)
    cross = np.bincount(pairs.cross, minlength=len(B)) / 80_000
    within = np.bincount(pairs.within[pairs.anchor == 0], minlength=len(A))
    assert np.allclose(cross, 1 / len(B), atol=0.005)
    assert within[0] == 0
    assert np.allclose(within[1:] / within.sum(), 1 / 8, atol=0.015)
    other = draw("different", n=80_000)
    counts = np.bincount(other.cross[A[other.anchor] == "a"], minlength=len(B))
    assert np.allclose(counts[2:] / counts.sum(), 1 / 6, atol=0.01)


def test_anchors_repeat_only_when_all_were_used():
    assert len(set(draw("any", n=9).anchor)) == 9
    counts = np.bincount(draw("any", n=30).anchor)
    assert counts.max() - counts.min() <= 1


def test_a_stream_depends_on_its_names_only():
    assert generator(1, "a", 0).random() == generator(1, "a", 0).random()
    assert generator(1, "a", 0).random() != generator(1, "a", 1).random()


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="needs labels"):
        draw("same", labels=(None, None))
    with pytest.raises(BadInput, match="No item has partners"):
        draw("same", labels=(A, np.array(["z"] * len(B))))


def test_blends_are_all_non_empty_subsets():
    blends = all_blends(["c", "a", "b"])
    assert len(blends) == len(set(blends)) == 7
    assert len(all_blends([str(i) for i in range(10)])) == 1023
    with pytest.raises(BadInput, match="empty"):
        all_blends([])
    with pytest.raises(BadInput, match="twice"):
        all_blends(["a", "a"])


def test_members_come_with_their_weights_to_one_row():
    weights = np.tile([300.0, 100.0], (1000, 1))
    chosen = choose_members(weights, np.random.default_rng(0))
    assert np.bincount(chosen).tolist() == [750, 250]
    weights[:10] = 0
    assert (choose_members(weights, np.random.default_rng(0))[:10] == -1).all()


def test_rows_are_taken_from_their_member():
    parts = [
        Descriptors(*(np.full((4, 2), v),) * 2, np.ones((4, 2), bool), np.ones((4, 2, 3)))
        for v in (1.0, 2.0)
    ]
    mixed = take_rows(parts, np.array([0, 1, -1, 1]))
    assert mixed.theta[:, 0].tolist() == [1.0, 2.0, 2.0]
