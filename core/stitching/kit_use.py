"""Use a stitching kit on the features of a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from core.stitching.kit import Kit, check_features
from core.stitching.spaces import split_space

if TYPE_CHECKING:
    from core.workspace import Workspace


@dataclass(frozen=True)
class Classified:
    """What a kit says of a data set.

    Attributes
    ----------
    table : DataFrame
        id, predicted, margin (score of the first class minus that of the second).
    layer : str
        The layer that was read.
    joined : bool
        Whether the encoder joined the kit here, from its features of the kit's items.
    accuracy : float or None
        On the items that carry one of the kit's labels and were not trained on; None where
        there are none.
    n_labelled : int
    """

    table: pd.DataFrame
    layer: str
    joined: bool
    accuracy: float | None
    n_labelled: int


def classify(workspace: Workspace, kit: Kit, model: str, dataset: str) -> Classified:
    """Classify every item of a data set by a kit, from the stored features of one encoder.

    An encoder that the kit does not hold joins it first: its whitening and its anchors are
    fitted on its features of the kit's own training items, without a label.

    Raises
    ------
    NotFound
        No such data set, or no features of the model on it, or on the kit's own data set.
    BadInput
        Features of another width than the kit reads.
    """
    joined = model not in kit.encoders
    if joined:
        own = workspace.features.get(kit.about["dataset"], split_space(model)[0])
        kit = kit.with_encoder(model, own)
    layer = kit.encoders[model].layer
    features = workspace.features.get(dataset, split_space(model)[0])
    x = check_features(kit, model, np.asarray(features.layer(layer)))
    scores = kit.scores(model, x)
    finite = np.where(np.isfinite(scores), scores, -np.finfo(float).max)
    top = np.sort(finite, axis=1)
    predicted = np.array(kit.classes)[scores.argmax(axis=1)]
    table = pd.DataFrame({
        "id": features.ids, "predicted": predicted, "margin": top[:, -1] - top[:, -2],
    })  # fmt: skip
    right = _right(workspace, kit, dataset, table)
    return Classified(table, layer, joined, float(right.mean()) if len(right) else None, len(right))


def _right(workspace: Workspace, kit: Kit, dataset: str, table: pd.DataFrame) -> np.ndarray:
    """Return which labelled items outside the kit's training items are right."""
    items = workspace.dataset(dataset).items.set_index("id")
    label = kit.about["label"]
    if label not in items.columns:
        return np.zeros(0, dtype=bool)
    true = items[label].astype(str).reindex(table["id"]).to_numpy()
    fresh = np.isin(true, kit.classes)
    if dataset == kit.about["dataset"]:
        fresh &= ~table["id"].isin(kit.train_ids).to_numpy()
    return np.asarray((table["predicted"].to_numpy() == true)[fresh])
