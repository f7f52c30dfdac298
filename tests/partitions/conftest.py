"""A Dask cluster of two processes and a Spark of two threads, which several files of tests share."""

import warnings

import pyarrow.parquet as pq
import pytest
from tests.partitions.clusters import distributed

from consilience.exceptions import MissingPackageError
from consilience.partitions import spark_session


@pytest.fixture(scope="session")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture(scope="session")
def session():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = spark_session(
                "local[2]", spark_ui_enabled="false", spark_driver_memory="1g", spark_sql_shuffle_partitions="2"
            )
        except MissingPackageError as error:
            pytest.skip(str(error))
        yield made
        made.stop()


@pytest.fixture
def reads(monkeypatch):
    """Return the list of what is read from Parquet files: the options of each read."""
    asked = []
    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, **options: (asked.append(options), original(self, **options))[1]
    )
    return asked
