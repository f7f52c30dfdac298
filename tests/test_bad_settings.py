"""Bad settings: every kind has its own error, which names the culprit and the next step."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import gap, model, named, refused, table

import consilience as cs
from consilience.exceptions import (
    ConsilienceError,
    DistanceError,
    FileFormatError,
    PriorError,
    UnknownSourceError,
    UnsupportedError,
)


@pytest.mark.parametrize(
    ("dependencies", "error", "parts"),
    [
        ([("alpha", "gama")], UnknownSourceError, ["'gama'", "Did you mean 'gamma'?"]),
        ([("alpha", "zzz")], UnknownSourceError, ["'zzz'", "'alpha', 'beta', 'gamma'"]),
        ([(0, 9)], UnknownSourceError, ["9", "not a source"]),
        ([("beta", "beta")], UnsupportedError, ["'beta', 'beta'", "same source twice"]),
        (["ab"], UnsupportedError, ["'ab'", "not a pair", "('a', 'b')"]),
        ([("alpha", "beta", "gamma")], UnsupportedError, ["not a pair"]),
        ("all", UnsupportedError, ["dependencies='all'", "[('a', 'b')]"]),
        (3, UnsupportedError, ["dependencies=3", "[('a', 'b')]"]),
    ],
)
def test_wrong_dependencies_are_refused(dependencies, error, parts):
    with refused(error, *parts):
        model(dependencies=dependencies).fit(named())


def test_dependency_given_both_ways_counts_once():
    fitted = model(dependencies=[("alpha", "beta"), ("beta", "alpha"), (0, 1)]).fit(named())
    assert fitted.source_model_.dependencies == (("alpha", "beta"),)


@pytest.mark.parametrize(
    ("prior", "parts"),
    [
        ([0.5, 0.6], ["adds up to 1.1", "Divide it by its sum"]),
        ([-0.1, 1.1], ["prior[0] is -0.1", "between 0 and 1"]),
        ([np.nan, 1.0], ["prior[0] is nan"]),
        ([0.2, 0.3, 0.5], ["(3,)", "2 labels"]),
        (["a", "b"], ["['a', 'b']", "2 numbers"]),
        ({"ham": 1.0}, ["{'ham': 1.0}", "2 numbers"]),
        ("learned", ["'learned'", "auto, uniform, gibbs"]),
    ],
)
def test_prior_that_is_none_is_refused(prior, parts):
    with refused(PriorError, *parts):
        model(prior=prior).fit(table())


@pytest.mark.parametrize("prior", [[0.5, 0.5], "uniform"])
def test_prior_over_an_infinite_space_is_refused(prior):
    with refused(PriorError, "Metric is not finite", "Leave it at 'auto'"):
        cs.LabelModel(cs.Metric(gap), prior=prior).fit(table(float))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"decode": "mode"}, ["decode='mode'", "auto, map, bayes"]),
        ({"method": "magic"}, ["method='magic'", "triplets", "em"]),
        ({"method": 3}, ["method=3", "estimate(moments, space, dependencies)"]),
        ({"random_state": "x"}, ["random_state='x'", "whole number"]),
        ({"random_state": -1}, ["random_state=-1", "whole number"]),
    ],
)
def test_unknown_setting_is_refused_with_the_known_ones(settings, parts):
    with refused(UnsupportedError, *parts):
        model(**settings).fit(table())


def test_something_else_than_a_space_is_refused():
    with refused(UnsupportedError, "space=2", "Classes(k)"):
        cs.LabelModel(2).fit(table())


def test_unknown_fill_is_refused():
    with refused(UnsupportedError, "fill='mean'", "'prior'", "None"):
        model().fit(table()).predict(table(), fill="mean")


@pytest.mark.parametrize("method", ["em", "quadratic"])
def test_method_that_a_label_type_lacks_names_those_it_has(method):
    with refused(UnsupportedError, f"method='{method}'", "isotropic", "triplets", "labelled"):
        cs.LabelModel(cs.Metric(gap), method=method).fit(table(float))


def test_em_without_votes_names_the_methods_that_need_none():
    moments = cs.partitions.Moments.of(table(), cs.Classes(2))
    with refused(UnsupportedError, "method='em'", "fit(votes)", "moments"):
        model(method="em").fit_moments(moments)


def test_probabilities_over_an_infinite_space_are_refused():
    fitted = cs.LabelModel(cs.Metric(gap)).fit(table(float))
    with refused(UnsupportedError, "Metric", "confidence(votes)", "FiniteMetric"):
        fitted.predict_proba(table(float))


def test_guess_from_the_prior_of_an_infinite_space_is_refused():
    fitted = cs.LabelModel(cs.Metric(gap)).fit(table(float))
    with refused(UnsupportedError, "Metric", "prior", "None"):
        fitted.predict(table(float), fill="prior")


def test_every_error_is_also_one_that_generic_handlers_know():
    errors = [error for error in vars(cs.exceptions).values() if isinstance(error, type)]
    kinds = [error for error in errors if issubclass(error, ConsilienceError) and error is not ConsilienceError]
    assert kinds
    assert all(issubclass(kind, (ValueError, TypeError, ImportError, OSError)) for kind in kinds)


# --- simulation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rng": 0}, ("rng=0", "np.random.default_rng(seed)")),
        ({"weights": 1.0}, ("weights=1.0", "one finite number per source")),
        ({"weights": []}, ("weights=[]", "one finite number per source")),
        ({"weights": [1.0, float("nan")]}, ("nan", "one finite number per source")),
        ({"weights": ["loud", "low"]}, ("loud", "one finite number per source")),
        ({"coverage": 1.5}, ("coverage=1.5", "one probability")),
        ({"coverage": [0.5] * 3}, ("coverage=[0.5, 0.5, 0.5]", "each of the 2 sources")),
    ],
)
def test_simulation_is_refused_with_what_was_expected(settings, words):
    given = {"weights": [1.0, 2.0], "rng": np.random.default_rng(0)} | settings
    with refused(UnsupportedError, *words):
        cs.simulate(cs.Classes(2), [0, 1, 1], **given)


def test_labels_of_different_lengths_are_simulated_from_lists():
    votes = cs.simulate(cs.DependencyTrees(), [[2, 0], [2, 0, 2]], [50.0, 50.0], np.random.default_rng(0))
    assert [list(label) for label in votes.labels[:, 0]] == [[2, 0], [2, 0, 2]]


# --- moments, distances, files ---------------------------------------------------------------------


def test_moments_of_another_label_type_are_refused():
    moments = cs.partitions.Moments.of(table(), cs.Classes(2))
    with refused(UnsupportedError, "another label type than Scores", "Moments.of(votes, space)"):
        cs.LabelModel(cs.Scores()).fit_moments(moments)
    with refused(UnsupportedError, "int holds no moments"):
        model().fit_moments(3)
    with pytest.raises(TypeError, match="unsupported operand"):
        moments + 3


def test_distance_without_a_name_or_a_function_is_refused():
    with refused(DistanceError, "register_distance(3, 4)", "a name and a function"):
        cs.label_types.register_distance(3, 4)


@pytest.mark.parametrize("path", [None, 5])
def test_file_that_is_no_name_is_refused(path):
    with refused(FileFormatError, type(path).__name__, "neither a frame nor the name of a file"):
        cs.read_votes(path)
