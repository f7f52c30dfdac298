"""Multi-label and sequence families: known parameters are recovered, pooling and chains do what they should."""

from __future__ import annotations

import numpy as np
import pytest
from consilience.families.tags.pooling import pooled_rates
from consilience.families.tags.qualities import _triples, skewness_sums, solve_prior

import consilience as cs
from consilience.families.base import Chunk

SENSITIVITY = np.array([[0.9, 0.8], [0.7, 0.85], [0.8, 0.6], [0.65, 0.75], [0.85, 0.9]])
SPECIFICITY = np.array([[0.8, 0.95], [0.9, 0.85], [0.75, 0.9], [0.8, 0.9], [0.95, 0.8]])
PRIOR = np.array([0.3, 0.15])


def simulated(n: int, seed: int = 0, coverage: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, 2)) < PRIOR).astype(np.int8)
    rate = np.where(truth[:, None] == 1, SENSITIVITY, 1 - SPECIFICITY)
    votes = (rng.random((n, 5, 2)) < rate).astype(np.int8)
    votes[rng.random((n, 5, 2)) >= coverage] = -1
    return votes, truth


@pytest.mark.parametrize("method", ["auto", "em", "moments", "triplets", "quadratic", "labelled"])
def test_sensitivities_specificities_and_priors_are_recovered(method):
    # n = 20000. The largest errors over seeds 0 to 9 were 0.026 for rates, 0.009 for priors and 0.009 for costs, by any
    # of the methods; the limits are about twice that.
    votes, truth = simulated(20_000)
    model = cs.LabelModel(cs.Tags(2), method=method).fit(votes, gold=truth if method == "labelled" else None)
    found = model.source_model_.parameters
    np.testing.assert_allclose(found.sensitivity, SENSITIVITY, atol=0.05)
    np.testing.assert_allclose(found.specificity, SPECIFICITY, atol=0.05)
    np.testing.assert_allclose(found.prior, PRIOR, atol=0.02)
    expected = PRIOR * (1 - SENSITIVITY) + (1 - PRIOR) * (1 - SPECIFICITY)
    np.testing.assert_allclose(model.expected_cost_, expected.mean(axis=1), atol=0.02)


def test_opinions_missing_on_single_tags_do_not_bias():
    # n = 20000; the largest error over seeds 0 to 9 was 0.035.
    votes, _ = simulated(20_000, coverage=0.6)
    found = cs.LabelModel(cs.Tags(2)).fit(votes).source_model_.parameters
    np.testing.assert_allclose(found.sensitivity, SENSITIVITY, atol=0.05)
    np.testing.assert_allclose(found.specificity, SPECIFICITY, atol=0.06)


def test_one_tag_equals_two_classes():
    votes, _ = simulated(3000)
    codes = votes[:, :, 0].copy()
    tags = cs.LabelModel(cs.Tags(1), method="em").fit(votes[:, :, :1])
    classes = cs.LabelModel(cs.Classes(2), method="em").fit(codes)
    probability = tags.posterior(votes[:, :, :1]).details["tag_probability"][:, 0]
    # The two differ in their pseudo-votes only: three or ten among hundreds.
    np.testing.assert_allclose(probability, classes.predict_proba(codes)[:, 1], atol=0.02)
    np.testing.assert_allclose(tags.expected_cost_, classes.expected_cost_, atol=0.002)


def test_positions_without_a_chain_equal_classes():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=(900, 1))
    votes = np.where(rng.random((900, 5)) < 0.7, truth, rng.integers(3, size=(900, 5)))
    cells = np.empty((300, 5), dtype=object)
    for row in range(300):
        for source in range(5):
            cells[row, source] = votes[3 * row : 3 * row + 3, source]
    for method in ("em", "triplets", "isotropic", "moments", "majority"):
        sequences = cs.LabelModel(cs.Tags(3, sequence=True), method=method).fit(cells)
        classes = cs.LabelModel(cs.Classes(3), method=method).fit(votes)
        np.testing.assert_allclose(sequences.expected_cost_, classes.expected_cost_, atol=2e-3)
        np.testing.assert_array_equal(np.concatenate(sequences.predict(cells)), classes.predict(votes))


def test_pooled_rates_worked_by_hand():
    # Strength 8. Mean of the source: a tag counts 8 / (n + 8), here 8/16 of (6 of 8), so (2 + 3) / (3 + 4) = 5/7;
    # tag 0: (6 + 8 * 5/7) / 16, tag 1: 5/7.
    found = pooled_rates(np.array([[6.0, 0.0]]), np.array([[8.0, 0.0]]), strength=8.0)
    np.testing.assert_allclose(found.rate, [[(6 + 40 / 7) / 16, 5 / 7]])


def test_the_strength_of_pooling_is_learned():
    # 10 sources, 30 tags, 60 votes each. Alike: strengths over 20 seeds were 316 and more; far apart (beta with
    # strength 4): between 3.9 and 5.1.
    rng = np.random.default_rng(0)
    total = np.full((10, 30), 60.0)
    base = np.linspace(0.6, 0.9, 10)[:, None]
    alike = pooled_rates(rng.binomial(60, base, (10, 30)).astype(float), total)
    apart = pooled_rates(rng.binomial(60, rng.beta(4 * base, 4 * (1 - base), (10, 30))).astype(float), total)
    assert alike.strength > 100
    assert 2 < apart.strength < 10


def test_pooling_lowers_the_error_with_many_tags_and_few_items():
    # n = 60, 25 tags, 6 seeds: wrong tags 0.079 without pooling and 0.061 with it, and 0.015 apart in every seed.
    wrong = np.zeros(2)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truth = (rng.random((60, 25)) < rng.uniform(0.1, 0.4, 25)).astype(np.int8)
        rates = np.linspace(0.6, 0.9, 5)[None, :, None]
        votes = np.where(rng.random((60, 5, 25)) < rates, truth[:, None], 1 - truth[:, None])
        pooled = cs.LabelModel(cs.Tags(25), method="em").fit(votes).predict(votes)
        single = [
            cs.LabelModel(cs.Tags(1), method="em").fit(votes[:, :, [t]]).predict(votes[:, :, [t]]) for t in range(25)
        ]
        wrong += [(np.concatenate(single, axis=1) != truth).mean(), (pooled != truth).mean()]
    assert wrong[1] < 0.95 * wrong[0]


def test_sums_over_triples_are_those_of_a_loop():
    values = np.random.default_rng(0).normal(size=(4, 6))
    expected = [sum(row[a] * row[b] * row[c] for a in range(6) for b in range(a) for c in range(b)) for row in values]
    np.testing.assert_allclose(_triples(values), expected)


def test_third_moments_give_the_prior():
    # n = 50000: the error over seeds 0 to 9 was at most 0.005.
    votes, _ = simulated(50_000)
    chunk = Chunk(votes, np.ones(votes.shape[:2], dtype=bool), np.arange(len(votes)) % 32)
    scale = np.sqrt(PRIOR * (1 - PRIOR))
    third = skewness_sums(chunk, votes.mean(axis=0), scale * (SENSITIVITY + SPECIFICITY - 1))
    np.testing.assert_allclose(solve_prior(third, np.array([0.5, 0.5])), PRIOR, atol=0.015)


def test_copies_given_as_dependent_count_as_one():
    votes, truth = simulated(2000)
    weak = np.concatenate([votes, np.repeat(votes[:, 3:4], 6, axis=1)], axis=1)
    copies = [3, *range(5, 11)]
    pairs = [(a, b) for a in copies for b in copies if a < b]
    told = cs.LabelModel(cs.Tags(2), dependencies=pairs).fit(weak)
    alone = cs.LabelModel(cs.Tags(2)).fit(votes)
    np.testing.assert_allclose(told.source_model_.summary.correlation[3, 5], 1.0, atol=0.1)
    assert told.score(weak, truth) > alone.score(votes, truth) - 0.01


def test_known_labels_are_kept_and_help():
    # Two sources cannot be told apart without known labels; 400 of them do. n = 2000.
    votes, truth = simulated(2000)
    gold = np.where(np.arange(2000)[:, None] < 400, truth, -1)
    model = cs.LabelModel(cs.Tags(2), method="em").fit(votes, gold=gold)
    found = model.source_model_.parameters
    assert np.abs(found.sensitivity - SENSITIVITY).mean() < 0.03
    partly = gold.copy()
    partly[:, 1] = -1  # only the first tag is known
    assert cs.LabelModel(cs.Tags(2), method="em").fit(votes, gold=partly).source_model_.method == "em"
    with pytest.warns(cs.exceptions.ConsilienceWarning):
        few = cs.LabelModel(cs.Tags(2)).fit(votes[:, :2], gold=gold)
    assert few.source_model_.method == "labelled"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["em", "moments"])
def test_standard_errors_cover(method):
    # 60 tables of 1000 items, 5 costs each: 300 intervals at 95%; 94% (em) and 93% (moments) covered. Below 88%
    # or above 99.5% would be some five standard errors away, intervals of one table taken as independent.
    expected = (PRIOR * (1 - SENSITIVITY) + (1 - PRIOR) * (1 - SPECIFICITY)).mean(axis=1)
    inside = []
    for seed in range(60):
        model = cs.LabelModel(cs.Tags(2), method=method).fit(simulated(1000, seed)[0])
        error = model.source_model_.summary.cost_standard_error
        inside.append(np.abs(model.expected_cost_ - expected) < 1.96 * error)
    assert 0.88 <= np.mean(inside) <= 0.995


def chained(n: int, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return votes of accuracy .7 on sticky sequences of zeros and ones, the truth, and the steps."""
    rng = np.random.default_rng(seed)
    steps = np.array([[0.9, 0.1], [0.2, 0.8]])
    votes, truth = np.empty((n, 4), dtype=object), []
    for row in range(n):
        tags = [int(rng.random() < 1 / 3)]
        while len(tags) < 8 + row % 9:
            tags.append(int(rng.random() < steps[tags[-1], 1]))
        truth.append(np.array(tags))
        for source in range(4):
            votes[row, source] = np.where(rng.random(len(tags)) < 0.7, tags, 1 - truth[-1])
    return votes, truth, steps


def test_a_chain_is_recovered_and_lowers_the_error():
    # 600 sequences, 7200 positions; over seeds 0 to 4 the steps were off by at most 0.019 and the costs by 0.015, and
    # the chain had between 65 and 71% of the wrong positions.
    votes, truth, steps = chained(600)
    alone = cs.LabelModel(cs.Tags(sequence=True)).fit(votes)
    chain = cs.LabelModel(cs.Tags(sequence=True, chain=True)).fit(votes)
    found = chain.source_model_.parameters
    np.testing.assert_allclose(found.transition, steps, atol=0.05)
    np.testing.assert_allclose(chain.expected_cost_, 0.3, atol=0.03)
    assert chain.score(votes, truth) > 0.8 * alone.score(votes, truth)


def test_least_expected_cost_is_never_worse_than_the_most_probable_sequence_by_the_models_own_count():
    votes, _, _ = chained(100)
    model = cs.LabelModel(cs.Tags(sequence=True, chain=True), decode="bayes").fit(votes)
    sure = model.confidence(votes)
    assert (sure >= model.set_params(decode="map").confidence(votes) - 1e-12).all()


def test_known_sequences_stay_known_in_a_chain_even_if_they_are_illegal():
    space = cs.Tags(["O", "B", "I"], sequence=True, chain=True)
    rng = np.random.default_rng(0)
    truth = space.random(80, rng)
    votes = cs.simulate(space, space.as_labels(truth), [1.5] * 4, rng)
    gold = [list(label) if row < 20 else None for row, label in enumerate(space.as_labels(truth))]
    gold[0] = ["O", "I", "I"]
    model = cs.LabelModel(space, method="em").fit(votes, gold=gold)
    assert np.isfinite(model.weight_).all()
    assert model.source_model_.parameters.transition[0, 2] == 0.0


def test_the_majority_of_a_sequence_is_the_vote_of_each_position():
    votes = np.empty((30, 3), dtype=object)
    for row in range(30):
        votes[row] = [np.array([1, 0, 1, 1]), np.array([1, 0, 0, 1]), np.array([0, 0, 1, 1])]
    predicted = cs.LabelModel(cs.Tags(sequence=True), method="majority").fit(votes).predict(votes)
    assert predicted[0].tolist() == [1, 0, 1, 1]


def test_sources_that_differ_by_chance_are_pulled_together_and_others_are_not():
    rng = np.random.default_rng(0)
    total = np.full((8, 3), 15.0)
    alike = pooled_rates(rng.binomial(15, 0.7, (8, 3)).astype(float), total, 1000.0).rate.mean(axis=1)
    assert np.ptp(alike) < 0.1  # counts alone differ by 0.2 and more
    apart = pooled_rates(np.repeat([[14.0], [7.0]], 4, axis=0) * np.ones(3), total, 1000.0).rate.mean(axis=1)
    assert apart[0] - apart[-1] > 0.35  # 14 of 15 against 7 of 15
