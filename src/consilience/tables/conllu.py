"""CoNLL-U: sentences with their trees, read and written without loss.

Lines of multi-word tokens (``1-2``) and of empty nodes (``1.1``) are kept where they stand; they are no tokens of the
tree.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consilience.arrays import IntArray
from consilience.exceptions import InvalidVotesError

__all__ = ["Sentence", "read_sentences", "write_sentences"]

COLUMNS = 10
FORM, HEAD, RELATION = 1, 6, 7
EMPTY = "_"


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence of a CoNLL-U file.

    Parameters
    ----------
    lines
        Every line as in the file: comments, and rows of ten columns.
    words
        Which of the lines are words, in order.
    heads
        ``(n_words,)``, or None where the column is ``_`` throughout: not parsed.
    relations
        One per word, ``_`` where there is none.
    first_line
        Number of its first line in the file.
    """

    lines: tuple[str | tuple[str, ...], ...]
    words: tuple[int, ...]
    heads: IntArray | None
    relations: tuple[str, ...]
    first_line: int

    @property
    def identifier(self) -> str | None:
        """The ``sent_id`` of the comments, or None."""
        for line in self.lines:
            if isinstance(line, str) and (found := re.fullmatch(r"#\s*sent_id\s*=\s*(.*\S)\s*", line)):
                return found[1]
        return None

    @property
    def forms(self) -> tuple[str, ...]:
        """The words."""
        return tuple(self.lines[index][FORM] for index in self.words)

    def __len__(self) -> int:
        return len(self.words)

    def with_tree(self, heads: Sequence[int] | IntArray | None, relations: Sequence[str] | None = None) -> Sentence:
        """Return the sentence with another tree; all other columns, comments and lines stay."""
        lines = list(self.lines)
        for word, index in enumerate(self.words):
            row = list(self.lines[index])
            row[HEAD] = EMPTY if heads is None else str(int(heads[word]))
            if relations is not None:
                row[RELATION] = relations[word]
            lines[index] = tuple(row)
        told = self.relations if relations is None else tuple(relations)
        array = None if heads is None else np.asarray(heads, dtype=np.int64)
        return Sentence(tuple(lines), self.words, array, told, self.first_line)


def read_sentences(source: str | Path, name: str | None = None) -> tuple[Sentence, ...]:
    """Return the sentences of a file (also gzip'd), or of text, which has at least one line break.

    Parameters
    ----------
    name
        What to call the source in messages; the path if not given.
    """
    if isinstance(source, str) and "\n" in source:
        text, place = source, name or "the text"
    else:
        text, place = _read(Path(source)), name or str(source)
    sentences: list[Sentence] = []
    block: list[tuple[int, str]] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        stripped = line.rstrip("\r\n")
        if stripped.strip():
            block.append((number, stripped))
        elif block:
            sentences += _sentence(block, place)
            block = []
    sentences += _sentence(block, place) if block else []
    if not sentences:
        raise InvalidVotesError(f"{place} holds no sentence. CoNLL-U has one word per line, in ten columns.")
    return tuple(sentences)


def write_sentences(path: str | Path, sentences: Iterable[Sentence]) -> None:
    """Write sentences to a file, atomically; gzip'd if the name ends in ``.gz``."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        fault = "is a folder" if target.is_dir() else f"lies in {str(target.parent)!r}, which is no folder"
        raise InvalidVotesError(f"{str(target)!r} {fault}. Give the path of a file in a folder that exists.")
    text = "".join(_text(sentence) for sentence in sentences).encode("utf-8")
    data = gzip.compress(text, mtime=0) if target.suffix == ".gz" else text  # without a time: the same bytes again
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidVotesError(f"There is no file {str(path)!r}. Check the path.") from None
    except IsADirectoryError:
        raise InvalidVotesError(f"{str(path)!r} is a folder. Give the path of a CoNLL-U file.") from None
    except (OSError, EOFError) as error:
        raise InvalidVotesError(f"{str(path)!r} cannot be read: {error}. Check the file.") from None
    except UnicodeDecodeError as error:
        raise InvalidVotesError(f"{str(path)!r} is not UTF-8 (byte {error.start}). CoNLL-U is; convert it.") from None


def _sentence(block: list[tuple[int, str]], place: str) -> Iterator[Sentence]:
    """Yield the sentence of some lines, or nothing if they are comments only."""
    lines: list[str | tuple[str, ...]] = []
    words: list[int] = []
    for number, line in block:
        if line.startswith("#"):
            lines.append(line)
            continue
        row = tuple(line.split("\t"))
        if len(row) != COLUMNS:
            raise InvalidVotesError(
                f"{place}, line {number} has {len(row)} columns; CoNLL-U has {COLUMNS}, separated by tabs. "
                f"It begins with {line[:40]!r}."
            )
        if re.fullmatch(r"[1-9]\d*", row[0]):
            if int(row[0]) != len(words) + 1:
                raise InvalidVotesError(
                    f"{place}, line {number}: word {row[0]} follows word {len(words)}. Words are numbered 1, 2, 3, ..."
                )
            words.append(len(lines))
        elif not re.fullmatch(r"\d+-\d+|\d+\.\d+", row[0]):
            raise InvalidVotesError(
                f"{place}, line {number} has id {row[0]!r}; expected a number, a range (1-2) or an empty node (1.1)."
            )
        lines.append(row)
    if words:
        numbers = [number for number, _ in block]
        heads = _heads([lines[index] for index in words], [numbers[index] for index in words], place)
        relations = tuple(lines[index][RELATION] for index in words)
        yield Sentence(tuple(lines), tuple(words), heads, relations, block[0][0])


def _heads(rows: Sequence[str | tuple[str, ...]], numbers: Sequence[int], place: str) -> IntArray | None:
    column = [row[HEAD] for row in rows]
    if all(value == EMPTY for value in column):
        return None
    for value, number in zip(column, numbers, strict=True):
        if not re.fullmatch(r"\d+", value) or int(value) > len(rows):
            raise InvalidVotesError(
                f"{place}, line {number} has head {value!r}; expected 0 (the root) to {len(rows)}, or _ in every line "
                "of a sentence that is not parsed."
            )
    return np.array([int(value) for value in column], dtype=np.int64)


def _text(sentence: Sentence) -> str:
    lines = [line if isinstance(line, str) else "\t".join(line) for line in sentence.lines]
    return "\n".join([*lines, "", ""])
