"""The modules a sentence-transformers folder puts after its transformer: pooling and dense.

``modules.json`` lists them. Pooling is by class token, mean or last token (Qwen3-Embedding
takes the last, EmbeddingGemma the mean and two dense layers). A ``Normalize`` at the end makes
rows of length one. Prompts are not added: the caller's text is encoded as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import BadInput, NeedsWeights

if TYPE_CHECKING:
    import torch

_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}
_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")


@dataclass(frozen=True)
class Sentence:
    """What follows the last token states.

    Attributes
    ----------
    pooling : {"cls", "mean", "last"}
        How tokens become one vector.
    after : callable
        Pooled vectors (b, d) to sentence vectors.
    steps : tuple of str
        Names of the modules, for the record.
    folder : Path
        Where the transformer's own files lie.
    """

    pooling: str
    after: Callable[[torch.Tensor], torch.Tensor]
    steps: tuple[str, ...]
    folder: Path


def transformer_folder(folder: Path) -> Path:
    """Return the folder of the transformer's own files: the folder, or its ``0_Transformer``."""
    modules = _modules(folder)
    first = str(modules[0].get("path", "")) if modules else ""
    inner = _inside(folder, first)
    return inner if (inner / "config.json").is_file() else folder


def read(folder: Path, model: str) -> Sentence | None:
    """Return the modules after the transformer, or None where the folder has none.

    Raises
    ------
    BadInput
        A module or a pooling that is not known: refused, not left away.
    NeedsWeights
        The weights of a dense module are missing.
    """
    modules = _modules(folder)
    if not modules:
        return None
    pooling, steps = "", []
    chain: list[Callable[[torch.Tensor], torch.Tensor]] = []
    for entry in modules[1:]:
        kind = str(entry.get("type", "")).rpartition(".")[2]
        place = _inside(folder, str(entry.get("path", "")))
        if kind == "Pooling":
            pooling = _pooling(place, model)
        elif kind == "Dense":
            chain.append(_dense(place, model))
        elif kind == "Normalize":
            chain.append(_normalised)
        else:
            raise BadInput(
                f"{model}: the module {kind!r} of modules.json is not known.",
                "Pooling, Dense and Normalize are.",
            )
        steps.append(kind if kind != "Pooling" else f"Pooling ({pooling})")

    def after(x: torch.Tensor) -> torch.Tensor:
        for step in chain:
            x = step(x)
        return x

    return Sentence(pooling or "mean", after, tuple(steps), folder)


def _modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    if not path.is_file():
        return []
    held = json.loads(path.read_text("utf-8"))
    return sorted(held, key=lambda entry: int(entry.get("idx", 0)))


def _inside(folder: Path, name: str) -> Path:
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise BadInput(f"modules.json names {name!r} outside its folder.", "Save it again.")
    return place


def _pooling(place: Path, model: str) -> str:
    held = json.loads((place / "config.json").read_text("utf-8"))
    if held.get("pooling_mode"):  # newer files name it in one word
        word = str(held["pooling_mode"]).replace("lasttoken", "last")
        on = [word] if word in _POOLINGS.values() else [f"pooling_mode={word}"]
    else:
        on = [_POOLINGS.get(k, k) for k, v in held.items() if k.startswith("pooling_mode") and v]
    if len(on) != 1 or on[0] not in _POOLINGS.values():
        raise BadInput(
            f"{model} pools by {', '.join(on) or 'nothing'}, which is not known here.",
            f"Known: {', '.join(_POOLINGS.values())}.",
        )
    return on[0]


def _dense(place: Path, model: str) -> Callable[[torch.Tensor], torch.Tensor]:
    from torch import nn

    from core.encoders.checkpoints import read_state

    held = json.loads((place / "config.json").read_text("utf-8"))
    act = str(held.get("activation_function", "torch.nn.modules.linear.Identity")).rpartition(".")[
        2
    ]
    if act not in _ACTIVATIONS:
        raise BadInput(f"{model}: activation {act!r} is not known.", f"Known: {_ACTIVATIONS}.")
    layer = nn.Linear(
        int(held["in_features"]), int(held["out_features"]), bool(held.get("bias", True))
    )
    files = [place / name for name in ("model.safetensors", "pytorch_model.bin")]
    file = next((f for f in files if f.is_file()), None)
    if file is None:
        raise NeedsWeights(f"{model}: looked for {files[0]}.", "Copy the whole folder.")
    state = {k.removeprefix("linear."): v.float() for k, v in read_state(file, model).items()}
    layer.load_state_dict(state)
    return nn.Sequential(layer.eval(), getattr(nn, act)())


def _normalised(x: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.normalize(x, dim=1)
