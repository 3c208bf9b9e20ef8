"""The analysis "transfer-robustness": whether the answer stands when the settings are changed.

RADAR, arXiv 2605.23028, reports ablations over subsampling, density, transport and geometry. Here
one setting at a time is changed from what the page shows: pairs, seeds, density, components,
geometry, layers, direction, partners, descriptors. Each variant gives the ranking of all blends,
the advice on every source, and how alike two variants rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.device import single_threaded
from core.errors import BadInput
from core.radar import analysis
from core.radar.rows import DomainRows
from core.radar.types import LAYER_DENSITIES
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.radar.types import BlendRanking
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-robustness"
_RADAR = tuple(name for name in analysis.DEFAULTS if not name.startswith("gain"))
DEFAULTS: dict[str, Any] = {
    **{name: analysis.DEFAULTS[name] for name in _RADAR},
    "pair_counts": [250, 500, 1_000, 2_000, 4_000],
    "seeds": [1, 2, 3],
    "slow": True,
}
SHOWN = "as shown"
# Mixtures and transport take seconds a blend: one repeat, and sources alone.
SLOW: dict[str, dict[str, Any]] = {
    "mixture": {"density": "gmm"},
    "mixture, K = 1": {"density": "gmm", "n_components": (1,), "n_components_layer": (1,)},
    "mixture, K = 3": {"density": "gmm", "n_components": (3,), "n_components_layer": (3,)},
    "kernel density": {"density": "kde", "mode": "per_layer"},
    "sliced transport": {"density": "sliced"},
}
_QUICK: dict[str, tuple[str, dict[str, Any]]] = {
    "Euclidean": ("geometry", {"geometry": "euclidean"}),
    "sphere": ("geometry", {"geometry": "sphere"}),
    "Poincaré": ("geometry", {"geometry": "poincare"}),
    "all layers": ("layers", {"layers": "all"}),
    "late layers": ("layers", {"layers": "late"}),
    "anchors from the blend": ("direction", {"direction": "blend"}),
    "anchors from the target": ("direction", {"direction": "target"}),
    "any class": ("partners", {"label_mode": "any"}),
    "same class": ("partners", {"label_mode": "same"}),
    "theta and d": ("descriptors", {"descriptors": "both"}),
    "theta alone": ("descriptors", {"descriptors": "theta"}),
    "d alone": ("descriptors", {"descriptors": "d"}),
    "all layers jointly": ("reading", {"mode": "joint"}),
    "mean over layers": ("reading", {"mode": "per_layer"}),
    "histogram": ("density", {"density": "histogram", "mode": "per_layer"}),
}


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; target and sources are filled in as for "transfer".

    Raises
    ------
    BadInput
        A number of pairs below 50, a seed below 0, or what "transfer" refuses.
    NotFound
        No such dataset or features.
    """
    full = {**DEFAULTS, **params}
    base = analysis.resolve(workspace, {name: full[name] for name in _RADAR})
    full |= {name: base[name] for name in _RADAR}
    for name, least in (("pair_counts", 50), ("seeds", 0)):
        values = list(full[name])
        if any(not isinstance(v, int) or v < least for v in values):
            raise BadInput(
                f"{name} holds {values!r}, expected whole numbers of at least {least}.",
                f"The default is {DEFAULTS[name]}.",
            )
        full[name] = sorted(set(values))
    return full


def variants(params: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return name -> (group, what is changed); a variant equal to what is shown is left away."""
    found: dict[str, tuple[str, dict[str, Any]]] = {SHOWN: ("", {})}
    found |= {f"{n:,} pairs": ("pairs", {"n_pairs": n}) for n in params["pair_counts"]}
    found |= {f"seed {s}": ("seed", {"seed": s}) for s in params["seeds"]}
    found |= _QUICK
    if params["slow"]:
        found |= {name: ("density", {**change, "repeats": 1}) for name, change in SLOW.items()}
    return {
        name: (group, change)
        for name, (group, change) in found.items()
        if name == SHOWN or any(params.get(key) != value for key, value in change.items())
    }


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Rank the blends under every variant.

    Returns
    -------
    Result
        ``variants`` (variant, group, agreement with what is shown, blends, nearest, seconds),
        ``sources`` (variant, source: score, sd, null, excess, advice), ``agreement`` (a, b, rho:
        Spearman of two variants' rankings) and ``stability`` (source: shown advice, share of
        the variants with a yardstick that give the same).
    """
    with single_threaded():
        return _compute(workspace, params, progress or (lambda _fraction, _message: None))


def _compute(workspace: Workspace, params: dict[str, Any], report: Progress) -> Result:
    data = DomainRows(workspace, params)
    target = data.domain(params["target"])
    domains = {name: data.domain(name) for name in params["sources"]}
    base = analysis.config_options(params)
    scores: dict[str, pd.Series] = {}
    lines, sources, left = [], [], []
    todo = variants(params)
    for index, (name, (group, change)) in enumerate(todo.items()):
        report(index / len(todo), f"{index + 1} of {len(todo)}: {name}")
        options = {**base, **change}
        if options["density"] in LAYER_DENSITIES:
            options["mode"] = "per_layer"
        try:
            out, blends = _rank(target, domains, options, slow=name in SLOW)
        except BadInput as err:
            left.append(LeftOut(name, err.message))
            continue
        scores[name] = blends
        sources += _sources(name, group, out, target, params["sources"], options, change)
        lines.append({
            "variant": name, "group": group, "blends": len(blends),
            "nearest": str(blends.idxmin()), "seconds": out.seconds,
        })  # fmt: skip
    wide = pd.DataFrame(scores)
    agreement = _agreement(wide)
    table = pd.DataFrame(lines)
    own = agreement[agreement["a"] == SHOWN].set_index("b")["rho"]
    table["agreement"] = table["variant"].map(own).to_numpy()
    frame = pd.DataFrame(sources)
    stability = stable(frame)
    return Result(
        KIND, params,
        {"headline": _headline(stability, table), "n": len(target), "variants": len(table)},
        {"variants": table, "sources": frame, "agreement": agreement, "stability": stability},
        left_out=(*data.left_out, *left),
    )  # fmt: skip


def _rank(
    target: Any, domains: dict[str, Any], options: dict[str, Any], *, slow: bool
) -> tuple[BlendRanking, pd.Series]:
    """Rank all blends; under a slow density the single sources only."""
    from core.radar.score import rank_blends, score_blends

    out = (
        score_blends(target, domains, [(name,) for name in domains], **options)
        if slow
        else rank_blends(target, domains, **options)
    )
    return out, out.table.set_index("blend")["score"]


def _sources(
    name: str, group: str, out: BlendRanking, target: Any, sources: list[str],
    options: dict[str, Any], change: dict[str, Any],
) -> list[dict[str, Any]]:  # fmt: skip
    from core.radar.verdict import decide

    singles = {source: out.results[source] for source in sources}
    # One repeat has no spread, so there is no advice; and the yardstick is read anew, because
    # its size goes with the settings.
    many = options["repeats"] > 1
    far = analysis.class_distance(target, options) if many else None
    advice = {d.source: d.decision for d in decide(singles, far)} if many else {}
    pairs = options["n_pairs"]
    return [
        {
            "variant": name, "group": group, "source": source, "n_pairs": pairs,
            "score": r.score, "sd": r.sd, "null": r.null, "null_sd": r.null_sd,
            "excess": r.excess, "excess_sd": r.excess_sd,
            "far": float("nan") if far is None else far, "advice": advice.get(source, ""),
        }
        for source, r in singles.items()
    ]  # fmt: skip


def _agreement(wide: pd.DataFrame) -> pd.DataFrame:
    from core.radar.study_reading import rank_agreement

    square = rank_agreement(wide)
    out = square.rename_axis("a").reset_index().melt(id_vars="a", var_name="b", value_name="rho")
    return out[["a", "b", "rho"]]


def stable(frame: pd.DataFrame) -> pd.DataFrame:
    """Count for each source how many variants give the advice that is shown.

    Parameters
    ----------
    frame : DataFrame
        variant, source, advice ("" where a variant gives none).

    Returns
    -------
    DataFrame
        source, shown, same, of, add, leave_out, cannot_tell.
    """
    rows = []
    for source, mine in frame.groupby("source", sort=False):
        shown = mine.loc[mine["variant"] == SHOWN, "advice"]
        others = mine[(mine["variant"] != SHOWN) & (mine["advice"] != "")]["advice"]
        word = str(shown.iloc[0]) if len(shown) else ""
        counts = others.value_counts()
        rows.append({
            "source": source, "shown": word, "same": int((others == word).sum()),
            "of": len(others), "add": int(counts.get("add", 0)),
            "leave_out": int(counts.get("leave out", 0)),
            "cannot_tell": int(counts.get("cannot tell", 0)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _headline(stability: pd.DataFrame, table: pd.DataFrame) -> str:
    if not len(stability) or not stability["of"].sum():
        return "No variant gives advice: with one repeat there is no interval."
    share = stability["same"] / stability["of"].clip(lower=1)
    shaky = list(stability.loc[share < 0.8, "source"])
    others = table[table["variant"] != SHOWN]["agreement"].dropna()
    least = f"{others.min():+.2f}" if len(others) else "n/a"
    typical = f"{np.median(others):+.2f}" if len(others) else "n/a"
    words = (
        "The advice stands under nearly every setting."
        if not shaky
        else f"The advice on {', '.join(shaky)} depends on the settings."
    )
    return f"{words} Rankings agree with what is shown by rho {typical} (least {least})."
