"""The Quality page on pretrained models that the user's own study measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import synthetic
from page_kit import Open, assert_sound

import core
from core.quality.model_study import registry_facts

N = 72


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a study of twelve registry models, one of which has no weights here."""
    home = tmp_path_factory.mktemp("studied")
    space = synthetic.build(home)
    facts = registry_facts("core260")
    families = list(dict.fromkeys(f["family"] for f in facts.values()))[:13]
    models = [next(m for m in facts if facts[m]["family"] == name) for name in families]
    for at, model in enumerate(models[:-1]):
        rng = np.random.default_rng(at)
        rows = rng.standard_normal((N, 16)) + 0.2 * at * (np.arange(N)[:, None] // 3 % 3)
        recipe = {"dataset_digest": space.dataset("emoji").digest, "model": model}
        writer = space.features.writer(
            recipe, dataset="emoji", model=model, default_layer="pool", n=N
        )
        writer.write_shard(0, np.arange(N), {"pool": rows.astype(np.float32)})
        writer.finish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", str(home / "nowhere"))
        core.run("model-study", space, dataset="emoji", models=models, n_boot=100)
    return home


def test_an_own_study_is_drawn_as_the_zoo_is(open_page: Open, studied: Path) -> None:
    at = open_page("quality", studied, quality_across="yours")
    assert_sound(at)
    assert "12 pretrained models on emoji" in [h.value for h in at.header]
    assert "Which metric to trust" in [h.value for h in at.subheader]
    assert len(at.get("plotly_chart")) >= 5
    assert any("1 model could not be measured" in e.label for e in at.expander)
    assert not any("small models trained for this study" in h.value for h in at.header)


def test_without_a_study_the_choice_is_not_offered(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_across="yours")
    assert_sound(at)
    assert any("small models trained for this study" in h.value for h in at.header)
