"""Spaces to stitch: an encoder, or an encoder on one domain (a language, a drawing style).

A space is named by its model, ``demo/use-m3``, or by model and domain, ``demo/use-m3|de``. Spaces
with a domain are paired by concept: the German and the English name of one thing are one item
seen twice, which is the cross-lingual setting of arXiv 2209.15430.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import BadInput

MARK = "|"


def split_space(space: str) -> tuple[str, str]:
    """Return model and domain ("" for every domain) of a space.

    Examples
    --------
    >>> split_space("demo/use-m3|de"), split_space("demo/vit-s14")
    (('demo/use-m3', 'de'), ('demo/vit-s14', ''))
    """
    model, _, domain = space.partition(MARK)
    return model, domain


def across_domains(spaces: Sequence[str]) -> bool:
    """Return whether the spaces are encoders on one domain each.

    Raises
    ------
    BadInput
        Some name a domain and some do not: their rows could not be paired.
    """
    named = [bool(split_space(space)[1]) for space in spaces]
    if any(named) and not all(named):
        raise BadInput(
            f"{spaces[named.index(False)]!r} names no domain and others do.",
            "Name a domain for every space, as in 'demo/use-m3|de', or for none.",
        )
    return all(named) and bool(named)
