"""A dependency parser that is trained on trees."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, as_object_array, is_null
from consilience.end_models.inputs import EndModel, read_weights
from consilience.end_models.parser_families import ParserFamily, Sentence, Spacy, UDPipe, single_root
from consilience.exceptions import InvalidInputError, UnsupportedError
from consilience.tables.conllu import Sentence as ConlluSentence

__all__ = ["DependencyParser"]

FAMILIES = ("spacy", "udpipe")
#: The column of universal tags in a CoNLL-U file.
UPOS = 3


@dataclass(repr=False, eq=False)
class DependencyParser(EndModel):
    """A parser trained from nothing on trees, such as the consensus of other parsers.

    Parameters
    ----------
    family
        "spacy": an arc-eager parser on a small convolutional network, from words alone, or with tags where given.
        "udpipe": the transition parser of UDPipe 1, from words and universal tags.
    words_seen
        Length of the training in words, repetitions counted; the default of the family is right for a treebank.
    random_state
        Seed; both families give the same parser for the same seed.

    Notes
    -----
    Parsers take no weights. A sentence of weight w is in the training data with probability w / max(w), so that unsure
    trees are seen less often.
    """

    learned = "model_"

    family: str = "spacy"
    _: KW_ONLY
    words_seen: int | None = None
    random_state: int = 0

    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> Self:
        """Learn trees of sentences.

        Parameters
        ----------
        X
            One sentence each: a list of words, a pair ``(words, tags)``, or a sentence of a `Treebank`.
        y
            Heads of the words, counted from 1, 0 for the root, as a model of `DependencyTrees` predicts them; None
            where unknown. With relations, rows of (head, code); the codes are not learned.
        sample_weight
            How much each sentence counts.
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
            raise InvalidInputError("No sentence has a tree and a weight above zero. Pass some that do.")
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
                f"Sentence {untagged[0]} has no tags, and this parser learned with tags. Pass (words, tags)."
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
        if self.family not in FAMILIES:
            raise UnsupportedError(f"family={self.family!r} is unknown. Use one of {', '.join(map(repr, FAMILIES))}.")
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
    """Return words and tags; ``_`` is no tag."""
    if isinstance(sentence, ConlluSentence):
        rows = [sentence.lines[index] for index in sentence.words]
        return list(sentence.forms), [row[UPOS] for row in rows]
    if isinstance(sentence, tuple) and len(sentence) == 2 and not isinstance(sentence[0], str):
        return [str(word) for word in sentence[0]], [str(tag) for tag in sentence[1]]
    if isinstance(sentence, str):
        return sentence.split(), ["_"] * len(sentence.split())
    return [str(word) for word in sentence], ["_"] * len(sentence)
