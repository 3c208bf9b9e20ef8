"""What to call a set: the words and column values that set it apart.

Words are ranked by the log-odds ratio with an informative Dirichlet prior (Monroe, Colaresi and
Quinn 2008, "Fightin' Words", Eq. 16 and 22): a word that is common everywhere scores near 0,
and a rare word seen twice does not win over one that most members share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

_WORD = re.compile(r"[^\W\d_][\w'’-]+")
_COMMON = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "with",
        "without",
        "der",
        "die",
        "das",
        "und",
        "le",
        "la",
        "les",
        "et",
        "de",
        "du",
        "des",
        "el",
        "los",
        "las",
        "un",
        "una",
        "en",
        "il",
        "lo",
    }
)
_PRIOR = 50.0  # pseudo-words of the prior: about the words of a small set
_LEAST_SHARE = 0.3  # a word must hold for this share of the set to describe it
MOST_VALUES = 200  # a column with more distinct values names items, not groups
_NOT_GROUPS = frozenset({"id", "sha256", "caption", "split", "concept", "text"})


def words_of(caption: str) -> set[str]:
    """Return the words of a caption: lower case, two letters or more, no function words.

    Examples
    --------
    >>> sorted(words_of("The Clock face, one o'clock"))
    ['clock', 'face', "o'clock", 'one']
    """
    return {w for w in _WORD.findall(str(caption).lower()) if w not in _COMMON}


class Vocabulary:
    """The words of every caption, counted once; then any set can be described."""

    def __init__(self, captions: Sequence[str]) -> None:
        self.words = [words_of(c) for c in captions]
        self.total = Counter(w for words in self.words for w in words)

    def describe(
        self, rows: np.ndarray, most: int = 3, *, among: np.ndarray | None = None
    ) -> list[str]:
        """Return the words that set these rows apart, strongest first (may be empty).

        Parameters
        ----------
        rows : ndarray of int, shape (N,)
            Row numbers of the set.
        most : int
            Most words returned.
        among : ndarray of int, optional
            Rows of the background, the set included; all by default. Among faces "face" says
            nothing and "frowning" does.
        """
        inside = Counter(w for row in rows for w in self.words[int(row)])
        total = self.total
        if among is not None:
            total = Counter(w for row in np.union1d(among, rows) for w in self.words[int(row)])
        everything = sum(total.values())
        n_in = sum(inside.values())
        n_out = everything - n_in
        scored = []
        for word, count in inside.items():
            # A word that is the only one there is ("row 17") sets nothing apart.
            if count < max(2.0, _LEAST_SHARE * len(rows)) or total[word] == everything:
                continue
            prior = _PRIOR * total[word] / everything
            y_in, y_out = count + prior, total[word] - count + prior
            odds_in = np.log(y_in / (n_in + _PRIOR - y_in))
            odds_out = np.log(y_out / max(n_out + _PRIOR - y_out, 1e-9))
            z = (odds_in - odds_out) / np.sqrt(1.0 / y_in + 1.0 / y_out)
            if z > 1.96:
                scored.append((-z, word))
        return distinct([word for _, word in sorted(scored)], most)


def distinct(words: list[str], most: int) -> list[str]:
    """Keep the first of two words that share a stem: clock, clocks."""
    kept: list[str] = []
    for word in words:
        stem = word.rstrip("s")
        if not any(stem in other or other.rstrip("s") in stem for other in kept):
            kept.append(word)
        if len(kept) == most:
            break
    return kept


def group_columns(items: pd.DataFrame) -> list[str]:
    """Return the columns whose values are groups of items: domain and label first."""
    found = []
    for name in items.columns:
        if name in _NOT_GROUPS or str(name).startswith("name_"):
            continue
        column = items[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            continue
        distinct = column[column.astype(str) != ""].nunique()
        if 2 <= distinct <= MOST_VALUES:
            found.append(str(name))
    order = {"domain": 0, "label": 1, "subgroup": 2}
    return sorted(found, key=lambda c: (order.get(c, 3), c))


def purity(values: pd.Series, rows: np.ndarray) -> tuple[str, float]:
    """Return the commonest value among the rows and its share (0 to 1).

    Examples
    --------
    >>> purity(pd.Series(["a", "a", "b"]), np.array([0, 1, 2]))[0]
    'a'
    """
    counts = values.iloc[rows].astype(str).value_counts()
    return (str(counts.index[0]), float(counts.iloc[0] / len(rows))) if len(counts) else ("", 0.0)
