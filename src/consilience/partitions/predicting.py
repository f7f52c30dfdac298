"""Labels of partitioned votes: as a dataframe of the engine, or as a folder of files, never all in one memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import UnsupportedError
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions
from consilience.partitions.dask import DaskPartitions
from consilience.partitions.label_folder import LabelFolder, Manifest, fingerprint, labeler
from consilience.partitions.parquet import ParquetPartitions
from consilience.partitions.spark import SparkPartitions

if TYPE_CHECKING:
    from consilience.label_model import LabelModel

#: Methods of a model whose answers `predict_frame` returns.
QUESTIONS = ("predict", "predict_baseline", "predict_proba", "confidence")


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
    if not isinstance(partitions, (DaskPartitions, SparkPartitions)):
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
    >>> from consilience import Classes, LabelModel, Votes
    >>> votes = Votes.from_matrix([["spam", "spam", "ham"], ["ham", "ham", "ham"], ["ham", "spam", "spam"]] * 20)
    >>> model = LabelModel(Classes(["ham", "spam"])).fit(votes)
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "labels"
    >>> written = predict_to(model, InMemoryPartitions.of(votes, rows=25), folder)
    >>> written.n_items, written.n_files
    (60, 3)
    """
    if isinstance(partitions, SparkPartitions):
        if resume:
            raise UnsupportedError(
                "Spark commits its own files and does not resume. Label again with force=True, or use "
                "ParquetPartitions or DaskPartitions for the same files."
            )
        return partitions.write_labels(labeler(model, partitions, ties=ties), destination, force=force)
    pieces, learned = _described(partitions), model.source_model_
    header = {
        "model": fingerprint(repr(model.space), model.decode, learned.sources, learned.mixture, learned.calibration),
        "votes": fingerprint(pieces),
        "pieces": len(pieces),
        "ties": ties,
    }
    manifest = Manifest(Path(destination), header, resume=resume, force=force)
    left = {index: manifest.target(index) for index in range(len(pieces)) if index not in manifest.done}
    if left and isinstance(partitions, DaskPartitions):
        for index, counts in partitions.write_labels(labeler(model, partitions, ties=ties), left):
            manifest.add(index, counts)
    elif left:
        if isinstance(partitions, ParquetPartitions):
            partitions.check_ids()
        writer = labeler(model, partitions, ties=ties)
        for index, target in left.items():
            manifest.add(index, writer.write(_parts(partitions, index), target))
    return manifest.finish()


def _parts(partitions: VotePartitions, piece: int) -> Iterator[Part]:
    if isinstance(partitions, ParquetPartitions):
        yield from (partitions.transformed(part) for _, part in partitions.parts(partitions.pieces[piece]))
    elif isinstance(partitions, InMemoryPartitions):
        yield partitions.whole[piece * partitions.rows : (piece + 1) * partitions.rows]


def _described(partitions: VotePartitions) -> list[Any]:
    """Return one entry per piece, which changes with the votes."""
    if isinstance(partitions, DaskPartitions):
        return list(zip(partitions.places, partitions.sizes, strict=True))
    if isinstance(partitions, InMemoryPartitions):
        size, rows, votes = partitions.n_items, partitions.rows, partitions.whole.votes
        content = fingerprint(votes.labels, votes.observed, votes.items)
        return [[content, start, min(size, start + rows)] for start in range(0, size, rows)]
    if isinstance(partitions, ParquetPartitions):
        sizes = {piece.file: Path(piece.file).stat().st_size for piece in partitions.pieces}
        reader = partitions.reader
        how = [reader.sources, reader.item, reader.abstain, reader.on_error, partitions.steps]
        return [
            [Path(piece.file).name, sizes[piece.file], piece.group, piece.n_rows, how] for piece in partitions.pieces
        ]
    raise UnsupportedError(
        f"{type(partitions).__name__} does not work with predict_to. Use partitions of consilience.partitions, or "
        "label_table(model, votes) for votes in memory."
    )
