"""Section 9 of the specification, on the real pictures that ship with the demo."""

from __future__ import annotations

import numpy as np
import pytest

from core.contrast import koda, koda_kernels
from core.contrast.words import purity
from core.data.demo import prepare
from core.linalg.kernels import make_kernel
from core.workspace import open_workspace


@pytest.fixture(scope="module")
def emoji(tmp_path_factory):
    workspace = open_workspace(tmp_path_factory.mktemp("emoji"))
    prepare(workspace)
    return workspace


def pure_sets(result, items) -> int:
    """Sets among the first five with one style or one group in 80 % of their samples."""
    return sum(
        max(purity(items[column], cluster.rows)[1] for column in ("domain", "label")) >= 0.8
        for cluster in result.clusters()[:5]
    )


def tables(workspace):
    items = workspace.dataset("emoji").items.reset_index(drop=True)
    found = []
    for model in ("demo/vit-s14", "demo/squeezenet1.1"):
        features = workspace.features.get("emoji", model)
        found.append(np.asarray(features.layer())[features.rows_of(items["id"])])
    return items, *found


@pytest.mark.slow
def test_automatic_scale_finds_groups_and_the_median_rule_does_not(emoji):
    items, vit, squeeze = tables(emoji)
    result = koda(vit, squeeze, n_directions=5)
    assert 3.0 <= result.group_size <= 9.0
    assert result.relative_gap.max() <= 1e-6
    assert pure_sets(result, items) >= 3
    assert sum(c.is_group(result.n) for c in result.clusters()) >= 3
    wide = koda_kernels(make_kernel(vit), make_kernel(squeeze), n_directions=5)
    assert pure_sets(wide, items) < 3
    assert not any(c.is_group(wide.n) for c in wide.clusters())
