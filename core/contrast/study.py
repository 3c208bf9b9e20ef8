"""The analysis "contrast-study": every ordered pair of image encoders on every image data set.

KODA (arXiv 2606.04180) at the automatic scale, image only and image with caption, both ways;
for each pair the test of section 9.5 of the project's specification: at least three of the
first five sets hold 80 % of one style or of one label, and fewer do where the bandwidths
follow the median rule.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.device import single_threaded
from core.errors import BadInput, NotFound
from core.results import Result

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "contrast-study"
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "datasets": [],
    "models": [],
    "modalities": ["image", "image+text"],
    "text_model": "demo/minilm-l6",
    "joint_models": [],  # with captions only these; [] is all
    "epsilon": 2.0,
    "n_directions": 5,
    "group_sizes": [4.0, 6.0, 8.0],
    "seed": 0,
}
SETS = ("emoji", "clipart")
ENOUGH = 3  # pure sets among the first five


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; empty ``datasets`` and ``models`` mean all there are.

    Raises
    ------
    BadInput
        A number out of range, or an unknown modality.
    NotFound
        No image data set here has features of two image encoders.
    """
    full = {**DEFAULTS, **params}
    asked = [full["dataset"]] if full["dataset"] else list(full["datasets"])
    there = workspace.dataset_names()
    sets = [workspace.dataset(n).name for n in asked] or [n for n in SETS if n in there]
    for modality in full["modalities"]:
        if modality not in ("image", "image+text"):
            raise BadInput(f"modalities holds {modality!r}.", "Use 'image', 'image+text' or both.")
    if not full["modalities"]:
        raise BadInput("modalities is empty.", "Use ['image'].")
    if not isinstance(full["n_directions"], int) or not 1 <= full["n_directions"] <= 20:
        raise BadInput(f"n_directions={full['n_directions']!r} must lie between 1 and 20.")
    if not float(full["epsilon"]) > 0.0:
        raise BadInput(f"epsilon={full['epsilon']} must be above 0.", "The default is 2.")
    if not full["group_sizes"] or min(full["group_sizes"]) <= 1.0:
        raise BadInput("group_sizes must hold numbers above 1.", "For instance [4, 8].")
    models = list(full["models"]) or sorted({m for s in sets for m in encoders(workspace, s)})
    out = {
        **full, "dataset": "", "datasets": sets, "models": models,
        "epsilon": float(full["epsilon"]),
        "group_sizes": [float(m) for m in sorted(full["group_sizes"])],
    }  # fmt: skip
    if not cases(workspace, out):
        raise NotFound(
            "No image data set here has features of two image encoders.",
            "Extract features: `theodolite extract emoji demo/squeezenet1.1`.",
        )
    return out


def encoders(workspace: Workspace, dataset: str) -> list[str]:
    """Return the image encoders with features of a data set; towers of dual encoders are not.

    A tower is a projection of an encoder that is there already.
    """
    from core.encoders.registry import describe

    found = []
    there = {e["model"] for e in workspace.features.list() if e["dataset"] == dataset}
    for model in sorted(there):
        try:
            about = describe(model, workspace)
        except NotFound:
            # Imported features of a model nobody registered: taken as pictures' features.
            found.append(model)
            continue
        if about.modality == "image" and not about.pair:
            found.append(model)
    return found


def cases(workspace: Workspace, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of every piece: data set, modality, ordered pair."""
    shared = {k: params[k] for k in ("epsilon", "n_directions", "group_sizes", "seed")}
    found = []
    for modality, dataset in product(params["modalities"], params["datasets"]):
        if workspace.dataset(dataset).kind != "image":
            continue
        here = [m for m in encoders(workspace, dataset) if m in params["models"]]
        joint = modality == "image+text"
        if joint and workspace.features.find(dataset, params["text_model"]) is None:
            continue
        if joint and params["joint_models"]:
            here = [m for m in here if m in params["joint_models"]]
        for target, reference in permutations(here, 2):
            case = {"dataset": dataset, "modality": modality, "target": target}
            text = params["text_model"] if joint else None
            found.append({**case, "reference": reference, "text_model": text, **shared})
    return found


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compute or collect every piece; what is stored is not done again.

    Returns
    -------
    Result
        Tables ``pairs`` (one row a piece), ``directions``, ``members`` and ``reading``.
    """
    from core.contrast.study_pieces import piece

    report = progress or (lambda _fraction, _message: None)
    todo = cases(workspace, params)
    done = []
    with single_threaded():
        for number, case in enumerate(todo):
            words = f"{case['dataset']}, {case['modality']}: {case['target']} over "
            words += case["reference"]
            report(number / len(todo), words)

            def told(part: float, message: str, at: int = number, words: str = words) -> None:
                report((at + part) / len(todo), f"{words}: {message}")

            done.append(piece(workspace, case, told))
    return collect(params, todo, done)


def collect(params: dict[str, Any], todo: list[dict[str, Any]], done: list[Result]) -> Result:
    """Lay the pieces together."""
    from core.contrast.study_pieces import with_head
    from core.contrast.study_reading import headline, reading

    heads = [{k: c[k] for k in ("dataset", "modality", "target", "reference")} for c in todo]
    pairs = pd.DataFrame(
        [
            {**head, **{k: v for k, v in r.summary.items() if k != "headline"}}
            for head, r in zip(heads, done, strict=True)
        ]
    )
    pairs["passed"] = (pairs["pure"] >= ENOUGH) & (pairs["pure_by_median_rule"] < ENOUGH)
    tables = {"pairs": pairs}
    for name in ("directions", "members", "scale_path"):
        frames = [with_head(h, r.tables[name]) for h, r in zip(heads, done, strict=True)]
        tables[name] = pd.concat(frames, ignore_index=True)
    kept = tables["directions"].columns.intersection(_COLUMNS)
    tables["directions"] = tables["directions"][kept]
    tables["reading"] = reading(pairs, tables["directions"])
    summary = {
        "headline": headline(pairs),
        "n": int(pairs.groupby("dataset")["n"].max().sum()),
        "n_pairs": len(pairs),
        "n_passed": int(pairs["passed"].sum()),
        "certified": bool(pairs["certified"].all()),
        "worst_rel_gap": float(pairs["worst_rel_gap"].max()),
    }
    left_out = tuple({(x.what, x.reason): x for r in done for x in r.left_out}.values())
    return Result(KIND, params, summary, tables, left_out=left_out)


_COLUMNS = [
    "dataset", "modality", "target", "reference", "direction", "title", "words", "is_group",
    "named", "n_members", "size", "k_a", "k_b", "cos_a", "cos_b", "cos_text", "quotient", "z_a",
    "z_b", "knn_a", "knn_b", "objective", "constraint", "rel_gap", "status", "label",
    "label_share", "domain", "domain_share", "subgroup", "subgroup_share",
]  # fmt: skip
