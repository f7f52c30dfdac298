"""Finite metric spaces: moments against enumeration, labels against Bayes' rule, recovery, priors, known labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from simulated import GivenWeights, fitted

import consilience as cs
from consilience.estimation.hypotheses import Problem
from consilience.partitions.base import Moments

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
LADDER = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))


def ring(size):
    gap = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(gap, size - gap).astype(float)


@given(st.integers(0, 1000), st.integers(2, 6), st.floats(-2.0, 2.0))
def test_the_expected_cost_is_that_of_the_law_and_has_an_inverse(seed, count, weight):
    points = np.random.default_rng(seed).normal(size=(count, 2))
    matrix = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    law, likely = cs.FiniteMetric(matrix).law, np.exp(-weight * matrix)
    cost = law.expected_cost(np.array([weight]))
    assert cost[0] == pytest.approx(((likely * matrix).sum(axis=1) / likely.sum(axis=1)).mean())
    assert law.expected_cost(law.weight_from_cost(cost)) == pytest.approx(cost)
    beyond = law.weight_from_cost(np.array([-1.0, 0.0, 1e9, np.inf]))
    assert np.isfinite(beyond).all()
    assert (beyond[:2] > 0).all() and (beyond[2:] < 0).all()  # noqa: PT018


@pytest.mark.parametrize("prior", ["uniform", "gibbs", (0.3, 0.1, 0.1, 0.1, 0.1, 0.3)])
def test_posterior_equals_bayes_rule_by_enumeration(prior):
    weights = (0.4, 1.1, 2.0)
    votes = np.array([[0, 3, 5], [2, 2, -1], [5, 0, 0]])
    model = fitted(cs.FiniteMetric(LADDER), votes, method=GivenWeights(*weights), prior=prior)
    for row, item in enumerate(votes):
        joint = np.array(prior) if isinstance(prior, tuple) else np.ones(6)
        for vote, weight in zip(item, weights, strict=True):
            given = np.exp(-weight * LADDER) if prior == "gibbs" else softmax(-weight * LADDER, axis=1)
            joint = joint * given[:, vote] if vote >= 0 else joint
        assert np.allclose(model.predict_proba(votes)[row], joint / joint.sum())


def test_decoders_minimize_what_they_promise():
    space = cs.FiniteMetric(LADDER)
    rng = np.random.default_rng(0)
    votes = cs.simulate(space, rng.integers(6, size=300), [0.3, 0.5, 0.4, 0.6], rng)
    likely, cheap = (fitted(space, votes, decode=decode) for decode in ("map", "bayes"))
    belief = likely.predict_proba(votes)
    assert np.array_equal(likely.predict(votes), belief.argmax(axis=1))
    assert np.array_equal(cheap.predict(votes), (belief @ LADDER).argmin(axis=1))
    assert not np.array_equal(likely.predict(votes), cheap.predict(votes))


def test_the_plain_vote_and_the_gibbs_prior_are_the_weighted_frechet_rule():
    space = cs.FiniteMetric(LADDER)
    # Two votes at an end of the ladder and one far off: their median, which expected costs would pull inwards.
    votes = np.array([[0, 0, 5], [5, 5, 1], [0, 2, 5]] * 10)
    plain = fitted(space, votes, method="majority").predict(votes)
    assert plain[:3].tolist() == [0, 5, 2]
    assert np.array_equal(plain, space.weighted_mean(votes, np.ones(votes.shape)))
    assert np.array_equal(plain, fitted(space, votes).predict_baseline(votes))
    space, votes = cs.FiniteMetric(LADDER[:4, :4]), np.array([[0, 3, 3], [1, 2, 0], [0, 0, 3]] * 30)
    gibbs = fitted(space, votes, method=GivenWeights(0.5, 1.0, 1.5), prior="gibbs").predict(votes)
    assert np.array_equal(gibbs, space.weighted_mean(votes, np.tile([0.5, 1.0, 1.5], (len(votes), 1))))


@pytest.mark.parametrize("method", ["auto", "em", "triplets", "quadratic"])
def test_weights_are_recovered(method):
    # 8,000 items: a weight has a standard error of about .02. Triplets take the agreement for a product, and quadratic
    # all labels but one for the same truth: both keep a bias.
    space, rng = cs.FiniteMetric(ring(12)), np.random.default_rng(3)
    weights = np.array([0.4, 0.6, 0.8, 1.0, 1.2])
    votes = cs.simulate(space, rng.integers(12, size=8_000), weights, rng)
    tolerance = {"triplets": 0.15, "quadratic": 0.3}.get(method, 0.1)
    assert np.abs(fitted(space, votes, method=method).weight_ - weights).max() < tolerance


def test_an_uneven_prior_is_learned_and_an_even_one_left_alone():
    space, rng = cs.FiniteMetric(ring(8)), np.random.default_rng(0)
    weights = [0.8, 1.0, 1.2, 0.9]
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    truths = rng.choice(8, 3000, p=shares), rng.integers(8, size=3000)
    uneven, even = (fitted(space, cs.simulate(space, truth, weights, rng)) for truth in truths)
    # the standard error of a share is about .02; an even prior is drawn to equal shares
    assert np.abs(uneven.source_model_.parameters.prior - shares).max() < 0.08
    assert np.ptp(even.source_model_.parameters.prior) < 0.04


def test_known_labels_are_one_more_column():
    # 100 known labels of two sources, which agreement alone cannot tell apart: costs are known to about .1
    space, rng = cs.FiniteMetric(LADDER), np.random.default_rng(1)
    truth = rng.integers(6, size=300)
    votes = cs.simulate(space, truth, [0.3, 2.0], rng)
    told = fitted(space, votes, gold=(truth, np.arange(300) < 100))
    assert told.weight_[1] > told.weight_[0] + 0.3
    with pytest.raises(cs.exceptions.InvalidVotesError, match="none were given"):
        fitted(space, votes, method="labelled")


def test_graphs_matrices_and_edge_lists_agree():
    networkx = pytest.importorskip("networkx")
    for path in (networkx.path_graph(6), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]):
        assert np.array_equal(cs.FiniteMetric(path).matrix, LADDER)
    weighted = cs.FiniteMetric([("a", "b", 2.5), ("b", "c", 1.0)])
    assert weighted.distance(weighted.as_batch(["a"]), weighted.as_batch(["c"]))[0] == 3.5


def test_independent_sources_agree_as_much_as_the_forward_map_has_it():
    # Bad sources vote for the middle of the ladder more often than the truth lies there, so that their votes scatter
    # less. Twelve z scores beyond 4 by chance: fewer than one in 1,000 draws; taken for equal scatter, some exceed 10.
    rng = np.random.default_rng(3)
    truth, weights = rng.integers(0, 6, 40_000), np.array([0.3, 1.0, 2.0, 2.5])
    chance = np.cumsum(softmax(-weights[:, None, None] * LADDER, axis=2), axis=2)
    votes = cs.Votes.from_matrix(
        np.stack([(chance[a, truth] < rng.random((len(truth), 1))).sum(axis=1) for a in range(4)], axis=1)
    )
    for space in (cs.FiniteMetric(LADDER), cs.Metric(lambda a, b: abs(a - b), candidates=list(range(6)))):
        moments = Moments.of(votes, space)
        law, statistics = moments.law, moments.sums
        table, u = law.pair_table(statistics), np.arctanh(1.0 - law.expected_cost(weights) / law.chance_cost)
        off = ~np.eye(4, dtype=bool)
        agreement = Problem.of(table, law.forward(statistics), np.arange(4)).agreement(u)
        assert np.abs((table.value - agreement) / table.error)[off].max() < 4.0
