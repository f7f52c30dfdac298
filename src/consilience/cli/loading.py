"""From the arguments of a command to votes, their label type and known labels, in memory or with an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.cli.options import Reading
from consilience.cli.output import Output
from consilience.exceptions import (
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    UnknownColumnError,
    UnknownSourceError,
    did_you_mean,
    needed,
)
from consilience.label_model import LabelModel
from consilience.label_types import Preferences
from consilience.label_types.base import LabelSpace
from consilience.partitions import DaskPartitions, ParquetPartitions, SparkPartitions, spark_session
from consilience.tables.files import read_table
from consilience.tables.frames import ALIASES
from consilience.tables.judges import votes_of_comparisons
from consilience.tables.notation import guess_space, space_of_text
from consilience.tables.reading import as_the_space_reads
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

#: Items that show the label type, where an engine holds the votes and none was named.
SHOWN_ITEMS = 50_000
#: What a column of known labels is called, best first.
LABEL_NAMES = ("gold", "truth", "label", "answer", "gold_label", "true_label", "target")
#: Ids shown in a message.
SHOWN = 3


@dataclass(frozen=True)
class Loaded:
    """Votes as their label type has them, or the partitions of an engine, and one known label (or None) per item."""

    votes: Any
    space: Any
    gold: Batch | None = None

    @property
    def n_gold(self) -> int:
        """How many items have a known label."""
        return 0 if self.gold is None else sum(label is not None for label in self.gold.tolist())


def load(path: Path, reading: Reading, output: Output, gold: str | None = None, *, to_look: bool = False) -> Loaded:
    """Read votes; find their label type, or guess it and say so.

    Where they are read only `to_look` at them, and their label type is not clear, there is none.
    """
    table = _table(path, reading)
    raw, _ = _votes(table, path, reading, gold)
    if reading.space is None and not to_look:
        _check_odd_columns(raw)
        as_the_space_reads(raw, None, str(path))  # refuses a source that mixes numbers and text
    try:
        space = _space(raw, reading, output)
    except FileFormatError as error:
        if not to_look:
            raise
        output.note(f"{error} Until then, labels are taken to be equal or not.")
        return Loaded(raw, None)
    return _interpreted(path, raw, space, table, gold, reading, output)


def load_for_model(path: Path, model: LabelModel, reading: Reading, output: Output, gold: str | None = None) -> Loaded:
    """Read votes for a model: its sources are picked by name, others are left aside."""
    wanted, space = model.source_model_.sources, model.space
    table = _table(path, reading)
    columns = table.column_names
    named = f"preferences:{space.by or ''}" if isinstance(space, Preferences) else reading.space or type(space).__name__
    reading = replace(reading, space=named)
    if reading.sources is None and set(wanted) <= set(columns) and reading.layout != "long":
        reading = replace(reading, sources=wanted, layout="wide")
        others = {*wanted, gold, *reading.drop, reading.roles(columns)[1]["item"]}
        _note_others([name for name in columns if name not in others], output)
    raw, is_long = _votes(table, path, reading, gold)
    missing = [name for name in wanted if name not in raw.sources]
    # Else the model says which sources it misses; in a long table who says nothing abstains.
    if raw.sources != wanted and raw.names_given and (is_long or not missing) and len(missing) < len(wanted):
        _note_others([name for name in raw.sources if name not in wanted], output)
        if missing:
            output.note(f"sources of the model without a vote here: {', '.join(missing)}")
        places = [0 if name in missing else raw.sources.index(name) for name in wanted]
        observed = raw.observed[:, places] & [name not in missing for name in wanted]
        raw = replace(raw, labels=raw.labels[:, places], observed=observed, sources=wanted, repeated_pairs=())
    return _interpreted(path, raw, space, table, gold, reading, output)


def read_raw(path: Path, reading: Reading) -> Votes:
    """Read votes with cells as they are."""
    return _votes(_table(path, reading), path, reading, None)[0]


@contextmanager
def opened(
    path: Path,
    reading: Reading,
    output: Output,
    *,
    gold: str | None = None,
    model: LabelModel | None = None,
    to_look: bool = False,
) -> Iterator[Loaded]:
    """Read votes, of a model's sources if there is one; or give them to an engine, which ends with the block."""
    if reading.engine is None:
        if model is None:
            yield load(path, reading, output, gold, to_look=to_look)
        else:
            yield load_for_model(path, model, reading, output, gold)
        return
    for name in ("source", "label", "repeats", "delimiter"):
        if getattr(reading, name) != getattr(Reading(), name):
            raise click.UsageError(f"--{name} is for tables that are read whole, without --engine.")
    if reading.layout == "long":
        raise click.UsageError(
            "--engine needs one row per item. Turn the table into one first: consilience convert IN OUT --to wide."
        )
    options: dict[str, Any] = {"item": reading.item, "drop": reading.drop, "abstain": reading.abstain}
    options["sources"] = reading.sources if reading.sources or model is None else model.source_model_.sources
    if model is None:
        drop = reading.drop if gold is None else (*reading.drop, gold)
        sample = ParquetPartitions(path, **{**options, "drop": drop}).sample(SHOWN_ITEMS, 0).whole.votes
        space = _space(sample, reading, output)
    else:
        space = model.space
    options |= {"gold": gold, "on_error": reading.on_error}
    if reading.engine == "local":
        yield Loaded(ParquetPartitions(path, space, **options), space)
    elif reading.engine == "dask":
        distributed = needed("distributed", "The Dask engine", "dask")
        with distributed.Client(reading.scheduler) as client:
            yield Loaded(DaskPartitions(path, space, client=client, **options), space)
    else:
        session = spark_session(reading.master)
        try:
            yield Loaded(SparkPartitions(session.read.parquet(str(path.resolve())), space, **options), space)
        finally:
            session.stop()


def describe(space: LabelSpace) -> dict[str, Any]:
    """Return a label type as JSON has it, in the word that `--space` has for it."""
    words = {"Classes": "classes", "DependencyTrees": "trees", "Product": "records", "FiniteMetric": "ordinal"}
    name = type(space).__name__
    return {"type": words.get(name, name.lower()), "python": repr(space)}


def _space(votes: Votes, reading: Reading, output: Output) -> LabelSpace:
    """Return the label type that was named, or guess it and say so."""
    if reading.space is not None:
        return space_of_text(reading.space, votes)
    guess = guess_space(votes)
    output.note(f"labels look like {describe(guess.space)['type']}: {guess.reason}; override with --space")
    return guess.space


def _note_others(names: list[str], output: Output) -> None:
    if names:
        output.note(f"not sources of the model, left aside: {', '.join(names)}")


def _table(path: Path, reading: Reading) -> pa.Table:
    return read_table(path, delimiter=reading.delimiter, encoding=reading.encoding)


def _votes(table: pa.Table, path: Path, reading: Reading, gold: str | None) -> tuple[Votes, bool]:
    """Return votes with cells as they are, and whether the table is long; a column of known labels is no source."""
    columns = table.column_names
    kind, _, by = (reading.space or "preferences").partition(":")
    if kind.strip().lower() == "preferences" and reading.layout == "auto":
        compared = votes_of_comparisons(table, by.strip() or None, judge=reading.source, outcome=reading.label)
        if compared is not None:
            return _chosen(compared, reading), False
    _check_columns(path, columns, [reading.item, reading.source, reading.label])
    drop = reading.drop
    if gold is not None and gold in columns and not Path(gold).is_file():
        drop = (*drop, gold)
    in_columns = reading.sources is not None and set(reading.sources) <= set(columns)
    if (reading if in_columns else replace(reading, sources=None)).roles(columns)[0] == "long":
        votes = replace(reading, layout="long", sources=None, drop=drop).votes(table, str(path))
        return _chosen(votes, reading), True
    _check_columns(path, columns, [*drop, *(reading.sources or ())])
    sources = None if reading.sources is None else tuple(name for name in reading.sources if name not in drop)
    return replace(reading, layout="wide", sources=sources, drop=drop).votes(table, str(path)), False


def _check_columns(path: Path, columns: list[str], wanted: Iterable[str | None]) -> None:
    for name in wanted:
        if name is not None and name not in columns:
            shown = ", ".join(map(repr, columns[:12])) + (", ..." if len(columns) > 12 else "")
            hint = did_you_mean(name, columns)
            raise UnknownColumnError(f"{str(path)!r} has no column {name!r}.{hint} Its columns are {shown}.")


def _chosen(votes: Votes, reading: Reading) -> Votes:
    """Return the votes of a long table by the sources that were asked for."""
    for name in (*(reading.sources or ()), *reading.drop):
        if name not in votes.sources:
            hint = did_you_mean(name, votes.sources)
            shown = ", ".join(map(repr, votes.sources[:8])) + (", ..." if votes.n_sources > 8 else "")
            raise UnknownSourceError(f"There is no source {name!r}.{hint} Sources: {shown}.")
    kept = tuple(name for name in (reading.sources or votes.sources) if name not in reading.drop)
    return votes if kept == votes.sources else votes.select(kept)


def _check_odd_columns(votes: Votes) -> None:
    """Refuse a column of the texts that were voted on among columns of votes: it would count as a source."""
    if votes.labels.dtype != object or votes.labels.ndim != 2 or votes.n_sources < 3:
        return
    seen = zip(votes.labels.T, votes.observed.T, strict=True)
    texts = [[cell for cell in labels[observed] if isinstance(cell, str)] for labels, observed in seen]
    unique = [set(cells) for cells in texts]
    odd = []
    for place, cells in enumerate(texts):
        alone = unique[place].difference(*unique[:place], *unique[place + 1 :])
        if len(alone) >= 0.9 * len(unique[place]) and len(unique[place]) >= max(10, 0.9 * len(cells)):
            odd.append(place)
    if odd and len(odd) * 2 < votes.n_sources:
        name = votes.sources[odd[0]]
        raise FileFormatError(
            f"Column {name!r} does not look like votes: it holds {len(unique[odd[0]])} different texts that "
            f"no other column has. Leave it out with --drop {name}, or name the sources with --sources."
        )


def _interpreted(
    path: Path, raw: Votes, space: LabelSpace, table: pa.Table, gold: str | None, reading: Reading, output: Output
) -> Loaded:
    votes = as_the_space_reads(raw, space, str(path))
    if gold is None:
        return Loaded(votes, space)
    name = gold
    if Path(gold).is_file():
        ids, labels = _columns_of_gold(Path(gold), reading)
    elif gold in table.column_names:
        name = f"{path}, column {gold}"
        ids, labels = votes.items.tolist(), table.column(gold).to_pylist()
        if len(labels) != len(votes):  # a row per vote
            ids = table.column(str(reading.roles(table.column_names)[1]["item"])).to_pylist()
    else:
        hint = did_you_mean(gold, table.column_names) or f" The columns are {', '.join(map(repr, table.column_names))}."
        raise FileFormatError(f"--gold {gold!r} is neither a file nor a column of {str(path)!r}.{hint}")
    found = _matched(ids, labels, votes, name, output)
    rows = list(found)
    # A number is text where the classes are texts such as '1'.
    as_text = (isinstance(one, (int, float)) and not space.contains(one) for one in found.values())
    cells = [
        str(one) if number and space.contains(str(one)) else one
        for one, number in zip(found.values(), as_text, strict=True)
    ]
    try:
        read = as_object_array(space.read_text(as_object_array(cells)))
        space.as_batch(read)
    except InvalidLabelError as error:
        place = "" if error.index is None else f", item {votes.items.tolist()[rows[error.index]]!r}"
        raise FileFormatError(f"{name!r}{place}: {error}") from None
    known: Batch = np.empty(len(votes), dtype=object)
    known[rows] = read
    return Loaded(votes, space, known)


def _columns_of_gold(file: Path, reading: Reading) -> tuple[list[Any], list[Any]]:
    """Return the ids and the labels of a file of known labels."""
    table = _table(file, reading)
    names = table.column_names
    item = reading.item if reading.item in names else Reading().roles(names)[1]["item"]
    others = [name for name in names if name != item]
    lower = {name.lower(): name for name in others}
    likely = [name for name in others if name.lower() in ALIASES["label"]]
    candidates = [lower[word] for word in LABEL_NAMES if word in lower]
    candidates += [name for name in others if name == reading.label]
    for only in (likely, others):
        candidates += only if len(only) == 1 else []
    if item is None or not candidates:
        missing = "items" if item is None else "labels"
        raise FileFormatError(
            f"{str(file)!r} has no column for the {missing}; its columns are {', '.join(map(repr, names))}. "
            "Call them 'item' and 'label'."
        )
    return table.column(item).to_pylist(), table.column(candidates[0]).to_pylist()


def _matched(ids: list[Any], labels: list[Any], votes: Votes, name: str, output: Output) -> dict[int, Any]:
    """Return the known labels by row of the votes."""
    row_of = {_key(item): row for row, item in enumerate(votes.items.tolist())}
    found: dict[int, Any] = {}
    unmatched: dict[Any, None] = {}
    for item, label in zip(ids, labels, strict=True):
        if label is None or label == "":
            continue
        row = row_of.get(_key(item))
        if row is None:
            unmatched[item] = None
        elif found.setdefault(row, label) != label:
            raise InvalidVotesError(
                f"{name!r} knows two labels of item {item!r}: {found[row]!r} and {label!r}. Keep one of them."
            )
    if not found and not unmatched:
        raise FileFormatError(f"{name!r} holds no label. Give at least one known label.")
    listed = ", ".join(map(repr, list(unmatched)[:SHOWN])) + (", ..." if len(unmatched) > SHOWN else "")
    if not found:
        raise FileFormatError(
            f"None of the {len(unmatched)} items of {name!r} is among the {len(votes)} items of the votes: {listed} "
            f"there, {', '.join(map(repr, votes.items.tolist()[:SHOWN]))} here. Use the same ids in both files."
        )
    if unmatched:
        count = f"{len(unmatched)} of {len(unmatched) + len(found)}"
        output.note(f"{count} items of {name!r} are not among the votes: {listed}")
    return found


def _key(item: Any) -> str:
    """Return an id so that 7, 7.0 and '7' are the same."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)
