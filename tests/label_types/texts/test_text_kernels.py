"""The kernels of texts, against brute force and numbers worked out by hand."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.label_types.texts.kernels import (
    edit_distance,
    gleu_distance,
    heaviest_words,
    neighbors,
    network,
    text_costs,
)

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
