"""The table before any model: worked out by hand, and by brute force for every kind of label."""

import numpy as np
import pytest

import consilience as cs

VOTES = [["a", "a", "b"], ["b", None, "b"], ["b", "a", None], [None, None, "a"]]
SPACE = cs.Classes(["a", "b"])


def test_the_numbers_are_those_worked_out_by_hand():
    columns = cs.summarize(VOTES, SPACE, gold=["a", "b", None, "b"]).columns
    assert (columns["votes"], columns["coverage"]) == ([3, 2, 3], [0.75, 0.5, 0.75])
    assert columns["overlaps"] == [0.75, 0.5, 0.5]
    # Source 0: in conflict with source 2 on item 0 and with source 1 on item 2.
    assert columns["conflicts"] == [0.5, 0.5, 0.25]
    # Source 0: a-a and a-b, b-b, b-a. Source 1: a-a and a-b, a-b. Source 2: b-a and b-a, b-b.
    assert columns["cost_to_others"] == pytest.approx([2 / 4, 2 / 3, 2 / 3])
    assert (columns["labels"], columns["polarity"]) == ([2, 1, 2], ["a, b", "a", "a, b"])
    assert columns["known"] == [2, 1, 3]
    assert columns["true_cost"] == pytest.approx([0.0, 0.0, 2 / 3])
    assert columns["accuracy"] == pytest.approx([1.0, 1.0, 1 / 3])


def test_without_a_space_labels_are_equal_or_not():
    table = cs.summarize(VOTES)
    with_space = cs.summarize(VOTES, SPACE)
    for name in table.columns:
        assert table.columns[name] == with_space.columns[name]
    arrays = cs.Votes.from_array([[[0, 1], [0, 1]], [[1, 0], [0, 1]]])
    assert cs.summarize(arrays).columns["conflicts"] == [0.5, 0.5]
    ragged = np.empty((1, 2), dtype=object)
    ragged[0, 0], ragged[0, 1] = [1], [1, 2]
    assert cs.summarize(cs.Votes.from_array(ragged)).columns["labels"] == [1, 1]


def test_a_source_alone_and_one_that_is_silent_have_no_cost():
    votes = cs.Votes.from_array([[0, None], [1, None]])
    columns = cs.summarize(votes, cs.Classes(2), gold=[None, None]).columns
    assert (columns["cost_to_others"], columns["conflicts"]) == ([None, None], [0.0, 0.0])
    assert (columns["labels"], columns["polarity"]) == ([2, 0], ["0, 1", "none"])
    assert (columns["true_cost"], columns["accuracy"]) == ([None, None], [None, None])
    assert " - " in repr(cs.summarize(votes, cs.Classes(2)))


SPACES = {
    "classes": cs.Classes(3),
    "graph": cs.FiniteMetric([(0, 1), (1, 2), (2, 3)]),
    "scores": cs.Scores(),
    "rankings": cs.Rankings(4),
    "metric": cs.Metric(lambda left, right: abs(left - right), candidates=[0.0, 1.0, 5.0]),
}


@pytest.mark.parametrize("kind", SPACES)
def test_costs_and_conflicts_are_those_of_every_pair_of_votes(kind):
    space = SPACES[kind]
    rng = np.random.default_rng(3)
    n, m = 40, 4
    truth = space.random(n, rng)
    labels = np.stack([space.random(n, rng) for _ in range(m)], axis=1)
    labels[:, 1] = labels[:, 0]
    observed = rng.random((n, m)) < 0.7
    votes = cs.Votes(labels, observed, tuple("abcd"), np.arange(n))
    columns = cs.summarize(votes, space, gold=truth).columns
    for source in range(m):
        apart, conflict, wrong = [], 0, []
        for row in range(n):
            if not observed[row, source]:
                continue
            others = [other for other in range(m) if other != source and observed[row, other]]
            costs = [float(space.cost(labels[row : row + 1, source], labels[row : row + 1, o])[0]) for o in others]
            apart += costs
            conflict += any(cost > 0 for cost in costs)
            wrong.append(float(space.cost(labels[row : row + 1, source], truth[row : row + 1])[0]))
        assert columns["cost_to_others"][source] == pytest.approx(np.mean(apart))
        assert columns["conflicts"][source] == pytest.approx(conflict / n)
        assert columns["true_cost"][source] == pytest.approx(np.mean(wrong))
    assert ("accuracy" in columns) == (space.n_labels is not None)


def test_soft_votes_are_as_far_apart_as_their_probabilities_and_many_labels_are_counted():
    votes = cs.Votes.from_array([[[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.0, 1.0]]])
    columns = cs.summarize(votes, cs.Classes(2), gold=[0, 1]).columns
    assert columns["cost_to_others"] == pytest.approx([0.35, 0.35])
    assert columns["true_cost"] == pytest.approx([0.35, 0.0])
    many = cs.summarize(np.arange(8)[:, None] % 6, cs.Classes(6)).columns
    assert many["polarity"] == ["6 labels"]  # counted instead of listed
