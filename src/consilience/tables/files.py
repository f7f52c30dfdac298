"""Tables on disk: CSV, JSON Lines, Parquet and Arrow in, the same out, atomically.

Text files are read as text first. A column becomes numbers, booleans or lists only if each of its cells is one, so
that no cell is lost to a guess: the words "NA" and "None" are labels, an empty cell is none.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa


#: What a file is, by the end of its name.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
#: Ends the name of text that gzip packed.
PACKED = ".gz"
#: Files that are no tables, and what reads them.
_OTHER_READERS = {
    ".conllu": "read_conllu reads parses",
    ".json": "read_label_studio reads exports of Label Studio; one JSON object per line is a table (.jsonl)",
    **dict.fromkeys((".soc", ".soi", ".toc", ".toi"), "Rankings.read_preflib reads the text of PrefLib files"),
}
_DELIMITERS = (",", "\t", ";", "|")
_MAGIC = {"parquet": (b"PAR1",), "arrow": (b"ARROW1", b"FEA1")}


def file_format(path: str | Path) -> str:
    """Return "csv", "jsonl", "parquet" or "arrow" by the name of a file, or say which names are known.

    Text may be packed: ``votes.csv.gz``.
    """
    ending = _ending(path)
    if ending in _OTHER_READERS:
        raise FileFormatError(f"{str(path)!r} ends in {ending!r}, which is no table: {_OTHER_READERS[ending]}.")
    if ending not in FORMATS:
        raise FileFormatError(
            f"{str(path)!r} ends in {ending!r}, which is no table. Use one of {', '.join(FORMATS)}."
            if ending
            else f"{str(path)!r} has no ending. Use one of {', '.join(FORMATS)}."
        )
    if FORMATS[ending] in _MAGIC and _is_packed(path):
        raise FileFormatError(
            f"{str(path)!r}: {ending} files are packed inside. Unpack it, or leave .gz out of the name."
        )
    return FORMATS[ending]


def read_table(path: str | Path, *, delimiter: str | None = None, encoding: str = "utf-8") -> pa.Table:
    """Return a file as an Arrow table; a folder of Parquet files as one table."""
    if not isinstance(path, (str, Path)):
        raise FileFormatError(f"{type(path).__name__} is neither a frame nor the name of a file. Pass one of them.")
    source = Path(path)
    if not source.exists():
        raise FileFormatError(f"There is no file {str(path)!r}.{_similar(source)}")
    if source.is_dir():
        return _read_folder(source)
    kind = file_format(source)
    if source.stat().st_size == 0:
        raise FileFormatError(f"{str(path)!r} is empty. It should hold a table with a row of names at the top.")
    if kind in _MAGIC:
        return _read_binary(source, kind)
    text = read_text(source, encoding)

    if kind == "jsonl":
        return table_of_json_lines(text, str(path))
    if delimiter is None:
        delimiter = "\t" if _ending(source) == ".tsv" else _delimiter(text)
    table = table_of_csv(text, str(path), delimiter)
    only = table.column_names[0]
    other = next((sign for sign in _DELIMITERS if sign in only), None)
    if table.num_columns == 1 and other is not None:
        raise FileFormatError(
            f"{str(path)!r} has one column, {only[:60]!r}. It seems to be cut by {other!r}, not by {delimiter!r}: "
            f"say delimiter={other!r}."
        )
    return table


def read_json(path: str | Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(read_file(path))
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{str(path)!r} is not JSON, or cut short: {error}.") from None


def read_file(path: str | Path) -> str:
    """Return the text of a file, packed or not, or say which file may be meant."""
    source = Path(path)
    if source.is_dir():
        raise FileFormatError(f"{str(path)!r} is a folder. Give the name of a file.")
    if not source.is_file():
        raise FileFormatError(f"There is no file {str(path)!r}.{_similar(source)}")
    return read_text(source)


def write_table(path: str | Path, table: pa.Table, *, force: bool = False) -> None:
    """Write an Arrow table in the format that the name of the file asks for; see `replace_file`."""
    kind = file_format(path)
    if kind == "parquet":
        import pyarrow.parquet as pq

        replace_file(path, lambda temporary: pq.write_table(table, temporary), force=force)
    elif kind == "arrow":
        import pyarrow.feather as feather

        write = partial(feather.write_feather, table, compression="uncompressed")
        replace_file(path, write, force=force)
    elif kind == "jsonl":
        lines = (json.dumps(record, default=str, ensure_ascii=False) for record in table.to_pylist())
        write_text(path, "".join(f"{line}\n" for line in lines), force=force)
    else:
        write_text(path, csv_of_table(table, "\t" if _ending(path) == ".tsv" else ","), force=force)


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write text in UTF-8, packed if the name ends in ``.gz``; see `replace_file`."""
    # Half a surrogate pair in somebody's text cannot be encoded; it must not cost the whole file.
    data = text.encode("utf-8", errors="replace")
    packed = gzip.compress(data, mtime=0) if _is_packed(path) else data  # without the time: the same bytes again
    replace_file(path, lambda temporary: Path(temporary).write_bytes(packed), force=force)


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a place where no file can be written."""
    if path.is_dir():
        raise FileFormatError(f"{str(path)!r} is a folder. Give the name of a file in it.")
    if path.exists() and not force:
        raise FileFormatError(f"{str(path)!r} is there already. Choose another name, or overwrite it with force.")
    if not path.parent.is_dir():
        raise FileFormatError(f"{str(path.parent)!r}, where {path.name!r} should go, is no folder. Make it first.")


def replace_file(path: str | Path, write: Callable[[str], object], *, force: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then put it there in one step.

    An interrupted run leaves the old file or none. A file that is there already is replaced only with `force`.
    """
    target = Path(path)
    check_target(target, force=force)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise FileFormatError(f"Cannot write to {str(target.parent)!r}: {why(error)}. Choose another folder.") from None
    os.close(handle)
    try:
        write(temporary)
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileFormatError(f"Cannot write {str(path)!r}: {why(error)}. Nothing was changed.") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _is_packed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == PACKED


def _ending(path: str | Path) -> str:
    """Return what the name of a file says about what is in it, packed or not."""
    return (Path(path).with_suffix("") if _is_packed(path) else Path(path)).suffix.lower()


def umask() -> int:
    """Return the permissions that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def why(error: OSError) -> str:
    """Return what the operating system says."""
    return error.strerror or str(error)


def _similar(path: Path) -> str:
    from difflib import get_close_matches

    if not path.parent.is_dir():
        return f" {str(path.parent)!r} is no folder either."
    close = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f" Did you mean {str(path.parent / close[0])!r}?" if close else ""


def _read_folder(folder: Path) -> pa.Table:
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        raise FileFormatError(
            f"The folder {str(folder)!r} holds no .parquet file. Name a file, or a folder of Parquet files."
        )
    import pyarrow as pa

    tables = [_read_binary(file, "parquet") for file in files]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FileFormatError(f"The files in {str(folder)!r} do not have the same columns: {error}.") from None


def _read_binary(path: Path, kind: str) -> pa.Table:
    import pyarrow as pa

    with path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(_MAGIC[kind]):
        raise FileFormatError(
            f"{str(path)!r} is called .{kind} but does not start like such a file. "
            "If it is text, give its name the ending .csv or .jsonl."
        )
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        import pyarrow.feather as feather

        return feather.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        what = "Parquet" if kind == "parquet" else "Arrow"
        raise FileFormatError(
            f"{str(path)!r} cannot be read as {what}: it is damaged or cut short ({str(error).splitlines()[0]}). "
            "Write or download it again."
        ) from None


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file, packed or not."""
    data = _unpacked(path)
    if any(data.startswith(magic) for magics in _MAGIC.values() for magic in magics):
        raise FileFormatError(
            f"{str(path)!r} is not text but Parquet or Arrow. Give its name the ending .parquet or .arrow."
        )
    try:
        text = data.decode("utf-8-sig" if encoding.lower().replace("_", "-") == "utf-8" else encoding)
    except LookupError:
        raise FileFormatError(f"encoding={encoding!r} is unknown. Use 'utf-8', 'latin-1' or 'utf-16'.") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileFormatError(
            f"{str(path)!r}, line {line}: byte {data[error.start]:#04x} is not {encoding}. "
            "Say which encoding it is, such as encoding='latin-1' or 'utf-16'."
        ) from None
    if "\0" in text[:1000]:
        raise FileFormatError(f"{str(path)!r} holds bytes that are no text. If it is UTF-16, say encoding='utf-16'.")
    return text


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(
            f"{str(path)!r} cannot be unpacked: it is damaged or cut short ({error}). Write or download it again."
        ) from None


def _delimiter(text: str) -> str:
    """Return the sign that cuts the first line into most pieces; a comma if none does."""
    first = text.split("\n", 1)[0]
    if first.lstrip().startswith(("{", "[")):
        try:
            json.loads(first)
        except ValueError:
            pass
        else:
            raise FileFormatError("The file looks like JSON Lines. Give its name the ending .jsonl.")
    return max(_DELIMITERS, key=lambda sign: (first.count(sign), -_DELIMITERS.index(sign)))


#: Cells shown in a message are cut after this many signs.
SHOWN = 60
#: What pandas calls a column without a name once it has read and written it.
PANDAS_INDEX = "Unnamed: 0"


def table_of_csv(text: str, name: str, delimiter: str) -> pa.Table:
    """Return a CSV file with a row of names at the top as a table; empty cells are null.

    Blanks around cells belong to them, unless the names have them, too: then the file has ", " between cells.
    Of columns without a name, empty ones are left out, and a first one of different values is the index that pandas
    writes: row numbers are left out, others are called "item".
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


def typed_cells(cells: Sequence[str | None]) -> list[Any]:
    """Return text cells as whole numbers, numbers, booleans or JSON lists if all of them are such; "" as None.

    Examples
    --------
    >>> typed_cells(["1", "", "2"]), typed_cells(["1", "2.5"]), typed_cells(["01", "2"]), typed_cells(["NA", "2"])
    ([1, None, 2], [1.0, 2.5], ['01', '2'], ['NA', '2'])
    >>> typed_cells(["[2, 1]", None]), typed_cells(["true", "false"])
    ([[2, 1], None], [True, False])
    """
    texts = [cell or None for cell in cells]
    for read in (_whole, _number, _truth, _structure):
        try:
            return [None if cell is None else read(cell) for cell in texts]
        except ValueError:
            continue
    return list(texts)


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
