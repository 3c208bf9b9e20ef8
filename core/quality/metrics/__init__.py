"""Label-free metrics, one a file; each registers itself with :func:`core.quality.base.register`."""
