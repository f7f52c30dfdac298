"""The laws of tags and sequences: known parameters are recovered, copies, cliques, pooling and chains."""

import numpy as np
import pytest
from simulated import codes, fitted

import consilience as cs
from consilience.partitions import Moments

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
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


@pytest.mark.parametrize(("method", "coverage"), [("auto", 1.0), ("em", 1.0), ("auto", 0.6)])
def test_rates_and_priors_are_recovered_also_if_opinions_on_single_tags_are_missing(method, coverage):
    # n = 20000. The largest errors over seeds 0 to 5 were .026, .008, .005 and .008 if all have an opinion on every
    # tag, and .035 and .011 otherwise; the limits are about twice that.
    votes, _ = simulated(20_000, coverage=coverage)
    limits = (0.05, 0.02) if coverage == 1.0 else (0.06, 0.03)
    model = fitted(cs.Tags(2), votes, method=method)
    found = model.source_model_.parameters
    np.testing.assert_allclose(found.table[:, :, 1, 1], SENSITIVITY, atol=limits[0])
    np.testing.assert_allclose(found.table[:, :, 0, 0], SPECIFICITY, atol=limits[1])
    if coverage == 1.0:
        np.testing.assert_allclose(found.prior[:, 1], PRIOR, atol=0.01)
        expected = PRIOR * (1 - SENSITIVITY) + (1 - PRIOR) * (1 - SPECIFICITY)
        np.testing.assert_allclose(model.expected_cost_, expected.mean(axis=1), atol=0.02)


def test_one_tag_is_a_sequence_of_one_position():
    votes, _ = simulated(3000)
    for method in ("auto", "em", "triplets", "isotropic", "quadratic", "majority"):
        tags = fitted(cs.Tags(1), votes[:, :, :1], method=method)
        sequences = fitted(cs.Sequences(), votes[:, :, :1], method=method)
        probability = np.concatenate(sequences.posterior(votes[:, :, :1]).details["tag_probability"])
        np.testing.assert_allclose(tags.posterior(votes[:, :, :1]).details["tag_probability"][:, 0], probability)
        np.testing.assert_allclose(tags.expected_cost_, sequences.expected_cost_)


def test_tags_learn_from_each_other():
    # n = 40, 10 tags; over seeds 0 to 7 .081 wrong on their own and .067 together, in one seed of eight not better.
    wrong = np.zeros(2)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = (rng.random((40, 10)) < rng.uniform(0.1, 0.4, 10)).astype(np.int8)
        rates = np.linspace(0.6, 0.9, 5)[None, :, None]
        votes = np.where(rng.random((40, 5, 10)) < rates, truth[:, None], 1 - truth[:, None])
        together = fitted(cs.Tags(10), votes).predict(votes)
        single = [fitted(cs.Tags(1), votes[:, :, [tag]]).predict(votes[:, :, [tag]]) for tag in range(10)]
        wrong += [(np.concatenate(single, axis=1) != truth).mean(), (together != truth).mean()]
    assert wrong[1] < wrong[0]


def test_a_clique_of_near_chance_sources_is_not_trusted():
    # Four of ten sources repeat each other. Over seeds 700 to 707: .337 to .365, the plain vote .403 to .417.
    rng = np.random.default_rng(700)
    truth = rng.integers(2, size=(1000, 4))
    quality = np.array([0.1, 0.1, 0.1, 0.1, 0.12, 0.15, 0.1, 0.2, 0.15, 0.12])[:, None]
    votes = np.where(rng.random((1000, 10, 4)) < quality, truth[:, None], rng.integers(2, size=(1000, 10, 4)))
    for copy in (1, 2, 3):
        same = rng.random(1000) < 0.9
        votes[same, copy] = votes[same, 0]
    model = fitted(cs.Tags(4), votes)
    assert {"dependent-pair", "competing-groups"} & codes(model)
    assert (model.predict(votes) != truth).mean() < (model.predict_baseline(votes) != truth).mean() - 0.02


def test_known_labels_tell_two_sources_apart_also_if_known_on_one_tag_only():
    # 400 of 2000 items are known. Over seeds 0 to 7 the difference of costs was off by up to .030 if both tags are
    # known and up to .092 if one is; the limits are about twice and one and a half times that.
    votes, truth = simulated(2000)
    wrong = PRIOR * (1 - SENSITIVITY) + (1 - PRIOR) * (1 - SPECIFICITY)
    for tags, limit in (([0, 1], 0.06), ([0], 0.14)):
        gold = np.full_like(truth, -1)
        gold[:400, tags] = truth[:400, tags]
        cost = fitted(cs.Tags(2), votes[:, [1, 4]], gold=gold).expected_cost_
        assert abs(cost[0] - cost[1] - (wrong[1] - wrong[4]).mean()) < limit


def test_questions_of_one_item_are_not_independent_items():
    # The ten tags of an item are all easy or all hard: errors of qualities are larger than those of 3000 items, and
    # not smaller than those of 300. Over seeds 0 to 5 they were 1.76 to 1.86 times as large.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(300, 10))
    easy = np.where(rng.random(300) < 0.5, 0.98, 0.6)[:, None, None]
    votes = np.where(rng.random((300, 5, 10)) < easy, truth[:, None], 1 - truth[:, None])
    mixed = votes.transpose(0, 2, 1).reshape(3000, 5)[rng.permutation(3000)].reshape(300, 10, 5).transpose(0, 2, 1)
    clustered, apart = (cs.Tags(10).law.pair_table(Moments.of(table, cs.Tags(10)).sums) for table in (votes, mixed))
    assert clustered.error[0, 1] > 1.4 * apart.error[0, 1]
    assert clustered.both[0, 1] == 300


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
    # 600 sequences, 7200 positions; over seeds 0 to 3 the steps were off by at most .022 and the costs by .010, and
    # the chain had between 63 and 69% of the wrong positions.
    votes, truth, steps = chained(600)
    alone = cs.LabelModel(cs.Sequences()).fit(votes)
    chain = cs.LabelModel(cs.Sequences(chain=True)).fit(votes)
    found = chain.source_model_.parameters
    np.testing.assert_allclose(found.transition, steps, atol=0.05)
    np.testing.assert_allclose(chain.expected_cost_, 0.3, atol=0.03)
    assert chain.score(votes, truth) > 0.8 * alone.score(votes, truth)


def test_least_expected_cost_is_never_worse_than_the_most_probable_sequence_by_the_models_own_count():
    votes, _, _ = chained(100)
    model = cs.LabelModel(cs.Sequences(chain=True), decode="bayes").fit(votes)
    sure = model.confidence(votes)
    assert (sure >= model.set_params(decode="map").confidence(votes) - 1e-12).all()


def test_known_sequences_stay_known_in_a_chain_even_if_they_are_illegal():
    space = cs.Sequences(["O", "B", "I"], chain=True)
    rng = np.random.default_rng(0)
    truth = space.random(80, rng)
    votes = cs.simulate(space, space.as_labels(truth), [1.5] * 4, rng)
    gold = [list(label) if row < 20 else None for row, label in enumerate(space.as_labels(truth))]
    gold[0] = ["O", "I", "I"]
    model = cs.LabelModel(space, method="em").fit(votes, gold=gold)
    assert np.isfinite(model.weight_).all()
    assert model.source_model_.parameters.transition[0, 2] == 0.0


def test_the_plain_vote_is_that_of_each_position_and_ties_go_to_what_the_votes_favor():
    votes = np.array([[[1, 0, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1]]] * 30)
    assert fitted(cs.Sequences(), votes, method="majority").predict(votes)[0].tolist() == [1, 0, 1, 1]
    votes = np.array([[[1, 0], [0, 1]]] + [[[1, 0], [1, 0]]] * 5)
    assert fitted(cs.Tags(2), votes, method="majority").predict(votes)[0].tolist() == [1, 0]
    longer = np.array([[[1, 0, 0], [0, 1, 0]]])
    assert fitted(cs.Sequences(), longer, method="majority").predict(longer)[0].tolist() == [0, 0, 0]
