"""Treebanks: parses of the same sentences by several parsers, from CoNLL-U files and back, without loss.

Lines of multi-word tokens (``1-2``) and of empty nodes (``1.1``) are kept where they stand; they are not tokens of the
tree.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidVotesError, UnknownSourceError
from consilience.tables.files import read_text, write_text
from consilience.votes import Votes

COLUMNS = 10
FORM, HEAD, RELATION = 1, 6, 7
EMPTY = "_"


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence of a CoNLL-U file."""

    #: Every line as in the file: comments, and rows of ten columns.
    lines: tuple[str | tuple[str, ...], ...]
    #: Which of the lines are words, in order.
    words: tuple[int, ...]
    #: One per word, 0 for the root; None where the column is ``_`` throughout: not parsed.
    heads: IntArray | None
    #: One per word, ``_`` where there is none.
    relations: tuple[str, ...]
    #: Number of its first line in the file.
    first_line: int

    @property
    def identifier(self) -> str | None:
        """The ``sent_id`` of the comments, or None."""
        comments = (line for line in self.lines if isinstance(line, str))
        found = (re.fullmatch(r"#\s*sent_id\s*=\s*(.*\S)\s*", line) for line in comments)
        return next((match[1] for match in found if match), None)

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
        array = None if heads is None else np.asarray(heads, dtype=np.int64)
        names = self.relations if relations is None else tuple(relations)
        return replace(self, lines=tuple(lines), heads=array, relations=names)


@dataclass(frozen=True, eq=False)
class Treebank:
    r"""Parses of the same sentences by one or more parsers: sentences by parser, in the same order.

    Examples
    --------
    >>> text = "1\tcats\t_\t_\t_\t_\t2\tdep\t_\t_\n2\tsleep\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    >>> bank = read_conllu({"udpipe": text, "spacy": text})
    >>> bank.votes, bank.trees("spacy")[0].tolist()
    (Votes(1 item, 2 sources, 100% observed), [2, 0])
    """

    parsers: Mapping[str, tuple[Sentence, ...]]

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the parsers."""
        return tuple(self.parsers)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """Sentences of the first parser, with all columns and comments."""
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
        """All relations that occur, in alphabetical order."""
        parsed = (one for sentences in self.parsers.values() for one in sentences if one.heads is not None)
        return tuple(sorted({relation for sentence in parsed for relation in sentence.relations}))

    @cached_property
    def votes(self) -> Votes:
        """Heads, for ``DependencyTrees()``; a parser abstains on a sentence whose HEAD column is ``_`` throughout."""
        return self._votes(with_relations=False)

    @cached_property
    def votes_with_relations(self) -> Votes:
        """Heads and codes of relations, for ``DependencyTrees(treebank.relations)``."""
        return self._votes(with_relations=True)

    def _votes(self, *, with_relations: bool) -> Votes:
        labels = np.stack([self.trees(name, with_relations=with_relations) for name in self.sources], axis=1)
        return Votes.from_array(labels, sources=self.sources, items=self.items)

    def trees(self, source: str | None = None, *, with_relations: bool = False) -> Batch:
        """Return the trees of one parser, the first if none is named; None where it has no parse.

        With relations trees are ``(n_words, 2)`` arrays of heads and codes in `relations`, instead of heads.
        """
        name = self.sources[0] if source is None else source
        if name not in self.parsers:
            raise UnknownSourceError(f"{name!r} is not a parser of this treebank. Parsers: {', '.join(self.sources)}.")
        heads = [sentence.heads for sentence in self.parsers[name]]
        if not with_relations:
            return as_object_array(heads)
        code = {relation: place for place, relation in enumerate(self.relations)}
        return as_object_array(
            None if own is None else np.stack([own, [code[relation] for relation in sentence.relations]], axis=1)
            for own, sentence in zip(heads, self.parsers[name], strict=True)
        )


def read_conllu(path: str | Path | Mapping[str, str | Path]) -> Treebank:
    r"""Read the parses of one or several CoNLL-U files of the same sentences.

    `path` is that of a file (also gzip'd), text with line breaks, or a dict of these by name of the parser. All
    must hold the same sentences with the same words; the error names the file, the sentence and the word that differ.

    Examples
    --------
    >>> text = "1\tNo\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tway\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    >>> bank = read_conllu({"first": text, "second": text.replace("det", "advmod")})
    >>> bank.votes.labels[0, 0], bank.relations
    (array([2, 0]), ('advmod', 'det', 'root'))
    """
    if isinstance(path, Mapping):
        files = dict(path)
    else:
        name = "text" if _is_text(path) else Path(path).name.removesuffix(".gz").removesuffix(".conllu")
        files = {name: path}
    if not files:
        raise InvalidVotesError("There are no files to read. Give at least one, as {'parser': path}.")
    parsers = {
        str(name): _sentences(place, str(name) if _is_text(place) else f"{name} ({place})")
        for name, place in files.items()
    }
    first, *others = parsers
    for name in others:
        _check_same(first, parsers[first], name, parsers[name])
    return Treebank(parsers)


def _is_text(source: Any) -> bool:
    return isinstance(source, str) and "\n" in source


def _check_same(first: str, left: Sequence[Sentence], name: str, right: Sequence[Sentence]) -> None:
    for row, (one, two) in enumerate(zip(left, right, strict=False)):
        for word, (here, there) in enumerate(zip_longest(two.forms, one.forms, fillvalue="(end)"), start=1):
            if here != there:
                place = f"sentence {row}" + (f" ({one.identifier})" if one.identifier else "")
                raise InvalidVotesError(
                    f"{name!r} parses other words than {first!r}: {place}, word {word} is {here!r} instead of "
                    f"{there!r} (line {two.first_line} on). Give all parsers the same tokens."
                )
    if len(left) != len(right):
        raise InvalidVotesError(
            f"{name!r} has {len(right)} sentences, {first!r} has {len(left)}: sentence {min(len(left), len(right))} is "
            "only in one of them. Give all parsers the same sentences."
        )


def _sentences(source: str | Path, place: str) -> tuple[Sentence, ...]:
    """Return the sentences of a file (also gzip'd) or of a text, which is called `place` in messages."""
    text = str(source) if _is_text(source) else read_text(source)
    numbered = enumerate((line.rstrip("\r\n") for line in io.StringIO(text, newline=None)), start=1)
    blocks = groupby(numbered, key=lambda line: bool(line[1].strip()))
    sentences = tuple(one for is_block, block in blocks if is_block for one in _sentence(list(block), place))
    if not sentences:
        raise InvalidVotesError(f"{place} contains no sentence. CoNLL-U has one word per line, in ten columns.")
    return sentences


def _sentence(block: list[tuple[int, str]], place: str) -> Iterator[Sentence]:
    """Yield the sentence of some lines, or nothing if they are comments only."""
    lines = [line if line.startswith("#") else tuple(line.split("\t")) for _, line in block]
    words: list[int] = []
    for index, ((number, line), row) in enumerate(zip(block, lines, strict=True)):
        if isinstance(row, str):
            continue
        if len(row) != COLUMNS:
            raise InvalidVotesError(
                f"{place}, line {number} has {len(row)} columns; CoNLL-U has {COLUMNS}, separated by tabs. "
                f"It begins with {line[:40]!r}."
            )
        if re.fullmatch(r"[1-9]\d*", row[0], re.ASCII):
            if row[0] != str(len(words) + 1):
                raise InvalidVotesError(
                    f"{place}, line {number}: word {row[0]} follows word {len(words)}. Words are numbered 1, 2, 3, ..."
                )
            words.append(index)
        elif not re.fullmatch(r"\d+-\d+|\d+\.\d+", row[0]):
            raise InvalidVotesError(
                f"{place}, line {number} has id {row[0]!r}; expected a number, a range (1-2) or an empty node (1.1)."
            )
    if not words:
        return
    column = {block[index][0]: lines[index][HEAD] for index in words}
    is_parsed = any(head != EMPTY for head in column.values())
    for number, head in column.items() if is_parsed else ():
        if not re.fullmatch(r"0*\d{1,9}", head, re.ASCII) or int(head) > len(words):
            raise InvalidVotesError(
                f"{place}, line {number} has head {head[:40]!r}; expected 0 (the root) to {len(words)}, or _ in every "
                "line of a sentence that is not parsed."
            )
    heads = np.array([int(head) for head in column.values()], dtype=np.int64) if is_parsed else None
    yield Sentence(tuple(lines), tuple(words), heads, tuple(lines[index][RELATION] for index in words), block[0][0])


def write_conllu(
    path: str | Path,
    sentences: Treebank | Iterable[Sentence],
    heads: Iterable[Any],
    relations: Sequence[str] | None = None,
) -> None:
    r"""Write sentences with new trees to a CoNLL-U file, atomically; everything but HEAD and DEPREL stays.

    `sentences` may be a treebank, of which the first parser's are taken. There is one tree per sentence, such as
    `LabelModel.predict` returns them; a missing one (None) is written as ``_``. Trees are heads, ``(n_words, 2)``
    arrays of heads and codes of `relations`, or (head, name) pairs. Without relations the column DEPREL is kept. A
    path that ends in ``.gz`` is gzip'd.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> text = "1\tcats\t_\t_\t_\t_\t2\tdep\t_\t_\n2\tsleep\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    >>> write_conllu(Path(mkdtemp()) / "consensus.conllu", read_conllu(text), [[0, 1]])
    """
    kept = list(sentences.sentences if isinstance(sentences, Treebank) else sentences)
    trees = list(heads)
    if len(trees) != len(kept):
        raise InvalidVotesError(f"There are {len(trees)} trees for {len(kept)} sentences. Give one per sentence.")
    text = []
    for row, (sentence, tree) in enumerate(zip(kept, trees, strict=True)):
        changed = sentence.with_tree(*_heads_and_relations(tree, len(sentence), relations, f"Sentence {row}"))
        text += [line if isinstance(line, str) else "\t".join(line) for line in changed.lines]
        text.append("")
    write_text(path, "".join(f"{line}\n" for line in text), force=True)


def _heads_and_relations(
    tree: Any, n_words: int, relations: Sequence[str] | None, place: str
) -> tuple[list[int] | None, list[str] | None]:
    if is_null(tree):
        return None, None
    tokens = tree.tolist() if isinstance(tree, np.ndarray) else list(tree)
    if len(tokens) != n_words:
        raise InvalidVotesError(
            f"{place}: the tree has {len(tokens)} tokens, the sentence {n_words} words. Give trees of the "
            "same sentences in the same order."
        )
    if not any(isinstance(token, (list, tuple)) for token in tokens):
        return tokens, None
    known = dict(enumerate(relations or ()))
    names: list[Any] = [code if isinstance(code, str) else known.get(code) for _, code in tokens]
    if None in names:
        raise InvalidVotesError(
            f"{place} has a relation with code {tokens[names.index(None)][1]}, which has no name. Give the names of "
            "all codes as relations=."
        )
    return [head for head, _ in tokens], names
