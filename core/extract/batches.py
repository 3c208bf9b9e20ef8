"""Turning items into batches: read and prepared by a few threads, one batch ahead."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.encoders.base import Encoder

# Pillow decodes without holding the interpreter's lock; more threads than this gain nothing
# next to an encoder, and each holds a decoded picture.
READERS = 4


@dataclass
class Batch:
    """Prepared items, in the order of their ids, and those that could not be read.

    Attributes
    ----------
    ids : list of int
        Items that could be read.
    prepared : list
        What the encoder's ``run`` takes, one entry a distinct item.
    rows : list of int
        For each id the place of its entry in ``prepared``; equal texts share one.
    left_out : list of LeftOut
        Items that could not be read, and why.
    """

    ids: list[int] = field(default_factory=list)
    prepared: list[Any] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


class Reader:
    """Reads the items of a dataset for an encoder."""

    def __init__(self, dataset: Dataset, encoder: Encoder) -> None:
        self._dataset = dataset
        self._encoder = encoder
        self._texts: dict[int, str] | None = None
        if encoder.info.modality == "text":
            texts = dataset.texts("caption")
            self._texts = dict(zip(map(int, dataset.ids), texts, strict=True))
            if not any(text.strip() for text in texts):
                raise BadInput(
                    f"Dataset {dataset.name!r} has no captions for the text encoder "
                    f"{encoder.info.id}.",
                    "Choose an image encoder, or a dataset with captions.",
                )
        elif dataset.kind != "image":
            raise BadInput(
                f"Dataset {dataset.name!r} holds texts; {encoder.info.id} reads pictures.",
                "Choose a text encoder.",
            )

    def read(self, item: int) -> Any:
        """Return one prepared item; an Exception the item is to blame for is returned too."""
        try:
            if self._texts is None:
                return self._encoder.prepare(self._dataset.image(item))
            text = self._texts[item]
            if not text.strip():
                return BadInput(f"Item {item} has no text.")
            return self._encoder.prepare(text)
        except BadInput as err:
            return err

    def why_not(self, items: list[int]) -> list[LeftOut]:
        """Return the outcome lines of items that an earlier run could not read."""
        return [line for item in items for line in _line(item, self.read(item))]

    def batches(self, shard: np.ndarray, size: int) -> Iterator[Batch]:
        """Yield the items of one shard in batches of ``size`` distinct items, one ahead."""
        cuts = self._cuts(shard, size)
        with ThreadPoolExecutor(READERS, thread_name_prefix="reader") as pool:
            waiting: list[list[tuple[int, Future[Any]]]] = []
            for first, last in pairwise(cuts):
                items = [int(i) for i in shard[first:last]]
                waiting.append([(i, f) for i, f in self._submit(pool, items)])
                if len(waiting) > 1:
                    yield self._gather(waiting.pop(0))
            for futures in waiting:
                yield self._gather(futures)

    def _cuts(self, shard: np.ndarray, size: int) -> list[int]:
        if self._texts is None:
            return [*range(0, len(shard), size), len(shard)]
        cuts, seen = [0], set()
        for place, item in enumerate(shard):
            seen.add(self._texts[int(item)])
            if len(seen) > size:
                cuts.append(place)
                seen = {self._texts[int(item)]}
        return [*cuts, len(shard)]

    def _submit(
        self, pool: ThreadPoolExecutor, items: list[int]
    ) -> Iterator[tuple[int, Future[Any]]]:
        started: dict[Any, Future[Any]] = {}
        for item in items:
            same = item if self._texts is None else self._texts[item]
            if same not in started:
                started[same] = pool.submit(self.read, item)
            yield item, started[same]

    @staticmethod
    def _gather(futures: list[tuple[int, Future[Any]]]) -> Batch:
        batch = Batch()
        place: dict[Future[Any], int] = {}
        for item, future in futures:
            value = future.result()
            if isinstance(value, Exception):
                batch.left_out += _line(item, value)
                continue
            if future not in place:
                place[future] = len(batch.prepared)
                batch.prepared.append(value)
            batch.ids.append(item)
            batch.rows.append(place[future])
        return batch


def _line(item: int, value: Any) -> list[LeftOut]:
    if not isinstance(value, Exception):
        return []
    reason = value.message if isinstance(value, BadInput) else str(value)
    return [LeftOut(f"item {item}", reason)]
