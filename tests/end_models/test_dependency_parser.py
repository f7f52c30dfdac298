"""DependencyParser learns trees where spaCy or UDPipe is installed, and says what it lacks."""

import importlib.util
import sys

import numpy as np
import pytest

import consilience as cs
from consilience.end_models import DependencyParser, fit_end_model
from consilience.exceptions import InvalidInputError, MissingPackageError, NotFittedError, UnsupportedError


def needs(family: str, package: str):
    try:
        missing = importlib.util.find_spec(package) is None
    except ModuleNotFoundError:
        missing = True
    reason = f"{package} is not installed, so this parser is NOT tested; pip install 'consilience[parsers]'"
    return pytest.param(family, marks=pytest.mark.skipif(missing, reason=reason), id=family)


every_family = pytest.mark.parametrize("family", [needs("spacy", "spacy"), needs("udpipe", "ufal.udpipe")])
SENTENCES = [
    (["I", "can", "swim"], ["PRON", "AUX", "VERB"]),
    (["Go"], ["VERB"]),
    (["See", "it", "now"], ["VERB", "PRON", "ADV"]),
]
TREES = [[3, 3, 0], [0], [0, 1, 1]]


@every_family
def test_a_parser_learns_the_trees_it_is_shown_but_those_without_a_weight(family):
    wrong = [[2, 0, 2], None, [3, 3, 0]]
    weights = np.repeat([1.0, 0.0], 60)
    parser = DependencyParser(family, words_seen=4000).fit(SENTENCES * 40, TREES * 20 + wrong * 20, weights)
    assert parser.n_sentences_ == 60
    assert [tree.tolist() for tree in parser.predict(SENTENCES)] == TREES
    assert parser.score(SENTENCES, TREES) == 1.0


@every_family
def test_votes_on_trees_become_a_parser_in_one_call(family):
    votes = np.empty((90, 3), dtype=object)
    for index in range(90):
        for source in range(3):
            votes[index, source] = np.array(TREES[index % 3])
    fitted = fit_end_model(DependencyParser(family, words_seen=4000), SENTENCES * 30, votes, space=cs.DependencyTrees())
    assert [tree.tolist() for tree in fitted.predict(SENTENCES)] == TREES


@pytest.mark.parametrize(
    ("sentences", "trees", "message"),
    [
        (SENTENCES, TREES[:2], "3 sentences and y 2 trees"),
        ([["a", "b"]], [[0]], "2 words and 1 heads"),
        ([(["a"], ["X", "Y"])], [[0]], "1 words and 2 tags"),
        ([[]], [[0]], "no words"),
        (SENTENCES, [None] * 3, "No sentence has a tree"),
    ],
)
def test_input_that_does_not_fit_is_refused(sentences, trees, message):
    with pytest.raises(InvalidInputError, match=message):
        DependencyParser().fit(sentences, trees)


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(NotFittedError):
        DependencyParser().predict(SENTENCES)
    with pytest.raises(UnsupportedError, match="'spacy', 'udpipe'"):
        DependencyParser("other").fit(SENTENCES, TREES)
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingPackageError, match=r"needs spacy.*consilience\[parsers\]"):
        DependencyParser("spacy").fit(SENTENCES, TREES)
