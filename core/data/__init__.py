"""Datasets: what an item is, how they are imported, and the demo sets."""
