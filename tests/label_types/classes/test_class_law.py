"""Judges who vote for every class: agreement by hand, recovery of known parameters, ties, known labels, copies."""

import numpy as np
import pytest
from simulated import codes, fitted

import consilience as cs
from consilience.partitions import Moments


def fit(votes, k=2, gold=None, **settings):
    return fitted(cs.Classes(k), votes, gold, **settings)


def pair_table(votes, k, gold=None):
    return cs.Classes(k).law.pair_table(Moments.of(votes, cs.Classes(k), gold=gold).sums)


def confused_votes(rng, truth, table, coverage=1.0):
    """Return votes of sources with these P(vote | class), ``(m, class, vote)``."""
    steps = np.cumsum(table, axis=2)[np.arange(len(table))[None], truth[:, None]]
    votes = np.minimum((rng.random((len(truth), len(table), 1)) > steps).sum(axis=2), table.shape[2] - 1)
    votes[rng.random(votes.shape) >= coverage] = -1
    return votes


def even_tables(accuracy, k):
    accuracy = np.asarray(accuracy)[:, None, None]
    return np.where(np.eye(k, dtype=bool), accuracy, (1 - accuracy) / (k - 1))


# --- agreement ---------------------------------------------------------------------------------------


def test_agreement_of_three_classes_by_hand():
    votes = np.array([[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 0]])
    # Three of six agree; by chance one in three does, as shares are 1/3 each: (1/2 - 1/3) / (1 - 1/3).
    assert pair_table(votes, 3).value[0, 1] == pytest.approx(0.25)
    assert pair_table(votes, 3).cost[0, 1] == pytest.approx(0.5)
    apart = np.array([[0, 0, -1], [1, 1, -1], [1, 0, -1], [0, 0, 1]] * 5)
    assert np.isfinite(pair_table(apart, 2).error[0, 1])
    assert np.isinf(pair_table(apart[:4], 2).error[0, 2])  # no common items


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (0.5, 0.15), (0.85, 0.3)])
def test_agreement_of_two_classes_does_not_depend_on_strictness(first, second):
    # Scores of correlation .6, cut at any level, agree as sin^-1(.6) * 2 / pi = .41; standard error below .012.
    rng = np.random.default_rng(0)
    score = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=20_000)
    votes = (score > np.quantile(score, [first, second], axis=0).diagonal()).astype(int)
    table = pair_table(votes, 2)
    assert table.value[0, 1] == pytest.approx(2 / np.pi * np.arcsin(0.6), abs=0.06)
    assert 0.003 < table.error[0, 1] < 0.03


def test_confusions_of_their_own_make_the_agreement_of_poor_sources_less_certain():
    # Agreement at the same quality is .0 give or take what the tables happen to share, which no number of items shows.
    rng = np.random.default_rng(0)
    truth = rng.choice(4, 3000)
    good, even = even_tables([0.8, 0.8], 4), even_tables([0.25] * 4, 4)
    uneven = rng.dirichlet(np.ones(4), (4, 4))
    errors = []
    for poor in (even, uneven):
        votes = confused_votes(rng, truth, np.concatenate([good, poor]), coverage=1.0)
        errors.append(pair_table(votes, 4).error)
    inside = np.triu_indices(4, 1)
    assert (errors[1][2:, 2:][inside] > 1.5 * errors[0][2:, 2:][inside]).all()
    assert errors[1][0, 1] < 1.2 * errors[0][0, 1]  # what good sources agree on is the truth


def test_good_sources_are_not_taken_for_copies_because_poor_ones_share_confusions():
    # Six sources that are right and nine that confuse everything, each in a way of its own. Of 24 draws, these among
    # them, none was accused and at most 2% of the labels were wrong; 3 and 15% where confusions are not allowed for.
    for seed in (20, 21, 22):
        rng = np.random.default_rng([11, seed])
        know = np.r_[rng.uniform(0.5, 0.8, 6), np.full(9, 0.05)][:, None, None]
        tables = know * np.eye(4) + (1 - know) * rng.dirichlet(np.ones(4), (15, 4))
        truth = rng.choice(4, 150, p=[0.15, 0.5, 0.1, 0.25])
        model = fit(confused_votes(rng, truth, tables, coverage=1.0), 4)
        fresh = rng.choice(4, 2000, p=[0.15, 0.5, 0.1, 0.25])
        assert (model.predict(confused_votes(rng, fresh, tables, coverage=1.0)) != fresh).mean() < 0.05
        assert "dependent-pair" not in codes(model)


# --- recovery ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "triplets", "quadratic", "em"])
@pytest.mark.parametrize("k", [2, 4])
def test_accuracies_are_recovered(method, k):
    # The standard error of an accuracy is below .006, so that .03 is five of them: false alarm below 1e-5.
    rng = np.random.default_rng(1)
    truth = rng.integers(k, size=20_000)
    accuracy = np.array([0.9, 0.8, 0.7, 0.6, 0.75])
    votes = confused_votes(rng, truth, even_tables(accuracy, k), coverage=0.8)
    assert np.abs(1 - fit(votes, k, method=method).expected_cost_ - accuracy).max() < 0.03


def test_isotropic_is_biased_towards_equal_sources():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=20_000)
    votes = confused_votes(rng, truth, even_tables([0.95, 0.6, 0.6, 0.6, 0.6], 2))
    # The additive identity gives a good source beside near-random ones far more than its cost of .05.
    assert fit(votes, method="isotropic").expected_cost_[0] > 0.15


@pytest.mark.parametrize("method", ["auto", "em"])
def test_both_rates_and_an_uneven_prior_are_learned(method):
    rng = np.random.default_rng(2)
    truth = (rng.random(20_000) < 0.2).astype(int)
    sensitivity, specificity = np.array([0.9, 0.6, 0.8, 0.7, 0.5]), np.array([0.8, 0.95, 0.7, 0.9, 0.9])
    table = np.stack([np.stack([specificity, 1 - specificity], 1), np.stack([1 - sensitivity, sensitivity], 1)], 1)
    parameters = fit(confused_votes(rng, truth, table), method=method).source_model_.parameters
    assert parameters.prior[1] == pytest.approx(0.2, abs=0.03)
    assert np.abs(parameters.table[:, 1, 1] - sensitivity).max() < 0.06
    assert np.abs(parameters.table[:, 0, 0] - specificity).max() < 0.03


def test_confusions_that_only_all_votes_together_show_are_learned():
    # Sources know a quarter of the labels and confuse the rest each in a way of its own. Over 30 other draws labels
    # have .64 +- .10 of the errors of the plain vote: the mean of three is above .8 once in 300.
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng([7, seed])
        tables = 0.25 * np.eye(4) + 0.75 * rng.dirichlet(np.ones(4), (7, 4))
        truth = rng.choice(4, 1500, p=[0.15, 0.5, 0.1, 0.25])
        votes = confused_votes(rng, truth, tables, coverage=0.7)
        model = fit(votes, 4)
        ratios.append((model.predict(votes) != truth).mean() / (model.predict_baseline(votes) != truth).mean())
    assert np.mean(ratios) < 0.8


def test_one_positive_in_twenty_is_learned_as_well_as_with_the_truth():
    # Ten sources of .6 to .9 on 5000 items: 0.98 with all confusions known, standard error 0.002.
    rng = np.random.default_rng(0)
    truth = (rng.random(5000) < 0.05).astype(int)
    votes = confused_votes(rng, truth, even_tables(np.linspace(0.6, 0.9, 10), 2))
    assert fit(votes).score(votes, truth) > 0.97


def test_judges_who_differ_in_strictness_are_independent_and_useful():
    # 16 judges of one score; the plain vote is right on 0.88, standard error 0.006. Two seeds.
    for seed in range(2):
        rng = np.random.default_rng(seed)
        score = rng.normal(size=3000)
        noise = rng.uniform(0.6, 2.0, 16)
        level = rng.normal(scale=0.9, size=16) * np.sqrt(1 + noise**2)
        votes = (score[:, None] + noise * rng.normal(size=(3000, 16)) > level).astype(int)
        truth = (score > 0).astype(int)
        model = fit(votes)
        assert model.score(votes, truth) > (model.predict_baseline(votes) == truth).mean() - 0.01


def test_a_judge_who_always_votes_the_same_changes_nothing():
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=3000)
    votes = confused_votes(rng, truth, even_tables([0.85, 0.8, 0.75, 0.7], 2))
    model = fit(np.hstack([votes, np.ones((3000, 1), dtype=int)]))
    assert "constant-source" in codes(model)
    table = model.source_model_.parameters.table[4]
    assert table[1] == pytest.approx([1.0, 1.0], abs=0.02)
    assert model.score(np.hstack([votes, np.ones((3000, 1), dtype=int)]), truth) > fit(votes).score(votes, truth) - 0.01


# --- ties, priors, known labels ------------------------------------------------------------------------


def test_plain_vote_returns_shares_and_breaks_ties_towards_the_class_with_more_votes():
    votes = np.array([[0, 0, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]])
    for rows, favored in ((votes, 1), (1 - votes, 0)):
        model = fit(rows, method="majority")
        assert model.predict_proba(np.array([[0, 0, 1]]))[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-6)
        assert model.predict(np.array([[0, 1, -1]])).tolist() == [favored]
        assert fit(rows).predict_baseline(np.array([[0, 1, -1]])).tolist() == [favored]


def test_a_given_prior_is_kept_and_uniform_learns_none():
    rng = np.random.default_rng(5)
    truth = (rng.random(2000) < 0.3).astype(int)
    votes = confused_votes(rng, truth, even_tables([0.8, 0.75, 0.7, 0.65], 2))
    assert fit(votes, prior=[0.9, 0.1]).source_model_.parameters.prior.tolist() == [0.9, 0.1]
    assert fit(votes, prior="uniform").source_model_.parameters.prior.tolist() == [0.5, 0.5]
    empty = np.full((1, 4), -1)
    assert fit(votes, prior=[0.9, 0.1]).predict_proba(empty)[0] == pytest.approx([0.9, 0.1])


def test_known_labels_show_confusions_that_votes_hide():
    # Five of eight sources call class 2 "1" nine times out of ten; nothing in the votes tells who is right. With 100
    # known labels class 2 is found: 0.9 against 0.7, standard error 0.01, on items that were not told.
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truth = rng.integers(3, size=3000)
        table = np.tile(even_tables([0.85], 3), (8, 1, 1))
        table[:5, 2] = [0.05, 0.9, 0.05]
        votes = confused_votes(rng, truth, table)
        gold = [int(label) if row < 100 else None for row, label in enumerate(truth)]
        told = fit(votes, 3, gold=gold)
        assert told.score(votes[100:], truth[100:]) > 0.85


# --- scale ---------------------------------------------------------------------------------------------


def test_many_sources_and_classes_need_no_joint_table():
    rng = np.random.default_rng(0)
    space = cs.Classes(150)
    truth = rng.integers(150, size=300)
    votes = cs.simulate(space, truth, rng.uniform(4, 8, 20), rng)
    assert "pairs" not in Moments.of(votes, space).sums
    model = fit(votes, k=150)
    assert (model.predict(votes) == truth).mean() >= (model.predict_baseline(votes) == truth).mean() - 0.01
