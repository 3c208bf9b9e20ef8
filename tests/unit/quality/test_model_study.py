"""The study of real checkpoints: resumable, every failure a reason, one form with the zoo."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import core
from core.cli import main
from core.data.feature_import import PREFIX
from core.errors import BadInput, Cancelled
from core.quality import model_study
from core.quality.population import STUDY
from core.quality.probes import knn_probe
from core.quality.stored import block_cells
from core.types import Features

N, CLASSES = 120, 4
LABELS = np.arange(N) % CLASSES
#: Registry models of four families and two classes, and one that no library loads by name.
HERE = [f"timm/{name}" for name in ("resnet18.a1_in1k", "resnet50.a1_in1k")]


@pytest.fixture
def pictures(space):
    """A data set of 120 plain pictures in four classes."""
    items = pd.DataFrame(
        {"id": range(N), "label": [f"c{v}" for v in LABELS], "caption": "", "domain": "d"}
    )
    drawn = []
    for i in range(N):
        out = io.BytesIO()
        Image.new("RGB", (8, 8), (int(40 * LABELS[i]), i, 90)).save(out, "PNG")
        drawn.append(out.getvalue())
    items["sha256"] = space.blobs.put_many(drawn)
    return space.add_dataset("toy", "Toy", "image", items)


def put(space, data, model, *, seed=0, strength=1.0, n=N, d=24):
    """Store features of a model: class centres in noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) + strength * rng.standard_normal((CLASSES, d))[LABELS[:n]]
    recipe = {"dataset_digest": data.digest, "model": model, "seed": seed}
    writer = space.features.writer(recipe, dataset="toy", model=model, default_layer="pool", n=n)
    writer.write_shard(0, np.arange(n), {"pool": rows.astype(np.float32)})
    writer.finish()
    return rows.astype(np.float32)


def study(space, models, **more):
    return core.run("model-study", space, force=True, dataset="toy", models=models, n_boot=100,
                    **more)  # fmt: skip


def test_rows_are_the_probes_on_the_split_every_model_shares(space, pictures):
    x = put(space, pictures, HERE[0])
    found = study(space, HERE[:1])
    row = found.tables["rows"].iloc[0]
    shared = model_study._Rows.of(pictures, "label", 0)
    assert (row["n_train"], row["n_test"]) == (96, 24)
    train = shared.train
    want = knn_probe(x[train], shared.labels[train], x[~train], shared.labels[~train])
    assert row["knn"] == want.accuracy
    assert (row["family"], row["architecture"], row["group"]) == ("resnet_rsb", "ResNet",
                                                                  "supervised")  # fmt: skip
    assert row["n.rankme"] == 96


def test_a_stopped_study_goes_on_and_what_is_done_is_not_done_again(space, pictures, monkeypatch):
    for at, model in enumerate(HERE):
        put(space, pictures, model, seed=at)
    calls = []
    real = model_study._measure
    monkeypatch.setattr(model_study, "_measure", lambda f, m, *a: calls.append(m) or real(f, m, *a))

    def stop(_fraction, message):
        if message.startswith(HERE[1]):
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        study(space, HERE, progress=stop)
    first = study(space, HERE)
    assert calls == HERE
    assert first.tables["models"]["state"].tolist() == ["kept", "measured"]
    assert study(space, HERE).tables["models"]["state"].tolist() == ["kept", "kept"]
    assert calls == HERE
    put(space, pictures, HERE[0], seed=9)  # other features of the same model: measured again
    assert study(space, HERE).tables["models"]["state"].tolist() == ["measured", "kept"]


def test_every_failure_is_a_line_with_its_reason(space, pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "nowhere"))
    put(space, pictures, HERE[0])
    put(space, pictures, "timm/short", n=100)
    raw = next(m for m in model_study.registry_facts() if m.startswith("vissl/"))
    found = study(space, [HERE[0], HERE[1], "timm/short", raw, "nonesuch"])
    states = found.tables["models"].set_index("model")
    assert states["state"].tolist() == ["measured", "weights are not here", *["cannot be used"] * 3]
    assert str(tmp_path / "nowhere") in states.loc[HERE[1], "reason"]
    assert "no features of 20 of 120" in states.loc["timm/short", "reason"]
    assert "raw checkpoint" in states.loc[raw, "reason"]
    assert (states["reason"] == "").tolist() == [True, *[False] * 4]
    assert sum(line.count for line in found.left_out) == 4
    assert found.headline.startswith("1 of 5 models measured on toy")
    assert (states["peak_mib"] > 10).all()


def test_a_foreign_checkpoint_that_breaks_is_not_the_end(space, pictures, monkeypatch):
    put(space, pictures, HERE[1])

    def broken(*args, **more):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("core.extract.run_extract", broken)
    states = study(space, HERE).tables["models"]
    assert states["state"].tolist() == ["failed", "measured"]
    assert states["reason"].iloc[0] == "RuntimeError: out of memory"


def test_no_model_measured_is_an_answer(space, pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "nowhere"))
    found = study(space, HERE)
    assert found.headline.startswith("0 of 2 models")
    assert model_study.population_of(found) is None
    assert "rho" not in found.tables


def test_twelve_models_make_a_population_with_correlations(space, pictures):
    facts = model_study.registry_facts("core260")
    assert len(facts) == 260
    families = list(dict.fromkeys(f["family"] for f in facts.values()))[:12]
    models = [next(m for m in facts if facts[m]["family"] == name) for name in families]
    for at, model in enumerate(models):
        put(space, pictures, model, seed=at, strength=0.1 * at)
    found = study(space, models)
    whole = model_study.population_of(found)
    assert whole.n_models == 12
    blocks = found.tables["rho"].set_index(["block", "probe"]).sort_index()
    cells = block_cells(blocks, "knn", metrics=STUDY, n_boot=100)
    every = cells[(cells["stratum"] == "All") & (cells["metric"] == "ne_sum")].iloc[0]
    table = found.tables["rows"]
    want = table["metric.ne_sum"].rank().corr(table["knn"].rank())
    assert every["rho"] == pytest.approx(want, abs=1e-9)
    assert (every["n"], every["n_clusters"]) == (12, 12)


def test_an_unknown_model_keeps_its_class_and_objective_open(space, pictures):
    put(space, pictures, "mine/net")
    row = study(space, ["mine/net"]).tables["rows"].iloc[0]
    assert (row["architecture"], row["group"], row["family"]) == ("other", "other", "mine/net")


def test_imported_features_stand_for_a_model_that_cannot_be_loaded(space, pictures):
    raw = next(m for m in model_study.registry_facts() if m.startswith("vissl/"))
    put(space, pictures, f"{PREFIX}{raw}")
    row = study(space, [raw]).tables["rows"].iloc[0]
    assert (row["model"], row["architecture"], row["group"]) == (raw, "RegNet", "ssl")


def test_what_cannot_be_studied_is_refused(space, pictures, text_space):
    for wrong in ({"label": "colour"}, {"max_rows": 5}, {"population": "core261"}):
        with pytest.raises(BadInput, match=str(next(iter(wrong.values())))):
            study(space, [], **wrong)
    with pytest.raises(BadInput, match="pictures"):
        core.run("model-study", text_space, dataset="letters")


def test_a_seeded_random_checkpoint_goes_the_whole_way(space, pictures, tmp_path, capsys):
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    net = timm.create_model("test_vit.r160_in1k", pretrained=False)
    save_file(net.state_dict(), tmp_path / "vit.safetensors")
    model = f"timm/test_vit.r160_in1k@{tmp_path / 'vit.safetensors'}"
    line = ["quality", "study", "--dataset", "toy", "--models", model, "--workspace",
            str(space.root)]  # fmt: skip
    assert main([*line, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["models"][0]["state"] == "measured"
    assert body["models"][0]["cpu_s"] > 0
    features: Features = space.features.get("toy", model)
    assert list(features.layers) == ["pool"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 1 models measured on toy.")
    assert "kept" in out
