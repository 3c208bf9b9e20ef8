"""Lay the demo ready: put the shipped data sets, features and results into a workspace.

Each shipped thing is a *part* with a stamp, the digest of its description. A part whose
stamp the workspace already holds is not touched again, so that laying the demo ready is
quick, can be stopped at any point, and brings in a changed part after an upgrade. What the
user made, or removed, is left alone.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.digest import bytes_digest
from core.errors import BadInput, NotFound, WorkspaceError
from core.paths import assets_dir
from core.types import LeftOut
from core.workspace.files import storing

if TYPE_CHECKING:
    import pandas as pd

    from core.data.dataset import Dataset
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

SCOPE = "demo"
MARK = "shipped"  # in a dataset's meta: it came with the program and may be replaced by it
DATASETS = ("emoji", "names", "clipart")


@dataclass(frozen=True)
class Part:
    """One shipped thing.

    Attributes
    ----------
    kind : {"dataset", "features", "result"}
        What it is.
    name : str
        Name of the dataset, the feature file or the result folder.
    path : Path
        Folder of a dataset or result, safetensors file of features.
    stamp : str
        SHA-256 (hex) of its description: another one means another content.
    """

    kind: str
    name: str
    path: Path
    stamp: str

    @property
    def key(self) -> str:
        """The part's name among all parts."""
        return f"{self.kind}/{self.name}"


def demo_dir() -> Path:
    """Return the folder of the shipped demo."""
    return assets_dir() / "demo"


def parts(folder: Path | None = None) -> list[Part]:
    """Return what is shipped, in the order it is laid ready: what the first page shows comes first.

    Parameters
    ----------
    folder : Path, optional
        Where the demo lies; by default the one that came with the program.
    """
    root = demo_dir() if folder is None else folder
    features = [
        Part("features", path.stem, path, _stamp(path.with_suffix(".json")))
        for path in sorted((root / "features").glob("*.safetensors"))
    ]
    results = [
        Part("result", path.parent.name, path.parent, _stamp(path))
        for path in sorted((root / "results").glob("*/result.json"))
    ]
    datasets = [
        Part("dataset", name, root / name, _stamp(root / name / "dataset.json", "items.parquet"))
        for name in DATASETS
        if (root / name / "dataset.json").is_file()
    ]
    first = [part for part in features if part.name.startswith("emoji--")]
    rest = [part for part in features if part not in first]
    return [*datasets[:1], *first, *results, *datasets[1:], *rest]


def is_prepared(workspace: Workspace) -> bool:
    """Say whether everything shipped has been laid ready in this workspace."""
    return not demo_missing(workspace)


def demo_missing(workspace: Workspace) -> list[str]:
    """Return the parts still to be laid ready, such as ``"dataset/emoji"``."""
    done = workspace.notes.all(SCOPE)
    return [part.key for part in parts() if done.get(part.key, {}).get("stamp") != part.stamp]


def prepare(
    workspace: Workspace, *, progress: Progress | None = None, folder: Path | None = None
) -> dict[str, Any]:
    """Lay the demo ready; what is there already is not done again.

    Parameters
    ----------
    workspace : Workspace
        Receives the data sets, features and results.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message; it may raise ``Cancelled``. Finished
        parts stay.
    folder : Path, optional
        Where the demo lies; by default the one that came with the program.

    Returns
    -------
    dict
        ``done`` (parts laid ready now), ``kept`` (parts that were there), ``left_out`` (parts
        that could not be used, and why) and ``seconds``.

    Raises
    ------
    NotFound
        The program came without its demo.
    WorkspaceError
        The workspace cannot be written.
    """
    start = time.perf_counter()
    shipped = parts(folder)
    if not shipped:
        raise NotFound(f"There is no demo in {folder or demo_dir()}.", "Install the program again.")
    report: dict[str, Any] = {"done": [], "kept": [], "left_out": []}
    with _alone(workspace.root / "demo.lock"):
        before = workspace.notes.all(SCOPE)
        for number, part in enumerate(shipped):
            if before.get(part.key, {}).get("stamp") == part.stamp:
                report["kept"].append(part.key)
                continue
            if progress is not None:
                progress(number / len(shipped), f"{part.kind} {part.name}")
            _lay(workspace, part, before.get(part.key, {}), report)
        _clear_stale(workspace, shipped, before)
    if progress is not None:
        progress(1.0, "The demo is ready")
    return {**report, "seconds": round(time.perf_counter() - start, 3)}


def _lay(workspace: Workspace, part: Part, old: dict[str, Any], report: dict[str, Any]) -> None:
    """Put one part in place, then note its stamp: a part is done once its note is there."""
    try:
        key = _PUT[part.kind](workspace, part)
    except (BadInput, NotFound) as err:
        # One part that does not fit (made by another version) must not keep the rest away.
        report["left_out"].append(LeftOut(part.key, str(err)).as_dict())
        return
    workspace.notes.put(SCOPE, part.key, {"stamp": part.stamp, "key": key})
    report["done"].append(part.key)
    if old.get("key") not in (None, key):
        _remove(workspace, part.kind, str(old["key"]))


def put_dataset(workspace: Workspace, folder: Path) -> Dataset:
    """Import one shipped data set: its pictures, its items, its description.

    Raises
    ------
    BadInput
        The user has another data set of that name, or a picture is damaged.
    """
    import pandas as pd

    about = json.loads((folder / "dataset.json").read_text("utf-8"))
    items = pd.read_parquet(folder / "items.parquet")
    mine = workspace.datasets.find(about["name"])
    if mine is not None and not mine.meta.get(MARK):
        raise BadInput(
            f"There is a dataset named {about['name']!r} of your own; the demo's was not put in "
            "its place.",
            "Import yours under another name to have both.",
        )
    if about["kind"] == "image":
        _put_pictures(workspace, folder / "images.parquet", items)
    meta = dict(about["meta"])
    left_out = [LeftOut(**line) for line in meta.pop("left_out")]
    return workspace.add_dataset(
        about["name"],
        about["title"],
        about["kind"],
        items,
        meta={**meta, MARK: True},
        left_out=left_out,
        replace=True,
    )


def _put_pictures(workspace: Workspace, path: Path, items: pd.DataFrame) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(batch_size=512, columns=["bytes"])
        found = workspace.blobs.put_many(
            data for batch in batches for data in batch.column("bytes").to_pylist()
        )
    missing = set(items["sha256"]) - set(found)
    if missing:
        raise BadInput(
            f"{len(missing)} pictures of {path} are missing or damaged.",
            "Install the program again.",
        )


def _put_dataset(workspace: Workspace, part: Part) -> str:
    return put_dataset(workspace, part.path).digest


def _put_features(workspace: Workspace, part: Part) -> str:
    return workspace.features.import_file(part.path).key


def _put_result(workspace: Workspace, part: Part) -> str:
    return workspace.results.import_dir(part.path).key


_PUT: dict[str, Callable[[Workspace, Part], str]] = {
    "dataset": _put_dataset,
    "features": _put_features,
    "result": _put_result,
}


def _remove(workspace: Workspace, kind: str, key: str) -> None:
    try:
        if kind == "features":
            workspace.features.remove(key)
        elif kind == "result":
            workspace.results.remove(key)
    except NotFound:
        return  # the user, or another process, removed it first


def _clear_stale(workspace: Workspace, shipped: list[Part], before: dict[str, Any]) -> None:
    """Remove features and results that an older version shipped and this one does not."""
    for name in set(before) - {part.key for part in shipped}:
        kind = name.partition("/")[0]
        _remove(workspace, kind, str(before[name].get("key", "")))
        workspace.notes.delete(SCOPE, name)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a file lock; it goes with the process, however that ends."""
    with storing(path, "Locking"), path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _stamp(path: Path, *beside: str) -> str:
    try:
        texts = [path.read_bytes(), *((path.parent / name).read_bytes() for name in beside)]
    except FileNotFoundError as err:
        raise WorkspaceError(
            f"{err.filename} is missing, so the demo cannot be laid ready.",
            "Install the program again.",
        ) from err
    return bytes_digest(b"\0".join(texts))
