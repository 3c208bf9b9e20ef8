"""Traps on the way from weights to features: activations, precision, names, cut texts.

Tiny random models in each library's own format, read back and compared with the library itself.
"""

import io
import json
import subprocess
import sys

import numpy as np
import open_clip
import pytest
import timm
import torch
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertModel,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    ResNetConfig,
    ResNetModel,
    ViTConfig,
    ViTModel,
)

from core.encoders import load
from core.errors import BadInput
from core.extract import run_extract
from tests.unit.encoders.test_adapters import SMALL, inputs, save_words


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class TestTraps:
    def test_quick_gelu_is_another_network(self, tmp_path, pictures):
        """Bank 28: the same weights with the other activation give other features."""
        config = {
            "embed_dim": 16,
            "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32,
                           "patch_size": 8},
            "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2,
                         "layers": 2},
        }  # fmt: skip
        state = open_clip.CLIP(**config).state_dict()
        found, modules = {}, {}
        for name, quick in (("plain", False), ("quick", True)):
            folder = tmp_path / name
            folder.mkdir()
            own = {**config, "quick_gelu": quick}
            (folder / "open_clip_config.json").write_text(json.dumps({
                "model_cfg": own,
                "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "shortest",
                                   "interpolation": "bicubic"}}))  # fmt: skip
            save_file(state, folder / "open_clip_model.safetensors")
            encoder = load(f"open_clip/local-dir:{folder}/image", "cpu")
            found[name] = encoder.encode(pictures)["joint"]
            modules[name] = open_clip.CLIP(**own).eval()
            modules[name].load_state_dict(state)
            with torch.no_grad():
                want = modules[name].encode_image(inputs(encoder, pictures)).numpy()
            assert np.allclose(found[name], want, atol=1e-5)
            assert encoder.transform["activation"] == ("QuickGELU" if quick else "GELU")
        assert np.abs(found["plain"] - found["quick"]).max() > 1e-4

    @pytest.mark.parametrize(("tag", "quick"), [("openai", True), ("laion2b_s34b_b79k", False)])
    def test_the_activation_is_the_tags_own(self, tmp_path, monkeypatch, tag, quick):
        """Bank 28: one architecture, two tags; OpenAI's weights get the quick GELU."""
        from core.encoders import open_clip_adapter as adapter

        asked = []
        monkeypatch.setattr(adapter, "hub_file", lambda *_: tmp_path / "w.safetensors")

        def create(*args, **options):
            asked.append(options["force_quick_gelu"])
            raise RuntimeError("enough")

        monkeypatch.setattr(open_clip, "create_model", create)
        with pytest.raises(BadInput, match="enough"):
            load(f"open_clip/ViT-B-32:{tag}/image", "cpu")
        assert asked == [quick]

    def test_one_name_with_other_weights_is_another_set_of_features(self, space, tmp_path):
        """Bank 28, 29: weights replaced under the same name never answer for the old ones."""
        import pandas as pd

        save_words(tmp_path / "b")
        space.add_dataset("t", "T", "text", pd.DataFrame({"id": [0, 1], "caption": ["a", "b"]}))
        keys, rows = [], []
        for seed in (0, 1, 0):
            torch.manual_seed(seed)
            module = BertModel(BertConfig(vocab_size=57, **SMALL)).eval()
            module.save_pretrained(tmp_path / "b")
            found = run_extract(space, "t", f"transformers/{tmp_path}/b", layers="default")
            keys.append(found.key)
            rows.append(np.asarray(found.layer("block02")))
        assert keys[0] == keys[2] != keys[1]
        assert np.array_equal(rows[0], rows[2])
        assert np.abs(rows[0] - rows[1]).max() > 0.1

    def test_layers_of_unequal_width_are_kept_as_they_are(self, space, tmp_path, pictures):
        """Stages that widen: each layer is stored with its own width."""
        import pandas as pd

        module = ResNetModel(
            ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
        ).eval()
        module.save_pretrained(tmp_path / "r")
        files = []
        for picture in pictures:
            held = io.BytesIO()
            picture.save(held, "PNG")
            files.append(held.getvalue())
        items = pd.DataFrame({"id": range(len(files)), "sha256": space.blobs.put_many(files)})
        space.add_dataset("p", "P", "image", items)
        encoder = load(f"transformers/{tmp_path}/r", "cpu")
        found = run_extract(space, "p", encoder)
        want = encoder.encode(pictures)
        assert {n: found.layer(n).shape[1] for n in found.layers} == {
            "stage0": 8, "stage1": 8, "stage2": 16
        }  # fmt: skip
        for name in found.layers:
            assert np.allclose(found.layer(name), want[name], atol=1e-5)

    def test_register_tokens_are_no_patches(self, tmp_path, pictures):
        config = Dinov2WithRegistersConfig(
            image_size=28, patch_size=14, num_register_tokens=3, hidden_size=32,
            num_hidden_layers=2, num_attention_heads=2,
        )  # fmt: skip
        module = Dinov2WithRegistersModel(config).eval()
        module.save_pretrained(tmp_path)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        x = inputs(encoder, pictures)
        with torch.no_grad():
            states = module(pixel_values=x, output_hidden_states=True).hidden_states
        mean = encoder.encode(pictures, pooling="mean")["block02"]
        assert np.allclose(mean, states[2][:, 4:].mean(1).numpy(), atol=1e-5)
        assert not np.allclose(mean, states[2][:, 1:].mean(1).numpy(), atol=1e-4)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_half_precision_weights_are_read_in_full(self, tmp_path, pictures, dtype):
        """Bank 30: saved in 16 bits, run in float32: equal to the rounded weights, row by row."""
        module = ViTModel(ViTConfig(image_size=32, patch_size=8, **SMALL)).eval().to(dtype)
        module.save_pretrained(tmp_path / "t")
        encoder = load(f"transformers/{tmp_path}/t", "cpu")
        with torch.no_grad():
            out = module.float()(pixel_values=inputs(encoder, pictures), output_hidden_states=True)
        want = out.hidden_states[2][:, 0].numpy()
        assert np.allclose(encoder.encode(pictures)["block02"], want, atol=1e-5)
        small = timm.create_model("resnet10t", num_classes=3).eval().to(dtype)
        save_file(small.state_dict(), tmp_path / "w.safetensors")
        found = load(f"timm/resnet10t@{tmp_path}/w.safetensors", "cpu").encode(pictures)
        assert all(rows.dtype == np.float32 and np.isfinite(rows).all() for rows in found.values())

    def test_a_half_downloaded_file_is_named(self, tmp_path):
        """Bank 29: weights cut in the middle."""
        module = timm.create_model("resnet10t", num_classes=3)
        path = tmp_path / "w.safetensors"
        save_file(module.state_dict(), path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(BadInput, match=r"w\.safetensors cannot be read"):
            load(f"timm/resnet10t@{path}", "cpu")

    def test_texts_that_are_cut_are_counted(self, space, tmp_path):
        """Bank 10: over the limit of tokens, counted and kept with the features."""
        import pandas as pd

        module = BertModel(BertConfig(vocab_size=57, max_position_embeddings=12, **SMALL)).eval()
        module.save_pretrained(tmp_path / "b")
        save_words(tmp_path / "b")
        texts = ["a cat", "a b c d e f g h i j k l m n", "a cat", "x " * 40]
        space.add_dataset("t", "T", "text", pd.DataFrame({"id": range(4), "caption": texts}))
        found = run_extract(space, "t", f"transformers/{tmp_path}/b", layers="default")
        assert found.meta["cut_texts"] == {"n": 2, "limit": 12}
        assert len(found) == 4

    def test_clip_counts_its_frame(self, tmp_path):
        from core.encoders.open_clip_adapter import _length

        length = _length(open_clip.get_tokenizer("RN50"))
        assert length("a cat") == (4, 77)
        assert length("cat " * 100)[0] == 102

    def test_another_tokenizer_counts_by_itself_and_by_its_own_context(self, tmp_path):
        """Bank 10: SigLIP2's context of 64 is not CLIP's 77; texts beyond it are counted."""
        from core.encoders.open_clip_adapter import _length

        save_words(tmp_path)
        length = _length(open_clip.tokenizer.HFTokenizer(str(tmp_path), context_length=64))
        assert length("a b") == (4, 64)
        assert length("a " * 70) == (72, 64)

    def test_torch_and_faiss_share_a_process(self):
        """Bank 31: two OpenMP libraries in one process, both at work."""
        code = (
            "import faiss, torch, numpy as np\n"
            "x = np.random.default_rng(0).standard_normal((500, 32)).astype('float32')\n"
            "i = faiss.IndexFlatL2(32); i.add(x); d, n = i.search(x, 2)\n"
            "assert (n[:, 0] == np.arange(500)).all()\n"
            "t = torch.from_numpy(x); assert torch.isfinite(t @ t.T).all(); print('fine')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
        )
        assert done.stdout.strip() == "fine", done.stderr[-500:]
