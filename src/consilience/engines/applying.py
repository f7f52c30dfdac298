"""Labeling functions on files larger than memory: votes go to a folder, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consilience.engines.label_folder import LabelFolder, Manifest, fingerprint, write_tables
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.labeling.applying import CHUNK_ROWS, Work, chosen_functions
from consilience.labeling.chunks import ParquetFiles, Task, as_chunks, pieces
from consilience.labeling.functions import LabelingFunction
from consilience.labeling.vote_tables import VoteTables, with_schema

__all__ = ["apply_to"]


def apply_to(
    functions: Any,
    path: str | Path,
    destination: str | Path,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "raise",
    chunk_rows: int = CHUNK_ROWS,
    resume: bool = False,
    force: bool = False,
) -> LabelFolder:
    """Write the votes of labeling functions on Parquet files to a folder, one file for each row group.

    `ParquetPartitions` reads the folder: it has the column ``item``, if `item` is given, and one for each function.
    Files appear when they are complete, as those of `predict_to` do.

    Parameters
    ----------
    functions, space, item, on_error, chunk_rows
        As for `consilience.apply`. `n_skipped` counts the votes that are missing because a function failed.
    path
        Of a Parquet file, or of a folder of them.
    destination
        A folder that is new or empty.
    resume
        Continue a run that was stopped. The data and the functions have to be the same.
    force
        Overwrite the votes that an earlier run has written there.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pq.write_table(pa.table({"text": ["call 555", "hello", "7 wins"]}), folder / "data.parquet", 2)
    >>> def has_digit(row):
    ...     return "spam" if any(map(str.isdigit, row.text)) else None
    >>> apply_to([has_digit], folder / "data.parquet", folder / "votes").n_files
    2
    >>> pq.read_table(folder / "votes").column("has_digit").to_pylist()
    ['spam', None, 'spam']
    """
    if on_error not in ("raise", "abstain"):
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use 'raise' or 'abstain'.")
    found = chosen_functions(functions, space, chunk_rows)
    if not isinstance(path, (str, Path)):
        raise UnsupportedError(
            f"{type(path).__name__} is no path of Parquet files. Use consilience.apply, which takes tables and "
            "frames of Dask and Spark."
        )
    chunks: Any = as_chunks(path, chunk_rows)
    tasks = list(chunks.tasks())
    how = [[one.name, one.vectorized, _code(one)] for one in found]
    header = {
        "functions": fingerprint(how, repr(space), item, on_error),
        "data": fingerprint([[task.first_row, Path(task.key[0]).name, task.key[1]] for task in tasks], chunks.n_rows),
        "pieces": len(tasks),
    }
    manifest = Manifest.start(Path(destination), header, resume=resume, force=force)
    left = [index for index in range(len(tasks)) if index not in manifest.done]
    if left:
        work = Work(found, None, space, item, on_error, chunk_rows)
        tables = with_schema(VoteTables(work), chunks.load(tasks[0]))
        for index in left:
            made = _tables(tables, chunks, tasks[index], chunk_rows)
            manifest.add(index, write_tables(made, tables.schema, manifest.target(index)))
    return manifest.finish()


def _tables(tables: VoteTables, chunks: ParquetFiles, task: Task, rows: int) -> Iterator[tuple[Any, int]]:
    path, group = task.key
    for start, chunk in pieces(chunks.load(task), rows):
        yield tables.table(chunk, f"{str(path)!r}, row group {group}", start)


def _code(function: LabelingFunction) -> str:
    """Return what changes if the function does, as far as can be seen from here."""
    code = getattr(function.function, "__code__", None)
    if code is None:
        return ""
    constants = [repr(one) for one in code.co_consts if isinstance(one, (str, int, float, tuple))]
    return fingerprint(code.co_code.hex(), constants, list(code.co_names))
