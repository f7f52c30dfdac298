"""fit_end_model and the models of end_models: what they learn, what weights do, and what they refuse."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience.end_models import GeodesicRegression, SoftLabelClassifier, fit_end_model, gradient_boosting
from consilience.exceptions import InvalidInputError, MissingPackageError, NotFittedError, UnsupportedError


def voted_classes(n=400, seed=0):
    """Return features, truth and five votes that are right three times of four; nobody votes on the first ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = (X[:, 0] > 0).astype(int)
    votes = np.where(rng.random((n, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    votes[:10] = -1
    return X, truth, votes


class Recorder:
    """Keeps what it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.X, self.y, self.weights = X, y, sample_weight
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_votes_and_features_become_a_model_in_one_call():
    X, truth, votes = voted_classes()
    fitted = fit_end_model(LogisticRegression(), X, votes, space=cs.Classes(2))
    # the boundary is learned far better than the labels it was learned from
    assert (fitted.predict(X) == truth).mean() > 0.95
    assert fitted.used.sum() == 390
    assert not fitted.used[:10].any()
    assert "390 of 400" in repr(fitted)


def test_confidences_are_the_weights_or_unsure_items_are_dropped():
    X, _, votes = voted_classes()
    labels = cs.LabelModel(cs.Classes(2)).fit(votes)
    fitted = fit_end_model(Recorder(), X, votes, label_model=labels)
    np.testing.assert_array_equal(fitted.end_model.weights, labels.confidence(votes)[10:])
    np.testing.assert_array_equal(fitted.end_model.y, labels.predict(votes)[10:])
    sure = fit_end_model(Recorder(), X, votes, space=cs.Classes(2), unsure="drop", min_confidence=0.9)
    assert sure.end_model.weights is None
    np.testing.assert_array_equal(sure.used, sure.confidence >= 0.9)
    assert 50 < sure.used.sum() < 350
    np.testing.assert_array_equal(sure.end_model.X, X[sure.used])


def test_a_fitted_label_model_is_used_as_it_is_and_weights_go_to_the_last_step_of_a_pipeline():
    X, truth, votes = voted_classes()
    labels = cs.LabelModel(cs.Classes(2), method="majority").fit(votes)
    weight = labels.weight_.copy()
    fitted = fit_end_model(LogisticRegression(), X, votes, label_model=labels, unsure="keep")
    assert fitted.label_model is labels
    np.testing.assert_array_equal(labels.weight_, weight)
    with pytest.raises(UnsupportedError, match="already fitted"):
        fit_end_model(LogisticRegression(), X, votes, label_model=labels, gold=truth)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    fitted = fit_end_model(pipeline, X, votes, space=cs.Classes(2))
    alone = fit_end_model(LogisticRegression(), StandardScaler().fit_transform(X[10:]), votes[10:], space=cs.Classes(2))
    np.testing.assert_allclose(pipeline[-1].coef_, alone.end_model.coef_)
    assert (fitted.predict(X) == truth).mean() > 0.9


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, list], ids=["pandas", "polars", "list"])
def test_features_may_be_a_frame_or_a_list(make):
    X, _, votes = voted_classes()
    given = X.tolist() if make is list else make({"a": X[:, 0], "b": X[:, 1]})
    kept = fit_end_model(Recorder(), given, votes, space=cs.Classes(2)).end_model.X
    assert type(kept) is type(given)
    np.testing.assert_array_equal(np.asarray(kept), X[10:])


def test_scores_and_points_are_learned_too_and_gradient_boosting_has_the_settings_of_the_paper():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    truth = X @ [1.0, -2.0, 0.5]
    votes = cs.simulate(cs.Scores(), truth, [1.0, 4.0, 9.0, 2.0], rng)
    fitted = fit_end_model(LinearRegression(), X, votes, space=cs.Scores())
    np.testing.assert_allclose(fitted.end_model.coef_, [1.0, -2.0, 0.5], atol=0.2)
    space = cs.Hyperbolic(2)
    x = rng.uniform(-1, 1, 200)
    points = space.project(np.column_stack([np.ones(200), np.sinh(x), np.zeros(200)]))
    curve = fit_end_model(
        GeodesicRegression(space), x, cs.simulate(space, points, [20.0, 20.0, 20.0], rng), space=space
    )
    assert np.mean(space.distance(curve.predict(x), points) ** 2) < 0.02
    assert gradient_boosting(random_state=0)[-1].n_estimators == 250
    assert gradient_boosting(n_estimators=30).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unsure": "maybe"}, "unsure='maybe' is unknown"),
        ({"unsure": "drop"}, "needs a limit"),
        ({"unsure": "keep", "min_confidence": 0.5}, "min_confidence has no effect"),
        ({"min_confidence": 1.5}, "between 0 and 1"),
        ({"space": None}, "either space or label_model"),
        ({"label_model": cs.LabelModel(cs.Classes(2))}, "either space or label_model"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    X, _, votes = voted_classes(50)
    with pytest.raises(UnsupportedError, match=message):
        fit_end_model(LogisticRegression(), X, votes, **({"space": cs.Classes(2)} | settings))


def test_input_that_does_not_fit_is_refused():
    X, _, votes = voted_classes(200)
    with pytest.raises(InvalidInputError, match="49 rows for 200 items"):
        fit_end_model(LogisticRegression(), X[:49], votes, space=cs.Classes(2))
    with pytest.raises(InvalidInputError, match="Lower min_confidence"):
        fit_end_model(LogisticRegression(), X, votes, space=cs.Classes(2), unsure="drop", min_confidence=1.0)
    with pytest.raises(UnsupportedError, match=r"no sample weights.*unsure='drop'"):
        fit_end_model(KNeighborsClassifier(), X, votes, space=cs.Classes(2))
    fit_end_model(KNeighborsClassifier(), X, votes, space=cs.Classes(2), unsure="keep")
    with pytest.raises(UnsupportedError, match="no method 'fit'"):
        fit_end_model(object(), X, votes, space=cs.Classes(2))


def test_soft_labels_of_zero_and_one_are_hard_labels_and_votes_become_soft_labels():
    X, truth, votes = voted_classes()
    hard = LogisticRegression().fit(X, truth)
    soft = SoftLabelClassifier(LogisticRegression()).fit(X, np.eye(2)[truth])
    np.testing.assert_allclose(soft.predict_proba(X), hard.predict_proba(X), atol=1e-6)
    assert soft.score(X, truth) == hard.score(X, truth)
    fitted = fit_end_model(clone(soft), X, votes, space=cs.Classes(2))
    assert (fitted.predict(X) == truth).mean() > 0.95
    assert repr(clone(soft)) == repr(SoftLabelClassifier(LogisticRegression()))
    # With one constant feature the best probability is the weighted mean of the given ones.
    given, weights = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([1.0, 2.0, 1.0])
    model = SoftLabelClassifier(LogisticRegression(C=1e9)).fit(np.zeros((3, 1)), given, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba([[0.0]])[0], weights @ given / 4, atol=1e-4)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0], "expected \\(3, n_classes\\)"),
        ([[0.5, 0.6]] * 3, "Row 0 of y adds up to 1.1"),
        ([[1.0, 0.0]] * 3, "belong to one class"),
        ([[0.5, 0.5], [1.5, -0.5], [0.5, 0.5]], "Row 1"),
    ],
)
def test_probabilities_that_are_none_are_refused(y, message):
    with pytest.raises(InvalidInputError, match=message):
        SoftLabelClassifier(LogisticRegression()).fit(np.zeros((3, 1)), y)


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(NotFittedError):
        SoftLabelClassifier(LogisticRegression()).predict([[0.0]])
    with pytest.raises(UnsupportedError, match="KNeighborsClassifier takes no sample weights"):
        SoftLabelClassifier(KNeighborsClassifier()).fit(np.zeros((3, 1)), [[0.5, 0.5]] * 3)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingPackageError, match=r"needs scikit-learn.*pip install 'consilience\[models\]'"):
        gradient_boosting()
