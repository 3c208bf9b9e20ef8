"""Dual encoders trained on the spot: the loss, the training, a tower, the measure."""

import numpy as np
import pytest
import torch

from core.encoders import load
from core.encoders.catalogue import DEMO, LIT_PAIRS
from core.encoders.lit import LitTower, contrastive_loss, facts, load_tower, save, train
from core.encoders.lit_training import recall
from core.errors import BadInput, NeedsWeights, NotFound


def unit(rows):
    return torch.nn.functional.normalize(torch.as_tensor(rows, dtype=torch.float64), dim=1)


class TestLoss:
    def test_of_single_matches_is_clips(self):
        rng = np.random.default_rng(0)
        a, b = unit(rng.normal(size=(6, 4))), unit(rng.normal(size=(6, 4)))
        scale = torch.tensor(7.0, dtype=torch.float64)
        logits, wanted = scale * a @ b.T, torch.arange(6)
        cross = torch.nn.functional.cross_entropy
        clip = (cross(logits, wanted) + cross(logits.T, wanted)) / 2
        assert contrastive_loss(a, b, wanted, scale).item() == pytest.approx(clip.item(), abs=1e-12)

    def test_at_scale_zero_is_the_log_of_the_rows(self):
        a = unit(np.random.default_rng(1).normal(size=(5, 3)))
        value = contrastive_loss(a, a, torch.arange(5), torch.tensor(0.0, dtype=torch.float64))
        assert value.item() == pytest.approx(np.log(5))

    def test_when_all_match_no_order_helps(self):
        a = unit(np.random.default_rng(2).normal(size=(4, 3)))
        same = torch.zeros(4, dtype=torch.int64)
        collapsed = unit(np.ones((4, 3)))
        scale = torch.tensor(10.0, dtype=torch.float64)
        low = contrastive_loss(collapsed, collapsed, same, scale).item()
        assert low == pytest.approx(np.log(4))
        assert contrastive_loss(a, a, same, scale).item() >= low

    def test_does_not_depend_on_the_order(self):
        rng = np.random.default_rng(3)
        a, b = unit(rng.normal(size=(8, 4))), unit(rng.normal(size=(8, 4)))
        kinds = torch.tensor([0, 0, 1, 2, 2, 2, 3, 4])
        order = torch.from_numpy(rng.permutation(8))
        scale = torch.tensor(5.0, dtype=torch.float64)
        one = contrastive_loss(a, b, kinds, scale)
        two = contrastive_loss(a[order], b[order], kinds[order], scale)
        assert one.item() == pytest.approx(two.item(), abs=1e-12)


def planted(n=400, seed=0):
    """Two views of the same 8 hidden numbers; concepts of five pairs each."""
    rng = np.random.default_rng(seed)
    hidden = np.repeat(rng.normal(size=(n // 5, 8)), 5, axis=0)
    image = hidden @ rng.normal(size=(8, 30)) + 0.3 * rng.normal(size=(n, 30))
    text = hidden @ rng.normal(size=(8, 20))
    return image.astype(np.float32), text.astype(np.float32), np.repeat(np.arange(n // 5), 5)


def joint(tensors, side, x):
    z = (x - tensors[f"{side}.mean"]) * tensors[f"{side}.scale"] @ tensors[f"{side}.weight"]
    z = z + tensors[f"{side}.bias"]
    return z / np.linalg.norm(z, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def trained():
    """Maps trained on three quarters of the planted concepts."""
    image, text, kinds = planted()
    old = kinds < 60
    return train(image[old], text[old], kinds[old], width=16), image, text, kinds


class TestTraining:
    def test_finds_planted_pairs_it_has_not_seen(self, trained):
        tensors, image, text, kinds = trained
        rows = np.flatnonzero(kinds >= 60)[::5]
        score = joint(tensors, "image", image[rows]) @ joint(tensors, "text", text[rows]).T
        assert recall(score, 1) > 0.4  # chance: 1 of 20
        assert recall(score, 5) > 0.8

    def test_repeats_with_its_seed(self, trained):
        tensors, image, text, kinds = trained
        old = kinds < 60
        again = train(image[old], text[old], kinds[old], width=16)
        assert all(np.array_equal(tensors[name], again[name]) for name in tensors)
        other = train(image[old], text[old], kinds[old], width=16, seed=1)
        assert not np.array_equal(tensors["image.weight"], other["image.weight"])

    def test_a_constant_column_does_no_harm(self):
        image, text, kinds = planted(100)
        image[:, 0] = 3.0
        tensors = train(image, text, kinds, width=8)
        assert all(np.isfinite(a).all() for a in tensors.values())


def test_recall_counts_ties_against():
    score = np.array([[1.0, 0.5, 0.0], [0.9, 0.5, 0.5], [0.1, 0.2, 0.3]])
    assert recall(score, 1) == pytest.approx(2 / 3)
    assert recall(score, 2) == pytest.approx(2 / 3)
    assert recall(score, 3) == 1.0


@pytest.fixture
def tower():
    squeezenet = load("demo/squeezenet1.1", "cpu")
    rng = np.random.default_rng(0)
    tensors = {
        "image.mean": rng.normal(size=512).astype(np.float32),
        "image.scale": np.ones(512, np.float32),
        "image.weight": rng.normal(size=(512, 256)).astype(np.float32),
        "image.bias": np.zeros(256, np.float32),
    }
    return LitTower(DEMO["demo/lit-cnn-minilm/image"], [(squeezenet, "pool")], tensors), tensors


def test_a_tower_maps_and_has_length_one(tower, pictures):
    encoder, tensors = tower
    found = encoder.encode(pictures)["joint"]
    assert found.shape == (5, 256)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    raw = load("demo/squeezenet1.1", "cpu").encode(pictures)["pool"]
    assert np.allclose(found, joint(tensors, "image", raw), atol=1e-5)
    alone = np.concatenate([encoder.encode([p])["joint"] for p in pictures])
    assert np.abs(alone - found).max() < 1e-5


def test_a_tower_refuses_what_it_cannot(tower):
    encoder, _ = tower
    with pytest.raises(BadInput, match="empty"):
        encoder.encode([])
    with pytest.raises(NotFound, match="joint"):
        encoder.run([1], layers=["pool"])


def test_the_facts_travel_in_the_file(tmp_path, tower, monkeypatch):
    _, tensors = tower
    monkeypatch.setattr("core.encoders.lit.projection", lambda name: tmp_path / name)
    assert facts("pair") == {}
    save(tmp_path / "pair", tensors, {"pairs": 3})
    assert facts("pair") == {"pairs": 3}
    monkeypatch.setattr("core.encoders.lit.projection", lambda name: tmp_path / "none")
    with pytest.raises(NeedsWeights, match="looked for"):
        load_tower(DEMO["demo/lit-cnn-minilm/image"], torch.device("cpu"))


@pytest.mark.parametrize("name", list(LIT_PAIRS))
def test_what_ships_says_how_good_it_is(name):
    about = facts(name)
    assert about["title"].startswith("LiT-style pair, trained here")
    styles = about["held_out"]
    assert len(styles) == 6
    seen = [s for style, s in styles.items() if style != about["unseen_style"]]
    # Chance is 1/320 and 5/320.
    assert all(s["n"] == 320 for s in seen)
    assert all(s["image_text_r5"] > 0.2 and s["text_image_r5"] > 0.2 for s in seen)
    assert all(s["image_text_r1"] <= s["image_text_r5"] for s in styles.values())
