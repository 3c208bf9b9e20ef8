"""Run the plan: one row file a model, written whole or not at all; then one table.

A killed run goes on where it stopped: what has a file is not trained again. Several
processes may work on one folder; each takes every k-th model.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from core.analyses import versions
from core.device import one_thread
from core.errors import BadInput, NotFound
from core.quality.zoo.plan import ModelSpec, plan

TITLE = "260 small models trained for this study"
RECIPE_VERSION = 1

Report = Callable[[str], None]


def row_path(folder: Path, spec: ModelSpec) -> Path:
    """Return where a model's row file lies."""
    return folder / f"{spec.index:03d}.json"


def _finished(path: Path, spec: ModelSpec) -> bool:
    if not path.exists():
        return False
    stored = json.loads(path.read_text())
    return stored.get("spec") == spec.as_dict() and stored.get("recipe") == RECIPE_VERSION


def _write(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_suffix(f".{os.getpid()}.part")
    with partial.open("w") as handle:
        json.dump(content, handle)
        handle.flush()
        os.fsync(handle.fileno())
    partial.replace(path)


def run_some(
    folder: Path, specs: Sequence[ModelSpec], *, device: str = "cpu", report: Report = print
) -> int:
    """Train and measure the models without a row file; return how many were done.

    A model whose training fails is a row with its reason, not the end of the run.
    """
    from core.quality.zoo.measure import study_model
    from core.quality.zoo.sets import study_sets, training_set

    folder.mkdir(parents=True, exist_ok=True)
    open_ones = [spec for spec in specs if not _finished(row_path(folder, spec), spec)]
    if not open_ones:
        return 0
    images, labels = training_set()
    sets = study_sets()
    with one_thread():
        for done, spec in enumerate(open_ones, start=1):
            start = time.perf_counter()
            try:
                found = study_model(spec, images, labels, sets, device=device)
            except (RuntimeError, ValueError, ArithmeticError) as error:
                found = {"spec": spec.as_dict(), "name": spec.name, "family": spec.family,
                         "rows": [], "failed": f"{type(error).__name__}: {error}"}  # fmt: skip
            _write(row_path(folder, spec), {**found, "recipe": RECIPE_VERSION})
            seconds = time.perf_counter() - start
            report(f"{done} of {len(open_ones)}  {spec.name}  {spec.steps} steps  {seconds:.1f} s")
    return len(open_ones)


def run(
    folder: Path,
    *,
    first: int = 0,
    last: int | None = None,
    workers: int = 1,
    device: str = "cpu",
    report: Report = print,
) -> int:
    """Run the models ``first <= index < last`` of the plan in ``workers`` processes.

    Returns
    -------
    int
        Models trained now; those that had a row file are not counted.

    Raises
    ------
    BadInput
        The range is empty or there is no worker.
    """
    specs = plan()[first:last]
    if not specs or workers < 1:
        raise BadInput(
            f"Nothing to do: models {first} to {last}, {workers} workers.", "See --help."
        )
    if workers == 1:
        return run_some(folder, specs, device=device, report=report)
    with ProcessPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(run_some, folder, specs[at::workers], device=device)
            for at in range(workers)
        ]
        return sum(job.result() for job in jobs)


def assemble(folder: Path, table: Path) -> dict[str, Any]:
    """Write the table (Parquet) and its description (JSON beside it) from the row files.

    Returns
    -------
    dict
        Title, models, sets, failures, versions, date.

    Raises
    ------
    NotFound
        The folder holds no row file of the current recipe.
    """
    rows: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    models = 0
    for spec in plan():
        path = row_path(folder, spec)
        if not _finished(path, spec):
            continue
        models += 1
        found = json.loads(path.read_text())
        if found.get("failed"):
            failures[spec.name] = found["failed"]
        about = {
            "model": spec.name, "family": spec.family,
            **{k: v for k, v in spec.as_dict().items() if k != "index"},
            **{k: found.get(k) for k in ("n_params", "macs", "d", "last_loss", "cpu_train_s")},
        }  # fmt: skip
        rows += [about | row for row in found["rows"]]
    if not rows:
        raise NotFound(f"{folder} holds no finished model.", "Run: python -m core.quality.zoo")
    table.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(table, index=False, compression="zstd")
    about_all = {
        "title": TITLE,
        "recipe": RECIPE_VERSION,
        "n_models": models,
        "planned": len(plan()),
        "datasets": sorted({row["dataset"] for row in rows}),
        "failures": failures,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    table.with_suffix(".json").write_text(json.dumps(about_all, indent=1) + "\n")
    return about_all


def correlate(table: Path, *, n_boot: int = 2000) -> pd.DataFrame:
    """Write and return what every filter of the page shows: see :mod:`core.quality.stored`."""
    from core.quality.population import zoo
    from core.quality.stored import compute_blocks

    out = compute_blocks(zoo(table), n_boot=n_boot)
    out.to_parquet(table.with_name(f"{table.stem}_rho.parquet"), index=False, compression="zstd")
    return out
