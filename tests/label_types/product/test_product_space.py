"""Records as a label space: what a record is, its distance, tables of columns, storage, messages."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import consilience as cs
from consilience.exceptions import (
    InvalidLabelError,
    InvalidVotesError,
    PriorError,
    UnsupportedError,
)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
REVIEW = cs.Product(stars=cs.Scores(variance=2.0), topic=cs.Classes(4))


def fields(space: cs.Product, batch: np.ndarray) -> list:
    return space.as_labels(batch).tolist()


def votes_on(space: cs.LabelSpace, n: int = 60, seed: int = 0, weights=(3.0, 2.0, 1.0, 0.5)) -> cs.Votes:
    rng = np.random.default_rng(seed)
    return cs.simulate(space, space.as_labels(space.random(n, rng)), weights, rng)


def test_a_record_is_a_dict_or_a_dataclass_may_lack_fields_and_comes_back_with_all_of_them():
    @dataclass
    class Review:
        stars: float
        topic: int

    given = [{"stars": 4, "topic": 1}, {"stars": None, "topic": 2}, {"topic": 3}, {"stars": np.nan}, Review(2.5, 3)]
    pairs = [(4.0, 1), (None, 2), (None, 3), None, (2.5, 3)]
    expected = [None if pair is None else dict(zip(("stars", "topic"), pair, strict=True)) for pair in pairs]
    assert fields(REVIEW, REVIEW.as_batch(given)) == expected


def test_labels_of_every_kind_survive_the_way_in_and_out():
    space = cs.Product(
        order=cs.Rankings(["tea", "milk"]), ragged=cs.Rankings(None), name=cs.Classes(["a", "b"]), soft=cs.Classes(2)
    )
    record = {"order": ["milk", "tea"], "ragged": [1, 0, 2], "name": "b", "soft": 1}
    short = record | {"ragged": [0, 1]}
    one, two = fields(space, space.as_batch([record, short]))
    assert one["order"] == ["milk", "tea"]
    assert (one["name"], one["soft"]) == ("b", 1)
    assert (one["ragged"].tolist(), two["ragged"].tolist()) == ([1, 0, 2], [0, 1])


def test_a_nested_record_without_content_is_no_label():
    space = cs.Product(review=REVIEW, note=cs.Classes(2))
    assert fields(space, space.as_batch([{"review": {}, "note": 1}, {"review": {"topic": 2}}])) == [
        {"review": None, "note": 1},
        {"review": {"stars": None, "topic": 2}, "note": None},
    ]


def test_the_distance_is_the_weighted_sum_of_costs_in_units_of_chance():
    # Unrelated scores of variance 2 cost 4, unrelated classes among four 3/4: (3 - 1)^2 / 4 + 3 x 1 / (3/4) = 5.
    space = cs.Product(stars=cs.Scores(variance=2.0), topic=cs.Classes(4), weights={"topic": 3.0})
    left = space.as_batch([{"stars": 1, "topic": 0}, {"stars": 1, "topic": 0}, {"stars": 1}])
    right = space.as_batch([{"stars": 3, "topic": 1}, {"stars": 3}, {"topic": 2}])
    assert space.distance(left, right).tolist() == [5.0, 1.0, 0.0]


MAYBE_REVIEW = st.fixed_dictionaries(
    {
        "stars": st.none() | st.floats(-9, 9),
        "topic": st.none() | st.integers(0, 3),
        "inner": st.none() | st.fixed_dictionaries({"order": st.none() | st.permutations([0, 1, 2])}),
    }
)


@given(st.lists(st.tuples(MAYBE_REVIEW, MAYBE_REVIEW), min_size=1, max_size=5))
def test_the_distance_of_any_two_records_adds_up_what_both_have(pairs):
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(4), inner=cs.Product(order=cs.Rankings(3)))
    left, right = (space.as_batch([pair[side] for pair in pairs]) for side in (0, 1))
    for distance, (one, two) in zip(space.distance(left, right), pairs, strict=True):
        expected = 0.0
        if one["stars"] is not None and two["stars"] is not None:
            expected += (one["stars"] - two["stars"]) ** 2 / 2.0
        if one["topic"] is not None and two["topic"] is not None:
            expected += (one["topic"] != two["topic"]) / 0.75
        orders = [(record["inner"] or {}).get("order") for record in (one, two)]
        if None not in orders:
            signs = [[np.sign(order[a] - order[b]) for a in range(3) for b in range(a)] for order in orders]
            expected += sum(x != y for x, y in zip(*signs, strict=True)) / 1.5
        assert distance == pytest.approx(expected)


def test_the_score_of_a_model_is_minus_the_mean_distance_over_known_fields():
    votes = votes_on(REVIEW)
    model = cs.LabelModel(REVIEW).fit(votes)
    found = model.predict(votes)
    assert model.score(votes, found) == 0.0
    assert model.score(votes, [{"stars": label["stars"] + 2.0} for label in found]) == pytest.approx(-1.0)


def test_tables_of_columns_become_records():
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(3), order=cs.Rankings(2))
    made = space.records(
        stars=np.array([[1.5, np.nan], [-1.0, np.nan]]),
        topic=[[0, -1], [None, 2]],
        order=np.array([[[0, 1], [-1, -1]], [[1, 0], [-1, -1]]]),
    )
    assert made.shape == (2, 2)
    assert made[0, 1] is None
    assert (made[1, 1], made[0, 0].keys()) == ({"topic": 2}, {"stars", "topic", "order"})
    assert (made[1, 0]["stars"], made[1, 0]["order"].tolist()) == (-1.0, [1, 0])
    # -1 is a score where nothing rules it out.
    for space, first in ((cs.Scores(), {"stars": -1}), (cs.Scores(range=(1, 5)), None)):
        assert cs.Product(stars=space).records(stars=np.array([[-1, 3]]))[0, 0] == first


def test_tables_that_do_not_fit_together_are_refused():
    with refused(InvalidLabelError, "stars (1, 2)", "topic (2, 1)", "same items"):
        REVIEW.records(stars=[[1, 2]], topic=[[1], [2]])
    with refused(InvalidLabelError, "'star' is unknown", "Did you mean 'stars'?"):
        REVIEW.records(star=[[1, 2]])
    with refused(InvalidLabelError, "'stars'", "one row per item"):
        REVIEW.records(stars=[[1, 2], [3]])
    with refused(InvalidLabelError, "at least one table", "stars=..., topic=..."):
        REVIEW.records()


def test_records_come_from_lists_arrays_long_tables_and_frames():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    one, two = {"stars": 1.0, "topic": 1}, {"stars": 4.0, "topic": None}
    nested = [[one, None], [two, one]]
    array = np.array(nested, dtype=object)
    columns = {"ann": [one, two], "bob": [None, one]}
    long = [("x", "ann", one), ("y", "ann", two), ("y", "bob", one)]
    frames = [cs.Votes.from_frame(frame) for frame in (pd.DataFrame(columns), pa.table(columns))]
    tables = [cs.Votes.from_array(nested), cs.Votes.from_array(array), *frames, cs.Votes.from_long(long)]
    for votes in tables:
        assert votes.observed.tolist() == [[True, False], [True, True]]
        assert votes.labels[1].tolist() == [two, one]
    assert cs.Votes.from_array(array).equals(cs.Votes.from_array(nested))


def test_arrow_columns_keep_missing_records_and_missing_fields():
    pytest.importorskip("pyarrow")
    space = cs.Product(order=cs.Rankings(["tea", "milk"]), review=REVIEW)
    labels = np.array([None, {"order": None, "review": {"stars": 2.5, "topic": None}}], dtype=object)
    column = space.to_arrow(labels)
    assert column.null_count == 1
    assert space.from_arrow(column).tolist() == labels.tolist()
    full = space.as_labels(space.random(4, np.random.default_rng(0)))
    back = space.as_batch(space.from_arrow(space.to_arrow(full)))
    assert space.distance(back, space.as_batch(full)).tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ({"stars": 3, "topc": 1}, ["field 'topc' is unknown", "Did you mean 'topic'?", "stars, topic"]),
        ({"stars": "good"}, ["field 'stars'", "'good'", "finite number"]),
        ({"stars": np.inf}, ["field 'stars'", "inf"]),
        ({"stars": 3, "topic": 9}, ["field 'topic'", "9", "0 .. 3"]),
        (7, ["label 7 is not a record", "stars, topic"]),
        ("food", ["label 'food' is not a record"]),
    ],
)
def test_a_wrong_record_is_named_by_row_source_and_field(cell, parts):
    votes = np.empty((3, 2), dtype=object)
    votes[:] = [[{"stars": 1, "topic": 0}, {"stars": 2, "topic": 1}]] * 3
    votes[0, 1] = {"topic": 2}
    votes[2, 1] = cell
    table = cs.Votes.from_array(votes, sources=["ann", "bob"])
    with refused(InvalidLabelError, "Row 2, source 'bob'", *parts):
        cs.LabelModel(REVIEW).fit(table)


def test_a_wrong_field_of_a_nested_record_is_named_with_both_names_and_numbers_are_no_records():
    space = cs.Product(review=REVIEW, note=cs.Classes(2))
    with refused(InvalidLabelError, "field 'review': field 'topic': label 9"):
        space.as_batch([{"note": 1}, {"review": {"topic": 9}}])
    for shape, parts in (((4, 3), ["not a record"]), ((4, 3, 2), ["shape (2,)", "Give dicts"])):
        with refused(InvalidLabelError, *parts):
            cs.LabelModel(REVIEW).fit(np.zeros(shape))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, ["at least one field"]),
        ({"stars": 5}, ["stars=5 is not a label type"]),
        ({"weights": cs.Scores()}, ["cannot be called 'weights'"]),
        ({"a/b": cs.Scores()}, ["'a/b'"]),
        ({"stars": cs.Scores(), "weights": {"star": 2.0}}, ["'star' is unknown", "Did you mean 'stars'?"]),
        ({"stars": cs.Scores(), "weights": {"stars": 0.0}}, ["weights['stars'] is 0.0", "positive"]),
        ({"stars": cs.Scores(), "weights": {"stars": "much"}}, ["weights['stars'] is 'much'"]),
        ({"stars": cs.Scores(), "weights": [1.0]}, ["not a dict"]),
    ],
)
def test_a_product_that_cannot_be_is_refused(settings, parts):
    with refused(InvalidLabelError, *parts):
        cs.Product(**settings)


def test_methods_are_those_that_every_field_has():
    space = cs.Product(topic=cs.Classes(2), stars=cs.Scores(), word=cs.Metric(abs))
    assert set(space.law.methods) == {"auto", "majority", "isotropic", "triplets", "labelled"}
    with refused(UnsupportedError, "method='quadratic'", "field 'stars'", "triplets"):
        cs.LabelModel(REVIEW, method="quadratic").fit(votes_on(REVIEW))


def test_what_a_field_cannot_do_names_it():
    votes, stars = votes_on(REVIEW), cs.Product(stars=cs.Scores())
    with refused(InvalidVotesError, "field 'topic'", "gold="):
        cs.LabelModel(REVIEW, method="labelled").fit(votes, [{"stars": 3.0}] * len(votes))
    with refused(PriorError, "Product", "'auto'"):
        cs.LabelModel(REVIEW, prior=[0.25] * 4).fit(votes)
    with refused(PriorError, "'uniform'"):
        cs.LabelModel(stars, prior="uniform").fit(votes_on(stars))
    with refused(UnsupportedError, "field 'word'", "candidates="):
        cs.Product(word=cs.Metric(abs)).random(3, np.random.default_rng(0))
