"""What the Explore page maps: encoders, settings, the verdict, and how each result is got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core import analyses
from core.compare.analysis import DEFAULTS
from core.data.dataset import Dataset
from core.results import Result
from core.workspace import Workspace
from pages._shell import jobs, layout, pickers, state
from pages._shell.layout import Tile
from pages._shell.words import count, number, percent, tip

PAGE = "explore"
NONE = "none"
# A larger PCA is no longer instant, so it runs as a job; neighbours cost n squared.
_INSTANT = 20_000
_INSTANT_CHANGE = 3_000
# A lasso on a plotly chart sends every point in it: above this the map is drawn by WebGL.
MOST_PLOTLY = 50_000
# Drawn by WebGL at most; more are sampled and the page says so.
MOST_POINTS = 2_000_000

METHOD = (
    "PCA: eigenvectors of the covariance, in float64, signs fixed. UMAP and t-SNE: seeded, on at "
    "most 50 principal directions; for the cosine, rows are first scaled to length one. "
    "*Neighbours kept* is the mean share of the k nearest neighbours in the original space that "
    "are also among the k nearest on the map. What moved between A and B never rests on a "
    "picture. *Shared neighbours*: the share of an item's k nearest under A that are also among "
    "its k nearest under B. *Displacement*: the distance between its two places, once B is laid "
    "on A by an orthogonal map fitted without the item's fifth of the data, over the median "
    "distance to an item taken at random. Both are compared with up to 999 random partners in "
    "place of the item itself; an item *kept* its neighbours or its place when the "
    "Benjamini-Hochberg q is at most 0.05, and *moved* when it kept neither."
)
PAPERS = (
    "McInnes, Healy and Melville, UMAP, arXiv 1802.03426. van der Maaten and Hinton 2008, t-SNE. "
    "Huh et al., The Platonic Representation Hypothesis, arXiv 2405.07987. Schoenemann 1966, "
    "orthogonal Procrustes. Benjamini and Hochberg 1995."
)


@dataclass(frozen=True)
class Choice:
    """What is mapped: model and layer A, and B when there is one."""

    model: str
    layer: str
    reference: str = ""
    reference_layer: str = ""

    def sides(self) -> list[tuple[str, str, str]]:
        """Return (side, model, layer) of each map."""
        a = [("a", self.model, self.layer)]
        return a + ([("b", self.reference, self.reference_layer)] if self.reference else [])

    def titles(self) -> list[str]:
        """Return each side in words."""
        return [
            f"{side.upper()}: {pickers.model_title(model)}, {layer}"
            for side, model, layer in self.sides()
        ]


def choose(ws: Workspace, data: Dataset) -> Choice:
    """Draw the pickers of A and B."""
    model = pickers.model(ws, PAGE, data.name, label="Encoder A", default="demo/vit-s14")
    layer = _layer(ws, data, model, "layer", "Layer of A")
    others = [NONE, *pickers.models_with_features(ws, data.name)]
    reference = state.select(
        PAGE,
        "reference",
        "Encoder B",
        others,
        show=lambda name: "No second map" if name == NONE else pickers.model_title(name),
        help="A second encoder, or another layer of the same one, mapped beside A",
    )
    if reference == NONE:
        return Choice(model, layer)
    return Choice(model, layer, reference, _layer(ws, data, reference, "layer_b", "Layer of B"))


def _layer(ws: Workspace, data: Dataset, model: str, name: str, label: str) -> str:
    features = ws.features.get(data.name, model)
    if len(features.layers) == 1:
        return features.layers[0]
    return str(
        state.select(
            PAGE, name, label, features.layers, default=features.default_layer, help=tip("layer")
        )
    )


def settings() -> dict[str, Any]:
    """Draw the settings and return the analysis parameters they stand for."""
    metric = state.choose_one(
        PAGE, "metric", "Distance", ["cosine", "euclidean"], help="How near two items are"
    )
    neighbours = state.whole(
        PAGE,
        "neighbours",
        "UMAP neighbours",
        low=2,
        high=200,
        default=int(DEFAULTS["n_neighbors"]),
        help="Small shows fine groups, large the whole; a new value makes a new map",
    )
    seed = state.whole(
        PAGE, "seed", "Seed", low=0, high=10_000, default=int(DEFAULTS["seed"]), help=tip("seed")
    )
    return {"metric": metric, "n_neighbors": neighbours, "seed": seed}


def verdict(choice: Choice, maps: list[Result], changed: Result | None) -> None:
    """Draw the answer: what changed between A and B, or what the one map keeps."""
    if choice.reference:
        if changed is not None:
            _change_verdict(changed)
        return
    if not maps:
        return
    found = maps[0]
    summary = found.summary
    asked = f"; {count(summary['asked'])} items asked" if "asked" in summary else ""
    tiles = [
        Tile(
            "neighbours kept",
            percent(summary["kept"]),
            f"chance {percent(summary['chance'])}{asked}",
        ),
        Tile("n", count(summary["n"]), f"of {number(summary['dim'])} numbers each"),
    ]
    if summary["explained"]:
        tiles.insert(0, Tile("variance in two directions", percent(sum(summary["explained"]))))
    layout.verdict(found.headline, tiles)


def _change_verdict(changed: Result) -> None:
    summary = changed.summary
    told = summary["n"] - summary["verdicts"]["cannot tell"]
    moved = percent(summary["verdicts"]["moved"] / told) if told else "n/a"
    layout.verdict(
        changed.headline,
        [
            Tile(
                "shared neighbours",
                f"{percent(summary['overlap'])}",
                f"± {percent(summary['overlap_sd'])} over items; "
                f"chance {percent(summary['chance'])}",
            ),
            Tile("moved", moved, "kept neither neighbours nor place" if told else "too few items"),
            Tile(
                "median displacement",
                number(summary["displacement"], 2),
                "1 is an item taken at random",
            ),
            Tile("n", count(summary["n"])),
        ],
    )


def changed_result(
    ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any]
) -> Result | None:
    """Return what changed between A and B, or draw the way to get it; None without a B."""
    if not choice.reference:
        return None
    params = {
        "dataset": data.name,
        "model": choice.model,
        "layer": choice.layer,
        "reference": choice.reference,
        "reference_layer": choice.reference_layer,
        "method": "changed",
        "metric": options["metric"],
        "seed": options["seed"],
    }
    if data.n <= _INSTANT_CHANGE:
        return analyses.run("explore", ws, **params)
    return jobs.result_or_run(
        "explore",
        params,
        label="Find what moved between A and B",
        seconds_hint=20 if data.n <= 2 * _INSTANT else 300,
        what="It compares each item's neighbours and place in the two original spaces.",
    )


def most_points(data: Dataset) -> int:
    """Return how many points a map that needs no job of its own method draws at most."""
    return max(MOST_PLOTLY, min(MOST_POINTS, data.n))


def one_map(
    ws: Workspace, data: Dataset, model: str, layer: str, method: str, options: dict[str, Any]
) -> Result | None:
    """Return one map, or draw the way to get it."""
    params = {"dataset": data.name, "model": model, "layer": layer, "method": method, **options}
    if method == "pca":
        if data.n <= _INSTANT:
            return analyses.run("explore", ws, **params)
        return jobs.result_or_run("explore", params, label="Draw the map", seconds_hint=20)
    name = {"umap": "UMAP", "tsne": "t-SNE"}[method]
    return jobs.result_or_run(
        "explore",
        params,
        label=f"Make the {name} of {pickers.model_title(model)}",
        seconds_hint=30 if method == "umap" else 60,
        what=f"{name} keeps neighbours together better than PCA. Until it is ready, PCA is shown.",
    )
