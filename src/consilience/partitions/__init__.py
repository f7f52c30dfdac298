"""Votes in chunks: in memory, in files larger than memory, on Dask, on Spark."""

from consilience.lazy import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)
