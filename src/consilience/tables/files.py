"""Tables on disk: CSV, JSON Lines, Parquet and Arrow in, the same out, atomically.

Text files are read as text first. A column becomes numbers, booleans or lists only if each of its cells is one, so
that no cell is lost to a guess: the words "NA" and "None" are labels, an empty cell is none.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa


#: What a file is, by the end of its name.
FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
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
#: What cells of text may be instead: whole numbers and numbers, but no ids such as 007; booleans; JSON.
_TYPES: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"\s*(?:0|-?[1-9]\d*)\s*", re.ASCII), int),
    (re.compile(r"\s*[-+]?(?!0\d)(?:\d+\.?\d*|\.\d+|inf(?:inity)?)(?:e[-+]?\d+)?\s*", re.I), float),
    (re.compile(r"\s*(?:true|false)\s*", re.I), lambda cell: cell.strip().lower() == "true"),
    (re.compile(r"\s*[\[{].*", re.DOTALL), json.loads),
)
#: Cells shown in a message are cut after this many signs.
SHOWN = 60
#: What pandas calls a column without a name once it has read and written it.
PANDAS_INDEX = "Unnamed: 0"


def file_format(path: str | Path) -> str:
    """Return "csv", "jsonl", "parquet" or "arrow" by the name of a file, or say which names are known.

    Text may be packed: ``votes.csv.gz``.
    """
    ending, is_packed = _ending(path)
    if ending in _OTHER_READERS:
        raise FileFormatError(f"{str(path)!r} ends in {ending!r}, which is no table: {_OTHER_READERS[ending]}.")
    if ending not in FORMATS:
        fault = f"ends in {ending!r}, which is no table" if ending else "has no ending"
        raise FileFormatError(f"{str(path)!r} {fault}. Use one of {', '.join(FORMATS)}.")
    if FORMATS[ending] in _MAGIC and is_packed:
        raise FileFormatError(
            f"{str(path)!r}: {ending} files are packed inside. Unpack it, or leave .gz out of the name."
        )
    return FORMATS[ending]


def _ending(path: str | Path) -> tuple[str, bool]:
    """Return what the name of a file says about what is in it, and whether it is packed."""
    name = Path(path)
    is_packed = name.suffix.lower() == PACKED
    return (name.with_suffix("") if is_packed else name).suffix.lower(), is_packed


def read_table(path: str | Path, *, delimiter: str | None = None, encoding: str = "utf-8") -> pa.Table:
    """Return a file as an Arrow table; a folder of Parquet files as one table."""
    import pyarrow as pa

    if not isinstance(path, (str, Path)):
        raise FileFormatError(f"{type(path).__name__} is neither a frame nor the name of a file. Pass one of them.")
    source, name = Path(path), str(path)
    if source.is_dir():
        files = sorted(source.rglob("*.parquet"))
        if not files:
            raise FileFormatError(
                f"The folder {name!r} holds no .parquet file. Name a file, or a folder of Parquet files."
            )
        try:
            return pa.concat_tables([_read_binary(file, "parquet") for file in files], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise FileFormatError(f"The files in {name!r} do not have the same columns: {error}.") from None
    _check_exists(source)
    kind = file_format(source)
    if source.stat().st_size == 0:
        raise FileFormatError(f"{name!r} is empty. It should hold a table with a row of names at the top.")
    if kind in _MAGIC:
        return _read_binary(source, kind)
    text = read_text(source, encoding)
    if kind == "jsonl":
        return _table_of_json_lines(text, name)
    if delimiter is None:
        delimiter = "\t" if _ending(source)[0] == ".tsv" else _delimiter(text)
    table = _table_of_csv(text, name, delimiter)
    only = table.column_names[0]
    other = next((sign for sign in _DELIMITERS if sign in only), None)
    if table.num_columns == 1 and other is not None:
        raise FileFormatError(
            f"{name!r} has one column, {only[:SHOWN]!r}. It seems to be cut by {other!r}, not by {delimiter!r}: "
            f"say delimiter={other!r}."
        )
    return table


def _check_exists(path: Path) -> None:
    """Raise if there is no such file, with the one that may be meant."""
    if not path.parent.is_dir():
        raise FileFormatError(f"There is no file {str(path)!r}. {str(path.parent)!r} is no folder either.")
    if not path.exists():
        close = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
        hint = f" Did you mean {str(path.parent / close[0])!r}?" if close else ""
        raise FileFormatError(f"There is no file {str(path)!r}.{hint}")


def _read_binary(path: Path, kind: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather, parquet

    with path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(_MAGIC[kind]):
        raise FileFormatError(
            f"{str(path)!r} is called .{kind} but does not start like such a file. "
            "If it is text, give its name the ending .csv or .jsonl."
        )
    try:
        return parquet.read_table(path) if kind == "parquet" else feather.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise FileFormatError(
            f"{str(path)!r} cannot be read as {kind.capitalize()}: it is damaged or cut short "
            f"({str(error).splitlines()[0]}). Write or download it again."
        ) from None


def read_json(path: str | Path) -> Any:
    """Return what a JSON file holds."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise FileFormatError(f"{str(path)!r} is not JSON, or cut short: {error}.") from None


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """Return the text of a file, packed or not, or say which file may be meant."""
    name = repr(str(path))
    if Path(path).is_dir():
        raise FileFormatError(f"{name} is a folder. Give the name of a file.")
    _check_exists(Path(path))
    data = Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileFormatError(
                f"{name} cannot be unpacked: it is damaged or cut short ({error}). Write or download it again."
            ) from None
    if data.startswith(tuple(magic for magics in _MAGIC.values() for magic in magics)):
        raise FileFormatError(f"{name} is not text but Parquet or Arrow. Give its name the ending .parquet or .arrow.")
    try:
        text = data.decode("utf-8-sig" if encoding.lower().replace("_", "-") == "utf-8" else encoding)
    except LookupError:
        raise FileFormatError(f"encoding={encoding!r} is unknown. Use 'utf-8', 'latin-1' or 'utf-16'.") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileFormatError(
            f"{name}, line {line}: byte {data[error.start]:#04x} is not {encoding}. "
            "Say which encoding it is, such as encoding='latin-1' or 'utf-16'."
        ) from None
    if "\0" in text[:1000]:
        raise FileFormatError(f"{name} holds bytes that are no text. If it is UTF-16, say encoding='utf-16'.")
    return text


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
    return max(_DELIMITERS, key=first.count)


def _table_of_csv(text: str, name: str, delimiter: str) -> pa.Table:
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
        for row in filter(None, reader):  # without empty lines
            if rows and len(row) != len(rows[0]):
                raise FileFormatError(
                    f"{name!r}, line {reader.line_num}: {len(row)} cells where the first line has {len(rows[0])}. "
                    f"Quote cells that hold the delimiter, or say which delimiter it is (taken as {delimiter!r} here)."
                )
            if not rows:
                is_spaced = len(row) > 1 and all(cell != cell.lstrip() for cell in row[1:])
            rows.append([cell.strip() for cell in row] if is_spaced or not rows else row)
    except csv.Error as error:
        raise FileFormatError(f"{name!r}, line {reader.line_num}: {error}. Check the quotes in that line.") from None
    if not rows:
        raise FileFormatError(f"{name!r} is empty. It should hold a table with a row of names at the top.")
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
            raise FileFormatError(
                f"{name!r}: two columns have the name {title!r}. Give every column a name of its own."
            )
        try:
            columns[title] = pa.array(typed_cells(cells), from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # lists of unlike things, a number beyond 64 bits
            columns[title] = pa.array([cell or None for cell in cells], pa.string())
    return pa.table(columns)


def _table_of_json_lines(text: str, name: str) -> pa.Table:
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
    columns = {}
    for key in dict.fromkeys(key for record in records for key in record):
        values = [record.get(key) for record in records]
        try:
            columns[key] = pa.array(values, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if not all(value is None or isinstance(value, (list, dict)) for value in values):
                kinds = [type(value) for value in values]
                frequent = max(set(kinds) - {type(None)}, key=kinds.count)
                other = kinds.index(frequent)
                row = next((row for row, kind in enumerate(kinds) if kind not in (frequent, type(None))), other)
                raise FileFormatError(
                    f"{name!r}: column {key!r} mixes types: {json.dumps(values[row])[:SHOWN]} in row {row} is not of "
                    f"the type of {json.dumps(values[other])[:SHOWN]} in row {other}. Write all labels in the same way."
                ) from None
            # lists of unlike things, such as corners and a class: as JSON, which the label type reads
            written = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
            columns[key] = pa.array(written, pa.string())
    return pa.table(columns)


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


def write_table(path: str | Path, table: pa.Table, *, force: bool = False) -> None:
    """Write an Arrow table in the format that the name of the file asks for; see `replace_file`.

    In a CSV file lists and structs are JSON and nulls are empty cells.
    """
    from pyarrow import feather, parquet

    kind = file_format(path)
    if kind == "parquet":
        replace_file(path, lambda place: parquet.write_table(table, place), force=force)
    elif kind == "arrow":
        replace_file(path, lambda place: feather.write_feather(table, place, "uncompressed"), force=force)
    elif kind == "jsonl":
        lines = (json.dumps(record, default=str, ensure_ascii=False) for record in table.to_pylist())
        write_text(path, "".join(f"{line}\n" for line in lines), force=force)
    else:
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter="\t" if _ending(path)[0] == ".tsv" else ",", lineterminator="\n")
        writer.writerow(table.column_names)
        columns = [[_csv_cell(value) for value in column.to_pylist()] for column in table.columns]
        writer.writerows(zip(*columns, strict=True))
        write_text(path, out.getvalue(), force=force)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return "" if value is None else value


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write text in UTF-8, packed if the name ends in ``.gz``; see `replace_file`."""
    # Half a surrogate pair in somebody's text cannot be encoded; it must not cost the whole file.
    data = text.encode("utf-8", errors="replace")
    packed = gzip.compress(data, mtime=0) if _ending(path)[1] else data  # without the time: the same bytes again
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
        raise FileFormatError(f"Cannot write {str(path)!r}: {why(error)}. Nothing was changed.") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def umask() -> int:
    """Return the permissions that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def why(error: OSError) -> str:
    """Return what the operating system says."""
    return error.strerror or str(error)
