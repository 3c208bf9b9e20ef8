"""Where tensors are computed: a GPU when there is one and it is asked for, else the CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from core.errors import BadInput

if TYPE_CHECKING:
    import torch


def pick_device(device: str | None = None) -> torch.device:
    """Return the torch device for ``device``.

    Parameters
    ----------
    device : {None, "auto", "cpu", "cuda", "cuda:N"}
        ``None`` reads ``THEODOLITE_DEVICE`` and falls back to "auto": CUDA when present.

    Raises
    ------
    BadInput
        A CUDA device was asked for by name and none is there.
    """
    import torch

    name = device or os.environ.get("THEODOLITE_DEVICE", "auto")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise BadInput(
            f"device={name!r} was asked for, but no CUDA device is visible.",
            "Use device='cpu' or 'auto'.",
        )
    try:
        return torch.device(name)
    except RuntimeError as err:
        raise BadInput(
            f"device={name!r} is not a device torch knows.", "Use 'auto', 'cpu' or 'cuda'."
        ) from err


@contextmanager
def one_thread() -> Iterator[None]:
    """Run LAPACK-bound torch work on one thread.

    OpenMP threads that spin while they wait made a 1,024 x 1,024 eigenproblem up to fifty
    times slower on a busy two-core host; below 2,048 rows one thread is as fast.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run a whole computation on one thread, torch and every BLAS alike.

    For work made of many small products: threads do not help it, and their sums, rounded in
    another order, would make the last digits depend on the machine's number of cores.
    """
    from threadpoolctl import threadpool_limits

    with one_thread(), threadpool_limits(limits=1):
        yield
