"""What the person wants of a source: the role of each column, a name, and a few choices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from core.data.importers.roles import ROLE_WORDS, ROLES, SINGLE
from core.errors import BadInput


@dataclass(frozen=True)
class Plan:
    """How a source becomes a dataset.

    Attributes
    ----------
    name, title : str
        Identifier and readable name.
    roles : dict of str to str
        Column to role; see :data:`core.data.importers.roles.ROLES`.
    first_frame : bool
        Take the first frame of an animation instead of leaving it out.
    licence, note : str
        Kept with the dataset and shown on its page.
    replace : bool
        Replace a dataset of that name.
    """

    name: str
    title: str
    roles: dict[str, str] = field(default_factory=dict)
    first_frame: bool = False
    licence: str = ""
    note: str = ""
    replace: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`as_dict` wrote.

        Raises
        ------
        BadInput
            A key that a plan does not have.
        """
        unknown = sorted(set(body) - set(cls.__dataclass_fields__))
        if unknown:
            raise BadInput(f"plan holds {', '.join(unknown)}, which a plan does not have.")
        return cls(**body)

    @property
    def kind(self) -> str:
        """``"image"`` when a column is a picture, else ``"text"``."""
        return "image" if "image" in self.roles.values() else "text"

    def column(self, role: str) -> str | None:
        """Return the column of a role, None when there is none."""
        return next((name for name, own in self.roles.items() if own == role), None)

    def with_roles(self, changes: Mapping[str, str | None]) -> Plan:
        """Return the plan with some columns given by role; None takes the role away.

        Examples
        --------
        >>> Plan("a", "A", {"x": "image", "y": "keep"}).with_roles({"label": "y"}).roles
        {'x': 'image', 'y': 'label'}
        """
        roles = dict(self.roles)
        for role, column in changes.items():
            for name, own in roles.items():
                if own == role:
                    roles[name] = "keep"
            if column is not None:
                if column not in roles:
                    raise BadInput(
                        f"column {column!r} for {role} is not in the source.",
                        f"Columns: {', '.join(roles)}.",
                    )
                roles[column] = role
        return Plan(**{**self.as_dict(), "roles": roles})

    def check(self, columns: list[str]) -> None:
        """Refuse a plan that does not fit the source.

        Raises
        ------
        BadInput
            An unknown column or role, a role given twice, or neither picture nor text.
        """
        for name, role in self.roles.items():
            if name not in columns:
                raise BadInput(
                    f"column {name!r} is not in the source.", f"Columns: {', '.join(columns)}."
                )
            if role not in ROLES:
                raise BadInput(f"role {role!r} is not known.", f"Roles: {', '.join(ROLES)}.")
        for role in SINGLE:
            same = [name for name, own in self.roles.items() if own == role]
            if len(same) > 1:
                raise BadInput(
                    f"{len(same)} columns are the {ROLE_WORDS[role]}: {', '.join(same)}.",
                    "Choose one of them.",
                )
        if not {"image", "text", "caption"} & set(self.roles.values()):
            raise BadInput(
                "No column is a picture and none is a text.",
                "Choose the column that holds the pictures, or the texts.",
            )


def title_without_ending(given: str) -> str:
    """Return a source's name without the ending of an archive or table.

    Examples
    --------
    >>> title_without_ending("My pets.zip"), title_without_ending("v1.2")
    ('My pets', 'v1.2')
    """
    endings = r"\.(zip|csv|tsv|txt|jsonl|ndjson|json|parquet|arrow|feather)$"
    return re.sub(endings, "", given, flags=re.IGNORECASE) or given


def clean_name(given: str, taken: list[str] | None = None) -> str:
    """Return a name for a dataset made from any text, and not among ``taken``.

    Examples
    --------
    >>> clean_name("My Pets (2024).zip"), clean_name("../../x"), clean_name("猫", ["data"])
    ('my-pets-2024', 'x', 'data-2')
    """
    stem = title_without_ending(given)
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:90].strip("-._") or "data"
    unique, number = name, 2
    while unique in (taken or []):
        unique, number = f"{name}-{number}", number + 1
    return unique
