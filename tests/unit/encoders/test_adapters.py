"""The generic adapters, on tiny random models saved in each library's own format.

Each is compared with a forward pass through the library itself, so that a wrong layer, a
wrong pooling or weights that were not loaded cannot pass.
"""

import json

import numpy as np
import open_clip
import pytest
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertModel,
    CLIPConfig,
    CLIPModel,
    ResNetConfig,
    ResNetModel,
    ViTConfig,
    ViTModel,
)

from core.encoders import load
from core.encoders.base import Encoder
from core.errors import BadInput, NeedsWeights

TEXTS = ["a cat", "two dogs run over the hill", "x"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz",
         *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]  # fmt: skip
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64}  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def inputs(encoder, pictures):
    return torch.from_numpy(np.stack([encoder.prepare(p) for p in pictures]))


def check(encoder, items):
    """The contract: layers, types, and rows that do not depend on the batch."""
    assert isinstance(encoder, Encoder)
    found = encoder.encode(items)
    assert tuple(found) == encoder.info.layers
    assert found[encoder.info.default_layer].shape == (len(items), encoder.info.dim)
    assert len(encoder.weights_digest) == 64
    alone = [encoder.encode([item]) for item in items]
    for name, rows in found.items():
        assert rows.dtype == np.float32
        joined = np.concatenate([one[name] for one in alone])
        assert np.abs(joined - rows).max() <= 1e-4 * max(1.0, np.abs(rows).max())
    return found


def save_words(folder):
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )


class TestTimm:
    def saved(self, tmp_path, name, **options):
        module = timm.create_model(name, num_classes=7, **options).eval()
        save_file(module.state_dict(), tmp_path / "w.safetensors")
        return module, load(f"timm/{name}@{tmp_path}/w.safetensors", "cpu")

    def test_a_residual_network(self, tmp_path, pictures):
        module, encoder = self.saved(tmp_path, "resnet10t")
        found = check(encoder, pictures)
        with torch.no_grad():
            final = module.forward_features(inputs(encoder, pictures))
            pooled = module.forward_head(final, pre_logits=True)
        assert np.allclose(found["pool"], pooled.numpy(), atol=1e-4)
        assert np.allclose(found["stage5"], final.mean((2, 3)).numpy(), atol=1e-4)
        config = module.pretrained_cfg
        assert encoder.transform["input"] == list(config["input_size"])

    def test_a_transformer_and_its_poolings(self, tmp_path, pictures):
        module, encoder = self.saved(tmp_path, "test_vit")
        found = check(encoder, pictures)
        states = []
        for block in module.blocks:
            block.register_forward_hook(lambda _m, _i, out: states.append(out))
        with torch.no_grad():
            module(inputs(encoder, pictures))
        assert encoder.poolings == ("cls", "mean")
        for number, state in enumerate(states, start=1):
            assert np.allclose(found[f"block{number:02d}"], state[:, 0].numpy(), atol=1e-4)
        means = encoder.encode(pictures, pooling="mean")
        assert np.allclose(means["block01"], states[0][:, 1:].mean(1).numpy(), atol=1e-4)

    def test_a_pytorch_file_with_a_wrapper(self, tmp_path, pictures):
        module = timm.create_model("resnet10t", num_classes=3)
        path = tmp_path / "checkpoint.pth"
        state = {f"module.{k}": v for k, v in module.state_dict().items()}
        torch.save({"epoch": 3, "state_dict": state}, path)
        plain = tmp_path / "w.safetensors"
        save_file(module.state_dict(), plain)
        a = load(f"timm/resnet10t@{path}", "cpu")
        b = load(f"timm/resnet10t@{plain}", "cpu")
        assert a.weights_digest == b.weights_digest

    def test_weights_of_another_network(self, tmp_path):
        module = timm.create_model("test_vit")
        save_file(module.state_dict(), tmp_path / "w.safetensors")
        with pytest.raises(BadInput, match="does not fit timm/resnet10t"):
            load(f"timm/resnet10t@{tmp_path}/w.safetensors", "cpu")

    def test_a_checkpoint_that_runs_code(self, tmp_path, capsys):
        class Harmful:
            def __reduce__(self):
                return (print, ("run",))

        torch.save({"state_dict": Harmful()}, tmp_path / "w.pth")
        with pytest.raises(BadInput, match="Only tensors are read"):
            load(f"timm/resnet10t@{tmp_path}/w.pth", "cpu")
        assert "run" not in capsys.readouterr().out

    def test_no_checkpoint(self, tmp_path):
        with pytest.raises(NeedsWeights, match="looked for"):
            load(f"timm/resnet10t@{tmp_path}/none.pth", "cpu")

    def test_a_file_that_is_no_checkpoint(self, tmp_path):
        (tmp_path / "w.pth").write_bytes(b"not a checkpoint")
        with pytest.raises(BadInput):
            load(f"timm/resnet10t@{tmp_path}/w.pth", "cpu")
        torch.save([1, 2], tmp_path / "w.pth")
        with pytest.raises(BadInput, match="no state dict"):
            load(f"timm/resnet10t@{tmp_path}/w.pth", "cpu")


class TestTorchvision:
    def saved(self, tmp_path, name):
        module = torchvision.models.get_model(name, num_classes=5).eval()
        torch.save(module.state_dict(), tmp_path / "w.pth")
        return module, load(f"torchvision/{name}@{tmp_path}/w.pth", "cpu")

    def test_a_residual_network(self, tmp_path, pictures):
        module, encoder = self.saved(tmp_path, "resnet18")
        found = check(encoder, pictures)
        with torch.no_grad():
            logits = module(inputs(encoder, pictures)).numpy()
        head = found["pool"] @ module.fc.weight.detach().numpy().T + module.fc.bias.detach().numpy()
        assert np.allclose(head, logits, atol=1e-3)
        assert [encoder.info.layers[i] for i in (0, -1)] == ["stage1", "pool"]

    def test_one_that_classifies_by_convolution(self, tmp_path, pictures):
        module, encoder = self.saved(tmp_path, "squeezenet1_1")
        seen = []
        module.features.register_forward_hook(lambda _m, _i, out: seen.append(out))
        with torch.no_grad():
            module(inputs(encoder, pictures))
        found = check(encoder, pictures)
        assert np.allclose(found["pool"], seen[0].mean((2, 3)).numpy(), atol=1e-4)

    def test_weights_of_another_network(self, tmp_path):
        module = torchvision.models.squeezenet1_1()
        torch.save(module.state_dict(), tmp_path / "w.pth")
        with pytest.raises(BadInput, match="does not fit"):
            load(f"torchvision/resnet18@{tmp_path}/w.pth", "cpu")


class TestTransformers:
    def test_vision(self, tmp_path, pictures):
        module = ViTModel(ViTConfig(**SMALL, image_size=32, patch_size=8)).eval()
        module.save_pretrained(tmp_path)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        found = check(encoder, pictures)
        assert encoder.info.modality == "image"
        with torch.no_grad():
            states = module(
                pixel_values=inputs(encoder, pictures), output_hidden_states=True
            ).hidden_states
        assert len(states) == len(found) == 3
        assert np.allclose(found["block01"], states[1][:, 0].numpy(), atol=1e-5)

    def test_the_saved_transform_is_used(self, tmp_path):
        ViTModel(ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(tmp_path)
        settings = {"size": {"shortest_edge": 40}, "do_center_crop": True,
                    "crop_size": {"height": 32, "width": 32}, "image_mean": [0.5, 0.5, 0.5],
                    "image_std": [0.25, 0.25, 0.25], "resample": 2}  # fmt: skip
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
        encoder = load(f"transformers/{tmp_path}", "cpu")
        assert encoder.transform["input"] == [3, 32, 32]
        assert encoder.transform["size"] == {"shortest_edge": 40}
        assert encoder.transform["resample"] == 2
        grey = encoder.prepare(Image.new("RGB", (50, 70), (51, 51, 51)))
        assert np.allclose(grey, (0.2 - 0.5) / 0.25, atol=1e-6)

    def test_convolutional(self, tmp_path, pictures):
        config = ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
        )
        ResNetModel(config).save_pretrained(tmp_path)
        found = check(load(f"transformers/{tmp_path}", "cpu"), pictures)
        assert {name: rows.shape[1] for name, rows in found.items()} == {
            "stage0": 8, "stage1": 8, "stage2": 16
        }  # fmt: skip

    def test_text(self, tmp_path):
        module = BertModel(BertConfig(**SMALL, vocab_size=len(WORDS))).eval()
        module.save_pretrained(tmp_path)
        save_words(tmp_path)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        found = check(encoder, TEXTS)
        assert encoder.info.modality == "text"
        ids = torch.tensor([[2, 5, 7, 31 + 0, 31 + 19, 3]])  # [CLS] a c ##a ##t [SEP]
        with torch.no_grad():
            states = module(input_ids=ids, output_hidden_states=True).hidden_states
        assert np.allclose(found["block02"][0], states[2][0].mean(0).numpy(), atol=1e-5)
        last = encoder.encode(TEXTS, pooling="last")["block02"][0]
        assert np.allclose(last, states[2][0, -1].numpy(), atol=1e-5)

    def test_text_without_its_tokenizer(self, tmp_path):
        BertModel(BertConfig(**SMALL, vocab_size=40)).save_pretrained(tmp_path)
        with pytest.raises(NeedsWeights, match="tokenizer"):
            load(f"transformers/{tmp_path}", "cpu")

    def test_a_dual_encoder(self, tmp_path, pictures):
        text = {**SMALL, "vocab_size": len(WORDS), "max_position_embeddings": 20,
                "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}  # fmt: skip
        vision = {**SMALL, "image_size": 32, "patch_size": 8}
        config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
        CLIPModel(config).save_pretrained(tmp_path)
        save_words(tmp_path)
        with pytest.raises(BadInput, match="dual encoder"):
            load(f"transformers/{tmp_path}", "cpu")
        for side, items in (("image", pictures), ("text", TEXTS)):
            encoder = load(f"transformers/{tmp_path}/{side}", "cpu")
            assert check(encoder, items)["joint"].shape[1] == 16
            assert encoder.info.modality == side
            assert encoder.info.pair == f"transformers/{tmp_path}"

    def test_a_folder_without_weights(self, tmp_path):
        BertConfig(**SMALL).save_pretrained(tmp_path)
        with pytest.raises(NeedsWeights, match=r"model\.safetensors"):
            load(f"transformers/{tmp_path}", "cpu")

    def test_weights_with_a_hole(self, tmp_path):
        module = ViTModel(ViTConfig(**SMALL, image_size=32, patch_size=8))
        module.save_pretrained(tmp_path)
        state = {k: v for k, v in module.state_dict().items() if "layernorm.weight" not in k}
        save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(BadInput, match="missing"):
            load(f"transformers/{tmp_path}", "cpu")

    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(NeedsWeights, match=r"config\.json"):
            load(f"transformers/{tmp_path}", "cpu")


class TestOpenClip:
    CONFIG = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32,
                       "patch_size": 8},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2,
                     "layers": 2},
    }  # fmt: skip

    @pytest.fixture
    def saved(self, tmp_path):
        preprocess = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic",
                      "resize_mode": "shortest"}  # fmt: skip
        (tmp_path / "open_clip_config.json").write_text(
            json.dumps({"model_cfg": self.CONFIG, "preprocess_cfg": preprocess})
        )
        module = open_clip.CLIP(**self.CONFIG).eval()
        save_file(module.state_dict(), tmp_path / "open_clip_model.safetensors")
        return module, f"open_clip/local-dir:{tmp_path}"

    def test_the_image_tower(self, saved, pictures):
        module, model = saved
        encoder = load(f"{model}/image", "cpu")
        found = check(encoder, pictures)
        assert encoder.transform["mean"] == [0.5] * 3
        with torch.no_grad():
            expected = module.encode_image(inputs(encoder, pictures)).numpy()
        assert np.allclose(found["joint"], expected, atol=1e-5)
        assert list(found) == ["block01", "block02", "joint"]

    def test_the_text_tower(self, saved):
        module, model = saved
        encoder = load(f"{model}/text", "cpu")
        found = check(encoder, TEXTS)
        tokens = open_clip.tokenize(TEXTS)
        with torch.no_grad():
            expected = module.encode_text(tokens).numpy()
        assert np.allclose(found["joint"], expected, atol=1e-5)
        # The last block at the end of the text, normed and projected, is the joint vector.
        last = torch.from_numpy(found["block02"])
        with torch.no_grad():
            rebuilt = (module.ln_final(last) @ module.text_projection).numpy()
        assert np.allclose(rebuilt, expected, atol=1e-4)

    def test_a_folder_without_config(self, tmp_path):
        with pytest.raises(NeedsWeights, match=r"open_clip_config\.json"):
            load(f"open_clip/local-dir:{tmp_path}/image", "cpu")

    def test_a_checkpoint_of_another_architecture(self, tmp_path):
        save_file({"x": torch.zeros(2)}, tmp_path / "w.safetensors")
        with pytest.raises(BadInput, match="does not fit"):
            load(f"open_clip/RN50:{tmp_path}/w.safetensors/image", "cpu")
