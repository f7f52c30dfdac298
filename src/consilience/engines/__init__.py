"""Where the sums run: files larger than memory, Dask, Spark. Each engine is a `VotePartitions`."""

from consilience.engines.label_folder import LabelFolder
from consilience.engines.parquet import ParquetPartitions
from consilience.engines.predicting import predict_to

__all__ = ["LabelFolder", "ParquetPartitions", "predict_to"]
