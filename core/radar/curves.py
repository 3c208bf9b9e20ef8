"""Density curves of theta and d for the page: a smoothed histogram on a common grid.

RADAR, arXiv 2605.23028, Fig. 1 compares within- and cross-domain densities layer by layer.
d spans decades, so its curve is over log10 d.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from core.radar.types import Descriptors, RadarResult

GRID = 64
_BINS = 512
_LEAST_D = 1e-6


def density_table(singles: Mapping[str, RadarResult]) -> pd.DataFrame:
    """Return curves for every source, transition, descriptor and kind of pair.

    Returns
    -------
    DataFrame
        source, layer (0-based), descriptor ("theta" or "d"), kind ("within" or "cross"), x
        (radians, or d itself), density (per radian, or per decade of d). The grid of a
        transition is the same for all sources.
    """
    frames = []
    n_layers = len(next(iter(singles.values())).kept_layers)
    for layer in range(n_layers):
        for descriptor in ("theta", "d"):
            samples = {
                (source, kind): _values(getattr(out, kind), descriptor, layer)
                for source, out in singles.items()
                for kind in ("within", "cross")
            }
            grid = _grid(np.concatenate(list(samples.values())))
            shown = 10.0**grid if descriptor == "d" else grid
            frames += [
                pd.DataFrame({
                    "source": source, "layer": layer, "descriptor": descriptor, "kind": kind,
                    "x": shown, "density": smooth_density(values, grid),
                })
                for (source, kind), values in samples.items()
            ]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def smooth_density(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return a Gaussian kernel density on ``grid``, bandwidth by Scott's rule.

    The values are first counted in 512 bins over the grid's range (values outside count at
    its ends), so the cost does not grow with them; the error is below a bin's width.
    """
    low, high = float(grid[0]), float(grid[-1])
    counts, edges = np.histogram(np.clip(values, low, high), bins=_BINS, range=(low, high))
    centres = 0.5 * (edges[:-1] + edges[1:])
    width = max(float(values.std()) * len(values) ** -0.2, (high - low) / _BINS)
    kernel = np.exp(-0.5 * ((grid[:, None] - centres) / width) ** 2)
    return kernel @ counts / (len(values) * width * np.sqrt(2.0 * np.pi))


def _values(descriptors: Descriptors, which: str, layer: int) -> np.ndarray:
    values = getattr(descriptors, which)[descriptors.mask[:, layer], layer]
    return np.log10(np.maximum(values, _LEAST_D)) if which == "d" else values


def _grid(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [0.001, 0.999])
    room = 0.1 * max(high - low, 1e-6)
    return np.linspace(low - room, high + room, GRID)
