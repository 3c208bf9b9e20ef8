"""Notes."""

from __future__ import annotations

import pytest

from core.errors import BadInput


def test_round_trip(space):
    space.notes.put("s", "a", {"x": [1, 2.5, None, True, "ü"]})
    space.notes.put("s", "b", 2)
    space.notes.put("other", "a", 3)
    assert space.notes.get("s", "a") == {"x": [1, 2.5, None, True, "ü"]}
    assert space.notes.all("s") == {"a": {"x": [1, 2.5, None, True, "ü"]}, "b": 2}
    space.notes.put("s", "b", 4)
    assert space.notes.get("s", "b") == 4
    space.notes.delete("s", "b")
    space.notes.delete("s", "b")
    assert space.notes.get("s", "b") is None
    assert space.notes.get("s", "b", "default") == "default"


@pytest.mark.parametrize("value", [object(), float("nan"), {"x": b"bytes"}])
def test_values_that_are_refused(space, value):
    with pytest.raises(BadInput, match="note s/k"):
        space.notes.put("s", "k", value)
