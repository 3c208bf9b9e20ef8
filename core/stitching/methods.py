"""The stitching methods by name: a similarity and a kind of anchors, or a translator."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import BadInput

_SIMILARITIES = {
    "cosine": "Cosine",
    "ccosine": "Centred cosine",
    "scosine": "Standardised cosine",
    "wip": "WIP",
}
_ANCHORS = {
    "random": "random anchors",
    "fps": "farthest-point anchors",
    "kmeans": "k-means anchors",
    "mixture": "k-means mixtures",
    "param": "PARAM anchors",
    "param_single": "PARAM Single anchors",
}
_TRANSLATORS = {
    "ortho": "Orthogonal map per pair",
    "linear": "Linear map per pair",
    "l-ortho": "Linear map made orthogonal per pair",
    "ridge": "Ridge map per pair",
    "cca": "Canonical correlations per pair",
    "irp": "Inverse relative projection",
}


@dataclass(frozen=True)
class Method:
    """One way to stitch.

    Attributes
    ----------
    name, title : str
    similarity, anchors : str
        Empty for translators.
    translator : str
        Empty for relative representations.
    """

    name: str
    title: str
    similarity: str = ""
    anchors: str = ""
    translator: str = ""

    @property
    def learned(self) -> bool:
        """Whether the anchors are learned by PARAM."""
        return self.anchors.startswith("param")

    @property
    def shrinkage_kind(self) -> str:
        """For which kind of anchors the automatic shrinkage is chosen ("" when none is used)."""
        if self.learned or (self.similarity == "wip" and self.anchors == "mixture"):
            return self.anchors
        return "random" if self.similarity == "wip" else ""

    def n_maps(self, n_encoders: int) -> int:
        """Return how many fitted maps serve all ordered pairs."""
        per_pair = self.translator and self.translator != "irp"
        return n_encoders * (n_encoders - 1) if per_pair else n_encoders


METHODS: dict[str, Method] = {
    **{
        f"{s}-{a}": Method(f"{s}-{a}", f"{st}, {at}", s, a)
        for s, st in _SIMILARITIES.items()
        for a, at in _ANCHORS.items()
    },
    **{name: Method(name, title, translator=name) for name, title in _TRANSLATORS.items()},
}


def method_of(name: str) -> Method:
    """Return the method of that name.

    Raises
    ------
    BadInput
        There is none.

    Examples
    --------
    >>> method_of("wip-param").title
    'WIP, PARAM anchors'
    """
    if name not in METHODS:
        raise BadInput(
            f"method={name!r} is not known.",
            f"Use a similarity ({', '.join(_SIMILARITIES)}) and anchors ({', '.join(_ANCHORS)}) "
            f"joined by '-', or one of {', '.join(_TRANSLATORS)}.",
        )
    return METHODS[name]
