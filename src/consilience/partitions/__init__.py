"""Votes in chunks, wherever they are: in memory, in files larger than memory, on Dask, on Spark."""

from consilience.partitions.applying import apply_frame, apply_to
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions
from consilience.partitions.dask import DaskPartitions
from consilience.partitions.label_folder import LabelFolder
from consilience.partitions.moments import Moments
from consilience.partitions.parquet import ParquetPartitions
from consilience.partitions.predicting import predict_frame, predict_to
from consilience.partitions.spark import SparkPartitions, spark_session

__all__ = [
    "DaskPartitions",
    "InMemoryPartitions",
    "LabelFolder",
    "Moments",
    "ParquetPartitions",
    "Part",
    "SparkPartitions",
    "VotePartitions",
    "apply_frame",
    "apply_to",
    "predict_frame",
    "predict_to",
    "spark_session",
]
