"""The population of small networks: its plan, its training, its row files and its table."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch

from core.errors import BadInput, NotFound
from core.quality.zoo import run as zoo_run
from core.quality.zoo.augment import STRENGTHS, augment
from core.quality.zoo.measure import measure
from core.quality.zoo.nets import build, count_macs, features
from core.quality.zoo.objectives import build_objective
from core.quality.zoo.plan import ARCHITECTURES, AUGMENTATIONS, OBJECTIVES, WIDTHS, ModelSpec, plan
from core.quality.zoo.sets import StudySet, study_sets, training_set
from core.quality.zoo.train import extract, train

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
LABELS = np.arange(40) % 4


def spec(architecture="ResNet", objective="supervised", steps=2, **more):
    fields = {"index": 0, "augmentation": "strong", "width": 0.5, "seed": 3} | more
    return ModelSpec(architecture=architecture, objective=objective, steps=steps, **fields)


def test_the_plan_has_65_of_each_class_and_every_recipe_four_or_five_times():
    specs = plan()
    assert [s.index for s in specs] == list(range(260))
    assert all(60 <= n <= 70 for n in Counter(s.architecture for s in specs).values())
    families = Counter(s.family for s in specs)
    assert len(families) == 60
    assert set(families.values()) == {4, 5}
    assert plan() == specs
    assert plan(seed=1) != specs


def test_every_prefix_of_the_plan_is_balanced():
    for stop in (60, 120, 180):
        assert len({s.family for s in plan()[:stop]}) == 60


@pytest.mark.parametrize("n", [0, 301])
def test_the_plan_refuses_other_sizes(n):
    with pytest.raises(BadInput):
        plan(n)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_width_of_every_class_gives_features_within_a_few_megaflops(architecture):
    sizes = []
    for width in WIDTHS:
        net = build(architecture, width).eval()
        with torch.inference_mode():
            out = features(net, torch.rand(2, 3, 32, 32))
        assert out.shape == (2, net.num_features)
        sizes.append(count_macs(net))
    assert sizes == sorted(sizes)
    assert sizes[0] > 1e5
    assert sizes[-1] < 2e7


def test_multiply_adds_are_counted_as_by_hand():
    net = build("ViT", 1.0)
    d, tokens = net.embed_dim, 17
    block = d * 3 * d + d * d + 2 * 4 * d * d
    assert count_macs(net) == 16 * (3 * 64) * d + 4 * block * tokens


def test_an_unknown_class_is_refused():
    with pytest.raises(NotFound):
        build("Swin", 1.0)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentation_is_seeded_bounded_and_changes_pictures(name):
    x = torch.rand(6, 3, 32, 32)
    one, two = (augment(x, name, torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == x.shape
    assert float(one.min()) >= 0
    assert float(one.max()) <= 1
    assert not torch.allclose(one, x)
    assert set(STRENGTHS) == set(AUGMENTATIONS)


@pytest.mark.parametrize("architecture", ["ViT", "RegNet"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_objective_learns_eight_pictures(architecture, objective):
    """A dozen steps on the same pictures lower each loss, and the network itself is taught."""
    torch.manual_seed(0)
    net = build(architecture, 0.5)
    task = build_objective(
        objective, net, architecture=architecture, width=net.num_features, n_classes=4
    )
    x, y = torch.from_numpy(PICTURES[:8]).permute(0, 3, 1, 2).float() / 255, torch.arange(8) % 4
    optimiser = torch.optim.AdamW([p for p in task.parameters() if p.requires_grad], lr=2e-3)
    losses = []
    noise = 0.01 * torch.randn(x.shape)
    for step in range(12):
        generator = torch.Generator().manual_seed(step % 3)  # the same three maskings
        loss = task(lambda: x + noise, y, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        task.after_step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    assert any(float(g.abs().max()) > 0 for g in grads)


def test_an_unknown_objective_is_refused():
    with pytest.raises(NotFound):
        build_objective("rotation", build("ViT", 0.5), architecture="ViT", width=32, n_classes=2)


def test_the_same_specification_gives_the_same_weights():
    one, loss_one = train(spec(), PICTURES, LABELS)
    two, loss_two = train(spec(), PICTURES, LABELS)
    other, _ = train(spec(seed=4), PICTURES, LABELS)
    assert loss_one == loss_two
    a, b, c = (extract(net, PICTURES) for net in (one, two, other))
    assert np.array_equal(a, b)
    assert not np.allclose(a, c)


def test_features_do_not_depend_on_what_else_is_in_the_batch():
    net, _ = train(spec("ConvNeXt", "simclr"), PICTURES, LABELS)
    assert np.allclose(extract(net, PICTURES)[:7], extract(net, PICTURES[:7]), atol=1e-5)


def test_a_network_whose_features_are_not_finite_is_a_row_that_says_so():
    net, _ = train(spec(), PICTURES, LABELS)
    next(p for p in net.parameters()).data.fill_(float("nan"))
    data = StudySet("toy", PICTURES, LABELS, np.arange(40) < 30, "toy")
    (row,) = measure(net, [data])
    assert "40 of 40" in row["failed"]
    assert "knn" not in row


def test_the_six_sets_hold_out_what_is_tested():
    sets = {s.name: s for s in study_sets()}
    assert len(sets) == 6
    for data in sets.values():
        assert data.images.shape == (len(data.labels), 32, 32, 3)
        assert data.images.dtype == np.uint8
        seen, tested = data.labels[data.train], data.labels[~data.train]
        assert set(tested) <= set(seen)
        assert 0.15 < len(tested) / len(data.labels) < 0.4
        assert data.images.std() > 20
    pictures, labels = training_set()
    assert len(pictures) == sets["emoji-groups"].train.sum() == len(labels)
    assert np.array_equal(pictures, sets["emoji-groups"].images[sets["emoji-groups"].train])
    held = sets["emoji-groups"].images[~sets["emoji-groups"].train]
    assert not {p.tobytes() for p in held} & {p.tobytes() for p in pictures}


@pytest.fixture
def tiny(monkeypatch):
    """A run of two small networks on one small set."""
    data = StudySet("toy", PICTURES, LABELS, np.arange(40) % 5 != 0, "toy")
    monkeypatch.setattr("core.quality.zoo.sets.training_set", lambda: (PICTURES, LABELS))
    monkeypatch.setattr("core.quality.zoo.sets.study_sets", lambda: [data])
    two = [spec(index=0), spec("ViT", "mae", index=1)]
    monkeypatch.setattr(zoo_run, "plan", lambda: two)
    return two


def test_a_run_goes_on_where_it_stopped(tiny, tmp_path):
    said: list[str] = []
    assert zoo_run.run(tmp_path, last=1, report=said.append) == 1
    (tmp_path / "001.99.part").write_text("half a row")  # what a killed process leaves
    assert zoo_run.run(tmp_path, report=said.append) == 1
    assert zoo_run.run(tmp_path, report=said.append) == 0
    assert len(said) == 2
    about = zoo_run.assemble(tmp_path, tmp_path / "t.parquet")
    table = pd.read_parquet(tmp_path / "t.parquet")
    assert about["n_models"] == 2
    assert not about["failures"]
    assert list(table["model"]) == [s.name for s in tiny]
    assert table["knn"].between(0, 1).all()
    assert json.loads((tmp_path / "t.json").read_text())["title"] == zoo_run.TITLE


def test_a_row_of_another_specification_is_trained_again(tiny, tmp_path):
    zoo_run.run(tmp_path, last=1, report=lambda line: None)
    stored = json.loads((tmp_path / "000.json").read_text())
    stored["spec"]["steps"] = 99
    (tmp_path / "000.json").write_text(json.dumps(stored))
    assert zoo_run.run(tmp_path, last=1, report=lambda line: None) == 1


def test_a_model_that_fails_is_a_reason_not_the_end(tiny, tmp_path, monkeypatch):
    def fail(found, *args, **more):
        if found.index == 0:
            raise RuntimeError("out of memory")
        return {"name": found.name, "spec": found.as_dict(), "family": found.family,
                "rows": [{"dataset": "toy"}]}  # fmt: skip

    monkeypatch.setattr("core.quality.zoo.measure.study_model", fail)
    assert zoo_run.run(tmp_path, report=lambda line: None) == 2
    about = zoo_run.assemble(tmp_path, tmp_path / "t.parquet")
    assert about["failures"] == {tiny[0].name: "RuntimeError: out of memory"}


def test_nothing_to_do_and_nothing_to_assemble_are_said(tiny, tmp_path):
    with pytest.raises(BadInput):
        zoo_run.run(tmp_path, first=5)
    with pytest.raises(NotFound):
        zoo_run.assemble(tmp_path, tmp_path / "t.parquet")
