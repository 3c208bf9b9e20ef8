"""Colours of many points: one byte a point and a palette, for maps drawn by the browser.

The same categories have the same colours as on the small maps (:mod:`core.figures.explore`).
There markers tell the second round of colours from the first; points of a pixel or two have no
shape, so here the second round is darker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from plotly.colors import sample_colorscale, unlabel_rgb

from core.figures.explore import OTHER, is_ramp, short_list
from core.figures.style import OKABE_ITO, ROLE, SEQUENTIAL, domain_colour

# Codes of a ramp; the next one is for values that are missing.
LEVELS = 250
# The eighth category is grey already: what is joined as "other" is a lighter one.
_OTHER = "#C4C8CE"


@dataclass(frozen=True)
class Paint:
    """One byte a point and what the bytes mean.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n,)
        Index into ``palette``.
    palette : tuple of str
        Colours as ``#RRGGBB``.
    names : tuple of str
        The category of each colour; empty for a ramp.
    low, high : float or None
        Ends of a ramp; None for categories.
    missing : int
        Points without a value.
    """

    codes: np.ndarray
    palette: tuple[str, ...]
    names: tuple[str, ...]
    low: float | None
    high: float | None
    missing: int


def paint(values: pd.Series) -> Paint:
    """Return the colours of a column: categories, or a ramp for numbers of many values.

    Parameters
    ----------
    values : Series, length n
        Categories beyond the sixteen most frequent are joined as "other"; a number that is not
        finite is grey.
    """
    if is_ramp(values):
        return _ramp(values.to_numpy(dtype=np.float64, na_value=np.nan))
    names = short_list(values)
    codes, found = pd.factorize(names, sort=True)
    known = [str(name) for name in found if name != OTHER]
    palette = tuple(
        _OTHER if name == OTHER else _shade(str(name), known) for name in map(str, found)
    )
    missing = int((names == "none").sum())
    return Paint(codes.astype(np.uint8), palette, tuple(map(str, found)), None, None, missing)


def _shade(name: str, known: list[str]) -> str:
    colour = domain_colour(name, known)
    rounds = sorted(known).index(name) // len(OKABE_ITO)
    parts = [int(int(colour[i : i + 2], 16) * 0.6**rounds) for i in (1, 3, 5)]
    return "#{:02X}{:02X}{:02X}".format(*parts)


def _ramp(values: np.ndarray) -> Paint:
    known = np.isfinite(values)
    low, high = (float(f(values[known])) for f in (np.min, np.max)) if known.any() else (0.0, 0.0)
    share = (np.where(known, values, low) - low) / (high - low if high > low else 1.0)
    codes = np.where(known, np.rint(share * (LEVELS - 1)), LEVELS).astype(np.uint8)
    sampled = sample_colorscale(SEQUENTIAL, np.linspace(0, 1, LEVELS).tolist())
    palette = ["#{:02X}{:02X}{:02X}".format(*map(round, unlabel_rgb(c))) for c in sampled]
    return Paint(codes, (*palette, ROLE["null"]), (), low, high, int((~known).sum()))
