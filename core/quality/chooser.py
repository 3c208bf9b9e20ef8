"""Which metric to trust for a class of models, and how the user's encoders rank by it.

Evidence comes from a measured population: a metric is proposed for a class only where its
correlation with accuracy is clear there; models of different classes are ranked together only
where pooled and within-class correlations agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.quality.claims import WITHIN, Trust, trust
from core.quality.population import METRICS, STUDY
from core.quality.study import simpson_check
from core.stats.intervals import wilson_interval


@dataclass(frozen=True)
class Choice:
    """The metric to use, or why there is none.

    Attributes
    ----------
    metric : str
        Column of :data:`core.quality.population.METRICS`; empty when refused.
    sign : {-1, 1}
        Whether higher or lower values are better.
    rho, lo, hi : float
        Mean rho over the data sets, and the lowest and highest interval bound among them;
        signed so that positive supports the metric.
    reason : str
        In words.
    table : tuple of Trust
        The verdict on every metric.
    """

    metric: str
    sign: int
    rho: float
    lo: float
    hi: float
    reason: str
    table: tuple[Trust, ...]


def choose_metric(
    cells: pd.DataFrame,
    stratum: str,
    *,
    datasets: Sequence[str] | None = None,
    metrics: Sequence[str] = STUDY,
) -> Choice:
    """Return the most reliable metric for a class of models.

    Parameters
    ----------
    cells : DataFrame
        From :func:`core.quality.population.study_table`.
    stratum : str
        "All", an architecture class or an objective group. For "All" a metric whose sign turns
        round within the architecture classes on any data set is refused.
    datasets : sequence of str, optional
        Those that resemble the user's (default: all).
    metrics : sequence of str
        Candidates.

    Raises
    ------
    BadInput
        The stratum is not there.
    """
    if stratum not in set(cells["stratum"]):
        raise BadInput(
            f"There is no stratum {stratum!r}.",
            f"Choose one of: {', '.join(set(cells['stratum']))}.",
        )
    kept = cells if datasets is None else cells[cells["dataset"].isin(list(datasets))]
    judged = trust(kept, stratum, metrics)
    turned = _reversed(kept, metrics) if stratum == "All" else {}
    mean = kept[kept["stratum"] == stratum].groupby("metric", sort=False)["rho"].mean().abs()
    trusted = [t.metric for t in judged if t.verdict == "trust" and t.metric not in turned]
    nan = float("nan")
    if not trusted:
        return Choice("", 1, nan, nan, nan, _refusal(stratum, judged, turned), tuple(judged))
    metric = max(trusted, key=lambda name: float(mean[name]))  # the first of equals
    rows = kept[(kept["stratum"] == stratum) & (kept["metric"] == metric) & kept["rho"].notna()]
    sign = int(np.sign(rows["rho"].mean())) or 1
    low = float((sign * rows[["lo", "hi"]]).min(axis=None))
    high = float((sign * rows[["lo", "hi"]]).max(axis=None))
    way = "higher" if sign > 0 else "lower"
    words = (
        f"{METRICS[metric][0]}, {way} is better: mean rho {sign * rows['rho'].mean():.2f} over "
        f"{len(rows)} data sets, intervals from {low:.2f} to {high:.2f}"
    )
    return Choice(metric, sign, float(sign * rows["rho"].mean()), low, high, words, tuple(judged))


def _reversed(cells: pd.DataFrame, metrics: Sequence[str]) -> dict[str, int]:
    """Return metrics whose pooled sign differs from that within classes, with the set count."""
    # The sets take the targets' place: one pass for all of them.
    rows = cells[cells["metric"].isin(list(metrics))]
    checked = simpson_check(rows.assign(target=rows["dataset"]), within=WITHIN)
    out: dict[str, int] = {}
    for metric in checked.loc[checked["reversed"], "metric"]:
        out[str(metric)] = out.get(str(metric), 0) + 1
    return out


def _refusal(stratum: str, judged: Sequence[Trust], turned: Mapping[str, int]) -> str:
    if stratum == "All" and turned:
        names = ", ".join(METRICS[m][0] for m in turned)
        return (
            f"No metric ranks models of different classes reliably: within the classes the sign "
            f"differs for {names}. Choose one architecture class."
        )
    clear = [t for t in judged if t.n_right or t.n_wrong]
    if not clear:
        return "No metric goes clearly with accuracy here; label a few hundred items and use 1-NN."
    return "No metric is clear on two thirds of the data sets; label a few hundred items instead."


#: Per stratum: the registry's column of published accuracy and what it is. Never mixed.
_PUBLISHED = {
    "self-supervised": ("reported_linear_in1k", "ImageNet-1k, linear probe"),
    "": ("top1_in1k", "ImageNet-1k, fine-tuned head"),
}
#: Strata :func:`models_to_try` knows.
PUBLISHED_STRATA = ("All", *WITHIN, "supervised", "self-supervised")
#: Test pictures of ImageNet-1k, for the interval of a published accuracy.
_IMAGENET_TEST = 50_000


def models_to_try(stratum: str, *, k: int = 5) -> pd.DataFrame:
    """Return published models of a class to begin with: the best of each family, k of them.

    Parameters
    ----------
    stratum : str
        An architecture class or an objective group. For "All" the best of each class is
        returned in the order of the classes: across them nothing is ranked.
    k : int
        How many families.

    Returns
    -------
    DataFrame
        id, architecture, family, params_M, license, accuracy, lo, hi (percent; Wilson's 95 %
        over 50,000 test pictures), protocol.

    Raises
    ------
    BadInput
        The stratum is unknown or k below 1.

    Examples
    --------
    >>> set(models_to_try("ConvNeXt", k=2)["architecture"])
    {'ConvNeXt'}
    """
    from core.quality.registry import model_registry

    table = model_registry()
    column, protocol = _PUBLISHED.get(stratum, _PUBLISHED[""])
    masks = {"All": np.ones(len(table), dtype=bool)} | {
        name: (table["arch_class"] == name).to_numpy() for name in WITHIN
    }
    masks["supervised"] = (table["objective_group"] == "supervised").to_numpy()
    masks["self-supervised"] = (table["objective_group"] == "ssl").to_numpy()
    if stratum not in masks or k < 1:
        raise BadInput(
            f"stratum={stratum!r}, k={k}: nothing to choose from.",
            f"Choose one of: {', '.join(masks)}; k at least 1.",
        )
    rows = table[masks[stratum] & table[column].notna().to_numpy()]
    rows = rows.sort_values([column, "id"], ascending=[False, True], kind="stable")
    if stratum == "All":
        best = rows.drop_duplicates("arch_class").set_index("arch_class", drop=False)
        rows = best.loc[[name for name in WITHIN if name in best.index]]
    else:
        rows = rows.drop_duplicates("family").head(k)
    bounds = [wilson_interval(round(v / 100 * _IMAGENET_TEST), _IMAGENET_TEST)
              for v in rows[column]]  # fmt: skip
    return pd.DataFrame(
        {
            "id": rows["id"].to_numpy(), "architecture": rows["arch_class"].to_numpy(),
            "family": rows["family"].to_numpy(), "params_M": rows["params_M"].to_numpy(),
            "license": rows["license"].to_numpy(), "accuracy": rows[column].to_numpy(),
            "lo": [100 * b.lo for b in bounds], "hi": [100 * b.hi for b in bounds],
            "protocol": protocol,
        }
    )  # fmt: skip


def rank_by(values: pd.DataFrame, sign: int) -> pd.DataFrame:
    """Return encoders ordered by a metric, saying which cannot be told from the first.

    Parameters
    ----------
    values : DataFrame
        Columns model, value, lo, hi (the band over subsamples; NaN where there is none).
    sign : {-1, 1}
        Whether higher or lower is better.

    Returns
    -------
    DataFrame
        The rows best first with ``place`` and ``tied`` (its band overlaps that of the first).
        Encoders without a value come last, without a place.

    Examples
    --------
    >>> t = pd.DataFrame({"model": ["a", "b"], "value": [1.0, 3.0], "lo": [0.9, 2.9],
    ...                   "hi": [1.1, 3.1]})
    >>> rank_by(t, 1)["model"].tolist(), rank_by(t, 1)["tied"].tolist()
    (['b', 'a'], [True, False])
    """
    known = values[np.isfinite(values["value"].astype(float))]
    ordered = known.iloc[np.argsort(-sign * known["value"].to_numpy(dtype=float), kind="stable")]
    ordered = ordered.assign(place=np.arange(1, len(ordered) + 1))
    low = ordered["lo"].fillna(ordered["value"]).astype(float)
    high = ordered["hi"].fillna(ordered["value"]).astype(float)
    if len(ordered):
        overlap = (low <= high.iloc[0]) & (high >= low.iloc[0])
        ordered = ordered.assign(tied=overlap)
    rest = values[~values.index.isin(known.index)]
    return pd.concat([ordered, rest], ignore_index=True)
