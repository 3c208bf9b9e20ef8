"""An image model in ONNX with named outputs: ``onnx/FILE.onnx``.

Each floating output is a layer, in the graph's order: maps are averaged over their places,
tokens over all of them. What the graph cannot say (mean, standard deviation, which outputs to
keep, how many tokens stand before the patches, the class token first) is read from ``FILE.json``
beside it::

    {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "size": 224,
     "resize": 256, "interpolation": "bicubic", "layout": "NCHW",
     "outputs": {"stage4": "/layer4/Relu_output_0"}, "prefix_tokens": 1}

Axis letters: b batch, c channels, h and w, t tokens, d width.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.base import ImageTransform, TorchEncoder, with_layers
from core.encoders.demo_image import IMAGENET_MEAN, IMAGENET_STD, of_255
from core.errors import BadInput, NeedsWeights
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

KEYS = {"mean", "std", "size", "resize", "interpolation", "layout", "outputs", "bgr", "scale",
        "prefix_tokens"}  # fmt: skip


def load(info: EncoderInfo, name: str, device: torch.device) -> TorchEncoder:
    """Load an ONNX file; see the module's text.

    Raises
    ------
    NeedsWeights
        There is no such file, or onnxruntime is not installed.
    BadInput
        The file is no ONNX model, its input is not one picture, or an output is not there.
    """
    import torch

    path = Path(name).expanduser()
    session = _session(path, info.id, device)
    about = _about(path)
    size, layout = _input(session, about, info.id)
    outputs = _outputs(session, about, info.id)
    transform = ImageTransform(
        size=size,
        resize=int(about.get("resize", 0)),
        mean=_channels(about.get("mean", IMAGENET_MEAN), about),
        std=_channels(about.get("std", IMAGENET_STD), about),
        bgr=bool(about.get("bgr", False)),
        interpolation=str(about.get("interpolation", "bicubic")),
    )
    feed = session.get_inputs()[0].name
    prefix = _prefix(about, path)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        x = np.stack(prepared)
        given = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        found = session.run(list(outputs.values()), {feed: given})
        return {
            layer: torch.from_numpy(_pooled(array, pooling, layout, prefix))
            for layer, array in zip(outputs, found, strict=True)
        }

    with torch.inference_mode():
        blank = [np.zeros((3, size, size), np.float32)] * 2
        widths = {k: int(v.shape[1]) for k, v in forward(blank, "mean").items()}
    tokens = any(len(o.shape or ()) == 3 for o in session.get_outputs())
    return TorchEncoder(
        with_layers(info, widths),
        forward,
        prepare=transform,
        transform={**transform.describe(), "layout": layout, "prefix_tokens": prefix},
        revision=path.name,
        weights_digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        poolings=("cls", "mean") if tokens and prefix else ("mean",),
        device=device,
    )


def _session(path: Path, model: str, device: torch.device) -> Any:
    try:
        import onnxruntime as ort
    except ImportError as err:
        raise NeedsWeights(
            f"{model} needs the package onnxruntime.", "pip install 'theodolite[onnx]'"
        ) from err
    if not path.is_file():
        raise NeedsWeights(f"{model}: looked for {path}.", "Check the path.")
    wanted = ["CUDAExecutionProvider"] if device.type == "cuda" else []
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # One thread a session: sums in one order, and workers do not fight for cores.
    options.intra_op_num_threads = 1 if device.type == "cpu" else 0
    providers = [p for p in wanted if p in ort.get_available_providers()]
    try:
        return ort.InferenceSession(
            str(path), sess_options=options, providers=[*providers, "CPUExecutionProvider"]
        )
    except Exception as err:  # onnxruntime's errors share no base class
        raise BadInput(
            f"{path.name} cannot be read as an ONNX model ({str(err).splitlines()[0][:160]}).",
            "Export the model again.",
        ) from err


def _about(path: Path) -> dict[str, Any]:
    beside = path.with_suffix(".json")
    if not beside.is_file():
        return {}
    try:
        held = json.loads(beside.read_text("utf-8"))
    except (ValueError, OSError) as err:
        raise BadInput(f"{beside.name} cannot be read ({err}).", "Write plain JSON.") from err
    strange = sorted(set(held) - KEYS) if isinstance(held, dict) else ["not an object"]
    if strange:
        raise BadInput(
            f"{beside.name} says {strange[0]!r}, which means nothing here.",
            f"It may hold: {', '.join(sorted(KEYS))}.",
        )
    return dict(held)


def _channels(values: Any, about: dict[str, Any]) -> tuple[float, float, float]:
    numbers = tuple(float(v) for v in values)
    if len(numbers) != 3:
        raise BadInput(f"mean and std need three values, got {len(numbers)}.", "One a channel.")
    return of_255(numbers) if about.get("scale", 1) == 1 else numbers


def _input(session: Any, about: dict[str, Any], model: str) -> tuple[int, str]:
    inputs = session.get_inputs()
    shape = list(inputs[0].shape) if inputs else []
    if len(inputs) != 1 or len(shape) != 4 or inputs[0].type != "tensor(float)":
        raise BadInput(
            f"{model}: its input is {[(i.name, i.shape, i.type) for i in inputs]}; one float32 "
            "picture, (b, 3, h, w), was expected.",
            "Export the image tower alone, in float32.",
        )
    layout = str(about.get("layout") or ("NHWC" if shape[3] == 3 and shape[1] != 3 else "NCHW"))
    side = shape[2] if layout == "NCHW" else shape[1]
    size = int(about.get("size") or (side if isinstance(side, int) else 224))
    return size, layout


def _outputs(session: Any, about: dict[str, Any], model: str) -> dict[str, str]:
    there = {o.name: o for o in session.get_outputs()}
    asked = about.get("outputs")
    if asked:
        lacking = [name for name in asked.values() if name not in there]
        if lacking:
            raise BadInput(
                f"{model} has no output {lacking[0]!r}.",
                f"Its outputs are: {', '.join(there)}. Export the layer as an output.",
            )
        return dict(asked)
    usable = {
        n: n for n, o in there.items() if "float" in o.type and len(o.shape or ()) in (2, 3, 4)
    }
    if not usable:
        raise BadInput(f"{model} has no floating output of rows.", "Export its features.")
    return usable


def _prefix(about: dict[str, Any], path: Path) -> int:
    """Return how many tokens stand before the patches; a graph does not say, so 0 is assumed."""
    given = about.get("prefix_tokens", 0)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise BadInput(
            f"{path.stem}.json says prefix_tokens={given!r}; a count of 0 or more was expected.",
            "1 for a class token, 1 + r with r register tokens.",
        )
    return given


def _pooled(array: np.ndarray, pooling: str, layout: str, prefix: int) -> np.ndarray:
    """Return (b, d): maps averaged, tokens by their class token or the mean of the patches."""
    if array.ndim == 4:
        array = array.mean(axis=(2, 3) if layout == "NCHW" else (1, 2))
    elif array.ndim == 3:
        if array.shape[1] <= prefix:
            raise BadInput(
                f"prefix_tokens={prefix}, but an output has {array.shape[1]} tokens.",
                "Name the outputs that hold the patches, or a smaller count.",
            )
        array = array[:, 0] if pooling == "cls" else array[:, prefix:].mean(axis=1)
    return np.ascontiguousarray(array, dtype=np.float32)
