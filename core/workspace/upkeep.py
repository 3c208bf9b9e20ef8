"""Upkeep: check every stored file, and remove what nothing refers to."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.data.dataset import items_digest
from core.digest import file_digest
from core.errors import WorkspaceError
from core.workspace.files import TEMP_PREFIX, remove_tree, size_of

if TYPE_CHECKING:
    from core.workspace.workspace import Workspace


@dataclass(frozen=True)
class Finding:
    """Something amiss in a workspace.

    Attributes
    ----------
    what : str
        The dataset, feature set, result, job or file.
    problem : str
        What is wrong with it.
    hint : str
        What to do.
    fixed : bool
        Whether ``doctor(fix=True)`` has dropped it.
    """

    what: str
    problem: str
    hint: str
    fixed: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}. {'Dropped.' if self.fixed else self.hint}"


@dataclass(frozen=True)
class Garbage:
    """A file or folder that nothing refers to: where, how many bytes, and why."""

    path: Path
    bytes: int
    why: str

    def __str__(self) -> str:
        return f"{self.path} ({self.bytes:,} bytes): {self.why}"


def doctor(workspace: Workspace, *, fix: bool = False) -> list[Finding]:
    """Check datasets, pictures, features and results against their digests, and the jobs.

    Parameters
    ----------
    workspace : Workspace
        The workspace.
    fix : bool
        Drop features and results that are damaged (they can be computed again). Datasets
        and pictures are never dropped.

    Returns
    -------
    list of Finding
        Empty when nothing is amiss.
    """
    found = [*_check_datasets(workspace)]
    for entry in workspace.features.list():
        problem = workspace.features.verify(entry["key"])
        if problem:
            name = f"features of {entry['model']} on {entry['dataset']}"
            hint = f"Run `theodolite extract {entry['dataset']} {entry['model']}` again."
            if fix:
                workspace.features.remove(entry["key"])
            found.append(Finding(name, problem, hint, fixed=fix))
    for info in workspace.results.list(all_versions=True):
        problem = workspace.results.verify(info.key)
        if problem:
            if fix:
                workspace.results.remove(info.key)
            name = f"{info.kind} result {info.key[:12]}"
            found.append(Finding(name, problem.rstrip("."), "Run the analysis again.", fixed=fix))
    workspace.jobs.poll()
    for job in workspace.jobs.list():
        if job.state == "lost":
            hint = f"Run `theodolite jobs resume {job.id}`."
            found.append(Finding(f"job {job.id} ({job.kind})", "lost", hint))
    orphans = collect(workspace, dry_run=True)
    if orphans:
        size = sum(orphan.bytes for orphan in orphans)
        problem = f"{len(orphans)} files that nothing refers to, {size:,} bytes"
        found.append(Finding(str(workspace.root), problem, "Run `theodolite gc`."))
    return found


def collect(
    workspace: Workspace, *, dry_run: bool = False, min_age_s: float = 86_400.0
) -> list[Garbage]:
    """Remove what nothing refers to and has not been touched for a day.

    The age keeps what another process is just importing or extracting.

    Parameters
    ----------
    workspace : Workspace
        The workspace.
    dry_run : bool
        Only say what would go.
    min_age_s : float
        Seconds since the last change.

    Raises
    ------
    WorkspaceError
        The items of a dataset cannot be read, so its pictures are not known; nothing is
        removed then.
    """
    oldest = time.time() - min_age_s
    garbage = [g for g in _unreferenced(workspace) if _touched(g.path) <= oldest]
    if not dry_run:
        for item in garbage:
            remove_tree(item.path)
    return garbage


def _check_datasets(workspace: Workspace) -> Iterator[Finding]:
    hint = "Import the dataset again."
    checked: dict[str, bool] = {}
    for name in workspace.dataset_names():
        data = workspace.dataset(name)
        try:
            items = data.items
        except WorkspaceError as err:
            yield Finding(f"dataset {name}", err.message.rstrip("."), hint)
            continue
        if items_digest(items, data.kind) != data.digest:
            yield Finding(f"dataset {name}", "its items do not match their digest", hint)
        for sha in dict.fromkeys(s for s in items["sha256"] if s):
            if sha not in checked:
                path = workspace.blobs.path(sha)
                checked[sha] = path.is_file() and file_digest(path) == sha
            if not checked[sha]:
                state = "is damaged" if workspace.blobs.has(sha) else "is missing"
                yield Finding(f"dataset {name}", f"the picture {sha} {state}", hint)


def _unreferenced(workspace: Workspace) -> Iterator[Garbage]:
    root = workspace.root
    for temp in sorted(root.rglob(f"{TEMP_PREFIX}*")):
        if not any(part.startswith(TEMP_PREFIX) for part in temp.relative_to(root).parts[:-1]):
            yield from _garbage(temp, "left by a process that was stopped")
    yield from _loose_data(workspace)
    keys = {entry["key"] for entry in workspace.features.list()}
    for path in _entries(root / "features"):
        if path.suffix == ".parts":
            yield from _garbage(path, "shards of an extraction that was not finished")
        elif path.stem not in keys:
            yield from _garbage(path, "features that are not in the catalogue")
    results = {info.key for info in workspace.results.list(all_versions=True)}
    for path in _entries(root / "results"):
        if path.name not in results:
            yield from _garbage(path, "a result that is not in the catalogue")


def _loose_data(workspace: Workspace) -> Iterator[Garbage]:
    datasets = [workspace.dataset(name) for name in workspace.dataset_names()]
    pictures = {str(sha) for data in datasets for sha in data.items["sha256"] if sha}
    tables = {data.digest for data in datasets}
    tables |= {f"{data.meta.get('report')}.report" for data in datasets}
    for sha, path in workspace.blobs.all():
        if sha not in pictures:
            yield from _garbage(path, "a picture of no dataset")
    for folder in _entries(workspace.root / "thumbs"):
        for path in _entries(folder):
            if path.stem not in pictures:
                yield from _garbage(path, "a thumbnail of no dataset's picture")
    for path in _entries(workspace.root / "datasets"):
        if path.stem not in tables:
            yield from _garbage(path, "the items of a dataset that was removed or replaced")
    for path in _entries(workspace.root / "inbox"):
        yield from _garbage(path, "an upload that was not imported")


def _entries(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*")) if not path.name.startswith(TEMP_PREFIX)]


def _garbage(path: Path, why: str) -> Iterator[Garbage]:
    # Another process may have removed or renamed it since the folder was listed.
    with suppress(FileNotFoundError):
        yield Garbage(path, size_of(path), why)


def _touched(path: Path) -> float:
    try:
        inside = [p.stat().st_mtime for p in path.rglob("*")] if path.is_dir() else []
        return max([path.stat().st_mtime, *inside])
    except FileNotFoundError:
        return math.inf
