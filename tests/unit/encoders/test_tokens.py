"""Which tokens are patches and what speaks for a text: read as each family was trained.

Tiny random models in transformers' own format, compared with transformers itself.
"""

import json

import numpy as np
import pytest
import timm
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from core.encoders import load
from core.errors import BadInput
from core.extract import run_extract
from tests.unit.encoders.test_adapters import SMALL, TEXTS, WORDS, check, inputs, save_words

GRID = {"image_size": 32, "patch_size": 8}
TEXT = {**SMALL, "vocab_size": len(WORDS), "max_position_embeddings": 16, "pad_token_id": 0,
        "bos_token_id": 2, "eos_token_id": 3}  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def saved(folder, module):
    module = module.eval()
    module.save_pretrained(folder)
    return module, load(f"transformers/{folder}", "cpu")


def states(module, encoder, pictures, **given):
    with torch.no_grad():
        return module(
            pixel_values=inputs(encoder, pictures), output_hidden_states=True, **given
        ).hidden_states


class TestSiglip:
    @pytest.fixture
    def module(self, tmp_path):
        config = hf.SiglipConfig(text_config=TEXT, vision_config={**SMALL, **GRID})
        module = hf.SiglipModel(config).eval()
        module.save_pretrained(tmp_path)
        save_words(tmp_path)
        return module

    def test_texts_are_padded_to_the_full_length_in_sight(self, tmp_path, module):
        """Bank 10: SigLIP reads its context's length, padding included, whatever the batch."""
        encoder = load(f"transformers/{tmp_path}/text", "cpu")
        found = check(encoder, TEXTS)
        tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path)
        ids = tokenizer(TEXTS, padding="max_length", max_length=16, truncation=True,
                        return_tensors="pt")["input_ids"]  # fmt: skip
        with torch.no_grad():
            want = module.get_text_features(input_ids=ids).pooler_output.numpy()
            longest = tokenizer(TEXTS[:1], return_tensors="pt")["input_ids"]
            wrong = module.get_text_features(input_ids=longest).pooler_output.numpy()
            last = module.text_model(input_ids=ids, output_hidden_states=True).hidden_states[2]
        assert np.allclose(found["joint"], want, atol=1e-5)
        assert not np.allclose(found["joint"][0], wrong[0], atol=1e-2)
        assert encoder.poolings == ("last", "mean")
        assert np.allclose(found["block02"], last[:, -1].numpy(), atol=1e-5)
        assert encoder.length("a " * 30) == (32, 16)

    def test_pictures_have_no_class_token(self, tmp_path, module, pictures):
        encoder = load(f"transformers/{tmp_path}/image", "cpu")
        found = check(encoder, pictures)
        with torch.no_grad():
            out = module.vision_model(
                pixel_values=inputs(encoder, pictures), output_hidden_states=True
            )
        assert encoder.poolings == ("mean",)
        assert np.allclose(found["block01"], out.hidden_states[1].mean(1).numpy(), atol=1e-5)
        assert np.allclose(found["joint"], out.pooler_output.numpy(), atol=1e-5)
        with pytest.raises(BadInput, match="no class token"):
            encoder.encode(pictures, pooling="cls")

    def test_alone_its_pooling_head_is_the_default(self, tmp_path, pictures):
        module, encoder = saved(
            tmp_path, hf.SiglipVisionModel(hf.SiglipVisionConfig(**SMALL, **GRID))
        )
        assert encoder.info.default_layer == "pool"
        with torch.no_grad():
            want = module(pixel_values=inputs(encoder, pictures)).pooler_output.numpy()
        assert np.allclose(encoder.encode(pictures)["pool"], want, atol=1e-5)


class TestPatches:
    def test_a_masked_autoencoder_sees_every_patch_in_order(self, tmp_path, pictures):
        module, encoder = saved(tmp_path, hf.ViTMAEModel(hf.ViTMAEConfig(**SMALL, **GRID)))
        found = check(encoder, pictures)
        module.config.mask_ratio = 0.0
        order = torch.arange(16.0).expand(len(pictures), 16)
        whole = states(module, encoder, pictures, noise=order)
        mean = encoder.encode(pictures, pooling="mean")
        again = encoder.encode(pictures, pooling="mean")
        for number, state in enumerate(whole):
            assert state.shape[1] == 17
            name = f"block{number:02d}"
            assert np.allclose(found[name], state[:, 0].numpy(), atol=1e-5)
            assert np.allclose(mean[name], state[:, 1:].mean(1).numpy(), atol=1e-5)
            assert np.array_equal(mean[name], again[name])

    def test_stages_that_merge_patches_have_no_class_token(self, tmp_path, pictures):
        config = hf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1],
                               num_heads=[1, 2], window_size=4)  # fmt: skip
        module, encoder = saved(tmp_path, hf.SwinModel(config))
        found = check(encoder, pictures)
        for name, state in zip(found, states(module, encoder, pictures), strict=False):
            assert np.allclose(found[name], state.mean(1).numpy(), atol=1e-5)
        assert len({rows.shape[1] for rows in found.values()}) == 2
        assert encoder.poolings == ("mean",)
        with torch.no_grad():
            want = module(pixel_values=inputs(encoder, pictures)).pooler_output.numpy()
        assert np.allclose(found["pool"], want, atol=1e-5)

    @pytest.mark.parametrize(
        ("model", "config", "extra", "before"),
        [
            (hf.DINOv3ViTModel, hf.DINOv3ViTConfig, {"num_register_tokens": 4}, 5),
            (hf.DeiTModel, hf.DeiTConfig, {}, 2),
            (hf.CLIPVisionModel, hf.CLIPVisionConfig, {}, 1),
            (hf.IJepaModel, hf.IJepaConfig, {}, 0),
        ],
    )
    def test_what_stands_before_the_patches(self, tmp_path, pictures, model, config, extra, before):
        module, encoder = saved(tmp_path, model(config(**SMALL, **GRID, **extra)))
        state = states(module, encoder, pictures)[1]
        assert state.shape[1] == 16 + before
        mean = encoder.encode(pictures, pooling="mean")["block01"]
        assert np.allclose(mean, state[:, before:].mean(1).numpy(), atol=1e-5)
        assert encoder.poolings == (("cls", "mean") if before else ("mean",))

    def test_tokens_that_cannot_be_told_apart_are_refused(self, tmp_path):
        config = hf.YolosConfig(**{**SMALL, "image_size": [32, 32], "patch_size": 8},
                                num_detection_tokens=3)  # fmt: skip
        with pytest.raises(BadInput, match="20 tokens for a picture of 32 x 32"):
            saved(tmp_path, hf.YolosModel(config))

    def test_register_tokens_of_timm_are_no_class_token(self, tmp_path, pictures):
        name = "vit_little_patch16_reg4_gap_256"
        options = {"embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 3}
        module = timm.create_model(name, **options).eval()
        assert module.num_prefix_tokens == 4
        from core.encoders.timm_adapter import _layers, _poolings

        assert _poolings(module) == ("mean",)
        x = torch.randn(2, 3, 256, 256)
        with torch.no_grad():
            found = _layers(module, x, "mean")
            tokens = module.blocks[0](module.norm_pre(module._pos_embed(module.patch_embed(x))))
        assert torch.allclose(found["block01"], tokens[:, 4:].mean(1), atol=1e-5)

    def test_a_transformer_of_timm_without_prefix_tokens(self):
        """Asked for prefix tokens it has not, this family of timm fails."""
        from core.encoders.timm_adapter import _layers, _poolings

        options = {"img_size": 32, "patch_size": 16, "embed_dim": 24, "depth": 2, "num_heads": 2}
        module = timm.create_model("vit_relpos_small_patch16_224", num_classes=3, **options).eval()
        x = torch.randn(2, 3, 32, 32)
        with torch.no_grad():
            found = _layers(module, x, "mean")
            want = module.blocks[0](module.patch_embed(x)).mean(1)
        assert _poolings(module) == ("mean",)
        assert torch.allclose(found["block01"], want, atol=1e-5)


class TestPositions:
    @pytest.mark.parametrize("family", ["Roberta", "XLMRoberta", "MPNet"])
    def test_places_counted_from_the_padding(self, space, tmp_path, family):
        """Bank 10: RoBERTa-type positions start after the padding's; what is cut is counted."""
        import pandas as pd

        config = getattr(hf, f"{family}Config")(
            **SMALL, vocab_size=len(WORDS), max_position_embeddings=20, pad_token_id=1
        )
        module = getattr(hf, f"{family}Model")(config).eval()
        module.save_pretrained(tmp_path / "m")
        save_words(tmp_path / "m")
        encoder = load(f"transformers/{tmp_path}/m", "cpu")
        assert encoder.transform["max_tokens"] == 18
        texts = ["a cat", "abc " * 30, "x"]
        check(encoder, texts)
        space.add_dataset("t", "T", "text", pd.DataFrame({"id": range(3), "caption": texts}))
        found = run_extract(space, "t", f"transformers/{tmp_path}/m", layers="default")
        assert found.meta["cut_texts"] == {"n": 1, "limit": 18}

    def test_the_limit_of_a_sentence_folder_counts(self, tmp_path):
        hf.BertModel(hf.BertConfig(**SMALL, vocab_size=len(WORDS))).save_pretrained(tmp_path)
        save_words(tmp_path)
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}))
        encoder = load(f"transformers/{tmp_path}", "cpu")
        assert encoder.length("a " * 20) == (22, 9)

    @pytest.mark.parametrize("family", ["GPT2", "OPT"])
    def test_absolute_places_of_a_decoder_do_not_move_with_the_batch(self, tmp_path, family):
        """Bank 30: padded on the right and masked, though its tokenizer says left and no mask."""
        sizes = (
            {"n_embd": 32, "n_layer": 2, "n_head": 2}
            if family == "GPT2"
            else {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32}
        )
        config = getattr(hf, f"{family}Config")(**sizes, vocab_size=len(WORDS))
        getattr(hf, f"{family}Model")(config).eval().save_pretrained(tmp_path)
        save_words(tmp_path)
        about = json.loads((tmp_path / "tokenizer_config.json").read_text())
        about |= {"padding_side": "left", "model_input_names": ["input_ids"]}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(about))
        check(load(f"transformers/{tmp_path}", "cpu"), TEXTS)

    def test_a_class_token_is_offered_only_where_one_stands_first(self, tmp_path):
        for folder, frame in (("with", True), ("without", False)):
            hf.BertModel(hf.BertConfig(**SMALL, vocab_size=3)).save_pretrained(tmp_path / folder)
            words = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "a": 2}, unk_token="[UNK]"))
            words.pre_tokenizer = Whitespace()
            if frame:
                words.post_processor = TemplateProcessing("[CLS] $A", None, [("[CLS]", 1)])
            hf.PreTrainedTokenizerFast(
                tokenizer_object=words, unk_token="[UNK]", cls_token="[CLS]"
            ).save_pretrained(tmp_path / folder)
        encoder = load(f"transformers/{tmp_path}/with", "cpu")
        assert encoder.poolings == ("mean", "cls", "last")
        check(encoder, ["a a a", "a"])  # it has no padding token of its own
        encoder = load(f"transformers/{tmp_path}/without", "cpu")
        assert encoder.poolings == ("mean", "last")
        with pytest.raises(BadInput, match="no token of ''"):
            encoder.encode([""])


STRANGE = ["", "  ", "\N{GRINNING FACE}", "\N{MAN}\u200d\N{ROCKET}", "שלום abc", "e\u0301",
           "\ud83d", "a\x00b", "x" * 50_000, "<script>", "null"]  # fmt: skip


def test_strange_texts_are_read_and_never_stop_a_batch(tmp_path):
    """Bank 9: emoji, ZWJ, bidi, combining marks, a lone surrogate, NUL and 50,000 characters."""
    hf.BertModel(hf.BertConfig(**SMALL, vocab_size=len(WORDS))).save_pretrained(tmp_path)
    save_words(tmp_path)
    encoder = load(f"transformers/{tmp_path}", "cpu")
    found = encoder.encode(STRANGE)["block02"]
    assert found.shape == (len(STRANGE), 32)
    assert np.isfinite(found).all()
    assert encoder.prepare("\ud83d") == "\N{REPLACEMENT CHARACTER}"
    assert encoder.prepare("\N{GRINNING FACE}") == "\N{GRINNING FACE}"


class TestPyTorchFiles:
    def bin_only(self, folder):
        module = hf.ViTModel(hf.ViTConfig(**SMALL, **GRID)).eval()
        module.save_pretrained(folder)
        torch.save(module.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
        return module

    def test_tensors_are_read_where_there_is_no_safetensors(self, tmp_path, pictures):
        module = self.bin_only(tmp_path)
        encoder = load(f"transformers/{tmp_path}", "cpu")
        want = states(module, encoder, pictures)[2][:, 0].numpy()
        assert np.allclose(encoder.encode(pictures)["block02"], want, atol=1e-5)

    def test_safetensors_go_first(self, tmp_path, pictures):
        self.bin_only(tmp_path)
        torch.manual_seed(1)
        other = hf.ViTModel(hf.ViTConfig(**SMALL, **GRID)).eval()
        save_file(other.state_dict(), tmp_path / "model.safetensors", metadata={"format": "pt"})
        encoder = load(f"transformers/{tmp_path}", "cpu")
        want = states(other, encoder, pictures)[2][:, 0].numpy()
        assert np.allclose(encoder.encode(pictures)["block02"], want, atol=1e-5)

    def test_code_in_one_is_not_run(self, tmp_path, capsys):
        class Shout:
            def __reduce__(self):
                return print, ("it ran",)

        self.bin_only(tmp_path)
        torch.save({"w": Shout()}, tmp_path / "pytorch_model.bin")
        with pytest.raises(BadInput, match="does not fit"):
            load(f"transformers/{tmp_path}", "cpu")
        assert "it ran" not in capsys.readouterr().out
