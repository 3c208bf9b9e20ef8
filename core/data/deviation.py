"""How far two computations of the same thing are apart: features, and results.

One number each, so that "equal within tolerance" is one comparison:

- numbers: the largest difference, relative to the largest absolute value of the array, the
  table column or the pair of numbers;
- whole numbers, words and true/false in a table or array: the share of entries that differ,
  for a rank or a cluster is either the same or not;
- a table with more or fewer rows: the share of rows that only one of the two has;
- a sentence: its words have to be the same, its numbers count as numbers.

Times are not compared. Below ``FLOOR`` a number counts as zero: a certified gap of 1e-12
and one of 3e-12 say the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from core.results import Result
    from core.types import Features

FLOOR = 1e-6

_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
_TIMES = re.compile(r"(^|_)(seconds?|time|created|elapsed|duration|ms)($|_)")


def feature_deviation(one: Features, other: Features) -> float:
    """Return the largest difference of any layer, relative to the layer's largest value.

    ``inf`` when ids, layers or widths differ.
    """
    if one.layers != other.layers or not np.array_equal(one.ids, other.ids):
        return math.inf
    return max(_array(one.arrays[name], other.arrays[name]) for name in one.layers)


def result_deviation(one: Result, other: Result) -> tuple[float, str]:
    """Return the largest deviation of two results, and where it is.

    Summary, tables, arrays and what was left out are compared; a place reads
    ``tables/ranking.score``.

    Examples
    --------
    >>> from core.results import Result
    >>> a = Result("quality", {}, {"headline": "0.500 of 10", "n": 10, "seconds": 1.0})
    >>> b = Result("quality", {}, {"headline": "0.505 of 10", "n": 10, "seconds": 9.0})
    >>> deviation, where = result_deviation(a, b)
    >>> round(deviation, 4), where
    (0.0099, 'summary/headline')
    """
    found: list[tuple[float, str]] = [(0.0, "")]
    _walk(one.summary, other.summary, "summary", found)
    _walk(
        [line.as_dict() for line in one.left_out],
        [line.as_dict() for line in other.left_out],
        "left_out",
        found,
    )
    for kind, mine, theirs in (
        ("tables", one.tables, other.tables),
        ("arrays", one.arrays, other.arrays),
    ):
        if set(mine) != set(theirs):
            found.append((math.inf, kind))
            continue
        for name in mine:
            compare = _table if kind == "tables" else _single
            compare(mine[name], theirs[name], f"{kind}/{name}", found)
    return max(found, key=lambda pair: pair[0])


def _walk(one: Any, other: Any, where: str, found: list[tuple[float, str]]) -> None:
    """Compare plain JSON values, entry by entry."""
    if _TIMES.search(where.rpartition("/")[2]):
        return
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if set(one) != set(other):
            found.append((math.inf, where))
            return
        for name in one:
            _walk(one[name], other[name], f"{where}/{name}", found)
    elif _is_list(one) and _is_list(other):
        _walk_list(one, other, where, found)
    else:
        found.append((_scalar(one, other), where))


def _walk_list(
    one: Sequence[Any], other: Sequence[Any], where: str, found: list[tuple[float, str]]
) -> None:
    if len(one) != len(other):
        found.append((math.inf, where))
    elif one and all(_is_number(v) for v in (*one, *other)):
        found.append((_array(np.asarray(one), np.asarray(other)), where))
    elif one and all(isinstance(v, str) for v in (*one, *other)):
        found.append((sum(a != b for a, b in zip(one, other, strict=True)) / len(one), where))
    else:
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            _walk(a, b, f"{where}/{number}", found)


def _table(
    one: pd.DataFrame, other: pd.DataFrame, where: str, found: list[tuple[float, str]]
) -> None:
    if list(one.columns) != list(other.columns):
        found.append((math.inf, where))
        return
    if len(one) != len(other):
        # Rows have no partners then: the share of rows that only one of them has.
        found.append((abs(len(one) - len(other)) / max(len(one), len(other)), f"{where} rows"))
        return
    for name in one.columns:
        if not _TIMES.search(str(name)) and len(one):
            found.append((_array(one[name].to_numpy(), other[name].to_numpy()), f"{where}.{name}"))


def _single(one: np.ndarray, other: np.ndarray, where: str, found: list[tuple[float, str]]) -> None:
    found.append((_array(np.asarray(one), np.asarray(other)), where))


def _array(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return math.inf
    if one.size == 0:
        return 0.0
    if one.dtype.kind != "f" or other.dtype.kind != "f":
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        return sum(not _same(a, b) for a, b in pairs) / one.size
    a, b = one.astype(np.float64), other.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return math.inf
    apart = np.where(np.isnan(a) | (a == b), 0.0, np.abs(a - b))
    finite = np.abs(np.concatenate([a[np.isfinite(a)], b[np.isfinite(b)]]))
    scale = float(finite.max()) if finite.size else 0.0
    return float(apart.max()) / max(scale, FLOOR)


def _scalar(one: Any, other: Any) -> float:
    if _is_number(one) and _is_number(other):
        return _number(float(one), float(other))
    if isinstance(one, str) and isinstance(other, str):
        return _sentence(one, other)
    return 0.0 if _same(one, other) else math.inf


def _number(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other), FLOOR)


def _sentence(one: str, other: str) -> float:
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return math.inf
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return max((_number(_plain(a), _plain(b)) for a, b in numbers), default=0.0)


def _plain(text: str) -> float:
    return float(text.replace(",", "").rstrip("."))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
