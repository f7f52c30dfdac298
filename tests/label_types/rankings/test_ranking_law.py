"""`LabelModel` on rankings: posterior against enumeration, recovery, partial, tied and ragged votes, copies, crowds."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from simulated import GivenWeights

import consilience as cs
from consilience.exceptions import ConsilienceWarning, PriorError
from consilience.label_types.rankings.law import sample_mallows


def fit(space, votes, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold=gold)


def codes(model):
    return {finding.code for finding in model.diagnostics_}


def orders(r):
    return np.array(list(permutations(range(r))))


def weighted_cost(weights, votes, truth):
    i, j = np.triu_indices(len(truth), 1)
    seen = (votes[:, i] >= 0) & (votes[:, j] >= 0)
    against = ((votes[:, i] - votes[:, j]) * (truth[i] - truth[j]) < 0) & seen
    return float(weights @ against.sum(axis=1))


def simulated(space, n, weights, seed=0, coverage=1.0):
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    return cs.simulate(space, truth, weights, rng, coverage=coverage), truth


def test_pair_probabilities_equal_enumeration_with_partial_and_tied_votes():
    votes = np.array([[[0, 1, 2, 3], [1, 0, -1, 2], [0, 0, 1, 1]]])
    weights = np.array([0.5, 1.2, 0.8])
    table = cs.Votes.from_array(votes, observed=np.ones((1, 3), bool))
    model = fit(cs.Rankings(4), table, method=GivenWeights(*weights))
    mass = np.array([np.exp(-weighted_cost(weights, votes[0], y)) for y in orders(4)])
    i, j = np.triu_indices(4, 1)
    expected = (mass / mass.sum()) @ (orders(4)[:, i] < orders(4)[:, j])
    assert np.allclose(model.posterior(table).details["pair_probability"][0], expected)


@pytest.mark.parametrize("decode", ["map", "bayes"])
def test_decoders_minimize_what_they_promise(decode):
    space = cs.Rankings(4)
    weights = np.array([0.3, 0.5, 0.4])
    votes, _ = simulated(space, 40, weights)
    belief = fit(space, votes, method=GivenWeights(*weights), decode=decode).posterior(votes)
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


def test_the_plain_vote_is_unweighted_kemeny():
    space = cs.Rankings(5)
    votes, _ = simulated(space, 60, [0.3, 0.4, 0.5, 0.6])
    found = fit(space, votes).predict_baseline(votes)
    assert np.array_equal(found, fit(space, votes, method="majority").predict(votes))
    best = cs.kemeny(votes).cost
    labels = votes.labels.astype(np.int16)
    assert sum(space.distance(labels[:, a], found.astype(np.int16)) for a in range(4)) == pytest.approx(best)


def test_confidence_is_the_share_of_chance_level_error_that_is_removed():
    space = cs.Rankings(4)
    weights = np.array([0.6, 0.8, 1.0])
    votes, truth = simulated(space, 4000, weights)
    belief = fit(space, votes, method=GivenWeights(*weights)).posterior(votes)
    # 4000 rankings: the standard error of the mean share of wrong pairs is about .004
    wrong = space.kendall_error(belief.labels, truth)
    assert belief.details["expected_error"].mean() == pytest.approx(wrong, abs=0.02)
    assert belief.confidence == pytest.approx(1 - 2 * belief.details["expected_error"])


def test_long_rankings_come_out_the_same_wherever_they_stand():
    space = cs.Rankings(15)
    votes, _ = simulated(space, 60, [0.05, 0.1, 0.15, 0.1])
    model = fit(space, votes)
    whole = model.predict(votes)
    assert np.array_equal(model.predict(votes[30:]), whole[30:])
    assert np.array_equal(model.predict(votes[::-1])[::-1], whole)


def test_integer_programming_proves_what_the_search_leaves_open():
    rng = np.random.default_rng(3)
    labels = np.argsort(rng.random((20, 7, 18)), axis=2)  # without any signal, so majorities run in cycles
    votes = cs.Votes.from_array(labels, observed=np.ones((20, 7), bool))
    searched = fit(cs.Rankings(18), votes, method="majority").posterior(votes).details
    solved = fit(cs.Rankings(18, exact="milp"), votes, method="majority").posterior(votes).details
    assert not searched["optimal"].all()
    assert solved["optimal"].all()
    assert (solved["gap"] == 0).all()


@pytest.mark.parametrize("method", ["auto", "em", "triplets"])
def test_weights_are_recovered(method):
    space = cs.Rankings(5)
    weights = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 0.5])
    votes, _ = simulated(space, 6000, weights)
    # standard errors are about .012; triplets take the product form and keep a small bias
    tolerance = 0.15 if method == "triplets" else 0.06
    assert np.abs(fit(space, votes, method=method).weight_ - weights).max() < tolerance
    if method == "em":  # where isotropic weights are biased towards equal ones
        votes, _ = simulated(space, 6000, [1.0, 0.01, 0.01, 0.01, 0.3])
        assert fit(space, votes, method="isotropic").weight_[1] > 0.3
        assert fit(space, votes, method=method).weight_[1] < 0.1


def test_partial_rankings_and_top_lists_are_weighed():
    space = cs.Rankings(7)
    rng = np.random.default_rng(1)
    weights = np.array([0.3, 0.5, 0.7, 0.9, 1.1, 0.6])
    votes, truth = simulated(space, 3000, weights)
    seen = rng.random((6, 3000, 7)) < 0.6
    drawn = [sample_mallows(truth.astype(int), seen[a], w, rng.random((3000, 7))) for a, w in enumerate(weights)]
    labels = np.stack(drawn, axis=1)
    partial = cs.Votes.from_array(labels, observed=(labels >= 0).any(axis=2))
    lists = cs.Votes.from_array(np.minimum(votes.labels, 3), observed=votes.observed)
    # standard errors are .02 to .05; one source of six is off by more than three of them in 2% of all draws
    for table in (partial, lists):
        assert np.abs(fit(space, table).weight_ - weights).max() < 0.2
    unseen = cs.Votes.from_array(np.where(votes.labels < 3, votes.labels, -1), observed=votes.observed)
    good, bad = (space.kendall_error(fit(space, table).predict(table), truth) for table in (lists, unseen))
    assert good + 0.1 < bad


def test_adversary_is_named_and_used_when_weights_may_be_negative():
    weights = np.array([0.8, 0.7, 0.9, 0.6, 0.8, -0.8])
    space, plain = cs.Rankings(5, signed=True), cs.Rankings(5)
    votes, truth = simulated(space, 1500, weights)
    model, clipped = fit(space, votes), fit(plain, votes)
    assert model.weight_[5] == pytest.approx(-0.8, abs=0.15)
    assert "adversarial-source" in codes(clipped)
    assert clipped.weight_[5] < 0.1  # at chance, but for a hypothesis of little probability
    used, ignored = (one.predict(votes) for one in (model, clipped))
    assert space.kendall_error(used, truth) < 1.1 * plain.kendall_error(ignored, truth)


def test_known_rankings_weigh_two_sources():
    space = cs.Rankings(5)
    votes, truth = simulated(space, 300, [2.0, 0.1])
    gold = (truth, np.arange(300) < 40)
    for method in ("auto", "labelled"):
        model = fit(space, votes, gold=gold, method=method)
        assert model.weight_[0] > 1.0 > 0.6 > model.weight_[1]
    with pytest.raises(PriorError, match="prior"):
        cs.LabelModel(space, prior="uniform").fit(votes)


@pytest.fixture(scope="module")
def ragged():
    space = cs.Rankings(None)
    rng = np.random.default_rng(0)
    truth = space.as_labels(space.random(400, rng))
    return space, cs.simulate(space, truth, [0.5, 1.0, 1.5, 0.8], rng), truth


def test_rows_of_different_length(ragged):
    space, votes, truth = ragged
    model = fit(space, votes)
    # standard errors are .05 to .12
    assert np.abs(model.weight_ - [0.5, 1.0, 1.5, 0.8]).max() < 0.4
    predicted = model.predict(votes)
    assert [len(label) for label in predicted] == [len(label) for label in truth]
    pieces = model.predict(cs.partitions.InMemoryPartitions.of(votes, rows=3))
    assert all(np.array_equal(one, two) for one, two in zip(pieces, predicted, strict=True))
    gold = [label if len(label) < 5 else None for label in truth]
    assert np.isfinite(fit(space, votes, gold=gold).weight_).all()
    silent = cs.Votes.from_array(np.full((2, 4), None, dtype=object), observed=np.zeros((2, 4), bool))
    assert (model.predict(silent).tolist(), model.confidence(silent).tolist()) == ([None, None], [0.0, 0.0])


def test_long_lists_of_different_length_are_not_called_adversarial():
    rng = np.random.default_rng(1)
    sizes = rng.integers(8, 31, 120)
    truth = [rng.permutation(size) for size in sizes]
    exists = np.arange(30) < sizes[:, None]
    padded = np.full((120, 30), -1)
    padded[exists] = np.concatenate(truth)
    votes = np.stack([sample_mallows(padded, exists, w, rng.random((120, 30))) for w in (0.05, 0.1, 0.15, 0.1)], axis=1)
    table = np.array([[row[:size] for row in item] for item, size in zip(votes, sizes, strict=True)] + [None], object)
    space = cs.Rankings(None)
    model = fit(space, cs.Votes.from_array(table[:-1].tolist()))
    assert "adversarial-source" not in codes(model)
    assert np.abs(model.weight_ - [0.05, 0.1, 0.15, 0.1]).max() < 0.06
    # what a source costs is counted in pairs of its own lists
    chance = (sizes * (sizes - 1) / 4).mean()
    assert np.all((model.expected_cost_ > 0.1 * chance) & (model.expected_cost_ < chance))


def test_items_nobody_saw_stay_unseen_and_rows_without_votes_are_missing():
    space = cs.Rankings(4)
    labels = np.array([[[0, 1, 2, -1], [1, 0, 2, -1], [0, 1, 2, -1]]] * 30 + [[[0, 1, 2, 3]] * 3])
    observed = np.arange(31)[:, None].repeat(3, axis=1) < 30
    items = np.array([f"query {number}" for number in range(31)], dtype=object)
    table = cs.Votes.from_array(labels, observed=observed, items=items)
    model = fit(space, table)
    predicted = model.predict(table)
    assert (predicted[0].tolist(), predicted[30].tolist()) == ([0, 1, 2, -1], [-1, -1, -1, -1])
    assert model.confidence(table)[30] == 0.0
    note = next(item for item in model.diagnostics_ if item.code == "items-without-votes")
    assert "query 30" in note.message
    space = cs.Rankings(["milk", "juice", "tea"])  # names come back as names, positions as positions
    names = [[["milk", "tea", "juice"], ["milk", "juice", "tea"], ["milk", "tea", "juice"]]] * 12
    assert fit(space, names).predict(names)[0] == ["milk", "tea", "juice"]
    positions = space.as_batch([label for row in names for label in row]).reshape(12, 3, 3)
    assert fit(space, positions).predict(positions)[0].tolist() == [0, 2, 1]
