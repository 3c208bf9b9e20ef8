"""Pictures, folders and archives for the import tests, and an import in one call."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from core.data.dataset import Dataset
from core.data.importers import ImportLimits, OutcomeReport, import_dataset, open_source, preview
from core.workspace import Workspace, open_workspace


def picture(seed: int = 0, size: tuple[int, int] = (12, 9), form: str = "PNG", **how: Any) -> bytes:
    """Return a picture of noise, encoded."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form, **how)
    return out.getvalue()


def encoded(image: Image.Image, form: str = "PNG", **how: Any) -> bytes:
    """Return an image in a file's bytes."""
    out = io.BytesIO()
    image.save(out, form, **how)
    return out.getvalue()


def write_files(root: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    """Write a zip archive, its entries named as given."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


class Kit:
    """A workspace, and imports into it with the guessed plan."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp = tmp_path
        self.space: Workspace = open_workspace(tmp_path / "space")
        self.picture = picture
        self.encoded = encoded

    def folder(self, files: dict[str, bytes], name: str = "given") -> Path:
        """Write files into a folder of their own."""
        root = self.tmp / name
        root.mkdir(exist_ok=True)
        return write_files(root, files)

    def zip(self, files: dict[str, bytes], name: str = "given.zip") -> Path:
        """Write files into an archive."""
        return write_zip(self.tmp / name, files)

    def file(self, name: str, data: bytes) -> Path:
        """Write one file."""
        return write_files(self.tmp, {name: data}) / name

    def preview(self, what: Any, **how: Any) -> Any:
        """Return the preview of a source."""
        with open_source(what, **how) as source:
            return preview(source)

    def take(
        self,
        what: Any,
        *,
        limits: ImportLimits | None = None,
        roles: dict[str, str | None] | None = None,
        change: Callable[[Any], Any] | None = None,
        **how: Any,
    ) -> Dataset:
        """Import a source with the guessed plan, changed where asked."""
        with open_source(what, limits=limits, **how) as source:
            plan = preview(source, taken_names=self.space.dataset_names()).plan
            if roles:
                plan = plan.with_roles(roles)
            if change:
                plan = change(plan)
            return import_dataset(self.space, source, plan)

    def report(self, data: Dataset) -> OutcomeReport:
        """Return the outcome report of an import."""
        return self.space.datasets.report(data.name)

    def reasons(self, data: Dataset) -> dict[str, str]:
        """Return what was left out and why."""
        return {line.what: line.reason for line in self.report(data).left_out}

    def repairs(self, data: Dataset) -> dict[str, str]:
        """Return what was repaired and how."""
        return {line.what: line.how for line in self.report(data).repaired}


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)
