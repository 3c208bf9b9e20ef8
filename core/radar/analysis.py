"""The analysis "transfer": the sources of a dataset that would help a target domain.

RADAR (arXiv 2605.23028) on stored features, every blend ranked, set against the null, the
plain baselines and, where labels and a split are there, the gain a probe really makes.

Defaults. Of the proposals in section 10 of our specification, on the six emoji styles with
ViT-S/14 (31 blends a target, gains at C = .05, 6 items a class, 4 seeds; mean rho over the
targets, blend size alone .25):

- anchors from the blend is confirmed (.44; from the target .23 on three targets, against .36);
- spherical geometry and late layers are not: every mix of sphere or flat, late or all layers,
  any or same class lies between .42 and .46. So the paper's own flat geometry and all layers
  stay, where the triangle on the page and the bound on d are exact;
- one Gaussian in closed form: its noise floor is a third of a three-component mixture's at
  2,000 pairs, and all 31 blends take two seconds.
- the distance of the two mean features foretells these gains as well (.45; of class means .46):
  the page shows both beside the score and says which did best;
- the stored study (``core/radar/study.py``: four image encoders on the six styles, a text encoder
  on six languages) confirms the first two points over encoders: anchors from the target cost .03
  and .25, sphere and late layers add -.02 to +.03 on pictures and up to .09 on texts;
- a probe with C = 1 and 10 items a class overfits on this many features (gains mostly
  negative, rho .20): C = .05 and 6 items are the defaults of the measured gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.device import single_threaded
from core.errors import BadInput
from core.radar.measures import correlate
from core.radar.rows import DomainRows
from core.radar.types import RadarConfig
from core.results import Result

if TYPE_CHECKING:
    from core.radar.types import BlendRanking, Domain, RadarResult
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer"
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "model": "demo/vit-s14",
    "target": "twemoji",
    "sources": [],
    "layers": "all",
    "geometry": "euclidean",
    "angle_mode": "stable",
    "label_mode": "any",
    "direction": "blend",
    "density": "gaussian",
    "mode": "joint",
    "descriptors": "both",
    "pool": "halves",
    "n_pairs": 2_000,
    "repeats": 5,
    "seed": 0,
    "gain": True,
    "gain_per_class": 6,
    "gain_seeds": 4,
    "gain_c": 0.05,
}

# 31 blends x 4 seeds of probes take some ten seconds; 63 blends would be a job of minutes.
MOST_GAIN_SOURCES = 5
SHOWN_PAIRS = 200
_CONFIG = (
    "layers", "geometry", "angle_mode", "label_mode", "direction", "density", "mode",
    "descriptors", "pool", "n_pairs", "repeats", "seed",
)  # fmt: skip


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters and fill in target and sources.

    Raises
    ------
    BadInput
        An unknown domain or choice, the target among the sources, or fewer than two domains.
    NotFound
        No such dataset or features.
    """
    full = {**DEFAULTS, **params}
    dataset = workspace.dataset(str(full["dataset"]))
    domains = sorted(set(dataset.items["domain"]) - {""})
    if len(domains) < 2:
        raise BadInput(
            f"Dataset {dataset.name!r} has {len(domains)} domains, transfer needs two.",
            "Give a column 'domain' when importing.",
        )
    target = str(full["target"] or domains[0])
    if target == DEFAULTS["target"] and target not in domains:
        target = domains[0]  # the demo's target, in a dataset of other domains
    sources = list(full["sources"] or [name for name in domains if name != target])
    for name in (target, *sources):
        if name not in domains:
            raise BadInput(
                f"{name!r} is not a domain of {dataset.name!r}.", f"Known: {', '.join(domains)}."
            )
    if target in sources:
        raise BadInput(f"target={target!r} is also among the sources.", "Leave it out of them.")
    full |= {"target": target, "sources": sorted(set(sources))}
    if isinstance(full["layers"], list | tuple):
        full["layers"] = list(full["layers"])
    _config(full)
    _check_widths(workspace, full)
    return full


def _check_widths(workspace: Workspace, params: dict[str, Any]) -> None:
    """Refuse an encoder without two neighbouring states of equal width, before any work."""
    arrays = workspace.features.get(params["dataset"], params["model"]).arrays
    widths = [array.shape[1] for array in arrays.values()]
    if not any(a == b for a, b in pairwise(widths)):
        shown = ", ".join(f"{n} ({w})" for n, w in zip(arrays, widths, strict=True))
        raise BadInput(
            f"{params['model']} has no two neighbouring layers of equal width here: {shown}.",
            "RADAR needs a residual stream: choose an encoder extracted at all its blocks.",
        )


def _config(params: dict[str, Any]) -> RadarConfig:
    return RadarConfig(**{name: params[name] for name in _CONFIG})


def config_options(params: dict[str, Any]) -> dict[str, Any]:
    """Return the choices of a score among resolved parameters, checked, as keyword arguments.

    Raises
    ------
    BadInput
        A choice is not known.
    """
    config = _config(params)
    return {name: getattr(config, name) for name in _CONFIG}


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Rank all blends, measure the gain where it can be measured, and put it into words."""
    # Mixtures of a few dozen columns and probes of a few hundred rows: on two threads the
    # demo's six targets took three to five times as long as on one.
    with single_threaded():
        return _compute(workspace, params, progress)


def _compute(workspace: Workspace, params: dict[str, Any], progress: Progress | None) -> Result:
    from core.radar.curves import density_table
    from core.radar.score import rank_blends
    from core.radar.verdict import decide, headline

    report = progress or (lambda _fraction, _message: None)
    report(0.0, "Reading features")
    data = DomainRows(workspace, params)
    domains = {name: data.domain(name) for name in (params["target"], *params["sources"])}
    target = domains[params["target"]]
    config = _config(params)
    options = config_options(params)
    ranking = rank_blends(
        target,
        {name: domains[name] for name in params["sources"]},
        progress=lambda fraction, message: report(0.5 * fraction, message),
        **options,
    )
    far = class_distance(target, options)
    singles = {name: ranking.results[name] for name in params["sources"]}
    decisions = decide(singles, far)
    table, measures, gain = _with_truth(data, params, ranking, report)
    first = next(iter(singles.values()))
    return Result(
        KIND,
        params,
        {
            "headline": headline(decisions),
            "n": len(target),
            "n_sources": {name: len(domains[name]) for name in params["sources"]},
            "model": params["model"],
            "target": params["target"],
            "null": first.null, "null_sd": first.null_sd,
            "far": far if far is not None else float("nan"),
            "best_blend": str(table["blend"].iloc[0]),
            "worst_blend": str(table["blend"].iloc[-1]),
            "layers": list(first.kept_layers),
            "label_mode": config.label_mode,
            "n_pairs": config.n_pairs, "repeats": config.repeats,
            "n_used": first.n_used, "n_masked": first.n_masked,
            "rows": data.rows_note,
            "warnings": list(ranking.warnings),
            "seconds_radar": ranking.seconds,
            "decisions": [vars(decision) for decision in decisions],
            **gain,
        },
        {
            "ranking": table,
            "per_layer": _per_layer(singles),
            "measures": measures,
            "densities": density_table(singles),
        },
        _shown_pairs(data, params, ranking, singles),
        (*data.left_out, *first.dropped_layers),
    )  # fmt: skip


def class_distance(target: Domain, options: dict[str, Any]) -> float | None:
    """Excess between random halves of the target's classes: the yardstick for "far"."""
    from core.radar.pairing import generator
    from core.radar.score import radar_score
    from core.radar.types import Domain

    if target.labels is None or len(np.unique(target.labels)) < 4:
        return None
    classes = np.unique(target.labels)
    plain = {**options, "label_mode": "any", "repeats": 1}
    scores = []
    for repeat in range(options["repeats"]):
        order = generator(options["seed"], "classes", target.name, repeat).permutation(classes)
        chosen = np.isin(target.labels, order[: len(classes) // 2])
        parts = [
            Domain(
                tuple(state[rows] for state in target.layers), None,
                f"{target.name} classes {side} {repeat}", target.layer_names,
            )
            for side, rows in (("a", chosen), ("b", ~chosen))
        ]  # fmt: skip
        if min(map(len, parts)) < 4:
            return None
        # A quarter of the target against a quarter: both readings carry the same floor.
        scores.append(radar_score(parts[1], parts[0], **plain).excess)
    return float(np.mean(scores))


def _with_truth(
    data: DomainRows, params: dict[str, Any], ranking: BlendRanking, report: Progress
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Add baselines and gains to the ranking; correlate every measure with the gain."""
    from core.transferability.gain import probe_gain

    table = _with_baselines(data, params, ranking.table)
    reason = _no_gain(data, params)
    facts: dict[str, Any] = {"gain": not reason, "gain_reason": reason}
    if reason:
        return table, pd.DataFrame(), facts
    began = time.perf_counter()
    out = probe_gain(
        data.labelled(params["target"]),
        data.labelled(params["target"], "test"),
        {name: data.labelled(name) for name in params["sources"]},
        [list(members) for members in table["members"]],
        per_class=params["gain_per_class"], seeds=params["gain_seeds"], c=params["gain_c"],
        seed=params["seed"],
        progress=lambda fraction, message: report(0.5 + 0.5 * fraction, message),
    )  # fmt: skip
    facts |= {
        "gain_baseline": out.baseline, "gain_baseline_sd": out.baseline_sd,
        "gain_n_test": out.n_test, "gain_seeds": out.seeds, "gain_per_class": out.per_class,
        "gain_c": params["gain_c"],
        "gain_layer": data.features.default_layer, "seconds_gain": time.perf_counter() - began,
    }  # fmt: skip
    table = table.merge(out.table.drop(columns="gain_seeds"), on="blend")
    measures = correlate(table, ranking.seconds)
    facts["rho"], facts["rho_p"] = float(measures["rho"].iloc[0]), float(measures["p"].iloc[0])
    return table, measures, facts


def _no_gain(data: DomainRows, params: dict[str, Any]) -> str:
    if not params["gain"]:
        return "switched off"
    if not data.has_labels:
        return "the items have no labels"
    if not data.has_split:
        return "the items have no train and test split"
    if len(params["sources"]) > MOST_GAIN_SOURCES:
        return f"more than {MOST_GAIN_SOURCES} sources"
    return ""


def _with_baselines(data: DomainRows, params: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    from core.transferability.simple import distance_of_class_means, distance_of_means

    began = time.perf_counter()
    x, y = data.labelled(params["target"])
    parts = {name: data.labelled(name) for name in params["sources"]}
    means, class_means = [], []
    for members in table["members"]:
        blend = np.concatenate([parts[name][0] for name in members])
        labels = np.concatenate([parts[name][1] for name in members])
        means.append(distance_of_means(x, blend))
        known = data.has_labels
        class_means.append(distance_of_class_means(x, y, blend, labels) if known else np.nan)
    out = table.assign(distance_of_means=means, distance_of_class_means=class_means)
    out.attrs["seconds_baselines"] = time.perf_counter() - began
    return out


def _per_layer(singles: dict[str, RadarResult]) -> pd.DataFrame:
    return pd.concat(
        [
            pd.DataFrame({
                "source": source, "layer": np.arange(len(out.kept_layers)),
                "name": list(out.kept_layers), "value": out.per_layer, "sd": out.per_layer_sd,
                "null": out.null_layer, "null_sd": out.null_layer_sd,
            })
            for source, out in singles.items()
        ],
        ignore_index=True,
    )  # fmt: skip


def _shown_pairs(
    data: DomainRows, params: dict[str, Any], ranking: BlendRanking, singles: dict[str, RadarResult]
) -> dict[str, np.ndarray]:
    """Return the first pairs of each source for the plane and the triangle.

    ``pair_ids`` (S, m, 3): item ids of anchor, within and cross partner. ``pair_theta``,
    ``pair_d`` (S, 2, m, L) and ``pair_sides`` (S, 2, m, L, 3): within first, then cross.
    """
    ids = {
        name: data.rows(name)["id"].to_numpy() for name in (params["target"], *params["sources"])
    }
    from_target = params["direction"] == "target"
    pairs, theta, d, sides = [], [], [], []
    for source in params["sources"]:
        rows = ranking.anchors[source][:SHOWN_PAIRS]
        own, other = (params["target"], source) if from_target else (source, params["target"])
        pairs.append(
            np.stack([ids[own][rows[:, 0]], ids[own][rows[:, 1]], ids[other][rows[:, 2]]], axis=1)
        )
        shown = [singles[source].within, singles[source].cross]
        theta.append(np.stack([part.theta[:SHOWN_PAIRS] for part in shown]))
        d.append(np.stack([part.d[:SHOWN_PAIRS] for part in shown]))
        sides.append(np.stack([part.sides[:SHOWN_PAIRS] for part in shown]))
    return {
        "pair_ids": np.stack(pairs).astype(np.int64),
        "pair_theta": np.stack(theta).astype(np.float32),
        "pair_d": np.stack(d).astype(np.float32),
        "pair_sides": np.stack(sides).astype(np.float32),
    }
