"""Anything with a distance: the behavior any aggregator should show, candidates, and the embedding path.

Labels are points in four dimensions, 150 items, 20 sources, 5 answers per item unless said otherwise; numbers are
means over three data sets.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

import consilience as cs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")

METHODS = ["auto", "triplets", "isotropic"]


def distance(left, right):
    return np.linalg.norm(left - right, axis=-1)


SPACE = cs.Metric(distance, vectorized=True)


def answers(seed, errors, per_item=5, difficulty=None):
    """Return votes and truth; `errors` scales the noise of each source, `difficulty` that of each item."""
    rng = np.random.default_rng(seed)
    n, m = 150, len(errors)
    truth = rng.normal(size=(n, 4))
    scale = 0.5 * np.outer(np.ones(n) if difficulty is None else difficulty, errors)
    labels = truth[:, None] + rng.normal(size=(n, m, 4)) * scale[:, :, None]
    observed = np.zeros((n, m), dtype=bool)
    for row in observed:
        row[rng.choice(m, per_item, replace=False)] = True
    return cs.Votes.from_array(labels, observed=observed), truth


def mixed_errors(seed):
    return 0.1 + 2.0 * np.random.default_rng(100 + seed).beta(2, 3, size=20)


def loss(method, votes, truth):
    return -cs.LabelModel(SPACE, method=method).fit(votes).score(votes, truth)


@pytest.mark.parametrize("method", METHODS)
def test_sources_are_ranked_by_their_errors_and_labels_lie_between_plain_vote_and_best_answer(method):
    # Rank correlations of 0.97 to 0.99 are usual at 37 answers per source; their scatter is about 0.006.
    # Random .75, plain vote .375, model .32, best of the five answers .28; 450 items, standard error below .01.
    ranked, own, plain, lowest, random = [], [], [], [], []
    for seed in range(3):
        errors = mixed_errors(seed)
        votes, truth = answers(seed, errors)
        away = np.where(votes.observed, distance(votes.labels, truth[:, None]), np.nan)
        model = cs.LabelModel(SPACE, method=method).fit(votes)
        ranked.append(spearmanr(model.expected_cost_, errors).statistic)
        own.append(-model.score(votes, truth))
        plain.append(loss("majority", votes, truth))
        lowest.append(np.nanmin(away, axis=1).mean())
        random.append(np.nanmean(away))
    assert np.mean(ranked) >= 0.95
    assert np.mean(lowest) <= np.mean(own) < np.mean(plain) < np.mean(random)


@pytest.mark.parametrize("method", METHODS)
def test_single_expert_among_laymen_wins(method):
    # 8 of 20 sources are nearly perfect; about 90 items have exactly one of them among their five.
    won = []
    for seed in range(3):
        votes, _ = answers(10 + seed, np.repeat([0.2, 2.4], [8, 12]))
        labels = cs.LabelModel(SPACE, method=method).fit(votes).predict(votes)
        for row in np.flatnonzero(votes.observed[:, :8].sum(axis=1) == 1):
            expert = int(np.flatnonzero(votes.observed[row, :8])[0])
            won.append(np.array_equal(labels[row], votes.labels[row, expert]))
    assert np.mean(won) >= 0.95


@pytest.mark.parametrize("method", METHODS)
def test_sources_alike_are_not_told_apart(method):
    losses, plain, spread = [], [], []
    for seed in range(3):
        votes, truth = answers(20 + seed, np.ones(20))
        model = cs.LabelModel(SPACE, method=method).fit(votes)
        losses.append(-model.score(votes, truth))
        plain.append(loss("majority", votes, truth))
        spread.append(model.expected_cost_.max() / model.expected_cost_.min())
    assert np.mean(losses) <= 1.02 * np.mean(plain)
    assert max(spread) <= 1.5


@pytest.mark.parametrize("method", METHODS)
def test_spam_is_not_picked(method):
    # 6 of 20 sources answer for other items. The plain vote picks spam for 5 to 10% of the items, these below 1%.
    picked = []
    for seed in range(3):
        votes, _ = answers(30 + seed, np.full(20, 0.8))
        rng, labels = np.random.default_rng(seed), votes.labels.copy()
        for source in range(6):
            labels[:, source] = labels[rng.permutation(150), source]
        spammed = cs.Votes.from_array(labels, observed=votes.observed)
        chosen = cs.LabelModel(SPACE, method=method).fit(spammed).predict(spammed)
        from_spam = (chosen[:, None] == labels[:, :6]).all(axis=2) & votes.observed[:, :6]
        picked.append(from_spam.any(axis=1).mean())
    assert np.mean(picked) <= 0.03


def test_quality_falls_smoothly_with_fewer_answers_and_confidence_orders_items_by_how_hard_they_are():
    # Each further answer helps; two steps may not differ by more than noise (0.02 is two standard errors).
    losses = []
    for per_item in (8, 5, 3, 2):
        drawn = [answers(40 + seed, mixed_errors(seed), per_item) for seed in range(3)]
        losses.append(np.mean([loss("auto", *one) for one in drawn]))
    assert all(more <= fewer + 0.02 for more, fewer in pairwise(losses))
    assert losses[-1] < 0.75  # a random answer
    # Thirds of the items by confidence: the mean error must rise from the surest to the least sure.
    thirds = np.zeros(3)
    for seed in range(3):
        difficulty = np.exp(np.random.default_rng(seed).normal(0, 0.8, size=150))
        votes, truth = answers(50 + seed, mixed_errors(seed), difficulty=difficulty)
        model = cs.LabelModel(SPACE).fit(votes)
        away = distance(model.predict(votes), truth)
        order = np.argsort(-model.confidence(votes), kind="stable")
        thirds += [away[rows].mean() for rows in np.array_split(order, 3)]
    assert thirds[0] < thirds[1] < thirds[2]


@pytest.mark.parametrize("embed", ["mds", lambda batch: batch], ids=["mds", "given"])
def test_coordinates_rank_the_sources_as_well_as_the_distance_does(embed):
    space = cs.Metric(distance, embed=embed, vectorized=True)
    found = []
    for seed in range(3):
        errors = mixed_errors(seed)
        model = cs.LabelModel(space).fit(answers(seed, errors)[0])
        found.append(spearmanr(model.expected_cost_, errors).statistic)
    assert np.mean(found) >= 0.95


def fit(votes, space=SPACE, **settings):
    return cs.LabelModel(space, **settings).fit(votes)


def test_confidence_is_high_for_identical_answers_and_falls_with_disagreement():
    words = cs.Metric(lambda left, right: float(left != right))
    votes = np.array([["yes"] * 4, ["no"] * 4] * 30, dtype=object)
    model = fit(votes, space=words)
    assert model.predict(votes)[:2].tolist() == ["yes", "no"]
    assert (model.confidence(votes) > 0.8).all()
    rng = np.random.default_rng(0)
    truth, noise = rng.integers(5, size=(400, 1)), rng.integers(5, size=(400, 5))
    model = fit(np.where(rng.random((400, 5)) < 0.7, truth, noise).astype(str).astype(object), space=words)
    probe = np.array([list("11111"), list("11112"), list("11223"), ["1", None, None, None, None]], dtype=object)
    sure = model.confidence(probe)
    assert sure[0] > sure[1] > sure[2]
    assert sure[0] > sure[3] > 0


def test_candidates_may_win_though_nobody_voted_for_them():
    between = cs.Metric(lambda left, right: abs(left - right), candidates=[0.0, 5.0, 10.0])
    votes = np.array([[4.0, 5.5, 6.0]] * 20 + [[0.5, 0.4, 0.1]] * 20)
    assert fit(votes, space=between).predict(votes)[[0, -1]].tolist() == [5.0, 0.0]


def test_a_list_of_candidates_is_as_good_as_a_finite_metric_and_as_sure():
    # Over 30 other draws the costs have a ratio of 1.035 at most, and confidence is off by .026 at most.
    line = np.arange(6.0)
    finite, rng = cs.FiniteMetric(np.abs(line[:, None] - line)), np.random.default_rng(31)
    truth = rng.integers(6, size=1500)
    votes = cs.simulate(finite, truth, [0.3, 0.5, 0.7, 0.9, 0.6, 0.4], rng).labels
    listed = cs.Metric(lambda left, right: np.abs(left - right), candidates=line, vectorized=True)
    labels = cs.LabelModel(finite, random_state=0).fit(votes).predict(votes)
    model, points = cs.LabelModel(listed, random_state=0).fit(votes.astype(float)), votes.astype(float)
    cost = np.abs(model.predict(points) - truth).mean()
    assert cost < 1.08 * np.abs(labels - truth).mean()
    assert abs(model.confidence(points).mean() - (1.0 - cost / finite.matrix.mean())) < 0.08


def test_slow_distances_are_not_evaluated_for_ever():
    calls = []

    def counted(left, right):
        calls.append(len(left))
        return np.abs(left - right)

    rng = np.random.default_rng(0)
    votes = rng.normal(size=(20_000, 1)) + rng.normal(size=(20_000, 5)) * np.array([0.2, 0.4, 0.6, 0.8, 1.0])
    fit(votes, space=cs.Metric(counted, vectorized=True))
    # 10 pairs per item, and references for a bounded number of items
    assert sum(calls) < 10 * 20_000 + 2 * 500_000


def test_scaling_to_coordinates_costs_little_on_random_graphs_and_its_distortion_is_stated():
    # Over 40 graphs of 10 and 20 nodes the mean loss is at most .005; here 6, whose mean has a deviation of about .005.
    networkx = pytest.importorskip("networkx")
    right = []
    for seed in range(6):
        graph = networkx.connected_watts_strogatz_graph(12, 4, 0.5, seed=seed)
        hops, rng = networkx.floyd_warshall_numpy(graph), np.random.default_rng(seed)
        truth = rng.integers(12, size=500)
        votes = cs.simulate(cs.FiniteMetric(hops), truth, [0.0, 0.3, 0.6, 1.5, 1.8, 2.1], rng)
        for embed in (None, "mds"):
            space = cs.Metric(lambda left, right, hops=hops: hops[left, right], embed=embed, vectorized=True)
            model = cs.LabelModel(space, random_state=0).fit(votes)
            right.append(np.mean(model.predict(votes) == truth))
        assert right[-1] > np.mean(model.predict_baseline(votes) == truth)
        assert "distortion of 0." in next(one.message for one in model.diagnostics_ if one.code == "embedding")
    assert np.mean(right[1::2]) > np.mean(right[::2]) - 0.02
