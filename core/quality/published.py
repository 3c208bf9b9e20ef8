"""Published accuracies of pretrained models against what is known of them, with honest rho.

Nothing here is computed from pictures: the numbers are the literature's. A filter changes
the set of models, and with it every rho, interval and q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.quality.registry import ARCHITECTURES, AXES, OBJECTIVES, published_table, strata
from core.quality.study import simpson_check, study_correlations

CLUSTERS = {"family": "recipe family", "family_fine": "finer families"}


@dataclass(frozen=True)
class PublishedPanel:
    """The models of a filter and the correlations among them.

    Attributes
    ----------
    table : DataFrame
        One row a model, with one column a published cell (percent, NaN where unpublished).
    correlations : DataFrame
        From :func:`core.quality.study.study_correlations`.
    simpson : DataFrame
        Pooled rho against the mean within architecture classes.
    n_hidden : int
        Models of the population that the filter hides.
    """

    table: pd.DataFrame
    correlations: pd.DataFrame
    simpson: pd.DataFrame
    n_hidden: int


def published_panel(
    cells: Sequence[str],
    *,
    x: str = "params_M",
    population: str = "core260",
    architectures: Sequence[str] = ARCHITECTURES,
    objectives: Sequence[str] = tuple(OBJECTIVES),
    clusters: str = "family",
    n_boot: int = 2000,
    seed: int = 0,
) -> PublishedPanel:
    """Correlate one property of the models with published accuracies.

    Parameters
    ----------
    cells : sequence of str
        Published cells, ``"protocol|dataset"``.
    x : str
        A column of :data:`core.quality.registry.AXES`, or another published cell.
    population : {"core260", "all"}
        The models to start from.
    architectures, objectives : sequence of str
        Classes and objective groups to keep.
    clusters : {"family", "family_fine"}
        What is resampled; the finer families separate checkpoints that share an
        initialisation, so their intervals are too narrow.

    Raises
    ------
    BadInput
        ``x``, a cell or ``clusters`` is unknown.

    Examples
    --------
    >>> panel = published_panel(["linear|imagenet-1k"], n_boot=200)
    >>> len(panel.table), int(panel.table["linear|imagenet-1k"].notna().sum())
    (260, 58)
    """
    table = published_table(population)
    if clusters not in CLUSTERS:
        raise BadInput(
            f"clusters={clusters!r} is unknown.", f"Choose one of: {', '.join(CLUSTERS)}."
        )
    for name in (x, *cells):
        if name not in table or not (name in AXES or "|" in name):
            raise BadInput(
                f"{name!r} is neither a property nor a published cell.",
                f"Properties: {', '.join(AXES)}; cells look like 'linear|imagenet-1k'.",
            )
    keep = table["arch_class"].isin(list(architectures))
    keep &= table["objective_group"].isin(list(objectives))
    shown = table[keep].reset_index(drop=True)
    masks = {name: mask for name, mask in strata(shown).items() if mask.any()}
    if shown.empty:
        masks = {"All": np.zeros(0, dtype=bool)}
    found = study_correlations(
        shown,
        metrics=[x],
        targets=list(cells),
        strata=masks,
        clusters=clusters,
        n_boot=n_boot,
        seed=seed,
    )
    within = [name for name in ARCHITECTURES if name in masks]
    return PublishedPanel(shown, found, simpson_check(found, within=within), int((~keep).sum()))
