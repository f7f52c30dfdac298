"""Texts: distances, sources, labels picked or written anew, copies, bad input; the kernels against brute force."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import fitted

import consilience as cs
from consilience.exceptions import DistanceError, InvalidLabelError
from consilience.label_types.texts.kernels import (
    edit_distance,
    gleu_distance,
    heaviest_words,
    neighbors,
    network,
    text_costs,
)


def crowd(n, seed, costs, copies=0, space=None):
    """Draw texts and sources that replace a share of the words; the first one has copies."""
    space = cs.Texts() if space is None else space
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    weights = space.law.weight_from_cost(np.array(costs))
    votes = cs.simulate(space, truth, weights, rng)
    labels = np.concatenate([votes.labels, np.repeat(votes.labels[:, :1], copies, axis=1)], axis=1)
    return cs.Votes.from_array(labels, sources=[f"source {k}" for k in range(labels.shape[1])]), truth


@pytest.mark.parametrize(
    ("space", "left", "right", "distance"),
    [
        (cs.Texts(), "The cat sat.", "the black cat sat", 1 / 4),
        (cs.Texts(exact=True), "The cat sat.", "the cat sat", 2 / 3),
        (cs.Texts(), "one two", "three", 1.0),
        # 3 + 2 + 1 sequences against 4 + 3 + 2 + 1; in common: the, cat, sat, "cat sat"
        (cs.Texts("gleu"), "the cat sat", "the black cat sat", 1 - 4 / 10),
        (cs.Texts(lambda left, right: abs(len(left) - len(right))), "abc", "a", 2.0),
    ],
)
def test_distances_of_texts(space, left, right, distance):
    assert space.distance(space.as_batch([left]), space.as_batch([right]))[0] == pytest.approx(distance)


def test_similarities_to_the_truth_are_recovered():
    # 600 texts of 6 to 12 words: a mean distance has a standard error below .01; factors are drawn to their mean by
    # five items, and unrelated words hardly ever meet. Four standard errors.
    costs = [0.1, 0.25, 0.4, 0.55, 0.3]
    votes, truth = crowd(600, 0, costs)
    true = [cs.Texts().distance(votes.labels[:, k], truth).mean() for k in range(5)]
    model = fitted(cs.Texts(), votes)
    assert model.expected_cost_ == pytest.approx(np.array(true), abs=0.04)
    assert np.argsort(model.weight_).tolist() == [3, 2, 4, 1, 0]


def test_labels_are_better_than_the_best_vote():
    votes, truth = crowd(150, 1, [0.3, 0.4, 0.5, 0.45, 0.35])
    space = cs.Texts()
    written, picked = fitted(space, votes), fitted(cs.Texts(write=False), votes)
    own, best = (space.distance(space.as_batch(model.predict(votes)), truth).mean() for model in (written, picked))
    # over seeds 0 to 4: written .06 to .09, picked .25 to .28
    assert own < 0.6 * best


def test_the_label_says_whether_its_text_is_new():
    rows = [["the cat sat here", "the cat sat there now", "a cat sat here now"], ["one two", "one two", "three four"]]
    ends = ["more", "more", "less"]
    votes = rows + [[f"word{k} and {ends[(k + shift) % 3]}" for shift in range(3)] for k in range(21)]
    model = fitted(cs.Texts(), votes)
    belief = model.posterior(votes)
    assert belief.labels[:2].tolist() == ["the cat sat here now", "one two"]
    assert belief.details["new_text"][:2].tolist() == [True, False]
    assert belief.details["expected_distance"][1] == pytest.approx(model.weight_[2] / model.weight_.sum(), abs=0.01)
    only = fitted(cs.Texts(write=False), votes).posterior(votes)
    assert not only.details["new_text"].any()
    assert only.labels[0] in rows[0]


def test_a_text_written_by_gleu_is_never_further_from_the_votes_than_the_best_vote():
    votes, _ = crowd(40, 5, [0.3, 0.4, 0.5, 0.45, 0.35])
    written, picked = (fitted(cs.Texts("gleu", write=write), votes).posterior(votes) for write in (True, False))
    assert (written.details["expected_distance"] <= picked.details["expected_distance"] + 1e-9).all()
    assert written.details["new_text"].any()


def test_a_distance_of_the_user_is_searched_with():
    def gap(left, right):
        one, two = set(left.split()), set(right.split())
        return len(one ^ two) / max(len(one | two), 1)

    rest = [[f"k{i} v", f"k{i} v", f"k{i} w"] for i in range(20)]
    votes = [["a b c", "a b d", "a x c"], ["p q", "p q", "r q"], *rest]
    assert fitted(cs.Texts(gap), votes).posterior(votes).labels[:2].tolist() == ["a b c", "p q"]


def test_copies_are_found_and_independent_sources_are_not_called_copies():
    votes, truth = crowd(60, 2, [0.8, 0.3, 0.35, 0.4, 0.45], copies=3)
    model = fitted(cs.Texts(), votes)
    group = ["source 0", "source 5", "source 6", "source 7"]
    found = {frozenset(pair) for pair in model.source_model_.dependencies}
    assert found >= {frozenset((one, two)) for one in group for two in group if one < two}
    alone = fitted(cs.Texts(), votes, dependencies="none")
    space = cs.Texts()
    own, fooled = (space.distance(space.as_batch(one.predict(votes)), truth).mean() for one in (model, alone))
    assert own < 0.5 * fooled
    for seed in range(4):
        honest, _ = crowd(30, seed, [0.05] * 6)
        shared = fitted(space, honest).source_model_.correlation
        assert np.where(np.eye(6, dtype=bool), 0.0, shared).max() < 0.5


@pytest.mark.parametrize(
    ("label", "message"),
    [(b"text", "bytes, not text"), ("", "an empty text"), ("   ", "an empty text"), (3, "is a int, not a text")],
)
def test_a_wrong_text_is_refused_with_row_and_source_and_so_is_what_is_no_distance(label, message):
    labels = np.empty((2, 2), dtype=object)
    labels[:] = "some text"
    labels[1, 0] = label
    votes = cs.Votes.from_array(labels, sources=["ann", "bob"])
    with pytest.raises(InvalidLabelError, match=f"Row 1, source 'ann': .*{message}"):
        cs.LabelModel(cs.Texts()).fit(votes)
    with pytest.raises(DistanceError, match="neither 'words' nor 'gleu'"):
        cs.Texts(3)


def test_known_labels_alone_are_about_as_good_as_the_plain_vote():
    # 60 of 300 known. Over eight other draws the loss was .95 to 1.00 of that of the plain vote.
    votes, truth = crowd(300, 8, [0.1, 0.2, 0.35, 0.5, 0.6])
    space = cs.Texts()
    known = np.arange(300) < 60
    model = fitted(space, votes, method="labelled", gold=(truth, known))
    ours, plain = (
        space.distance(space.as_batch(labels[~known]), space.as_batch(truth[~known])).mean()
        for labels in (model.predict(votes), model.predict_baseline(votes))
    )
    assert ours < 1.3 * plain


@pytest.mark.parametrize("copies", [0, 2])
def test_confidence_is_the_share_of_chance_that_labels_remove(copies):
    # One good source of five makes texts that look surer than they are; 200 texts show the share to .03.
    votes, truth = crowd(200, 4, [0.75, 0.5, 0.6, 0.65, 0.7], copies)
    model = fitted(cs.Texts(), votes, random_state=0)
    removed = 1.0 - cs.Texts().cost(np.asarray(model.predict(votes), dtype=object), truth).mean()
    assert abs(model.confidence(votes).mean() - removed) < 0.1


TEXT = st.lists(st.integers(0, 3), max_size=7)


def flat(*texts):
    words = np.array([word for text in texts for word in text], dtype=np.int64)
    return words, np.cumsum([0, *map(len, texts)]).astype(np.int64)


@settings(deadline=None, max_examples=100)
@given(left=TEXT, right=TEXT)
def test_edit_distance_is_the_recursion(left, right):
    def between(i, j):
        if not i or not j:
            return i + j
        swap = between(i - 1, j - 1) + (left[i - 1] != right[j - 1])
        return swap if left[i - 1] == right[j - 1] else min(swap, between(i - 1, j) + 1, between(i, j - 1) + 1)

    assert edit_distance(flat(left)[0], flat(right)[0]) == between(len(left), len(right))


@settings(deadline=None, max_examples=100)
@given(left=TEXT, right=TEXT)
def test_gleu_counts_common_sequences_of_words(left, right):
    def grams(text):
        return Counter(tuple(text[i : i + n]) for n in range(1, 5) for i in range(len(text) - n + 1))

    common = (grams(left) & grams(right)).total()
    longest = max(grams(left).total(), grams(right).total())
    assert gleu_distance(flat(left)[0], flat(right)[0]) == pytest.approx(1 - common / longest if longest else 0.0)


def test_words_are_voted_place_by_place():
    # a b c d / a x c d / a b c: slot by slot a, b, c, d win
    words, starts = flat([0, 1, 2, 3], [0, 4, 2, 3], [0, 1, 2])
    slots, base = network(words[:4], 1 / 3, words, starts, np.array([1, 2]), np.ones(3) / 3, 5)
    assert heaviest_words(slots).tolist() == base.tolist() == [0, 1, 2, 3]
    heavy = np.array([0.2, 0.6, 0.2])
    slots, _ = network(words[4:8], 0.6, words, starts, np.array([0, 2]), heavy, 5)
    assert heaviest_words(slots).tolist() == [0, 4, 2, 3]


def test_neighbors_change_one_place_and_costs_are_shares_of_the_longer_text():
    words, starts = flat([0, 1], [0, 2], [0, 2])
    assert text_costs(words, starts, np.array([[0, 1]]), 0).tolist() == [0.5]
    found, ends = neighbors(*network(words[:2], 1e-6, words, starts, np.arange(3), np.ones(3) / 3, 3))
    assert [found[a:b].tolist() for a, b in pairwise(ends.tolist())] == [[0, 2]]
