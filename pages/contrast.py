"""What does A see that B misses? Certified groups, the pictures behind them, and the doubt."""

from __future__ import annotations

import streamlit as st

from core.contrast.analysis import DEFAULTS
from core.errors import BadInput
from core.figures import contrast as figures
from core.figures import contrast_more as more
from pages._shell import charts, contrast_out, contrast_view, pickers, state
from pages._shell.contrast_align_view import alignment
from pages._shell.contrast_study_view import study
from pages._shell.jobs import result_or_run
from pages._shell.layout import explain, footer, header, state_panel, table, verdict
from pages._shell.state import workspace
from pages._shell.words import as_text, plural, tip

PAGE = contrast_view.PAGE
SIZES = ("automatic", 3, 4, 6, 8, 12, 20, 30)
# The default first, as links need it.
EPSILONS = {
    "floor": (2.0, 1.2, 1.5, 3.0, 5.0, 10.0, 20.0),
    "quantile": (0.9, 0.5, 0.7, 0.95, 0.99),
    "fraction": (0.3, 0.1, 0.2, 0.5, 0.8, 1.0),
}
MODES = {
    "floor": "identical samples",
    "quantile": "quantile of B's eigenvalues",
    "fraction": "share of B's largest eigenvalue",
}
VIEWS = {
    "pair": "This pair",
    "study": "Every pair",
    "align": "Alignment",
    "reopen": "Open an export",
}


def _choices(ws, dataset):
    """Everything that decides the result, from the pickers."""
    with pickers.settings("Defaults: an automatic scale, and B may see two identical samples."):
        kernel = state.select(
            PAGE,
            "kernel",
            "Kernel",
            ("rbf", "cosine"),
            show={"rbf": "Gaussian", "cosine": "cosine (wide contrasts)"}.get,
            help="Cosine directions are certified too, but on real features they are no groups.",
        )
        size = state.select(
            PAGE,
            "group_size",
            "Group size (finer or coarser)",
            SIZES,
            help=tip("group size"),
            disabled=kernel == "cosine",
        )
        mode = state.select(
            PAGE,
            "epsilon_mode",
            "Unit of epsilon",
            tuple(MODES),
            show=MODES.get,
            help="All three are bounds on how strongly B may see a direction; the spectra show it.",
        )
        epsilon = state.select(
            PAGE,
            "epsilon" if mode == "floor" else f"epsilon_{mode}",
            "Epsilon",
            EPSILONS[mode],
            help="1.2: groups that B truly scatters. 10: groups that B only holds looser.",
        )
        centred = state.switch(
            PAGE,
            "centred",
            "Take the feature means off",
            default=True,
            help="Off as in the paper: the direction that all samples share comes first.",
        )
        rotation = state.switch(
            PAGE,
            "rotation",
            "Rotate the directions (varimax)",
            help="Takes apart groups of equal strength; certificates speak of the unrotated.",
        )
        wide = state.select(
            PAGE,
            "features",
            "Random features",
            ("none", 250, 500, 1000),
            show=lambda r: "none: exact kernels" if r == "none" else f"{r:,} frequencies",
            help="Only large data need them: they cannot see groups below n / r samples.",
        )
        orthogonal = state.switch(PAGE, "orthogonal", "Orthogonal frequencies")
        count = state.whole(PAGE, "count", "Directions", low=1, high=30, default=10)
        seed = state.whole(PAGE, "seed", "Seed", low=0, high=999, default=0, help=tip("seed"))
    target, reference = contrast_view.pair(ws, dataset)
    texts = contrast_view.text_models(ws, dataset)
    modality = dataset.kind
    if texts:
        modality = state.choose_one(
            PAGE,
            "modality",
            "What makes two items alike",
            ("image", "image+text"),
            show={"image": "picture", "image+text": "picture and caption"}.get,
            help="With captions both must agree: groups by meaning rather than by drawing style.",
        )
    if target == reference:
        raise BadInput(
            f"A and B are both {pickers.model_title(target)}.", "Choose two different encoders."
        )
    params = {
        "dataset": dataset.name,
        "target": target,
        "reference": reference,
        "modality": modality,
        "kernel": kernel,
        "group_size": None if size == "automatic" or kernel == "cosine" else size,
        "epsilon": epsilon,
        "epsilon_mode": mode,
        "centered": centred,
        "rotation": rotation,
        "n_features": None if wide == "none" else wide,
        "orthogonal": orthogonal and wide != "none",
        "n_directions": count,
        "seed": seed,
    }
    if modality == "image+text":
        default = DEFAULTS["text_model"]
        params["text_model"] = default if default in texts or default is None else texts[0]
    return params


def _groups(ws, dataset, result):
    """Cards on the left, the open cluster on the right; return the open row."""
    shown = figures.shown_directions(result)
    rows = {int(r["direction"]): r for r in shown.to_dict("records")}
    notes = ws.notes.all(contrast_view.scope(result))
    left, right = st.columns([4, 7], gap="medium")
    with right:
        direction = state.select(
            PAGE,
            "direction",
            "Open group",
            list(rows),
            show=lambda d: f"Direction {d + 1}",
            help=tip("cluster"),
        )
        contrast_view.opened(dataset, result, rows[direction])
        contrast_view.judge(ws, result, direction)
    with left:
        st.caption(
            "Bars: coherence, the mean kernel similarity inside the set, under A and under B."
        )
        with st.container(height=900, border=False):
            contrast_view.cards(dataset, shown, result.tables["members"], notes)
    return rows[direction]


def _evidence(dataset, result, row):
    """Two linked maps, the two paths, spectra and the comparison."""
    direction = int(row["direction"])
    captions = dataset.items["caption"].str.slice(0, 60)
    names = dict(zip(dataset.items["id"], captions, strict=True))
    st.header("Where the set lies", anchor=False)
    for column, side in zip(st.columns(2), "ab", strict=True):
        with column:
            fig = figures.maps(result, direction, side, names=names)
            charts.figure(
                fig,
                f"contrast_map_{side}",
                f"PCA map under {side.upper()} with the open set lit",
            )
    st.caption("Principal components of each encoder's features; the same samples are lit in both.")
    st.header("Why this scale, why this epsilon", anchor=False)
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.scale_path(result),
            "contrast_scale",
            "Coherence of the first five sets over the group size",
            table=result.tables.get("scale_path"),
        )
    with right:
        charts.figure(
            figures.epsilon_path(result),
            "contrast_epsilon_path",
            "Best objective over epsilon, with SPEC's point",
            table=result.tables.get("epsilon_path"),
        )
    _comparison(result)


def _comparison(result):
    """Spectra with epsilon and the resolution limit, overlaps, and simpler answers beside KODA."""
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.spectra(result), "contrast_spectra", "Leading eigenvalues of both kernels"
        )
    with right:
        charts.figure(
            more.overlaps(result), "contrast_overlaps", "Jaccard overlap of every two sets"
        )
    st.header("Beside simpler answers", anchor=False)
    left, right = st.columns(2)
    with left:
        charts.figure(
            more.agreement(result),
            "contrast_agreement",
            "Agreement of k-means in each embedding with the sets of each method",
            table=result.tables.get("agreement"),
        )
    with right:
        st.html('<p class="th-figtitle">KODA beside simpler answers, first five sets each</p>')
        table(
            result.tables["comparison"].round(3),
            name="contrast-comparison",
            key="contrast_comparison",
        )


def _main():
    ws = workspace()
    with pickers.selection():
        dataset = pickers.dataset(ws)
    head = st.container()
    params = _choices(ws, dataset)
    a, b = (pickers.model_title(params[k]) for k in ("target", "reference"))
    view = state.choose_one(
        PAGE, "view", "View", tuple(VIEWS), show=VIEWS.get, label_visibility="collapsed"
    )
    with head:
        header(
            "What does A see that B misses?",
            ["KODA", dataset.title, f"A: {a}", f"B: {b}", plural(dataset.n, "item")],
        )
    if view != "pair":
        contrast_view.styles()
        {
            "study": lambda: study(ws),
            "align": lambda: alignment(ws, params),
            "reopen": lambda: contrast_out.reopened(ws),
        }[view]()
        return
    result = result_or_run(
        "contrast",
        params,
        label="Find the groups",
        seconds_hint=60,
        what=f"Groups of samples that {a} holds together and {b} does not.",
    )
    if result is None:
        return
    verdict(result.headline, contrast_view.tiles(result))
    for note in result.summary["notes"]:
        st.caption(as_text(note))
    if "k_a" not in result.tables["directions"]:
        state_panel(
            "No direction meets this epsilon",
            "B sees every direction more strongly than epsilon allows.",
            "Choose a larger epsilon in Settings.",
        )
        return
    contrast_view.styles()
    row = _groups(ws, dataset, result)
    contrast_out.downloads(ws, dataset, result)
    _evidence(dataset, result, row)
    explain(
        read=[
            "A group is a set of samples that A draws together and B does not; the pictures are "
            "sorted by how strongly they belong, the badge is that weight.",
            "The gap says how far from the true optimum the answer can be at most: below 1e-6 it "
            "is the optimum for every practical purpose.",
            "Group size makes it finer or coarser; a stricter epsilon (1.2) asks for groups that "
            "B truly scatters.",
        ],
        misleads=[
            "The certificate is about the direction, not about its meaning: a wide kernel gives "
            "certified smears. They are marked as a contrast, not a cluster.",
            "Under a fine scale most groups are still fairly alike under B: the difference is one "
            "of tightness. Read both bars.",
            "Later directions are orthogonal to earlier ones, so one group can appear twice; "
            "z-scores are large for smears as well.",
        ],
        method="Maximise $x^\\top K_A x$ subject to $x^\\top K_B x \\le \\epsilon$, $|x| = 1$ "
        "(Eq. 8), solved exactly by its dual $\\lambda_{max}(K_A - \\lambda K_B) + "
        "\\lambda\\epsilon$ with an in-plane step at ties; further directions in the orthogonal "
        "complement (Eq. 12, by compression). Both bandwidths give $\\lambda_{max}(K) = m$; the "
        "automatic $m$ is the largest at which at least four of the first five sets hold at most "
        "40 samples with coherence of at least 0.12.",
        paper="Wu, Jalali, Farnia: KODA, arXiv 2606.04180 (ICML 2026).",
    )
    footer(result, defaults=DEFAULTS)


_main()
