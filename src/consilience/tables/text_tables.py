"""CSV and JSON Lines to Arrow tables and back; a column gets a type only if all of its cells have it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from consilience.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["csv_of_table", "json_lines_of_table", "table_of_csv", "table_of_json_lines", "typed_cells"]

#: Cells shown in a message are cut after this many signs.
SHOWN = 60
#: What pandas calls a column without a name once it has read and written it.
PANDAS_INDEX = "Unnamed: 0"


def table_of_csv(text: str, name: str, delimiter: str) -> pa.Table:
    """Return a CSV file with a row of names at the top as a table; empty cells are null.

    Blanks around cells belong to them, unless the names have them, too: then the file has ", " between cells.
    Of columns without a name, empty ones are left out, and a first one of different values is the index that pandas
    writes: row numbers are left out, others are called "item".

    Parameters
    ----------
    name
        Of the file, for messages.
    """
    import pyarrow as pa

    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    is_spaced = False
    try:
        for row in reader:
            if not row:  # an empty line
                continue
            if rows and len(row) != len(rows[0]):
                raise FileFormatError(
                    f"{name!r}, line {reader.line_num}: {len(row)} cells where the first line has {len(rows[0])}. "
                    "Quote cells that hold the delimiter, or say which delimiter it is "
                    f"(taken as {delimiter!r} here)."
                )
            if not rows:
                is_spaced = len(row) > 1 and all(cell != cell.lstrip() for cell in row[1:])
            rows.append([cell.strip() for cell in row] if is_spaced or not rows else row)
    except csv.Error as error:
        raise FileFormatError(f"{name!r}, line {reader.line_num}: {error}. Check the quotes in that line.") from None
    if not rows:
        raise FileFormatError(f"{name!r} is empty. It should hold a table with a row of names at the top.")
    columns = list(zip(*rows[1:], strict=True)) if len(rows) > 1 else [()] * len(rows[0])
    named = _named_columns(rows[0], columns, name)
    header = [title for title, _ in named]
    twice = next((title for title in header if header.count(title) > 1), None)
    if twice is not None:
        raise FileFormatError(f"{name!r}: two columns have the name {twice!r}. Give every column a name of its own.")
    return pa.table({title: _arrow_column(list(column)) for title, column in named})


def _named_columns(
    header: Sequence[str], columns: Sequence[Sequence[str]], name: str
) -> list[tuple[str, Sequence[str]]]:
    """Return the columns with their names; what stands in a column without one decides what becomes of it."""
    named = []
    for place, (title, cells) in enumerate(zip(header, columns, strict=True)):
        if title and title != PANDAS_INDEX:
            named.append((title, cells))
        elif not any(cells) or (place == 0 and list(cells) == list(map(str, range(len(cells))))):
            continue
        elif place == 0 and "item" not in header and len(set(cells)) == len(cells):
            named.append(("item", cells))
        else:
            shown = next(cell for cell in cells if cell)
            raise FileFormatError(
                f"{name!r}: column {place + 1} has no name and holds {shown[:SHOWN]!r}. Write one in the first line."
            )
    return named


def table_of_json_lines(text: str, name: str) -> pa.Table:
    """Return a file with one JSON object per line as a table; missing keys are null."""
    import pyarrow as pa

    records: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise FileFormatError(f"{name!r}, line {number} is not JSON: {error}.") from None
        if not isinstance(record, dict):
            raise FileFormatError(
                f"{name!r}, line {number} holds {line.strip()[:SHOWN]}, not an object. "
                'Write one object per line, such as {"item": 1, "source": "ann", "label": "cat"}.'
            )
        records.append(record)
    names = dict.fromkeys(key for record in records for key in record)
    columns = {}
    for key in names:
        values = [record.get(key) for record in records]
        try:
            columns[key] = pa.array(values, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if all(value is None or isinstance(value, (list, dict)) for value in values):
                # lists of unlike things, such as corners and a class: as JSON, which the label type reads
                written = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
                columns[key] = pa.array(written, pa.string())
                continue
            row, other = _odd_one_out(values)
            raise FileFormatError(
                f"{name!r}: column {key!r} mixes types: {json.dumps(values[row])[:SHOWN]} in row {row} is not of the "
                f"type of {json.dumps(values[other])[:SHOWN]} in row {other}. Write all labels in the same way."
            ) from None
    return pa.table(columns)


def csv_of_table(table: pa.Table, delimiter: str = ",") -> str:
    """Return a table as CSV; lists and structs as JSON, nulls as empty cells."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [[_csv_cell(value) for value in column.to_pylist()] for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def json_lines_of_table(table: pa.Table) -> str:
    """Return a table as one JSON object per line."""
    return "".join(json.dumps(record, default=str, ensure_ascii=False) + "\n" for record in table.to_pylist())


def typed_cells(cells: Sequence[str | None]) -> list[Any]:
    """Return text cells as whole numbers, numbers, booleans or JSON lists if all of them are such; "" as None.

    Examples
    --------
    >>> typed_cells(["1", "", "2"]), typed_cells(["1", "2.5"]), typed_cells(["01", "2"]), typed_cells(["NA", "2"])
    ([1, None, 2], [1.0, 2.5], ['01', '2'], ['NA', '2'])
    >>> typed_cells(["[2, 1]", None]), typed_cells(["true", "false"])
    ([[2, 1], None], [True, False])
    """
    texts = [None if cell is None or cell == "" else cell for cell in cells]
    present = [cell for cell in texts if cell is not None]
    for read in (_whole, _number, _truth, _structure):
        try:
            return _filled(texts, [read(cell) for cell in present])
        except ValueError:
            continue
    return list(texts)


def _filled(texts: list[str | None], values: list[Any]) -> list[Any]:
    found = iter(values)
    return [None if cell is None else next(found) for cell in texts]


def _whole(cell: str) -> int:
    number = int(cell)
    if str(number) != cell.strip():  # an id such as 007, or 1_000
        raise ValueError(cell)
    return number


def _number(cell: str) -> float:
    number = float(cell)
    digits = cell.strip().lstrip("-+")
    if math.isnan(number) or "_" in cell or (digits[0] == "0" and digits[1:2].isdigit()):
        raise ValueError(cell)
    return number


def _truth(cell: str) -> bool:
    word = cell.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(cell)
    return word == "true"


def _structure(cell: str) -> Any:
    if not cell.lstrip().startswith(("[", "{")):
        raise ValueError(cell)
    return json.loads(cell)


def _arrow_column(cells: list[str]) -> pa.Array:
    import pyarrow as pa

    values = typed_cells(cells)
    try:
        return pa.array(values, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # lists of unlike things, or a number beyond 64 bits
        return pa.array([None if cell == "" else cell for cell in cells], pa.string())


def _odd_one_out(values: list[Any]) -> tuple[int, int]:
    """Return the first row of a rare type, and a row of the most frequent one."""
    kinds = [type(value) for value in values]
    frequent = max(set(kinds) - {type(None)}, key=kinds.count)
    odd = next(
        (row for row, kind in enumerate(kinds) if kind not in (frequent, type(None))),
        next(row for row, kind in enumerate(kinds) if kind is frequent),
    )
    return odd, kinds.index(frequent)


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return value
