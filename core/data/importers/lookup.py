"""Find the files that the cells of a table name."""

from __future__ import annotations

import unicodedata

from core.data.importers.trees import Tree, unsafe
from core.errors import BadInput


class Lookup:
    """Find the file a table means: exactly, or by the same letters written otherwise in Unicode.

    Parameters
    ----------
    tree : Tree
        Where to look.
    """

    def __init__(self, tree: Tree) -> None:
        self._names = set(tree.names)
        root = getattr(tree, "root", None)
        self._root = f"{root}/" if root is not None else ""
        self._same: dict[str, list[str]] = {}
        for name in tree.names:
            self._same.setdefault(unicodedata.normalize("NFC", name), []).append(name)

    def __len__(self) -> int:
        return len(self._names)

    def has(self, given: str, base: str = "") -> bool:
        """Say whether a file is found."""
        try:
            self.find(given, base)
        except BadInput:
            return False
        return True

    def find(self, given: str, base: str = "") -> str:
        """Return the name in the tree of the file ``given`` relative to folder ``base``.

        Raises
        ------
        BadInput
            It leads out, is not there, or two files are meant; the reason is the message.
        """
        if self._root and given.startswith(self._root):
            given, base = given[len(self._root) :], ""
        if unsafe(given):
            raise BadInput(f"the path {given[:200]!r} leads out of the source")
        parts = [p for p in given.replace("\\", "/").split("/") if p not in {"", "."}]
        rest = "/".join(parts)
        for name in (f"{base}/{rest}" if base else rest, rest):
            if name in self._names:
                return name
            same = self._same.get(unicodedata.normalize("NFC", name), [])
            if len(same) == 1:
                return same[0]
            if same:
                raise BadInput(f"{given[:200]!r} may be any of {len(same)} files")
        raise BadInput(f"there is no file {given[:200]!r} beside the table")
