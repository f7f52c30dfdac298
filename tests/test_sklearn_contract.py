"""LabelModel among scikit-learn's tools: clone, parameters, pipelines, searches and cross-validation."""

import warnings

import numpy as np
import pytest
from simulated import gap, simulated
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import consilience as cs
from consilience.exceptions import UnsupportedError


def matrix() -> tuple[np.ndarray, np.ndarray]:
    """Return 400 items of 3 classes by 5 sources, -1 where one abstains, and the truth."""
    data = simulated("three classes")
    return np.where(data.votes.observed, data.votes.labels, -1), data.truth


def test_clone_has_the_same_settings_and_nothing_learned():
    votes, _ = matrix()
    prior = np.array([0.2, 0.3, 0.5])
    settings = {"method": "triplets", "dependencies": [(0, 1)], "prior": prior, "decode": "bayes", "random_state": 4}
    model = cs.LabelModel(cs.Classes(3), **settings).fit(votes)
    copy = clone(model)
    assert copy is not model
    assert copy.space == model.space
    assert {name: copy.get_params()[name] for name in settings if name != "prior"} == {
        name: value for name, value in settings.items() if name != "prior"
    }
    assert np.array_equal(copy.prior, prior)
    assert not hasattr(copy, "source_model_")


def test_constructor_only_stores_and_settings_change_by_name():
    dependencies, prior = [("a", "b")], [0.5, 0.5]
    model = cs.LabelModel("not a space", method="not a method", dependencies=dependencies, prior=prior, decode="no")
    assert model.get_params()["dependencies"] is dependencies
    assert model.get_params()["prior"] is prior
    assert model.get_params()["space"] == "not a space"
    assert list(model.get_params()) == ["space", "method", "dependencies", "prior", "decode", "random_state"]
    assert model.set_params(method="em", random_state=1) is model
    assert (model.method, model.random_state) == ("em", 1)
    with pytest.raises(UnsupportedError, match=r"no setting 'epochs'.*space, method, dependencies"):
        model.set_params(epochs=100)


def test_new_settings_take_effect_at_the_next_fit_and_scikit_learn_can_tell_whether_there_was_one():
    votes, _ = matrix()
    model = cs.LabelModel(cs.Classes(3), method="majority")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit(votes))
    assert model.set_params(method="triplets").source_model_.method == "majority"
    assert model.fit(votes).source_model_.method == "triplets"


def test_repr_shows_the_space_and_what_differs_from_the_defaults():
    assert repr(cs.LabelModel(cs.Classes(2))) == "LabelModel(Classes(2))"
    model = cs.LabelModel(cs.Classes(["ham", "spam"]), method="em", random_state=0)
    assert repr(model) == "LabelModel(Classes(['ham', 'spam']), method='em', random_state=0)"
    model = cs.LabelModel(cs.FiniteMetric(1 - np.eye(3)), dependencies=[("a", "b")], prior=[0.2, 0.3, 0.5])
    assert repr(model) == "LabelModel(FiniteMetric(3 labels), dependencies=[('a', 'b')], prior=[0.2, 0.3, 0.5])"
    assert repr(cs.LabelModel(cs.Metric(gap, embed="mds"))) == "LabelModel(Metric(gap, embed='mds'))"


def as_codes(table: np.ndarray) -> np.ndarray:
    return np.where(table == "-", -1, np.char.replace(table, "-", "-1").astype(int))


def test_pipeline_fits_and_predicts_behind_a_transformer():
    votes, truth = matrix()
    text = np.where(votes < 0, "-", votes.astype(str))
    pipeline = make_pipeline(FunctionTransformer(as_codes), cs.LabelModel(cs.Classes(3)))
    labels = pipeline.fit(text).predict(text)
    assert np.array_equal(labels, cs.LabelModel(cs.Classes(3)).fit(votes).predict(votes))
    assert pipeline.predict_proba(text).shape == (400, 3)
    assert pipeline.score(text, truth) == pytest.approx((labels == truth)[labels >= 0].mean())


def test_grid_search_picks_a_method_by_known_labels():
    votes, truth = matrix()
    methods = ["majority", "isotropic", "em", "labelled"]
    search = GridSearchCV(cs.LabelModel(cs.Classes(3)), {"method": methods}, cv=3)
    search.fit(votes, truth)
    scores = dict(zip(methods, search.cv_results_["mean_test_score"], strict=True))
    assert search.best_params_["method"] == max(scores, key=scores.get)
    assert search.best_score_ > scores["majority"]
    assert search.predict(votes).shape == (400,)


def test_grid_search_does_not_hide_a_setting_that_fails():
    votes, truth = matrix()
    search = GridSearchCV(cs.LabelModel(cs.Classes(3)), {"method": ["em", "magic"]}, cv=3)
    with pytest.warns(FitFailedWarning, match="method='magic'"), pytest.warns(UserWarning, match="non-finite"):
        search.fit(votes, truth)
    assert np.isnan(search.cv_results_["mean_test_score"][1])


def test_cross_validation_takes_votes_as_they_are_and_warns_of_nothing():
    data = simulated("three classes")
    folds = KFold(4, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = cross_val_score(cs.LabelModel(data.space), data.votes, data.truth, cv=folds)
        repr(make_pipeline("passthrough", cs.LabelModel(cs.Classes(3))))
        make_pipeline("passthrough", cs.LabelModel(cs.Classes(3))).fit(matrix()[0])._repr_html_()
    by_hand = []
    for train, test in folds.split(data.truth):
        model = cs.LabelModel(data.space).fit(data.votes[train], data.truth[train])
        by_hand.append(model.score(data.votes[test], data.truth[test]))
    assert scores == pytest.approx(by_hand)
