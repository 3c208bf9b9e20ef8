"""Which model suits my data? Your encoders measured, and what is published of 260 others."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.quality import model_study
from core.quality.analysis import DEFAULTS, default_models
from pages._shell import errors, pickers, population_view, published_view, quality_view, state
from pages._shell.jobs import result_or_run
from pages._shell.layout import explain, footer, header
from pages._shell.state import workspace
from pages._shell.words import plural, tip

PAGE = quality_view.PAGE
QUESTION = "Which model suits my data?"

READ = (
    "A metric looks at the features only; the accuracies come from labels held out of it.",
    "rho compares ranks over models. Its interval resamples whole recipe families, because "
    "checkpoints of one recipe resemble each other.",
    "Stars: q below .05 and .01 after Benjamini and Hochberg within a stratum. Hatched: fewer "
    "than 8 families. n/a: fewer than 4 families or 8 models.",
)
MISLEADS = (
    "A correlation over all models can turn round within an architecture class (Simpson): read "
    "the strata before the first row.",
    "Wide features raise RankMe and NESum by themselves, and both follow the number of rows: "
    "compare at the same n only.",
    "Near as many rows as features, least squares fails and looks like a poor encoder: see the "
    "ridge below. Most published models have seen ImageNet.",
)
METHOD = """\
The seven metrics of the study: RankMe (singular values, not centred), NESum, alpha-ReQ
(eigenvalues 11 to 100, weights 1/i), the condition number of the centred features, Self-Cluster
and diffusion spectral entropy on unit rows, and TwoNN without its largest tenth. All are taken
from the training rows, in float64; bands are the range over five subsamples of 90 %.

The linear probe is ridge regression on one-hot labels (ridge 1e-6 of the mean variance, 0 is
minimum-norm least squares); 1-NN is exact and Euclidean. Intervals resample whole concepts.

Of the published models: small DINOv2 and DINOv3 models are distilled and kept as
self-supervised; EVA-02 and EUPE had teachers that were not; hybrids, Swin, XCiT and Hiera are
"other"; semi-, weakly supervised and fine-tuned models count as supervised. ImageNet-A was
built against ResNet-50. Protocols are never mixed in one rho.
"""
PAPER = (
    "Arputharaj, Jönsson, Eilertsen 2026, A comparative study of label-free representation "
    "quality metrics in deep learning, arXiv 2608.23182."
)


def _choices(ws, dataset):
    """The parameters of this workspace's own result, from the sidebar."""
    chosen = pickers.models(ws, PAGE, dataset.name, default=default_models(ws, dataset))
    columns = [c for c in ("label", "subgroup", "domain", "concept") if c in dataset.items]
    label = state.select(PAGE, "label", "Labels", columns, help="What the probes must tell apart.")
    with pickers.settings():
        seed = state.whole(PAGE, "seed", "Seed", low=0, high=999, default=0, help=tip("seed"))
        draws = state.whole(
            PAGE, "n_draws", "Subsamples", low=0, high=20, default=5,
            help="Repeats on 90 % of the rows for the bands of the metrics.",
        )  # fmt: skip
    cluster = DEFAULTS["cluster"]
    return {
        "dataset": dataset.name,
        "models": sorted(chosen),
        "label": label,
        "cluster": cluster,
        "n_draws": draws,
        "seed": seed,
    }


def _question():
    """Draw the sidebar and the header; return the dataset and the parameters."""
    ws = workspace()
    with pickers.selection():
        dataset = pickers.dataset(ws)
        params = _choices(ws, dataset)
    header(
        QUESTION,
        (
            "Label-free metrics and probes",
            pickers.dataset_title(ws, dataset.name),
            plural(len(params["models"]), "encoder"),
            f"labels: {params['label']}",
        ),
    )
    return dataset, params


def _own(params):
    """Draw the verdict on this workspace's encoders; return their result, or None."""
    result = result_or_run(
        "quality",
        params,
        label="Measure these encoders",
        seconds_hint=5.0 * max(1, len(params["models"])),
        what="Seven label-free metrics of every encoder beside its accuracy on held-out items.",
    )
    if result is not None:
        quality_view.answer(result)
        quality_view.evidence(result)
    return result


dataset = result = params = None
try:
    dataset, params = _question()
except UserError as error:
    header(QUESTION, "Published accuracies", share=False)
    errors.show(error)
if params is not None:
    with errors.plainly():
        result = _own(params)
st.divider()
own_study = state.workspace().results.latest(model_study.KIND)
view = state.choose_one(
    PAGE,
    "across",
    "Across models",
    ["study", *(["yours"] if own_study is not None else []), "published"],
    show={"study": "260 small models, measured here", "yours": "Pretrained models, measured by you",
          "published": "Published accuracies"}.get,
)  # fmt: skip
if view == "study":
    population_view.panel(result)
    population_view.all_models()
elif view == "yours" and own_study is not None:
    population_view.study_panel(own_study, result)
else:
    published_view.panel()
if result is not None:
    with errors.plainly():
        quality_view.pinned(dataset, result)
        quality_view.conditioning(result)
explain(read=READ, misleads=MISLEADS, method=METHOD, paper=PAPER)
if result is not None:
    footer(result, defaults=DEFAULTS)
else:
    st.caption("The published part needs no computing; measure encoders for the rest.")
