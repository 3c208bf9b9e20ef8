"""A residual net with random weights: domains differ by a shift of their input."""

import numpy as np

from core.radar import Domain


def stream(shift=0.0, n=200, seed=0, width=16, depth=4, classes=5):
    """States (depth + 1 arrays of (n, width)) and labels; the same net for every seed."""
    net = np.random.default_rng(999)
    layers = [
        (
            net.standard_normal((width, 2 * width)) / np.sqrt(width),
            net.standard_normal((2 * width, width)) / np.sqrt(2 * width) * 0.4,
        )
        for _ in range(depth)
    ]
    centres = 1.5 * net.standard_normal((classes, width))
    way = net.standard_normal(width)
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    h = centres[labels] + rng.standard_normal((n, width)) + shift * way / np.linalg.norm(way)
    states = [h]
    for up, down in layers:
        h = h + np.maximum(h @ up, 0) @ down
        states.append(h)
    return [s.astype(np.float32) for s in states], labels


def domain(name, shift=0.0, labelled=False, **options):
    states, labels = stream(shift, **options)
    return Domain(tuple(states), labels if labelled else None, name)
