"""Fixtures for the unit tests: an empty workspace, and one that holds a small data set."""

import sys
import types

import numpy as np
import pandas as pd
import pytest

from core.results import Result
from core.workspace import open_workspace


@pytest.fixture
def space(tmp_path):
    """An empty workspace."""
    return open_workspace(tmp_path / "space")


@pytest.fixture
def text_space(space):
    """A workspace with a text dataset of six items and features of one encoder."""
    items = pd.DataFrame(
        {"id": range(6), "caption": list("abcdef"), "label": ["x", "y"] * 3, "domain": ["d"] * 6}
    )
    data = space.add_dataset("letters", "Letters", "text", items)
    recipe = {"dataset_digest": data.digest, "model": "demo/none"}
    writer = space.features.writer(
        recipe, dataset="letters", model="demo/none", default_layer="out", n=6
    )
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    writer.write_shard(0, np.arange(6), {"out": rows})
    writer.finish()
    return space


@pytest.fixture
def doubler(monkeypatch):
    """A tiny analysis registered as ``explore``; counts how often it computes."""
    module = types.ModuleType("fake_analysis")
    module.KIND = "explore"
    module.DEFAULTS = {"dataset": "letters", "model": "demo/none", "factor": 2, "seed": 0}
    module.calls = 0

    def resolve(workspace, params):
        workspace.dataset(params["dataset"])
        return params

    def compute(workspace, params, progress=None):
        module.calls += 1
        features = workspace.features.get(params["dataset"], params["model"])
        total = float(params["factor"] * np.asarray(features.layer(), np.float64).sum())
        frame = pd.DataFrame({"id": features.ids, "x": np.arange(6.0)})
        summary = {"headline": f"The sum is {total:.3f}.", "n": len(features), "total": total}
        return Result("explore", params, summary, {"rows": frame}, {"a": np.arange(3.0)})

    module.resolve, module.compute = resolve, compute
    monkeypatch.setitem(sys.modules, "fake_analysis", module)
    monkeypatch.setitem(__import__("core.analyses").analyses.ANALYSES, "explore", "fake_analysis")
    return module
