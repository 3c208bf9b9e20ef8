"""Theodolite: measure neural representations from two places."""
