"""Extraction: dataset x encoder -> layerwise features, in shards, resumable."""

from __future__ import annotations

from core.extract.run import recipe_of, run_extract

__all__ = ["recipe_of", "run_extract"]
