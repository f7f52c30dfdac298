"""Known labels: a file with item and label columns, or a column of the file of votes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.cli.commands import did_you_mean
from consilience.cli.options import Reading
from consilience.cli.output import Output
from consilience.exceptions import FileFormatError, InvalidLabelError, InvalidVotesError
from consilience.label_types.base import LabelSpace
from consilience.tables.files import read_table
from consilience.tables.frames import ALIASES
from consilience.tables.reading import layout_of
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["known_labels"]

#: What a column of known labels is called, best first.
LABEL_NAMES = ("gold", "truth", "label", "answer", "gold_label", "true_label", "target")
#: Ids shown in a message.
SHOWN = 3


def known_labels(
    gold: str, path: Path, table: pa.Table, votes: Votes, space: LabelSpace, reading: Reading, output: Output
) -> Batch:
    """Return one known label, or None, per item of the votes.

    Parameters
    ----------
    gold
        What the user named: a file, or else a column of `table`.
    path, table
        The file of votes.
    """
    file = Path(gold)
    if file.is_file():
        pairs = _pairs_of_file(file, reading)
        name = gold
    elif gold in table.column_names:
        pairs = _pairs_of_column(gold, table, votes, reading)
        name = f"{path}, column {gold}"
    else:
        hint = did_you_mean(gold, table.column_names) or f"The columns are {', '.join(map(repr, table.column_names))}."
        raise FileFormatError(f"--gold {gold!r} is neither a file nor a column of {str(path)!r}. {hint}")
    return _matched(pairs, votes, space, name, output)


def _pairs_of_file(file: Path, reading: Reading) -> list[tuple[Any, Any]]:
    table = read_table(file, delimiter=reading.delimiter, encoding=reading.encoding)
    names = table.column_names
    item = reading.item if reading.item in names else layout_of(names)[1]["item"]
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
    item = reading.item or layout_of(table.column_names, source=reading.source, label=reading.label)[1]["item"]
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
