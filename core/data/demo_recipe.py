"""What the demo ships: which features of which data sets, and which analyses of them.

The one place to extend: :mod:`core.data.bake` computes, writes and checks what stands here,
and nothing else. Feature files are named ``dataset--model``, result folders by ``name``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class FeatureRecipe:
    """One feature set of the demo.

    Attributes
    ----------
    dataset, model : str
        What is read, and by which encoder.
    layers : {"all", "default"}
        Every layer, or the default one alone, which keeps the file small.
    ship : bool
        Whether its file lies in ``assets``; else it is computed when asked for.
    """

    dataset: str
    model: str
    layers: Literal["all", "default"] = "default"
    ship: bool = True


@dataclass(frozen=True)
class AnalysisRecipe:
    """One shipped result.

    Attributes
    ----------
    name : str
        Name of its folder in ``assets/demo/results``.
    analysis : str
        "transfer", "quality", "contrast", "stitching" or "explore".
    params : dict
        Parameters that differ from the defaults, as a page would pass them.
    models : tuple of str
        Encoders whose features it needs; without them it is left out.
    """

    name: str
    analysis: str
    params: dict[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()


STYLES = ("twemoji", "noto", "openmoji", "fluent-flat", "fluent-hc", "emojione")
VIT = "demo/vit-s14"
SQUEEZE = "demo/squeezenet1.1"
MINILM = "demo/minilm-l6"
IMAGE_ENCODERS = (VIT, "demo/efficientnet-lite0", SQUEEZE, "demo/mobilenetv2")
TEXT_ENCODERS = (MINILM, "demo/minilm-l6-int8", "demo/use-m3")
DUAL_TOWERS = (
    "demo/lit-cnn-minilm/image",
    "demo/lit-cnn-minilm/text",
    "demo/lit-vit-minilm/image",
    "demo/lit-vit-minilm/text",
)

FEATURES: tuple[FeatureRecipe, ...] = (
    FeatureRecipe("emoji", VIT, "all"),
    *(FeatureRecipe("emoji", model) for model in IMAGE_ENCODERS[1:]),
    FeatureRecipe("emoji", MINILM),
    *(FeatureRecipe("emoji", tower) for tower in DUAL_TOWERS),
    *(FeatureRecipe("clipart", model) for model in (VIT, SQUEEZE)),
    *(FeatureRecipe("names", model) for model in TEXT_ENCODERS),
)

ANALYSES: tuple[AnalysisRecipe, ...] = (
    *(
        AnalysisRecipe(
            f"transfer-{style}",
            "transfer",
            {"dataset": "emoji", "model": VIT, "target": style},
            (VIT,),
        )
        for style in STYLES
    ),
    AnalysisRecipe(
        "quality-emoji",
        "quality",
        {"dataset": "emoji", "models": [*IMAGE_ENCODERS, *DUAL_TOWERS[::2]]},
        (*IMAGE_ENCODERS, *DUAL_TOWERS[::2]),
    ),
    AnalysisRecipe(
        "contrast-vit-over-squeezenet",
        "contrast",
        {"dataset": "emoji", "target": VIT, "reference": SQUEEZE, "modality": "image"},
        (VIT, SQUEEZE),
    ),
    AnalysisRecipe(
        "contrast-squeezenet-over-vit",
        "contrast",
        {"dataset": "emoji", "target": SQUEEZE, "reference": VIT, "modality": "image"},
        (VIT, SQUEEZE),
    ),
    *(
        AnalysisRecipe(
            f"contrast-{name}-with-text",
            "contrast",
            {
                "dataset": "emoji",
                "target": target,
                "reference": reference,
                "modality": "image+text",
                "text_model": MINILM,
            },
            (VIT, SQUEEZE, MINILM),
        )
        for name, target, reference in (
            ("vit-over-squeezenet", VIT, SQUEEZE),
            ("squeezenet-over-vit", SQUEEZE, VIT),
        )
    ),
    AnalysisRecipe(
        "align-squeezenet-to-vit",
        "alignment",
        {"dataset": "emoji", "target": VIT, "reference": SQUEEZE},
        (VIT, SQUEEZE),
    ),
    AnalysisRecipe(
        "stitching-emoji",
        "stitching",
        {"dataset": "emoji", "models": list(IMAGE_ENCODERS)},
        IMAGE_ENCODERS,
    ),
    # UMAP is not shipped: its last digits differ between processors, and then its shape does.
    AnalysisRecipe("explore-vit", "explore", {"dataset": "emoji", "model": VIT}, (VIT,)),
    AnalysisRecipe(
        "similarity-encoders",
        "similarity",
        {"dataset": "emoji"},
        (*IMAGE_ENCODERS, MINILM, *DUAL_TOWERS),
    ),
    AnalysisRecipe(
        "similarity-layers-of-vit",
        "similarity",
        {"dataset": "emoji", "method": "layers", "model": VIT},
        (VIT,),
    ),
)

# Studies take minutes to an hour and read features that are not shipped, so the demo is not
# recomputed with them unless asked: `theodolite demo --studies`.
STUDIES: tuple[AnalysisRecipe, ...] = (
    AnalysisRecipe("stitching-study", "stitching-study"),
    AnalysisRecipe("contrast-study", "contrast-study"),
    AnalysisRecipe("transfer-study", "transfer-study"),
    # What the Transfer page offers on demand, laid ready for the target it opens with.
    AnalysisRecipe("transfer-truth", "transfer-truth"),
    AnalysisRecipe("transfer-robustness", "transfer-robustness"),
    AnalysisRecipe("transfer-classes", "transfer-classes"),
)
