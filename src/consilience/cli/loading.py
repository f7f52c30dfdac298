"""From the arguments of a command to votes, their label type, known labels and what items show, or to an engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import consilience.tables as tables
from consilience.arrays import Batch, IntArray, as_object_array
from consilience.cli.commands import BadInputError, in_options
from consilience.cli.options import Reading
from consilience.cli.output import Output, shortened
from consilience.exceptions import (
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    did_you_mean,
    needed,
    unknown_column,
)
from consilience.json_text import parse_json
from consilience.label_model import LabelModel
from consilience.label_types import Preferences, Rankings
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.partitions import DaskPartitions, ParquetPartitions, Part, SparkPartitions, spark_session
from consilience.partitions.reading import ReadPartitions
from consilience.review.gold_file import ANSWERED, FIELDS, last_answers
from consilience.tables.cleaning import RANKED_BELOW, cleaned, columns_of_texts, read_by, refuse_mixed_cells
from consilience.tables.display import SourceTable
from consilience.tables.files import read_table, read_text
from consilience.tables.frames import ALIASES
from consilience.tables.judges import votes_of_comparisons
from consilience.tables.notation import Declared, guess_space, space_of_text, word_for
from consilience.tables.receipt import Receipt, fault_table
from consilience.tables.vote_tables import check_known
from consilience.votes import Votes

#: Items from which the label type is guessed if an engine holds the votes.
SHOWN_ITEMS = 50_000
#: Usual names of a column of known labels, best first.
LABEL_NAMES = ("gold", "truth", "label", "answer", "gold_label", "true_label", "target", "rating", "score")
#: Ids shown in a message.
SHOWN = 3
#: Options that say how to read each kind of file.
_USED = {
    "judges": ("item", "source", "label", "sources", "drop", "repeats", "decimal", "delimiter", "encoding"),
    **dict.fromkeys(("label-studio", "argilla", "cvat", "ground-truth"), ("field",)),
    "coco": ("outside",),
    "trec": ("unlisted",),
    "table": tuple(name for name in Reading.__dataclass_fields__ if name not in ("field", "outside")),
}
_ALWAYS = ("origin", "space", "sources", "drop", "strict", "engine", "gold_item", "gold_label", "to")
#: Attribute of an export that its writer needs.
_OWN = {"label-studio": "to_name", "coco": "categories"}


@dataclass(frozen=True)
class Loaded:
    """Votes as their label type has them, or the partitions of an engine, and one known label (or None) per item."""

    votes: Any
    space: Any
    gold: Batch | None = None
    #: What the reader of another tool's file returned: it knows the data of the items, for files that go back.
    export: Any = None
    #: What became of the cells of the table.
    receipt: Receipt | None = None

    @property
    def n_gold(self) -> int:
        """How many items have a known label."""
        return 0 if self.gold is None else sum(label is not None for label in self.gold.tolist())


def load(path: Path, reading: Reading, output: Output, gold: str | None = None, *, to_look: bool = False) -> Loaded:
    """Read votes; find their label type, or guess it and say so.

    Where they are read only `to_look` at them, and their label type is not clear, there is none.
    """
    with output.working("reading the votes"):
        table, raw, _, found = _read(path, reading, gold, Declared.by(reading.space))
    if found is not None and found.space is not None and reading.space is None:
        output.note(f"Label type of the file: {describe(found.space)['type']}. Use --space to override.")
        return _interpreted(path, raw, found.space, table, gold, reading, output, found)
    if reading.space is None and not to_look:
        if reading.strict:
            _refuse_columns_of_texts(raw)
        refuse_mixed_cells(raw, str(path))
    try:
        space = _space(raw, reading, output)
    except FileFormatError as error:
        if not to_look:
            raise
        output.note(f"{in_options(str(error))} For now, labels are only compared for equality.")
        output.receipt(raw.receipt)
        return Loaded(raw, None, receipt=raw.receipt)
    return _interpreted(path, raw, space, table, gold, reading, output, found)


def load_for_model(path: Path, model: LabelModel, reading: Reading, output: Output, gold: str | None = None) -> Loaded:
    """Read votes for a model: its sources are picked by name, others are left aside."""
    wanted, space = model.source_model_.sources, model.space
    named = f"preferences:{space.by or ''}" if isinstance(space, Preferences) else reading.space or type(space).__name__
    reading = replace(reading, space=named)
    columns = table_of(path, reading).column_names if origin_of(path, reading) == "table" else []
    if reading.sources is None and set(wanted) <= set(columns) and reading.layout != "long":
        reading = replace(reading, sources=wanted, layout="wide")
        others = {*wanted, gold, *reading.drop, reading.roles(columns)[1]["item"]}
        _note_others([name for name in columns if name not in others], output)
    with output.working("reading the votes"):
        table, raw, is_long, found = _read(path, reading, gold, Declared.by(space))
    missing = [name for name in wanted if name not in raw.sources]
    # Otherwise, the model names the missing sources. In a long table, a source without rows abstains.
    if raw.sources != wanted and raw.names_given and (is_long or not missing) and len(missing) < len(wanted):
        _note_others([name for name in raw.sources if name not in wanted], output)
        if missing:
            output.note(f"Sources of the model without a vote here: {', '.join(missing)}")
        places = [0 if name in missing else raw.sources.index(name) for name in wanted]
        observed = raw.observed[:, places] & [name not in missing for name in wanted]
        raw = replace(raw, labels=raw.labels[:, places], observed=observed, sources=wanted, repeated_pairs=())
    return _interpreted(path, raw, space, table, gold, reading, output, found)


def read_raw(path: Path, reading: Reading) -> tuple[Votes, LabelSpace | None, bool]:
    """Read votes, their label type where the file says what it is, and whether the file has a row per vote."""
    _, votes, is_long, found = _read(path, reading, None, Declared.by(reading.space))
    return votes, None if found is None else found.space, is_long


def _read(
    path: Path, reading: Reading, gold: str | None, declared: Declared
) -> tuple[pa.Table | None, Votes, bool, Loaded | None]:
    """Return the table of a file, its votes, whether who has no row abstains, and what a tool's file says."""
    found = imported(path, reading)
    if found is not None:
        return None, _chosen(found.votes, reading), True, found
    table = table_of(path, reading)
    votes, is_long = _votes(table, path, reading, gold, declared)
    return table, votes, is_long, None


@contextmanager
def opened(
    path: Path,
    reading: Reading,
    output: Output,
    *,
    gold: str | None = None,
    model: LabelModel | None = None,
    to_look: bool = False,
    count: bool = True,
) -> Iterator[Loaded]:
    """Read votes, of a model's sources if there is one; or give them to an engine, which ends with the block.

    What became of the cells is said in either case; with an engine that takes a pass, unless `count` is false.
    """
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
    drop = reading.drop if gold is None else (*reading.drop, gold)
    sample = ParquetPartitions(path, **{**options, "drop": drop}).sample(SHOWN_ITEMS, 0).whole.votes
    if sample.labels.dtype != object and not reading.strict:  # pieces are read strictly, with what is guessed here
        sample = cleaned(sample, Declared.by(reading.space if model is None else model.space), abstain=reading.abstain)
    seen = sample.receipt or Receipt(0)
    space = _space(sample, reading, output) if model is None else model.space
    options |= {"gold": gold, "on_error": reading.on_error, "abstain": reading.abstain or seen.abstain}
    with _partitions(path, space, reading, options) as votes:
        receipt = replace(_counted_cells(votes, output), notes=seen.notes) if count else None
        output.receipt(receipt)
        yield Loaded(votes, space, receipt=receipt)


@contextmanager
def _partitions(path: Path, space: LabelSpace, reading: Reading, options: dict[str, Any]) -> Iterator[ReadPartitions]:
    """Yield the votes of a file where the engine holds them."""
    if reading.engine == "local":
        yield ParquetPartitions(path, space, **options)
    elif reading.engine == "dask":
        distributed = needed("distributed", "The Dask engine", "dask")
        with distributed.Client(reading.scheduler) as client:
            yield DaskPartitions(path, space, client=client, **options)
    else:
        session = spark_session(reading.master)
        try:
            yield SparkPartitions(session.read.parquet(str(path.resolve())), space, **options)
        finally:
            session.stop()


def _counted_cells(votes: ReadPartitions, output: Output) -> Receipt:
    """Return how many cells of a table in pieces are votes, empty, or not labels."""

    def count(part: Part) -> IntArray:
        return np.array([part.votes.observed.size, np.count_nonzero(part.votes.observed), part.skipped])

    with output.working("counting the votes"):
        cells, used, wrong = votes.reduce(count).tolist()
    row = ("all sources", "not a label", wrong, "", "") if wrong else ()
    faults = {title: list(row[place : place + 1]) for place, title in enumerate(fault_table(()).columns)}
    return Receipt(cells, cells - used - wrong, SourceTable(faults), ids=votes.reader.item)


def describe(space: LabelSpace) -> dict[str, Any]:
    """Return a label type as JSON has it, in the word that `--space` has for it."""
    return {"type": word_for(space), "python": repr(space)}


def _space(votes: Votes, reading: Reading, output: Output) -> LabelSpace:
    """Return the label type that was named, or guess it and say so."""
    if reading.space is not None:
        space = space_of_text(reading.space, votes)
        names = getattr(space, "names", None)
        if names and ":" not in reading.space:
            output.note(shortened(f"Label type of the votes: {reading.space}:{','.join(map(str, names))}"))
        return space
    guess = guess_space(votes)
    output.note(f"Detected label type: {describe(guess.space)['type']} ({guess.reason}). Use --space to override.")
    return guess.space


def _note_others(names: list[str], output: Output) -> None:
    if names:
        output.note(f"Ignored columns (not sources of this model): {', '.join(names)}")


def table_of(path: Path, reading: Reading) -> pa.Table:
    """Return the table in a file, in the encoding that was named."""
    return read_table(path, delimiter=reading.delimiter, encoding=reading.encoding)


def _votes(table: pa.Table, path: Path, reading: Reading, gold: str | None, declared: Declared) -> tuple[Votes, bool]:
    """Return votes that no label type has read yet, and whether the table is long.

    A column of known labels is not a source.
    """
    columns = table.column_names
    kind, _, by = (reading.space or "preferences").partition(":")
    if kind.strip().lower() == "preferences" and reading.layout == "auto":
        compared = votes_of_comparisons(table, by.strip() or None, judge=reading.source, outcome=reading.label)
        if compared is not None:
            return _chosen(compared, reading), False
    _check_columns(path, columns, [reading.item, reading.source, reading.label])
    drop = reading.drop
    if gold is not None and gold in columns and not os.path.isfile(gold):
        drop = (*drop, gold)
    in_columns = reading.sources is not None and set(reading.sources) <= set(columns)
    if (reading if in_columns else replace(reading, sources=None)).roles(columns)[0] == "long":
        votes = replace(reading, layout="long", sources=None, drop=drop).votes(table, str(path), declared)
        return _chosen(votes, reading), True
    _check_columns(path, columns, [*drop, *(reading.sources or ())])
    sources = None if reading.sources is None else tuple(name for name in reading.sources if name not in drop)
    return replace(reading, layout="wide", sources=sources, drop=drop).votes(table, str(path), declared), False


def _check_columns(path: Path, columns: list[str], wanted: Iterable[str | None]) -> None:
    for name in wanted:
        if name is not None and name not in columns:
            raise unknown_column(name, columns, repr(str(path)))


def _chosen(votes: Votes, reading: Reading) -> Votes:
    """Return the votes of a long table by the sources that were asked for."""
    check_known((*(reading.sources or ()), *reading.drop), dict.fromkeys(votes.sources))
    kept = tuple(name for name in (reading.sources or votes.sources) if name not in reading.drop)
    return votes if kept == votes.sources else votes.select(kept)


def _refuse_columns_of_texts(votes: Votes) -> None:
    """Refuse a column of the texts that were voted on among columns of votes: it would count as a source."""
    for place in columns_of_texts(votes)[:1]:
        name = votes.sources[place]
        raise FileFormatError(
            f"Column {name!r} does not look like votes: it holds texts that no other column has. Leave it out with "
            f"--drop {name}, or name the sources with --sources."
        )


def _interpreted(
    path: Path,
    raw: Votes,
    space: LabelSpace,
    table: pa.Table | None,
    gold: str | None,
    reading: Reading,
    output: Output,
    found_in: Loaded | None = None,
) -> Loaded:
    with output.working("reading the labels"):
        votes = read_by(raw, space, str(path), strict=reading.strict, unlisted=reading.unlisted)
    output.receipt(votes.receipt)
    found = replace(found_in or Loaded(votes, space), votes=votes, space=space, receipt=votes.receipt)
    from_file = gold is not None and os.path.isfile(gold)
    if (reading.gold_item or reading.gold_label) and not from_file:
        raise BadInputError("--gold-item and --gold-label name columns of a file. Name the file with --gold.")
    if gold is None:
        return found
    name = gold
    if from_file:
        ids, labels = _columns_of_gold(Path(gold), reading)
    elif table is not None and gold in table.column_names:
        name = f"{path}, column {gold}"
        ids, labels = votes.items.tolist(), table.column(gold).to_pylist()
        if len(labels) != len(votes):  # a row per vote
            ids = table.column(str(reading.roles(table.column_names)[1]["item"])).to_pylist()
    else:
        columns = [] if table is None else table.column_names
        hint = did_you_mean(gold, columns) or f" The columns are {', '.join(map(repr, columns))}." * bool(columns)
        raise FileFormatError(f"--gold {gold!r} is neither a file nor a column of {str(path)!r}.{hint}")
    known_cells = _without_gaps(_matched(ids, labels, votes, name, output), space, reading)
    rows = list(known_cells)
    # A number is text if the classes are texts such as '1'.
    cells = [
        str(one) if isinstance(one, (int, float)) and not space.contains(one) and space.contains(str(one)) else one
        for one in known_cells.values()
    ]
    try:
        read = as_object_array(space.read_text(as_object_array(cells)))
        space.as_batch(read)
    except InvalidLabelError as error:
        place = "" if error.index is None else f", item {votes.items.tolist()[rows[error.index]]!r}"
        spelled = sorted(Declared.by(space).labels)
        hint = "" if error.index is None else did_you_mean(str(cells[error.index]).strip().lower(), spelled)
        raise FileFormatError(f"{name!r}{place}: {error}{hint}") from None
    known: Batch = np.empty(len(votes), dtype=object)
    known[rows] = read
    return replace(found, gold=space.in_words_of(known, votes.labels, votes.observed))


def _without_gaps(known: dict[int, Any], space: LabelSpace, reading: Reading) -> dict[int, Any]:
    """Return known labels read as the cells of votes are; what is not a label stays, for a message about it."""
    column = Votes.from_array(as_object_array(known.values()).reshape(-1, 1))
    read = cleaned(column, Declared.by(space), abstain=reading.abstain, decimal=reading.decimal, fold=reading.fold)
    wrong = read.receipt is not None and not all(reason.startswith("'") for reason in read.receipt.reasons)
    values = zip(known.items(), read.labels[:, 0].tolist(), read.observed[:, 0].tolist(), strict=True)
    return {row: value if seen else cell for (row, cell), value, seen in values if seen or wrong}


def item_column(names: list[str], reading: Reading) -> str | None:
    """Return the column of item ids of a table beside the votes: the one that was named, or that looks like it."""
    return reading.item if reading.item in names else Reading().roles(names)[1]["item"]


def cells_by_item(
    path: Path, names: list[str], reading: Reading, votes: Votes, *, alike: bool = False
) -> dict[str, list[Any]]:
    """Return columns of a table with one cell per item of the votes, None where the table has no row of it.

    Rows are found by their item id, and by their order in a table without ids. Of several rows of an item, the first
    with a cell counts; `alike` refuses others.
    """
    table = table_of(path, reading)
    columns = table.column_names
    _check_columns(path, columns, names)
    key = item_column(columns, reading)
    if key is None and table.num_rows != len(votes):
        raise FileFormatError(f"{str(path)!r} has no column of item ids. Name one 'item'.")
    ids = votes.items.tolist() if key is None else table.column(key).to_pylist()
    rows = _rows(ids, votes, str(path))
    found = {name: [None] * len(votes) for name in names or [name for name in columns if name != key]}
    for name, cells in found.items():
        for row, item, cell in zip(rows, ids, table.column(name).to_pylist(), strict=True):
            if row is not None and cells[row] is None:
                cells[row] = cell
            elif alike and row is not None and cells[row] != cell:
                raise FileFormatError(
                    f"{str(path)!r}, item {item!r}: {name!r} is {cells[row]!r} and {cell!r}. Choose a column that is "
                    "the same in all rows of an item."
                )
    return found


def _columns_of_gold(file: Path, reading: Reading) -> tuple[list[Any], list[Any]]:
    """Return the ids and the labels of a file of known labels."""
    table = table_of(file, reading)
    names = table.column_names
    if set(FIELDS) <= set(names):  # written by `review`: the last answer of an item counts
        answers = [one for one in last_answers(table.to_pylist()).values() if one["status"] == ANSWERED]
        return [one["item"] for one in answers], [one["label"] for one in answers]
    _check_columns(file, names, [reading.gold_item, reading.gold_label])
    item = reading.gold_item or item_column(names, reading)
    others = [name for name in names if name != item]
    lower = {name.lower(): name for name in others}
    likely = [name for name in others if name.lower() in ALIASES["label"]]
    candidates = [reading.gold_label] if reading.gold_label else []
    candidates += [lower[word] for word in LABEL_NAMES if word in lower]
    candidates += [name for name in others if name == reading.label]
    for only in (likely, others):
        candidates += only if len(only) == 1 else []
    if item is None or not candidates:
        missing = "items" if item is None else "labels"
        raise FileFormatError(
            f"{str(file)!r} has no column for the {missing}; its columns are {', '.join(map(repr, names))}. "
            "Call them 'item' and 'label', or name them with --gold-item and --gold-label."
        )
    return table.column(item).to_pylist(), table.column(candidates[0]).to_pylist()


def _matched(ids: list[Any], labels: list[Any], votes: Votes, name: str, output: Output) -> dict[int, Any]:
    """Return the known labels by row of the votes."""
    there = [(item, label) for item, label in zip(ids, labels, strict=True) if label is not None and label != ""]
    if not there:
        raise FileFormatError(f"{name!r} does not contain any label. Give at least one known label.")
    found: dict[int, Any] = {}
    for (item, label), row in zip(there, _rows([item for item, _ in there], votes, name, output), strict=True):
        if row is not None and found.setdefault(row, label) != label:
            raise InvalidVotesError(
                f"{name!r} has two labels for item {item!r}: {found[row]!r} and {label!r}. Keep one of them."
            )
    return found


def _rows(ids: list[Any], votes: Votes, name: str, output: Output | None = None) -> list[int | None]:
    """Return the row of the votes for each id, None for unknown items, which `output` reports."""
    row_of = {item_key(item): row for row, item in enumerate(votes.items.tolist())}
    rows = [row_of.get(item_key(item)) for item in ids]
    unmatched = list(dict.fromkeys(item for item, row in zip(ids, rows, strict=True) if row is None))
    listed = ", ".join(map(repr, unmatched[:SHOWN])) + (", ..." if len(unmatched) > SHOWN else "")
    if unmatched and all(row is None for row in rows):
        raise FileFormatError(
            f"None of the {len(unmatched)} items of {name!r} is among the {len(votes)} items of the votes: {listed} "
            f"there, {', '.join(map(repr, votes.items.tolist()[:SHOWN]))} here. Use the same ids in both files."
        )
    if unmatched and output is not None:
        count = f"{len(unmatched)} of {len(unmatched) + len({*rows} - {None})}"
        output.note(f"{count} items of {name!r} are not among the votes: {listed}")
    return rows


def item_key(item: Any) -> str:
    """Return an id so that 7, 7.0 and '7' are the same."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


# --- files of other tools -------------------------------------------------------------------------------------


def imported(path: Path, reading: Reading) -> Loaded | None:
    """Return the votes of a file that is not a plain table; None if it is one."""
    origin = origin_of(path, reading)
    used = _USED.get(origin, ())
    for name in Reading.__dataclass_fields__:
        if name not in (*_ALWAYS, *used) and getattr(reading, name) != getattr(Reading(), name):
            raise BadInputError(f"--{name.replace('_', '-')} cannot be combined with --from {origin}. Leave it out.")
    if origin == "table":
        return None
    if origin == "judges":
        export = _judges(path, reading)
    else:
        given = {name: getattr(reading, name) for name in used if getattr(reading, name) is not None}
        export = getattr(tables, f"read_{origin.replace('-', '_')}")(path, **given)
    votes, space = (export, Rankings(None)) if isinstance(export, Votes) else (export.votes, export.space)
    if origin != "judges":
        cast = int(np.count_nonzero(votes.observed))
        empty = 0 if votes.receipt is None else votes.receipt.empty
        # A run file contains the top of longer lists.
        notes = (f"In run files, {RANKED_BELOW}",) if origin == "trec" and reading.unlisted is None else ()
        votes = replace(votes, receipt=Receipt(cast + empty, empty, unit="answers", notes=notes))
    labels, known = getattr(export, "gold", (None, np.zeros(0)))
    return Loaded(votes, space, labels if known.any() else None, export, votes.receipt)


def write_back(path: Path, tool: str, model: LabelModel, votes: Votes, export: Any) -> None:
    """Write labels in the form that a tool imports, with the data of the items from its export."""
    if not isinstance(export, tables.Annotations) or not getattr(export, _OWN.get(tool, "data")):
        raise BadInputError(f"--to {tool} needs an export of that tool as VOTES, because it contains the items.")
    getattr(tables, f"write_{tool.replace('-', '_')}")(path, model, votes, export)


def origin_of(path: Path, reading: Reading) -> str:
    """Return what a file is, or seems to be."""
    return reading.origin or _recognized(path)


def _judges(path: Path, reading: Reading) -> Any:
    repeats = "separate" if reading.repeats == "identical" else reading.repeats
    declared = Declared.by(reading.space)
    return tables.read_judges(
        table_of(path, reading),
        item=reading.item,
        judge=reading.source,
        answer=reading.label,
        labels=sorted(declared.labels) or None,
        scale=declared.scale,
        repeats=repeats,
        drop=reading.drop,
        decimal=reading.decimal,
    )


def _recognized(path: Path) -> str:
    """Return what a file seems to be, by its name and by the keys of its first record."""
    ending = path.suffix.lower()
    if ending in (".run", ".trec"):
        return "trec"
    if ending == ".xml":
        return "cvat"
    if ending == ".manifest":
        return "ground-truth"
    if ending not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return "table"
    try:
        text = read_text(path)
        document = parse_json(text if ending == ".json" else text.lstrip().split("\n", 1)[0])
    except (ValueError, FileFormatError):
        return "table"  # whose reader reports the fault
    if isinstance(document, dict) and {"images", "annotations"} <= document.keys():
        return "coco"
    first = document[0] if isinstance(document, list) and document else document
    keys = first.keys() if isinstance(first, dict) else set()
    if "datasetObjectId" in keys:
        return "ground-truth"
    if {"annotations", "completions", "predictions"} & keys and ending == ".json":
        return "label-studio"
    if {"text", "annotations"} <= keys:
        return "doccano"
    if "fields" in keys and {"responses", "suggestions"} & keys:
        return "argilla"
    return "prodigy" if {"_input_hash", "_task_hash"} & keys else "table"


# --- what the report and the review show with the items ------------------------------------------------------


def shown_file(show: str | None, votes: Path) -> tuple[Path, list[str]]:
    """Return the table that `--show` is about, and the columns of it; none for all of them."""
    if show is not None and "," not in show and Path(show).is_file():
        return Path(show), []
    return votes, [name.strip() for name in (show or "").split(",") if name.strip()]


def without_shown(votes: Path, reading: Reading, show: str | None) -> Reading:
    """Return how to read the votes where some columns are only shown."""
    file, columns = shown_file(show, votes)
    if file != votes or not columns:
        return reading
    names = table_of(votes, reading).column_names
    for name in columns:
        if name not in names:
            hint = did_you_mean(name, names) or f" Columns: {', '.join(names)}."
            raise click.BadParameter(
                f"{name!r} is neither a file nor a column of {str(votes)!r}.{hint}", param_hint="--show"
            )
    is_long = reading.roles(names)[0] == "long"  # there, a column without a role is not a source
    return reading if is_long else replace(reading, drop=(*reading.drop, *columns))


def shown_content(show: str | None, path: Path, reading: Reading, votes: Votes) -> dict[str, list[Any]] | None:
    """Return the columns to show with the items of the votes, found by item id."""
    return None if show is None else cells_by_item(*shown_file(show, path), reading, votes)
