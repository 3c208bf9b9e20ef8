"""Dual encoders trained on the spot: linear maps into one space over frozen encoders.

After Zhai et al. 2022, "LiT: Zero-Shot Transfer with Locked-image text Tuning": both towers
stay as they are, only a linear map of each is trained with the symmetric contrastive loss of
Radford et al. 2021 (CLIP), in which every caption of the same concept counts as a match.

Axis letters: n pairs, d width of a tower, p = 256 width of the joint space.

``python -m core.encoders.lit TABLE`` trains both pairs on the pictures of a Parquet table
(columns ``id``, ``concept``, ``caption``, ``domain``, ``bytes``) that holds no concept of the
demo, measures them on the demo's emoji and writes ``assets/encoders/lit-*.safetensors``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.base import Layers, choose_layers, choose_pooling, tensors_digest
from core.encoders.catalogue import LIT_PAIRS
from core.encoders.demo import projection
from core.encoders.weights import read_tensors
from core.errors import BadInput, NeedsWeights
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

    from core.encoders.base import Encoder
    from core.workspace import Workspace

WIDTH = 256
EPOCHS = 25
BATCH = 256
RATE = 1e-3
TEMPERATURE = 0.07


class LitTower:
    """One side of a dual encoder: frozen towers, their features joined, one linear map.

    The features are made zero-mean and unit-variance with the figures of the training set;
    the result has length one, as in CLIP.
    """

    poolings: tuple[str, ...] = ("joint",)

    def __init__(
        self,
        info: EncoderInfo,
        towers: Sequence[tuple[Encoder, str]],
        tensors: dict[str, np.ndarray],
    ) -> None:
        self.info = info
        self.revision = "1"
        self.weights_digest = tensors_digest(
            {**tensors, **{t.info.id: _digest_array(t.weights_digest) for t, _ in towers}}
        )
        self.transform = {"towers": {t.info.id: [layer, t.transform] for t, layer in towers}}
        self._towers = list(towers)
        #: Of the tower that cuts long texts, where one does.
        self.length = next(
            filter(None, (getattr(tower, "length", None) for tower, _ in towers)), None
        )
        side = info.modality
        self._mean, self._scale = tensors[f"{side}.mean"], tensors[f"{side}.scale"]
        self._weight, self._bias = tensors[f"{side}.weight"], tensors[f"{side}.bias"]

    def prepare(self, item: Any) -> list[Any]:
        """Return what each tower makes of the item."""
        return [tower.prepare(item) for tower, _ in self._towers]

    def run(
        self, prepared: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return the joint layer, float32 (b, 256), rows of length one.

        Raises
        ------
        NotFound, BadInput
            Another layer or pooling; an empty batch.
        """
        names = choose_layers(self.info, layers)
        choose_pooling(self, pooling)
        if not prepared:
            raise BadInput("The batch is empty.", "Give at least one item.")
        parts = [
            tower.run([item[place] for item in prepared], layers=[layer])[layer]
            for place, (tower, layer) in enumerate(self._towers)
        ]
        x = (np.concatenate(parts, axis=1) - self._mean) * self._scale  # (b, d)
        # One row at a time: a BLAS product may round by the number of rows.
        z = np.stack([row @ self._weight for row in x]) + self._bias  # (b, p)
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return dict.fromkeys(names, np.ascontiguousarray(z, dtype=np.float32))

    def encode(
        self, batch: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return the joint layer of pictures or texts, float32 (b, 256)."""
        return self.run([self.prepare(item) for item in batch], layers=layers, pooling=pooling)


def _digest_array(digest: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(digest), dtype=np.uint8)


def load_tower(
    info: EncoderInfo, device: torch.device, workspace: Workspace | None = None
) -> LitTower:
    """Load one tower of a dual encoder of the demo.

    Raises
    ------
    NeedsWeights
        The projections, or the weights of a frozen tower, are not on this machine.
    """
    from core.encoders import demo

    name = info.pair.removeprefix("demo/")
    path = projection(name)
    if not path.is_file():
        raise NeedsWeights(
            f"The projections of {info.pair} are missing: looked for {path}.",
            "Run `python -m core.encoders.lit`, or install the program again.",
        )
    frozen = LIT_PAIRS[name].towers(info.modality)
    towers = [(demo.load(model, device, workspace), layer) for model, layer in frozen]
    return LitTower(info, towers, read_tensors(path))


def facts(name: str) -> dict[str, Any]:
    """Return how a pair was trained and what it reached on held-out pictures ({} if absent)."""
    path = projection(name)
    if not path.is_file():
        return {}
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as handle:
        return dict(json.loads((handle.metadata() or {}).get("facts", "{}")))


def contrastive_loss(
    image: torch.Tensor, text: torch.Tensor, concept: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """Return the symmetric contrastive loss in which pairs of one concept all match.

    Parameters
    ----------
    image, text : Tensor, shape (n, p)
        Rows of length one.
    concept : Tensor of int64, shape (n,)
        Which rows belong together.
    scale : Tensor
        Inverse temperature, a scalar.

    Returns
    -------
    Tensor
        Mean over both directions of the cross-entropy (nats) against the uniform
        distribution over the matches of each row; log(n) for unrelated rows at scale 0.
    """
    logits = scale * image @ text.T  # (n, n)
    same = (concept[:, None] == concept[None, :]).to(logits.dtype)
    wanted = same / same.sum(dim=1, keepdim=True)
    there = -(wanted * logits.log_softmax(dim=1)).sum(dim=1).mean()
    back = -(wanted * logits.T.log_softmax(dim=1)).sum(dim=1).mean()
    return (there + back) / 2


def train(
    image: np.ndarray, text: np.ndarray, concept: np.ndarray, *, width: int = WIDTH, seed: int = 0
) -> dict[str, np.ndarray]:
    """Train the two linear maps.

    Parameters
    ----------
    image, text : ndarray, shape (n, d_image), (n, d_text)
        Features of frozen towers, row by row a picture and its caption.
    concept : ndarray of int, shape (n,)
        Equal for pairs that mean the same.
    width : int
        Width of the joint space.

    Returns
    -------
    dict
        ``image.mean``, ``image.scale``, ``image.weight`` (d, p), ``image.bias`` and the same
        for ``text``, float32.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    sides, tensors = {}, {}
    for side, x in (("image", image), ("text", text)):
        mean = x.mean(axis=0, dtype=np.float64)
        scale = 1.0 / np.maximum(x.std(axis=0, dtype=np.float64), 1e-3)
        tensors[f"{side}.mean"] = mean.astype(np.float32)
        tensors[f"{side}.scale"] = scale.astype(np.float32)
        sides[side] = torch.from_numpy(((x - mean) * scale).astype(np.float32))
    maps = {
        side: torch.nn.Parameter(
            torch.randn(x.shape[1], width, generator=generator) / np.sqrt(x.shape[1])
        )
        for side, x in sides.items()
    }
    biases = {side: torch.nn.Parameter(torch.zeros(width)) for side in sides}
    log_scale = torch.nn.Parameter(torch.tensor(np.log(1 / TEMPERATURE)))
    optimiser = torch.optim.AdamW([*maps.values(), *biases.values(), log_scale], lr=RATE)
    kinds = torch.from_numpy(np.asarray(concept, dtype=np.int64))
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(kinds), generator=generator).split(BATCH):
            joint = {
                side: torch.nn.functional.normalize(x[rows] @ maps[side] + biases[side], dim=1)
                for side, x in sides.items()
            }
            loss = contrastive_loss(joint["image"], joint["text"], kinds[rows], log_scale.exp())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    for side in sides:
        tensors[f"{side}.weight"] = maps[side].detach().numpy()
        tensors[f"{side}.bias"] = biases[side].detach().numpy()
    return tensors


def save(path: Path, tensors: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write projections with their facts in the file's metadata."""
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(a) for name, a in tensors.items()}
    save_file(arrays, path, metadata={"facts": json.dumps(about, sort_keys=True)})
    path.chmod(0o644)


if __name__ == "__main__":
    import sys

    from core.encoders.lit_training import main

    sys.exit(main())
