"""`apply`: labeling functions and data become votes, here or where the data is."""

from __future__ import annotations

from typing import Any

from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.labeling.applying import CHUNK_ROWS, Work, apply_locally, chosen_functions
from consilience.labeling.cluster_frames import apply_on_cluster, is_cluster_frame
from consilience.labeling.vote_tables import VoteTables
from consilience.votes import Votes

__all__ = ["apply"]


def apply(
    functions: Any,
    data: Any,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "raise",
    n_jobs: int = 1,
    progress: bool | None = None,
    chunk_rows: int = CHUNK_ROWS,
) -> Votes:
    """Return the votes of labeling functions on every row of the data.

    The rows of a Dask or Spark dataframe stay on its cluster: the votes are such a frame, too, with the column
    ``item`` and one for each function, and `DaskPartitions` or `SparkPartitions` takes it. It is computed when it
    is asked for; the types of its columns are those of the votes on the first rows, or of the space.
    `consilience.engines.apply_to` writes the votes on data in files to files.

    Parameters
    ----------
    functions
        One or several: made by `labeling_function` or one of `consilience.labeling`, plain functions of a
        row, or labeling functions of snorkel.
    data
        A pandas, polars or Arrow table, a dict of columns, an array, a list, a generator, or the path of a
        Parquet file or of a folder of them. Files and generators are read in pieces. Or a Dask or Spark
        dataframe.
    space
        What a label is. Labels are checked against it as they come, and classes take one byte per vote.
        Among whole numbers -1 then abstains, unless it is a label; None and NaN always do.
    item
        The column that holds the item ids; rows are counted if not given, which Spark cannot do.
    on_error
        "raise" stops at the first row on which a function fails; with "abstain" it has no vote there, and a
        warning counts such rows, unless they are on a cluster. A vectorised function then abstains on the whole
        chunk. `apply_with_faults` returns the counts.
    n_jobs
        Number of processes; -1 for one per processor. A cluster has its own.
    progress
        Whether to show a bar on stderr; by default on a terminal, if it takes more than two seconds.
    chunk_rows
        Rows handed to a vectorised function at once; also how many are in memory at once, where the data
        is not.

    Examples
    --------
    >>> def long(text):
    ...     return 1 if len(text) > 10 else 0
    >>> def has_digit(text):
    ...     return 1 if any(map(str.isdigit, text)) else None
    >>> votes = apply([long, has_digit], ["call 555", "good morning"])
    >>> votes.sources, votes.labels[votes.observed].tolist()
    (('long', 'has_digit'), [0, 1, 1])
    """
    if on_error not in ("raise", "abstain"):
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use 'raise' or 'abstain'.")
    if not is_cluster_frame(data):
        return apply_locally(functions, data, space, item, on_error, n_jobs, progress, chunk_rows)
    if n_jobs != 1 or progress:
        given = f"n_jobs={n_jobs!r}" if n_jobs != 1 else "progress=True"
        raise UnsupportedError(f"{given} is for data in this memory; the cluster of the frame decides. Leave it out.")
    found = chosen_functions(functions, space, chunk_rows)
    frame: Votes = apply_on_cluster(VoteTables(Work(found, None, space, item, on_error, chunk_rows)), data)
    return frame
