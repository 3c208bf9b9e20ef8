"""Which states of which domains RADAR can use: the border between user data and the method.

RADAR, arXiv 2605.23028, section 3: Eq. 7 and 8 subtract neighbouring states, so both must
have the same width. What cannot be used is listed with its reason, never silently skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from core.digest import bytes_digest
from core.errors import BadInput
from core.radar.triplets import Layers, as_states
from core.radar.types import Descriptors, Domain
from core.types import Features, LeftOut

# A transition whose angles vary less than this, or that is degenerate for more than half of
# the pairs (a constant class token, say), has no density to compare.
_LEAST_VARIANCE = 1e-12
_MOST_MASKED = 0.5

DomainLike = Domain | Features | Layers


def as_domain(
    value: DomainLike, name: str = "", labels: Sequence[int] | np.ndarray | None = None
) -> Domain:
    """Return ``value`` as a checked :class:`~core.radar.types.Domain`.

    Parameters
    ----------
    value : Domain, Features, ndarray (n, L+1, d) or list of ndarray (n, d_l)
    name : str
        Used unless the domain brings its own; empty: a digest of its values.
    labels : sequence, length n, optional

    Raises
    ------
    BadInput
        Fewer than two states or items, values that are not finite, or labels of another length.
    """
    names: tuple[str, ...] = ()
    layers: Layers
    if isinstance(value, Domain):
        layers, name, names = list(value.layers), value.name or name, value.layer_names
        labels = value.labels if labels is None else labels
    elif isinstance(value, Features):
        layers, names = list(value.arrays.values()), value.layers
    else:
        layers = value
    states = as_states(layers, f"Domain {name!r}" if name else "Domain")
    n = len(states[0])
    if n < 2:
        raise BadInput(f"Domain {name!r} has {n} items.", "A pair needs at least two.")
    marks = None if labels is None else np.asarray(labels)
    if marks is not None and marks.shape != (n,):
        raise BadInput(f"labels of {name!r} have shape {marks.shape}, expected ({n},).")
    names = names or tuple(f"state {index}" for index in range(len(states)))
    return Domain(tuple(states), marks, name or _fingerprint(states), tuple(names))


def as_sources(value: Any) -> list[Domain]:
    """Return the members of a blend as domains, sorted by name.

    Parameters
    ----------
    value : domain-like, or a sequence or mapping of them
        A list of 2-D arrays is the states of one domain.

    Raises
    ------
    BadInput
        No member, or one that :func:`as_domain` refuses.
    """
    if isinstance(value, Mapping):
        members = [as_domain(item, name) for name, item in value.items()]
    elif isinstance(value, list | tuple) and not _is_states(value):
        members = [as_domain(item) for item in value]
    else:
        members = [as_domain(value)]
    if not members:
        raise BadInput("The blend is empty.", "Give at least one source domain.")
    names = [domain.name for domain in members]
    if len(set(names)) < len(names):
        # Nameless copies of the same data are told apart by their place.
        members = [
            Domain(d.layers, d.labels, f"{d.name} #{index}", d.layer_names)
            for index, d in enumerate(members)
        ]
    return sorted(members, key=lambda domain: domain.name)


def _is_states(value: Sequence[Any]) -> bool:
    return all(isinstance(item, np.ndarray) and item.ndim == 2 for item in value) and bool(value)


def choose_states(names: Sequence[str], layers: str | Sequence[str | int]) -> list[int]:
    """Return the numbers of the states to use.

    "late" keeps the states of the last half of the transitions (7..12 of 12).

    Raises
    ------
    BadInput
        An unknown name or number, or fewer than two states.
    """
    total = len(names)
    if layers == "all":
        return list(range(total))
    if layers == "late":
        return list(range((total - 1) // 2, total))
    chosen = []
    for layer in layers:
        if isinstance(layer, str) and layer in names:
            chosen.append(list(names).index(layer))
        elif isinstance(layer, int | np.integer) and 0 <= layer < total:
            chosen.append(int(layer))
        else:
            raise BadInput(f"layers holds {layer!r}.", f"Known: {', '.join(names)}.")
    if len(set(chosen)) < 2:
        raise BadInput(f"layers has {len(set(chosen))} states.", "RADAR needs at least two.")
    return sorted(set(chosen))


def usable_transitions(
    domains: Sequence[Domain], layers: str | Sequence[str | int]
) -> tuple[list[tuple[int, int]], list[LeftOut]]:
    """Return the transitions of equal width, and the others with the reason.

    Raises
    ------
    BadInput
        The domains' states differ, or no transition has equal widths.
    """
    first = domains[0]
    widths = [state.shape[1] for state in first.layers]
    for domain in domains[1:]:
        other = [state.shape[1] for state in domain.layers]
        if other != widths:
            raise BadInput(
                f"Domain {domain.name!r} has state widths {other}, {first.name!r} has {widths}.",
                "All domains need the same encoder and layers.",
            )
    states = choose_states(first.layer_names, layers)
    keep, dropped = [], []
    for low, high in pairwise(states):
        if widths[low] == widths[high]:
            keep.append((low, high))
        else:
            reason = f"unequal width: {widths[low]} then {widths[high]}"
            dropped.append(LeftOut(transition_name(first, (low, high)), reason))
    if not keep:
        raise BadInput(
            f"No two neighbouring states have the same width: {widths}.",
            "RADAR needs a residual stream; choose an encoder with blocks of equal width.",
        )
    return keep, dropped


def project_states(
    domains: Sequence[Domain], layers: str | Sequence[str | int]
) -> tuple[list[Domain], int | None]:
    """Bring the chosen states to their least width by fixed Gaussian random projections.

    States of one width share a projection, so that differences between them survive it;
    lengths are kept up to about ``1 / sqrt(2 width)`` (Johnson and Lindenstrauss).

    Returns
    -------
    domains : list of Domain
        Unchanged where all chosen states have one width.
    width : int or None
        The common width, None when nothing had to be projected.
    """
    widths = [state.shape[1] for state in domains[0].layers]
    chosen = set(choose_states(domains[0].layer_names, layers))
    least = min(widths[index] for index in chosen)
    if all(widths[index] == least for index in chosen):
        return list(domains), None
    turns = {
        width: np.random.default_rng([width, least]).standard_normal((width, least))
        / np.sqrt(least)
        for width in {widths[index] for index in chosen} - {least}
    }

    def narrow(index: int, state: np.ndarray) -> np.ndarray:
        if index not in chosen or state.shape[1] not in turns:
            return state
        return state @ turns[state.shape[1]].astype(state.dtype)

    return [
        Domain(
            tuple(narrow(index, state) for index, state in enumerate(domain.layers)),
            domain.labels, domain.name, domain.layer_names,
        )
        for domain in domains
    ], least  # fmt: skip


def transition_name(domain: Domain, transition: tuple[int, int]) -> str:
    """Return "from → to"."""
    low, high = transition
    return f"{domain.layer_names[low]} → {domain.layer_names[high]}"


def constant_transitions(
    samples: Sequence[Descriptors], names: Sequence[str]
) -> tuple[list[int], list[LeftOut]]:
    """Return the transitions worth keeping, and the degenerate ones with the reason.

    Raises
    ------
    BadInput
        Every transition is degenerate.
    """
    mask = np.concatenate([sample.mask for sample in samples])  # (n, L)
    theta = np.concatenate([sample.theta for sample in samples])
    keep, dropped = [], []
    for index, name in enumerate(names):
        good = mask[:, index]
        if good.mean() < 1.0 - _MOST_MASKED:
            share = 100.0 * (1.0 - good.mean())
            dropped.append(LeftOut(name, f"degenerate for {share:.0f} % of the pairs"))
        elif theta[good, index].var() < _LEAST_VARIANCE:
            dropped.append(LeftOut(name, "constant: theta does not vary"))
        else:
            keep.append(index)
    if not keep:
        raise BadInput(
            "Every transition is degenerate: neighbouring states or items are equal.",
            "Check that the features were extracted for these items.",
        )
    return keep, dropped


def _fingerprint(states: Sequence[np.ndarray]) -> str:
    """Name a nameless domain by its values, so that its seed does not depend on order."""
    last = np.ascontiguousarray(states[-1][:64], dtype=np.float32)
    return bytes_digest(f"{len(states[-1])}".encode() + last.tobytes())[:12]
