"""Anything with a distance: the behavior any aggregator should show, and the embedding path."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import consilience as cs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def euclid(left, right):
    return np.linalg.norm(left - right, axis=1)


POINTS = cs.Metric(euclid, vectorized=True)


def fit(votes, space=POINTS, **settings):
    return cs.LabelModel(space, **settings).fit(votes)


def panel(seed, error=None, n=150, m=20, answers=5):
    """Points in four dimensions; every item is answered by a few of many sources."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 4))
    error = rng.lognormal(-0.5, 0.6, m) if error is None else np.asarray(error)
    votes = truth[:, None] + rng.normal(size=(n, m, 4)) * error[None, :, None]
    observed = np.zeros((n, m), dtype=bool)
    for row in observed:
        row[rng.choice(m, answers, replace=False)] = True
    return truth, cs.Votes.from_array(votes, observed=observed), error


def loss(model, votes, truth):
    return float(euclid(model.predict(votes), truth).mean())


def test_source_errors_are_recovered_and_labels_lie_between_random_choice_and_the_best_answer():
    # about 37 answers per source; the mean over three panels is .96 with a scatter of about .02 per panel
    found = []
    for seed in range(3):
        truth, votes, error = panel(seed)
        model = fit(votes)
        found.append(spearmanr(model.expected_cost_, error).statistic)
        gaps = np.linalg.norm(votes.labels - truth[:, None], axis=2)
        random = np.nanmean(np.where(votes.observed, gaps, np.nan))
        oracle = np.where(votes.observed, gaps, np.inf).min(axis=1).mean()
        plain = loss(fit(votes, method="majority"), votes, truth)
        assert oracle <= loss(model, votes, truth) < 1.05 * plain < 1.05 * random
    assert np.mean(found) >= 0.93


def test_a_lone_expert_wins_against_four_others():
    error = np.r_[np.full(8, 0.1), np.full(12, 1.2)]
    _, votes, _ = panel(1, error)
    predicted = fit(votes).predict(votes)
    lone = np.flatnonzero(votes.observed[:, :8].sum(axis=1) == 1)
    expert = votes.observed[lone, :8].argmax(axis=1)
    assert np.mean(np.all(predicted[lone] == votes.labels[lone, expert], axis=1)) >= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_equal_sources_come_out_equal(seed):
    truth, votes, _ = panel(seed, np.full(20, 0.7))
    model = fit(votes)
    assert model.expected_cost_.max() <= 1.5 * model.expected_cost_.min()
    assert loss(model, votes, truth) <= 1.02 * loss(fit(votes, method="majority"), votes, truth)


def test_spam_is_seldom_chosen():
    _, votes, _ = panel(2)
    rng, labels = np.random.default_rng(0), votes.labels.copy()
    for source in range(6):
        labels[:, source] = rng.permutation(labels[:, source])
    spammed = cs.Votes.from_array(labels, observed=votes.observed)
    predicted = fit(spammed).predict(spammed)
    chosen = (predicted[:, None] == labels[:, :6]).all(axis=2) & votes.observed[:, :6]
    assert chosen.any(axis=1).mean() <= 0.1


def test_fewer_answers_cost_quality_smoothly_and_one_or_two_have_a_defined_result():
    panels = (panel(3, answers=answers) for answers in (2, 4, 8))
    losses = [loss(fit(votes), votes, truth) for truth, votes, _ in panels]
    assert losses[0] > losses[1] > losses[2]
    for answers in (1, 2):
        _, votes, _ = panel(6, answers=answers)
        model = fit(votes)
        assert np.isfinite(np.append(model.weight_, model.predict(votes))).all()


def test_picks_depend_neither_on_the_unit_of_the_distance_nor_on_the_order_of_the_items():
    _, votes, _ = panel(4)
    picks = fit(votes).predict(votes)
    scaled = cs.Metric(lambda left, right: 1000.0 * euclid(left, right), vectorized=True)
    assert np.allclose(picks, fit(votes, space=scaled).predict(votes))
    order = np.random.default_rng(0).permutation(150)
    assert np.allclose(picks[order], fit(votes[order]).predict(votes[order]))


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


def test_bayes_decoder_minimizes_expected_cost_over_the_votes():
    ladder = cs.Metric(lambda left, right: abs(float(left) - float(right)))
    votes = np.array([[0.0, 1.0, 10.0]] * 40 + [[3.0, 4.0, 5.0]] * 40) + np.arange(80)[:, None] % 7
    for decode in ("map", "bayes"):
        predicted = fit(votes, space=ladder, decode=decode).predict(votes)
        assert all(value in row for value, row in zip(predicted, votes, strict=True))


@pytest.mark.parametrize("embed", ["mds", lambda batch: batch])
@pytest.mark.parametrize("method", ["triplets", "auto"])
def test_embedded_sources_are_recovered_in_order(embed, method):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(800, 3))
    error = np.array([0.3, 0.6, 0.9, 1.2])
    labels = truth[:, None] + rng.normal(size=(800, 4, 3)) * error[None, :, None]
    space = cs.Metric(lambda left, right: euclid(left, right) ** 2, embed=embed, vectorized=True)
    model = fit(cs.Votes.from_array(labels), space=space, method=method)
    assert np.argsort(model.expected_cost_).tolist() == [0, 1, 2, 3]
    # expected squared distance is 3 error^2; truth's own scale is a gauge, hence the wide tolerance
    assert model.expected_cost_ == pytest.approx(3 * error**2, rel=0.6)


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
