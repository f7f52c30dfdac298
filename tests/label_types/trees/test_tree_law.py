"""Votes on trees: what is learned from agreement, from known trees, and from next to nothing."""

import numpy as np
import pytest
from simulated import codes, fitted

import consilience as cs
from consilience.exceptions import InvalidVotesError
from consilience.trees import uas

TREES = cs.DependencyTrees()
RATES = np.array([0.1, 0.2, 0.3, 0.45])


def parses(rates, n=300, seed=0, coverage=1.0):
    """Trees of independent parsers with these error rates, and the truth."""
    rng = np.random.default_rng(seed)
    truth = TREES.random_trees(5 + np.arange(n) % 20, rng)
    weights = TREES.law.weight_from_cost(np.asarray(rates))
    return cs.simulate(TREES, truth, weights, rng, coverage=coverage), truth


def fit(votes, gold=None, space=TREES, **settings):
    return fitted(space, votes, gold, **settings)


def shared_errors(n=1000, seed=0, rates=(0.1, 0.2, 0.3), share=0.7):
    """Parsers that take one common wrong tree's head where they err, most of the time."""
    rng = np.random.default_rng(seed)
    truth = TREES.random_trees(np.full(n, 12), rng)
    trap = TREES.random_trees(np.full(n, 12), rng)
    difficulty = rng.normal(0.0, 2.0, (n, 12))
    columns = []
    for rate in rates:
        chance = 1.0 / (1.0 + np.exp(-(np.log(rate / (1 - rate)) + difficulty)))
        column = np.empty(n, dtype=object)
        for row in range(n):
            score = 0.01 * rng.random((13, 13))
            wrong = rng.random(12) < chance[row]
            common = np.where(rng.random(12) < share, trap[row], rng.integers(0, 13, 12))
            score[np.where(wrong, common, truth[row]), np.arange(1, 13)] += 1.0
            column[row] = cs.trees.maximum_arborescence(score)
        columns.append(column)
    return cs.Votes.from_array(np.stack(columns, axis=1)), truth


@pytest.mark.parametrize("method", ["auto", "em", "triplets"])
def test_error_rates_of_independent_parsers_are_found(method):
    # 300 sentences of 14.5 tokens: standard errors near 0.008; random trees agree by chance on a few percent, which
    # pair moments take for skill. Four estimates within 0.03.
    votes, truth = parses(RATES)
    true = [1.0 - uas(votes.labels[:, a], truth) for a in range(4)]
    model = fit(votes, method=method)
    np.testing.assert_allclose(model.expected_cost_, true, atol=0.03)
    assert uas(model.predict(votes), truth) > 1.0 - min(true) + 0.02


def test_error_rates_are_those_of_the_agreement_of_pairs_unless_em_is_asked_for():
    votes, _ = parses(RATES)
    moments = cs.partitions.Moments.of(votes, TREES)
    from_sums = cs.LabelModel(TREES, random_state=0).fit_moments(moments).expected_cost_
    np.testing.assert_allclose(fit(votes).expected_cost_, from_sums)
    assert np.abs(fit(votes, method="em").expected_cost_ - from_sums).max() > 1e-4


def test_the_weight_is_the_log_odds_plus_the_log_of_the_plausible_heads():
    votes, _ = parses(RATES)  # sums of costs make bad parsers look better than they are
    assert fit(votes, method="isotropic").expected_cost_[3] < RATES[3] - 0.05
    law = cs.DependencyTrees(plausible_heads=5.0).law
    np.testing.assert_allclose(law.weight_from_cost(np.array([0.2])), np.log(4.0) + np.log(5.0))
    np.testing.assert_allclose(law.expected_cost(np.array([0.0])), 5 / 6)


def test_more_plausible_heads_let_two_agreeing_sources_outvote_a_better_one():
    votes, _ = parses([0.06, 0.3, 0.3], n=400)
    first = [
        np.mean([np.array_equal(tree, own) for tree, own in zip(found, votes.labels[:, 0], strict=True)])
        for heads in (2, 18)
        for found in [fit(votes, space=cs.DependencyTrees(plausible_heads=heads), method="em").predict(votes)]
    ]
    assert first[0] > first[1] + 0.1


def test_difficulty_and_coinciding_errors_are_learned():
    # Parsers that err together look better than they are. Means over three seeds; the error of confidence has a
    # standard deviation of about 0.01 per seed.
    gaps = []
    for seed in range(3):
        votes, truth = shared_errors(seed=seed, rates=(0.1, 0.15, 0.2, 0.25, 0.3))
        model = fit(votes)
        true = [1.0 - uas(votes.labels[:, a], truth) for a in range(5)]
        assert np.abs(model.expected_cost_ - true).max() < 0.06
        assert uas(model.predict(votes), truth) >= uas(model.predict_baseline(votes), truth) - 0.002
        gaps.append(model.confidence(votes).mean() - uas(model.predict(votes), truth))
    assert abs(np.mean(gaps)) < 0.06


def test_sentences_of_one_token_say_nothing():
    votes, _ = parses(RATES, n=100)
    both = cs.Votes.concatenate([votes, cs.Votes.from_array([[[0]] * 4] * 200)])
    model = fit(both)
    np.testing.assert_allclose(model.expected_cost_, fit(votes).expected_cost_, atol=1e-6)
    assert model.confidence(both)[-1] == 1.0


def test_confidence_is_the_expected_share_of_right_heads():
    votes, truth = parses([0.15, 0.2, 0.25, 0.3], n=600)
    model = fit(votes)
    belief = model.posterior(votes)
    probability = belief.details["head_probability"]
    assert [len(row) for row in probability] == [len(tree) for tree in truth]
    np.testing.assert_allclose(belief.confidence, [row.mean() for row in probability])
    share = uas(belief.labels, truth)
    assert abs(np.concatenate(list(probability)).mean() - share) < 0.02


def test_known_trees_help_where_sources_err_together():
    # 1000 sentences of 12 tokens, 40 of them known; three sources are too few to tell difficulty from skill.
    votes, truth = shared_errors()
    true = np.array([1.0 - uas(votes.labels[:, a], truth) for a in range(3)])
    gold = [tree if row < 40 else None for row, tree in enumerate(truth)]
    alone, told = fit(votes), fit(votes, gold)
    assert np.abs(told.expected_cost_ - true).max() < np.abs(alone.expected_cost_ - true).max()
    assert np.abs(told.expected_cost_ - true).max() < 0.1
    assert "calibrated" in codes(told)
    assert all(((row >= 0) & (row <= 1)).all() for row in told.posterior(votes).details["head_probability"])


def test_known_trees_that_agree_change_little_and_those_of_all_sentences_decide():
    votes, truth = parses(RATES, n=400)
    gold = [tree if row < 20 else None for row, tree in enumerate(truth)]
    np.testing.assert_allclose(fit(votes, gold).expected_cost_, fit(votes).expected_cost_, atol=0.02)
    votes, truth = parses(RATES, n=100)
    true = [1.0 - uas(votes.labels[:, a], truth) for a in range(4)]
    np.testing.assert_allclose(fit(votes, truth).expected_cost_, true, atol=0.02)
    np.testing.assert_allclose(fit(votes, truth, method="labelled").expected_cost_, true, atol=0.08)
    with pytest.raises(InvalidVotesError, match="learns from known labels, but none were given"):
        fit(votes, method="labelled")


def test_independent_parsers_are_accused_of_nothing_and_copies_of_a_poor_one_are_not_believed():
    # 200 sentences, error rates around .4 known to about .01. Three copies that repeat 9 heads in 10 agree on .9, the
    # other four on .4: hundreds of standard errors. Means over three seeds.
    lost = []
    for seed in range(3):
        votes, truth = parses([0.5, 0.4, 0.35, 0.4, 0.3], n=200, seed=seed)
        assert "dependent-pair" not in codes(fit(votes))
        rng = np.random.default_rng(seed)
        repeats = [
            as_tree(np.where(rng.random(len(one)) < 0.9, one, other))
            for source in (1, 2)
            for one, other in zip(votes.labels[:, 0], votes.labels[:, source], strict=True)
        ]
        columns = np.empty((200, 7), dtype=object)
        columns[:, :5] = votes.labels
        columns[:, 5:] = cs.DependencyTrees().as_batch(repeats).reshape(2, 200).T
        model = fit(cs.Votes.from_array(columns))
        found = [name for finding in model.diagnostics_ if finding.code == "dependent-pair" for name in finding.sources]
        assert {"source_0", "source_5", "source_6"} <= set(found)
        lost.append(uas(model.predict_baseline(columns), truth) - uas(model.predict(columns), truth))
    assert np.mean(lost) < 0.0


def as_tree(heads):
    score = np.zeros((len(heads) + 1, len(heads) + 1))
    score[heads, np.arange(1, len(heads) + 1)] = 1.0
    return cs.trees.maximum_arborescence(score)


def test_a_source_that_is_always_wrong_counts_for_next_to_nothing():
    votes, truth = parses([0.1, 0.2, 0.3], n=200)
    reversed_trees = np.array([None] * 200, dtype=object)
    for row, tree in enumerate(truth):
        score = np.ones((len(tree) + 1, len(tree) + 1))
        score[tree, np.arange(1, len(tree) + 1)] = -5.0
        reversed_trees[row] = cs.trees.maximum_arborescence(score)
    table = cs.Votes.from_array(np.column_stack([votes.labels, reversed_trees]))
    model = fit(table)
    assert model.expected_cost_[3] > 0.7
    assert uas(model.predict(table), truth) == pytest.approx(uas(fit(votes).predict(votes), truth), abs=0.03)


@pytest.mark.parametrize(("method", "most"), [("auto", 0.25), ("em", 0.05)])
def test_a_third_source_that_contradicts_two_equal_ones_is_the_bad_one(method, most):
    # pair agreement alone has several solutions here, as the last two sources never agree; EM goes further
    table = [[[2, 0, 2], [2, 0, 2], [0, 1, 1]], [[0, 1], [0, 1], [2, 0]], [[2, 0, 2, 3], None, [2, 0, 2, 2]]] * 20
    model = fit(table, method=method)
    assert model.expected_cost_[:2].max() < most
    assert model.expected_cost_[2] > 0.5


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_vote_per_sentence_is_the_label():
    votes, _ = parses(RATES, n=40)
    alone = np.arange(40) % 4
    table = cs.Votes.from_array(votes.labels, observed=np.arange(4) == alone[:, None])
    labels = fit(table).predict(table)
    assert all(np.array_equal(one, votes.labels[row, alone[row]]) for row, one in enumerate(labels))


def test_random_trees_carry_no_signal():
    rng = np.random.default_rng(0)
    votes = cs.Votes.from_array(np.stack([TREES.random_trees(np.full(80, 15), rng) for _ in range(4)], axis=1))
    assert "no-signal" in codes(fit(votes))
