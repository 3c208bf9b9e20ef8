"""The largest memory of this process since a moment, as the system counts it."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Begin anew: the peak is what is in use now. Without effect outside Linux."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return  # the peak since the start of the process is reported instead


def peak_mb() -> float:
    """Return the peak resident memory in MiB since :func:`reset_peak`."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
    except OSError:
        found = None
    if found:
        return round(int(found.group(1)) / 1024, 1)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
