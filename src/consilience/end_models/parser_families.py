"""Two families of dependency parsers that can be trained from a treebank alone, offline, in minutes.

Both are told where words begin and end. The UDPipe parsers are also told the universal tag of every word, in training
and when they parse (the treebank's own UPOS column); the plain spaCy parser sees nothing but the words.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from consilience.end_models.inputs import needed
from consilience.exceptions import ConsilienceError, InvalidInputError

__all__ = ["ParserFamily", "Sentence", "Spacy", "Tree", "UDPipe", "passes_over", "root_of", "single_root"]

#: What a word is called that was a second root.
ATTACHED = "dep"

#: Heads counted from 1, where 0 is the root, and one relation per word.
Tree = tuple[list[int], list[str]]


@dataclass(frozen=True)
class Sentence:
    """What a parser is shown of a sentence, and the tree it is to learn."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]


@dataclass(frozen=True, kw_only=True)
class ParserFamily(ABC):
    """How parsers of one kind are trained and used.

    Parameters
    ----------
    training_words
        It learns from at most so many words of a treebank.
    words_seen
        It is trained until it has seen so many words, repetitions counted.
    reads
        What it is shown of a sentence.
    """

    training_words: int
    words_seen: int
    reads: str

    def seeing(self, n_words: int) -> Self:
        """Return the same family, trained until it has seen so many words."""
        return replace(self, words_seen=n_words)

    @abstractmethod
    def settings(self, n_words: int) -> dict[str, Any]:
        """Return all that decides what is learned from training sentences of so many words."""

    @abstractmethod
    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        """Return a trained parser as the content of a file."""

    @abstractmethod
    def parse(self, model: Path, sentences: Sequence[Sentence]) -> list[Tree]:
        """Return the trees that a trained parser finds, with as many roots as it likes."""


def passes_over(n_words: int, words_seen: int) -> int:
    """Return how many passes over so many words come closest to the number of words to be seen; at least one."""
    return max(1, round(words_seen / n_words))


def single_root(heads: Sequence[int], relations: Sequence[str]) -> Tree:
    """Attach all roots but the one with the most words below it (the first of equals) to that one."""
    roots = [index + 1 for index, head in enumerate(heads) if head == 0]
    below = Counter(root_of(word, heads) for word in range(1, len(heads) + 1))
    best = max(roots, key=lambda root: below[root])
    others = set(roots) - {best}
    repaired = [best if index + 1 in others else head for index, head in enumerate(heads)]
    names = [ATTACHED if index + 1 in others else name for index, name in enumerate(relations)]
    names[best - 1] = "root"
    return repaired, names


def root_of(word: int, heads: Sequence[int]) -> int:
    """Follow the heads upwards from a word; a cycle is an error of the parser."""
    for _ in heads:
        above = heads[word - 1]
        if not 0 <= above <= len(heads):
            raise InvalidInputError(f"Word {word} has the head {above} in a sentence of {len(heads)} words.")
        if above == 0:
            return word
        word = above
    raise InvalidInputError(f"The heads {list(heads)} contain a cycle.")


@dataclass(frozen=True)
class UDPipe(ParserFamily):
    """Greedy transition parser with a small network (UDPipe 1), given words and universal tags."""

    transition_system: str = "projective"
    transition_oracle: str = "dynamic"
    training_words: int = 65_000
    words_seen: int = 260_000
    reads: str = "words and gold UPOS"

    def settings(self, n_words: int) -> dict[str, Any]:
        chosen = {"iterations": passes_over(n_words, self.words_seen), "hidden_layer": 100}
        return chosen | {name: getattr(self, name) for name in ("transition_system", "transition_oracle")}

    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        # The trainer draws from a generator of its own with a fixed seed, so a seed decides the order of the sentences.
        udpipe = self._package()
        chosen = self.settings(sum(len(sentence.words) for sentence in sentences))
        options = [f"{name}={value}" for name, value in chosen.items()]
        options += ["use_gold_tags=1", "embedding_upostag=20", "embedding_feats=0", "single_root=1"]
        data = udpipe.Sentences()
        for sentence in random.Random(seed).sample(sentences, len(sentences)):
            data.append(self._encoded(sentence, learn=True))
        error = udpipe.ProcessingError()
        nothing = udpipe.Trainer.NONE
        model = udpipe.Trainer.train(
            "morphodita_parsito", data, udpipe.Sentences(), nothing, nothing, ";".join(options), error
        )
        if error.occurred():
            raise ConsilienceError(f"UDPipe did not train: {error.message}. Check words, tags and heads.")
        return bytes(model)

    def parse(self, model: Path, sentences: Sequence[Sentence]) -> list[Tree]:
        udpipe = self._package()
        parser = udpipe.Model.load(str(model))
        if parser is None:
            raise InvalidInputError(f"{model} is not a UDPipe model. Delete it to have it trained again.")
        trees, error = [], udpipe.ProcessingError()
        for sentence in sentences:
            encoded = self._encoded(sentence, learn=False)
            if not parser.parse(encoded, udpipe.Pipeline.DEFAULT, error):
                raise ConsilienceError(f"UDPipe did not parse {' '.join(sentence.words)!r}: {error.message}")
            words = [encoded.words[index + 1] for index in range(len(sentence.words))]
            trees.append(([word.head for word in words], [word.deprel for word in words]))
        return trees

    def _encoded(self, sentence: Sentence, learn: bool) -> Any:
        encoded = self._package().Sentence()
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            encoded.addWord(word).upostag = tag
        if learn:
            for index, (head, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
                encoded.setHead(index + 1, head, relation)
        return encoded

    @staticmethod
    def _package() -> Any:
        return needed("ufal.udpipe", "parsers", "The UDPipe parser")


@dataclass(frozen=True)
class Spacy(ParserFamily):
    """Arc-eager parser on a convolutional encoder (spaCy, from scratch, no vectors), given words, maybe tags."""

    tags: bool = False
    training_words: int = 250_000
    words_seen: int = 600_000
    reads: str = "words"
    #: Told how far the training is.
    report: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    #: The network and optimizer of spaCy's efficiency configuration.
    HASHES: ClassVar = {"NORM": 5000, "PREFIX": 1000, "SUFFIX": 2500, "SHAPE": 2500}
    WIDTH, DEPTH, HIDDEN, DROPOUT = 96, 4, 64, 0.1
    FIRST_BATCH, LAST_BATCH, GROWTH = 100, 1000, 1.001

    def settings(self, n_words: int) -> dict[str, Any]:
        return {"tags": self.tags, "words_seen": self.words_seen, "width": self.WIDTH, "depth": self.DEPTH}

    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        self._package()
        from spacy.training import Example
        from thinc.api import Adam, fix_random_seed

        fix_random_seed(seed)
        nlp = self._pipeline()
        examples = [
            Example(self._encoded(nlp, sentence, learn=False), self._encoded(nlp, sentence, learn=True))
            for sentence in sentences
        ]
        nlp.initialize(lambda: examples)
        optimizer = Adam(learn_rate=0.001, L2=0.01, L2_is_weight_decay=True, grad_clip=1.0, use_averages=True)
        seen, reported = 0, 0
        for batch in self._batches(examples, random.Random(seed)):
            losses: dict[str, float] = {}
            nlp.update(batch, drop=self.DROPOUT, sgd=optimizer, losses=losses)
            seen += sum(len(example.reference) for example in batch)
            if self.report is not None and seen >= min(reported + self.words_seen / 10, self.words_seen):
                reported = seen
                self.report(f"  {seen:,} of {self.words_seen:,} words, loss {losses['parser'] / len(batch):.1f}")
        with nlp.use_params(optimizer.averages):
            return bytes(nlp.to_bytes())

    def parse(self, model: Path, sentences: Sequence[Sentence]) -> list[Tree]:
        nlp = self._pipeline().from_bytes(model.read_bytes())
        trees = []
        for doc in nlp.pipe(self._encoded(nlp, sentence, learn=False) for sentence in sentences):
            heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
            trees.append((heads, ["root" if head == 0 else token.dep_ for head, token in zip(heads, doc, strict=True)]))
        return trees

    def _batches(self, examples: list[Any], rng: random.Random) -> Iterator[list[Any]]:
        """Yield batches of slowly more words, in a new order each pass, until enough words are seen."""
        endless = itertools.chain.from_iterable(rng.sample(examples, len(examples)) for _ in itertools.count())
        seen, size = 0, float(self.FIRST_BATCH)
        while seen < self.words_seen:
            batch: list[Any] = []
            words = 0
            while words < size:
                batch.append(next(endless))
                words += len(batch[-1].reference)
            yield batch
            seen, size = seen + words, min(size * self.GROWTH, self.LAST_BATCH)

    def _pipeline(self) -> Any:
        hashes = {**self.HASHES, **({"POS": 50} if self.tags else {})}
        embed = {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": self.WIDTH,
            "attrs": list(hashes),
            "rows": list(hashes.values()),
            "include_static_vectors": False,
        }
        encode = {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": self.WIDTH,
            "depth": self.DEPTH,
            "window_size": 1,
            "maxout_pieces": 3,
        }
        model = {
            "@architectures": "spacy.TransitionBasedParser.v2",
            "state_type": "parser",
            "extra_state_tokens": False,
            "hidden_width": self.HIDDEN,
            "maxout_pieces": 2,
            "use_upper": True,
            "nO": None,
            "tok2vec": {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode},
        }
        nlp = self._package().blank("en")
        nlp.add_pipe("parser", config={"model": model})
        return nlp

    def _encoded(self, nlp: Any, sentence: Sentence, learn: bool) -> Any:
        from spacy.tokens import Doc

        given: dict[str, Any] = {"words": sentence.words}
        if self.tags:
            given["pos"] = sentence.tags
        if learn:
            given["heads"] = [head - 1 if head else index for index, head in enumerate(sentence.heads)]
            given["deps"] = [
                name if head else "ROOT" for head, name in zip(sentence.heads, sentence.relations, strict=True)
            ]
        else:
            given["sent_starts"] = [index == 0 for index in range(len(sentence.words))]  # one sentence, not to be split
        return Doc(nlp.vocab, **given)

    @staticmethod
    def _package() -> Any:
        return needed("spacy", "parsers", "The spaCy parser")
