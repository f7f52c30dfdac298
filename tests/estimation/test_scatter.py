"""The scatter of agreement from item to item: who repeats whom word for word."""

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.arrays import FloatArray
from consilience.estimation.pair_table import PairTable, agreement_sums, agreement_table
from consilience.estimation.trust import trust

ITEMS, LEVEL = 200, 0.166
COPIES, EXPERTS = slice(0, 5), slice(5, 8)


def two_camps() -> PairTable:
    """Return five sources that agree by .3, three that agree by .49, and hardly anything between the two."""
    value = np.full((8, 8), 0.02)
    value[COPIES, COPIES], value[EXPERTS, EXPERTS] = 0.3, 0.49
    np.fill_diagonal(value, 1.0)
    error = np.sqrt((1.0 - value**2) * LEVEL / ITEMS)
    return PairTable(value, np.where(np.eye(8, dtype=bool), np.inf, error), np.full((8, 8), float(ITEMS)))


def as_independent(value: FloatArray) -> FloatArray:
    return LEVEL * (1.0 - value**2)


def test_agreement_that_scatters_like_copies_shows_copies() -> None:
    table = two_camps()
    scatter = as_independent(table.value)
    # Sources at chance that repeat 30% of the votes: .7 * .166 + .3 * .7 * 1^2 = .326.
    scatter[COPIES, COPIES] = 0.326
    found = trust(replace(table, scatter=scatter))
    quality = np.tanh(found.u)
    assert found.together[0, 1] > 0.9 > 0.3 > found.together[5, 6]
    assert np.abs(quality[COPIES]).max() < 0.2
    assert quality[EXPERTS].min() > 0.5


def test_agreement_that_scatters_alike_everywhere_is_no_reason_to_suspect_anybody() -> None:
    table = two_camps()
    before, after = trust(table), trust(replace(table, scatter=as_independent(table.value)))
    assert after.together[0, 1] <= before.together[0, 1] + 0.05


def test_scatter_of_two_classes_says_nothing() -> None:
    # An agreement of -1 or 1 has the variance 1 - y^2, whoever repeats whom.
    table = two_camps()
    table = replace(table, error=table.error / np.sqrt(LEVEL))
    before, after = trust(table), trust(replace(table, scatter=1.0 - table.value**2))
    assert after.together == pytest.approx(before.together, abs=0.1)


def test_votes_that_never_differ_have_no_scatter_to_learn_from() -> None:
    table = replace(two_camps(), scatter=np.zeros((8, 8)))
    assert trust(table).together == pytest.approx(trust(two_camps()).together)


def test_the_table_has_the_scatter_in_units_of_agreement() -> None:
    close = np.array([1.0, 0.5, 1.0, 0.5])
    sums = agreement_sums(lambda rows, a, b: close[rows], np.ones((4, 2), dtype=bool))
    assert agreement_table(sums).scatter == pytest.approx(np.array([[0.0, 0.0625], [0.0625, 0.0]]))
    halved = agreement_table(sums, lambda mean, error: (2.0 * mean - 1.0, 2.0 * error)).scatter
    assert halved is not None
    assert halved[0, 1] == pytest.approx(0.25)


def rankings(knows: FloatArray, seed: int, items: int = 250) -> FloatArray:
    """Return rankings of five by sources that add noise to scores, ``(items, sources, 5)``."""
    rng = np.random.default_rng([31, seed])
    score = rng.normal(size=(items, 1, 5)) + rng.normal(size=(items, len(knows), 5)) / knows[:, None]
    return np.asarray(cs.Rankings.positions_from_scores(score))


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_a_poor_source_are_told_from_experts(seed: int) -> None:
    votes = rankings(np.array([0.05] * 5 + [2.0] * 3), seed)
    rng = np.random.default_rng([32, seed])
    for copy in range(1, 5):
        same = rng.random(len(votes)) < 0.5
        votes[same, copy] = votes[same, 0]
    model = cs.LabelModel(cs.Rankings(5)).fit(cs.Votes.from_array(votes.astype(np.int64)))
    assert model.expected_cost_[EXPERTS].max() < model.expected_cost_[COPIES].min() - 1.0


def test_votes_that_never_change_are_fitted() -> None:
    """Agreement that varies by rounding errors alone, and pairs that always agree, leave nothing to divide by."""
    spans = [cs.elements.bio_to_spans(tags) for tags in (["B-PER", "I-PER", "O"],) * 2 + (["O", "B-PER", "O"],)]
    model = cs.LabelModel(cs.Spans(["PER"])).fit(cs.Votes.from_matrix([spans] * 30))
    assert np.isfinite(model.expected_cost_).all()
