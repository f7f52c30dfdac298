"""From the arguments of a command to votes, their label type and known labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.cli.commands import did_you_mean
from consilience.cli.options import Reading
from consilience.cli.output import Output
from consilience.exceptions import (
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    UnknownColumnError,
    UnknownSourceError,
)
from consilience.label_model import LabelModel
from consilience.label_types import Preferences
from consilience.label_types.base import LabelSpace
from consilience.tables.files import read_table
from consilience.tables.frames import ALIASES
from consilience.tables.judges import votes_of_comparisons
from consilience.tables.notation import guess_space, space_of_text
from consilience.tables.reading import as_the_space_reads
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Loaded:
    """Votes as their label type has them, and one known label (or None) per item."""

    votes: Votes
    space: LabelSpace
    gold: Batch | None = None

    @property
    def n_gold(self) -> int:
        """How many items have a known label."""
        return 0 if self.gold is None else sum(label is not None for label in self.gold.tolist())


def load(path: Path, reading: Reading, output: Output, gold: str | None = None) -> Loaded:
    """Read votes; find their label type, or guess it and say so."""
    table, raw = _read(path, reading, gold)
    if reading.space is not None:
        space = space_of_text(reading.space, raw)
    else:
        _check_odd_columns(raw)
        guess = guess_space(_checked(raw, path))
        space = guess.space
        output.note(f"labels look like {_kind(space)}: {guess.reason}; override with --space")
    return _interpreted(path, raw, space, table, gold, reading, output)


def load_without_space(path: Path, reading: Reading, output: Output) -> tuple[Votes, LabelSpace | None]:
    """Read votes for a look at them: without a label type where that is not clear."""
    _, raw = _read(path, reading, None)
    try:
        guess = None if reading.space is not None else guess_space(raw)
        space = space_of_text(reading.space, raw) if reading.space is not None else guess.space if guess else None
    except FileFormatError as error:
        output.note(f"{error} Until then, labels are taken to be equal or not.")
        return raw, None
    if guess is not None:
        output.note(f"labels look like {_kind(guess.space)}: {guess.reason}; override with --space")
    return as_the_space_reads(raw, space, str(path)), space


def read_raw(path: Path, reading: Reading) -> Votes:
    """Read votes with cells as they are."""
    return _read(path, reading, None)[1]


def load_for_model(path: Path, model: LabelModel, reading: Reading, output: Output, gold: str | None = None) -> Loaded:
    """Read votes for a model: its sources are picked by name, others are left aside."""
    wanted = model.source_model_.sources
    table = _table(path, reading)
    columns = table.column_names
    if isinstance(model.space, Preferences):
        reading = replace(reading, space=f"preferences:{model.space.by or ''}")
    elif reading.space is None:
        reading = replace(reading, space=type(model.space).__name__)
    if reading.sources is None and set(wanted) <= set(columns) and reading.layout != "long":
        reading = replace(reading, sources=wanted, layout="wide")
        aside = [name for name in columns if name not in {*wanted, gold, *reading.drop}]
        ids = reading.roles(columns)[1]["item"]
        aside = [name for name in aside if name != ids]
        if aside:
            output.note(f"not sources of the model, left aside: {', '.join(aside)}")
    table, raw = _read(path, reading, gold, table)
    if raw.sources != wanted:
        raw = _with_sources(raw, wanted, output, is_long=_layout(table, reading) == "long")
    return _interpreted(path, raw, model.space, table, gold, reading, output)


def _read(path: Path, reading: Reading, gold: str | None, table: pa.Table | None = None) -> tuple[pa.Table, Votes]:
    """Return the table, and its votes with cells as they are; a column of known labels is no source."""
    table = _table(path, reading) if table is None else table
    columns = table.column_names
    compared = _comparisons(table, reading)
    if compared is not None:
        return table, _chosen(compared, reading.sources, reading.drop)
    layout = _layout(table, reading)
    _check_columns(path, columns, [reading.item, reading.source, reading.label])
    left_out = reading.drop
    if gold is not None and gold in columns and not Path(gold).is_file():
        left_out = (*left_out, gold)
    sources = reading.sources
    if layout == "wide":
        _check_columns(path, columns, [*left_out, *(sources or ())])
    in_columns = sources if layout == "wide" else None
    if in_columns is not None:
        in_columns = tuple(name for name in in_columns if name not in left_out)
    votes = replace(reading, layout=layout, sources=in_columns, drop=left_out).votes(table, str(path))
    if layout == "long":
        votes = _chosen(votes, sources, reading.drop)
    return table, votes


def _comparisons(table: pa.Table, reading: Reading) -> Votes | None:
    """Return the votes of a table with one comparison per row; None where it is another one."""
    name, _, by = (reading.space or "preferences").partition(":")
    if name.strip().lower() != "preferences" or reading.layout != "auto":
        return None
    return votes_of_comparisons(table, by.strip() or None, judge=reading.source, outcome=reading.label)


def _table(path: Path, reading: Reading) -> pa.Table:
    return read_table(path, delimiter=reading.delimiter, encoding=reading.encoding)


def _layout(table: pa.Table, reading: Reading) -> str:
    names = table.column_names
    columns = reading.sources if reading.sources is not None and set(reading.sources) <= set(names) else None
    return replace(reading, sources=columns).roles(names)[0]


def _checked(raw: Votes, path: Path) -> Votes:
    return as_the_space_reads(raw, None, str(path))  # refuses a source that mixes numbers and text


def _interpreted(
    path: Path, raw: Votes, space: LabelSpace, table: pa.Table, gold: str | None, reading: Reading, output: Output
) -> Loaded:
    votes = as_the_space_reads(raw, space, str(path))
    known = None if gold is None else known_labels(gold, path, table, votes, space, reading, output)
    return Loaded(votes, space, known)


def _check_odd_columns(votes: Votes) -> None:
    """Refuse a column of the texts that were voted on among columns of votes: it would count as a source."""
    if votes.labels.dtype != object or votes.labels.ndim != 2 or votes.n_sources < 3:
        return
    values = [
        [cell for cell in votes.labels[votes.observed[:, place], place].tolist() if isinstance(cell, str)]
        for place in range(votes.n_sources)
    ]
    unique = [set(cells) for cells in values]
    odd = []
    for place, cells in enumerate(values):
        others = set().union(*unique[:place], *unique[place + 1 :])
        alone = len(unique[place] - others) >= 0.9 * max(len(unique[place]), 1)
        odd.append(alone and len(unique[place]) >= max(10, 0.9 * len(cells)))
    if any(odd) and sum(odd) * 2 < votes.n_sources:
        name = votes.sources[odd.index(True)]
        raise FileFormatError(
            f"Column {name!r} does not look like votes: it holds {len(unique[odd.index(True)])} different texts that "
            f"no other column has. Leave it out with --drop {name}, or name the sources with --sources."
        )


def _check_columns(path: Path, columns: list[str], wanted: Iterable[str | None]) -> None:
    for name in wanted:
        if name is not None and name not in columns:
            shown = ", ".join(map(repr, columns[:12])) + (", ..." if len(columns) > 12 else "")
            hint = did_you_mean(name, columns)
            raise UnknownColumnError(f"{str(path)!r} has no column {name!r}. {hint}Its columns are {shown}.")


def _chosen(votes: Votes, sources: tuple[str, ...] | None, drop: tuple[str, ...]) -> Votes:
    """Return the votes of a long table by the sources that were asked for."""
    for name in (*(sources or ()), *drop):
        if name not in votes.sources:
            hint = did_you_mean(name, votes.sources)
            shown = ", ".join(map(repr, votes.sources[:8])) + (", ..." if votes.n_sources > 8 else "")
            raise UnknownSourceError(f"There is no source {name!r}. {hint}Sources: {shown}.")
    kept = [name for name in (sources or votes.sources) if name not in drop]
    return votes if tuple(kept) == votes.sources else votes.select(kept)


def _with_sources(votes: Votes, wanted: tuple[str, ...], output: Output, *, is_long: bool) -> Votes:
    """Return votes with the columns of a model; in a long table who says nothing abstains."""
    missing = [name for name in wanted if name not in votes.sources]
    extra = [name for name in votes.sources if name not in wanted]
    if not votes.names_given or (missing and not is_long) or len(missing) == len(wanted):
        return votes  # the model says which sources it misses
    if extra:
        output.note(f"not sources of the model, left aside: {', '.join(extra)}")
    if missing:
        output.note(f"sources of the model without a vote here: {', '.join(missing)}")
    shape = (len(votes), len(wanted), *votes.labels.shape[2:])
    labels = np.zeros(shape, dtype=votes.labels.dtype)
    observed = np.zeros(shape[:2], dtype=bool)
    for place, name in enumerate(wanted):
        if name in votes.sources:
            column = votes.sources.index(name)
            labels[:, place], observed[:, place] = votes.labels[:, column], votes.observed[:, column]
    return replace(votes, labels=labels, observed=observed, sources=wanted, repeated_pairs=())


def _kind(space: LabelSpace) -> str:
    """Return the label type in the word that `--space` has for it."""
    words = {"Classes": "classes", "DependencyTrees": "trees", "Product": "records", "FiniteMetric": "ordinal"}
    name = type(space).__name__
    return words.get(name, name.lower())


def describe(space: LabelSpace) -> dict[str, Any]:
    """Return a label type as JSON has it."""
    return {"type": _kind(space), "python": repr(space)}


#: What a column of known labels is called, best first.
LABEL_NAMES = ("gold", "truth", "label", "answer", "gold_label", "true_label", "target")
#: Ids shown in a message.
SHOWN = 3


def known_labels(
    gold: str, path: Path, table: pa.Table, votes: Votes, space: LabelSpace, reading: Reading, output: Output
) -> Batch:
    """Return one known label, or None, per item of the votes."""
    file = Path(gold)
    if file.is_file():
        pairs = _pairs_of_file(file, reading)
        name = gold
    elif gold in table.column_names:
        pairs = _pairs_of_column(gold, table, votes, reading)
        name = f"{path}, column {gold}"
    else:
        hint = did_you_mean(gold, table.column_names) or f"The columns are {', '.join(map(repr, table.column_names))}."
        raise FileFormatError(f"--gold {gold!r} is neither a file nor a column of {str(path)!r}. {hint.rstrip()}")
    return _matched(pairs, votes, space, name, output)


def _pairs_of_file(file: Path, reading: Reading) -> list[tuple[Any, Any]]:
    table = read_table(file, delimiter=reading.delimiter, encoding=reading.encoding)
    names = table.column_names
    item = reading.item if reading.item in names else Reading().roles(names)[1]["item"]
    others = [name for name in names if name != item]
    lower = {name.lower(): name for name in others}
    label = next((lower[word] for word in LABEL_NAMES if word in lower), None)
    if label is None and reading.label in others:
        label = reading.label
    if label is None:
        likely = [name for name in others if name.lower() in ALIASES["label"]]
        label = likely[0] if len(likely) == 1 else others[0] if len(others) == 1 else None
    if item is None or label is None:
        missing = "items" if item is None else "labels"
        raise FileFormatError(
            f"{str(file)!r} has no column for the {missing}; its columns are {', '.join(map(repr, names))}. "
            "Call them 'item' and 'label'."
        )
    return list(zip(table.column(item).to_pylist(), table.column(label).to_pylist(), strict=True))


def _pairs_of_column(name: str, table: pa.Table, votes: Votes, reading: Reading) -> list[tuple[Any, Any]]:
    labels = table.column(name).to_pylist()
    if len(labels) == len(votes):  # a row per item
        return list(zip(votes.items.tolist(), labels, strict=True))
    item = reading.roles(table.column_names)[1]["item"]
    return list(zip(table.column(str(item)).to_pylist(), labels, strict=True))


def _matched(pairs: Iterable[tuple[Any, Any]], votes: Votes, space: LabelSpace, name: str, output: Output) -> Batch:
    row_of = {_key(item): row for row, item in enumerate(votes.items.tolist())}
    found: dict[int, Any] = {}
    unmatched: dict[Any, None] = {}
    count = 0
    for item, label in pairs:
        if label is None or label == "":
            continue
        count += 1
        row = row_of.get(_key(item))
        if row is None:
            unmatched[item] = None
        elif row in found and found[row] != label:
            raise InvalidVotesError(
                f"{name!r} knows two labels of item {item!r}: {found[row]!r} and {label!r}. Keep one of them."
            )
        else:
            found[row] = label
    if not found:
        if count == 0:
            raise FileFormatError(f"{name!r} holds no label. Give at least one known label.")
        mine = ", ".join(map(repr, votes.items.tolist()[:SHOWN]))
        raise FileFormatError(
            f"None of the {len(unmatched)} items of {name!r} is among the {len(votes)} items of the votes: "
            f"{_listed(unmatched)} there, {mine} here. Use the same ids in both files."
        )
    if unmatched:
        output.note(
            f"{len(unmatched)} of {len(unmatched) + len(found)} items of {name!r} are not among the votes: "
            f"{_listed(unmatched)}"
        )
    return _spread(found, votes, space, name)


def _spread(found: dict[int, Any], votes: Votes, space: LabelSpace, name: str) -> Batch:
    rows = list(found)
    cells = as_object_array(_as_votes_have_it(found[row], space) for row in rows)
    try:
        read = list(space.read_text(cells))
        space.as_batch(as_object_array(read))
    except InvalidLabelError as error:
        place = "" if error.index is None else f", item {votes.items.tolist()[rows[error.index]]!r}"
        raise FileFormatError(f"{name!r}{place}: {error}") from None
    gold: Batch = np.empty(len(votes), dtype=object)
    for row, label in zip(rows, read, strict=True):
        gold[row] = label
    return gold


def _as_votes_have_it(label: Any, space: LabelSpace) -> Any:
    """Return a number as text where the classes are texts such as '1'."""
    if isinstance(label, (int, float)) and not space.contains(label) and space.contains(str(label)):
        return str(label)
    return label


def _key(item: Any) -> str:
    """Return an id so that 7, 7.0 and '7' are the same."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _listed(items: Iterable[Any]) -> str:
    items = list(items)
    return ", ".join(map(repr, items[:SHOWN])) + (", ..." if len(items) > SHOWN else "")
