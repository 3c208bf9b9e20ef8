"""Weight files read as data: each converter undoes a file made here from known weights."""

import pickle

import h5py
import numpy as np
import onnx
import pytest
import timm
import torch
from transformers import Dinov2Config, Dinov2Model

from core.encoders import convert
from core.encoders.base import tensors_digest
from core.errors import BadInput

LITE_NAMES = {"conv_stem": "_conv_stem", "bn1": "_bn0", "conv_head": "_conv_head", "bn2": "_bn1",
              "classifier": "_fc"}  # fmt: skip
EXPANDED = {"conv_pw": "_expand_conv", "bn1": "_bn0", "conv_dw": "_depthwise_conv", "bn2": "_bn1",
            "conv_pwl": "_project_conv", "bn3": "_bn2"}  # fmt: skip
FIRST = {"conv_dw": "_depthwise_conv", "bn1": "_bn1", "conv_pw": "_project_conv", "bn2": "_bn2"}


def weights_of(module):
    return {
        name: value.numpy()
        for name, value in module.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }


def randomised(module, seed=0):
    torch.manual_seed(seed)
    for value in module.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value))
    return module


def flat_blocks(module):
    return [(f"blocks.{s}.{i}", b) for s, st in enumerate(module.blocks) for i, b in enumerate(st)]


def test_efficientnet(tmp_path):
    module = randomised(timm.create_model("tf_efficientnet_lite0"))
    state = {}
    prefixes = {name: number for number, (name, _) in enumerate(flat_blocks(module))}
    for name, value in module.state_dict().items():
        parent, _, leaf = name.rpartition(".")
        block, _, part = parent.rpartition(".")
        if block in prefixes:
            names = EXPANDED if f"{block}.conv_pwl.weight" in module.state_dict() else FIRST
            parent = f"_blocks.{prefixes[block]}.{names[part]}"
        else:
            parent = LITE_NAMES[parent]
        state[f"{parent}.{leaf}"] = value
    torch.save(state, tmp_path / "lite0.pth")
    found = convert.efficientnet_lite0(tmp_path / "lite0.pth")
    assert tensors_digest(found) == tensors_digest(weights_of(module))


def keras_layer(module_name, block_number):
    part = module_name.rpartition(".")[2]
    stem = {"conv_stem": "Conv1", "bn1": "bn_Conv1", "conv_head": "Conv_1", "bn2": "Conv_1_bn"}
    if block_number is None:
        return stem[part]
    if block_number == 0:
        names = {"conv_dw": "depthwise", "bn1": "depthwise_BN",
                 "conv_pw": "project", "bn2": "project_BN"}  # fmt: skip
        return f"expanded_conv_{names[part]}"
    names = {"conv_pw": "expand", "bn1": "expand_BN", "conv_dw": "depthwise",
             "bn2": "depthwise_BN", "conv_pwl": "project", "bn3": "project_BN"}  # fmt: skip
    return f"block_{block_number}_{names[part]}"


def test_mobilenet_from_keras(tmp_path):
    module = randomised(timm.create_model("mobilenetv2_100", num_classes=0))
    numbers = {name: number for number, (name, _) in enumerate(flat_blocks(module))}
    leaves = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean",
              "running_var": "moving_variance"}  # fmt: skip
    with h5py.File(tmp_path / "m.h5", "w") as handle:
        group = handle.create_group("model_weights/mobilenetv2_1.00_160")
        handle["model_weights"].create_dataset("dense/dense/kernel", data=np.zeros((4, 2)))
        for name, value in weights_of(module).items():
            parent, _, leaf = name.rpartition(".")
            layer = keras_layer(parent, numbers.get(parent.rpartition(".")[0]))
            if value.ndim == 4:
                # out, in, h, w -> h, w, in, out; depthwise -> h, w, channels, 1
                axes = (2, 3, 0, 1) if "depthwise" in layer else (2, 3, 1, 0)
                group.create_dataset(f"{layer}/kernel", data=value.transpose(axes))
            else:
                group.create_dataset(f"{layer}/{leaves[leaf]}", data=value)
    found = convert.mobilenetv2(tmp_path / "m.h5")
    assert tensors_digest(found) == tensors_digest(weights_of(module))


def test_a_keras_file_of_another_network(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as handle:
        handle.create_dataset("model_weights/mobilenetv2/Conv1/kernel", data=np.zeros((3, 3, 3, 2)))
    with pytest.raises(BadInput, match="1 tensors of MobileNetV2; 260"):
        convert.mobilenetv2(tmp_path / "m.h5")


def onnx_of(module, path):
    """Write a vision transformer as the exporter does: folded positions, unnamed weights."""
    held, nodes = [], []

    def keep(name, array):
        held.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))

    for name, value in weights_of(module).items():
        old = name.replace("o_proj", "output.dense")
        for part in ("query", "key", "value"):
            old = old.replace(f"attention.{part[0]}_proj", f"attention.attention.{part}")
        old = f"backbone.{old}"
        if name == "embeddings.position_embeddings":
            keep("onnx::Concat_1", value[:, :1])
            keep("onnx::Reshape_2", value[:, 1:])
        elif name.endswith("weight") and value.ndim == 2:
            loose = f"onnx::MatMul_{len(held)}"
            keep(loose, value.T)
            nodes.append(onnx.helper.make_node("MatMul", ["x", loose], [f"product_{loose}"]))
            bias = old.removesuffix("weight") + "bias"
            nodes.append(onnx.helper.make_node("Add", [bias, f"product_{loose}"], [f"y_{loose}"]))
        elif name != "embeddings.mask_token":
            keep(old, value)
    graph = onnx.helper.make_graph(nodes, "g", [], [], initializer=held)
    onnx.save(onnx.helper.make_model(graph), str(path))


def test_vision_transformer_from_onnx(tmp_path):
    config = Dinov2Config(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    module = randomised(Dinov2Model(config))
    with torch.no_grad():
        module.embeddings.mask_token.zero_()
    onnx_of(module, tmp_path / "v.onnx")
    found = convert.vit_s14(tmp_path / "v.onnx")
    assert tensors_digest(found) == tensors_digest(weights_of(module))


def test_a_graph_without_positions(tmp_path):
    cls = onnx.numpy_helper.from_array(
        np.zeros((1, 1, 4), np.float32), "backbone.embeddings.cls_token"
    )
    graph = onnx.helper.make_graph([], "g", [], [], initializer=[cls])
    onnx.save(onnx.helper.make_model(graph), str(tmp_path / "v.onnx"))
    with pytest.raises(BadInput, match=r"0 unnamed tensors of shape \(1, 1, d\)"):
        convert.vit_s14(tmp_path / "v.onnx")


def test_squeezenet_kernels_are_turned():
    kernel, bias = np.arange(12.0).reshape(1, 1, 3, 4), np.arange(4.0)
    held = {"conv1": [kernel, bias], "fire2/squeeze1x1": [kernel, bias],
            "fire9/expand3x3": [kernel, bias]}  # fmt: skip
    data = pickle.dumps(held, protocol=3)
    # numpy 2 pickles under its new private name; the package was pickled by numpy 1.
    found = convert.squeezenet(data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert set(found) == {
        f"{m}.{leaf}"
        for m in ("features.0", "features.3.squeeze", "features.12.expand3x3")
        for leaf in ("weight", "bias")
    }
    assert found["features.0.weight"].shape == (4, 3, 1, 1)
    assert np.array_equal(found["features.0.weight"][:, :, 0, 0], kernel[0, 0].T)


class Harmful:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize("payload", [Harmful(), np.random.default_rng(0), {"conv1": Harmful()}])
def test_a_pickle_that_asks_for_more_than_arrays(payload, capsys):
    with pytest.raises(BadInput, match="only numpy arrays are read"):
        convert.squeezenet(pickle.dumps(payload))
    assert "run" not in capsys.readouterr().out


def test_the_table_of_the_sentence_encoder_is_woven(tmp_path):
    chunks = {f"q{i + 1}": np.full((3, 2), i, np.uint8) for i in range(4)}
    np.savez(tmp_path / "w.npz", **chunks, lo=np.zeros(4), bits=np.int8([8]), eps=np.float64(1e-6))
    found = convert.usem3(tmp_path / "w.npz")
    assert found["table"][:, 0].tolist() == [0, 1, 2, 3] * 3
    assert found["eps"].shape == (1,)
    assert "bits" not in found
