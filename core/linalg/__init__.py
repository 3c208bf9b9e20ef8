"""Numerical kernels the methods share: torch or numpy in, the same out, no I/O."""
