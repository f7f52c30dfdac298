"""Hundreds of sources of rankings of which few vote on an item: from vote to vote, and in little memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.sparse import csr_array

import consilience as cs
from consilience import arrays, encoding
from consilience.families.base import Chunk
from consilience.families.mallows import MallowsFamily
from consilience.families.mallows_problem import expected_agreement
from consilience.families.pair_fits import pair_slopes
from consilience.kernels.mallows import sample_mallows
from consilience.label_types.vote_correlation import discount_correlated, gls_weights
from consilience.solvers.many_pairs import minimise_many

ITEMS = 4


def rankers(n, m, voters, seed=0, copies=0):
    """Return votes of sources of different weight; the last ones repeat the one before them where both vote."""
    rng = np.random.default_rng(seed)
    truth = np.argsort(rng.random((n, ITEMS)), axis=1)
    weight = rng.uniform(0.3, 2.0, m)
    everything = np.ones((n, ITEMS), dtype=bool)
    votes = [sample_mallows(truth, everything, value, rng.random((n, ITEMS))).astype(np.int8) for value in weight]
    for source in range(m - copies, m):
        votes[source] = votes[m - copies - 1]
    observed = rng.random((n, m)) < voters / m
    observed[:, m - copies - 1 :] |= copies > 0
    names = tuple(f"judge{source}" for source in range(m))
    return cs.Votes(np.stack(votes, axis=1), observed, names, np.arange(n)), truth, weight


def as_one_chunk(votes):
    known = np.arange(len(votes)) % 7 == 0
    truth = np.tile(np.arange(ITEMS), (len(votes), 1)).astype(np.int16)
    return Chunk(votes.labels, votes.observed, np.arange(len(votes)) % 32, truth, known, votes.items)


@pytest.mark.parametrize("dependent", ["nobody", "correlated", "agreeing"])
def test_numbers_are_the_same_whether_votes_are_moved_together_or_not(dependent, monkeypatch):
    votes, _, weight = rankers(300, 80, 6)
    votes.labels[5, :, 1] = votes.labels[5, :, 0]  # ties, and items that some did not see
    votes.labels[::3, ::2, 2] = -1
    family, chunk = MallowsFamily(ITEMS), as_one_chunk(votes)
    parameters = family.from_weights(weight, None)
    if dependent == "correlated":
        parameters.correlation[3, 4] = parameters.correlation[4, 3] = 0.7
    elif dependent == "agreeing":
        agreement = expected_agreement(family, weight)
        agreement[3, 4] = agreement[4, 3] = 0.95
        np.fill_diagonal(agreement, 1.0)
        object.__setattr__(parameters, "agreement", agreement)

    def numbers():
        sums = family.statistics(chunk).parts | family.round(parameters, chunk).parts
        belief = family.posterior(parameters, chunk.labels, chunk.observed, "auto")
        return sums | {"labels": belief.labels, "confidence": belief.confidence}

    assert arrays.few_votes(chunk.observed)
    few = numbers()
    monkeypatch.setattr(arrays, "MANY_SOURCES", 1_000)
    many = numbers()
    assert few.keys() == many.keys()
    for name, value in few.items():
        assert np.allclose(value, many[name], rtol=1e-9, atol=1e-9), name


def test_a_crowd_of_rankers_is_told_apart_and_called_independent():
    # 2,500 items, 150 sources, 15 votes an item: 250 rankings a source, so that a weight is known to about 0.1 of a
    # spread of 0.5; the correlation falls below 0.9 by no chance worth naming.
    votes, truth, weight = rankers(2_500, 150, 15)
    model = cs.LabelModel(cs.Rankings(ITEMS), random_state=0).fit(votes)
    assert np.corrcoef(model.weight_, weight)[0, 1] > 0.9
    assert model.source_model_.dependencies == ()
    found = model.predict(votes)
    plain = model.predict_baseline(votes)
    assert (found == truth).all(axis=1).mean() > (plain == truth).all(axis=1).mean()


def test_nothing_of_the_size_of_pairs_by_sources_or_by_groups_is_kept_of_very_many_rankers():
    votes, _, weight = rankers(200, 300, 15)
    sums = MallowsFamily(ITEMS).statistics(as_one_chunk(votes))
    assert max(part.size for part in sums.parts.values()) <= (ITEMS + 1) ** 2 * 300 * 299 // 2
    left, right = np.triu_indices(300, 1)
    slopes = pair_slopes(weight[right], weight[left], left, right, 300)
    assert slopes.nnz == 2 * len(left)
    assert slopes[[7]].toarray()[0, [left[7], right[7]]] == pytest.approx([weight[right[7]], weight[left[7]]])


def test_copies_in_a_crowd_of_rankers_are_found():
    # Three judges who repeat a fourth on every item they share, all 600 of them: pairs beyond any doubt.
    votes, _, _ = rankers(600, 70, 12, seed=3, copies=3)
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="judge66"):
        model = cs.LabelModel(cs.Rankings(ITEMS), random_state=0).fit(votes)
    copied = {f"judge{source}" for source in (66, 67, 68, 69)}
    assert {name for pair in model.source_model_.dependencies for name in pair} == copied


def test_steps_for_many_pairs_end_where_a_general_solver_ends():
    rng = np.random.default_rng(1)
    m = 16
    left, right = np.triu_indices(m, 1)
    truth = rng.uniform(0.2, 1.5, m)
    target = truth[left] * truth[right] + 0.05 * rng.normal(size=len(left))
    target[:4] += 3.0  # pairs that agree for another reason
    error, limits, spread = np.full(len(left), 0.15), (np.full(m, 0.3), np.full(m, 5.0)), 3.0
    pull = (np.eye(m) - 1.0 / m) / spread

    def residual(x):
        return np.concatenate([(target - x[left] * x[right]) / error, pull @ x])

    def loss(squared):
        one = 1.0 + squared[: len(left)]
        rest = squared[len(left) :]
        return np.stack(
            [
                np.concatenate([np.log(one), rest]),
                np.concatenate([1.0 / one, np.ones_like(rest)]),
                np.concatenate([-1.0 / one**2, np.zeros_like(rest)]),
            ]
        )

    found = minimise_many(
        lambda x: x[left] * x[right],
        lambda x: csr_array(pair_slopes(x[right], x[left], left, right, m)),
        *(target, error, np.ones(m), limits, spread),
    )
    expected = least_squares(residual, np.ones(m), bounds=limits, loss=loss)
    assert found.status == 1
    assert found.cost == pytest.approx(expected.cost, abs=1e-2)
    assert found.x == pytest.approx(expected.x, abs=2e-3)
    assert found.x.min() == 0.3  # some would like to go below the bound


def test_shares_of_few_voters_are_those_of_all_sources():
    rng = np.random.default_rng(2)
    observed = rng.random((40, 12)) < 0.3
    correlation = np.clip(rng.normal(0.2, 0.2, (12, 12)), 0.0, 0.9)
    correlation = (correlation + correlation.T) / 2.0
    moments = correlation + np.eye(12) * (1.0 - np.diag(correlation))
    quality = rng.uniform(0.2, 0.9, 12)
    who = np.argsort(~observed, axis=1, kind="stable")
    seen = np.take_along_axis(observed, who, axis=1)
    shares = np.take_along_axis(discount_correlated(observed, correlation), who, axis=1)
    assert discount_correlated(seen, correlation, who) == pytest.approx(shares)
    linear, together = gls_weights(observed, moments, quality)
    moved, also = gls_weights(seen, moments, quality, who)
    assert moved == pytest.approx(np.take_along_axis(linear, who, axis=1))
    assert also == pytest.approx(together)


def test_votes_of_few_rankers_are_taken_as_they_are_or_closed_up_where_they_have_gaps(monkeypatch):
    votes, _, _ = rankers(100, 80, 6)
    space = cs.Rankings(ITEMS, allow_ties=True)
    assert encoding.encode(votes, space) is votes or encoding.encode(votes, space).labels is votes.labels
    monkeypatch.setattr(encoding, "ROWS", 40)
    row, source = (int(place[-1]) for place in np.nonzero(votes.observed))
    votes.labels[row, source] = [0, 1, 1, 3]  # as sports count, in the second chunk
    encoded = encoding.encode(votes, space)
    assert encoded.labels[row, source].tolist() == [0, 1, 1, 2]
    assert np.array_equal(encoded.labels[:40][votes.observed[:40]], votes.labels[:40][votes.observed[:40]])
    votes.labels[row, source] = [0, 9, 1, 3]
    with pytest.raises(cs.exceptions.InvalidLabelError, match=f"Row {row}, source 'judge{source}'"):
        encoding.encode(votes, space)
