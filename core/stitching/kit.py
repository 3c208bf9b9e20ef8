"""A stitching kit: everything needed to read another encoder's features with a trained head.

The head of one encoder, the anchors as mixing weights and the ids they mix, and for each encoder
its whitening with the anchors folded in, so that a new sample costs one product:
``r(x) = x B^T - b`` (WIP, arXiv 2605.30596). Stored as one safetensors file with a JSON beside it;
:mod:`core.stitching.kit_files` reads and writes it.

Axes: n samples, d feature dimensions, k anchors, m support rows, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput, NotFound
from core.linalg.whitening import Shrinkage, Whitening, as_matrix, spectrum
from core.results import Result
from core.stitching.heads import Head, accuracy, fit_linear
from core.stitching.methods import method_of
from core.stitching.representation import relative
from core.stitching.rows import Rows, read_rows
from core.stitching.setting import Setting, StitchOptions, prepare
from core.stitching.spaces import split_space
from core.types import Features

if TYPE_CHECKING:
    from core.workspace import Workspace

FORMAT = "theodolite-stitching-kit"
VERSION = 1


@dataclass(frozen=True)
class KitEncoder:
    """One encoder of a kit.

    Attributes
    ----------
    anchors : ndarray of float64, shape (k, d)
        Anchors in this encoder's space, ``P X_sub``.
    whitening : Whitening or None
        None where the similarity is the plain cosine.
    layer : str
        The layer the features come from.
    accuracy : float
        Of the kit's head on this encoder's test features; NaN for one added later.
    """

    anchors: np.ndarray
    whitening: Whitening | None
    layer: str
    accuracy: float = float("nan")


@dataclass(frozen=True)
class Kit:
    """A head, the anchors it reads, and the encoders that can speak to it.

    Attributes
    ----------
    head : Head
        Trained on relative features of ``head_of``.
    head_of : str
    classes : tuple of str
    similarity : str
        "wip", "cosine", "ccosine" or "scosine".
    mixing : ndarray of float64, shape (k, m)
        Rows sum to 1.
    support_ids, train_ids : ndarray of int64, shapes (m,) and (n,)
        Items that are mixed, and items the whitening was fitted on: with features of these a
        new encoder joins, see :meth:`with_encoder`.
    shrinkage : str or float or None
    encoders : dict of str to KitEncoder
    about : dict
        Data set, label, method, seed, key of the result it comes from: plain JSON.
    """

    head: Head
    head_of: str
    classes: tuple[str, ...]
    similarity: str
    mixing: np.ndarray
    support_ids: np.ndarray
    train_ids: np.ndarray
    shrinkage: Shrinkage | None
    encoders: dict[str, KitEncoder]
    about: dict[str, Any] = field(default_factory=dict)

    def relative(self, encoder: str, features: np.ndarray) -> np.ndarray:
        """Return the relative features of an encoder of the kit, shape (n, k).

        Raises
        ------
        NotFound
            The encoder is not in the kit.
        BadInput
            NaN, or features of another width.
        """
        if encoder not in self.encoders:
            raise NotFound(
                f"{encoder!r} is not in this kit, which holds {', '.join(self.encoders)}.",
                "Add it with Kit.with_encoder, from its features of the kit's training items.",
            )
        known = self.encoders[encoder]
        return relative(features, known.anchors, similarity=self.similarity, stats=known.whitening)

    def scores(self, encoder: str, features: np.ndarray) -> np.ndarray:
        """Return the class scores, shape (n, C)."""
        return self.head.scores(self.relative(encoder, features))

    def predict(self, encoder: str, features: np.ndarray) -> np.ndarray:
        """Return the predicted class names, shape (n,)."""
        return np.array(self.classes)[self.scores(encoder, features).argmax(axis=1)]

    def with_encoder(self, encoder: str, features: Features, layer: str | None = None) -> Kit:
        """Return the kit with one more encoder; no label is read and the head stays.

        Parameters
        ----------
        encoder : str
            Its name in the kit.
        features : Features
            With rows for the kit's ``support_ids`` and ``train_ids``.
        layer : str, optional
            The default layer when None.

        Raises
        ------
        BadInput
            Rows are missing.
        """
        rows = np.asarray(features.layer(layer), dtype=np.float64)
        support = rows[features.rows_of(self.support_ids)]
        whitening = None
        if self.similarity != "cosine":
            fitted = spectrum(rows[features.rows_of(self.train_ids)])
            whitening = fitted.whitening("lw" if self.shrinkage is None else self.shrinkage)
        name = layer or features.default_layer
        added = KitEncoder(self.mixing @ support, _laid_out(whitening), name)
        return replace(self, encoders={**self.encoders, encoder: added})


def build_kit(
    workspace: Workspace,
    result: Result,
    *,
    head_of: str | None = None,
    encoders: list[str] | None = None,
    method: str | None = None,
) -> Kit:
    """Return the kit of a stitching result: its first seed's anchors, one encoder's head.

    Parameters
    ----------
    workspace : Workspace
        Holds the features the result was computed from.
    result : Result
        Of kind "stitching".
    head_of : str, optional
        The encoder whose head is taken; by default that of the best swap.
    encoders : list of str, optional
        The encoders that can speak to it; by default all of the result.
    method : str, optional
        A relative method of the result; by default the preferred one.

    Raises
    ------
    BadInput
        A translator, or a method or an encoder that the result does not hold.
    """
    params = result.params
    method = method or str(result.summary["preferred"])
    advice = result.tables["advice"]
    head_of = head_of or str(advice.loc[advice["retention"].idxmax(), "i"])
    wanted = list(dict.fromkeys([head_of, *(encoders or params["models"])]))
    _check(result, method, wanted)
    rows, setting = _setting(workspace, result, method)
    seed, models = params["seed"], list(params["models"])
    draw = setting.draw(seed)
    mixing = _mixing(result, setting, method, seed)
    made: dict[str, KitEncoder] = {}
    how = method_of(method)
    for model in wanted:
        at = models.index(model)
        anchors = mixing @ setting.train[at][draw.rows[at][draw.support]]
        kind = how.shrinkage_kind
        stats = None
        if how.similarity != "cosine":
            stats = setting.whitening(at, kind) if kind else setting.spectrum(at).whitening("lw")
        features = workspace.features.get(params["dataset"], split_space(model)[0])
        made[model] = KitEncoder(anchors, _laid_out(stats), features.default_layer)
    first = made[head_of]
    own = setting.train[models.index(head_of)]
    rel = relative(own, first.anchors, similarity=how.similarity, stats=first.whitening)
    head = fit_linear(rel, setting.y_train, np.unique(setting.y_train), kind=params["head"])
    kit = Kit(
        head, head_of, tuple(str(c) for c in setting.classes), how.similarity, mixing,
        rows.train_ids[draw.rows[0][draw.support]], rows.train_ids,
        setting.shrinkage(how.shrinkage_kind) if how.shrinkage_kind else None, made,
        _about(workspace, result, method, rows),
    )  # fmt: skip
    return _measured(kit, setting, models)


def _laid_out(stats: Whitening | None) -> Whitening | None:
    """Return the map in the memory order a file gives it back in: then its sums round alike."""
    if stats is None:
        return None
    return replace(stats, directions=np.ascontiguousarray(stats.directions))


def _check(result: Result, method: str, wanted: list[str]) -> None:
    if method_of(method).translator or method not in set(result.tables["summary"]["method"]):
        raise BadInput(
            f"method={method!r} cannot be taken along: it is a map per pair, or not in the result.",
            "Choose a method with anchors that the result holds, for instance 'wip-param'.",
        )
    if result.params["head"] == "tanh":
        raise BadInput(
            "A kit holds a linear head, and this result was made with head='tanh'.",
            "Fill the matrix with head='logistic' or head='ridge'.",
        )
    missing = [model for model in wanted if model not in result.params["models"]]
    if missing:
        raise BadInput(
            f"{missing[0]!r} is not among the encoders of this result.",
            f"Choose from: {', '.join(result.params['models'])}.",
        )


def _setting(workspace: Workspace, result: Result, method: str) -> tuple[Rows, Setting]:
    p = result.params
    rows = read_rows(workspace, p["dataset"], p["models"], p["label"], p["seed"])
    taken = result.tables["summary"].set_index("method")["shrinkage"][method]
    shrinkage: Shrinkage = "lw" if taken in ("", "lw") else float(taken)
    options = StitchOptions(
        p["n_anchors"], p["n_support"], p["n_parallel"], shrinkage, (p["seed"],), p["head"],
        p["steps"],
    )  # fmt: skip
    return rows, prepare(rows.train, rows.test, rows.y_train, rows.y_test, options)


def _mixing(result: Result, setting: Setting, method: str, seed: int) -> np.ndarray:
    """Return the mixing matrix: the stored one where anchors were learned, else drawn again."""
    how = method_of(method)
    stored = result.arrays.get(f"mixing_{how.anchors}")
    if stored is None:
        return setting.mixing(how, seed)
    exact = np.asarray(stored, dtype=np.float64)
    return exact / exact.sum(axis=1, keepdims=True)


def _about(workspace: Workspace, result: Result, method: str, rows: Rows) -> dict[str, Any]:
    p = result.params
    data = workspace.dataset(p["dataset"])
    return {
        "dataset": p["dataset"], "dataset_digest": data.digest, "dataset_title": data.title,
        "label": p["label"], "method": method, "method_title": method_of(method).title,
        "seed": p["seed"], "split": rows.split_note, "n_train": len(rows.y_train),
        "n_test": len(rows.y_test), "result": result.key, "head_kind": p["head"],
    }  # fmt: skip


def _measured(kit: Kit, setting: Setting, models: list[str]) -> Kit:
    """Return the kit with the test accuracy of each encoder written beside it."""
    found = {}
    for model, known in kit.encoders.items():
        said = kit.scores(model, setting.test[models.index(model)]).argmax(axis=1)
        found[model] = replace(known, accuracy=accuracy(setting.y_test, said))
    return replace(kit, encoders=found)


def check_features(kit: Kit, encoder: str, features: np.ndarray) -> np.ndarray:
    """Return features as a finite matrix of the width the kit's encoder has.

    Raises
    ------
    BadInput
        NaN, or another width.
    """
    x = as_matrix(features, "features")
    wide = kit.encoders[encoder].anchors.shape[1]
    if x.shape[1] != wide:
        raise BadInput(
            f"The kit reads {wide} dimensions of {encoder}, got {x.shape[1]}.",
            f"Take the layer {kit.encoders[encoder].layer!r}.",
        )
    return x
