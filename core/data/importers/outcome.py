"""What an import took, left out and repaired, line by line: kept with the dataset for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd

# So many lines stand one by one in the catalogue, which every page reads; the file beside
# the dataset has them all.
MOST_LINES = 200


@dataclass(frozen=True)
class Repaired:
    """One thing that is read otherwise than it was given, and how.

    Attributes
    ----------
    what : str
        File, row or column.
    how : str
        What was done, one sentence.
    count : int
        How many items the line stands for.
    """

    what: str
    how: str
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON types."""
        return {"what": self.what, "how": self.how, "count": self.count}


@dataclass(frozen=True)
class OutcomeReport:
    """The outcome of one import.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    source : str
        What was imported, by its own name.
    taken : int
        Items in the dataset.
    left_out : tuple of LeftOut
        File or row, and why.
    repaired : tuple of Repaired
        File or row, and what was done.
    facts : dict of str to str
        How the source was read: form, encoding, separator, roles of the columns.
    notes : tuple of str
        What is worth knowing and belongs to no single row.
    """

    dataset: str
    source: str
    taken: int
    left_out: tuple[LeftOut, ...] = ()
    repaired: tuple[Repaired, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def n_left_out(self) -> int:
        """How many items were left out."""
        return sum(line.count for line in self.left_out)

    @property
    def n_repaired(self) -> int:
        """How many repairs were made."""
        return sum(line.count for line in self.repaired)

    @property
    def headline(self) -> str:
        """One sentence.

        Examples
        --------
        >>> OutcomeReport("a", "a.zip", 3, (LeftOut("b.png", "empty"),)).headline
        'Taken: 3. Left out: 1. Repaired: 0.'
        """
        return (
            f"Taken: {self.taken:,}. Left out: {self.n_left_out:,}. Repaired: {self.n_repaired:,}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        return {
            "dataset": self.dataset,
            "source": self.source,
            "taken": self.taken,
            "left_out": [line.as_dict() for line in self.left_out],
            "repaired": [line.as_dict() for line in self.repaired],
            "facts": dict(self.facts),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, body: dict[str, Any]) -> OutcomeReport:
        """Return the report that :meth:`as_dict` wrote."""
        return cls(
            dataset=body["dataset"],
            source=body["source"],
            taken=body["taken"],
            left_out=tuple(LeftOut(**line) for line in body["left_out"]),
            repaired=tuple(Repaired(**line) for line in body["repaired"]),
            facts=body["facts"],
            notes=tuple(body["notes"]),
        )

    def table(self) -> pd.DataFrame:
        """Return every line: ``outcome`` (left out, repaired), ``what``, ``why``, ``items``."""
        import pandas as pd

        rows = [("left out", x.what, x.reason, x.count) for x in self.left_out]
        rows += [("repaired", x.what, x.how, x.count) for x in self.repaired]
        return pd.DataFrame(rows, columns=["outcome", "what", "why", "items"])


def short_left_out(lines: Iterable[LeftOut], most: int = MOST_LINES) -> list[LeftOut]:
    """Return the first lines as they are, and one line a reason for the rest.

    Examples
    --------
    >>> lines = [LeftOut(f"{i}.png", "empty") for i in range(5)]
    >>> [(line.what, line.count) for line in short_left_out(lines, 2)]
    [('0.png', 1), ('1.png', 1), ('3 more', 3)]
    """
    given = list(lines)
    rest: dict[str, int] = {}
    for line in given[most:]:
        rest[line.reason] = rest.get(line.reason, 0) + line.count
    return given[:most] + [LeftOut(f"{n:,} more", why, n) for why, n in rest.items()]


def short_repaired(lines: Iterable[Repaired], most: int = 3) -> list[Repaired]:
    """Return one line a repair, with the first few names.

    Examples
    --------
    >>> short_repaired([Repaired(f"{i}.jpg", "turned") for i in range(5)])[0].what
    '0.jpg, 1.jpg, 2.jpg and 2 more'
    """
    kinds: dict[str, list[Repaired]] = {}
    for line in lines:
        kinds.setdefault(line.how, []).append(line)
    short = []
    for how, same in kinds.items():
        total = sum(line.count for line in same)
        named = ", ".join(line.what for line in same[:most])
        more = total - sum(line.count for line in same[:most])
        short.append(Repaired(f"{named} and {more:,} more" if more else named, how, total))
    return short
