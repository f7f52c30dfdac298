"""Labels of partitioned votes: as a dataframe of the engine, or as a folder of Parquet files, never all in one memory.

The folder has one file per piece of the votes and ``_manifest.jsonl``. The first line of the manifest identifies votes
and model. A line is added for each complete file, and a last one at the end. A file gets its name when it is complete,
and counts only if the manifest lists it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from consilience.estimation.protocol import Posterior
from consilience.exceptions import FileFormatError, UnsupportedError
from consilience.label_model import LabelModel
from consilience.lazy import parquet as pq
from consilience.lazy import pyarrow as pa
from consilience.partitions.base import Part, VotePartitions, without_pieces
from consilience.tables.files import replace_file, write_text
from consilience.tables.vote_tables import id_column
from consilience.tables.writing import label_column, label_table, unrelated_distance
from consilience.votes import Votes

#: Methods of a model whose answers `predict_frame` returns.
QUESTIONS = ("predict", "predict_baseline", "predict_proba", "confidence")
#: Items from which the type of a label is taken.
SHOWN = 50
#: Depth of nested objects in a fingerprint; deeper ones count by their type.
DEEPEST = 10
MANIFEST = "_manifest.jsonl"
FORMAT = 1


def predict_frame(
    model: LabelModel,
    partitions: VotePartitions,
    question: str | None = None,
    *,
    ties: float | None = None,
    fill: str | None = None,
) -> Any:
    """Return a lazy Dask or Spark dataframe of the answers of a model.

    `question` is a method of the model: "predict", "predict_baseline", "predict_proba" or "confidence". The columns are
    ``item`` and ``label``, ``probabilities`` or ``confidence``. Without a question they are those of `label_table`.
    `ties` is as for `label_table`, `fill` as for `LabelModel.predict`.

    Examples
    --------
    >>> predict_frame(model, votes, "predict")  # doctest: +SKIP
    """
    if not isinstance(partitions, VotePartitions) or not partitions.remote:
        raise UnsupportedError(
            f"{type(partitions).__name__} is not on Dask or Spark. Use label_table(model, votes) for votes in memory, "
            "or predict_to(model, votes, folder)."
        )
    if question is not None and question not in QUESTIONS:
        raise UnsupportedError(f"question={question!r} is unknown. Use one of {', '.join(QUESTIONS)}.")
    return partitions.label_frame(labeler(model, partitions, question, ties=ties, fill=fill))


def predict_to(
    model: LabelModel,
    partitions: VotePartitions,
    destination: str | Path,
    *,
    ties: float | None = None,
    resume: bool = False,
    force: bool = False,
) -> LabelFolder:
    """Write labels to a folder of Parquet files with the columns of `label_table`, one file per row group or chunk.

    `destination` is a new or empty folder. `resume` continues a run that stopped: complete files stay, and only the
    others are written. Votes and model must be the same. `force` overwrites the labels of an earlier run. `ties` is as
    for `label_table`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from consilience import Classes, LabelModel
    >>> from consilience.partitions import InMemoryPartitions
    >>> votes = Votes.from_matrix([["spam", "spam", "ham"], ["ham", "ham", "ham"], ["ham", "spam", "spam"]] * 20)
    >>> model = LabelModel(Classes(["ham", "spam"])).fit(votes)
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "labels"
    >>> written = predict_to(model, InMemoryPartitions.of(votes, rows=25), folder)
    >>> written.n_items, written.n_files
    (60, 3)
    """
    if not isinstance(partitions, VotePartitions):
        raise without_pieces(partitions)
    if not partitions.in_pieces:
        if resume:
            raise UnsupportedError(
                "Spark commits its own files and does not resume. Label again with force=True, or use "
                "ParquetPartitions or DaskPartitions for the same files."
            )
        return partitions.write_folder(labeler(model, partitions, ties=ties), destination, force=force)
    pieces, learned = partitions.pieces(), model.source_model_
    header = {
        "model": fingerprint(repr(model.space), model.decode, learned.sources, learned.mixture, learned.calibration),
        "votes": fingerprint(pieces),
        "pieces": len(pieces),
        "ties": ties,
    }
    manifest = Manifest(Path(destination), header, resume=resume, force=force)
    left = {index: manifest.target(index) for index in range(len(pieces)) if index not in manifest.done}
    if left:
        for index, counts in partitions.write_labels(labeler(model, partitions, ties=ties), left):
            manifest.add(index, counts)
    return manifest.finish()


@dataclass(frozen=True)
class Labeler:
    """Turns parts of the votes into tables of labels with the same columns; it is sent to the workers.

    Parameters
    ----------
    question, ties, fill
        See `consilience.partitions.predict_frame`.
    unrelated
        Mean distance of votes to the labels of other items, if agreement needs it.
    schema
        Schema of the tables; None for any.
    """

    model: LabelModel
    question: str | None = None
    ties: float | None = None
    fill: str | None = None
    unrelated: float | None = None
    schema: pa.Schema | None = None

    def table(self, part: Part) -> pa.Table:
        """Return the table of a part."""
        found = self._asked(part.votes)
        if self.schema is None:
            return found
        if "label" in found.column_names and not part.votes.observed.any() and self.fill is None:
            # without votes, the type of a label is unknown
            place = found.column_names.index("label")
            found = found.set_column(place, "label", pa.nulls(len(found), self.schema.field("label").type))
        return found.cast(self.schema)

    def write(self, parts: Iterable[Part], target: Path) -> dict[str, int]:
        """Write the tables of several parts to one file."""
        return write_tables(((self.table(part), part.skipped) for part in parts), self.schema, target)

    def _asked(self, votes: Votes) -> pa.Table:
        if self.question is None:
            return label_table(self.model, votes, ties=self.ties, unrelated=self.unrelated)
        options = {"fill": self.fill} if self.question == "predict" else {}
        found = getattr(self.model, self.question)(votes, **options)
        if self.question == "confidence":
            name, column = "confidence", pa.array(found)
        elif self.question == "predict_proba":
            name, column = "probabilities", pa.array(list(found), pa.list_(pa.float64()))
        else:
            name, column = "label", label_column(self.model.space, Posterior(found, np.zeros(len(found))))
        return pa.table({"item": id_column(votes.items), name: column})


def labeler(
    model: LabelModel,
    partitions: VotePartitions,
    question: str | None = None,
    *,
    ties: float | None = None,
    fill: str | None = None,
) -> Labeler:
    """Return the labeler of the partitions, whose schema comes from the labels of a few items."""
    if ties is not None and question is not None:
        raise UnsupportedError(f"question={question!r} asks for no ties. Leave ties= out, or the question.")
    if fill is not None and question != "predict":
        raise UnsupportedError("fill= is for question='predict'. Leave it out, or ask for that.")

    def shown(part: Part) -> Votes:
        """Return the first few items with a vote, or else one item."""
        voted = np.flatnonzero(part.votes.observed.any(axis=1))[:SHOWN]
        return part.votes[voted] if len(voted) else part.votes[:1]

    few: Votes | None = None
    for few in partitions.map(shown):
        if few.observed.any():
            break
    if few is None:
        raise UnsupportedError("There are no items to label. Pass at least one row of votes.")
    light = type(model)(**model.get_params())  # without the sums that it learned from, which workers do not need
    light.source_model_ = model.source_model_
    made = Labeler(light, question, ties, fill)
    made = replace(made, schema=made.table(Part(few)).schema)
    if question is not None:
        return made
    return replace(made, unrelated=unrelated_distance(model, partitions))


@dataclass(frozen=True)
class LabelFolder:
    """What was written: the folder or its URL, and the numbers of labels and Parquet files.

    Examples
    --------
    >>> LabelFolder("labels", n_items=3000, n_files=9).n_files
    9
    """

    path: str | Path
    n_items: int
    n_files: int
    #: Cells that are not labels and count as abstentions.
    n_skipped: int = 0
    #: Files that an earlier run had written.
    n_resumed: int = 0


def write_tables(tables: Iterable[tuple[pa.Table, int]], schema: pa.Schema, target: Path) -> dict[str, int]:
    """Write tables, each with its number of skipped cells, to one file, which appears when it is complete."""
    counts = {"rows": 0, "skipped": 0}

    # Dictionaries and compression do not help for numbers that hardly repeat.
    numbered = "item" in schema.names and pa.types.is_integer(schema.field("item").type)
    plain = {"confidence", "item"} if numbered else {"confidence"}
    stored = {
        "use_dictionary": [name for name in schema.names if name not in plain],
        "column_encoding": {"item": "DELTA_BINARY_PACKED"} if numbered else None,
        "compression": {name: "none" if name in plain else "snappy" for name in schema.names},
    }

    def write(temporary: str) -> None:
        with pq.ParquetWriter(temporary, schema, **stored) as writer:
            for table, skipped in tables:
                writer.write_table(table)
                counts["rows"] += len(table)
                counts["skipped"] += skipped
        with open(temporary, "rb+") as file:  # Windows syncs only what can be written
            os.fsync(file.fileno())

    replace_file(target, write, force=True)
    return counts


class Manifest:
    """The list of complete files in a new folder, or in the folder of an earlier run."""

    def __init__(self, folder: Path, header: dict[str, Any], *, resume: bool, force: bool) -> None:
        check_folder(folder, resume=resume, force=force)
        self.folder, self.done = folder, dict[int, dict[str, Any]]()
        header, path = {"format": FORMAT, **header}, folder / MANIFEST
        lines = _lines(path) if resume else []
        if lines and lines[0] != header:
            differs = ", ".join(name for name in header if lines[0].get(name) != header[name])
            raise FileFormatError(
                f"{str(folder)!r} was made from other votes or by another model ({differs} differ), so it "
                "cannot be resumed. Name another folder, or overwrite it with force=True."
            )
        if lines:
            entries = [line for line in lines[1:] if "piece" in line]
            self.done = {line["piece"]: line for line in entries if (folder / str(line["file"])).is_file()}
        elif path.is_file():
            for file in (path, *folder.glob("part-*.parquet")):
                file.unlink()
        self.n_resumed = len(self.done)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(json.dumps(line) + "\n" for line in (header, *self.done.values())), force=True)

    def target(self, piece: int) -> Path:
        """Return the file of a piece."""
        return self.folder / f"part-{piece:06d}.parquet"

    def add(self, piece: int, counts: dict[str, int]) -> None:
        """Add a complete file to the list."""
        self.done[piece] = {"piece": piece, "file": self.target(piece).name, **counts}
        self._append(self.done[piece])

    def finish(self) -> LabelFolder:
        """Mark the folder as complete, and return what was written."""
        rows, skipped = (sum(entry[name] for entry in self.done.values()) for name in ("rows", "skipped"))
        self._append({"complete": True, "rows": rows, "files": len(self.done), "skipped": skipped})
        return LabelFolder(self.folder, rows, len(self.done), skipped, self.n_resumed)

    def _append(self, entry: dict[str, Any]) -> None:
        with (self.folder / MANIFEST).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete entries of a manifest."""
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").split("\n") if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            break
        if not isinstance(entry, dict):
            break
        found.append(entry)
    return found


def check_folder(folder: Path, *, resume: bool, force: bool) -> None:
    """Refuse a folder to which labels cannot be written, before any work."""
    if folder.exists() and not folder.is_dir():
        raise FileFormatError(f"{str(folder)!r} is a file. Name a folder for the labels.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / MANIFEST).is_file():
        raise FileFormatError(
            f"The folder {str(folder)!r} has files that are not labels of an earlier run. Name a new folder."
        )
    if not resume and not force:
        raise FileFormatError(
            f"The folder {str(folder)!r} is not empty. Continue it with resume=True, or overwrite it with force=True."
        )


def fingerprint(*values: Any) -> str:
    """Return a short hash of the values."""
    return hashlib.sha256(json.dumps(_described(values, DEEPEST)).encode()).hexdigest()[:16]


def _described(value: Any, depth: int) -> Any:
    """Return a value as JSON; a function as its code, defaults, captured values and global names."""
    if isinstance(value, (str, int, float, type(None))):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return [str(value.dtype), value.shape, content]
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (bytes, np.dtype, re.Pattern)):
        return repr(value)
    if depth == 0 or isinstance(value, (type, ModuleType)):  # the text of an object would contain an address
        return getattr(value, "__name__", type(value).__name__)

    def each(values: Iterable[Any]) -> list[Any]:
        return [_described(one, depth - 1) for one in values]

    if isinstance(value, Mapping):
        return [[repr(key), _described(value[key], depth - 1)] for key in sorted(value, key=repr)]
    if isinstance(value, (list, tuple)):
        return each(value)
    if isinstance(value, (set, frozenset)):
        return each(sorted(value, key=repr))
    if isinstance(value, CodeType):
        return each([value.co_code, value.co_names, value.co_consts])
    if isinstance(value, FunctionType):
        around = {name: value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__}
        captured = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        return each([value.__code__, value.__defaults__, value.__kwdefaults__, captured, around])
    if isinstance(value, partial):
        return each([value.func, value.args, value.keywords])
    return each([type(value), getattr(value, "__dict__", None)])
