"""Bad votes and gold: every kind has its own error, which names the place and the next step."""

from __future__ import annotations

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
    ModelFormatError,
    NotFittedError,
    SourceMismatchError,
    TransposedVotesError,
    UnknownSourceError,
)

# --- labels ----------------------------------------------------------------------------------------


def test_float_codes_give_the_same_labels_as_integers():
    codes = model().fit(table()).predict(table())
    assert np.array_equal(model().fit(table(float)).predict(table(float)), codes)


def test_nan_cell_abstains():
    hole = with_cell(np.nan, float)
    fitted = model().fit(hole)
    assert fitted.sources_.columns["votes"] == [200, 200, 200, 199, 200]
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
    ],
)
def test_label_out_of_range_is_refused_with_its_place(value, dtype, step):
    with refused(InvalidLabelError, "Row 17", "'source_3'", f"label {value}", "0 .. 1", step):
        model().fit(with_cell(value, dtype))


def test_label_out_of_range_is_refused_at_predict_too():
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(table()).predict(with_cell(7))


def test_place_is_right_when_abstentions_come_before_the_wrong_label():
    votes = table()
    votes[:17] = -1
    votes[17, :3] = -1
    votes[17, 3] = 7
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(votes)


def test_place_names_the_item_id_where_there_is_one():
    votes = cs.Votes.from_matrix(with_cell(7), sources=NAMES, items=np.arange(200) + 1000)
    with refused(InvalidLabelError, "Row 17 (item 1017), source 'delta': label 7"):
        model().fit(votes)


def test_strings_without_names_are_told_how_to_name_classes():
    with refused(InvalidLabelError, "Row 0", "'source_0'", "label 'spam'", "Classes([...])"):
        model().fit(names(table()))


def test_strings_with_names_come_back_as_strings():
    text = names(table())
    fitted = cs.LabelModel(cs.Classes(["ham", "spam"])).fit(text)
    assert set(fitted.predict(text)) == {"ham", "spam"}


def test_misspelt_name_is_refused_with_its_place():
    text = names(table())
    text[4, 2] = "spma"
    with refused(InvalidLabelError, "Row 4", "'source_2'", "'spma'", "'ham', 'spam'", "Correct the spelling"):
        cs.LabelModel(cs.Classes(["ham", "spam"])).fit(text)


def test_unknown_node_is_refused_with_its_place():
    space = cs.FiniteMetric([("cat", "animal"), ("animal", "dog")])
    with refused(InvalidLabelError, "Row 0", "'source_1'", "'bird'", "known node"):
        cs.LabelModel(space).fit([["cat", "bird", "dog"]] * 20)


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ([0.7, 0.7], ["[0.7, 0.7]", "2 probabilities that add up to 1", "Normalise"]),
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


# --- shape -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "fact", "step"),
    [((0, 5), "no items", "at least one row"), ((5, 0), "no sources", "at least one column")],
)
def test_empty_matrix_is_refused(shape, fact, step):
    with refused(InvalidVotesError, fact, str(shape), step):
        model().fit(np.zeros(shape, dtype=int))


def test_empty_votes_are_refused_at_fit():
    with refused(InvalidVotesError, "no items to learn from", "at least one row"):
        model().fit(named()[:0])


def test_empty_votes_give_no_labels_at_predict():
    assert model().fit(named()).predict(named()[:0]).shape == (0,)


def test_one_dimension_is_refused():
    with refused(InvalidVotesError, "one-dimensional", "(200,)", "reshape(-1, 1)", "from_long"):
        model().fit(table()[:, 0])


def test_list_of_lists_is_a_matrix():
    listed = table().tolist()
    assert np.array_equal(model().fit(listed).predict(listed), model().fit(table()).predict(table()))


def test_transposed_matrix_is_refused_at_fit():
    with refused(TransposedVotesError, "5 items by 200 unnamed sources", "matrix.T", "sources=[...]"):
        model().fit(table().T)


def test_wide_matrix_with_named_sources_is_not_taken_for_transposed():
    votes = cs.Votes.from_matrix(table().T, sources=[f"worker {index}" for index in range(200)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # five items say little about anybody
        assert model().fit(votes).weight_.shape == (200,)


def test_transposed_matrix_is_refused_at_predict():
    with refused(SourceMismatchError, "200 sources", "fitted on 5", "looks transposed"):
        model().fit(table()).predict(table().T)


def test_fewer_columns_at_predict_are_refused():
    with refused(SourceMismatchError, "3 sources", "fitted on 5", "one column per fitted source"):
        model().fit(table()).predict(table()[:, :3])


def test_other_named_sources_at_predict_are_refused_by_name():
    other = cs.Votes.from_matrix(table(), sources=[*NAMES[:4], "zeta"])
    with refused(SourceMismatchError, "missing ['epsilon']", "unknown ['zeta']", "select"):
        model().fit(named()).predict(other)


def test_other_named_sources_are_refused_by_partial_fit():
    other = cs.Votes.from_matrix(table(), sources=[*NAMES[:4], "zeta"])
    with refused(SourceMismatchError, "missing ['epsilon']", "unknown ['zeta']"):
        model().fit(named()).partial_fit(other)


@pytest.mark.parametrize("use", ["predict", "predict_proba", "confidence"])
def test_unfitted_model_says_to_fit(use):
    with refused(NotFittedError, "not been fitted", "fit(votes)"):
        getattr(model(), use)(table())


@pytest.mark.parametrize("name", ["weight_", "expected_cost_", "standard_error_", "sources_", "diagnostics_"])
def test_unfitted_model_has_no_learned_attribute(name):
    assert not hasattr(model(), name)


# --- gold ------------------------------------------------------------------------------------------


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


def test_score_without_gold_is_refused():
    with refused(InvalidVotesError, "known labels", "one label per item"):
        model().fit(table()).score(table(), [None] * 200)


def test_gold_beside_partitions_is_refused():
    with refused(InvalidVotesError, "Partitions", "gold="):
        model().fit(cs.partitions.InMemoryPartitions.of(named()), gold=[0] * 200)


# --- nothing is half done --------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [with_cell(7), table().T, table()[:0]], ids=["label", "transposed", "empty"])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_failing_fit_leaves_the_fitted_model_as_it_was(bad, call):
    fitted = model().fit(table())
    before = fitted.source_model_
    with pytest.raises(ConsilienceError):
        getattr(fitted, call)(bad)
    assert fitted.source_model_ is before


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_failing_estimation_leaves_the_fitted_model_as_it_was(call):
    fitted = model().fit(table())
    before = fitted.source_model_
    fitted.dependencies = [("source_0", "nobody")]
    with pytest.raises(UnknownSourceError):
        getattr(fitted, call)(table())
    fitted.dependencies = None
    assert fitted.source_model_ is before
    assert fitted.partial_fit(table()).source_model_.n_items == 400


def test_failing_fit_leaves_a_fresh_model_unfitted():
    fresh = model()
    with pytest.raises(InvalidLabelError):
        fresh.fit(with_cell(7))
    assert not hasattr(fresh, "source_model_")


def test_failing_save_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "model.npz"
    model().fit(table()).save(path)
    before = path.read_bytes()
    nameless = cs.LabelModel(cs.Metric(lambda left, right: abs(left - right))).fit(table(float))
    with refused(ModelFormatError, "no registered name", "register_distance"):
        nameless.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_number_beyond_every_code_is_refused_with_its_place():
    big = table().tolist()
    big[17][3] = 10**30
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 1000000000000000000000000000000"):
        model().fit(big)
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 1e+30"):
        model().fit(with_cell(1e30, float))


def test_text_among_numpy_numbers_is_refused_at_its_own_place():
    mixed = table().astype(object)
    for cell in np.ndindex(mixed.shape):
        mixed[cell] = np.int64(mixed[cell])
    mixed[17, 3] = "spam"
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 'spam'"):
        model().fit(mixed)


# --- masked arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [int, float, object])
def test_masked_cell_abstains(dtype):
    hidden = np.zeros(table().shape, dtype=bool)
    hidden[17, 3] = True
    masked = np.ma.array(with_cell(99, dtype), mask=hidden)
    votes = cs.Votes.from_matrix(masked, abstain=None)
    assert np.array_equal(votes.observed, ~hidden)
    assert model().fit(masked).sources_.columns["votes"] == [200, 200, 200, 199, 200]


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
