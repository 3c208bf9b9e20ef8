"""What an extraction will take before it starts: disk to the byte where widths are known, memory.

Disk is rows x widths x 4 bytes, twice while the shards are joined. Memory is an estimate: the
process with torch, the weights twice while they are read, one shard of results and the
pictures that wait decoded. What a network holds between its layers is not known beforehand.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import BadInput

if TYPE_CHECKING:
    from core.types import EncoderInfo
    from core.workspace import Workspace

SHARD = 512
BYTES = 4
#: Resident memory of a worker with torch loaded and nothing else, measured: 610 MB.
BASE = 650 * 2**20
#: One decoded and prepared picture of 224 x 224 and its source, times those that wait.
PICTURE = 3 * 224 * 224 * (4 + 2)
#: Kept free whatever happens: a full disk stops more than this job.
RESERVE = 256 * 2**20


@dataclass(frozen=True)
class Forecast:
    """What an extraction will need.

    Attributes
    ----------
    rows : int
        Items of the dataset.
    width : int
        Numbers a row over all layers; 0 when the encoder's layers are not known yet.
    disk : int
        Bytes while it runs (shards and the joined file).
    kept : int
        Bytes that stay.
    memory : int
        Bytes of the worker, estimated.
    disk_free, memory_free : int
        Bytes there are now.
    """

    rows: int
    width: int
    disk: int
    kept: int
    memory: int
    disk_free: int
    memory_free: int

    @property
    def fits(self) -> bool:
        """Whether both suffice; unknown widths count as fitting."""
        return not self.problem

    @property
    def problem(self) -> str:
        """What is too little, in words; empty when it fits."""
        if self.disk + RESERVE > self.disk_free:
            return (
                f"it needs {in_words(self.disk)} of disk while it runs and "
                f"{in_words(self.disk_free)} are free"
            )
        if self.memory > self.memory_free:
            return (
                f"it needs about {in_words(self.memory)} of memory and "
                f"{in_words(self.memory_free)} are free"
            )
        return ""

    def sentence(self) -> str:
        """Return the forecast in one sentence.

        Examples
        --------
        >>> Forecast(1000, 384, 3072000, 1536000, 700 << 20, 10 << 30, 8 << 30).sentence()
        '1,000 rows of 384 numbers: 1.5 MB kept, 3.1 MB while it runs, about 734 MB of memory.'
        """
        if not self.width:
            return (
                f"{self.rows:,} rows; the layers' widths are known once the weights are read. "
                f"About {in_words(self.memory)} of memory."
            )
        return (
            f"{self.rows:,} rows of {self.width:,} numbers: {in_words(self.kept)} kept, "
            f"{in_words(self.disk)} while it runs, about {in_words(self.memory)} of memory."
        )


def in_words(size: int) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> in_words(1_536_000), in_words(2_500_000_000)
    ('1.5 MB', '2.5 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            value = size / factor
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
    return f"{size} bytes"


def forecast(
    workspace: Workspace,
    dataset: str,
    info: EncoderInfo,
    *,
    layers: str | list[str] = "all",
    batch_size: int = 16,
) -> Forecast:
    """Return what extracting a dataset under an encoder will take.

    Parameters
    ----------
    workspace : Workspace
        Its disk is looked at.
    dataset : str
        Whose items are read.
    info : EncoderInfo
        The encoder; nothing is loaded. Layers are taken as wide as the default one, which
        is exact for transformers and an upper estimate for stages that widen.
    layers : "all", "default" or list of str
        Which are kept.
    batch_size : int
        Items that wait decoded.
    """
    data = workspace.dataset(dataset)
    counts = {"all": len(info.layers), "default": 1}
    n_layers = counts[layers] if isinstance(layers, str) else len(layers)
    width = n_layers * info.dim
    kept = data.n * width * BYTES
    waiting = 3 * batch_size * PICTURE if info.modality == "image" else 0
    memory = round(BASE + 2 * info.params_m * 1e6 * BYTES + 2 * SHARD * width * BYTES + waiting)
    return Forecast(
        rows=data.n,
        width=width,
        disk=2 * kept,
        kept=kept,
        memory=memory,
        disk_free=shutil.disk_usage(workspace.root).free,
        memory_free=free_memory(),
    )


def free_memory() -> int:
    """Return the bytes a new process may take; a very large number where that is not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 62


def refuse_if_too_large(found: Forecast, what: str) -> None:
    """Raise before a job that cannot end.

    Raises
    ------
    BadInput
        Disk or memory do not suffice; the message has both numbers.
    """
    if not found.fits:
        raise BadInput(
            f"{what} does not fit this machine: {found.problem}.",
            "Keep fewer layers, free some space, or run it on another machine.",
        )
