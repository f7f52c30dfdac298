"""Bad votes and gold: every kind has its own error, which names the place and the next step."""

import warnings

import numpy as np
import pytest
from refusals import NAMES, gap, model, named, names, refused, table, with_cell

import consilience as cs
from consilience.exceptions import (
    ConsilienceError,
    ConsilienceWarning,
    InvalidLabelError,
    InvalidVotesError,
    NotFittedError,
    SourceMismatchError,
    TransposedVotesError,
    UnknownSourceError,
)


def test_float_codes_and_lists_give_the_same_labels_as_integers_and_nan_abstains():
    codes = model().fit(table()).predict(table())
    for same in (table(float), table().tolist()):
        assert np.array_equal(model().fit(same).predict(same), codes)
    hole = with_cell(np.nan, float)
    fitted = model().fit(hole)
    assert fitted.source_model_.votes.tolist() == [200, 200, 200, 199, 200]
    masked = cs.Votes.from_matrix(with_cell(-1))
    assert np.array_equal(fitted.predict_proba(hole), model().fit(masked).predict_proba(masked))


@pytest.mark.parametrize(
    ("value", "dtype", "step"),
    [
        (7, int, "name the value that means 'abstains'"),
        (7, float, "name the value that means 'abstains'"),
        (-5, int, "name the value that means 'abstains'"),
        (0.5, float, "Round it"),
        (np.inf, float, "Round it"),
        (1e30, float, "label 1e+30"),
        (10**30, object, "label 1000000000000000000000000000000"),
    ],
)
def test_label_out_of_range_is_refused_with_its_place(value, dtype, step):
    with refused(InvalidLabelError, "Row 17", "'source_3'", f"label {value}", "0 .. 1", step):
        model().fit(with_cell(value, dtype))


def test_wrong_label_is_placed_at_predict_behind_abstentions_and_by_item_id():
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(table()).predict(with_cell(7))
    votes = table()
    votes[:17] = -1
    votes[17, :3] = -1
    votes[17, 3] = 7
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(votes)
    named_items = cs.Votes.from_matrix(with_cell(7), sources=NAMES, items=np.arange(200) + 1000)
    with refused(InvalidLabelError, "Row 17 (item 1017), source 'delta': label 7"):
        model().fit(named_items)


def test_names_come_back_as_names_and_wrong_ones_are_refused_with_their_place():
    text, space = names(table()), cs.Classes(["ham", "spam"])
    assert set(cs.LabelModel(space).fit(text).predict(text)) == {"ham", "spam"}
    with refused(InvalidLabelError, "Row 0", "'source_0'", "label 'spam'", "Classes([...])"):
        model().fit(text)
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 'spam'"):
        model().fit(with_cell("spam", object))
    text[4, 2] = "spma"
    with refused(InvalidLabelError, "Row 4", "'source_2'", "'spma'", "'ham', 'spam'", "Correct the spelling"):
        cs.LabelModel(space).fit(text)
    graph = cs.FiniteMetric([("cat", "animal"), ("animal", "dog")])
    with refused(InvalidLabelError, "Row 0", "'source_1'", "'bird'", "known node"):
        cs.LabelModel(graph).fit([["cat", "bird", "dog"]] * 20)


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ([0.7, 0.7], ["[0.7, 0.7]", "2 probabilities that add up to 1", "Normalize"]),
        ([1.5, -0.5], ["[1.5, -0.5]", "2 probabilities"]),
        ([0.2, 0.3, 0.5], ["3 numbers", "2 classes", "Give 2 probabilities"]),
        (["ham", "spam"], ["['ham', 'spam']", "as a set"]),
        (set(), ["empty set", "None to abstain"]),
        ({0, 5}, ["label 5", "0 .. 1"]),
        ({1: 0.5}, ["dict"]),
    ],
)
def test_soft_or_set_vote_that_is_none_is_refused_with_its_place(cell, parts):
    with refused(InvalidLabelError, "Row 17", "'source_3'", *parts):
        model().fit(with_cell(cell, object))


@pytest.mark.parametrize("abstain", [0, 1])
def test_abstain_value_that_is_a_label_is_refused(abstain):
    with refused(InvalidVotesError, f"abstain={abstain}", "also a label", "Recode"):
        model().fit(cs.Votes.from_matrix(table(), abstain=abstain))


def test_minus_one_is_a_label_where_the_space_has_it():
    signs = 2 * table() - 1
    space = cs.Classes([-1, 1])
    with refused(InvalidVotesError, "abstain=-1", "abstain=None"):
        cs.LabelModel(space).fit(cs.Votes.from_matrix(signs, abstain=-1))
    assert set(cs.LabelModel(space).fit(signs).predict(signs)) == {-1, 1}


def test_empty_votes_are_refused_at_fit_and_give_no_labels_at_predict():
    with refused(InvalidVotesError, "no items to learn from", "at least one row"):
        model().fit(named()[:0])
    assert model().fit(named()).predict(named()[:0]).shape == (0,)
    with refused(InvalidVotesError, "one-dimensional", "(200,)", "reshape(-1, 1)", "from_long"):
        model().fit(table()[:, 0])


def test_transposed_matrix_is_refused_at_fit_unless_its_sources_have_names():
    with refused(TransposedVotesError, "5 items by 200 unnamed sources", "matrix.T", "sources=[...]"):
        model().fit(table().T)
    votes = cs.Votes.from_matrix(table().T[:, :40], sources=[f"worker {index}" for index in range(40)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # five items say little about anybody
        assert model().fit(votes).weight_.shape == (40,)


def test_other_sources_than_those_of_the_fit_are_refused():
    fitted = model().fit(table())
    with refused(SourceMismatchError, "200 sources", "fitted on 5", "looks transposed"):
        fitted.predict(table().T)
    with refused(SourceMismatchError, "3 sources", "fitted on 5", "one column per fitted source"):
        fitted.predict(table()[:, :3])
    other = cs.Votes.from_matrix(table(), sources=[*NAMES[:4], "zeta"])
    for call in ("predict", "partial_fit"):
        with refused(SourceMismatchError, "missing ['epsilon']", "unknown ['zeta']"):
            getattr(model().fit(named()), call)(other)
    with refused(SourceMismatchError, "select"):
        model().fit(named()).predict(other)


def test_unfitted_model_says_to_fit_and_has_no_learned_attribute():
    for use in ("predict", "predict_proba", "confidence"):
        with refused(NotFittedError, "not been fitted", "fit(votes)"):
            getattr(model(), use)(table())
    for name in ("weight_", "expected_cost_", "standard_error_", "sources_", "diagnostics_"):
        assert not hasattr(model(), name)


@pytest.mark.parametrize("space", [cs.Classes(2), cs.FiniteMetric(1 - np.eye(2)), cs.Metric(gap)], ids=repr)
@pytest.mark.parametrize("gold", [None, [None] * 200])
def test_labelled_without_gold_is_refused(space, gold):
    with refused(InvalidVotesError, "method='labelled'", "gold="):
        cs.LabelModel(space, method="labelled").fit(table(), gold)


@pytest.mark.parametrize(
    ("gold", "error", "parts"),
    [
        ([0] * 10, InvalidVotesError, ["10 labels", "200 items", "None where it is unknown"]),
        (([0] * 200, [True] * 10), InvalidVotesError, ["10 items", "200", "True or False per item"]),
        (3, InvalidVotesError, ["gold=3", "one per item"]),
        ([*[None] * 7, 5, *[None] * 192], InvalidLabelError, ["Row 7", "'gold'", "label 5"]),
        (["spam", *[None] * 199], InvalidLabelError, ["Row 0", "'gold'", "'spam'"]),
    ],
)
def test_wrong_gold_is_refused(gold, error, parts):
    with refused(error, *parts):
        model().fit(table(), gold)


def test_score_without_gold_and_gold_beside_partitions_are_refused():
    with refused(InvalidVotesError, "known labels", "one label per item"):
        model().fit(table()).score(table(), [None] * 200)
    with refused(InvalidVotesError, "Partitions", "gold="):
        model().fit(cs.partitions.InMemoryPartitions.of(named()), gold=[0] * 200)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_failing_fit_leaves_the_model_as_it_was(call):
    fitted, fresh = model().fit(table()), model()
    before = fitted.source_model_
    for bad in (with_cell(7), table().T, table()[:0]):
        with pytest.raises(ConsilienceError):
            getattr(fitted, call)(bad)
        with pytest.raises(ConsilienceError):
            getattr(fresh, call)(bad)
    fitted.dependencies = [("source_0", "nobody")]
    with pytest.raises(UnknownSourceError):
        getattr(fitted, call)(table())
    fitted.dependencies = None
    assert not hasattr(fresh, "source_model_")
    assert fitted.source_model_ is before
    assert fitted.partial_fit(table()).source_model_.n_items == 400


@pytest.mark.parametrize("dtype", [int, float, object])
def test_masked_cell_abstains(dtype):
    hidden = np.zeros(table().shape, dtype=bool)
    hidden[17, 3] = True
    masked = np.ma.array(with_cell(99, dtype), mask=hidden)
    votes = cs.Votes.from_matrix(masked, abstain=None)
    assert np.array_equal(votes.observed, ~hidden)
    assert model().fit(masked).source_model_.votes.tolist() == [200, 200, 200, 199, 200]


def test_masked_gold_is_unknown():
    known = np.ma.array(np.full(200, 7), mask=True)
    known[:5] = table()[:5, 0]
    assert "5 known labels" in str(model(method="labelled").fit(table(), gold=known).diagnostics_)


def test_mask_over_part_of_a_label_is_refused_with_its_place():
    masked = np.ma.array(np.zeros((4, 3, 2)))
    masked[2, 1, 0] = np.ma.masked
    with refused(InvalidVotesError, "Row 2", "'source_1'", "only part of the label"):
        cs.Votes.from_array(masked)
    whole = np.ma.array(np.zeros((4, 3, 2)))
    whole[2, 1] = np.ma.masked
    assert not cs.Votes.from_array(whole).observed[2, 1]
