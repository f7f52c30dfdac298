"""Tables on disk: CSV, JSON, Excel, Parquet and Arrow in, whole or in pieces; text, Parquet and Arrow out, atomically.

Text files are read as text first. A column becomes numbers, booleans or lists only if each of its cells is one, so
that no cell is lost to a guess; an empty cell is null. What other words mean is decided in `cleaning`.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from consilience.exceptions import FileFormatError
from consilience.json_text import parse_json
from consilience.lazy import feather, parquet
from consilience.lazy import pyarrow as pa
from consilience.tables.frames import LINES

#: File formats by extension.
FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".json": "json",
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
}
#: Spreadsheets, which pandas reads. They are not written.
_SHEETS = (".xlsx", ".xls", ".ods")
#: Extension of files compressed by gzip.
PACKED = ".gz"
#: Files that are not tables, and their readers.
_OTHER_READERS = {
    ".conllu": "in Python, tables.read_conllu reads it",
    **dict.fromkeys((".soc", ".soi", ".toc", ".toi"), "Rankings.read_preflib reads the text of PrefLib files"),
}
_DELIMITERS = (",", "\t", ";", "|")
_MAGIC = {"parquet": (b"PAR1",), "arrow": (b"ARROW1", b"FEA1")}
#: Types that cells of text are converted to: integers and floats, but not ids such as 007; booleans; JSON.
_TYPES: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"\s*(?:0|-?[1-9]\d*)\s*", re.ASCII), int),
    (re.compile(r"\s*[-+]?(?!0\d)(?:\d+\.?\d*|\.\d+|inf(?:inity)?)(?:e[-+]?\d+)?\s*", re.I), float),
    (re.compile(r"\s*(?:true|false)\s*", re.I), lambda cell: cell.strip().lower() == "true"),
    (re.compile(r"\s*[\[{].*", re.DOTALL), lambda cell: parse_json(cell if '"' in cell else cell.replace("'", '"'))),
)
#: Cells shown in a message are cut after this many characters.
SHOWN = 60
#: Rows read at a time.
ROWS = 1 << 16
#: The name that pandas gives to a column without a name.
PANDAS_INDEX = "Unnamed: 0"


def file_format(path: str | Path) -> str:
    """Return "csv", "jsonl", "json", "parquet" or "arrow" by the name of a file, or say which names are known.

    Text may be compressed: ``votes.csv.gz``.
    """
    ending, is_packed = _ending(path)
    if ending in _SHEETS:
        raise FileFormatError(f"{ending!r} files are read, not written. Use .csv, which every spreadsheet opens.")
    if ending in _OTHER_READERS:
        raise FileFormatError(f"{str(path)!r}: {ending!r} is not a table format; {_OTHER_READERS[ending]}.")
    if ending not in FORMATS:
        fault = f": {ending!r} is not a supported table format" if ending else " has no file extension"
        raise FileFormatError(f"{str(path)!r}{fault}. Use one of {', '.join(FORMATS)}.")
    if FORMATS[ending] in _MAGIC and is_packed:
        raise FileFormatError(
            f"{str(path)!r}: {ending} files are already compressed. Unpack the file, or remove .gz from its name."
        )
    return FORMATS[ending]


def _ending(path: str | Path) -> tuple[str, bool]:
    """Return what the name of a file says about what is in it, and whether it is packed."""
    name = Path(path)
    is_packed = name.suffix.lower() == PACKED
    return (name.with_suffix("") if is_packed else name).suffix.lower(), is_packed


def read_table(path: str | Path, *, delimiter: str | None = None, encoding: str = "utf-8") -> pa.Table:
    """Return a file as an Arrow table; a folder of Parquet files as one table."""
    if not isinstance(path, (str, Path)):
        raise FileFormatError(f"{type(path).__name__} is neither a frame nor a file name. Pass one of them.")
    source, name = Path(path), str(path)
    if os.path.isdir(source):
        try:
            tables = [_read_binary(file, file_format(file)) for file in _files_in_pieces(source)]
            return pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"The files in {name!r} do not have the same columns: {error}.") from None
    check_exists(source)
    if _ending(source)[0] in _SHEETS:
        return _read_sheet(source)
    kind = file_format(source)
    if source.stat().st_size == 0:
        raise FileFormatError(f"{name!r} is empty. It should contain a table with column names in the first row.")
    if kind in _MAGIC:
        table = _read_binary(source, kind)
    elif kind == "jsonl":
        table = _table_of_json_lines(read_text(source, encoding), name)
    elif kind == "json":
        table = _table_of_json(source, encoding)
    else:
        text = read_text(source, encoding)
        delimiter = delimiter or ("\t" if _ending(source)[0] == ".tsv" else _delimiter(text))
        table = _table_of_csv(text, name, delimiter)
        only = "".join(table.column_names)
        other = next((sign for sign in _DELIMITERS if sign in only), None)
        if table.num_columns == 1 and other is not None:
            raise FileFormatError(
                f"{name!r} has one column, {only[:SHOWN]!r}. The delimiter looks like {other!r}, not "
                f"{delimiter!r}: pass delimiter={other!r}."
            )
    if table.num_columns == 0:
        raise FileFormatError(f"{name!r} has no columns. It should hold a table whose columns have names.")
    return table


def check_exists(path: Path) -> None:
    """Raise if there is no such file, with the one that may be meant."""
    if not os.path.isdir(path.parent):
        raise FileFormatError(f"There is no file {str(path)!r}. {str(path.parent)!r} is not a folder either.")
    if not os.path.exists(path):
        close = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
        hint = f" Did you mean {str(path.parent / close[0])!r}?" if close else ""
        raise FileFormatError(f"There is no file {str(path)!r}.{hint}")


def _read_binary(path: Path, kind: str) -> pa.Table:
    with path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(_MAGIC[kind]):
        raise FileFormatError(
            f"{str(path)!r} is not a {kind.capitalize()} file, despite its extension. "
            "If it is text, rename it to .csv or .jsonl."
        )
    try:
        table = parquet.read_table(path) if kind == "parquet" else feather.read_table(path, memory_map=False)
        table.validate(full=True)  # an offset beyond its buffer would take the process along
        return table
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise _unreadable(f"{str(path)!r} cannot be read as {kind.capitalize()}", error) from None


def first_line(error: Exception) -> str:
    """Return what an error of another package says, in one line."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def read_json(path: str | Path, encoding: str = "utf-8", step: str = "Export it again, or read it as a table.") -> Any:
    """Return what a JSON file holds; `step` is what to do about one that is not JSON."""
    try:
        return parse_json(read_text(path, encoding))
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{str(path)!r} is not JSON, or cut short: {error}. {step}") from None


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """Return the text of a file, packed or not, or say which file may be meant."""
    name = repr(str(path))
    if os.path.isdir(path):
        raise FileFormatError(f"{name} is a folder. Give the name of a file.")
    check_exists(Path(path))
    data = Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileFormatError(
                f"{name} cannot be unpacked: it is damaged or cut short ({error}). Write or download it again."
            ) from None
    if data.startswith(tuple(magic for magics in _MAGIC.values() for magic in magics)):
        raise FileFormatError(f"{name} is not text but Parquet or Arrow. Rename it to .parquet or .arrow.")
    try:
        text = data.decode("utf-8-sig" if encoding.lower().replace("_", "-") == "utf-8" else encoding)
    except LookupError:
        raise FileFormatError(f"encoding={encoding!r} is unknown. Use 'utf-8', 'latin-1' or 'utf-16'.") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileFormatError(
            f"{name}, line {line}: byte {data[error.start]:#04x} is not {encoding}. "
            "Pass its encoding, for example encoding='latin-1' or 'utf-16'."
        ) from None
    if "\0" in text[:1000]:
        raise FileFormatError(f"{name} holds bytes that are not text. If it is UTF-16, pass encoding='utf-16'.")
    return text


def _delimiter(text: str) -> str:
    """Return the sign that cuts the first line into most pieces; a comma if none does."""
    first = text.split("\n", 1)[0]
    if first.lstrip().startswith(("{", "[")):
        try:
            parse_json(first)
        except ValueError:
            pass
        else:
            raise FileFormatError("The file looks like JSON Lines. Rename it to .jsonl.")
    return max(_DELIMITERS, key=first.count)


def _table_of_csv(text: str, name: str, delimiter: str) -> pa.Table:
    """Return a CSV file with a row of names at the top as a table; empty cells are null.

    Blanks around cells belong to them, unless the names have them, too: then the file has ", " between cells.
    Of columns without a name, empty ones are left out, and a first one of different values is the index that pandas
    writes: row numbers are left out, others are called "item".
    """
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    is_spaced, end = False, 0
    try:
        for row in reader:
            begin, end = end + 1, reader.line_num
            if not row:
                continue
            lines.append(begin)
            if rows and len(row) != len(rows[0]):
                raise FileFormatError(
                    f"{name!r}, line {reader.line_num}: {len(row)} cells where the first line has {len(rows[0])}. "
                    f"Quote cells that hold the delimiter, or pass delimiter= ({delimiter!r} was assumed)."
                )
            if not rows:
                is_spaced = len(row) > 1 and all(cell != cell.lstrip() for cell in row[1:])
            rows.append([cell.strip() for cell in row] if is_spaced or not rows else row)
    except csv.Error as error:
        raise FileFormatError(f"{name!r}, line {reader.line_num}: {error}. Check the quotes in that line.") from None
    if not rows:
        raise FileFormatError(f"{name!r} is empty. It should contain a table with column names in the first row.")
    header, *body = rows
    columns = {}
    for place, title in enumerate(header):
        cells = [row[place] for row in body]
        if not title or title == PANDAS_INDEX:
            if not any(cells) or (place == 0 and cells == list(map(str, range(len(cells))))):
                continue
            if place > 0 or "item" in header or len(set(cells)) < len(cells):
                shown = next(filter(None, cells))[:SHOWN]
                raise FileFormatError(
                    f"{name!r}: column {place + 1} has no name and holds {shown!r}. Write one in the first line."
                )
            title = "item"
        if title in columns:
            raise FileFormatError(f"{name!r}: two columns have the name {title!r}. Give every column its own name.")
        try:
            columns[title] = pa.array(typed_cells(cells), from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # mixed lists, or a number beyond 64 bits
            columns[title] = pa.array([cell or None for cell in cells], pa.string())
    return pa.table(columns, metadata=_numbered(lines[1:]))


def _numbered(lines: list[int]) -> dict[bytes, bytes]:
    """Return the line of each row as the metadata of a table."""
    return {LINES: np.array(lines, dtype=np.int64).tobytes()}


def _table_of_json_lines(text: str, name: str) -> pa.Table:
    """Return a file with one JSON object per line as a table; missing keys are null."""
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            raise FileFormatError(f"{name!r}, line {number} is not JSON: {error}. Write one object per line.") from None
        if not isinstance(record, dict):
            raise FileFormatError(
                f"{name!r}, line {number} holds {line.strip()[:SHOWN]}, not an object. "
                'Write one object per line, such as {"item": 1, "source": "ann", "label": "cat"}.'
            )
        records.append(record)
        lines.append(number)
    return pa.table(columns_of_records(records), metadata=_numbered(lines))


def _table_of_json(path: Path, encoding: str) -> pa.Table:
    """Return a JSON file that holds a list of objects as a table."""
    document = read_json(path, encoding, "Write a list of objects.")
    if isinstance(document, list) and document and all(isinstance(record, dict) for record in document):
        return pa.table(columns_of_records(document))
    raise FileFormatError(
        f"{str(path)!r} is not a list of objects, such as [{{'item': 1, 'ann': 'cat'}}]. Write it as such a list, or "
        "use the reader of the tool that it comes from."
    )


def _read_sheet(path: Path) -> pa.Table:
    """Return the first sheet of a spreadsheet."""
    try:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_excel(path, dtype=object, keep_default_na=False)
    except ImportError as error:
        raise FileFormatError(
            f"{str(path)!r} is a spreadsheet, which needs pandas and openpyxl ({error}). Save it as CSV, or run: "
            "pip install 'consilience[excel]'."
        ) from None
    except Exception as error:  # each engine of pandas has its own error
        raise FileFormatError(
            f"{str(path)!r} cannot be read as a spreadsheet: {str(error).rstrip('.')}. Save it as CSV."
        ) from None
    columns = {str(name): [None if cell == "" else cell for cell in frame[name].tolist()] for name in frame.columns}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return pa.table(columns_of_records(rows), metadata=_numbered(list(range(2, len(rows) + 2))))


def columns_of_records(records: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """Return the columns of objects, which may lack keys; a column of unlike values becomes text, as in a CSV file."""
    columns = {}
    for key in dict.fromkeys(key for record in records for key in record):
        values = [record.get(key) for record in records]
        try:
            column = pa.array(values, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            column = pa.array([None if value is None else _as_text(value) for value in values], pa.string())
        columns[_as_text(key)] = column
    return columns


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", errors="replace").decode()  # half a surrogate pair cannot be stored


def typed_cells(cells: Sequence[str | None]) -> list[Any]:
    """Return text cells as whole numbers, numbers, booleans or JSON lists if all of them are such; "" as None."""
    texts = [cell or None for cell in cells]
    for pattern, read in _TYPES:
        if all(cell is None or pattern.fullmatch(cell) for cell in texts):
            try:
                return [None if cell is None else read(cell) for cell in texts]
            except ValueError:
                continue
    return list(texts)


# --- pieces of files: a row group, or a record batch, at a time --------------------------------------------------


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file, or a record batch of an Arrow file; `first_row` counts rows through all files."""

    file: str
    group: int
    n_rows: int
    first_row: int

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"{self.file!r}, row group {self.group}"

    def tables(self, columns: list[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Yield some of the columns, at most `ROWS` rows at a time, each time with the number of the first row."""
        start = 0
        try:
            for batch in self._batches(columns):
                batch.validate(full=True)  # an offset beyond its buffer would take the process along
                if batch.num_rows:
                    yield start, pa.Table.from_batches([batch])
                start += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(f"{self.place} cannot be read", error) from None

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        if file_format(self.file) == "parquet":
            with parquet.ParquetFile(self.file) as file:
                yield from file.iter_batches(batch_size=ROWS, row_groups=[self.group], columns=columns)
            return
        with pa.memory_map(self.file) as source:
            batch = pa.ipc.open_file(source).get_batch(self.group)
            batch = batch if columns is None else batch.select(columns)
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS)


def find_row_groups(path: str | Path) -> tuple[tuple[RowGroup, ...], list[str]]:
    """Return the row groups of a file, or of all files in a folder, and the names of their columns."""
    files, groups, names, first_row = _files_in_pieces(Path(path)), list[RowGroup](), list[str](), 0
    for file in files:
        columns, sizes = _described(file)
        names = names or columns
        if set(columns) != set(names):
            odd = sorted(set(columns) ^ set(names))
            raise FileFormatError(
                f"{str(files[0])!r} and {str(file)!r} do not have the same columns: only one of them has "
                f"{', '.join(map(repr, odd[:5]))}. Write the missing column with nulls, or move the file elsewhere."
            )
        for group, size in enumerate(sizes):
            if size:
                groups.append(RowGroup(str(file), group, size, first_row))
            first_row += size
    return tuple(groups), names


def _files_in_pieces(path: Path) -> list[Path]:
    endings = {ending for ending, kind in FORMATS.items() if kind in ("parquet", "arrow")}
    if not os.path.exists(path):
        raise FileFormatError(f"There is no file or folder {str(path)!r}.")
    if not os.path.isdir(path):
        if path.suffix.lower() not in endings:
            raise FileFormatError(
                f"{str(path)!r} cannot be read in pieces. Use Parquet or Arrow ({', '.join(sorted(endings))}), or "
                "read the table whole if it fits into memory."
            )
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in endings and not any(part[:1] in "._" for part in file.relative_to(path).parts)
    ]
    if not found:
        raise FileFormatError(f"The folder {str(path)!r} contains no file that ends in {', '.join(sorted(endings))}.")
    return found


def _described(file: Path) -> tuple[list[str], list[int]]:
    """Return the names of the columns of a file and the numbers of rows of its row groups."""
    try:
        if file_format(file) == "parquet":
            with parquet.ParquetFile(file) as stored:
                known = stored.metadata
                sizes = [known.row_group(group).num_rows for group in range(known.num_row_groups)]
                return list(stored.schema_arrow.names), sizes
        with pa.memory_map(str(file)) as source:
            stream = pa.ipc.open_file(source)
            sizes = [stream.get_batch(group).num_rows for group in range(stream.num_record_batches)]
            return list(stream.schema.names), sizes
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(f"{str(file)!r} cannot be read", error) from None


def _unreadable(fact: str, error: Exception) -> FileFormatError:
    return FileFormatError(f"{fact}: it is damaged or cut short ({first_line(error)}). Write or download it again.")


# --- out ----------------------------------------------------------------------------------------------------------


def write_table(path: str | Path, table: pa.Table, *, force: bool = False, safe_csv: bool = False) -> None:
    """Write an Arrow table in the format that the name of the file asks for; see `replace_file`.

    In a CSV file lists and structs are JSON and nulls are empty cells; with `safe_csv` texts that a spreadsheet would
    take for a formula get a ' in front.
    """
    kind = file_format(path)
    if kind == "parquet":
        replace_file(path, lambda place: parquet.write_table(table, place), force=force)
    elif kind == "arrow":
        replace_file(path, lambda place: feather.write_feather(table, place, "uncompressed"), force=force)
    elif kind == "json":
        write_json(path, table.to_pylist(), force=force)
    elif kind == "jsonl":
        write_json_lines(path, table.to_pylist(), force=force)
    else:

        def quoted(cell: Any) -> Any:
            is_formula = safe_csv and isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
            return f"'{cell}" if is_formula else cell

        columns = [[quoted(csv_cell(value)) for value in column.to_pylist()] for column in table.columns]
        rows = [list(map(quoted, table.column_names)), *zip(*columns, strict=True)]
        write_text(path, csv_text(rows, "\t" if _ending(path)[0] == ".tsv" else ","), force=force)


def csv_text(rows: Iterable[Iterable[Any]], delimiter: str = ",") -> str:
    """Return rows of cells as the text of a CSV file."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


def csv_cell(value: Any) -> Any:
    """Return a value as a cell of a CSV file holds it."""
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return "" if value is None else value


def write_json(path: str | Path, document: Any, *, force: bool = False) -> None:
    """Write a value as JSON, with what JSON does not know as text; see `replace_file`."""
    write_text(path, json.dumps(document, default=str, ensure_ascii=False, indent=1) + "\n", force=force)


def write_json_lines(path: str | Path, records: Sequence[Any], *, force: bool = False) -> None:
    """Write one value per line as JSON, with what JSON does not know as text; see `replace_file`."""
    lines = (json.dumps(record, default=str, ensure_ascii=False) for record in records)
    write_text(path, "".join(f"{line}\n" for line in lines), force=force)


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write text in UTF-8, packed if the name ends in ``.gz``; see `replace_file`."""
    # Half a surrogate pair cannot be encoded, but it must not prevent writing the file.
    data = text.encode("utf-8", errors="replace")
    # Without the time, equal content gives equal bytes.
    packed = gzip.compress(data, mtime=0) if _ending(path)[1] else data
    replace_file(path, lambda temporary: Path(temporary).write_bytes(packed), force=force)


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a place where no file can be written."""
    if os.path.isdir(path):
        raise FileFormatError(f"{str(path)!r} is a folder. Give the name of a file in it.")
    if os.path.exists(path) and not force:
        raise FileFormatError(f"{str(path)!r} already exists. Choose another name, or overwrite it with force=True.")
    if not os.path.isdir(path.parent):
        raise FileFormatError(f"There is no folder {str(path.parent)!r} for {path.name!r}. Create it first.")


def replace_file(path: str | Path, write: Callable[[str], object], *, force: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then put it there in one step.

    An interrupted run leaves the old file or none. An existing file is replaced only with `force`.
    """
    check_target(Path(path), force=force)
    replace_files({Path(path): lambda temporary: write(str(temporary))})


def replace_files(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write several files beside their places, then put all of them there.

    If anything goes wrong before the last file is complete, no place has changed and nothing is left behind.
    """
    staged: dict[Path, Path] = {}
    try:
        for target, write in writers.items():
            folder = target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp"
            # Registered before it is created, because an interrupt in between would leave it behind.
            temporary = staged[target] = folder / target.name
            try:
                folder.mkdir(mode=0o700)
            except OSError as error:
                where = str(target.parent)
                raise FileFormatError(f"Cannot write to {where!r}: {why(error)}. Choose another folder.") from None
            try:
                write(temporary)
            except OSError as error:
                raise FileFormatError(f"Cannot write {str(target)!r}: {why(error)}. Nothing was changed.") from None
        for target, temporary in staged.items():
            try:
                os.replace(temporary, target)
            except OSError as error:
                raise FileFormatError(f"Cannot write {str(target)!r}: {why(error)}.") from None
    finally:
        for temporary in staged.values():
            shutil.rmtree(temporary.parent, ignore_errors=True)


def why(error: OSError) -> str:
    """Return what the operating system says."""
    return error.strerror or str(error)
