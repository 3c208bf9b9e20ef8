"""Run an encoder over a dataset and store its features, shard by shard.

The same items in the same batches give the same bytes, so that an extraction that was killed
and resumed ends in the file an undisturbed one would have written. Another batch size moves
values by rounding only: at most 1e-4 of a layer's largest value, tested for each encoder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.base import Encoder, Layers, choose_layers, choose_pooling
from core.encoders.demo_text import as_text
from core.errors import BadInput, UserError
from core.extract.batches import Batch, Reader
from core.extract.forecast import forecast, refuse_if_too_large
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.workspace import Workspace
    from core.workspace.feature_writer import FeatureWriter

Progress = Callable[[float, str], None]

SHARD = 512
# Part of every recipe: raised when the same model would give other numbers.
EXTRACT_VERSION = 1


def run_extract(
    workspace: Workspace,
    dataset: str,
    model: str | Encoder,
    *,
    layers: Layers = "all",
    pooling: str | None = None,
    batch_size: int = 16,
    device: str | None = None,
    progress: Progress | None = None,
) -> Features:
    """Return the features of a dataset under an encoder, computed unless they are stored.

    Parameters
    ----------
    workspace : Workspace
        Holds the dataset and receives the features.
    dataset : str
        Name of a dataset.
    model : str or Encoder
        A model id (see :mod:`core.encoders.registry`), or an encoder already loaded.
    layers : "all", "default" or list of str
        Layers to keep.
    pooling : str, optional
        "cls", "mean" and the like, where the encoder offers a choice.
    batch_size : int
        Distinct items a batch, at least 1. On a full GPU it is halved until it fits.
    device : str, optional
        "auto", "cpu" or "cuda".
    progress : callable, optional
        Called between batches with a fraction in [0, 1] and a message with rows/s; it may
        raise ``Cancelled``. Finished shards are kept.

    Returns
    -------
    Features
        ``meta["left_out"]`` names every item that has no row, and why.

    Raises
    ------
    NotFound
        No such dataset, model or layer; ``NeedsWeights`` when only the weights are missing.
    BadInput
        The encoder does not read this kind of item, no item could be read, or disk or memory
        cannot suffice (see :mod:`core.extract.forecast`).
    """
    if batch_size < 1:
        raise BadInput(f"batch_size={batch_size} is below 1.", "Use 1 or more.")
    data = workspace.dataset(dataset)
    encoder = _load(model, device, workspace)
    names = choose_layers(encoder.info, layers)
    how = choose_pooling(encoder, pooling)
    recipe = recipe_of(data, encoder, names, how)
    writer = workspace.features.writer(
        recipe,
        dataset=data.name,
        model=encoder.info.id,
        default_layer=_default(encoder, names),
        n=data.n,
        shard_size=SHARD,
        meta=_meta(encoder, how) | _cut_texts(data, encoder),
    )
    stored = writer.existing()
    if stored is not None:
        return stored
    refuse_if_too_large(
        forecast(workspace, dataset, encoder.info, layers=list(names), batch_size=batch_size),
        f"{encoder.info.id} on {dataset}",
    )
    run = _Run(data, encoder, names, how, batch_size, progress)
    left_out = run.write(writer)
    return writer.finish(left_out)


def recipe_of(
    data: Dataset, encoder: Encoder, layers: tuple[str, ...], pooling: str
) -> dict[str, Any]:
    """Return all that decides the numbers, in plain JSON types; its key names the features."""
    return {
        "kind": "features",
        "dataset_digest": data.digest,
        "reads": "image" if encoder.info.modality == "image" else "caption",
        "model": encoder.info.id,
        "revision": encoder.revision,
        "weights_digest": encoder.weights_digest,
        "layers": list(layers),
        "pooling": pooling,
        "transform": encoder.transform,
        "dtype": "float32",
        "code_version": EXTRACT_VERSION,
    }


def _load(model: str | Encoder, device: str | None, workspace: Workspace) -> Encoder:
    if not isinstance(model, str):
        return model
    from core.encoders import load

    return load(model, device, workspace)


def _default(encoder: Encoder, names: tuple[str, ...]) -> str:
    default = encoder.info.default_layer
    return default if default in names else names[-1]


def _meta(encoder: Encoder, pooling: str) -> dict[str, Any]:
    return {
        "pooling": pooling,
        "revision": encoder.revision,
        "weights_digest": encoder.weights_digest,
        "transform": encoder.transform,
        "title": encoder.info.title,
        "licence": encoder.info.licence,
    }


def _cut_texts(data: Dataset, encoder: Encoder) -> dict[str, Any]:
    """Return how many texts are longer than the encoder reads: counted, kept and shown."""
    length = getattr(encoder, "length", None)
    if length is None or encoder.info.modality != "text":
        return {}
    found = {text: length(as_text(text)) for text in set(data.texts("caption")) if text.strip()}
    long = sum(found[t][0] > found[t][1] for t in data.texts("caption") if t in found)
    return {"cut_texts": {"n": long, "limit": next(iter(found.values()))[1] if found else 0}}


class _Run:
    """One extraction under way."""

    def __init__(
        self,
        data: Dataset,
        encoder: Encoder,
        layers: tuple[str, ...],
        pooling: str,
        batch_size: int,
        progress: Progress | None,
    ) -> None:
        self.ids = data.ids
        self.reader = Reader(data, encoder)
        self.encoder = encoder
        self.layers = layers
        self.pooling = pooling
        self.batch_size = batch_size
        self._progress = progress
        self._start = time.monotonic()
        self._fresh = 0

    def write(self, writer: FeatureWriter) -> list[LeftOut]:
        """Write the shards that are missing and return the outcome lines of all."""
        left_out: list[LeftOut] = []
        done = writer.done_shards()
        self._tell(0, "Resumed." if done else "Started.")
        for number in range(writer.n_shards):
            shard = self.ids[number * SHARD : (number + 1) * SHARD]
            if number in done:
                gone = sorted(set(map(int, shard)) - set(map(int, writer.shard_ids(number))))
                left_out += self.reader.why_not(gone)
                continue
            kept, arrays, lines = self._shard(shard, before=number * SHARD)
            writer.write_shard(number, kept, arrays)
            left_out += lines
        return left_out

    def _shard(
        self, shard: np.ndarray, before: int
    ) -> tuple[np.ndarray, dict[str, np.ndarray], list[LeftOut]]:
        ids: list[int] = []
        parts: dict[str, list[np.ndarray]] = {name: [] for name in self.layers}
        lines: list[LeftOut] = []
        seen = 0
        for batch in self.reader.batches(shard, self.batch_size):
            kept, found, bad = self._batch(batch)
            ids += kept
            for name, rows in found.items():
                parts[name].append(rows)
            lines += batch.left_out + bad
            seen += len(batch.ids) + len(batch.left_out)
            self._fresh += len(batch.ids) + len(batch.left_out)
            self._tell(before + seen, "")
        # A shard whose every item was left out still has its layers' widths on record
        # elsewhere; one column stands in for them and is dropped with the empty shard.
        arrays = {
            name: np.concatenate(rows) if rows else np.zeros((0, 1), np.float32)
            for name, rows in parts.items()
        }
        return np.asarray(ids, dtype=np.int64), arrays, lines

    def _batch(self, batch: Batch) -> tuple[list[int], dict[str, np.ndarray], list[LeftOut]]:
        if not batch.prepared:
            return [], {}, []
        chunks = list(self._encoded(batch.prepared))
        found = {
            name: np.concatenate([chunk[name] for chunk in chunks])[batch.rows]
            for name in self.layers
        }
        finite = np.all([np.isfinite(rows).all(axis=1) for rows in found.values()], axis=0)
        bad = [
            LeftOut(f"item {item}", f"{self.encoder.info.id} gave NaN or infinite values for it.")
            for item, good in zip(batch.ids, finite, strict=True)
            if not good
        ]
        if not bad:
            return batch.ids, found, []
        kept = [item for item, good in zip(batch.ids, finite, strict=True) if good]
        return kept, {name: rows[finite] for name, rows in found.items()}, bad

    def _encoded(self, prepared: list[Any]) -> Iterator[dict[str, np.ndarray]]:
        """Run the encoder in chunks of the batch size, halved whenever the GPU is full."""
        at = 0
        while at < len(prepared):
            chunk = prepared[at : at + self.batch_size]
            try:
                found = self.encoder.run(chunk, layers=self.layers, pooling=self.pooling)
            except RuntimeError as err:
                self._halve(err)
                continue
            at += len(chunk)
            yield found

    def _halve(self, err: RuntimeError) -> None:
        import torch

        if not isinstance(err, torch.OutOfMemoryError):
            raise err
        torch.cuda.empty_cache()
        if self.batch_size == 1:
            raise UserError(
                f"{self.encoder.info.id} does not fit into the memory of the GPU with one item.",
                "Use device='cpu', or free the GPU.",
            ) from err
        self.batch_size //= 2

    def _tell(self, rows: int, message: str) -> None:
        if self._progress is None:
            return
        seconds = time.monotonic() - self._start
        rate = self._fresh / seconds if seconds > 0 else 0.0
        text = f"{rows:,} of {len(self.ids):,} rows, {rate:.1f} rows/s. {message}".strip()
        self._progress(rows / len(self.ids), text)
