"""Labels of partitioned votes, in the type of the engine and never all of them in one memory."""

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
    """Return a Dask or Spark dataframe that computes what a model says about votes there, when it is asked for.

    `question` is a method of the model: "predict", "predict_baseline", "predict_proba" or "confidence". The columns are
    ``item`` and ``label``, ``probabilities`` or ``confidence``. None asks for the columns of `label_table`. `ties` is
    as there, `fill` as for `LabelModel.predict`.

    Examples
    --------
    >>> predict_frame(model, votes, "predict")  # doctest: +SKIP
    """
    if not isinstance(partitions, (DaskPartitions, SparkPartitions)):
        raise UnsupportedError(
            f"{type(partitions).__name__} has no frames of its own. Use label_table(model, votes) for votes in memory, "
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
    """Write the labels of votes in chunks to a folder of Parquet files, with the columns of `label_table`.

    There is one file for each row group, chunk or partition; Spark decides for itself. Labels are never all in one
    memory.

    `destination` is a folder that is new or empty; anything that reads Parquet reads its files as one table. With
    `resume`, a run that was stopped continues: files that are complete stay, and only the others are written; the votes
    and the model have to be the same. `force` overwrites the labels that an earlier run has written there. `ties` is as
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
                "Spark commits its own files and does not resume. Label again with force=True, or label the same files "
                "with ParquetPartitions or DaskPartitions, which do."
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
    """Return one entry per piece, which is another one if the votes are."""
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
        f"predict_to does not know {type(partitions).__name__}. Use partitions of consilience.partitions, or "
        "label_table(model, votes) for votes in memory."
    )
