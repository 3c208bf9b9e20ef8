"""One door for every analysis: defaults, keys, what is stored and what is computed again."""

import numpy as np
import pytest

import core
from core import analyses
from core.errors import BadInput, NotFound


def test_computes_once_then_finds(text_space, doubler):
    assert analyses.find("explore", text_space) is None
    first = core.run("explore", text_space)
    again = core.run("explore", text_space, factor=2)
    assert doubler.calls == 1
    assert again.key == first.key
    assert again.summary["total"] == first.summary["total"]
    assert analyses.find("explore", text_space).key == first.key
    assert first.created
    assert first.versions["numpy"] == np.__version__


def test_other_parameters_are_another_result(text_space, doubler):
    assert core.run("explore", text_space).key != core.run("explore", text_space, factor=3).key
    assert doubler.calls == 2


def test_force_computes_again_under_the_same_key(text_space, doubler):
    key = core.run("explore", text_space).key
    assert core.run("explore", text_space, force=True).key == key
    assert doubler.calls == 2


def test_changed_features_make_a_stored_result_stale(text_space, doubler):
    core.run("explore", text_space)
    data = text_space.dataset("letters")
    writer = text_space.features.writer(
        {"dataset_digest": data.digest, "model": "demo/none", "revision": 2},
        dataset="letters", model="demo/none", default_layer="out", n=6,
    )  # fmt: skip
    writer.write_shard(0, np.arange(6), {"out": np.ones((6, 3), np.float32)})
    writer.finish()
    assert analyses.find("explore", text_space) is None


def test_inputs_name_the_dataset_and_the_models_used(text_space, doubler):
    found = analyses.inputs(text_space, {"dataset": "letters", "models": ["demo/none", "other"]})
    assert set(found) == {"dataset", "demo/none"}
    assert analyses.inputs(text_space, {}) == {}


def test_current_is_the_defaults_result_else_the_newest(text_space, doubler):
    assert analyses.current("explore", text_space) is None
    other = core.run("explore", text_space, factor=7)
    assert analyses.current("explore", text_space).key == other.key
    default = core.run("explore", text_space)
    newest = core.run("explore", text_space, factor=9)
    assert analyses.current("explore", text_space).key == default.key
    # Without the dataset the defaults cannot be settled; what was computed is still shown.
    text_space.remove_dataset("letters")
    assert analyses.current("explore", text_space).key == newest.key


def test_unknown_names_are_refused(text_space, doubler):
    with pytest.raises(NotFound, match="no analysis 'radr'"):
        core.run("radr", text_space)
    with pytest.raises(BadInput, match="no parameter 'facter'"):
        core.run("explore", text_space, facter=2)
    with pytest.raises(NotFound, match="no dataset 'absent'"):
        core.run("explore", text_space, dataset="absent")


@pytest.mark.parametrize("name", analyses.names())
def test_every_analysis_keeps_the_contract(name):
    module = analyses.module(name)
    assert name == module.KIND
    assert "dataset" in module.DEFAULTS
    assert callable(module.resolve)
    assert callable(module.compute)
