"""Votes from matrices, arrays, lists, long and wide tables of any kind; what can be done with them; repeated votes."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import InvalidVotesError, TransposedVotesError, UnknownSourceError
from consilience.votes import Votes, as_votes

nan = float("nan")
matrices = hnp.arrays(np.int8, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.integers(-1, 3))


def small() -> Votes:
    return Votes.from_matrix([[0, 1, -1], [1, 1, 1], [-1, 0, 2]], sources=["ann", "bob", "cleo"], items=["x", "y", "z"])


def objects(*cells):
    """Return one row of Python objects."""
    array = np.empty((1, len(cells)), dtype=object)
    for column, cell in enumerate(cells):
        array[0, column] = cell
    return array


def test_matrix_marks_the_abstain_value_and_makes_up_names_and_ids():
    votes = small()
    assert votes.observed.tolist() == [[True, True, False], [True] * 3, [False, True, True]]
    assert votes.shape == (votes.n_items, votes.n_sources) == (3, 3)
    assert len(votes) == 3
    assert (votes.sources, votes.items.tolist()) == (("ann", "bob", "cleo"), ["x", "y", "z"])
    assert (votes.abstain, votes.names_given) == (-1, True)
    made_up = Votes.from_matrix([[0, 1]])
    assert (made_up.sources, made_up.items.tolist()) == (("source_0", "source_1"), [0])
    assert not made_up.names_given


def test_matrix_neither_copies_nor_changes_an_array():
    matrix = np.zeros((4, 3), dtype=np.int8)
    votes = Votes.from_matrix(matrix)
    assert votes.labels.dtype == np.int8
    assert np.shares_memory(votes.labels, matrix)
    given = np.array([["a", nan], [None, "b"]], dtype=object)
    assert Votes.from_matrix(given).labels[0, 1] is None
    assert isinstance(given[0, 1], float)


@pytest.mark.parametrize(
    ("matrix", "options", "observed"),
    [
        (np.array([[0.0, nan, -1.0]]), {}, [True, False, False]),
        ([["cat", None, "-"]], {"abstain": "-"}, [True, False, False]),
        ([[-1, 0]], {"abstain": None}, [True, True]),
        (np.array([[0, 255]], dtype=np.uint8), {}, [True, True]),
        (np.array([[0, 255]], dtype=np.uint8), {"abstain": 255}, [True, False]),
        (np.array([[True, False]]), {}, [True, True]),
        (np.array([["a", "?"]]), {"abstain": "?"}, [True, False]),
        (np.array([["None", "NA", "nan"]]), {}, [True, True, True]),
        ([["cat", -1]], {}, [True, False]),
    ],
)
def test_matrix_of_any_kind_knows_who_abstains(matrix, options, observed):
    assert Votes.from_matrix(matrix, **options).observed.tolist() == [observed]


def test_lists_of_numbers_with_none_stay_integers_and_do_not_become_text():
    votes = Votes.from_matrix([[0, None], [2, 1]])
    assert votes.labels.dtype == np.int64
    assert votes.labels[votes.observed].tolist() == [0, 2, 1]
    assert Votes.from_matrix([["cat", -1], ["dog", "cat"]]).labels[0, 0] == "cat"


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        ([0, 1, 1], {}, r"one-dimensional, shape \(3,\).*reshape\(-1, 1\).*from_long"),
        (np.zeros(3), {}, r"one-dimensional, shape \(3,\)"),
        ([[0, 1], [1]], {}, r"Row 1 has 1 votes, but row 0 has 2.*None where a source abstains"),
        ([[0, 1], None], {}, r"Row 1 is None.*list of None"),
        ([{"item": 1}], {}, r"Row 0 is a dict.*from_long"),
        ([], {}, r"no items.*at least one row"),
        (np.zeros((0, 3)), {}, r"no items.*\(0, 3\)"),
        (np.zeros((3, 0)), {}, r"no sources.*\(3, 0\).*at least one column"),
        ([[], []], {}, r"no sources"),
        (5, {}, r"single int.*\(items, sources\).*toarray"),
        (np.zeros((2, 3, 4)), {}, r"\(2, 3, 4\).*from_array"),
        ([[[0, 1], [1, 0]]], {}, r"\(1, 2, 2\).*from_array"),
        (np.array([["cat", "dog"], ["cat", -1]]), {}, r"row 1, column 1 holds '-1'.*abstain='-1'"),
        (np.array([[0, -1]]), {"abstain": "-1"}, r"abstain='-1' is not a number.*abstain=-1"),
        (np.zeros((2, 3)), {"sources": list("abcd")}, r"3 columns of votes, but 4 source names.*one name per column"),
        (np.zeros((2, 3)), {"sources": list("aba")}, r"name 'a' occurs twice, for columns 0 and 2.*its own name"),
        (np.zeros((2, 3)), {"sources": ["ann", "bob"]}, r"3 columns.*2 source names.*votes\.T"),
        ([[0, 1]], {"sources": ["ann", None]}, "Source 1 has no name: None"),
        ([[0], [1]], {"items": [1, 2, 3]}, r"2 items, but the item ids have shape \(3,\)"),
        ([[0], [1]], {"items": ["a", None]}, "Row 1 has no item"),
    ],
)
def test_matrix_or_names_of_the_wrong_shape_say_what_to_do(matrix, options, message):
    with pytest.raises(InvalidVotesError, match=message) as caught:
        Votes.from_matrix(matrix, **options)
    assert isinstance(caught.value, TransposedVotesError) == message.endswith(r"votes\.T")


def test_array_takes_a_cell_of_nan_as_abstention_and_refuses_half_a_label_unless_a_mask_says_more():
    array = np.ones((2, 2, 3))
    array[0, 1] = nan
    votes = Votes.from_array(array)
    assert votes.observed.tolist() == [[True, False], [True, True]]
    assert np.shares_memory(votes.labels, array)
    assert votes.abstain is None
    array[1, 0, 2] = nan
    with pytest.raises(InvalidVotesError, match=r"Row 1, source 'ann': only part.*\[1.0, 1.0, nan\].*observed="):
        Votes.from_array(array, sources=["ann", "bob"])
    with pytest.raises(InvalidVotesError, match=r"Row 1, source 'source_0'"):
        Votes.from_array(array.tolist())
    assert Votes.from_array(array, observed=[[1, 0], [1, 1]]).observed.tolist() == [[True, False], [True, True]]
    for observed in ([True, False], [[1, 2], [0, 1]], [["a", "b"], ["c", "d"]]):
        with pytest.raises(InvalidVotesError, match=r"True or False.*\(2, 2\).*Leave it out"):
            Votes.from_array(array, observed=observed)


def test_nested_lists_of_one_shape_become_numbers_and_ragged_ones_stay_lists():
    votes = Votes.from_array([[[0, 1, 2], None], [[2, 1, 0], [0, 2, 1]]])
    assert (votes.labels.shape, votes.labels.dtype.kind) == ((2, 2, 3), "i")
    assert votes.observed.tolist() == [[True, False], [True, True]]
    ragged = Votes.from_array([[[2, 0], None], [[2, 0, 2], [0, 1, 2]]])
    assert ragged.labels.tolist() == [[[2, 0], None], [[2, 0, 2], [0, 1, 2]]]
    empty = Votes.from_array([[[], None], [[], []]])  # empty lists are labels, not abstentions
    assert (empty.labels.shape, empty.observed.tolist()) == ((2, 2), [[True, False], [True, True]])


def test_object_arrays_are_read_by_their_cells():
    assert Votes.from_array(objects(1, None)).labels.dtype == np.int64
    deep = Votes.from_array(np.array([[[1, 2], [None, None]]], dtype=object))
    assert (deep.labels.shape, deep.observed.tolist()) == ((1, 2, 2), [[True, False]])
    assert Votes.from_array(np.array([[["a", "b"], ["c", "d"]]], dtype=object)).labels[0, 1] == ["c", "d"]
    assert Votes.from_array(objects([1, 2], [3, 4])).labels.tolist() == [[[1, 2], [3, 4]]]
    rows = objects([1, None], [2, 3])[0]
    assert Votes.from_array(rows).observed.tolist() == [[True, False], [True, True]]


def test_labels_of_any_python_type():
    votes = Votes.from_array([[{"stars": 1}, None], [{"stars": 2}, {"stars": 3}]])
    assert votes.labels[1, 1] == {"stars": 3}
    assert not votes.observed[0, 1]
    assert Votes.from_array([[2**70, None]]).labels[0, 0] == 2**70  # exact
    dates = np.array([["2024-01-01", "NaT"]], dtype="datetime64[D]")
    assert Votes.from_array(dates).observed.tolist() == [[True, False]]
    assert Votes.from_array(np.array([[[0, -1], [1, -1]]])).observed.all()  # integers have no abstentions


@pytest.mark.parametrize(
    ("data", "observed"),
    [
        (np.array([[0, -1]]), [[True, False]]),
        ([[0, -1]], [[True, False]]),
        ([[0, None]], [[True, False]]),
        (np.array([[0.0, nan]]), [[True, False]]),
        (np.array([[0.5, -1.0]]), [[True, True]]),
        ([["spam", None]], [[True, False]]),
        (np.array([[[0, 1], [-1, -1]]]), [[True, True]]),
        ({"ann": [1, 2], "bob": [None, 0]}, [[True, False], [True, True]]),
    ],
)
def test_as_votes_knows_who_abstains(data, observed):
    assert as_votes(data).observed.tolist() == observed


def test_as_votes_returns_votes_as_they_are():
    assert as_votes(given := small()) is given
    assert not as_votes([[0, 1]]).names_given


@settings(max_examples=50, deadline=None)
@given(matrices)
def test_lists_arrays_and_objects_are_read_alike(matrix):
    votes = Votes.from_matrix(matrix)
    some = np.where(matrix == -1, None, matrix.astype(object))
    floats = np.where(matrix == -1, np.nan, matrix.astype(float))
    for same in (matrix.tolist(), some, some.tolist(), floats):
        assert as_votes(same).equals(votes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observed": np.ones(3, bool)}, r"boolean array of shape \(items, sources\)"),
        ({"observed": np.ones((3, 3), int)}, r"boolean.*not int64"),
        ({"labels": np.ones((3, 2))}, r"labels have shape \(3, 2\), but observed has \(3, 3\)"),
        ({"items": np.arange(2)}, r"3 items, but the item ids have shape \(2,\)"),
        ({"sources": ("a", "b")}, r"3 columns of votes, but 2 source names"),
    ],
)
def test_direct_construction_checks_shapes(change, message):
    fields = {name: getattr(small(), name) for name in ("labels", "observed", "sources", "items")}
    with pytest.raises(InvalidVotesError, match=message):
        Votes(**(fields | change))


@pytest.mark.parametrize(
    ("key", "items"),
    [
        (1, ["y"]),
        (-1, ["z"]),
        (np.int64(0), ["x"]),
        ([2, 0], ["z", "x"]),
        (np.array([True, False, True]), ["x", "z"]),
        ([], []),
        (slice(None, None, -1), ["z", "y", "x"]),
        (([0, 1], Ellipsis), ["x", "y"]),
        ((slice(1, 3), slice(None)), ["y", "z"]),
        ((0, ...), ["x"]),
    ],
)
def test_items_are_picked_like_rows_of_an_array(key, items):
    part = small()[key]
    assert part.items.tolist() == items
    assert part.shape == (len(items), 3)
    assert (part.abstain, part.names_given) == (-1, True)


def test_slices_are_views_and_positions_outside_are_an_index_error():
    votes = small()
    assert np.shares_memory(votes[1:].labels, votes.labels)
    assert np.shares_memory(votes[1:].observed, votes.observed)
    with pytest.raises(IndexError, match="no item 3; there are 3 items"):
        votes[3]
    with pytest.raises(IndexError):
        votes[-4]
    with pytest.raises(TypeError):
        iter(votes)
    with pytest.raises(TypeError):
        np.asarray(votes)


@pytest.mark.parametrize("key", ["ann", (0, 1), (0, 1, 2), [0.5], [[0]], ["ann"]])
def test_other_keys_point_to_select(key):
    with pytest.raises(InvalidVotesError, match=r"indexed by item.*votes\.select"):
        small()[key]


def test_select_keeps_the_order_asked_for_and_refuses_what_is_not_there():
    votes = small().select(["cleo", "ann"])
    assert votes.sources == ("cleo", "ann")
    assert votes.observed.tolist() == [[False, True], [True, True], [True, False]]
    assert small().select("bob").labels.tolist() == [[1], [1], [0]]
    with pytest.raises(UnknownSourceError, match=r"no source 'anne'. Did you mean 'ann'\?"):
        small().select(["anne"])
    with pytest.raises(UnknownSourceError, match=r"'xyz'. Choose from 'ann', 'bob', 'cleo'"):
        small().select(["xyz"])
    with pytest.raises(InvalidVotesError, match="no sources"):
        small().select([])
    with pytest.raises(InvalidVotesError, match="'ann' occurs twice"):
        small().select(["ann", "ann"])


def test_coverage_and_overlap_by_hand(monkeypatch):
    votes = small()
    assert votes.coverage() == pytest.approx([2 / 3, 1, 2 / 3])
    expected = np.array([[2, 2, 1], [2, 3, 2], [1, 2, 2]]) / 3
    assert votes.overlap() == pytest.approx(expected)
    monkeypatch.setattr("consilience.votes._ROWS_AT_ONCE", 2)  # it adds up over blocks
    assert votes.overlap() == pytest.approx(expected)
    assert (votes[:0].coverage().tolist(), votes[:0].overlap().tolist()) == ([0, 0, 0], [[0] * 3] * 3)


def test_concatenation_matches_sources_by_name():
    first = Votes.from_matrix([[0, 1]], sources=["ann", "bob"])
    second = Votes.from_matrix([[2, -1], [3, 4]], sources=["cleo", "ann"])
    votes = Votes.concatenate([first, second])
    assert votes.sources == ("ann", "bob", "cleo")
    assert votes.observed.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 1]]
    assert (votes.labels[votes.observed].tolist(), votes.items.tolist()) == ([0, 1, 2, 4, 3], [0, 1, 2])
    assert votes.abstain == -1


def test_concatenation_keeps_text_and_numbers_apart_and_ragged_labels_whole():
    def together(*arrays):
        return Votes.concatenate([Votes.from_array(array, sources=["ann"]) for array in arrays])

    assert together([[1]], np.array([["a"]])).labels.tolist() == [[1], ["a"]]
    assert together([[1]], [[0.5]]).labels.dtype == np.float64
    assert together(np.array([[-1]], np.int64), np.array([[1]], np.uint64)).labels.dtype == np.int64
    assert together([[None]], np.array([[0]], np.int8)).labels.dtype == np.int8  # nobody votes in the first
    votes = together(np.zeros((1, 1, 3)), np.ones((1, 1, 4)))
    assert votes.labels.shape == (2, 1)
    assert [len(label) for label in votes.labels[:, 0]] == [3, 4]
    assert Votes.concatenate([Votes.from_matrix([[1]]), Votes.from_array([[1]])]).abstain is None
    with pytest.raises(InvalidVotesError, match=r"different shapes: \(\) and \(3,\).*one label"):
        together([[0.0]], np.zeros((1, 1, 3)))


def test_concatenation_refuses_the_same_item_twice_and_unnamed_sources_that_do_not_match():
    with pytest.raises(InvalidVotesError, match="nothing to concatenate"):
        Votes.concatenate([])
    first = Votes.from_matrix([[0], [1]], items=["x", "y"])
    with pytest.raises(InvalidVotesError, match=r"id 'y' occurs twice, in row 1 and row 2.*repeats='first'"):
        Votes.concatenate([first, first[1:]])
    assert Votes.from_matrix([[0, 1], [1, 1]], items=["x", "x"]).items.tolist() == ["x", "x"]
    unnamed = Votes.from_matrix([[0, 1]])
    with pytest.raises(InvalidVotesError, match=r"2 unnamed, 3 unnamed.*sources="):
        Votes.concatenate([unnamed, Votes.from_matrix([[0, 1, 1]])])
    with pytest.raises(InvalidVotesError, match=r"2 unnamed, 3 named"):
        Votes.concatenate([unnamed, small()])
    assert not Votes.concatenate([unnamed, unnamed]).names_given


@settings(max_examples=50, deadline=None)
@given(matrices, st.data())
def test_cutting_and_selecting_back_and_forth_gives_the_votes_back(matrix, data):
    votes = Votes.from_matrix(matrix)
    cut = data.draw(st.integers(0, len(votes)))
    assert Votes.concatenate([votes[:cut], votes[cut:]]).equals(votes)
    names = data.draw(st.permutations(votes.sources))
    shuffled = votes.select(names)
    assert shuffled.select(votes.sources).equals(votes)
    assert dict(zip(names, shuffled.coverage(), strict=True)) == dict(zip(votes.sources, votes.coverage(), strict=True))


def test_votes_equal_when_what_was_said_is_equal():
    votes = small()
    other = Votes(votes.labels.astype(object), votes.observed, votes.sources, votes.items)
    other.labels[0, 2] = "never looked at"
    assert votes.equals(other)
    other.labels[0, 0] = 7
    assert not votes.equals(other)
    assert not votes.equals(votes[:2])
    assert not votes.equals(votes.select(["ann", "cleo", "bob"]))
    assert votes != small()
    assert pickle.loads(pickle.dumps(votes)).equals(votes)
    ragged = Votes.from_array([[[1, 2], [3]]])
    assert ragged.equals(Votes.from_array([[[1, 2], [3]]]))
    assert ragged.equals(Votes.from_array(objects(np.array([1, 2]), np.array([3]))))
    assert not ragged.equals(Votes.from_array([[[1, 2], [4]]]))


@pytest.mark.parametrize(
    ("votes", "text"),
    [
        (small(), "Votes(3 items, 3 sources, 78% observed)"),
        (small()[0].select("ann"), "Votes(1 item, 1 source, 100% observed)"),
        (small()[:0], "Votes(0 items, 3 sources, 0% observed)"),
        (Votes.from_matrix(np.eye(300) - 1), "Votes(300 items, 300 sources, under 1% observed)"),
        (Votes.from_matrix(-np.eye(300)), "Votes(300 items, 300 sources, over 99% observed)"),
    ],
)
def test_text(votes, text):
    assert repr(votes) == text
    assert votes._repr_html_().startswith(f"<p><code>{text}</code></p><table>")


ROWS = [("x1", "ann", 3.0), ("x1", "ann", 5.0), ("x1", "bob", 4.0), ("x2", "ann", None), ("x2", "ann", 1.0)]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {}, r"votes twice on item .x1.*'average'.*repeats='separate'"),
        ([("x", "ann", "cat"), ("x", "ann", "dog")], {"repeats": "average"}, "needs labels that are numbers, not str"),
        (
            [("x", "ann", 1), ("x", "ann", 2), ("x", "ann #2", 3)],
            {"repeats": "separate"},
            "'ann #2' is the name of another source",
        ),
        (ROWS, {"repeats": "newest"}, "'refuse', 'first', 'last', 'majority', 'average', 'separate'"),
    ],
)
def test_repeated_votes_are_refused_with_what_can_be_done(rows, options, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(rows, **options)


def test_repeated_votes_are_averaged_or_become_sources_in_the_order_of_the_rows():
    votes = Votes.from_long(ROWS, repeats="average")
    assert (votes.sources, votes.repeated_pairs) == (("ann", "bob"), ())
    assert votes.observed.tolist() == [[True, True], [True, False]]
    assert votes.labels[votes.observed].tolist() == [4.0, 4.0, 1.0]
    votes = Votes.from_long(ROWS, repeats="separate")
    assert votes.sources == ("ann #1", "ann #2", "bob")
    assert votes.observed.tolist() == [[True, True, True], [False, True, False]]
    assert votes.labels[votes.observed].tolist() == [3.0, 5.0, 4.0, 1.0]
    assert votes.repeated_pairs == (("ann #1", "ann #2"),)
    rows = [("x", "ann", 1), ("x", "bob", 2), ("y", "ann", 3)]
    for repeats in ("average", "separate"):  # nothing is repeated
        votes = Votes.from_long(rows, repeats=repeats)
        assert votes.equals(Votes.from_long(rows))
        assert votes.repeated_pairs == ()


def test_pairs_of_runs_follow_the_sources():
    rows = [("x", "ann", 1), ("x", "ann", 2), ("x", "ann", 3), ("x", "bob", 1)]
    votes = Votes.from_long(rows, repeats="separate")
    assert len(votes.repeated_pairs) == 3
    assert votes[:1].repeated_pairs == votes.repeated_pairs
    assert votes.select(["ann #1", "ann #3", "bob"]).repeated_pairs == (("ann #1", "ann #3"),)
    other = Votes.from_long([("y", "ann", 1), ("y", "bob", 2)], repeats="separate")
    assert Votes.concatenate([votes, other]).repeated_pairs == votes.repeated_pairs


def test_runs_of_one_judge_do_not_outvote_the_others():
    # Three runs of a judge share their error; told so, the model is near the one that sees the mean of the runs.
    rng = np.random.default_rng(0)
    truth = rng.normal(size=800)
    judge = truth + rng.normal(0, 1.0, 800)
    said = [("a", truth + rng.normal(0, 0.7, 800)), ("b", truth + rng.normal(0, 0.7, 800))]
    said += [("judge", judge + rng.normal(0, 0.2, 800)) for _ in range(3)]
    rows = [(item, name, vote) for name, votes in said for item, vote in enumerate(votes.tolist())]
    space = cs.Scores(mean=0.0, variance=1.0)
    averaged = Votes.from_long(rows, repeats="average")
    apart = Votes.from_long(rows, repeats="separate")
    best = cs.LabelModel(space).fit(averaged).predict(averaged)
    told = cs.LabelModel(space, dependencies=apart.repeated_pairs).fit(apart).predict(apart)
    assert np.mean((told - truth) ** 2) < 1.1 * np.mean((best - truth) ** 2)


def test_votes_of_a_table_name_what_makes_them():
    with refused(InvalidVotesError, "Votes.from_matrix"):
        Votes([[0, 1]])


MAKERS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas arrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "arrow": pa.table,
    "dict": dict,
}
every_frame = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
LONG = {"item": ["x2", "x2", "x1", "x3"], "source": ["bob", "ann", "bob", "cleo"], "label": [1, 0, 2, None]}
EMPTY = ([], {}, pd.DataFrame(), pl.DataFrame(), pa.table({"item": []}))


@every_frame
def test_long_table_by_hand(make):
    votes = Votes.from_long(make(LONG))
    assert (votes.items.tolist(), votes.sources) == (["x2", "x1", "x3"], ("bob", "ann", "cleo"))
    assert votes.observed.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert votes.labels[votes.observed].tolist() == [1, 0, 2]
    assert votes.labels.dtype == np.int64
    assert votes.names_given
    renamed = make({"task": LONG["item"], "worker": LONG["source"], "answer": LONG["label"]})
    assert Votes.from_long(renamed, item="task", source="worker", label="answer").equals(votes)
    numbers = Votes.from_long(make({"item": [7, 7, 3], "source": [1, 2, 1], "label": ["a", "b", "a"]}))
    assert numbers.items.tolist() == [7, 3]
    assert numbers.items.dtype == np.int64
    assert numbers.sources == ("1", "2")


@every_frame
def test_long_labels_of_every_kind_keep_it(make):
    votes = Votes.from_long(make(LONG | {"label": ["None", "NA", None, "nan"]}))
    assert votes.labels.dtype == object
    assert votes.labels.tolist() == [["None", "NA", None], [None, None, None], [None, None, "nan"]]
    assert votes.observed.sum() == 3
    votes = Votes.from_long(make(LONG | {"label": [0.5, None, 1.0, 2.0]}))
    assert votes.labels.dtype == np.float64
    assert np.array_equal(votes.observed, ~np.isnan(votes.labels))
    votes = Votes.from_long(make(LONG | {"label": [[0, 1], [1], None, []]}))
    assert votes.labels.shape == (3, 3)
    assert list(votes.labels[0, 0]) == [0, 1]
    assert list(votes.labels[2, 2]) == []
    assert votes.observed.sum() == 3
    votes = Votes.from_long(make(LONG | {"label": [True, False, None, True]}))
    assert votes.labels.dtype == bool
    assert votes.labels[votes.observed].tolist() == [True, False, True]


def test_long_from_records_which_may_lack_a_label_or_hold_anything():
    rows = list(zip(*LONG.values(), strict=True))
    expected = Votes.from_long(LONG)
    assert Votes.from_long(rows).equals(expected)
    assert Votes.from_long([dict(zip(LONG, row, strict=True)) for row in rows]).equals(expected)
    silent = Votes.from_long([{"item": 1, "source": "a", "label": "x"}, {"item": 2, "source": "a"}])
    assert silent.observed.tolist() == [[True], [False]]
    day = datetime.date(2024, 1, 1)
    votes = Votes.from_long([(day, "ann", {"stars": 1}), (day, "bob", {"stars": 2})])
    assert votes.items.tolist() == [day]
    assert votes.labels[0, 1] == {"stars": 2}


def test_long_categories():
    frame = pd.DataFrame(LONG | {"label": pd.Categorical([1, 0, 2, None])})
    frame["source"] = frame["source"].astype("category")
    assert Votes.from_long(frame).equals(Votes.from_long(LONG))
    table = pa.table(LONG)
    column = table["source"].dictionary_encode()
    assert Votes.from_long(table.set_column(1, "source", column)).equals(Votes.from_long(LONG))
    lazy = pl.DataFrame(LONG).with_columns(pl.col("source").cast(pl.Categorical))
    assert Votes.from_long(lazy).equals(Votes.from_long(LONG))


@every_frame
def test_long_duplicates_and_gaps_are_named(make):
    table = {"item": ["x", "y", "x"], "source": ["ann"] * 3, "label": ["cat", "dog", "bird"]}
    message = r"'ann' votes twice on item 'x': 'cat' in row 0 and 'bird' in row 2. Choose.*repeats='separate'"
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(make(table))
    for role in ("item", "source"):
        with pytest.raises(InvalidVotesError, match=rf"Row 2 has no {role}.*drop the row"):
            Votes.from_long(make(LONG | {role: ["x", "y", None, "z"]}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["task", "worker", "label"], r"no column 'item'.*'task', 'worker'.*item='task'\?"),
        (["item", "worker", "label"], r"no column 'source'.*source='worker'\?"),
        (["item", "source", "Response"], r"no column 'label'.*label='Response'\?"),
        (["item", "source", "lable"], r"no column 'label'.*label='lable'\?"),
        (["item", "source", "zzz"], r"no column 'label'.*Name it with label="),
    ],
)
def test_long_missing_column_offers_the_likely_one(columns, message):
    frame = pl.DataFrame(dict(zip(columns, [["x"], ["ann"], [1]], strict=True)))
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(frame)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([("x", "ann")], r"Row 0 is \('x', 'ann'\).*3 entries: \(item, source, label\)"),
        ([("x", "ann", 1), 5], r"Row 1 is 5"),
        ({"item": [1, 2], "source": ["a"]}, r"different lengths: 'item' 2, 'source' 1"),
        ({"item": "abc"}, r"A column is 'abc', not a list"),
        ([([1], "ann", 1)], r"Row 0: \[1\] cannot be used as item id.*numbers or text"),
        (np.zeros((3, 3)), r"ndarray is not a table.*from_matrix"),
        (pl.LazyFrame(LONG), r"lazy frame.*\.collect\(\)"),
        ([("x", 1, 0), ("x", "1", 0)], r"source name '1' occurs twice"),
        ([(1, 5, 0.5), (2, 5, 1.5), (2, 5, None), (1, 5, 2.5)], r"Source '5' .* item 1: 0.5 in row 0 and 2.5 in row 3"),
        (pd.DataFrame(LONG).set_index("item"), r"'item' is the index.*reset_index"),
        *((empty, "no items: the table has no rows") for empty in EMPTY),
    ],
)
def test_long_from_something_else(bad, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(bad)


def test_columns_of_the_same_name_are_refused_by_the_model_too():
    frames = [
        pd.DataFrame([[0, 1, 0]] * 9, columns=["ann", "ann", "bob"]),
        pa.table([[0] * 9, [1] * 9, [0] * 9], names=["ann", "ann", "bob"]),
    ]
    for frame in frames:
        with pytest.raises(InvalidVotesError, match=r"same name: 'ann', 'ann', 'bob'\. Rename"):
            cs.LabelModel(cs.Classes(2)).fit(frame)


WIDE = {"id": ["x", "y", "z"], "ann": [0, None, 1], "bob": [2, 1, None]}


@every_frame
def test_wide_table_by_hand(make):
    votes = Votes.from_frame(make(WIDE), item="id")
    assert (votes.sources, votes.items.tolist()) == (("ann", "bob"), ["x", "y", "z"])
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert votes.labels.dtype == np.int64
    assert votes.labels[votes.observed].tolist() == [0, 2, 1, 1]
    assert votes.names_given
    picked = Votes.from_frame(make(WIDE), sources=["bob", "ann"])
    assert (picked.sources, picked.items.tolist()) == (("bob", "ann"), [0, 1, 2])
    table = {"ann": WIDE["ann"], "bob": WIDE["bob"]}
    assert as_votes(make(table)).equals(Votes.from_frame(table))
    with pytest.raises(InvalidVotesError, match=r"Item id 'x' occurs twice, in row 0 and row 2.*its own id"):
        Votes.from_frame(make(WIDE | {"id": ["x", "y", "x"]}), item="id")
    with pytest.raises(InvalidVotesError, match=r"Row 1 has no item"):
        Votes.from_frame(make(WIDE | {"id": ["x", None, "z"]}), item="id")


@every_frame
def test_wide_columns_of_mixed_kinds_keep_their_values_and_numbers_become_floats(make):
    votes = Votes.from_frame(make({"a": [1, None, 2], "b": ["x", "None", None]}))
    assert votes.labels.tolist() == [[1, "x"], [None, "None"], [2, None]]
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]
    numbers = Votes.from_frame(make({"a": [1, None, 2], "b": [0.5, None, 1.0]}))
    assert numbers.labels.dtype == np.float64
    assert numbers.labels[numbers.observed].tolist() == [1, 0.5, 2, 1.0]
    silent = Votes.from_frame(make({"a": [1, 2], "b": [None, None]}))  # does not spoil the kind
    assert silent.labels.dtype == np.int64
    assert silent.observed.tolist() == [[1, 0], [1, 0]]
    assert not Votes.from_frame(make({"b": [None, None]})).observed.any()


def test_wide_lists_structs_and_nan_in_every_frame():
    for name in ("polars", "arrow", "pandas"):
        votes = Votes.from_frame(MAKERS[name]({"a": [[1, 2], None], "b": [[3], []]}))
        assert votes.labels.tolist() == [[[1, 2], [3]], [None, []]]
        assert votes.observed.tolist() == [[1, 1], [0, 1]]
    # The first releases of polars 1 cannot tell a missing struct from one whose fields are missing.
    for name in ("polars", "arrow") if pl.Series([{"x": 1}, None]).to_list()[1] is None else ("arrow",):
        assert Votes.from_frame(MAKERS[name]({"a": [{"x": 1}, None]})).labels.tolist() == [[{"x": 1}], [None]]
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        assert Votes.from_frame(make({"a": np.array([0.5, nan])})).observed.tolist() == [[True], [False]]


@pytest.mark.parametrize(
    ("frame", "dtype", "first"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), np.float64, 1.0),
        (pd.DataFrame({"a": [1.5, None]}), np.float64, 1.5),
        (pd.DataFrame({"a": [np.inf, None]}), np.float64, np.inf),
        (pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int8}), np.int8, 1),
        (pl.DataFrame({"a": [2**63 + 1, 1]}, schema={"a": pl.UInt64}), None, 2**63 + 1),
        (pl.DataFrame({"a": [200, None]}, schema={"a": pl.UInt8}), None, 200),
        (pd.DataFrame({"a": pd.Categorical(["NA", None])}), object, "NA"),
    ],
)
def test_columns_keep_their_kind_and_their_exact_values(frame, dtype, first):
    labels = Votes.from_frame(frame).labels
    assert labels[0, 0] == first
    assert dtype is None or labels.dtype == dtype


def test_frames_of_pandas_keep_the_names_that_somebody_chose():
    numbered = Votes.from_frame(pd.DataFrame([[0, 1], [1, 1]]))
    assert numbered.sources == ("0", "1")
    assert not numbered.names_given
    votes = Votes.from_matrix(pd.DataFrame({"ann": [0, -1], "bob": [1, None]}), items=["x", "y"])
    assert (votes.sources, votes.observed.tolist()) == (("ann", "bob"), [[1, 1], [0, 0]])
    assert (votes.items.tolist(), votes.abstain) == (["x", "y"], -1)


def test_wide_unknown_columns_and_tables_that_look_long_are_refused():
    with pytest.raises(UnknownSourceError, match=r"no source 'anna'. Did you mean 'ann'\?"):
        Votes.from_frame(WIDE, sources=["anna"])
    with pytest.raises(InvalidVotesError, match=r"no column 'item'.*Did you mean item='id'\?"):
        Votes.from_frame(WIDE, item="item")
    with pytest.raises(InvalidVotesError, match=r"one row per vote.*from_long.*sources="):
        as_votes(pd.DataFrame(LONG))


@pytest.mark.parametrize(
    ("frame", "item", "message"),
    [
        (pd.DataFrame({"a": []}), None, "no items.*at least one row"),
        (pd.DataFrame(), None, "no sources.*at least one column"),
        (pl.DataFrame({"id": [1]}), "id", "no sources"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "same name: 'a', 'a'.*Rename"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), None, "same as text: 1, '1'"),
        (pl.LazyFrame(WIDE), None, r"lazy frame.*collect"),
        ([[1, 2]], None, "list is not a table.*from_array"),
    ],
)
def test_wide_from_something_else(frame, item, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_frame(frame, item=item)


def test_to_long_by_hand():
    votes = Votes.from_matrix([[0, -1], [-1, -1]], sources=["ann", "bob"], items=["x", "y"])
    assert votes.to_long().to_pylist() == [
        {"item": "x", "source": "ann", "label": 0},
        {"item": "y", "source": "ann", "label": None},
        {"item": "x", "source": "bob", "label": None},
    ]
    lists = Votes.from_array(np.arange(8).reshape(2, 2, 2))
    assert lists.to_long()["label"].to_pylist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert Votes.from_array([[[1], [2, 3]]]).to_long()["label"].to_pylist() == [[1], [2, 3]]
    assert Votes.from_matrix([[0]])[:0].to_long().num_rows == 0
    assert Votes.from_array([[1, "a"]]).to_long()["label"].to_pylist() == ["1", "a"]
    with pytest.raises(InvalidVotesError, match=r"one Arrow column.*into text"):
        Votes.from_array([[1, {2}]]).to_long()


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(-1, 3)))
def test_long_wide_and_matrix_agree(matrix):
    names = [f"s{column}" for column in range(matrix.shape[1])]
    votes = Votes.from_matrix(matrix, sources=names)
    wide = {
        name: [None if value == -1 else int(value) for value in matrix[:, column]] for column, name in enumerate(names)
    }
    long = votes.to_long()
    back = Votes.from_long(long).select(names)
    assert back[np.argsort(back.items)].equals(votes)
    assert Votes.from_long(pl.from_arrow(long)).equals(Votes.from_long(long))
    assert Votes.from_long(long.to_pandas()).equals(Votes.from_long(long))
    for make in MAKERS.values():
        assert Votes.from_frame(make(wide)).equals(votes)


@pytest.mark.parametrize("name", ["id", "item", "Unnamed: 0", "Task"])
def test_column_of_ids_is_no_source(name):
    frame = pd.DataFrame({name: [11, 12, 13], "ann": [1.5, 2.0, 3.0], "bob": [1.0, 2.0, 3.5], "cleo": [1.0, 2.5, 3.0]})
    with pytest.raises(InvalidVotesError, match=rf"Column '{name}' looks like ids.*item='{name}'"):
        cs.LabelModel(cs.Scores()).fit(frame)
    assert Votes.from_frame(frame, item=name).sources == ("ann", "bob", "cleo")
    assert Votes.from_frame(frame, sources=[name, "ann"]).sources == (name, "ann")
    assert Votes.from_frame({name: [0, 1, 1], "ann": [0, 1, 0]}).sources == (name, "ann")  # votes by their values
