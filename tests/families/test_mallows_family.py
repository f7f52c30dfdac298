"""Rankings: moments and posterior against enumeration, recovery of weights, partial, tied and ragged votes."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning, UnsupportedError
from consilience.families.mallows import MallowsFamily
from consilience.kernels.mallows import sample_mallows


def fit(space, votes, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold=gold)


class Known:
    """An estimator that is told the weights."""

    def __init__(self, *weights):
        self.weights = np.array(weights)

    def estimate(self, moments, space, dependencies):
        return self.weights


def orders(r):
    return np.array(list(permutations(range(r))))


def discordant(left, right):
    i, j = np.triu_indices(len(left), 1)
    both = (left[i] >= 0) & (left[j] >= 0) & (right[i] >= 0) & (right[j] >= 0)
    return int((((left[i] - left[j]) * (right[i] - right[j]) < 0) & both).sum())


def weighted_cost(weights, votes, truth):
    return sum(weight * discordant(vote, truth) for weight, vote in zip(weights, votes, strict=True))


def simulated(space, n, weights, seed=0, coverage=1.0):
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    return cs.simulate(space, truth, weights, rng, coverage=coverage), truth


@pytest.mark.parametrize("r", [3, 4])
def test_pair_cost_equals_enumeration(r):
    every = orders(r)
    truth = np.arange(r)
    law = {w: np.array([np.exp(-w * discordant(one, truth)) for one in every]) for w in (0.4, 1.3)}
    law = {w: mass / mass.sum() for w, mass in law.items()}
    expected = sum(
        law[0.4][a] * law[1.3][b] * discordant(one, two) for a, one in enumerate(every) for b, two in enumerate(every)
    )
    assert MallowsFamily(r).pair_cost(np.array([0.4]), np.array([1.3]))[0] == pytest.approx(expected)


def test_pair_probabilities_equal_enumeration_with_partial_and_tied_votes():
    votes = np.array([[[0, 1, 2, 3], [1, 0, -1, 2], [0, 0, 1, 1]]])
    weights = np.array([0.5, 1.2, 0.8])
    model = fit(cs.Rankings(4), cs.Votes.from_array(votes, observed=np.ones((1, 3), bool)), method=Known(*weights))
    mass = np.array([np.exp(-weighted_cost(weights, votes[0], y)) for y in orders(4)])
    i, j = np.triu_indices(4, 1)
    expected = (mass / mass.sum()) @ (orders(4)[:, i] < orders(4)[:, j])
    found = model.posterior(cs.Votes.from_array(votes, observed=np.ones((1, 3), bool))).details["pair_probability"]
    assert np.allclose(found[0], expected)


@pytest.mark.parametrize("decode", ["map", "bayes"])
def test_decoders_minimise_what_they_promise(decode):
    space = cs.Rankings(4)
    weights = np.array([0.3, 0.5, 0.4])
    votes, _ = simulated(space, 40, weights)
    model = fit(space, votes, method=Known(*weights), decode=decode)
    belief = model.posterior(votes)
    i, j = np.triu_indices(4, 1)
    for row, label in enumerate(belief.labels):
        if decode == "map":
            costs = [weighted_cost(weights, votes.labels[row], y) for y in orders(4)]
            mine = weighted_cost(weights, votes.labels[row], label)
        else:
            chance = belief.details["pair_probability"][row]
            costs = [np.where(y[i] < y[j], 1 - chance, chance).sum() for y in orders(4)]
            mine = np.where(label[i] < label[j], 1 - chance, chance).sum()
        assert mine == pytest.approx(min(costs))
    assert belief.details["optimal"].all()


@pytest.mark.parametrize("method", ["moments", "em", "auto", "triplets", "quadratic"])
def test_weights_are_recovered(method):
    space = cs.Rankings(5)
    weights = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 0.5])
    votes, _ = simulated(space, 6000, weights)
    # standard errors are about .012; triplets and quadratic average over gaps and keep a small bias
    tolerance = 0.15 if method in ("triplets", "quadratic") else 0.06
    assert np.abs(fit(space, votes, method=method).weight_ - weights).max() < tolerance


def test_isotropic_is_biased_towards_equal_weights():
    space = cs.Rankings(5)
    weights = np.array([1.0, 0.01, 0.01, 0.01, 0.3])
    votes, _ = simulated(space, 6000, weights)
    assert fit(space, votes, method="isotropic").weight_[1] > 0.3
    assert fit(space, votes, method="em").weight_[1] < 0.1


def test_partial_rankings_are_weighed_by_their_exact_moments():
    space = cs.Rankings(8)
    rng = np.random.default_rng(1)
    weights = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
    votes, truth = simulated(space, 4000, weights)
    hidden = rng.random(votes.labels.shape) < 0.4
    labels = np.full(votes.labels.shape, -1)
    for a, weight in enumerate(weights):
        seen = ~hidden[:, a]
        labels[:, a] = sample_mallows(truth.astype(np.int64), seen, float(weight), rng.random(seen.shape))
    table = cs.Votes.from_array(labels, observed=(labels >= 0).any(axis=2))
    # about 4.8 of 8 items each: standard errors near .02
    for method in ("moments", "em"):
        assert np.abs(fit(space, table, method=method).weight_ - weights).max() < 0.1
    reason = fit(space, table).source_model_.reason
    assert "partial" in reason


def test_top_three_lists_are_tied_last_not_unseen():
    space = cs.Rankings(7)
    weights = np.array([0.3, 0.5, 0.7, 0.9, 1.1, 0.6])
    votes, truth = simulated(space, 1500, weights)
    top = np.minimum(votes.labels, 3)
    lists = cs.Votes.from_array(top, observed=votes.observed)
    model = fit(space, lists)
    assert np.abs(model.weight_ - weights).max() < 0.12
    unseen = cs.Votes.from_array(np.where(votes.labels < 3, votes.labels, -1), observed=votes.observed)
    confused = fit(space, unseen)
    good = space.kendall_error(model.predict(lists), truth)
    bad = space.kendall_error(confused.predict(unseen), truth)
    assert good + 0.1 < bad


def test_standard_errors_match_the_scatter():
    # 40 tables; the ratio of two such standard deviations has a scatter of about 11%, so 45% is 4 of them
    space = cs.Rankings(4)
    weights = np.array([0.4, 0.6, 0.8, 1.0, 0.5])
    found = [fit(space, simulated(space, 300, weights, seed)[0], method="em") for seed in range(40)]
    scatter = np.std([model.weight_ for model in found], axis=0)
    stated = np.mean([model.standard_error_ for model in found], axis=0)
    assert np.all(np.abs(np.log(scatter / stated)) < np.log(1.45) + 0.1)


def test_rows_of_different_length():
    space = cs.Rankings(None)
    rng = np.random.default_rng(0)
    weights = np.array([0.3, 0.6, 0.9, 1.2])
    truth = space.random(3000, rng)
    votes = cs.simulate(space, space.as_labels(truth), weights, rng)
    model = fit(space, votes)
    assert np.abs(model.weight_ - weights).max() < 0.12
    predicted = model.predict(votes)
    assert [len(label) for label in predicted[:5]] == [len(label) for label in votes.labels[:5, 0]]


def test_long_rankings_are_sampled_and_still_recovered():
    space = cs.Rankings(16)
    weights = np.array([0.05, 0.1, 0.15, 0.2, 0.3])
    votes, truth = simulated(space, 150, weights)
    model = fit(space, votes)
    # standard errors are about .012 for the weakest and .02 for the best
    assert np.abs(model.weight_ - weights).max() < 0.09
    equal = fit(space, votes, method="majority")
    assert space.kendall_error(model.predict(votes), truth) < space.kendall_error(equal.predict(votes), truth)


def test_adversary_is_named_and_used_when_weights_may_be_negative():
    weights = np.array([0.8, 0.7, 0.9, 0.6, 0.8, -0.8])
    space = cs.Rankings(5, signed=True)
    votes, truth = simulated(space, 1500, weights)
    model = fit(space, votes)
    assert model.weight_[5] == pytest.approx(-0.8, abs=0.15)
    plain = cs.Rankings(5)
    with pytest.warns(ConsilienceWarning, match="adversarial-source: source_5"):
        clipped = cs.LabelModel(plain).fit(votes)
    assert clipped.weight_[5] == pytest.approx(0.0, abs=1e-6)
    assert space.kendall_error(model.predict(votes), truth) < plain.kendall_error(clipped.predict(votes), truth)


def test_copies_are_flagged_and_given_dependencies_are_shared():
    space = cs.Rankings(5)
    rng = np.random.default_rng(2)
    votes, truth = simulated(space, 1500, [0.05, 0.05, 0.05, 0.5, 0.6, 0.7, 0.8, 0.9])
    labels = votes.labels.copy()
    copied = rng.random((1500, 2)) < 0.9
    labels[:, 1:3] = np.where(copied[:, :, None], labels[:, :1], labels[:, 1:3])
    table = cs.Votes.from_array(labels, observed=votes.observed)
    with pytest.warns(ConsilienceWarning, match="dependent-pair"):
        model = cs.LabelModel(space).fit(table)
    assert model.weight_[:3].max() < 0.3 < model.weight_[3:].min()
    pairs = [("source_0", "source_1"), ("source_0", "source_2"), ("source_1", "source_2")]
    told = fit(space, table, dependencies=pairs)
    assert told.source_model_.correlation[0, 1] > 0.7
    assert space.kendall_error(told.predict(table), truth) < 0.2


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_copies_are_flagged_among_partial_rankings_too(share):
    space = cs.Rankings(5)
    rng = np.random.default_rng(2)
    votes, truth = simulated(space, 1500, [0.05, 0.05, 0.05, 0.5, 0.6, 0.7, 0.8, 0.9])
    labels = votes.labels.copy()
    copied = rng.random((1500, 2)) < 0.9
    labels[:, 1:3] = np.where(copied[:, :, None], labels[:, :1], labels[:, 1:3])
    for row, source in np.argwhere(rng.random((1500, 8)) < share):  # hides one item of some votes
        hidden = labels[row, source] == rng.integers(5)
        behind = labels[row, source] > labels[row, source][hidden]
        labels[row, source] = np.where(hidden, -1, labels[row, source] - behind)
    table = cs.Votes.from_array(labels, observed=votes.observed)
    with pytest.warns(ConsilienceWarning, match="dependent-pair"):
        model = cs.LabelModel(space).fit(table)
    assert model.source_model_.method == "moments"
    assert model.weight_[:3].max() < 0.3 < model.weight_[3:].min()
    assert space.kendall_error(model.predict(table), truth) < 0.2


def test_among_copies_the_likelihood_is_used_where_two_sources_hardly_order_the_same_items():
    space = cs.Rankings(6)
    rng = np.random.default_rng(2)
    votes, _ = simulated(space, 1500, [0.05, 0.05, 0.05, 0.5, 0.6, 0.7, 0.8, 0.9])
    labels = votes.labels.copy()
    copied = rng.random((1500, 2)) < 0.9
    labels[:, 1:3] = np.where(copied[:, :, None], labels[:, :1], labels[:, 1:3])
    for kept, method in ((0.6, "moments"), (0.35, "em")):  # 0.36 and 0.12 of the pairs of items are in common
        seen = rng.random(labels.shape) < kept
        shown = space.positions_from_scores(-labels.astype(float), seen=seen).astype(np.int64)
        model = fit(space, cs.Votes.from_array(shown, observed=(shown >= 0).any(axis=-1)))
        assert ("source_0", "source_1") in model.source_model_.dependencies
        assert model.source_model_.method == method


def test_two_equal_camps_get_equal_weights_until_known_labels_decide():
    space = cs.Rankings(5)
    rng = np.random.default_rng(4)
    good, truth = simulated(space, 1500, [1.0, 0.8, 0.9])
    other, _ = simulated(space, 1500, [1.0, 0.8, 0.9], seed=5)  # three sources that agree on something else
    table = cs.Votes.from_array(np.hstack([good.labels, other.labels]), observed=np.ones((1500, 6), bool))
    with pytest.warns(ConsilienceWarning, match="competing-groups: .*source_3, source_4, source_5 against source_0"):
        model = cs.LabelModel(space).fit(table)
    assert set(model.weight_.tolist()) == {1.0}
    known = rng.random(1500) < 0.02
    told = fit(space, table, gold=(truth, known))
    assert told.weight_[:3].min() > 2 * np.abs(told.weight_[3:]).max()


def test_long_rankings_come_out_the_same_wherever_they_stand():
    space = cs.Rankings(15)
    votes, _ = simulated(space, 60, [0.05, 0.1, 0.15, 0.1])
    model = fit(space, votes)
    whole = model.predict(votes)
    assert np.array_equal(model.predict(votes[30:]), whole[30:])
    assert np.array_equal(model.predict(votes[::-1])[::-1], whole)


def test_quadratic_is_not_misled_by_random_sources():
    space = cs.Rankings(5)
    votes, _ = simulated(space, 6000, [1.0, 0.8, 0.6, 0.0, 0.0, 0.0])
    assert fit(space, votes, method="quadratic").weight_ == pytest.approx([1.0, 0.8, 0.6, 0.0, 0.0, 0.0], abs=0.15)


def test_votes_without_signal_fall_back():
    space = cs.Rankings(4)
    rng = np.random.default_rng(0)
    labels = np.argsort(rng.random((400, 5, 4)), axis=2)
    with pytest.warns(ConsilienceWarning, match="no-signal"):
        model = cs.LabelModel(space).fit(cs.Votes.from_array(labels, observed=np.ones((400, 5), bool)))
    assert set(model.weight_.tolist()) == {1.0}


def test_known_rankings_weigh_two_sources():
    space = cs.Rankings(5)
    votes, truth = simulated(space, 300, [2.0, 0.1])
    gold = (truth, np.arange(300) < 40)
    model = fit(space, votes, gold=gold)
    assert model.source_model_.method == "labelled"
    assert model.weight_[0] > 1.2 > 0.6 > model.weight_[1]


def test_items_nobody_saw_stay_unseen_and_rows_without_votes_are_missing():
    space = cs.Rankings(4)
    labels = np.array([[[0, 1, 2, -1], [1, 0, 2, -1], [0, 1, 2, -1]]] * 30 + [[[0, 1, 2, 3]] * 3])
    observed = np.ones((31, 3), bool)
    observed[30] = False
    table = cs.Votes.from_array(labels, observed=observed)
    model = fit(space, table)
    predicted = model.predict(table)
    assert predicted[0].tolist() == [0, 1, 2, -1]
    assert predicted[30].tolist() == [-1, -1, -1, -1]
    assert model.confidence(table)[30] == 0.0
    assert any(item.code == "items-without-votes" for item in model.diagnostics_)


def test_confidence_is_the_expected_share_of_pairs_in_the_right_order():
    space = cs.Rankings(4)
    weights = np.array([0.6, 0.8, 1.0])
    votes, truth = simulated(space, 4000, weights)
    model = fit(space, votes, method=Known(*weights))
    # 4000 rankings: the standard error of the mean share is about .004
    right = 1 - space.kendall_error(model.predict(votes), truth)
    assert model.confidence(votes).mean() == pytest.approx(right, abs=0.02)


def test_a_prior_is_refused():
    votes, _ = simulated(cs.Rankings(3), 20, [1.0, 1.0, 1.0])
    with pytest.raises((UnsupportedError, cs.exceptions.PriorError), match="prior"):
        cs.LabelModel(cs.Rankings(3), prior="uniform").fit(votes)
