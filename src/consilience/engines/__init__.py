"""Where the sums run: files larger than memory, Dask, Spark. Each engine is a `VotePartitions`."""

from consilience.engines.applying import apply_to
from consilience.engines.dask import DaskPartitions
from consilience.engines.label_folder import LabelFolder
from consilience.engines.parquet import ParquetPartitions
from consilience.engines.predicting import predict_to
from consilience.engines.spark import SparkPartitions, spark_session

__all__ = [
    "DaskPartitions",
    "LabelFolder",
    "ParquetPartitions",
    "SparkPartitions",
    "apply_to",
    "predict_to",
    "spark_session",
]
