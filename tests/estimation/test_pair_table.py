"""Pair tables: what the agreements of one source with several others have in common."""

import numpy as np
import pytest

import consilience as cs
from consilience.estimation.pair_table import agreement_sums, agreement_table
from consilience.estimation.protocol import Chunk


def table(votes, observed):
    return agreement_table(agreement_sums(lambda rows, a, b: -((votes[rows, a] - votes[rows, b]) ** 2), observed))


@pytest.mark.parametrize("seen", [1.0, 0.7])
def test_errors_are_widened_by_what_agreements_of_a_source_share(seen):
    # The square of a difference of normal errors has the variance 8, of which the errors of either source make 2: the
    # correlation of two agreements of a source is 1/4. Of 7 sources least squares over all pairs keep g = .183 of the
    # variance of a pair, so that the true one is 1 + (1/g - 2) / 4 = 1.86 times as large.
    rng = np.random.default_rng(0)
    votes, observed = rng.normal(size=(20_000, 7)), rng.random((20_000, 7)) < seen
    widened = table(votes, observed).widened
    assert widened == pytest.approx(np.full(7, np.sqrt(1.86 if seen == 1.0 else 1.45)), rel=0.08)


def test_widened_errors_are_those_of_repeated_draws():
    rng = np.random.default_rng(1)
    found, stated = [], []
    for _ in range(400):
        one = table(rng.normal(size=(60, 5)), np.ones((60, 5), dtype=bool))
        total = -one.value[np.triu_indices(5, 1)].sum()
        cost = (-(one.value.sum(axis=1) - 1.0) - total / 4.0) / 3.0  # least squares of cost_a + cost_b
        found.append(cost[0])
        g = (4.0 - 2.0 + 5.0 / 8.0) / 9.0
        stated.append(np.sqrt(g) * np.median(one.error[np.triu_indices(5, 1)]) * one.widened[0])
    assert np.mean(stated) == pytest.approx(np.std(found), rel=0.15)


def test_two_sources_and_constant_votes_are_not_widened():
    alone = table(np.random.default_rng(2).normal(size=(50, 2)), np.ones((50, 2), dtype=bool))
    same = table(np.zeros((50, 4)), np.ones((50, 4), dtype=bool))
    assert np.array_equal(alone.widened, np.ones(2))
    assert np.array_equal(same.widened, np.ones(4))


def test_similar_labels_have_the_sums_of_any_agreement():
    # known labels are no partners
    rng = np.random.default_rng(3)
    labels = rng.choice(np.array(["a b", "a c d", "b", "c d e"], dtype=object), (40, 4))
    observed, known = rng.random((40, 4)) < 0.7, rng.choice(np.array(["a b", "b"], dtype=object), 40)
    law = cs.Texts().law
    found = law.statistics(Chunk(labels, observed, known, np.arange(40) < 10))
    brute = agreement_sums(lambda rows, a, b: law.similarity(law.cost(labels[rows, a], labels[rows, b])), observed)
    for name in ("agreement", "agreement_count", "agreement_rows"):
        assert found[name] == pytest.approx(brute[name])


def test_pairs_borrow_scatter_on_the_scale_of_agreement():
    """Two sources always agree; the distances to the third are 1 and 3 in turn, 2 on average and 1 around it."""
    votes = np.column_stack([np.zeros(10), np.zeros(10), np.tile([1.0, 3.0], 5)])
    sums = agreement_sums(lambda rows, a, b: np.abs(votes[rows, a] - votes[rows, b]), np.ones((10, 3), dtype=bool))
    found = agreement_table(sums, lambda mean, deviation: (np.exp(-mean), np.exp(-mean) * deviation))
    assert found.value[0] == pytest.approx([1.0, 1.0, np.exp(-2.0)])
    pooled = 2.0 * np.exp(-4.0) / 3.0  # as much from 10 items as from 10 borrowed ones
    assert found.error[0, 1:] == pytest.approx(np.sqrt([pooled / 20.0, (np.exp(-4.0) + pooled) / 20.0]))
