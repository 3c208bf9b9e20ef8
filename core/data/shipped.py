"""The shipped features and results of the demo: where they lie, reading and writing them."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.demo import demo_dir
from core.data.demo_recipe import ANALYSES, FEATURES, STUDIES, AnalysisRecipe, FeatureRecipe
from core.errors import NotFound

if TYPE_CHECKING:
    from core.results import Result
    from core.types import Features
    from core.workspace import Workspace


def feature_path(recipe: FeatureRecipe, folder: Path | None = None) -> Path:
    """Return where a shipped feature file lies, or would lie."""
    stem = f"{recipe.dataset}--{recipe.model.replace('/', '--')}"
    return (folder or demo_dir()) / "features" / f"{stem}.safetensors"


def shipped_features(recipe: FeatureRecipe, folder: Path | None = None) -> Features | None:
    """Read a shipped feature set without a workspace, or None when it is not shipped."""
    from core.digest import recipe_key
    from core.types import Features
    from core.workspace.tensors import open_tensors

    path = feature_path(recipe, folder)
    if not path.is_file():
        return None
    about = json.loads(path.with_suffix(".json").read_text("utf-8"))
    arrays = open_tensors(path)
    layers = {name: arrays[name] for name in about["layers"]}
    return Features(
        arrays["ids"],
        layers,
        about["dataset"],
        about["model"],
        about["default_layer"],
        recipe_key(about["recipe"]),
    )


def shipped_result(recipe: AnalysisRecipe, folder: Path | None = None) -> Result | None:
    """Read a shipped result without a workspace, or None when it is not shipped."""
    from core.digest import file_digest
    from core.workspace.result_files import FILE, load_result

    path = (folder or demo_dir()) / "results" / recipe.name
    if not (path / FILE).is_file():
        return None
    return load_result(path, file_digest(path / FILE))


def write_demo(workspace: Workspace, folder: Path | None = None) -> dict[str, Any]:
    """Write features and results of the recipe from a workspace that holds them.

    Each folder is built beside the old one and takes its place when whole.

    Raises
    ------
    NotFound
        The workspace lacks a feature set or a result of the recipe.
    """
    target = demo_dir() if folder is None else folder
    with tempfile.TemporaryDirectory(dir=target, prefix=".bake-") as temp:
        new = Path(temp)
        _write_features(workspace, new)
        _write_results(workspace, new)
        _write_studies(workspace, new, target)
        report: dict[str, Any] = {"folder": str(target)}
        for name in ("features", "results"):
            size = sum(p.stat().st_size for p in (new / name).rglob("*") if p.is_file())
            report[f"{name}_mb"] = round(size / 2**20, 1)
            shutil.rmtree(target / name, ignore_errors=True)
            (new / name).rename(target / name)
    return report


def _write_features(workspace: Workspace, folder: Path) -> None:
    (folder / "features").mkdir()
    for recipe in FEATURES:
        if not recipe.ship:
            continue
        features = workspace.features.get(recipe.dataset, recipe.model)
        if (recipe.layers == "default") != (len(features.layers) == 1):
            raise NotFound(
                f"The newest features of {recipe.model} on {recipe.dataset} hold "
                f"{len(features.layers)} layers; the recipe wants {recipe.layers!r}.",
                "Run `python -m core.data.bake` first.",
            )
        path = workspace.features.export(features.key, folder / "features")
        path.rename(feature_path(recipe, folder))
        path.with_suffix(".json").rename(feature_path(recipe, folder).with_suffix(".json"))


def _write_results(workspace: Workspace, folder: Path) -> None:
    from core.analyses import find

    (folder / "results").mkdir()
    for recipe in ANALYSES:
        result = find(recipe.analysis, workspace, **recipe.params)
        if result is None:
            raise NotFound(
                f"The workspace has no result {recipe.name!r}.", "Run `python -m core.data.bake`."
            )
        shutil.copytree(workspace.results.path(result.key), folder / "results" / recipe.name)


def _write_studies(workspace: Workspace, folder: Path, shipped: Path) -> None:
    """Write each study the workspace holds; one it does not hold stays as it is shipped."""
    from core.analyses import current

    for recipe in STUDIES:
        result = current(recipe.analysis, workspace)
        old = shipped / "results" / recipe.name
        source = workspace.results.path(result.key) if result is not None else old
        if source.is_dir():
            shutil.copytree(source, folder / "results" / recipe.name)
