"""Votes in chunks, wherever they are: in memory, in files larger than memory, on Dask, on Spark."""

from typing import TYPE_CHECKING

from consilience.lazy import on_first_use

if TYPE_CHECKING:
    from consilience.partitions.applying import apply_frame as apply_frame
    from consilience.partitions.applying import apply_to as apply_to
    from consilience.partitions.base import InMemoryPartitions as InMemoryPartitions
    from consilience.partitions.base import Part as Part
    from consilience.partitions.base import VotePartitions as VotePartitions
    from consilience.partitions.dask import DaskPartitions as DaskPartitions
    from consilience.partitions.label_folder import LabelFolder as LabelFolder
    from consilience.partitions.moments import Moments as Moments
    from consilience.partitions.parquet import ParquetPartitions as ParquetPartitions
    from consilience.partitions.predicting import predict_frame as predict_frame
    from consilience.partitions.predicting import predict_to as predict_to
    from consilience.partitions.spark import SparkPartitions as SparkPartitions
    from consilience.partitions.spark import spark_session as spark_session

__getattr__, __dir__, __all__ = on_first_use(
    __name__,
    {
        "applying": "apply_frame apply_to",
        "base": "InMemoryPartitions Part VotePartitions",
        "dask": "DaskPartitions",
        "label_folder": "LabelFolder",
        "moments": "Moments",
        "parquet": "ParquetPartitions",
        "predicting": "predict_frame predict_to",
        "spark": "SparkPartitions spark_session",
    },
)
