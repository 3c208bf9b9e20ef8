"""The correlations of every filter of a population, computed once: a redraw is a look-up.

A filter keeps some architecture classes and some objective groups, and each stratum of what it
keeps is again such a product. So the 15 x 3 products of four classes and two groups (*blocks*)
hold every rho, interval and p that any filter can show; only q depends on what is on screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from core.errors import BadInput, NotFound
from core.quality.population import (
    GROUPS,
    METRICS,
    PROBES,
    STUDY,
    Correlations,
    Population,
    adjusted,
    correlation_row,
    select,
)
from core.quality.registry import ARCHITECTURES

N_BOOT = 2000


def block_name(architectures: Sequence[str], groups: Sequence[str]) -> str:
    """Return the name of a block, whatever the order of its parts.

    Examples
    --------
    >>> block_name(["ResNet", "ViT"], ["ssl"])
    'ViT+ResNet|ssl'
    """
    kinds = [a for a in ARCHITECTURES if a in set(architectures)]
    kinds += sorted(set(architectures) - set(kinds))
    return f"{'+'.join(kinds)}|{'+'.join(g for g in GROUPS if g in set(groups))}"


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [some for size in range(1, len(names) + 1) for some in combinations(names, size)]


def compute_blocks(
    population: Population,
    *,
    probes: Sequence[str] = tuple(PROBES),
    metrics: Sequence[str] = tuple(METRICS),
    n_boot: int = N_BOOT,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every block's correlations, one row a block, data set, probe and metric.

    Parameters
    ----------
    population : Population
    probes, metrics : sequence of str
        Columns of its table.
    n_boot, seed : int
        Resamples of whole families.

    Returns
    -------
    DataFrame
        block, dataset, metric, probe, rho, lo, hi, p, n, n_clusters, status, and ``partial``
        with its bounds: rho given the feature width.
    """
    kinds = [a for a in ARCHITECTURES if (population.table["architecture"] == a).any()]
    groups = [g for g in GROUPS if (population.table["group"] == g).any()]
    rows = []
    for some_kinds in _subsets(kinds):
        for some_groups in _subsets(groups):
            part = select(population, architectures=some_kinds, groups=some_groups)
            name = block_name(some_kinds, some_groups)
            for dataset in part.datasets:
                found = Correlations(
                    part, dataset, metrics=metrics, probes=probes, n_boot=n_boot, seed=seed
                )
                rows += [
                    {"block": name, "dataset": dataset, "metric": metric, "probe": probe}
                    | correlation_row(found.cell("All", metric, probe))
                    | _partial(found, metric, probe)
                    for metric in metrics
                    for probe in probes
                ]
    out = pd.DataFrame(rows)
    # rho is kept whole; the fourth digit of a bound is far inside the bootstrap's own error.
    bounds = ["lo", "hi", "partial", "partial_lo", "partial_hi"]
    out[bounds] = out[bounds].round(5).astype(np.float32)
    return out


def _partial(found: Correlations, metric: str, probe: str) -> dict[str, float]:
    part = None if metric == "d" else found.partial("All", metric, probe)
    nan = float("nan")
    values = (part.rho, part.lo, part.hi) if part is not None else (nan, nan, nan)
    return dict(zip(("partial", "partial_lo", "partial_hi"), values, strict=True))


@cache
def stored_blocks(path: Path | None = None) -> pd.DataFrame:
    """Return the stored blocks of the networks trained for this study, by block and probe.

    Raises
    ------
    NotFound
        The file is not installed.
    """
    from core.quality.zoo.sets import study_dir

    file = path or study_dir() / "zoo_rho.parquet"
    if not file.is_file():
        raise NotFound(f"The study's correlations {file.name} are missing.", "Install again.")
    return pd.read_parquet(file).set_index(["block", "probe"]).sort_index()


def zoo_cells(
    probe: str,
    *,
    architectures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    metrics: Sequence[str] = STUDY,
    path: Path | None = None,
) -> pd.DataFrame:
    """Return what :func:`core.quality.population.study_table` gives of a filtered zoo, looked up.

    Parameters
    ----------
    probe : str
        One of :data:`core.quality.population.PROBES`.
    architectures, groups : sequence of str, optional
        What the filter keeps (default: all).
    metrics : sequence of str
        On screen; q adjusts over them and the data sets within a stratum.
    path : Path, optional
        The stored blocks (default: the shipped ones).

    Returns
    -------
    DataFrame
        As ``study_table``, with ``partial`` and its bounds.

    Raises
    ------
    BadInput
        The probe is unknown or the filter keeps nothing.
    NotFound
        The stored blocks are not installed.
    """
    return block_cells(
        stored_blocks(path), probe, architectures=architectures, groups=groups, metrics=metrics
    )


def block_cells(
    blocks: pd.DataFrame,
    probe: str,
    *,
    architectures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    metrics: Sequence[str] = STUDY,
    n_boot: int = N_BOOT,
) -> pd.DataFrame:
    """Return the cells of a filter from any population's blocks; see :func:`zoo_cells`.

    Parameters
    ----------
    blocks : DataFrame
        From :func:`compute_blocks`, indexed by block and probe.
    n_boot : int
        Resamples the blocks were made with: they bound the smallest p.
    """
    names = list(blocks.index.unique("block"))
    every = max(names, key=len)
    kinds, both = ([*part.split("+")] for part in every.split("|"))
    kept = [a for a in kinds if architectures is None or a in architectures]
    some = [g for g in both if groups is None or g in groups]
    if probe not in PROBES or not kept or not some:
        raise BadInput(
            f"probe={probe!r}, architectures={architectures}, groups={groups} select nothing.",
            f"Probes: {', '.join(PROBES)}; architectures: {', '.join(kinds)}.",
        )
    where = {"All": (kept, some)} | {a: ([a], some) for a in kept}
    where |= {GROUPS[g]: (kept, [g]) for g in some}
    parts = []
    for stratum, (some_kinds, some_groups) in where.items():
        name = block_name(some_kinds, some_groups)
        if name in names:
            parts.append(blocks.loc[(name, probe)].assign(stratum=stratum, probe=probe))
    cells = pd.concat(parts, ignore_index=True)
    rank = {name: at for at, name in enumerate(metrics)}
    cells = cells[cells["metric"].isin(rank)].assign(order=cells["metric"].map(rank))
    sets = {name: at for at, name in enumerate(dict.fromkeys(cells["dataset"]))}
    strata = {name: at for at, name in enumerate(where)}
    order = np.lexsort(
        (cells["order"], cells["stratum"].map(strata), cells["dataset"].map(sets))
    )  # as study_table has it
    cells = cells.iloc[order].drop(columns="order").reset_index(drop=True)
    return adjusted(cells, n_boot)
