"""Chains over positions against enumeration of all sequences, and counts of pairs against a loop."""

from itertools import pairwise, product

import numpy as np
import pytest

from consilience.label_types.tags.counts import best_paths, chain_round, count_pairs, joint_answers


def chain_marginals(scores, starts, initial, transition):
    return chain_round(scores, starts, initial, transition)[0]


def random_chain(seed: int, k: int, forbidden: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    initial, transition = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    transition[(rng.random((k, k)) < forbidden) & ~np.eye(k, dtype=bool)] = 0.0
    return initial, transition / transition.sum(axis=1, keepdims=True)


def enumerate_all(scores, initial, transition):
    """Return every sequence with its joint probability."""
    length, k = scores.shape
    paths = list(product(range(k), repeat=length))
    weight = []
    for path in paths:
        value = initial[path[0]]
        for before, after in pairwise(path):
            value *= transition[before, after]
        weight.append(value * np.exp(scores[np.arange(length), path].sum()))
    return np.array(paths), np.array(weight)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_marginals_and_counts_are_those_of_all_sequences(seed, forbidden):
    k, lengths = 3, [4, 1, 5]
    initial, transition = random_chain(seed, k, forbidden)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = np.random.default_rng(seed + 100).normal(0.0, 2.0, (starts[-1], k))
    marginals, first, steps = chain_round(scores, starts, initial, transition)
    expected, expected_first, expected_steps = np.zeros_like(scores), np.zeros(k), np.zeros((k, k))
    for begin, end in pairwise(starts):
        paths, weight = enumerate_all(scores[begin:end], initial, transition)
        weight = weight / weight.sum()
        for path, mass in zip(paths, weight, strict=True):
            expected[np.arange(begin, end), path] += mass
            expected_first[path[0]] += mass
            for before, after in pairwise(path):
                expected_steps[before, after] += mass
    np.testing.assert_allclose(marginals, expected, atol=1e-12)
    np.testing.assert_allclose(first, expected_first, atol=1e-12)
    np.testing.assert_allclose(steps, expected_steps, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_path_is_the_most_probable_of_all_sequences(seed):
    initial, transition = random_chain(seed, 3, 0.3)
    scores = np.random.default_rng(seed).normal(0.0, 1.0, (5, 3))
    paths, weight = enumerate_all(scores, initial, transition)
    found = best_paths(scores, np.array([0, 5]), initial, transition)
    np.testing.assert_array_equal(found, paths[np.argmax(weight)])


def test_empty_sequences_are_skipped_and_evidence_against_all_that_is_possible_starts_anew():
    initial, transition = random_chain(0, 2)
    scores, starts = np.zeros((2, 2)), np.array([0, 0, 2, 2])
    np.testing.assert_allclose(chain_marginals(scores, starts, initial, transition)[0], initial)
    assert best_paths(scores, starts, initial, transition).shape == (2,)
    # Tag 1 can never follow tag 0, yet the evidence is certain of just that.
    scores = np.array([[0.0, -1e9], [-1e9, 0.0]])
    marginals = chain_marginals(scores, np.array([0, 2]), np.array([1.0, 0.0]), np.eye(2))
    np.testing.assert_allclose(marginals, [[1.0, 0.0], [0.0, 1.0]])


def test_long_sequences_do_not_underflow():
    initial, transition = random_chain(1, 4)
    scores = np.random.default_rng(0).normal(-50.0, 3.0, (5000, 4))
    marginals = chain_marginals(scores, np.array([0, 5000]), initial, transition)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)


def test_pairs_are_counted_as_by_a_loop():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, size=(40, 4)).astype(np.int8)
    kind, starts = np.arange(40) % 2, np.array([0, 7, 7, 20, 40])
    joint, found = joint_answers(codes, kind, 2, 3), count_pairs(codes, starts)
    for a, b in product(range(4), repeat=2):
        both = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        asked = np.array([both[i:j].sum() for i, j in pairwise(starts)])
        alike = np.array([(both & (codes[:, a] == codes[:, b]))[i:j].sum() for i, j in pairwise(starts)])
        expected = [(asked > 0).sum(), asked.sum(), alike.sum(), asked @ asked, asked @ alike, alike @ alike]
        np.testing.assert_array_equal(found[:, a, b], expected)
        assert joint[1, a, 2, b, 0] == (both & (kind == 1) & (codes[:, a] == 2) & (codes[:, b] == 0)).sum()
