"""Models in other clothes: ONNX, sentence-transformers, one's own class, half precision.

Tiny random models in each format, read back and compared with the library itself.
"""

import json
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertModel,
    Qwen3Config,
    Qwen3Model,
)

from core.encoders import load
from core.encoders.own import SWITCH
from core.errors import BadInput, NeedsWeights, NotFound
from tests.unit.encoders.test_adapters import SMALL, TEXTS, check, inputs, save_words


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def onnx_file(path, *, layout="NCHW", extra=()):
    """A convolution, its ReLU, a mean over places and a linear map, all outputs named."""
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((5, 3, 3, 3)).astype(np.float32) / 5
    weight = rng.standard_normal((5, 4)).astype(np.float32)
    shape = ["b", 3, 16, 16] if layout == "NCHW" else ["b", 16, 16, 3]
    nodes, source = [], "x"
    if layout == "NHWC":
        nodes.append(helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]))
        source = "t"
    nodes += [
        helper.make_node("Conv", [source, "kernel"], ["conv"], strides=[2, 2]),
        helper.make_node("Relu", ["conv"], ["stage"]),
        helper.make_node("ReduceMean", ["stage"], ["pooled"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["pooled", "weight"], ["features"]),
    ]
    outputs = [
        helper.make_tensor_value_info("stage", TensorProto.FLOAT, ["b", 5, 7, 7]),
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["b", 4]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs,
        [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(weight, "weight")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    onnx.save(model, path)
    return kernel, weight


class TestOnnx:
    def test_named_outputs_are_layers(self, tmp_path, pictures):
        kernel, weight = onnx_file(tmp_path / "m.onnx")
        about = {"mean": [0.5] * 3, "std": [0.25] * 3, "resize": 16}
        (tmp_path / "m.json").write_text(json.dumps(about))
        encoder = load(f"onnx/{tmp_path}/m.onnx", "cpu")
        found = check(encoder, pictures)
        assert list(found) == ["stage", "features"]
        assert encoder.transform["mean"] == [127.5] * 3
        x = inputs(encoder, pictures)
        stage = torch.conv2d(x, torch.from_numpy(kernel), stride=2).relu().mean((2, 3)).numpy()
        assert np.allclose(found["stage"], stage, atol=1e-5)
        assert np.allclose(found["features"], stage @ weight, atol=1e-5)

    def test_channels_last_are_seen(self, tmp_path, pictures):
        onnx_file(tmp_path / "a.onnx")
        onnx_file(tmp_path / "b.onnx", layout="NHWC")
        a, b = (load(f"onnx/{tmp_path}/{n}.onnx", "cpu").encode(pictures) for n in "ab")
        assert np.allclose(a["features"], b["features"], atol=1e-5)

    def test_outputs_are_chosen_and_renamed(self, tmp_path, pictures):
        onnx_file(tmp_path / "m.onnx")
        (tmp_path / "m.json").write_text(json.dumps({"outputs": {"last": "features"}}))
        assert load(f"onnx/{tmp_path}/m.onnx", "cpu").info.layers == ("last",)
        (tmp_path / "m.json").write_text(json.dumps({"outputs": {"last": "nowhere"}}))
        with pytest.raises(BadInput, match="Its outputs are: stage, features"):
            load(f"onnx/{tmp_path}/m.onnx", "cpu")

    def test_what_cannot_be_read_is_refused(self, tmp_path):
        (tmp_path / "m.onnx").write_bytes(b"not a model")
        with pytest.raises(BadInput, match="cannot be read as an ONNX model"):
            load(f"onnx/{tmp_path}/m.onnx", "cpu")
        with pytest.raises(NeedsWeights, match=r"looked for .*gone\.onnx"):
            load(f"onnx/{tmp_path}/gone.onnx", "cpu")
        onnx_file(tmp_path / "k.onnx")
        (tmp_path / "k.json").write_text('{"maen": [0, 0, 0]}')
        with pytest.raises(BadInput, match="'maen'"):
            load(f"onnx/{tmp_path}/k.onnx", "cpu")

    def test_a_class_token_is_read_only_where_the_file_says_one_is_there(self, tmp_path, pictures):
        """A map of (b, 3, 16, 16) turned into 16 tokens of 48 numbers."""
        graph = helper.make_graph(
            [helper.make_node("Constant", [], ["to"], value=numpy_helper.from_array(
                np.array([0, 16, 48], np.int64))),
             helper.make_node("Reshape", ["x", "to"], ["tokens"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3, 16, 16])],
            [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["b", 16, 48])],
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=9), tmp_path / "t.onnx")  # fmt: skip
        encoder = load(f"onnx/{tmp_path}/t.onnx", "cpu")
        tokens = inputs(encoder, pictures).numpy().reshape(-1, 16, 48)
        assert encoder.poolings == ("mean",)
        assert np.allclose(encoder.encode(pictures)["tokens"], tokens.mean(1), atol=1e-5)
        (tmp_path / "t.json").write_text('{"prefix_tokens": 3}')
        encoder = load(f"onnx/{tmp_path}/t.onnx", "cpu")
        assert np.allclose(encoder.encode(pictures)["tokens"], tokens[:, 0], atol=1e-5)
        mean = encoder.encode(pictures, pooling="mean")["tokens"]
        assert np.allclose(mean, tokens[:, 3:].mean(1), atol=1e-5)
        for strange in ("16", "-1", "true", '"one"'):
            (tmp_path / "t.json").write_text(f'{{"prefix_tokens": {strange}}}')
            with pytest.raises(BadInput, match="prefix_tokens"):
                load(f"onnx/{tmp_path}/t.onnx", "cpu")

    def test_a_text_input_is_refused(self, tmp_path):
        graph = helper.make_graph(
            [helper.make_node("Identity", ["ids"], ["out"])], "g",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, ["b", "t"])],
            [helper.make_tensor_value_info("out", TensorProto.INT64, ["b", "t"])],
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=9), tmp_path / "t.onnx")  # fmt: skip
        with pytest.raises(BadInput, match="one float32 picture"):
            load(f"onnx/{tmp_path}/t.onnx", "cpu")


def sentence_folder(folder, module, pooling, *, dense=None, normalize=False, inner=False):
    """A folder as sentence-transformers writes it; returns the dense layer."""
    place = folder / "0_Transformer" if inner else folder
    module.save_pretrained(place)
    save_words(place)
    modules = [{"idx": 0, "name": "0", "path": "0_Transformer" if inner else "",
                "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling",
                "type": "sentence_transformers.models.Pooling"}]  # fmt: skip
    (folder / "1_Pooling").mkdir()
    flags = {f"pooling_mode_{name}": name == pooling
             for name in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}  # fmt: skip
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, **flags})
    )
    layer = None
    if dense:
        layer = torch.nn.Linear(32, dense, bias=False)
        (folder / "2_Dense").mkdir()
        save_file({"linear.weight": layer.weight.data}, folder / "2_Dense" / "model.safetensors")
        (folder / "2_Dense" / "config.json").write_text(
            json.dumps({"in_features": 32, "out_features": dense, "bias": False,
                        "activation_function": "torch.nn.modules.activation.Tanh"})
        )  # fmt: skip
        modules.append({"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    if normalize:
        modules.append({"idx": 3, "path": "3_Normalize",
                        "type": "sentence_transformers.models.Normalize"})  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules))
    return layer


class TestSentenceTransformers:
    def bert(self):
        return BertModel(BertConfig(vocab_size=57, **SMALL)).eval()

    def test_mean_then_dense_then_length_one(self, tmp_path):
        """As EmbeddingGemma is saved: mean of tokens, a dense layer, normalised."""
        dense = sentence_folder(tmp_path, self.bert(), "mean_tokens", dense=8, normalize=True)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        found = check(encoder, TEXTS)
        assert encoder.info.default_layer == "sentence"
        with torch.no_grad():
            want = torch.tanh(dense(torch.from_numpy(found["block02"])))
        want = torch.nn.functional.normalize(want, dim=1).numpy()
        assert np.allclose(found["sentence"], want, atol=1e-5)
        assert encoder.transform["modules"] == ["Pooling (mean)", "Dense", "Normalize"]

    def test_a_transformer_in_a_folder_of_its_own(self, tmp_path):
        sentence_folder(tmp_path, self.bert(), "cls_token", inner=True)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        found = encoder.encode(TEXTS)
        cls = encoder.encode(TEXTS, pooling="cls")
        assert np.allclose(found["sentence"], cls["block02"], atol=1e-6)

    def test_the_last_token_of_a_decoder_whatever_the_padding(self, tmp_path):
        """As Qwen3-Embedding is saved: the last token that is no padding."""
        config = Qwen3Config(vocab_size=57, head_dim=16, num_key_value_heads=2, **SMALL)
        module = Qwen3Model(config).eval()
        sentence_folder(tmp_path, module, "lasttoken")
        encoder = load(f"transformers/{tmp_path}", "cpu")
        found = check(encoder, TEXTS)
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        for row, text in zip(found["sentence"], TEXTS, strict=True):
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                want = module(input_ids=ids).last_hidden_state[0, -1].numpy()
            assert np.allclose(row, want, atol=1e-4)

    def test_a_pooling_that_is_not_known_is_refused(self, tmp_path):
        sentence_folder(tmp_path, self.bert(), "max_tokens")
        with pytest.raises(BadInput, match="pooling_mode_max_tokens"):
            load(f"transformers/{tmp_path}", "cpu")

    def test_a_dense_layer_without_weights_is_named(self, tmp_path):
        sentence_folder(tmp_path, self.bert(), "mean_tokens", dense=8)
        (tmp_path / "2_Dense" / "model.safetensors").unlink()
        with pytest.raises(NeedsWeights, match=r"2_Dense/model\.safetensors"):
            load(f"transformers/{tmp_path}", "cpu")

    def test_modules_may_not_leave_their_folder(self, tmp_path):
        sentence_folder(tmp_path, self.bert(), "mean_tokens")
        held = json.loads((tmp_path / "modules.json").read_text())
        held[1]["path"] = "../elsewhere"
        (tmp_path / "modules.json").write_text(json.dumps(held))
        with pytest.raises(BadInput, match="outside its folder"):
            load(f"transformers/{tmp_path}", "cpu")


OWN = """
import numpy as np
from core.types import EncoderInfo
class Mean:
    revision, weights_digest, poolings, transform = "1", "0" * 64, ("mean",), {}
    def __init__(self, device):
        self.info = EncoderInfo("own/mine:Mean", "Mean", "own", "image", dim=3,
                                layers=("mean",), default_layer="mean")
    def prepare(self, item):
        return np.asarray(item, np.float32).mean((0, 1))
    def run(self, prepared, *, layers="all", pooling=None):
        return {"mean": np.stack(prepared)}
    def encode(self, batch, *, layers="all", pooling=None):
        return self.run([self.prepare(i) for i in batch])
class Half:
    def __init__(self, device): self.info = None
"""


class TestOwnClass:
    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        (tmp_path / "mine_for_test.py").write_text(OWN)
        monkeypatch.syspath_prepend(tmp_path)

    def test_code_is_refused_until_an_administrator_allows_it(self, module, monkeypatch):
        monkeypatch.delenv(SWITCH, raising=False)
        with pytest.raises(BadInput, match=SWITCH):
            load("own/mine_for_test:Mean", "cpu")
        assert "mine_for_test" not in sys.modules

    def test_a_class_that_keeps_the_contract_runs(self, module, monkeypatch, pictures):
        monkeypatch.setenv(SWITCH, "1")
        encoder = load("own/mine_for_test:Mean", "cpu")
        assert encoder.encode(pictures)["mean"].shape == (len(pictures), 3)

    @pytest.mark.parametrize(
        ("name", "kind", "words"),
        [
            ("mine_for_test:Half", BadInput, "it lacks revision"),
            ("mine_for_test:None_", NotFound, "None_"),
            ("not_there_at_all:X", NotFound, "not_there_at_all"),
            ("os;x:y", BadInput, "names no class"),
        ],
    )
    def test_others_are_refused_in_words(self, module, monkeypatch, name, kind, words):
        monkeypatch.setenv(SWITCH, "1")
        with pytest.raises(kind, match=words):
            load(f"own/{name}", "cpu")
