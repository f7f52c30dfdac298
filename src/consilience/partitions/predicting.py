"""Labels of partitioned votes, in the type of the engine and never all of them in one memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import UnsupportedError
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions
from consilience.partitions.dask import DaskPartitions
from consilience.partitions.label_folder import (
    Labeler,
    LabelFolder,
    Manifest,
    answering,
    fingerprint,
    first_votes,
    labels_by_pattern,
    without_sums,
)
from consilience.partitions.parquet import ParquetPartitions
from consilience.partitions.spark import SparkPartitions
from consilience.tables.writing import label_table, unrelated_distance

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.label_model import LabelModel

__all__ = ["labeler", "predict_frame", "predict_to"]

#: Items from which on it pays to label all patterns of votes that there may be beforehand.
WORTH_IT = 200_000
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

    Parameters
    ----------
    question
        A method of the model: "predict", "predict_baseline", "predict_proba" or "confidence". The columns are
        ``item`` and ``label``, ``probabilities`` or ``confidence``. None asks for the columns of `label_table`.
    ties
        As for `label_table`.
    fill
        As for `LabelModel.predict`.
    """
    if not isinstance(partitions, (DaskPartitions, SparkPartitions)):
        raise UnsupportedError(
            f"{type(partitions).__name__} has no frames of its own. Use label_table(model, votes) for votes in memory, "
            "or predict_to(model, votes, folder)."
        )
    if question is None:
        return partitions.label_frame(labeler(model, partitions, ties))
    if question not in QUESTIONS:
        raise UnsupportedError(f"question={question!r} is unknown. Use one of {', '.join(QUESTIONS)}.")
    options = {"fill": fill} if question == "predict" else {}
    return partitions.label_frame(answering(model, partitions, question, options))


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

    Parameters
    ----------
    destination
        A folder that is new or empty. Anything that reads Parquet reads its files as one table.
    ties
        As for `label_table`.
    resume
        Continue a run that was stopped: files that are complete stay, and only the others are written. The votes
        and the model have to be the same.
    force
        Overwrite the labels that an earlier run has written there.

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
    if isinstance(partitions, (ParquetPartitions, InMemoryPartitions)):
        return _to_folder(model, partitions, Path(destination), ties, resume=resume, force=force)
    if isinstance(partitions, DaskPartitions):
        pieces = list(zip(partitions.places, partitions.sizes, strict=True))
        begun = header(model, [list(piece) for piece in pieces], ties)
        manifest = Manifest.start(Path(destination), begun, resume=resume, force=force)
        if len(manifest.done) == len(pieces):
            return manifest.finish()
        return partitions.write_labels(labeler(model, partitions, ties), manifest)
    if isinstance(partitions, SparkPartitions):
        if resume:
            raise UnsupportedError(
                "Spark commits its own files and does not resume. Label again with force=True, or label the same files "
                "with ParquetPartitions or DaskPartitions, which do."
            )
        return partitions.write_labels(labeler(model, partitions, ties), destination, force=force)
    raise UnsupportedError(
        f"predict_to does not know {type(partitions).__name__}. Use partitions of consilience.partitions, or "
        "label_table(model, votes) for votes in memory."
    )


def labeler(model: LabelModel, partitions: VotePartitions, ties: float | None = None) -> Labeler:
    """Return what labels each part of the partitions, after a look at the type of their labels."""
    few = first_votes(partitions)
    schema: pa.Schema = label_table(model, few, ties=ties).schema
    return Labeler(
        without_sums(model),
        schema,
        ties,
        unrelated_distance(model, partitions),
        labels_by_pattern(model, few) if partitions.n_items >= WORTH_IT else None,
    )


def _to_folder(
    model: LabelModel,
    partitions: ParquetPartitions | InMemoryPartitions,
    folder: Path,
    ties: float | None,
    *,
    resume: bool,
    force: bool,
) -> LabelFolder:
    pieces = dict(enumerate(_described(partitions)))
    manifest = Manifest.start(folder, header(model, list(pieces.values()), ties), resume=resume, force=force)
    left = [piece for piece in pieces if piece not in manifest.done]
    if left:
        if isinstance(partitions, ParquetPartitions):
            partitions.check_ids()
        writer = labeler(model, partitions, ties)
        for piece in left:
            manifest.add(piece, writer.write(_parts(partitions, piece), manifest.target(piece)))
    return manifest.finish()


def header(model: LabelModel, pieces: list[Any], ties: float | None) -> dict[str, Any]:
    """Return what a manifest says about the votes and the model."""
    learned = model.source_model_
    return {
        "model": fingerprint(
            repr(model.space), model.decode, learned.sources, [(share, one.as_dict()) for share, one in learned.mixture]
        ),
        "votes": fingerprint(pieces),
        "pieces": len(pieces),
        "ties": ties,
    }


def _described(partitions: ParquetPartitions | InMemoryPartitions) -> list[Any]:
    """Return one entry per piece, which is another one if the votes are."""
    if isinstance(partitions, InMemoryPartitions):
        size, rows, votes = partitions.n_items, partitions.rows, partitions.whole.votes
        content = fingerprint(votes.labels, votes.observed, votes.items)
        return [[content, start, min(size, start + rows)] for start in range(0, size, rows)]
    sizes = {piece.file: Path(piece.file).stat().st_size for piece in partitions.pieces}
    reader = partitions.reader
    how = [reader.sources, reader.item, reader.abstain, reader.on_error]
    return [[Path(piece.file).name, sizes[piece.file], piece.group, piece.n_rows, how] for piece in partitions.pieces]


def _parts(partitions: ParquetPartitions | InMemoryPartitions, piece: int) -> Iterator[Part]:
    if isinstance(partitions, InMemoryPartitions):
        yield partitions.whole[piece * partitions.rows : (piece + 1) * partitions.rows]
        return
    yield from partitions.pieces[piece].map(partitions.reader, lambda part: part, partitions.kept)
