"""Notes: a small durable store of JSON values (kept clusters, pinned models)."""

from __future__ import annotations

import json
from typing import Any

from core.digest import canonical
from core.errors import BadInput
from core.workspace.catalogue import Catalogue, now


class NoteStore:
    """JSON values by scope and key; safe for several processes, the last write wins."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def get(self, scope: str, key: str, default: Any = None) -> Any:
        """Return one value, or ``default`` when there is none."""
        with self._catalogue.read() as db:
            row = db.execute(
                "SELECT value FROM notes WHERE scope = ? AND key = ?", (scope, key)
            ).fetchone()
        return default if row is None else json.loads(row["value"])

    def put(self, scope: str, key: str, value: Any) -> None:
        """Store one value, replacing what was there.

        Raises
        ------
        BadInput
            The value holds something that is not plain JSON.
        """
        try:
            text = json.dumps(canonical(value), allow_nan=False)
        except (TypeError, ValueError) as err:
            raise BadInput(
                f"value of note {scope}/{key} cannot be stored ({err}).", "Use plain JSON types."
            ) from err
        with self._catalogue.write() as db:
            db.execute(
                "INSERT INTO notes VALUES (?, ?, ?, ?) ON CONFLICT (scope, key) "
                "DO UPDATE SET value = excluded.value, updated = excluded.updated",
                (scope, key, text, now()),
            )

    def all(self, scope: str) -> dict[str, Any]:
        """Return every value of a scope, by key."""
        with self._catalogue.read() as db:
            rows = db.execute(
                "SELECT key, value FROM notes WHERE scope = ? ORDER BY key", (scope,)
            ).fetchall()
        return {row["key"]: json.loads(row["value"]) for row in rows}

    def delete(self, scope: str, key: str) -> None:
        """Remove one value; absent is fine."""
        with self._catalogue.write() as db:
            db.execute("DELETE FROM notes WHERE scope = ? AND key = ?", (scope, key))
