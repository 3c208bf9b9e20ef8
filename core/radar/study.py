"""The analysis "transfer-study": where RADAR foretells the gain on real encoders, and where not.

RADAR, arXiv 2605.23028, sections 3 and 4 of the paper rank blends by one divergence; which layers,
geometry, direction, density and labels it takes is not known to us. So every choice is tried, on
drawing styles under every image encoder and on languages under every text encoder: all targets,
all blends, every baseline, gains measured over seeds. A configuration is judged on targets that
had no part in its choice (leave one domain out).

A piece is one encoder with one target (:mod:`core.radar.study_pieces`) and is kept when it is
done: a study that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core.device import single_threaded
from core.errors import BadInput, NotFound
from core.radar.study_pieces import CONFIGS, piece
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-study"
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "datasets": [],
    "models": [],
    "domains": ["de", "en", "es", "ja", "ru", "zh"],
    "targets": [],
    "configs": [name for name in CONFIGS if name != "mixture"],
    "slow_configs": ["mixture"],
    "slow_models": ["demo/vit-s14", "demo/minilm-l6"],
    "measures": [],
    "slow_measures": ["otdd"],
    "n_pairs": 1_000,
    "repeats": 2,
    "gain_per_class": 6,
    "gain_seeds": 4,
    "gain_c": 0.05,
    "n_projections": 100,
    "seed": 0,
}
SETS = ("emoji", "names", "clipart")
# Three sources make seven blends: the fewest on which an order can be told from luck.
LEAST_DOMAINS, MOST_DOMAINS = 4, 8
_PIECE = (
    "n_pairs", "repeats", "gain_per_class", "gain_seeds", "gain_c", "n_projections", "seed",
)  # fmt: skip


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; empty ``datasets``, ``models`` and ``targets`` mean all there are.

    Raises
    ------
    BadInput
        An unknown configuration or measure, or a number out of range.
    NotFound
        A data set that is not here, or none with four domains and features.
    """
    from core.transferability.measures import MEASURES

    full = {**DEFAULTS, **params}
    for name in ("configs", "slow_configs"):
        for config in full[name]:
            if config not in CONFIGS:
                raise BadInput(
                    f"{name} holds {config!r}, which is not known.", f"Known: {', '.join(CONFIGS)}."
                )
    if "base" not in full["configs"]:
        raise BadInput("configs lacks 'base'.", "Every configuration is compared with it.")
    measures = list(full["measures"]) or [n for n, m in MEASURES.items() if not m.heavy]
    for name in (*measures, *full["slow_measures"]):
        if name not in MEASURES:
            raise BadInput(f"{name!r} is not a measure.", f"One of: {', '.join(MEASURES)}.")
    for name in (*_PIECE[:4], "n_projections"):
        if not isinstance(full[name], int) or full[name] < 1:
            raise BadInput(
                f"{name} must be a whole number of at least 1, got {full[name]!r}.",
                f"The default is {DEFAULTS[name]}.",
            )
    there = workspace.dataset_names()
    asked = [full["dataset"]] if full["dataset"] else list(full["datasets"])
    sets = [workspace.dataset(n).name for n in asked] or [n for n in SETS if n in there]
    models = sorted(full["models"] or {m for n in sets for m in encoders(workspace, n)})
    out = {**full, "dataset": "", "datasets": sets, "models": models, "measures": measures}
    if not cases(workspace, out):
        raise NotFound(
            f"No data set here has features and {LEAST_DOMAINS} domains or more.",
            "Extract features: `theodolite extract emoji demo/vit-s14`.",
        )
    return out


def encoders(workspace: Workspace, dataset: str) -> list[str]:
    """Return every encoder of a data set that reads its kind, towers of dual encoders included."""
    from core.encoders.registry import describe

    kind = workspace.dataset(dataset).kind
    found = []
    for model in sorted({e["model"] for e in workspace.features.list() if e["dataset"] == dataset}):
        try:
            about = describe(model, workspace)
        except NotFound:
            about = None
        # Only of the packaged encoders is it known what they read (captions of pictures, say);
        # any other is taken to be of this data set's kind.
        if about is None or not model.startswith("demo/") or about.modality == kind:
            found.append(model)
    return found


def domains_of(workspace: Workspace, dataset: str, params: dict[str, Any]) -> list[str]:
    """Return the domains studied: those named in ``domains``, all where none is named."""
    every = sorted(set(workspace.dataset(dataset).items["domain"]) - {""})
    named = [name for name in every if name in params["domains"]]
    return named or every


def cases(workspace: Workspace, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of every piece: data set, encoder, target."""
    shared = {name: params[name] for name in _PIECE}
    found = []
    for dataset in params["datasets"]:
        domains = domains_of(workspace, dataset, params)
        if not LEAST_DOMAINS <= len(domains) <= MOST_DOMAINS:
            continue
        for model in encoders(workspace, dataset):
            if model not in params["models"]:
                continue
            configs, measures = list(params["configs"]), list(params["measures"])
            if model in params["slow_models"]:
                configs += [name for name in params["slow_configs"] if name not in configs]
                measures += [name for name in params["slow_measures"] if name not in measures]
            found += [
                {
                    "dataset": dataset, "model": model, "target": target,
                    "sources": [name for name in domains if name != target],
                    "configs": configs, "measures": measures, **shared,
                }
                for target in domains
                if not params["targets"] or target in params["targets"]
            ]  # fmt: skip
    return found


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compute or collect every piece; what is stored is not done again.

    Returns
    -------
    Result
        See :func:`core.radar.study_tables.collect`.
    """
    from core.radar.study_tables import collect

    report = progress or (lambda _fraction, _message: None)
    todo = cases(workspace, params)
    done: list[tuple[dict[str, Any], Result]] = []
    left = [
        LeftOut(name, _unusable(len(domains_of(workspace, name, params))))
        for name in params["datasets"]
        if name not in {case["dataset"] for case in todo}
    ]
    with single_threaded():
        for number, case in enumerate(todo):
            words = f"{case['dataset']}, {case['model']}, target {case['target']}"

            def told(fraction: float, message: str, at: int = number, what: str = words) -> None:
                report(min((at + fraction) / len(todo), 0.99), f"{what}: {message}")

            try:
                done.append((case, piece(workspace, case, told)))
            except BadInput as err:
                left.append(LeftOut(words, err.message))
    if not done:
        raise BadInput(
            "None of the data sets can be studied: " + " ".join(line.reason for line in left),
            "Check their labels and their split by concept.",
        )
    return collect(params, done, tuple(left))


def _unusable(n: int) -> str:
    if n < LEAST_DOMAINS:
        blends = max(2 ** (n - 1) - 1, 0)
        return (
            f"{n} domain{'s' * (n != 1)} and {blends} blend{'s' * (blends != 1)} a target: no "
            f"order to foretell (at least {LEAST_DOMAINS} domains)"
        )
    if n > MOST_DOMAINS:
        return f"{n} domains make too many blends to train on (at most {MOST_DOMAINS})"
    return "no encoder of its kind has features of it"
