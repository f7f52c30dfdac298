"""Several votes of one source on one item."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import InvalidVotesError
from consilience.tables.names import check_unique_ids

ROWS = [("x1", "ann", 3.0), ("x1", "ann", 5.0), ("x1", "bob", 4.0), ("x2", "ann", None), ("x2", "ann", 1.0)]


def test_repeated_votes_are_refused_with_what_can_be_done():
    with pytest.raises(InvalidVotesError, match=r'votes twice on item .x1.*repeats="average".*repeats="separate"'):
        cs.Votes.from_long(ROWS)


def test_numbers_are_averaged_over_the_votes_that_are_there():
    votes = cs.Votes.from_long(ROWS, repeats="average")
    assert votes.sources == ("ann", "bob")
    np.testing.assert_array_equal(votes.observed, [[True, True], [True, False]])
    np.testing.assert_array_equal(votes.labels[votes.observed], [4.0, 4.0, 1.0])
    assert votes.repeated_pairs == ()


def test_what_is_no_number_has_no_average():
    with pytest.raises(InvalidVotesError, match="needs labels that are numbers, not str"):
        cs.Votes.from_long([("x", "ann", "cat"), ("x", "ann", "dog")], repeats="average")


def test_runs_become_sources_in_the_order_of_the_rows():
    votes = cs.Votes.from_long(ROWS, repeats="separate")
    assert votes.sources == ("ann #1", "ann #2", "bob")
    np.testing.assert_array_equal(votes.observed, [[True, True, True], [False, True, False]])
    np.testing.assert_array_equal(votes.labels[votes.observed], [3.0, 5.0, 4.0, 1.0])
    assert votes.repeated_pairs == (("ann #1", "ann #2"),)


def test_pairs_of_runs_follow_the_sources():
    rows = [("x", "ann", 1), ("x", "ann", 2), ("x", "ann", 3), ("x", "bob", 1)]
    votes = cs.Votes.from_long(rows, repeats="separate")
    assert len(votes.repeated_pairs) == 3
    assert votes[:1].repeated_pairs == votes.repeated_pairs
    assert votes.select(["ann #1", "ann #3", "bob"]).repeated_pairs == (("ann #1", "ann #3"),)
    other = cs.Votes.from_long([("y", "ann", 1), ("y", "bob", 2)], repeats="separate")
    assert cs.Votes.concatenate([votes, other]).repeated_pairs == votes.repeated_pairs


def test_without_repeats_nothing_changes():
    rows = [("x", "ann", 1), ("x", "bob", 2), ("y", "ann", 3)]
    plain = cs.Votes.from_long(rows)
    for repeats in ("average", "separate"):
        votes = cs.Votes.from_long(rows, repeats=repeats)
        assert votes.equals(plain)
        assert votes.repeated_pairs == ()


def test_a_run_may_not_take_the_name_of_another_source():
    rows = [("x", "ann", 1), ("x", "ann", 2), ("x", "ann #2", 3)]
    with pytest.raises(InvalidVotesError, match="'ann #2' is the name of another source"):
        cs.Votes.from_long(rows, repeats="separate")


def test_an_unknown_way_is_refused():
    with pytest.raises(InvalidVotesError, match="'refuse', 'average', 'separate'"):
        cs.Votes.from_long(ROWS, repeats="last")


def test_runs_of_one_judge_do_not_outvote_the_others():
    # Three runs of a judge share their error; told so, the model is near the one that sees the mean of the runs.
    rng = np.random.default_rng(0)
    truth = rng.normal(size=800)
    judge = truth + rng.normal(0, 1.0, 800)
    rows = {"item": [], "source": [], "label": []}
    for name, votes in (("a", truth + rng.normal(0, 0.7, 800)), ("b", truth + rng.normal(0, 0.7, 800))):
        rows["item"] += range(800)
        rows["source"] += [name] * 800
        rows["label"] += votes.tolist()
    for _ in range(3):
        rows["item"] += range(800)
        rows["source"] += ["judge"] * 800
        rows["label"] += (judge + rng.normal(0, 0.2, 800)).tolist()
    space = cs.Scores(mean=0.0, variance=1.0)
    averaged = cs.Votes.from_long(rows, repeats="average")
    apart = cs.Votes.from_long(rows, repeats="separate")
    best = cs.LabelModel(space).fit(averaged).predict(averaged)
    told = cs.LabelModel(space, dependencies=apart.repeated_pairs).fit(apart).predict(apart)
    assert np.mean((told - truth) ** 2) < 1.1 * np.mean((best - truth) ** 2)


def test_rows_of_one_item_are_refused_where_ids_should_differ_and_say_where_they_may_not():
    with pytest.raises(InvalidVotesError, match=r"from_matrix\(table, items=ids\)"):
        check_unique_ids(np.array(["x", "y", "x"]))
    votes = cs.Votes.from_matrix([[0, 1], [1, 1]], items=["x", "x"])
    assert votes.items.tolist() == ["x", "x"]
