"""Judges of an arena: whose votes are shared, what is said where weighing changes much, and open ranks."""

from __future__ import annotations

import warnings

import numpy as np

import consilience as cs


def arena_of(skills, seed=0, per_judge=200, items=12, copied=()):
    """Return votes of judges with these discriminations on the same pairs; `copied` ones repeat the judge before."""
    rng = np.random.default_rng(seed)
    score = np.linspace(-1.5, 1.5, items)
    first = rng.integers(items, size=per_judge)
    second = (first + rng.integers(1, items, size=per_judge)) % items
    rows, wins = [], np.zeros(per_judge, dtype=bool)
    for judge, skill in enumerate(skills):
        own = rng.random(per_judge) < 1.0 / (1.0 + np.exp(-skill * (score[first] - score[second])))
        wins = wins if judge in copied else own
        rows += [
            {"judge": f"j{judge}", "first": f"m{one}", "second": f"m{two}", "outcome": "first" if won else "second"}
            for one, two, won in zip(first.tolist(), second.tolist(), wins.tolist(), strict=True)
        ]
    return cs.tables.read_preferences(rows)


def fitted_quietly(model, votes):
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return model.fit(votes)


def codes_of(model):
    return {finding.code for finding in model.diagnostics_}


def test_a_ranking_that_weighing_turns_around_is_told():
    votes = arena_of([2.0, 2.0, -1.5, -1.2])
    assert "disagrees-with-plain-vote" in codes_of(fitted_quietly(cs.LabelModel(cs.Preferences()), votes))
    assert "disagrees-with-plain-vote" not in codes_of(
        fitted_quietly(cs.LabelModel(cs.Preferences()), arena_of([2.0, 2.0, 2.0]))
    )


def test_copies_share_a_vote_and_pairs_that_the_user_names():
    votes = arena_of([1.0, 1.0, 1.0, 1.0, 1.0], copied=(1,))
    learned, named = (
        fitted_quietly(cs.LabelModel(cs.Preferences(), dependencies=told), votes).source_model_.parameters.share
        for told in ("learn", [("j2", "j3")])
    )
    assert (learned[:2] < 0.7).all()
    assert (learned[2:] > 0.85).all()
    assert named[4] > 0.85
    assert (named[[2, 3]] < 1.0).all()


def test_one_comparison_leaves_both_ranks_open():
    votes = cs.tables.read_preferences([{"judge": "ann", "first": "a", "second": "b", "outcome": "first"}])
    model = fitted_quietly(cs.LabelModel(cs.Preferences(), method="majority"), votes)
    table = cs.preferences.standings(model, votes).to_pydict()
    assert table["candidate"] == ["a", "b"]
    assert (table["rank_low"], table["rank_high"]) == ([1, 1], [2, 2])
