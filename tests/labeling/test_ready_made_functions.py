"""Ready-made labeling functions: columns, words, limits, models, annotations; the table before any model."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refused
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import consilience as cs
from consilience import labeling
from consilience.exceptions import InvalidVotesError, LabelingFunctionError, UnknownColumnError, UnsupportedError

TEXTS = ["Win a car!", "winter is coming", None, "learn C++ for free"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}


def voted(function, data, **settings) -> list[bool]:
    return cs.apply(function, data, **settings).observed[:, 0].tolist()


@pytest.fixture(params=FRAMES)
def make(request):
    return FRAMES[request.param]


def test_keywords_are_whole_words_of_any_case_and_expressions_are_searched_for(make):
    data = make({"text": TEXTS})
    assert voted(labeling.keywords("text", ["win", "free"], "spam"), data) == [True, False, False, True]
    assert voted(labeling.keywords("text", ["win"], "spam", whole_words=False), data) == [True, True, False, False]
    assert voted(labeling.keywords("text", ["win"], "spam", ignore_case=False), data) == [False, False, False, False]
    assert voted(labeling.keywords("text", ["c++"], 1), data) == [False, False, False, True]
    assert voted(labeling.regex("text", r"\bwin\w+", 1), data) == [False, True, False, False]


def test_thresholds_are_open_ends(make):
    data = make({"x": [1.0, 2.0, 3.0, None]})
    assert voted(labeling.threshold("x", above=2, label=1), data) == [False, False, True, False]
    assert voted(labeling.threshold("x", below=2, label=1), data) == [True, False, False, False]
    assert voted(labeling.threshold("x", above=1, below=3, label=1), data) == [False, True, False, False]
    # Columns of records are their entries or attributes.
    for records in ([{"x": 1}, {"x": 2}], [SimpleNamespace(x=1), SimpleNamespace(x=2)]):
        assert voted(labeling.threshold("x", above=1, label=1), records) == [False, True]


def test_a_column_votes_what_stands_in_it_or_the_ranking_by_the_numbers_in_a_cell(make):
    votes = cs.apply(labeling.from_column("x"), make({"x": [1.5, None, 3.0]}), cs.Scores())
    assert (votes.sources, votes.observed[:, 0].tolist()) == (("x",), [True, False, True])
    assert votes.labels[votes.observed].tolist() == [1.5, 3.0]
    data = make({"prices": [[3.0, 1.0, 2.0], [1.0, 1.0, 0.5], None]})
    votes = cs.apply(labeling.from_column("prices", ranks="largest first"), data, cs.Rankings(3))
    assert votes.labels[:2, 0].tolist() == [[0, 2, 1], [0, 0, 1]]
    assert votes.observed[:, 0].tolist() == [True, True, False]


def test_annotations_are_looked_up_by_item(make):
    data = make({"id": [1, 2, 3]})
    by_mapping = labeling.from_annotations({2: "cat"}, "id")
    by_frame = labeling.from_annotations(pd.DataFrame({"id": [2, 3], "said": ["cat", None]}), "id", "ann", label="said")
    votes = cs.apply([by_mapping, by_frame], data)
    assert votes.observed.tolist() == [[False, False], [True, True], [False, False]]
    assert (votes.labels[1].tolist(), votes.sources) == (["cat", "cat"], ("annotations", "ann"))


@pytest.fixture(scope="module")
def texts_model():
    texts = ["win a car", "win money", "hello bob", "good day bob"] * 5
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, ["spam", "spam", "ham", "ham"] * 5)


def test_a_model_of_texts_votes_its_predictions_and_skips_nulls(make, texts_model):
    votes = cs.apply(labeling.from_model(texts_model, "text", name="lr"), make({"text": ["win", None, "bob"]}))
    assert votes.labels[:, 0].tolist() == ["spam", None, "ham"]
    assert votes.observed[:, 0].tolist() == [True, False, True]


def test_a_model_that_is_not_sure_enough_abstains_and_soft_votes_are_in_the_order_of_the_space(texts_model):
    texts = ["win win win", "table", "bob bob bob"]
    sure = texts_model.predict_proba(texts).max(axis=1) >= 0.7
    assert sure.tolist() == [True, False, True]
    assert voted(labeling.from_model(texts_model, None, at_least=0.7), texts) == sure.tolist()
    space = cs.Classes(["spam", "ham", "unsure"])
    function = labeling.from_model(texts_model, None, soft=True, classes=space.names)
    votes = cs.apply(function, ["win", "bob"], space)
    ham, spam = texts_model.predict_proba(["win"])[0]
    assert votes.labels[0, 0] == pytest.approx([spam, ham, 0.0])
    with refused(UnsupportedError, "['ham', 'spam']", "classes="):
        labeling.from_model(texts_model, None, soft=True)
    with refused(InvalidVotesError, "lacks ['spam']"):
        labeling.from_model(texts_model, None, soft=True, classes=["ham"])


@pytest.mark.parametrize("names", [True, False])
def test_a_model_of_several_columns_gets_what_it_was_fitted_on(make, names):
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    target = (train["a"] > 0).astype(int)
    model = LogisticRegression().fit(train if names else train.to_numpy(), target)
    data = make({"b": [0.0, 0.0, 0.0], "a": [2.0, None, -2.0]})
    votes = cs.apply(labeling.from_model(model, ["a", "b"]), data, cs.Classes(2))
    assert votes.labels[votes.observed].tolist() == [1, 0]
    assert votes.observed[:, 0].tolist() == [True, False, True]


def test_ready_made_functions_can_be_pickled(texts_model):
    functions = [
        labeling.keywords("text", ["win"], "spam"),
        labeling.regex("text", "bob", "ham", name="bob"),
        labeling.from_model(texts_model, "text"),
        labeling.from_column("text"),
    ]
    again = pickle.loads(pickle.dumps(functions))
    data = {"text": ["win", "bob"]}
    assert cs.apply(again, data).equals(cs.apply(functions, data))


def test_an_unknown_column_is_answered_with_the_likely_one(make):
    with refused(UnknownColumnError, "'keywords_1'", "no column 'txt'", "Did you mean 'text'?"):
        cs.apply(labeling.keywords("txt", ["win"], 1), make({"text": ["a"]}), on_error="abstain")


@pytest.mark.parametrize(
    ("make_function", "error", "parts"),
    [
        (lambda: labeling.keywords("t", [], 1), InvalidVotesError, ["words=[]", "at least one"]),
        (lambda: labeling.keywords("t", [""], 1), InvalidVotesError, ["none of them empty"]),
        (lambda: labeling.regex("t", "(", 1), InvalidVotesError, ["'('", "not a regular expression"]),
        (lambda: labeling.threshold("t", label=1), InvalidVotesError, ["above=, below="]),
        (lambda: labeling.threshold("t", above=2, below=1, label=1), InvalidVotesError, ["above 2 and below 1"]),
        (lambda: labeling.from_column("t", ranks="best"), UnsupportedError, ["ranks='best'", "largest first"]),
        (lambda: labeling.from_model(object(), "t"), UnsupportedError, ["object has no predict"]),
        (lambda: labeling.from_annotations([1, 2], "id"), UnsupportedError, ["mapping from item to label"]),
        (
            lambda: labeling.from_annotations(pd.DataFrame({"id": [1, 1], "label": ["a", "b"]}), "id"),
            InvalidVotesError,
            ["Item 1 has two annotations"],
        ),
        (
            lambda: labeling.from_annotations(pd.DataFrame({"id": [1], "answer": ["a"]}), "id"),
            InvalidVotesError,
            ["no column 'label'", "label='answer'"],
        ),
        (
            lambda: cs.apply(labeling.threshold("x", above=1, label=1), {"x": ["two"]}),
            LabelingFunctionError,
            ["'x_above_1'", "holds 'two', not numbers"],
        ),
        (
            lambda: cs.apply(labeling.from_column("x"), [{"x": 1}, {"y": 2}]),
            UnknownColumnError,
            ["no column 'x'", "Write None"],
        ),
    ],
)
def test_bad_settings_are_refused(make_function, error, parts):
    with refused(error, *parts):
        make_function()


VOTES = [["a", "a", "b"], ["b", None, "b"], ["b", "a", None], [None, None, "a"]]
SPACE = cs.Classes(["a", "b"])


def test_the_numbers_are_those_worked_out_by_hand():
    columns = cs.summarize(VOTES, SPACE, gold=["a", "b", None, "b"]).columns
    assert (columns["votes"], columns["coverage"]) == ([3, 2, 3], [0.75, 0.5, 0.75])
    assert columns["overlaps"] == [0.75, 0.5, 0.5]
    # Source 0: in conflict with source 2 on item 0 and with source 1 on item 2.
    assert columns["conflicts"] == [0.5, 0.5, 0.25]
    # Source 0: a-a and a-b, b-b, b-a. Source 1: a-a and a-b, a-b. Source 2: b-a and b-a, b-b.
    assert columns["cost_to_others"] == pytest.approx([2 / 4, 2 / 3, 2 / 3])
    assert (columns["labels"], columns["polarity"]) == ([2, 1, 2], ["a, b", "a", "a, b"])
    assert columns["known"] == [2, 1, 3]
    assert columns["true_cost"] == pytest.approx([0.0, 0.0, 2 / 3])
    assert columns["accuracy"] == pytest.approx([1.0, 1.0, 1 / 3])


def test_without_a_space_labels_are_equal_or_not():
    table = cs.summarize(VOTES)
    with_space = cs.summarize(VOTES, SPACE)
    for name in table.columns:
        assert table.columns[name] == with_space.columns[name]
    arrays = cs.Votes.from_array([[[0, 1], [0, 1]], [[1, 0], [0, 1]]])
    assert cs.summarize(arrays).columns["conflicts"] == [0.5, 0.5]
    ragged = np.empty((1, 2), dtype=object)
    ragged[0, 0], ragged[0, 1] = [1], [1, 2]
    assert cs.summarize(cs.Votes.from_array(ragged)).columns["labels"] == [1, 1]


def test_a_source_alone_and_one_that_is_silent_have_no_cost():
    votes = cs.Votes.from_array([[0, None], [1, None]])
    columns = cs.summarize(votes, cs.Classes(2), gold=[None, None]).columns
    assert (columns["cost_to_others"], columns["conflicts"]) == ([None, None], [0.0, 0.0])
    assert (columns["labels"], columns["polarity"]) == ([2, 0], ["0, 1", "none"])
    assert (columns["true_cost"], columns["accuracy"]) == ([None, None], [None, None])
    assert " - " in repr(cs.summarize(votes, cs.Classes(2)))


SPACES = {
    "classes": cs.Classes(3),
    "graph": cs.FiniteMetric([(0, 1), (1, 2), (2, 3)]),
    "scores": cs.Scores(),
    "rankings": cs.Rankings(4),
    "metric": cs.Metric(lambda left, right: abs(left - right), candidates=[0.0, 1.0, 5.0]),
}


@pytest.mark.parametrize("kind", SPACES)
def test_costs_and_conflicts_are_those_of_every_pair_of_votes(kind):
    space = SPACES[kind]
    rng = np.random.default_rng(3)
    n, m = 40, 4
    truth = space.random(n, rng)
    labels = np.stack([space.random(n, rng) for _ in range(m)], axis=1)
    labels[:, 1] = labels[:, 0]
    observed = rng.random((n, m)) < 0.7
    votes = cs.Votes(labels, observed, tuple("abcd"), np.arange(n))
    columns = cs.summarize(votes, space, gold=truth).columns
    for source in range(m):
        apart, conflict, wrong = [], 0, []
        for row in range(n):
            if not observed[row, source]:
                continue
            others = [other for other in range(m) if other != source and observed[row, other]]
            costs = [float(space.cost(labels[row : row + 1, source], labels[row : row + 1, o])[0]) for o in others]
            apart += costs
            conflict += any(cost > 0 for cost in costs)
            wrong.append(float(space.cost(labels[row : row + 1, source], truth[row : row + 1])[0]))
        assert columns["cost_to_others"][source] == pytest.approx(np.mean(apart))
        assert columns["conflicts"][source] == pytest.approx(conflict / n)
        assert columns["true_cost"][source] == pytest.approx(np.mean(wrong))
    assert ("accuracy" in columns) == (space.n_labels is not None)


def test_soft_votes_are_as_far_apart_as_their_probabilities_and_many_labels_are_counted():
    votes = cs.Votes.from_array([[[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.0, 1.0]]])
    columns = cs.summarize(votes, cs.Classes(2), gold=[0, 1]).columns
    assert columns["cost_to_others"] == pytest.approx([0.35, 0.35])
    assert columns["true_cost"] == pytest.approx([0.35, 0.0])
    many = cs.summarize(np.arange(8)[:, None] % 6, cs.Classes(6)).columns
    assert many["polarity"] == ["6 labels"]  # counted instead of listed
