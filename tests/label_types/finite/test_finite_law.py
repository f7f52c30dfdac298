"""Finite metric spaces: moments against enumeration, labels against Bayes' rule, recovery, priors, known labels."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

import consilience as cs
from consilience.estimation.protocol import Posterior
from consilience.label_types.cost_curve import pair_cost
from consilience.label_types.finite.law import FiniteLaw

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
LADDER = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))


def fit(space, votes, gold=None, **settings):
    return cs.LabelModel(space, **settings).fit(votes, gold=gold)


def ring(size):
    gap = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(gap, size - gap).astype(float)


def known(*weights):
    """Return an estimator that knows the weights."""
    return SimpleNamespace(estimate=lambda moments, space, dependencies: np.array(weights))


def test_pair_cost_equals_enumeration():
    one, two = softmax(-0.7 * LADDER, axis=1), softmax(-1.9 * LADDER, axis=1)
    total = sum(one[y, u] * two[y, v] * LADDER[u, v] / 6 for y, u, v in product(range(6), repeat=3))
    assert pair_cost(LADDER, np.array([0.7]), np.array([1.9]))[0] == pytest.approx(total)


def test_agreement_by_hand():
    # Two labels at cost 1: the centered kernel is +-1/4. Both sources vote 0 and 1 equally often, and agree on three
    # items of four: (3/4 - 1/4) / 4 over the spread 1/4 is 1/2.
    two = FiniteLaw(1.0 - np.eye(2))
    votes = np.array([[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 0], [0, 0], [1, 1]])
    chunk = cs.partitions.moments.as_chunk(cs.Votes.from_matrix(votes))
    table = two.pair_table(two.statistics(chunk))
    assert table.value[0, 1] == pytest.approx(0.5)
    assert table.cost[0, 1] == pytest.approx(0.25)


@pytest.mark.parametrize("prior", ["uniform", "gibbs", (0.3, 0.1, 0.1, 0.1, 0.1, 0.3)])
def test_posterior_equals_bayes_rule_by_enumeration(prior):
    weights = (0.4, 1.1, 2.0)
    votes = np.array([[0, 3, 5], [2, 2, -1], [5, 0, 0]])
    model = fit(cs.FiniteMetric(LADDER), votes, method=known(*weights), prior=prior)
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
    likely, cheap = (fit(space, votes, decode=decode) for decode in ("map", "bayes"))
    belief = likely.predict_proba(votes)
    assert np.array_equal(likely.predict(votes), belief.argmax(axis=1))
    assert np.array_equal(cheap.predict(votes), (belief @ LADDER).argmin(axis=1))
    assert not np.array_equal(likely.predict(votes), cheap.predict(votes))


def test_the_plain_vote_and_the_gibbs_prior_are_the_weighted_frechet_rule():
    space = cs.FiniteMetric(LADDER)
    # Two votes at an end of the ladder and one far off: their median, which expected costs would pull inwards.
    votes = np.array([[0, 0, 5], [5, 5, 1], [0, 2, 5]] * 10)
    plain = fit(space, votes, method="majority").predict(votes)
    assert plain[:3].tolist() == [0, 5, 2]
    assert np.array_equal(plain, space.weighted_mean(votes, np.ones(votes.shape)))
    assert np.array_equal(plain, fit(space, votes).predict_baseline(votes))
    space, votes = cs.FiniteMetric(LADDER[:4, :4]), np.array([[0, 3, 3], [1, 2, 0], [0, 0, 3]] * 30)
    gibbs = fit(space, votes, method=known(0.5, 1.0, 1.5), prior="gibbs").predict(votes)
    assert np.array_equal(gibbs, space.weighted_mean(votes, np.tile([0.5, 1.0, 1.5], (len(votes), 1))))


@pytest.mark.parametrize("method", ["auto", "em", "triplets", "quadratic"])
def test_weights_are_recovered(method):
    # 8,000 items: a weight has a standard error of about .02. Triplets take the agreement for a product, and quadratic
    # all labels but one for the same truth: both keep a bias.
    space, rng = cs.FiniteMetric(ring(12)), np.random.default_rng(3)
    weights = np.array([0.4, 0.6, 0.8, 1.0, 1.2])
    votes = cs.simulate(space, rng.integers(12, size=8_000), weights, rng)
    tolerance = {"triplets": 0.15, "quadratic": 0.3}.get(method, 0.1)
    assert np.abs(fit(space, votes, method=method).weight_ - weights).max() < tolerance


def test_an_uneven_prior_is_learned_and_an_even_one_left_alone():
    space, rng = cs.FiniteMetric(ring(8)), np.random.default_rng(0)
    weights = [0.8, 1.0, 1.2, 0.9]
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    truths = rng.choice(8, 3000, p=shares), rng.integers(8, size=3000)
    uneven, even = (fit(space, cs.simulate(space, truth, weights, rng)) for truth in truths)
    # the standard error of a share is about .02; an even prior is drawn to equal shares
    assert np.abs(uneven.source_model_.parameters.prior - shares).max() < 0.08
    assert np.ptp(even.source_model_.parameters.prior) < 0.04


def test_known_labels_are_one_more_column():
    # 100 known labels of two sources, which agreement alone cannot tell apart: costs are known to about .1
    space, rng = cs.FiniteMetric(LADDER), np.random.default_rng(1)
    truth = rng.integers(6, size=300)
    votes = cs.simulate(space, truth, [0.3, 2.0], rng)
    told = fit(space, votes, gold=(truth, np.arange(300) < 100))
    assert told.weight_[1] > told.weight_[0] + 0.3
    with pytest.raises(cs.exceptions.InvalidVotesError, match="none were given"):
        fit(space, votes, method="labelled")


def test_probabilities_are_averaged_over_hypotheses():
    one, two = (Posterior(np.array([code]), np.ones(1), np.eye(6)[[code]]) for code in (0, 5))
    beliefs = [(0.75, one), (0.25, two)]
    likely, cheap = (FiniteLaw(LADDER).average(beliefs, decode) for decode in ("map", "bayes"))
    assert likely.probabilities[0].tolist() == [0.75, 0, 0, 0, 0, 0.25]
    assert likely.confidence[0] == 0.75
    assert cheap.labels[0] == 0  # 0.25 * 5 is the least cost


def test_copies_of_a_bad_source_are_named_and_not_trusted():
    # an independence-based fit would make the three copies the best sources of all; over seeds 0 to 4 their largest
    # weight was below half of the smallest of the others
    space, rng = cs.FiniteMetric(ring(15)), np.random.default_rng(1)
    truth = rng.integers(15, size=1500)
    votes = cs.simulate(space, truth, [0.1, 0.1, 0.1, 1.0, 1.2, 0.9, 1.1, 0.8, 1.3], rng).labels.copy()
    copied = rng.random((1500, 2)) < 0.9
    votes[:, 1:3] = np.where(copied, votes[:, :1], votes[:, 1:3])
    model = fit(space, votes)
    note = next(item for item in model.diagnostics_ if item.code == "dependent-pair")
    assert set(note.sources) == {"source_0", "source_1", "source_2"}
    assert model.weight_[:3].max() < 0.6 * model.weight_[3:].min()


def test_graphs_matrices_and_edge_lists_agree():
    networkx = pytest.importorskip("networkx")
    for path in (networkx.path_graph(6), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]):
        assert np.array_equal(cs.FiniteMetric(path).matrix, LADDER)
    weighted = cs.FiniteMetric([("a", "b", 2.5), ("b", "c", 1.0)])
    assert weighted.distance(weighted.as_batch(["a"]), weighted.as_batch(["c"]))[0] == 3.5
