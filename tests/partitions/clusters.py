"""Marks of the tests that start a real Dask cluster or a real Spark."""

import contextlib

import pytest

distributed = None
with contextlib.suppress(ImportError):
    import distributed

pyspark = None
with contextlib.suppress(ImportError):
    import pyspark


def _marked(there, package):
    marks = [
        pytest.mark.slow,
        pytest.mark.skipif(there is None, reason=f"{package} is missing: make test-all installs it"),
        # Processes that end, sockets and all, are the affair of the engine.
        pytest.mark.filterwarnings("ignore"),
    ]

    def mark(test):
        for one in marks:
            test = one(test)
        return test

    mark.marks = marks
    return mark


needs_dask = _marked(distributed, "Dask")
needs_spark = _marked(pyspark, "Spark")
