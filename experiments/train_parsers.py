"""Train dependency parsers on each treebank and let them parse the test sets of the others of its language.

Reads ``ud_english`` (EWT, LinES, ParTUT) and ``ud_czech`` (CLTT, FicTree, PUD) from the folder that CONSILIENCE_DATA
names and needs no network. Every parser
is a treebank times a family (``parser_settings.py``). Its trees for the test set of another treebank go to
``<cache>/<test treebank>/<family>-<training treebank>.conllu``: the lines of the test file with HEAD and DEPREL
replaced, and every other column, multi-word ranges and empty nodes as they are (DEPS too, so that column holds gold).
Words are those of the gold file. Every tree has one root: where a parser leaves several, the others are attached to
the one with the most words below it.

What is finished is kept: a second call goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import consilience as cs

from .parser_settings import FAMILIES, ParserFamily, Sentence, Tree, say, single_root
from .tables import QUICK, RESULTS, markdown_table, write_results


@dataclass(frozen=True)
class Bank:
    """A treebank: its name, its language, and the part to train on, if any."""

    title: str
    language: str
    training: str | None = "train"


#: Smallest first. Of FicTree the training part is not to be had, so that its development part serves.
TREEBANKS = {
    "partut": Bank("ParTUT", "en"),
    "lines": Bank("LinES", "en"),
    "ewt": Bank("EWT", "en"),
    "cltt": Bank("CLTT", "cs"),
    "fictree": Bank("FicTree", "cs", "dev"),
    "pud": Bank("PUD", "cs", None),
}
FOLDERS = {"en": "ud_english", "cs": "ud_czech"}
TRAINED = [name for name, bank in TREEBANKS.items() if bank.training]
CACHE = Path(__file__).resolve().parent / "cache"
QUICK_WORDS, QUICK_TEST_SENTENCES = 1_500, 15
HEAD, DEPREL, COLUMNS = 6, 7, 10


@dataclass(frozen=True)
class Block:
    """The lines of one sentence in a CoNLL-U file, and where the words are among them."""

    lines: list[str]
    word_lines: list[int]

    @property
    def sentence(self) -> Sentence:
        rows = [self.lines[index].split("\t") for index in self.word_lines]
        return Sentence(
            [row[1] for row in rows],
            [row[3] for row in rows],
            [int(row[HEAD]) for row in rows],
            [row[DEPREL] for row in rows],
        )

    def with_tree(self, tree: Tree) -> str:
        """Return the text of the sentence with another tree, all else unchanged."""
        lines = list(self.lines)
        for index, head, relation in zip(self.word_lines, *tree, strict=True):
            row = lines[index].split("\t")
            row[HEAD], row[DEPREL] = str(head), relation
            lines[index] = "\t".join(row)
        return "\n".join(lines) + "\n\n"


def read_blocks(lines: Iterable[str], name: str) -> list[Block]:
    """Split the lines of a CoNLL-U file into sentences; multi-word ranges (3-4) and empty nodes (3.1) are no words."""
    blocks, kept, word_lines = [], [], []
    for number, line in enumerate([*lines, ""], start=1):
        line = line.rstrip("\r\n")
        if not line:
            if word_lines:
                blocks.append(Block(kept, word_lines))
            kept, word_lines = [], []
            continue
        if not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != COLUMNS:
                raise SystemExit(f"{name}, line {number}: {len(columns)} columns, not {COLUMNS}. Is it CoNLL-U?")
            if columns[0].isdigit():
                word_lines.append(len(kept))
        kept.append(line)
    return blocks


def attachment_scores(gold: Sequence[Sentence], parsed: Sequence[Sentence]) -> tuple[float, float]:
    """Return the shares of words with the right head (UAS), and with the right head and relation (LAS)."""
    words = heads = both = 0
    for truth, guess in zip(gold, parsed, strict=True):
        for head, relation, other, name in zip(truth.heads, truth.relations, guess.heads, guess.relations, strict=True):
            words += 1
            heads += head == other
            both += head == other and relation == name
    return heads / words, both / words


def drawn(sentences: Sequence[Sentence], n_words: int, seed: int) -> list[Sentence]:
    """Return sentences drawn at random until they have so many words, or all of them."""
    chosen, words = [], 0
    for sentence in random.Random(seed).sample(sentences, len(sentences)):
        if words + len(sentence.words) <= n_words:
            chosen.append(sentence)
            words += len(sentence.words)
    return chosen


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    os.replace(partial, path)


@dataclass(frozen=True)
class Workshop:
    """Where treebanks are read from and parsers and trees are kept."""

    data: Path
    cache: Path
    seed: int
    quick: bool

    def blocks(self, treebank: str, part: str) -> list[Block]:
        bank = TREEBANKS[treebank]
        path = self.data / FOLDERS[bank.language] / f"{bank.language}_{treebank}-ud-{part}.conllu.gz"
        if not path.is_file():
            raise SystemExit(f"{path} is missing. Get the treebank {bank.title} of Universal Dependencies.")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            blocks = read_blocks(lines, path.name)
        return blocks[:QUICK_TEST_SENTENCES] if self.quick and part == "test" else blocks

    def family(self, name: str) -> ParserFamily:
        family = FAMILIES[name]
        return family.seeing(QUICK_WORDS) if self.quick else family

    def trees_path(self, parser: str, treebank: str, test: str) -> Path:
        """Return where trees are kept; those for the parser's own treebank lie apart, they are no weak source."""
        folder = self.cache / "same_treebank" if test == treebank else self.cache
        return folder / test / f"{parser}.conllu"

    def trained(self, family_name: str, treebank: str) -> dict[str, Any]:
        """Return the record of a trained parser; train it unless that was done with the same settings."""
        parser = f"{family_name}-{treebank}"
        family, model, record = (
            self.family(family_name),
            self.model_path(parser),
            self.cache / "models" / f"{parser}.json",
        )
        limit = QUICK_WORDS if self.quick else family.training_words
        sentences = drawn(
            [block.sentence for block in self.blocks(treebank, TREEBANKS[treebank].training or "train")],
            limit,
            self.seed,
        )
        n_words = sum(len(sentence.words) for sentence in sentences)
        asked = {"seed": self.seed, "sentences": len(sentences), "words": n_words, **family.settings(n_words)}
        if record.is_file() and model.is_file():
            known = json.loads(record.read_text(encoding="utf-8"))
            if known["settings"] == asked:
                return dict(known)
        for test in TREEBANKS:
            self.trees_path(parser, treebank, test).unlink(missing_ok=True)
        say(f"{parser}: training on {len(sentences):,} sentences, {n_words:,} words")
        start = time.process_time()
        write_whole(model, family.train(sentences, self.seed))
        known = {"settings": asked, "cpu_seconds": round(time.process_time() - start, 1)}
        write_whole(record, json.dumps(known, indent=2).encode())
        say(f"{parser}: trained in {known['cpu_seconds']:.0f} CPU-seconds")
        return known

    def model_path(self, parser: str) -> Path:
        return self.cache / "models" / f"{parser}.model"

    def scores(self, family_name: str, treebank: str, test: str) -> tuple[float, float, int]:
        """Return UAS, LAS and the number of repaired trees of a parser on a test set; parse it unless that was done."""
        parser = f"{family_name}-{treebank}"
        path, gold = self.trees_path(parser, treebank, test), self.blocks(test, "test")
        sentences = [block.sentence for block in gold]
        record = self.cache / "models" / f"{parser}.{test}.json"
        if not (path.is_file() and record.is_file()):
            trees = self.family(family_name).parse(self.model_path(parser), sentences)
            repaired = sum(heads.count(0) != 1 for heads, _ in trees)
            text = "".join(block.with_tree(single_root(*tree)) for block, tree in zip(gold, trees, strict=True))
            write_whole(record, json.dumps({"repaired": repaired}).encode())
            write_whole(path, text.encode())
        with path.open(encoding="utf-8") as lines:
            parsed = [block.sentence for block in read_blocks(lines, path.name)]
        repaired = json.loads(record.read_text(encoding="utf-8"))["repaired"]
        return *attachment_scores(sentences, parsed), repaired


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, parse, and write the scores to ``train_parsers.md`` and ``train_parsers_czech.md``."""
    given = read_arguments(arguments)
    name = os.environ.get("CONSILIENCE_DATA")
    if not name:
        raise SystemExit("CONSILIENCE_DATA is not set. Let it name the folder that contains ud_english and ud_czech.")
    cache = Path(given.cache or os.environ.get("CONSILIENCE_CACHE") or CACHE)
    cache = cache / "quick" if given.quick else cache
    workshop = Workshop(Path(name), cache, given.seed, given.quick)
    for language in FOLDERS:
        asked = [name for name in given.treebanks if TREEBANKS[name].language == language]
        rows = []
        for treebank, family in ((treebank, family) for treebank in asked for family in given.families):
            try:
                record = workshop.trained(family, treebank)
                rows.append(table_row(workshop, family, treebank, record))
            except cs.exceptions.MissingPackageError as error:
                raise SystemExit(str(error)) from None
        if rows:
            write_table(given, language, asked, rows)


def banks_of(language: str) -> dict[str, Bank]:
    return {name: bank for name, bank in TREEBANKS.items() if bank.language == language}


def write_table(given: argparse.Namespace, language: str, asked: list[str], rows: Sequence[Sequence[str]]) -> None:
    command = f"python -m experiments.train_parsers --families {' '.join(given.families)} --seed {given.seed}"
    banks = banks_of(language)
    if asked != [name for name in TRAINED if name in banks]:
        command += f" --treebanks {' '.join(asked)}"
    settings = f"at most {QUICK_WORDS:,} training words" if given.quick else "all sentences of the test sets"
    columns = ["parser", "is given", "training words", "CPU-seconds"]
    columns += [f"{bank.title} {score}" for bank in banks.values() for score in ("UAS", "LAS")]
    blocks = [
        "Each parser is trained on the treebank in its name, on whole sentences drawn at random where the treebank is "
        "larger than the number of words given, and parses all test sets of its language. Words are those of the gold "
        "file for all; tags are gold UPOS where the table says so, and used nowhere else. In parentheses: the test set "
        "of the treebank that the parser was trained on, which is not a weak source.",
        "Percent of words, punctuation included; relations with their subtypes. Where a parser left several roots, the "
        "others were attached to the one with the most words below it; *repaired* counts such sentences in the test "
        "sets of the other treebanks.",
        *([QUICK] if given.quick else []),
        markdown_table([*columns, "repaired"], rows),
    ]
    name = FOLDERS[language].removeprefix("ud_")
    title = f"Parsers trained on one treebank, tested on the others, {name.capitalize()}"
    command += " --quick" * given.quick
    path = given.results / ("train_parsers.md" if name == "english" else f"train_parsers_{name}.md")
    write_results(path, title, command, [settings], blocks)


def table_row(workshop: Workshop, family: str, treebank: str, record: dict[str, Any]) -> list[str]:
    """Score a parser on every test set and say so."""
    cells: list[str] = []
    repairs = 0
    for test in banks_of(TREEBANKS[treebank].language):
        uas, las, repaired = workshop.scores(family, treebank, test)
        own = test == treebank
        cells += [f"({100 * score:.1f})" if own else f"{100 * score:.1f}" for score in (uas, las)]
        repairs += 0 if own else repaired
        say(f"{family}-{treebank} on {test}: UAS {100 * uas:.1f}, LAS {100 * las:.1f}")
    words, seconds = f"{record['settings']['words']:,}", f"{record['cpu_seconds']:.0f}"
    return [f"{family}-{treebank}", FAMILIES[family].reads, words, seconds, *cells, str(repairs)]


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.train_parsers", description=__doc__)
    parser.add_argument("--cache", help="folder for parsers and trees (CONSILIENCE_CACHE, or experiments/cache)")
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=["udpipe", "spacy"])
    parser.add_argument("--treebanks", nargs="+", choices=TRAINED, default=TRAINED, help="to train on")
    parser.add_argument("--seed", type=int, default=0, help="draws and orders the training sentences")
    parser.add_argument("--quick", action="store_true", help="tiny parsers in <cache>/quick: shows that it runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write the table to")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
