"""What a label-free metric is: a value with its sample size and flags, and the registry.

A metric is one file in ``core/quality/metrics`` whose ``compute`` function is decorated with
:func:`register`; it then appears in :func:`label_free_metrics`, the tables and the axes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from core.quality.flags import FLAGS

if TYPE_CHECKING:
    from core.quality.sample import Sample


@dataclass(frozen=True)
class Metric:
    """One label-free value.

    Attributes
    ----------
    value : float
        NaN when it cannot be computed; the flags say why. A NaN never enters a rank.
    n_used : int
        Rows the value rests on.
    flags : tuple of str
        Keys of :data:`core.quality.flags.FLAGS`.
    band : (float, float), optional
        Lowest and highest value over repeated subsamples.
    detail : dict
        The metric's own extras (fit quality, rank, ...), plain numbers.
    """

    value: float
    n_used: int
    flags: tuple[str, ...] = ()
    band: tuple[float, float] | None = None
    detail: dict[str, float] = field(default_factory=dict)

    def flagged(self, *flags: str) -> Metric:
        """Return a copy with more flags, each once, in the order of ``FLAGS``."""
        have = {*self.flags, *flags}
        return replace(self, flags=tuple(f for f in FLAGS if f in have))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types; NaN as None."""
        ok = self.value == self.value
        return {
            "value": self.value if ok else None,
            "n_used": self.n_used,
            "flags": list(self.flags),
            "band": None if self.band is None else list(self.band),
        }


@dataclass(frozen=True)
class MetricSpec:
    """What is known of a metric before it is computed.

    Attributes
    ----------
    name, title : str
        Identifier and the words people read.
    family : {"spectral", "relational", "manifold", "alarm"}
        What it looks at.
    expected_sign : {-1, 0, 1}
        Sign of its correlation with accuracy that the literature expects; 0: none.
    meaning : str
        One line: what it measures and which direction is taken as good.
    study : bool
        One of the seven metrics of the comparative study.
    log : bool
        Drawn on a log axis by default.
    unit : str
        Unit of the value, empty for a pure number.
    optional : bool
        Outside the suite that is computed by default; asked for by name.
    compute : callable
        ``Sample -> Metric``.
    """

    name: str
    title: str
    family: str
    expected_sign: int
    meaning: str
    compute: Callable[[Sample], Metric]
    study: bool = False
    log: bool = False
    unit: str = ""
    optional: bool = False


_REGISTRY: dict[str, MetricSpec] = {}


def register(
    name: str,
    title: str,
    *,
    family: str,
    expected_sign: int,
    meaning: str,
    study: bool = False,
    log: bool = False,
    unit: str = "",
    optional: bool = False,
) -> Callable[[Callable[[Sample], Metric]], Callable[[Sample], Metric]]:
    """Register the decorated ``Sample -> Metric`` under ``name``."""

    def keep(function: Callable[[Sample], Metric]) -> Callable[[Sample], Metric]:
        _REGISTRY[name] = MetricSpec(
            name, title, family, expected_sign, meaning, function, study, log, unit, optional
        )
        return function

    return keep


# The study's order of the seven; everything else follows by name.
_ORDER = (
    "rankme",
    "ne_sum",
    "alpha_req",
    "condition_number",
    "self_cluster",
    "diffusion_spectral_entropy",
    "twonn",
)


def metric_specs(*, optional: bool = False) -> dict[str, MetricSpec]:
    """Return the registered metrics: the seven of the study first, then the others by name.

    Parameters
    ----------
    optional : bool
        Also those that are computed only when asked for.

    Examples
    --------
    >>> list(metric_specs())[:3]
    ['rankme', 'ne_sum', 'alpha_req']
    """
    import core.quality.metrics as package

    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
    rank = {name: at for at, name in enumerate(_ORDER)}
    names = sorted(_REGISTRY, key=lambda name: (rank.get(name, len(rank)), name))
    found = {name: _REGISTRY[name] for name in names}
    return {name: spec for name, spec in found.items() if optional or not spec.optional}
