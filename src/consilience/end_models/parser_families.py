"""A dependency parser, of one of two families that are trained within minutes on a treebank alone.

Both get tokenized sentences. UDPipe parsers also get the universal tags of the words (the UPOS column of the treebank)
in training and parsing; plain spaCy parsers get the words alone.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from consilience.arrays import Batch, as_object_array, is_null
from consilience.end_models.inputs import EndModel, read_weights
from consilience.exceptions import ConsilienceError, InvalidInputError, UnsupportedError, needed
from consilience.tables.conllu import Sentence as ConlluSentence

__all__ = ["DependencyParser", "ParserFamily", "Sentence", "Spacy", "UDPipe", "passes_over", "root_of", "single_root"]

#: The relation of a word that was a second root.
ATTACHED = "dep"
#: The column of universal tags in a CoNLL-U file.
UPOS = 3

#: Heads counted from 1, where 0 is the root, and one relation per word.
Tree = tuple[list[int], list[str]]


@dataclass(frozen=True)
class Sentence:
    """The words and tags of a sentence, and its tree.

    Examples
    --------
    >>> Sentence(["cats", "sleep"], ["NOUN", "VERB"], [2, 0], ["nsubj", "root"]).words
    ['cats', 'sleep']
    """

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]


@dataclass(frozen=True, kw_only=True)
class ParserFamily(ABC):
    """How parsers of one kind are trained and used.

    Examples
    --------
    >>> UDPipe().seeing(100_000).words_seen
    100000
    """

    training_words: int  # the largest number of words of a treebank to train on
    words_seen: int  # the length of the training in words, repetitions counted
    reads: str  # the input of the parser for a sentence

    def seeing(self, n_words: int) -> Self:
        """Return the same family with another length of training."""
        return replace(self, words_seen=n_words)

    @abstractmethod
    def settings(self, n_words: int) -> dict[str, Any]:
        """Return the settings that determine the training on so many words."""

    @abstractmethod
    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        """Return the content of the file of a trained parser."""

    @abstractmethod
    def parse(self, model: Path, sentences: Sequence[Sentence]) -> list[Tree]:
        """Return the trees that a trained parser finds, which may have several roots."""


def passes_over(n_words: int, words_seen: int) -> int:
    """Return the number of passes over so many words that comes closest to `words_seen`; at least one.

    Examples
    --------
    >>> passes_over(65_000, words_seen=260_000)
    4
    """
    return max(1, round(words_seen / n_words))


def single_root(heads: Sequence[int], relations: Sequence[str]) -> Tree:
    """Keep the root with the most words below it (the first of equals), and attach the other roots to it.

    Examples
    --------
    >>> single_root([2, 0, 0], ["nsubj", "root", "root"])
    ([2, 0, 2], ['nsubj', 'root', 'dep'])
    """
    roots = [index + 1 for index, head in enumerate(heads) if head == 0]
    below = Counter(root_of(word, heads) for word in range(1, len(heads) + 1))
    best = max(roots, key=lambda root: below[root])
    others = set(roots) - {best}
    repaired = [best if index + 1 in others else head for index, head in enumerate(heads)]
    names = [ATTACHED if index + 1 in others else name for index, name in enumerate(relations)]
    names[best - 1] = "root"
    return repaired, names


def root_of(word: int, heads: Sequence[int]) -> int:
    """Follow the heads from a word to the root; a cycle is an error.

    Examples
    --------
    >>> root_of(1, heads=[2, 3, 0])
    3
    """
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
    """Greedy transition parser with a small network (UDPipe 1) on words and universal tags.

    Examples
    --------
    >>> UDPipe().settings(n_words=65_000)["iterations"]
    4
    """

    transition_system: str = "projective"
    transition_oracle: str = "dynamic"
    training_words: int = 65_000
    words_seen: int = 260_000
    reads: str = "words and gold UPOS"

    def settings(self, n_words: int) -> dict[str, Any]:
        chosen = {"iterations": passes_over(n_words, self.words_seen), "hidden_layer": 100}
        return chosen | {name: getattr(self, name) for name in ("transition_system", "transition_oracle")}

    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        # The trainer has a fixed seed, so our seed only determines the order of the sentences.
        udpipe = needed("ufal.udpipe", "The UDPipe parser", "parsers")
        chosen = self.settings(sum(len(sentence.words) for sentence in sentences))
        options = [f"{name}={value}" for name, value in chosen.items()]
        options += ["use_gold_tags=1", "embedding_upostag=20", "embedding_feats=0", "single_root=1"]
        data = udpipe.Sentences()
        for sentence in random.Random(seed).sample(sentences, len(sentences)):
            data.append(self._encoded(udpipe, sentence, learn=True))
        error = udpipe.ProcessingError()
        nothing = udpipe.Trainer.NONE
        model = udpipe.Trainer.train(
            "morphodita_parsito", data, udpipe.Sentences(), nothing, nothing, ";".join(options), error
        )
        if error.occurred():
            raise ConsilienceError(f"UDPipe did not train: {error.message}. Check words, tags and heads.")
        return bytes(model)

    def parse(self, model: Path, sentences: Sequence[Sentence]) -> list[Tree]:
        udpipe = needed("ufal.udpipe", "The UDPipe parser", "parsers")
        parser = udpipe.Model.load(str(model))
        if parser is None:
            raise InvalidInputError(f"{model} is not a UDPipe model. Delete it to have it trained again.")
        trees, error = [], udpipe.ProcessingError()
        for sentence in sentences:
            encoded = self._encoded(udpipe, sentence, learn=False)
            if not parser.parse(encoded, udpipe.Pipeline.DEFAULT, error):
                raise ConsilienceError(f"UDPipe did not parse {' '.join(sentence.words)!r}: {error.message}")
            words = [encoded.words[index + 1] for index in range(len(sentence.words))]
            trees.append(([word.head for word in words], [word.deprel for word in words]))
        return trees

    @staticmethod
    def _encoded(udpipe: Any, sentence: Sentence, learn: bool) -> Any:
        encoded = udpipe.Sentence()
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            encoded.addWord(word).upostag = tag
        if learn:
            for index, (head, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
                encoded.setHead(index + 1, head, relation)
        return encoded


@dataclass(frozen=True)
class Spacy(ParserFamily):
    """Arc-eager parser with a convolutional encoder (spaCy, without pretrained vectors) on words and perhaps tags.

    Examples
    --------
    >>> Spacy(tags=True).settings(n_words=10_000)["tags"]
    True
    """

    tags: bool = False
    training_words: int = 250_000
    words_seen: int = 600_000
    reads: str = "words"
    #: Called with the progress of the training.
    report: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    #: The network and optimizer of spaCy's efficiency configuration.
    HASHES: ClassVar = {"NORM": 5000, "PREFIX": 1000, "SUFFIX": 2500, "SHAPE": 2500}
    WIDTH, DEPTH, HIDDEN, DROPOUT = 96, 4, 64, 0.1
    FIRST_BATCH, LAST_BATCH, GROWTH = 100, 1000, 1.001

    def settings(self, n_words: int) -> dict[str, Any]:
        return {"tags": self.tags, "words_seen": self.words_seen, "width": self.WIDTH, "depth": self.DEPTH}

    def train(self, sentences: Sequence[Sentence], seed: int) -> bytes:
        needed("spacy", "The spaCy parser", "parsers")
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
        """Yield batches of slowly increasing size, in a new order each pass, until enough words are seen."""
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
        embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": self.WIDTH, "include_static_vectors": False}
        embed |= {"attrs": list(hashes), "rows": list(hashes.values())}
        encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": self.WIDTH, "depth": self.DEPTH}
        encode |= {"window_size": 1, "maxout_pieces": 3}
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
        nlp = needed("spacy", "The spaCy parser", "parsers").blank("en")
        nlp.add_pipe("parser", config={"model": model})
        return nlp

    def _encoded(self, nlp: Any, sentence: Sentence, learn: bool) -> Any:
        from spacy.tokens import Doc

        given: dict[str, Any] = {"words": sentence.words}
        if self.tags:
            given["pos"] = sentence.tags
        if learn:
            given["heads"] = [head - 1 if head else index for index, head in enumerate(sentence.heads)]
            pairs = zip(sentence.heads, sentence.relations, strict=True)
            given["deps"] = [name if head else "ROOT" for head, name in pairs]
        else:
            given["sent_starts"] = [index == 0 for index in range(len(sentence.words))]  # one sentence, not to be split
        return Doc(nlp.vocab, **given)


@dataclass(repr=False, eq=False)
class DependencyParser(EndModel):
    """A parser trained from scratch on trees, such as the consensus of other parsers.

    Parameters
    ----------
    family
        "spacy": an arc-eager parser with a small convolutional network, on words, and tags if given.
        "udpipe": the transition parser of UDPipe 1, on words and universal tags.
    words_seen
        Length of the training in words, repetitions counted; by default one that suits a treebank.
    random_state
        Seed. Parsers take no weights: a sentence of weight w is used with probability w / max(w).

    Examples
    --------
    >>> parser = DependencyParser("spacy").fit(sentences, model.predict(votes))  # doctest: +SKIP
    >>> heads = parser.predict(new_sentences)  # doctest: +SKIP
    """

    learned = "model_"

    family: str = "spacy"
    _: KW_ONLY
    words_seen: int | None = None
    random_state: int = 0

    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> Self:
        """Learn from sentences (lists of words, pairs ``(words, tags)``, or sentences of a `Treebank`) and trees.

        Trees are the predictions of models of `DependencyTrees`: heads of the words, counted from 1, 0 for the root;
        None if unknown. With relations they are rows of (head, code); the codes are not learned.
        """
        if len(X) != len(y):
            raise InvalidInputError(f"X has {len(X)} sentences and y {len(y)} trees. Pass one tree per sentence.")
        weights = read_weights(sample_weight, len(X))
        chance = weights / weights.max() if len(weights) and weights.max() > 0 else np.zeros(len(weights))
        kept = np.random.default_rng(self.random_state).random(len(X)) < chance
        learned = [
            _sentence(sentence, index, heads)
            for index, (sentence, heads) in enumerate(zip(X, y, strict=True))
            if kept[index] and not is_null(heads)
        ]
        if not learned:
            raise InvalidInputError("No sentence has a tree and a weight above zero. Pass at least one such sentence.")
        tagged = all(sentence.tags != ["_"] * len(sentence.words) for sentence in learned)
        family = self._family(tagged)
        if self.words_seen is not None:
            family = family.seeing(int(self.words_seen))
        self.model_ = family.train(learned, int(self.random_state))
        self.tagged_, self.n_sentences_ = tagged, len(learned)
        return self

    def predict(self, X: Sequence[Any]) -> Batch:
        """Return the heads of each sentence; every tree has one root."""
        self._require_fitted()
        sentences = [_sentence(sentence, index) for index, sentence in enumerate(X)]
        if self.tagged_ and (untagged := [i for i, one in enumerate(sentences) if one.tags == ["_"] * len(one.words)]):
            raise InvalidInputError(
                f"Sentence {untagged[0]} has no tags, but this parser was trained with tags. Pass (words, tags)."
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "parser"
            path.write_bytes(self.model_)
            trees = self._family(self.tagged_).parse(path, sentences)
        return as_object_array([np.array(single_root(*tree)[0], dtype=np.int64) for tree in trees])

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the share of words with the right head (unlabeled attachment score)."""
        found = self.predict(X)
        known = [(guess, _heads(tree)) for guess, tree in zip(found, y, strict=True) if not is_null(tree)]
        right = sum(int((guess == tree).sum()) for guess, tree in known)
        return right / max(1, sum(len(tree) for _, tree in known))

    def _family(self, tagged: bool) -> ParserFamily:
        if self.family not in ("spacy", "udpipe"):
            raise UnsupportedError(f"family={self.family!r} is unknown. Use one of 'spacy', 'udpipe'.")
        return UDPipe() if self.family == "udpipe" else Spacy(tags=tagged)


def _heads(tree: Any) -> Any:
    table = np.asarray(tree, dtype=np.int64)
    return table[:, 0] if table.ndim == 2 else table


def _sentence(sentence: Any, index: int, tree: Any = None) -> Sentence:
    words, tags = _words(sentence)
    if not words:
        raise InvalidInputError(f"Sentence {index} has no words. Leave it out.")
    if len(tags) != len(words):
        raise InvalidInputError(f"Sentence {index} has {len(words)} words and {len(tags)} tags. Pass one per word.")
    heads = [0] + [1] * (len(words) - 1) if tree is None else _heads(tree).tolist()
    if len(heads) != len(words):
        raise InvalidInputError(f"Sentence {index} has {len(words)} words and {len(heads)} heads. Pass one per word.")
    return Sentence(words, tags, heads, ["root" if head == 0 else "dep" for head in heads])


def _words(sentence: Any) -> tuple[list[str], list[str]]:
    """Return words and tags; ``_`` means that a word has no tag."""
    if isinstance(sentence, ConlluSentence):
        rows = [sentence.lines[index] for index in sentence.words]
        return list(sentence.forms), [row[UPOS] for row in rows]
    if isinstance(sentence, tuple) and len(sentence) == 2 and not isinstance(sentence[0], str):
        return [str(word) for word in sentence[0]], [str(tag) for tag in sentence[1]]
    if isinstance(sentence, str):
        return sentence.split(), ["_"] * len(sentence.split())
    return [str(word) for word in sentence], ["_"] * len(sentence)
