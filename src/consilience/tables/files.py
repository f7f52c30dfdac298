"""Tables on disk: CSV, JSON Lines, Parquet and Arrow in, the same out, atomically.

Text files are read as text first. A column becomes numbers, booleans or lists only if each of its cells is one, so
that no cell is lost to a guess: the words "NA" and "None" are labels, an empty cell is none.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "file_format", "read_json", "read_table", "replace_file", "write_table"]

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
    """Return a file as an Arrow table; a folder of Parquet files as one table.

    Parameters
    ----------
    delimiter
        Of a CSV file; found out from its first line by default.
    encoding
        Of a CSV file or of JSON Lines.
    """
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
    text = _decode(source, encoding)
    from consilience.tables.text_tables import table_of_csv, table_of_json_lines

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
    source = Path(path)
    if not source.is_file():
        raise FileFormatError(f"There is no file {str(path)!r}.{_similar(source)}")
    try:
        return json.loads(_decode(source, "utf-8"))
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{str(path)!r} is not JSON, or cut short: {error}.") from None


def write_table(path: str | Path, table: pa.Table, *, force: bool = False) -> None:
    """Write an Arrow table in the format that the name of the file asks for.

    An interrupted run leaves the old file or none. A file that is there already is replaced only with `force`.
    """
    kind = file_format(path)

    def write(temporary: str) -> None:
        if kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, temporary)
        elif kind == "arrow":
            import pyarrow.feather as feather

            feather.write_feather(table, temporary, compression="uncompressed")
        else:
            from consilience.tables.text_tables import csv_of_table, json_lines_of_table

            delimiter = "\t" if _ending(path) == ".tsv" else ","
            text = json_lines_of_table(table) if kind == "jsonl" else csv_of_table(table, delimiter)
            data = text.encode("utf-8")
            # Without the time of day: the same labels, the same bytes.
            Path(temporary).write_bytes(gzip.compress(data, mtime=0) if _is_packed(path) else data)

    replace_file(path, write, force=force)


def replace_file(path: str | Path, write: Callable[[str], None], *, force: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then put it there in one step."""
    target = Path(path)
    if target.is_dir():
        raise FileFormatError(f"{str(path)!r} is a folder. Give the name of a file in it.")
    if target.exists() and not force:
        raise FileFormatError(f"{str(path)!r} is there already. Choose another name, or overwrite it with force.")
    if not target.parent.is_dir():
        raise FileFormatError(f"{str(target.parent)!r}, where {target.name!r} should go, is no folder. Make it first.")
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise FileFormatError(
            f"Cannot write to {str(target.parent)!r}: {_reason(error)}. Choose another folder."
        ) from None
    os.close(handle)
    try:
        write(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileFormatError(f"Cannot write {str(path)!r}: {_reason(error)}. Nothing was changed.") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _is_packed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == PACKED


def _ending(path: str | Path) -> str:
    """Return what the name of a file says about what is in it, packed or not."""
    return (Path(path).with_suffix("") if _is_packed(path) else Path(path)).suffix.lower()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
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


def _decode(path: Path, encoding: str) -> str:
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
