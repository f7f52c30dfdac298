"""The facade: from votes to labels, in the kind the votes came in, whatever the order and the pieces."""

import numpy as np
import pytest
from simulated import CASES, SPACES, codes, simulated

import consilience as cs
from consilience.exceptions import InvalidVotesError, UnsupportedError

nan = float("nan")
WITHOUT_GOLD = [case for case in CASES if case[1] != "labelled"]
FINITE = ["two classes", "three classes", "path"]


def spam(codes: np.ndarray) -> np.ndarray:
    """Return codes as names, None for -1."""
    return np.array(["ham", "spam", None], dtype=object)[codes]


def matrix() -> np.ndarray:
    """Return votes for 2 classes in which item 7 has none."""
    data = simulated("two classes")
    codes = np.where(data.votes.observed, data.votes.labels, -1)
    codes[7] = -1
    return codes


@pytest.mark.parametrize(
    ("names", "votes", "labels", "missing"),
    [
        (2, matrix(), {0, 1}, -1),
        (["ham", "spam"], spam(matrix()), {"ham", "spam"}, None),
        (["ham", "spam"], matrix(), {0, 1}, -1),  # codes stay codes
        ([10, 20], np.where(matrix() < 0, -1, 10 + 10 * matrix()), {10, 20}, -1),
        ([0.5, 1.5], np.where(matrix() < 0, nan, matrix() + 0.5), {0.5, 1.5}, nan),
        ([-1, 1], cs.Votes.from_matrix(np.where(matrix() < 0, 0, 2 * matrix() - 1), abstain=0), {-1, 1}, None),
        ([False, True], np.where(matrix() < 0, None, (matrix() > 0).astype(object)), {False, True}, None),
    ],
    ids=["numbers", "names", "codes of names", "whole numbers", "fractions", "minus one", "booleans"],
)
def test_labels_come_back_in_the_kind_they_came_in(names, votes, labels, missing):
    model = cs.LabelModel(cs.Classes(names))
    assert model.fit(votes) is model
    found = model.predict(votes)
    assert set(np.delete(found, 7)) == labels
    assert found[7] is None if missing is None else np.array_equal(found[7], missing, equal_nan=True)
    assert found.dtype == {-1: np.int64, None: object}.get(missing, np.float64)


def test_nodes_and_labels_of_a_metric_come_back_as_the_objects_they_are():
    space = cs.FiniteMetric([("cat", "animal"), ("animal", "dog")])
    votes = [["cat", "cat", "animal"], ["dog", "dog", "dog"], [None, None, None]] * 20
    model = cs.LabelModel(space, method="majority", random_state=0).fit(votes)
    assert model.predict(votes[:3]).tolist() == ["cat", "dog", None]
    words = [["colour", "color", "colour"], ["gray", "grey", "grey"], [None, None, None]] * 20
    model = cs.LabelModel(cs.Metric(lambda left, right: float(left != right)), method="majority").fit(words)
    assert model.predict(words)[:3].tolist() == ["colour", "grey", None]


@pytest.mark.parametrize("kind", SPACES)
def test_labels_come_in_the_order_of_the_items_and_are_missing_without_votes(kind):
    data = simulated(kind, coverage=0.5)
    rows = [0, 200, 399]
    observed = data.votes.observed.copy()
    observed[rows] = False
    votes = cs.Votes.from_array(data.votes.labels, observed=observed, sources=data.votes.sources)
    model = cs.LabelModel(data.space).fit(votes)
    labels, confidence = model.predict(votes), model.confidence(votes)
    assert len(labels) == 400
    assert ((labels[rows] == -1) | np.isnan(labels[rows])).all()
    assert (confidence[rows] == 0.0).all()
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert "items-without-votes" in codes(model)
    order = np.random.default_rng(1).permutation(400)
    assert np.array_equal(model.predict(votes[order]), labels[order], equal_nan=True)


@pytest.mark.parametrize("kind", FINITE)
def test_a_given_prior_moves_the_posterior_and_fills_items_without_votes(kind):
    data = simulated(kind)
    size = data.space.n_labels
    prior = np.full(size, 0.4 / (size - 1))
    prior[1] = 0.6
    model = cs.LabelModel(data.space, prior=prior).fit(data.votes)
    nobody = cs.Votes.from_array(data.votes.labels, observed=np.zeros((400, 5)), sources=data.votes.sources)
    assert set(model.predict(nobody, fill="prior")) == {1}
    assert set(model.predict(nobody)) == {-1}
    flat = cs.LabelModel(data.space, prior="uniform").fit(data.votes).predict_proba(data.votes)
    assert model.predict_proba(data.votes)[:, 1].mean() > flat[:, 1].mean() + 0.01


def test_score_leaves_out_unknown_items_and_items_without_votes():
    votes = np.array([[0, 0, 0], [1, 1, 1], [-1, -1, -1], [1, 1, 1]] * 10)
    model = cs.LabelModel(cs.Classes(2), method="majority").fit(votes)
    gold = np.array([0, 0, 0, -1] * 10)  # right, wrong, no vote, unknown
    assert model.score(votes, gold) == 0.5


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(("kind", "method"), WITHOUT_GOLD)
def test_same_seed_gives_the_same_bits_and_the_order_of_items_does_not_matter(kind, method):
    data = simulated(kind)
    order = np.random.default_rng(1).permutation(len(data.votes))
    first, second, shuffled = (
        cs.LabelModel(data.space, method=method).fit(votes) for votes in (data.votes, data.votes, data.votes[order])
    )
    assert np.array_equal(first.weight_, second.weight_)
    assert np.array_equal(first.standard_error_, second.standard_error_)
    assert np.array_equal(first.confidence(data.votes), second.confidence(data.votes))
    assert np.allclose(first.weight_, shuffled.weight_, rtol=0, atol=1e-10)
    assert np.array_equal(first.predict(data.votes), shuffled.predict(data.votes))


def test_relabelling_the_classes_relabels_the_predictions():
    data = simulated("three classes")
    votes = np.where(data.votes.observed, data.votes.labels, -1)
    swapped = np.array([2, 0, 1, -1])[votes]
    model = cs.LabelModel(data.space).fit(votes)
    other = cs.LabelModel(data.space).fit(swapped)
    assert np.allclose(model.weight_, other.weight_, atol=1e-8)
    assert np.allclose(model.predict_proba(votes)[:, [0, 1, 2]], other.predict_proba(swapped)[:, [2, 0, 1]], atol=1e-8)


def test_auto_says_what_it_picked_and_why():
    model = cs.LabelModel(cs.Classes(2)).fit(matrix())
    [finding] = [item for item in model.diagnostics_ if item.code == "method"]
    assert finding.message == f"Method '{model.source_model_.method}': {model.source_model_.reason}."
    assert model.source_model_.reason


class Told:
    """A `SourceEstimator` that returns what it was told, and remembers what it was given."""

    def __init__(self, weight):
        self.weight = np.asarray(weight, dtype=float)

    def estimate(self, moments, space, dependencies):
        self.seen = (moments.n_items, moments.sources, dependencies)
        return self.weight


@pytest.mark.parametrize("kind", SPACES)
def test_estimator_of_ones_own_sets_the_weights(kind):
    data = simulated(kind)
    told = Told([3.0, 0.5, 0.5, 0.5, 0.5])
    model = cs.LabelModel(data.space, method=told, dependencies=[("bob", "cleo")]).fit(data.votes)
    assert isinstance(told, cs.estimation.pipeline.SourceEstimator)
    assert told.seen == (400, data.votes.sources, (("bob", "cleo"),))
    assert np.allclose(model.weight_, told.weight)
    assert model.source_model_.method == "Told"
    heard = data.votes.observed[:, 0]
    assert (model.predict(data.votes) == data.votes.labels[:, 0])[heard].mean() > 0.95


@pytest.mark.parametrize("weight", [[1.0], [1.0, nan, 1.0, 1.0, 1.0]], ids=["too few", "nan"])
def test_estimator_of_ones_own_must_return_finite_weights(weight):
    with pytest.raises(InvalidVotesError, match=r"Told.estimate returned .* expected 5 finite numbers"):
        cs.LabelModel(cs.Classes(2), method=Told(weight)).fit(matrix())


def test_loaded_model_cannot_learn_on(tmp_path):
    cs.LabelModel(cs.Classes(2)).fit(matrix()).save(tmp_path / "model.npz")
    with pytest.raises(UnsupportedError, match="loaded from a file"):
        cs.LabelModel.load(tmp_path / "model.npz").partial_fit(matrix())


def test_equal_weights_cost_nothing_where_sources_are_good_at_different_classes():
    # Mean costs are the same, so weights may be dropped; 20,000 fresh items have a standard error of 0.0014.
    def draw(n, seed):
        rng = np.random.default_rng(seed)
        truth = rng.integers(2, size=n)
        right = np.where(np.arange(6) % 2 == truth[:, None], 0.98, 0.6)
        return np.where(rng.random((n, 6)) < right, truth[:, None], 1 - truth[:, None]), truth

    votes, _ = draw(2000, 0)
    fresh, truth = draw(20_000, 99)
    wrong = [
        (cs.LabelModel(cs.Classes(2), method=method).fit(votes).predict(fresh) != truth).mean()
        for method in ("auto", "em")
    ]
    assert wrong[0] <= wrong[1] + 0.006
