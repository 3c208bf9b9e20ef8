"""The analysis "transfer-truth": what adding each blend really gained, and what foretold it.

RADAR, arXiv 2605.23028, Eq. 2-3 and section 7 of our specification: the gain of a probe on the
target's test items for every blend, with many seeds and their interval, beside RADAR's score and
every baseline, each correlated with the gain. It takes minutes and runs as a job; the page of a
ranking is there without it.

Axes: B blends, S seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.device import single_threaded
from core.errors import BadInput
from core.radar import analysis
from core.radar.rows import DomainRows
from core.results import Result

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-truth"
_RADAR = tuple(name for name in analysis.DEFAULTS if not name.startswith("gain"))
DEFAULTS: dict[str, Any] = {
    **{name: analysis.DEFAULTS[name] for name in _RADAR},
    "gain_per_class": 6,
    "gain_seeds": 12,
    "gain_c": 0.05,
    "measures": [],
    "n_projections": 200,
}
MOST_SOURCES = 7  # 127 blends; eight sources would double the minutes


@dataclass(frozen=True)
class Truth:
    """Gains and baselines of the blends of one target.

    Attributes
    ----------
    gains : ndarray of float64, shape (S, B)
    baseline, baseline_sd : float
        Accuracy with the target's own training rows alone.
    n_test, n_train : int
        The target's test items, and the training items it has in all.
    leaks : int
        Test concepts of the target found among the sources' items; always 0, or it would raise.
    values : DataFrame
        blend, and one column a baseline.
    seconds : dict
        Of each baseline, over all blends; ``gain`` of the probes.
    unavailable : dict
        Baselines that have no value, and why.
    """

    gains: np.ndarray
    baseline: float
    baseline_sd: float
    n_test: int
    n_train: int
    leaks: int
    values: pd.DataFrame
    seconds: dict[str, float]
    unavailable: dict[str, str]


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; target and sources are filled in as for "transfer".

    Raises
    ------
    BadInput
        An unknown measure, fewer than one seed, or more than seven sources.
    NotFound
        No such dataset or features.
    """
    from core.transferability.measures import MEASURES

    full = {**DEFAULTS, **params}
    base = analysis.resolve(workspace, {name: full[name] for name in _RADAR})
    full |= {name: base[name] for name in _RADAR}
    full["measures"] = list(full["measures"]) or [n for n, m in MEASURES.items() if not m.heavy]
    for name in full["measures"]:
        if name not in MEASURES:
            raise BadInput(f"{name!r} is not a measure.", f"One of: {', '.join(MEASURES)}.")
    for name in ("gain_per_class", "gain_seeds", "n_projections"):
        if not isinstance(full[name], int) or full[name] < 1:
            raise BadInput(
                f"{name} must be a whole number of at least 1, got {full[name]!r}.",
                f"The default is {DEFAULTS[name]}.",
            )
    if len(full["sources"]) > MOST_SOURCES:
        raise BadInput(
            f"{len(full['sources'])} sources have {2 ** len(full['sources']) - 1:,} blends, more "
            "than can be trained on.", f"Choose at most {MOST_SOURCES} sources.",
        )  # fmt: skip
    return full


def measure(
    data: DomainRows,
    params: dict[str, Any],
    blends: Sequence[Sequence[str]],
    report: Progress = lambda _fraction, _message: None,
) -> Truth:
    """Return gains and baselines of blends; ``params`` as resolved.

    Raises
    ------
    BadInput
        No labels or no split, or a source item that shows a concept of the test set.
    """
    from core.transferability.gain import probe_gain
    from core.transferability.measures import measure_blends

    if not (data.has_labels and data.has_split):
        missing = "labels" if not data.has_labels else "train and test split"
        raise BadInput(
            f"The items have no {missing}, so a gain cannot be measured.",
            "Import the dataset with the columns 'label' and 'split'.",
        )
    leaks = count_leaks(data, params["target"], params["sources"])
    if leaks:
        raise BadInput(
            f"{leaks} test concepts of {params['target']!r} are among the sources' items.",
            "Split by concept: the same thing in another domain is a leak.",
        )
    train, test = data.labelled(params["target"]), data.labelled(params["target"], "test")
    sources = {name: data.labelled(name) for name in params["sources"]}
    began = time.perf_counter()
    out = probe_gain(
        train, test, sources, blends, per_class=params["gain_per_class"],
        seeds=params["gain_seeds"], c=params["gain_c"], seed=params["seed"],
        progress=lambda fraction, words: report(0.7 * fraction, words),
    )  # fmt: skip
    took = time.perf_counter() - began
    table = measure_blends(
        train, sources, blends, names=params["measures"], seed=params["seed"],
        n_projections=params["n_projections"],
        progress=lambda fraction, words: report(0.7 + 0.3 * fraction, words),
    )  # fmt: skip
    gains = np.stack(out.table["gain_seeds"].to_list(), axis=1)
    return Truth(
        gains, out.baseline, out.baseline_sd, out.n_test, len(train[1]), leaks, table.values,
        {**table.seconds, "gain": took}, dict(table.unavailable),
    )  # fmt: skip


def count_leaks(data: DomainRows, target: str, sources: Sequence[str]) -> int:
    """Return how many concepts of the target's test items the training rows show.

    0 without a column ``concept``: then nothing is known of what is drawn twice.
    """
    if "concept" not in data.items.columns:
        return 0
    held = set(data.rows(target, "test")["concept"])
    shown = {c for name in (target, *sources) for c in data.rows(name)["concept"]}
    return len(held & shown)


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Score, train and correlate.

    Returns
    -------
    Result
        Tables ``blends`` (a row a blend: members, size, score, gain with its interval, every
        baseline), ``measures`` (rho, p, Kendall ...) and ``seeds`` (blend, seed, gain).
    """
    with single_threaded():
        return _compute(workspace, params, progress or (lambda _fraction, _message: None))


def _compute(workspace: Workspace, params: dict[str, Any], report: Progress) -> Result:
    from core.radar.score import rank_blends
    from core.transferability.foretell import gain_interval, reliability
    from core.transferability.measures import MEASURES

    data = DomainRows(workspace, params)
    domains = {name: data.domain(name) for name in (params["target"], *params["sources"])}
    options = analysis.config_options(params)
    ranking = rank_blends(
        domains[params["target"]], {name: domains[name] for name in params["sources"]},
        progress=lambda fraction, words: report(0.2 * fraction, words), **options,
    )  # fmt: skip
    blends = [list(members) for members in ranking.table["members"]]
    truth = measure(data, params, blends, lambda f, words: report(0.2 + 0.8 * f, words))
    table = ranking.table[
        ["blend", "members", "n_members", "size", "score", "sd", "joint", "per_layer"]
    ].merge(truth.values.drop(columns="size", errors="ignore"), on="blend")
    table = pd.concat([table, gain_interval(truth.gains)], axis=1)
    lines = [("RADAR", "score", "lower", ranking.seconds, "", "")]
    lines += [
        (m.label, name, m.better, truth.seconds[name], m.adapted, truth.unavailable.get(name, ""))
        for name, m in ((name, MEASURES[name]) for name in params["measures"])
    ]
    measures = measure_table(table, truth.gains, lines)
    best = measures.loc[measures["rho"].idxmax()] if measures["rho"].notna().any() else None
    return Result(
        KIND, params,
        {
            "headline": _headline(measures, best),
            "n": truth.n_test, "n_train": truth.n_train, "leaks": truth.leaks,
            "baseline": truth.baseline, "baseline_sd": truth.baseline_sd,
            "reliability": reliability(truth.gains), "layer": data.features.default_layer,
            "seconds_gain": truth.seconds["gain"], "warnings": list(ranking.warnings),
        },
        {
            "blends": table, "measures": measures,
            "seeds": pd.DataFrame({
                "blend": np.tile(table["blend"], len(truth.gains)),
                "seed": np.repeat(np.arange(len(truth.gains)), len(table)),
                "gain": truth.gains.ravel(),
            }),
        },
        left_out=tuple(data.left_out),
    )  # fmt: skip


def measure_table(
    table: pd.DataFrame, gains: np.ndarray, lines: Sequence[tuple[str, str, str, float, str, str]]
) -> pd.DataFrame:
    """Correlate columns of a table of blends with their gains.

    Parameters
    ----------
    table : DataFrame
        A row a blend; ``n_members`` and the columns named in ``lines``.
    gains : ndarray, shape (S, B)
    lines : sequence of (title, column, better, seconds, adapted, reason it has no value)

    Returns
    -------
    DataFrame
        measure, column, better, rho, p, exact, kendall, kendall_p, rho_within_size, rho_sd, n,
        seconds, note, best first; a measure without a value stands last with its reason.
    """
    from core.transferability.foretell import foretell

    sizes = table["n_members"].to_numpy()
    rows = []
    for title, column, better, took, adapted, reason in lines:
        values = table[column].to_numpy(dtype=float)
        found = foretell(np.full(len(table), np.nan) if reason else values, gains, sizes,
                         better=better)  # fmt: skip
        flat = np.isfinite(values).any() and np.ptp(values[np.isfinite(values)]) == 0
        why = reason or ("the same for every blend: it cannot rank them" if flat else "")
        if not why and not np.isfinite(found.rho):
            why = "all blends gained alike: there is no order to foretell"
        rows.append({
            "measure": title, "column": column, "better": better, **asdict(found),
            "seconds": took, "note": f"n/a: {why}" if why else adapted,
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values("rho", ascending=False, ignore_index=True)


def _headline(measures: pd.DataFrame, best: pd.Series | None) -> str:
    if best is None:
        return "All blends gained alike, so there is no order to foretell."
    radar = measures.loc[measures["column"] == "score"].iloc[0]
    if best["column"] == "score":
        return f"RADAR foretells the gain best here: rho {radar['rho']:+.2f}, p {radar['p']:.3f}."
    return (
        f"{best['measure']} foretells the gain best here (rho {best['rho']:+.2f}); "
        f"RADAR has {radar['rho']:+.2f}, p {radar['p']:.3f}."
    )
