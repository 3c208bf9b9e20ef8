"""A forecast is what the store then holds, and what cannot end is refused before it starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.errors import BadInput
from core.extract import forecast as module
from core.extract.forecast import Forecast, forecast, in_words, refuse_if_too_large
from core.types import EncoderInfo

INFO = EncoderInfo("m/x", "X", "timm", "text", dim=3, params_m=20.0, layers=("a", "b", "out"))


def test_kept_bytes_are_those_of_the_stored_arrays(text_space):
    found = forecast(text_space, "letters", INFO, layers="default")
    stored = text_space.features.get("letters", "demo/none")
    assert found.kept == np.asarray(stored.layer()).nbytes
    assert found.disk == 2 * found.kept
    assert forecast(text_space, "letters", INFO).kept == 3 * found.kept
    assert forecast(text_space, "letters", INFO, layers=["a", "b"]).width == 6


def test_weights_and_waiting_pictures_count_as_memory(text_space):
    small = forecast(text_space, "letters", INFO)
    large = forecast(text_space, "letters", replace(INFO, params_m=120.0))
    assert large.memory - small.memory == 2 * 100 * 10**6 * 4
    seen = forecast(text_space, "letters", replace(INFO, modality="image"), batch_size=32)
    assert seen.memory > small.memory


def test_unknown_widths_are_said_not_invented(text_space):
    found = forecast(text_space, "letters", replace(INFO, dim=0))
    assert found.kept == 0
    assert "known once the weights are read" in found.sentence()
    assert found.fits


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"disk_free": 300 << 20}, r"it needs 200 MB of disk while it runs and 315 MB are free"),
        ({"memory_free": 1000}, r"about 1\.0 GB of memory and 1\.0 kB are free"),
    ],
)
def test_what_cannot_end_is_refused_with_both_numbers(change, words):
    fits = Forecast(10, 10, 200_000_000, 100, 1_000_000_000, 1 << 40, 1 << 40)
    refuse_if_too_large(fits, "It")
    with pytest.raises(BadInput, match=words):
        refuse_if_too_large(replace(fits, **change), "It")


def test_free_memory_is_a_number_of_this_machine(monkeypatch):
    assert 10**6 < module.free_memory() < 1 << 50
    monkeypatch.setattr("builtins.open", lambda *a, **k: (_ for _ in ()).throw(OSError()))
    assert module.free_memory() == 1 << 62


def test_bytes_in_words():
    assert [in_words(n) for n in (12, 1_200, 123_456_789)] == ["12 bytes", "1.2 kB", "123 MB"]
