"""Treebanks: parses of the same sentences by several parsers, from CoNLL-U files and back, without loss.

Lines of multi-word tokens (``1-2``) and of empty nodes (``1.1``) are kept where they stand; they are no tokens of the
tree.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidVotesError, UnknownSourceError
from consilience.tables.files import read_file, write_text
from consilience.votes import Votes

__all__ = ["Sentence", "Treebank", "read_conllu", "read_sentences", "write_conllu"]


@dataclass(frozen=True, eq=False)
class Treebank:
    """Parses of the same sentences by one or more parsers.

    Attributes
    ----------
    parsers : dict
        The sentences by parser, in the same order with the same words.
    sources : tuple of names
    sentences : tuple of Sentence
        Those of the first parser, with all columns and comments.
    votes : Votes
        Heads, for ``DependencyTrees()``; a parser abstains on a sentence whose HEAD column is ``_`` throughout.
    relations : tuple of names
        All relations that occur, in alphabetical order.
    votes_with_relations : Votes
        Heads and codes of relations, for ``DependencyTrees(treebank.relations)``.
    """

    parsers: Mapping[str, tuple[Sentence, ...]]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.parsers)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return next(iter(self.parsers.values()))

    def __len__(self) -> int:
        return len(self.sentences)

    def __repr__(self) -> str:
        words = sum(len(sentence) for sentence in self.sentences)
        return f"Treebank({len(self)} sentences, {words} words, parsers: {', '.join(self.sources)})"

    @cached_property
    def items(self) -> tuple[Any, ...]:
        """One id per sentence: its ``sent_id`` where every sentence has one of its own, else its number from 0."""
        found = [sentence.identifier for sentence in self.sentences]
        return tuple(found) if None not in found and len(set(found)) == len(found) else tuple(range(len(found)))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        parsed = (one for sentences in self.parsers.values() for one in sentences if one.heads is not None)
        return tuple(sorted({relation for sentence in parsed for relation in sentence.relations}))

    @cached_property
    def votes(self) -> Votes:
        return self._votes(with_relations=False)

    @cached_property
    def votes_with_relations(self) -> Votes:
        return self._votes(with_relations=True)

    def trees(self, source: str | None = None, *, with_relations: bool = False) -> Batch:
        """Return the trees of one parser, the first if none is named; None where it has no parse.

        Parameters
        ----------
        with_relations
            Whether trees are ``(n_words, 2)`` arrays of heads and codes in `relations`, instead of heads.
        """
        name = self.sources[0] if source is None else source
        if name not in self.parsers:
            raise UnknownSourceError(f"{name!r} is no parser of this treebank. Parsers: {', '.join(self.sources)}.")
        code = {relation: place for place, relation in enumerate(self.relations)} if with_relations else {}
        return as_object_array(
            sentence.heads
            if sentence.heads is None or not with_relations
            else np.stack([sentence.heads, [code[name] for name in sentence.relations]], axis=1)
            for sentence in self.parsers[name]
        )

    def _votes(self, *, with_relations: bool) -> Votes:
        labels = np.stack([self.trees(name, with_relations=with_relations) for name in self.sources], axis=1)
        observed = np.array([[cell is not None for cell in row] for row in labels], dtype=bool)
        return Votes(labels, observed, self.sources, np.array(self.items))


def read_conllu(source: str | Path | Mapping[str, str | Path]) -> Treebank:
    r"""Read the parses of one or several CoNLL-U files of the same sentences.

    Parameters
    ----------
    source
        A path (also of a gzip'd file), text with line breaks, or a dict of these by name of the parser. All must hold
        the same sentences with the same words; the error names the file, the sentence and the word that differ.

    Examples
    --------
    >>> text = "1\tNo\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tway\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    >>> bank = read_conllu({"first": text, "second": text.replace("det", "advmod")})
    >>> bank.votes.labels[0, 0], bank.relations
    (array([2, 0]), ('advmod', 'det', 'root'))
    """
    if not isinstance(source, Mapping):
        name = Path(source).name.removesuffix(".gz").removesuffix(".conllu") if _is_path(source) else "text"
        return Treebank({name: read_sentences(source)})
    if not source:
        raise InvalidVotesError("There are no files to read. Give at least one, as {'parser': path}.")
    parsers = {
        str(name): read_sentences(place, f"{name} ({place})" if _is_path(place) else str(name))
        for name, place in source.items()
    }
    first, *others = parsers
    for name in others:
        _check_same(first, parsers[first], name, parsers[name])
    return Treebank(parsers)


def write_conllu(
    path: str | Path,
    sentences: Treebank | Iterable[Sentence],
    heads: Iterable[Any],
    relations: Sequence[str] | None = None,
) -> None:
    """Write sentences with new trees to a CoNLL-U file, atomically; everything but HEAD and DEPREL stays.

    Parameters
    ----------
    path
        Gzip'd if it ends in ``.gz``.
    sentences
        A treebank, of which the first parser's sentences are taken, or sentences.
    heads
        One tree per sentence, such as `LabelModel.predict` returns them. A missing one (None) is written as ``_``.
    relations
        Names of the relations where trees are ``(n_words, 2)`` arrays of heads and codes, or (head, name) pairs.
        Without relations the column DEPREL is kept.
    """
    kept = list(sentences.sentences if isinstance(sentences, Treebank) else sentences)
    trees = list(heads)
    if len(trees) != len(kept):
        raise InvalidVotesError(f"There are {len(trees)} trees for {len(kept)} sentences. Give one per sentence.")
    changed = [_changed(one, tree, relations, row) for row, (one, tree) in enumerate(zip(kept, trees, strict=True))]
    write_text(path, "".join(map(_text, changed)), force=True)


def _changed(sentence: Sentence, tree: Any, relations: Sequence[str] | None, row: int) -> Sentence:
    if is_null(tree):
        return sentence.with_tree(None)
    tokens = tree.tolist() if isinstance(tree, np.ndarray) else list(tree)
    if len(tokens) != len(sentence):
        raise InvalidVotesError(
            f"Sentence {row}: the tree has {len(tokens)} tokens, the sentence {len(sentence)} words. Give trees of the "
            "same sentences in the same order."
        )
    if not any(isinstance(token, (list, tuple)) for token in tokens):
        return sentence.with_tree(tokens)
    names = [_relation(code, relations, row) for _, code in tokens]
    return sentence.with_tree([head for head, _ in tokens], names)


def _relation(code: Any, relations: Sequence[str] | None, row: int) -> str:
    if isinstance(code, str):
        return code
    if relations is None or not 0 <= int(code) < len(relations):
        raise InvalidVotesError(
            f"Sentence {row} has a relation with code {code}, which has no name. Give the names of all codes as "
            "relations=."
        )
    return relations[int(code)]


def _is_path(source: Any) -> bool:
    return not (isinstance(source, str) and "\n" in source)


def _check_same(first: str, left: Sequence[Sentence], name: str, right: Sequence[Sentence]) -> None:
    for row, (one, two) in enumerate(zip(left, right, strict=False)):
        if one.forms == two.forms:
            continue
        place = f"sentence {row}" + (f" ({one.identifier})" if one.identifier else "")
        word = next(
            (index for index, (a, b) in enumerate(zip(one.forms, two.forms, strict=False)) if a != b),
            min(len(one), len(two)),
        )
        words = [forms[word] if word < len(forms) else "(end)" for forms in (one.forms, two.forms)]
        raise InvalidVotesError(
            f"{name!r} parses other words than {first!r}: {place}, word {word + 1} is {words[1]!r} instead of "
            f"{words[0]!r} (line {two.first_line} on). Give all parsers the same tokens."
        )
    if len(left) != len(right):
        raise InvalidVotesError(
            f"{name!r} has {len(right)} sentences, {first!r} has {len(left)}: sentence {min(len(left), len(right))} is "
            "only in one of them. Give all parsers the same sentences."
        )


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
    """Return the sentences of a file (also gzip'd), or of text, which has at least one line break."""
    if isinstance(source, str) and "\n" in source:
        text, place = source, name or "the text"
    else:
        text, place = read_file(source), name or str(source)
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
