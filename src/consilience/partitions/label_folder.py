"""From parts to tables of labels, and into a folder of Parquet files: a run that was stopped can be continued.

The folder holds one file per piece of the votes and ``_manifest.jsonl``. The manifest's first line says what is
being labelled by which model; a line is added for each file once it is complete, and a last one at the end. A file
gets its name only when it is complete, and counts only if the manifest lists it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.estimation.protocol import Posterior
from consilience.exceptions import FileFormatError, UnsupportedError
from consilience.label_types.classes.law import ClassesLaw, all_patterns, few_patterns, patterns_of
from consilience.partitions.base import Part, VotePartitions
from consilience.tables.encoding import align_sources, encode
from consilience.tables.files import replace_file, write_text
from consilience.tables.writing import label_column, label_table
from consilience.votes import Votes

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from consilience.label_model import LabelModel


@dataclass(frozen=True, eq=False)
class LabelsByPattern:
    """The table of labels of every pattern of votes that there may be.

    Parameters
    ----------
    rows
        What `label_table` returns for the patterns, without the ids.
    dtype
        Of the votes whose labels these are: codes may be written otherwise than names.
    """

    model: LabelModel
    rows: pa.Table
    dtype: npt.DTypeLike

    def table(self, votes: Votes) -> pa.Table | None:
        """Return what `label_table` returns, or None for votes of another type or for few items."""
        import pyarrow as pa

        if votes.labels.dtype != self.dtype or votes.items.dtype.kind != "i":
            return None
        space, learned = self.model.space, self.model.source_model_
        table = align_sources(votes, space, learned.sources, learned.names_given)
        encoded = encode(table, space)
        numbers = patterns_of(encoded.labels, encoded.observed, int(space.n_labels or 0))
        if numbers is None:
            return None
        found = self.rows.take(pa.array(numbers))
        return found.add_column(0, "item", pa.array(table.items))


def labels_by_pattern(model: LabelModel, like: Votes) -> LabelsByPattern | None:
    """Return the labels of all patterns of votes, None where there are too many, or votes are no integers."""
    space, sources = model.space, model.source_model_.sources
    k, m = space.n_labels, len(sources)
    if not isinstance(space.law, ClassesLaw) or k is None or not few_patterns(m, k):
        return None
    if like.labels.ndim != 2 or like.labels.dtype.kind not in "iu" or like.spelling is not None:
        return None
    codes, observed = all_patterns(m, k)
    labels = space.as_labels(codes, like.labels.dtype).astype(like.labels.dtype)
    patterns = Votes(labels, observed, sources, np.arange(len(codes)), names_given=like.names_given)
    return LabelsByPattern(model, label_table(model, patterns).drop_columns("item"), like.labels.dtype)


#: Items whose labels show the type of a label.
SHOWN = 50


@dataclass(frozen=True)
class Answering:
    """From parts to tables of answers that all have the same columns; it travels to the workers.

    Parameters
    ----------
    question
        The method of the model that is asked: predict, predict_baseline, confidence or predict_proba.
    schema
        Of the tables; None to leave their types as they come.
    """

    model: LabelModel
    question: str
    options: dict[str, Any]
    schema: pa.Schema | None = None

    def table(self, part: Part) -> pa.Table:
        """Return ids and answers of a part."""
        import pyarrow as pa

        found = getattr(self.model, self.question)(part.votes, **self.options)
        if self.question == "confidence":
            name, column = "confidence", pa.array(found)
        elif self.question == "predict_proba":
            name, column = "probabilities", pa.array(list(found), pa.list_(pa.float64()))
        else:
            name, column = "label", self._labels(found, part)
        table = pa.table({"item": pa.array(part.votes.items.tolist()), name: column})
        return table if self.schema is None else table.cast(self.schema)

    def _labels(self, labels: Any, part: Part) -> pa.Array:
        import pyarrow as pa

        silent = not part.votes.observed.any() and self.options.get("fill") is None
        if silent and self.schema is not None:  # nobody says anything that could show the type of a label
            return pa.nulls(len(labels), self.schema.field("label").type)
        return label_column(self.model.space, Posterior(labels, np.zeros(len(labels))))


def answering(model: LabelModel, partitions: VotePartitions, question: str, options: dict[str, Any]) -> Answering:
    """Return what answers each part of the partitions, after a look at the type of the answers."""
    asked = Answering(without_sums(model), question, options)
    return replace(asked, schema=asked.table(Part(first_votes(partitions))).schema)


def without_sums(model: LabelModel) -> LabelModel:
    """Return the model with what it learned but without what it learned from, which need not travel."""
    light = type(model)(**model.get_params())
    light.source_model_ = model.source_model_
    return light


def first_votes(partitions: VotePartitions) -> Votes:
    """Return the first few items with a vote; an item without one where there are none."""
    few: Votes | None = None
    for votes in partitions.map(_shown):
        few = votes
        if votes.observed.any():
            break
    if few is None:
        raise UnsupportedError("There are no items to label. Pass at least one row of votes.")
    return few


def _shown(part: Part) -> Votes:
    voted = np.flatnonzero(part.votes.observed.any(axis=1))[:SHOWN]
    return part.votes[voted] if len(voted) else part.votes[:1]


MANIFEST = "_manifest.jsonl"
FORMAT = 1


@dataclass(frozen=True)
class LabelFolder:
    """What was written.

    Parameters
    ----------
    path
        The folder, or its address on another file system.
    n_items, n_files
        Labels and Parquet files in the folder.
    n_skipped
        Cells that were no labels and were taken for abstentions.
    n_resumed
        Files that an earlier run had written.
    """

    path: str | Path
    n_items: int
    n_files: int
    n_skipped: int = 0
    n_resumed: int = 0


@dataclass(frozen=True)
class Labeler:
    """From parts to tables of labels that all have the same columns; it travels to the workers.

    Parameters
    ----------
    schema
        Of the tables, see `label_table`.
    unrelated
        Mean distance of votes to the labels of other items, where agreement needs it.
    by_pattern
        The labels of all patterns of votes, where there are few.
    """

    model: LabelModel
    schema: pa.Schema
    ties: float | None = None
    unrelated: float | None = None
    by_pattern: LabelsByPattern | None = None

    def table(self, part: Part) -> pa.Table:
        """Return the labels of a part."""
        import pyarrow as pa

        known = None if self.by_pattern is None else self.by_pattern.table(part.votes)
        if known is not None:
            return known.cast(self.schema)
        found = label_table(self.model, part.votes, ties=self.ties, unrelated=self.unrelated)
        if not part.votes.observed.any():  # nobody says anything that could show the type of a label
            place = found.column_names.index("label")
            found = found.set_column(place, "label", pa.nulls(len(found), self.schema.field("label").type))
        return found.cast(self.schema)

    def write(self, parts: Iterable[Part], target: Path) -> dict[str, int]:
        """Write the labels of several parts to one file, which appears when it is complete."""
        return write_tables(((self.table(part), part.skipped) for part in parts), self.schema, target)


def write_tables(tables: Iterable[tuple[pa.Table, int]], schema: pa.Schema, target: Path) -> dict[str, int]:
    """Write tables, each with a number of skipped cells, to one file, which appears when it is complete."""
    counts = {"rows": 0, "skipped": 0}

    def write(temporary: str) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(temporary, schema, **_encoding(schema)) as writer:
            for table, skipped in tables:
                writer.write_table(table)
                counts["rows"] += len(table)
                counts["skipped"] += skipped
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())

    replace_file(target, write, force=True)
    return counts


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Return how columns are stored: numbers that hardly repeat only slow dictionaries and compression down."""
    import pyarrow as pa

    numbered = "item" in schema.names and pa.types.is_integer(schema.field("item").type)
    plain = {"confidence", "item"} if numbered else {"confidence"}
    dense = {"item": "DELTA_BINARY_PACKED"} if numbered else None
    return {
        "use_dictionary": [name for name in schema.names if name not in plain],
        "column_encoding": dense,
        "compression": {name: "none" if name in plain else "snappy" for name in schema.names},
    }


class Manifest:
    """The list of complete files of a folder."""

    def __init__(self, folder: Path, done: dict[int, dict[str, Any]]) -> None:
        self.folder = folder
        self.done = done
        self.n_resumed = len(done)

    @classmethod
    def start(cls, folder: Path, header: dict[str, Any], *, resume: bool, force: bool) -> Manifest:
        """Return the manifest of a new folder, or of one that an earlier run left."""
        header = {"format": FORMAT, **header}
        path = folder / MANIFEST
        check_folder(folder, resume=resume, force=force)
        if resume and path.is_file():
            lines = list(_lines(path))
            if lines and lines[0] == header:
                entries = [line for line in lines[1:] if "piece" in line]
                done = {line["piece"]: line for line in entries if (folder / str(line["file"])).is_file()}
                found = cls(folder, done)
                found._rewrite(header)
                return found
            if lines:
                differs = ", ".join(name for name in header if lines[0].get(name) != header[name])
                raise FileFormatError(
                    f"{str(folder)!r} was made from other votes or by another model ({differs} differ), so it "
                    "cannot be continued. Name another folder, or overwrite it with force."
                )
        if path.is_file():
            path.unlink()
            for file in folder.glob("part-*.parquet"):
                file.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder, {})
        made._rewrite(header)
        return made

    def target(self, piece: int) -> Path:
        """Return the file of a piece."""
        return self.folder / f"part-{piece:06d}.parquet"

    def add(self, piece: int, counts: dict[str, int]) -> None:
        """List a complete file."""
        entry = {"piece": piece, "file": self.target(piece).name, **counts}
        self.done[piece] = entry
        self._append(entry)

    def finish(self) -> LabelFolder:
        """List the end, and return what was written."""
        entries = self.done.values()
        total = LabelFolder(
            self.folder,
            sum(entry["rows"] for entry in entries),
            len(entries),
            sum(entry["skipped"] for entry in entries),
            self.n_resumed,
        )
        self._append({"complete": True, "rows": total.n_items, "files": total.n_files, "skipped": total.n_skipped})
        return total

    def _append(self, entry: dict[str, Any]) -> None:
        with (self.folder / MANIFEST).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self, header: dict[str, Any]) -> None:
        lines = [header, *self.done.values()]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_text(self.folder / MANIFEST, text, force=True)


def check_folder(folder: Path, *, resume: bool, force: bool) -> None:
    """Refuse a folder into which labels cannot go, before any work."""
    if folder.exists() and not folder.is_dir():
        raise FileFormatError(f"{str(folder)!r} is a file. Name a folder for the labels.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / MANIFEST).is_file():
        raise FileFormatError(
            f"The folder {str(folder)!r} holds files that are no labels of an earlier run. Name a new folder."
        )
    if not resume and not force:
        raise FileFormatError(
            f"The folder {str(folder)!r} is not empty. Continue it with resume=True, or overwrite it with force=True."
        )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a manifest up to the first that was not written to its end."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            return
        if not isinstance(entry, dict):
            return
        yield entry


def fingerprint(*values: Any) -> str:
    """Return a short text that differs, as good as surely, where any of the values does."""
    digest = hashlib.sha256()
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()[:16]


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            digest.update(f"{key}=".encode())
            _feed(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for entry in value:
            _feed(digest, entry)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray):
        _feed(digest, value.tolist())
    elif value is None or isinstance(value, (str, int, float, bool, np.generic)):
        digest.update(repr(value).encode() + b";")
    else:  # a function or an object, whose text would hold an address
        digest.update(type(value).__name__.encode())
