"""Scores and vectors as label spaces: the contract, what is a label, ranges and rounding, known laws, messages."""

import numpy as np
import pytest
from simulated import fitted

import consilience as cs
from consilience import Scores, Vectors
from consilience.exceptions import InvalidLabelError, InvalidVotesError

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def stars(n=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(1, 5, n)
    return truth[:, None] + rng.normal(0, 1, (n, 4)), truth


def points(n=200, d=2, m=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, d)) * 2.0
    return truth[:, None] + rng.normal(size=(n, m, d)) * np.linspace(0.5, 2.0, m)[:, None], truth


def test_the_cost_is_the_squared_distance_and_the_mean_weighs_votes():
    assert Scores().cost(np.array([1.0, -2.0]), np.array([4.0, -2.0])).tolist() == [9.0, 0.0]
    assert Scores().weighted_mean(np.array([[0.0, 4.0, 9.0]]), np.array([[1.0, 3.0, 0.0]])).tolist() == [3.0]
    left, right = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]])
    assert Vectors(2).distance(left, right).tolist() == [5.0, 0.0]
    assert Vectors(2).cost(left, right).tolist() == [25.0, 0.0]
    votes = np.array([[[0.0, 0.0], [4.0, 8.0], [9.0, np.nan]]])
    assert Vectors(2).weighted_mean(votes, np.array([[1.0, 3.0, 0.0]])).tolist() == [[3.0, 6.0]]


def test_labels_stay_in_the_range_unless_told_otherwise_and_are_rounded_on_request():
    votes, _ = stars()
    inside = fitted(Scores(range=(2, 4)), votes).predict(votes)
    assert (inside.min(), inside.max()) == (2.0, 4.0)
    assert fitted(Scores(range=(2, 4), clip=False), votes).predict(votes).max() > 4.0
    whole = Scores(range=(1, 5), integer=True)
    assert set(np.unique(fitted(whole, votes).predict(votes))) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    of_integers = cs.Votes.from_matrix(np.clip(np.round(votes), 1, 5).astype(np.int64), abstain=None)
    assert fitted(whole, of_integers).predict(of_integers).dtype == np.int64


def test_sources_outside_of_the_range_have_no_say_in_the_scale():
    votes, truth = stars()
    votes = votes[:, [0, 1, 2, 3, 3]]
    votes[:, 4] = 20.0 * truth + np.random.default_rng(1).normal(0, 1, len(truth))  # 0-100 instead of 1-5
    found = fitted(Scores(range=(-2, 8)), votes).predict(votes)
    assert np.mean((found - truth) ** 2) < 0.5


def test_minus_one_abstains_on_a_scale_that_begins_at_one():
    votes = np.array([[1, 2, 2], [5, -1, 4], [3, 3, 4], [2, 1, 1]] * 10)
    assert fitted(Scores(range=(1, 5)), votes).source_model_.votes.tolist() == [40, 30, 40]


def test_vectors_may_come_as_arrays_lists_or_objects():
    votes, _ = points()
    plain = fitted(Vectors(2), votes).predict(votes)
    nested = votes.tolist()
    cells = np.empty((200, 4), dtype=object)
    for row, source in np.ndindex(cells.shape):
        cells[row, source] = tuple(votes[row, source])
    for same in (nested, cells):
        assert fitted(Vectors(2), same).predict(same) == pytest.approx(plain)
    whole = np.round(votes).astype(int)
    assert fitted(Vectors(2), whole).predict(whole).dtype == float


def test_none_and_nan_abstain():
    votes, _ = points()
    gaps, nested = votes.copy(), votes.tolist()
    gaps[3, 1] = gaps[5] = np.nan
    nested[3][1], nested[5] = None, [None] * 4
    model, other = fitted(Vectors(2), gaps), fitted(Vectors(2), nested)
    assert model.source_model_.votes.tolist() == other.source_model_.votes.tolist() == [199, 198, 199, 199]
    labels, confidence = model.predict(gaps), model.confidence(gaps)
    assert np.isnan(labels[5]).all()
    assert np.isfinite(np.delete(labels, 5, axis=0)).all()
    assert confidence[5] == 0.0
    assert confidence[3] < confidence[4]


def test_a_known_law_of_the_truth_is_used():
    votes, truth = points(60)
    known = Vectors(2, mean=[0, 0], covariance=4.0)
    model = fitted(known, votes, dependencies=[("source_0", "source_1")])
    assert model.source_model_.parameters.variance.tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert model.source_model_.parameters.mean.tolist() == [0.0, 0.0]
    assert Vectors(2, covariance=[4.0, 4.0]) == Vectors(2, covariance=np.eye(2) * 4.0)
    assert hash(known) == hash(Vectors(2, mean=(0.0, 0.0), covariance=4))
    assert ((model.predict(votes) - truth) ** 2).mean() < ((votes.mean(axis=1) - truth) ** 2).mean()


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (Scores(), np.inf, "label inf is not a finite number"),
        (Scores(), -np.inf, "label -inf is not a finite number"),
        (Scores(), "high", "label 'high' is not a finite number"),
        (Vectors(2), [1.0, np.inf], r"label \[1.0, inf\] is not .* coordinate 1 is inf"),
        (Vectors(2), "high", "label 'high' is not a vector of 2 finite numbers: it is text"),
        (Vectors(2), 7.0, "label 7.0 is not .* it is a single value"),
        (Vectors(2), [1.0, 2.0, 3.0], r"label \[1.0, 2.0, 3.0\] is not .* it has 3 coordinates"),
        (Vectors(2), [1.0, "x"], ".* coordinate 1 is 'x'"),
        (Vectors(2), [1.0, [2.0]], r".* coordinate 1 is \[2.0\]"),
        (Vectors(2), [1.0, None], ".* coordinate 1 is nan"),
        (Vectors(2), [1.0, 1j], ".* coordinate 1 is 1j"),
    ],
    ids=str,
)
def test_a_vote_that_is_no_number_or_vector_is_named_with_its_place(space, value, message):
    votes = np.empty((6, 3), dtype=object if isinstance(space, Vectors) or isinstance(value, str) else float)
    for row, source in np.ndindex(votes.shape):
        votes[row, source] = [1.5, float(row + source)] if isinstance(space, Vectors) else 1.5
    votes[3, 1] = value
    with pytest.raises(InvalidLabelError, match=rf"Row 3, source 'source_1': {message}"):
        cs.LabelModel(space).fit(cs.Votes.from_array(votes))


def test_infinite_and_partly_missing_numbers_in_an_array_are_named():
    votes, _ = points(6)
    votes[4, 2, 1] = np.inf
    with pytest.raises(InvalidLabelError, match=r"Row 4, source 'source_2': .* coordinate 1 is inf"):
        cs.LabelModel(Vectors(2)).fit(votes)
    votes[4, 2, 1] = np.nan
    with pytest.raises(InvalidVotesError, match=r"Row 4, source 'source_2': only part of the label is there"):
        cs.LabelModel(Vectors(2)).fit(votes)
    masked = cs.Votes.from_array(votes, observed=np.ones((6, 4), dtype=bool))
    with pytest.raises(InvalidLabelError, match=r"Row 4, source 'source_2': .* coordinate 1 is nan"):
        cs.LabelModel(Vectors(2)).fit(masked)


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5), (6, 3, 2, 2)])
def test_votes_of_another_shape_are_refused(shape):
    with pytest.raises(InvalidLabelError, match="vector of 2 finite numbers"):
        cs.LabelModel(Vectors(2)).fit(np.ones(shape))
    if len(shape) > 2:
        with pytest.raises(InvalidLabelError, match="single numbers"):
            cs.LabelModel(Scores()).fit(np.ones(shape))


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        (Scores, {"variance": 0.0}, "variance=0.0 is not positive"),
        (Scores, {"variance": -1}, "not positive"),
        (Scores, {"mean": "high"}, "mean='high' is not a number"),
        (Scores, {"mean": np.inf}, "not finite"),
        (Scores, {"range": (5, 1)}, "empty"),
        (Scores, {"range": 5}, "not a pair"),
        (Scores, {"clip": True}, "needs the ends"),
        (Scores, {"gauge": "curved"}, "gauge="),
        (Scores, {"gauge": "quantile", "mean": 3.0}, "gauge="),
        (Vectors, {"d": 0}, "d=0 is not a number of coordinates"),
        (Vectors, {"d": 2.5}, "d=2.5"),
        (Vectors, {"d": True}, "d=True"),
        (Vectors, {"d": 2, "mean": [1.0]}, r"mean has the shape \(1,\)"),
        (Vectors, {"d": 2, "mean": "high"}, "mean='high'"),
        (Vectors, {"d": 2, "mean": [1.0, np.nan]}, "not finite"),
        (Vectors, {"d": 2, "covariance": -1.0}, "not positive definite"),
        (Vectors, {"d": 2, "covariance": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        (Vectors, {"d": 2, "covariance": [[1.0, 0.5], [0.0, 1.0]]}, "not symmetric"),
        (Vectors, {"d": 2, "covariance": [[1.0], [1.0, 2.0]]}, "covariance"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(space, settings, message):
    with pytest.raises(InvalidLabelError, match=message):
        space(**settings)
