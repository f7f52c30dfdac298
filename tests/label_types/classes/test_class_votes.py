"""Votes on classes that say less, or more, than one class: sets ("one of these"), exclusions, rows of probabilities."""

import numpy as np
import pytest
from simulated import GivenWeights, codes, fitted, simulated

import consilience as cs

METHODS = ["auto", "majority", "isotropic", "triplets", "quadratic", "em"]


def cells(rows: list[list[object]]) -> np.ndarray:
    """Return nested lists as an object array, whatever the cells are."""
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i, j] = cell
    return array


def each(votes: np.ndarray, observed: np.ndarray, convert) -> np.ndarray:
    """Return an object array with every observed vote converted, None elsewhere."""
    pairs = zip(votes.tolist(), observed.tolist(), strict=True)
    return cells([[convert(v) if o else None for v, o in zip(*pair, strict=True)] for pair in pairs])


def posterior(cell: object, weight: float, k: int = 3, prior: object = "uniform") -> np.ndarray:
    """Return the class probabilities after one such vote by a source of known weight."""
    votes = cells([[cell]] * 12)
    model = fitted(cs.Classes(k), votes, method=GivenWeights(weight), prior=prior)
    return model.predict_proba(votes)[0]


# --- the same evidence in other words --------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_one_hot_rows_and_sets_of_one_class_are_the_classes_they_point_at(method):
    data = simulated("three classes")
    rows = np.where(data.votes.observed[:, :, None], np.eye(3)[data.votes.labels], np.nan)
    hard = cs.LabelModel(data.space, method=method).fit(data.votes)
    for votes in (rows, each(data.votes.labels, data.votes.observed, lambda vote: {vote})):
        soft = cs.LabelModel(data.space, method=method).fit(votes)
        assert np.allclose(soft.weight_, hard.weight_, rtol=0, atol=1e-8)
        assert np.allclose(soft.standard_error_, hard.standard_error_, rtol=0, atol=1e-8)
        assert np.allclose(soft.predict_proba(votes), hard.predict_proba(data.votes), rtol=0, atol=1e-8)


def test_one_table_may_mix_classes_sets_and_rows():
    data = simulated("three classes")
    spellings = [lambda vote: vote, lambda vote: {vote}, lambda vote: np.eye(3)[vote].tolist()]
    mixed = cells(
        [
            [
                spellings[(i + j) % 3](int(vote)) if seen else None
                for j, (vote, seen) in enumerate(zip(*row, strict=True))
            ]
            for i, row in enumerate(zip(data.votes.labels, data.votes.observed, strict=True))
        ]
    )
    plain = cs.LabelModel(data.space).fit(data.votes)
    model = cs.LabelModel(data.space).fit(mixed)
    assert np.allclose(model.weight_, plain.weight_, rtol=0, atol=1e-8)
    assert np.array_equal(model.predict(mixed), plain.predict(data.votes))


def test_even_rows_are_sets_and_rows_that_nearly_add_up_are_normalised():
    assert np.allclose(posterior({1, 2}, 1.0), posterior([0.0, 0.5, 0.5], 1.0), atol=1e-12)
    assert np.allclose(posterior([0.2, 0.3, 0.5004], 1.0), posterior([0.2, 0.3, 0.5], 1.0), atol=1e-3)


# --- what a vote says, worked out by hand ----------------------------------------------------------
# A source of weight log(8) over 3 classes is right with probability 8 / (8 + 1 + 1) = 0.8, and votes each
# wrong class with probability 0.1.


LOG_8, SKEWED = np.log(8.0), [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    ("vote", "weight", "prior", "expected"),
    [
        (0, LOG_8, "uniform", [0.8, 0.1, 0.1]),
        # P("1 or 2" | 0) = 0.1 + 0.1, P("1 or 2" | 1) = 0.8 + 0.1, so 0.2 : 0.9 : 0.9.
        (cs.Classes(3).excluding(0), LOG_8, "uniform", [0.1, 0.45, 0.45]),
        # Evidence 0.6 * (0.8, 0.1, 0.1) + 0.4 * (0.1, 0.8, 0.1) = (0.52, 0.38, 0.1).
        ([0.6, 0.4, 0.0], LOG_8, "uniform", [0.52, 0.38, 0.1]),
        # Any class says nothing, nor does a useless source.
        ({0, 1, 2}, LOG_8, SKEWED, SKEWED),
        ([1 / 3, 1 / 3, 1 / 3], LOG_8, SKEWED, SKEWED),
        ({1, 2}, 0.0, "uniform", [1 / 3, 1 / 3, 1 / 3]),
        # An adversary of weight -log(2): right with probability 0.2, each wrong class 0.4; so 0.8 : 0.6 : 0.6.
        ({1, 2}, -np.log(2.0), "uniform", [0.4, 0.3, 0.3]),
    ],
)
def test_a_vote_moves_the_posterior_by_its_odds(vote, weight, prior, expected):
    assert posterior(vote, weight, prior=prior) == pytest.approx(expected, abs=1e-6)


def test_votes_of_different_kinds_multiply():
    # "0" (0.8 : 0.1 : 0.1) by one source, "not 0" (0.2 : 0.9 : 0.9) by another: 0.16 : 0.09 : 0.09.
    votes = cells([[0, {1, 2}]] * 12)
    model = fitted(cs.Classes(3), votes, method=GivenWeights(np.log(8.0), np.log(8.0)), prior="uniform")
    assert model.predict_proba(votes)[0] == pytest.approx(np.array([0.16, 0.09, 0.09]) / 0.34, abs=1e-6)


def test_plain_vote_counts_a_set_in_equal_shares():
    # One vote for 0 and a half each for 0 and 1.
    votes = cells([[0, {0, 1}], [2, 1]] * 6)
    model = fitted(cs.Classes(3), votes, method="majority")
    assert model.predict_proba(votes)[0] == pytest.approx([0.75, 0.25, 0.0], abs=1e-6)


# --- sets and rows by name -------------------------------------------------------------------------


def test_excluding_returns_the_other_classes_by_name_or_code_and_refuses_what_is_no_vote():
    assert cs.Classes(["cat", "dog", "bird"]).excluding("cat") == frozenset({"dog", "bird"})
    assert cs.Classes(4).excluding(0, 3) == frozenset({1, 2})
    with pytest.raises(cs.exceptions.InvalidLabelError, match="'fish' is not a known class"):
        cs.Classes(["cat", "dog", "bird"]).excluding("fish")
    with pytest.raises(cs.exceptions.InvalidLabelError, match="empty set"):
        cs.LabelModel(cs.Classes(2)).fit(cells([[cs.Classes(2).excluding(0, 1), 0, 1]] * 12))


def test_sets_of_names_give_names():
    space = cs.Classes(["cat", "dog", "bird"])
    rows = [["cat", {"cat", "dog"}, "dog"], ["bird", space.excluding("cat"), "bird"], [None, None, None]]
    model = cs.LabelModel(space, method="majority").fit(cells(rows * 10))
    # Shares of the first item: cat 1 + 1/2, dog 1/2 + 1; of two equal shares the more frequent class wins.
    assert model.predict_proba(cells(rows))[0] == pytest.approx([0.5, 0.5, 0.0], abs=1e-6)
    assert model.predict(cells(rows))[1:].tolist() == ["bird", None]


# --- learning from them ----------------------------------------------------------------------------


def test_qualities_are_learned_from_votes_that_exclude_one_wrong_class():
    # Two sources of accuracy .9 and .8 that vote, and four (.9) that only exclude a class. The exclusions add
    # information: 0.94 against 0.90 for the best source alone, n = 2000, standard error 0.006.
    rng = np.random.default_rng(0)
    n, space = 2000, cs.Classes(3)
    truth = rng.integers(3, size=n)

    def votes_for(accuracy: float) -> list[object]:
        right = rng.random(n) < accuracy
        return np.where(right, truth, (truth + rng.integers(1, 3, size=n)) % 3).tolist()

    def votes_against(accuracy: float) -> list[object]:
        wrong_class = (truth + rng.integers(1, 3, size=n)) % 3
        excluded = np.where(rng.random(n) < accuracy, wrong_class, truth)
        return [space.excluding(int(one)) for one in excluded]

    columns = [votes_for(0.9), votes_for(0.8), *(votes_against(0.9) for _ in range(4))]
    votes = cells([list(row) for row in zip(*columns, strict=True)])
    model = cs.LabelModel(space, method="em").fit(votes)
    assert model.score(votes, truth) > 0.925


def test_confident_rows_of_a_calibrated_source_beat_its_hard_votes():
    # Three sources report calibrated probabilities (logit noise); hardening them throws information away.
    # n = 4000: the paired difference is about 0.06 and has a standard error below 0.006.
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=4000)
    sign = 2.0 * truth[:, None] - 1.0
    strength = rng.exponential(1.0, size=(4000, 3))
    logit = sign * strength**2 / 2.0 + strength * rng.normal(size=(4000, 3))  # log odds of N(+-s^2/2, s^2)
    chance = 1.0 / (1.0 + np.exp(-logit))
    rows = np.stack([1.0 - chance, chance], axis=2)
    hard = rows.argmax(axis=2)
    soft_score = cs.LabelModel(cs.Classes(2), method="triplets").fit(rows).score(rows, truth)
    hard_score = cs.LabelModel(cs.Classes(2), method="triplets").fit(hard).score(hard, truth)
    assert soft_score > hard_score + 0.03


def test_sets_of_classes_do_not_make_a_source_look_reversed():
    # None in 30 other tables of 120 to 2,000 items, with sources of 45 to 90% and sets of up to k - 1 classes.
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=300)
    said = np.where(
        rng.random((300, 6)) < [0.45, 0.5, 0.6, 0.7, 0.8, 0.9], truth[:, None], rng.integers(4, size=(300, 6))
    )
    votes = cells([[frozenset({int(one), int(rng.integers(4))}) for one in row] for row in said])
    model = fitted(cs.Classes(4), cs.Votes.from_array(votes))
    assert "adversarial-source" not in codes(model)
    assert np.argmin(model.expected_cost_) == 5


def test_confusions_of_their_own_are_learned_from_few_items():
    """On 120 other draws the mean error was .042 above Bayes' rule with the true tables, with a standard deviation of
    .035: more than .06 on average over 30 draws has a probability of .003. One quality per source gives .072."""
    lost = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        balance = np.array([0.5, 0.25, 0.15, 0.1])
        tables = 0.3 * np.eye(4) + 0.7 * rng.dirichlet(np.ones(4), (8, 4))
        truth = rng.choice(4, 200, p=balance)
        votes = np.stack([(rng.random((200, 1)) > table[truth].cumsum(axis=1)).sum(axis=1) for table in tables], axis=1)
        model = cs.LabelModel(cs.Classes(4), random_state=0).fit(np.minimum(votes, 3))
        score = np.log(balance) + np.sum(
            [np.log(table)[:, said].T for table, said in zip(tables, np.minimum(votes, 3).T, strict=True)], axis=0
        )
        lost.append((model.predict(np.minimum(votes, 3)) != truth).mean() - (score.argmax(axis=1) != truth).mean())
    assert np.mean(lost) < 0.06
