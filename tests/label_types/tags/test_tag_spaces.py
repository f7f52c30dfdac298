"""Tags: what a label is, how it is read, and how wrong ones are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import consilience as cs
from consilience.elements import bio_to_spans
from consilience.exceptions import InvalidLabelError, PriorError, UnsupportedError

NAMES = ["news", "sport", "weather"]
BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def table(n=60, m=4, d=3, seed=0):
    """Return votes of accuracy .85 on d tags, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(n, d))
    votes = np.where(rng.random((n, m, d)) < 0.85, truth[:, None], 1 - truth[:, None])
    return votes, truth


def cells(n=60, m=4, tags=2, seed=0):
    """Return sequences of accuracy .85, and the truth."""
    rng = np.random.default_rng(seed)
    votes, truth = np.empty((n, m), dtype=object), []
    for row in range(n):
        right = rng.integers(tags, size=3 + row % 4)
        truth.append(right)
        for source in range(m):
            wrong = rng.random(len(right)) > 0.85
            votes[row, source] = np.where(wrong, rng.integers(tags, size=len(right)), right)
    return votes, truth


def test_vectors_sets_and_lists_of_names_are_the_same_label():
    space = cs.Tags(NAMES)
    for label in ([1, 0, 1], (True, False, True), np.array([1.0, 0.0, 1.0]), {"news", "weather"}, ["weather", "news"]):
        assert space.as_batch([label]).tolist() == [[1, 0, 1]]
    assert space.as_batch([set(), [], [0, 0, 0]]).tolist() == [[0, 0, 0]] * 3
    for label in ([1, None, 0], np.array([1.0, np.nan, 0.0]), [1, -1, 0]):
        assert cs.Tags(3).as_batch([label]).tolist() == [[1, -1, 0]]


def test_the_cost_is_the_share_of_differing_tags_on_which_both_have_an_opinion():
    space = cs.Tags(4)
    left = np.array([[0, 1, 1, 0], [0, -1, 1, 1], [-1, -1, 0, 0]])
    right = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [1, 1, -1, -1]])
    np.testing.assert_allclose(space.distance(left, right), [2 / 4, 1 / 3, 0.0])
    sequence = cs.Sequences()
    pair = sequence.as_batch([[0, 1, 1], [1]]), sequence.as_batch([[0, 1, 0], [1]])
    np.testing.assert_allclose(sequence.distance(*pair), [1 / 3, 0.0])


def test_predictions_are_spelled_as_the_votes_were():
    votes, truth = table()
    space = cs.Tags(NAMES)
    as_sets = [[{NAMES[t] for t in range(3) if cell[t]} for cell in row] for row in votes]
    vectors = cs.LabelModel(space).fit(votes).predict(votes)
    sets = cs.LabelModel(space).fit(as_sets).predict(as_sets)
    assert vectors.shape == truth.shape
    assert [sorted(label) for label in sets] == [[NAMES[t] for t in range(3) if row[t]] for row in vectors]
    assert (vectors == truth).mean() > 0.9


def test_sequences_come_back_as_names_or_codes_and_may_be_an_array():
    votes, _ = cells()
    named = np.frompyfunc(lambda cell: [("noun", "verb")[code] for code in cell], 1, 1)(votes)
    predicted = cs.LabelModel(cs.Sequences(["noun", "verb"])).fit(named).predict(named)
    codes = cs.LabelModel(cs.Sequences()).fit(votes).predict(votes)
    assert predicted[0] == [("noun", "verb")[code] for code in codes[0]]
    assert [len(label) for label in predicted] == [len(cell) for cell in votes[:, 0]]
    array = np.random.default_rng(0).integers(2, size=(1, 1, 6)) ^ (np.random.default_rng(1).random((40, 4, 6)) < 0.1)
    assert all(label.shape == (6,) for label in cs.LabelModel(cs.Sequences()).fit(array).predict(array))


def test_a_tag_nobody_has_an_opinion_on_stays_open():
    votes, _ = table()
    votes[0, :, 1] = -1
    belief = cs.LabelModel(cs.Tags(3)).fit(votes).posterior(votes)
    assert belief.labels[0, 1] == -1
    assert belief.labels[0, [0, 2]].min() >= 0
    assert 0 < belief.details["tag_probability"][0, 1] < 1


def test_confidence_and_score_are_the_expected_and_the_observed_share_of_right_tags():
    votes, truth = table()
    model = cs.LabelModel(cs.Tags(3)).fit(votes)
    belief = model.posterior(votes)
    probability = belief.details["tag_probability"]
    np.testing.assert_allclose(belief.confidence, np.maximum(probability, 1 - probability).mean(axis=1))
    assert model.score(votes, truth) == pytest.approx(-(model.predict(votes) != truth).mean())
    ragged, right = cells(tags=3)
    model = cs.LabelModel(cs.Sequences(3)).fit(ragged)
    belief = model.posterior(ragged)
    expected = [piece.max(axis=1).mean() for piece in belief.details["tag_probability"]]
    np.testing.assert_allclose(belief.confidence, expected)
    wrong = [(left != true).mean() for left, true in zip(belief.labels, right, strict=True)]
    assert model.score(ragged, right) == pytest.approx(-np.mean(wrong))


def test_sequences_of_other_lengths_can_be_added_later():
    votes, _ = cells(120)
    longer = np.frompyfunc(lambda cell: np.concatenate([cell] * 3), 1, 1)(votes)
    model = cs.LabelModel(cs.Sequences()).partial_fit(votes).partial_fit(longer)
    assert model.source_model_.n_items == 240
    assert [len(label) for label in model.predict(longer)[:2]] == [9, 12]


def changed(row, source, place, value, dtype=int):
    votes = table()[0].astype(dtype)
    votes[row, source, place] = value
    return votes


@pytest.mark.parametrize(
    ("space", "votes", "parts"),
    [
        (cs.Tags(3), changed(17, 2, 1, 2), ["Row 17", "'source_2'", "holds 2 at position 1", "neither 0 nor 1"]),
        (cs.Tags(NAMES), changed(17, 2, 1, 2), ["Row 17", "tag 'sport'"]),
        (cs.Tags(3), changed(3, 1, 0, 0.5, float), ["Row 3", "'source_1'", "0.5"]),
        (cs.Tags(NAMES), [[{"news"}, {"wheather"}]], ["Row 0", "'source_1'", "'wheather'", "Did you mean 'weather'?"]),
        (cs.Sequences(BIO), [[["O", "B-PER"], ["O", "B-PRE"]]], ["Row 0", "'B-PRE'", "Did you mean 'B-PER'?"]),
        (cs.Sequences(3), [[[0, 1], [0, 3], [1, 1]]], ["'source_1'", "holds 3 at position 1", "0 .. 2"]),
        (cs.Tags(3), table(d=4)[0], ["Row 0", "4 entries, not 3"]),
        (cs.Tags(3), [[[0, 1, 1], [0, 1, 1]], [[0, 1], [0, 1, 1]]], ["Row 1", "'source_0'", "2 entries, not 3"]),
        (cs.Tags(3), [[{"news"}, {"news"}]], ["Row 0", "the tags have none"]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_label_is_named_with_row_and_source(space, votes, parts):
    with refused(InvalidLabelError, *parts):
        cs.LabelModel(space).fit(votes)


@pytest.mark.parametrize("space", [cs.Tags(3), cs.Tags(NAMES), cs.Sequences()], ids=str)
def test_text_and_single_numbers_are_no_labels(space):
    with refused(InvalidLabelError, "Row 0", "'source_1'", "'news'", "is text"):
        cs.LabelModel(space).fit(np.array([[None, "news"], [None, None]], dtype=object))
    with refused(InvalidLabelError, "Row 0", "'source_0'", "a single number"):
        cs.LabelModel(space).fit(np.array([[1, 0], [0, 1]]))


def test_sequences_of_different_length_on_one_item_are_refused():
    votes, truth = cells()
    votes[7, 2] = np.array([0, 1, 1, 0, 0, 0, 1])
    with refused(InvalidLabelError, "Row 7", "'source_2'", "7 tags", "has 6"):
        cs.LabelModel(cs.Sequences()).fit(votes)
    votes, truth = cells()
    truth[9] = [0]
    with refused(InvalidLabelError, "Row 9", "1 tags", "4"):
        cs.LabelModel(cs.Sequences()).fit(votes, gold=truth)
    space = cs.Sequences()
    with refused(InvalidLabelError, "2 and 3 tags", "pair 0"):
        space.distance(space.as_batch([[0, 1]]), space.as_batch([[0, 1, 1]]))


@pytest.mark.parametrize(
    ("space", "tags", "part"),
    [
        (cs.Tags, 0, "at least 1"),
        (cs.Sequences, 1, "at least 2"),
        (cs.Tags, "news", "says neither how many"),
        (cs.Sequences, 2.5, "says neither how many"),
        (cs.Tags, ["news", "news"], "named twice"),
        (cs.Tags, [1, 2], "Names are text"),
    ],
)
def test_settings_that_make_no_sense_are_refused(space, tags, part):
    with refused(InvalidLabelError, part):
        space(tags)


def test_probabilities_of_all_labels_are_refused_with_where_to_look():
    votes, _ = table()
    model = cs.LabelModel(cs.Tags(3)).fit(votes)
    with refused(UnsupportedError, "posterior(votes).details"):
        model.predict_proba(votes)
    with refused(PriorError, "Tags"):
        cs.LabelModel(cs.Tags(3), prior=[0.5, 0.5]).fit(votes)


def test_spans_become_tags_and_back():
    spans = [(0, 2, "PER"), (2, 3, "PER"), (4, 5, "LOC")]
    tags = ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]
    assert cs.elements.spans_to_bio(spans, length=5) == tags
    assert cs.elements.bio_to_spans(tags) == spans
    assert cs.elements.spans_to_bio([(1, 3, "")], length=3) == ["O", "B", "I"]
    assert cs.elements.bio_to_spans(["O", "B", "I"]) == [(1, 3, "")]
    # An inside without a beginning begins a span.
    broken = ["I-PER", "I-LOC", "O", None, "I-LOC"]
    assert cs.elements.bio_to_spans(broken) == [(0, 1, "PER"), (1, 2, "LOC"), (4, 5, "LOC")]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["PER", "LOC", "a-b"])), max_size=6))
def test_any_spans_survive_the_way_there_and_back(pieces):
    spans, place = [], 0
    for gap, size, kind in pieces:
        spans.append((place + gap, place + gap + size, kind))
        place += gap + size
    assert bio_to_spans(cs.elements.spans_to_bio(spans, length=place + 1)) == spans


def test_bad_spans_and_tags_are_refused():
    with refused(InvalidLabelError, "(1, 9, 'PER')", "5 positions"):
        cs.elements.spans_to_bio([(1, 9, "PER")], length=5)
    with refused(InvalidLabelError, "(1, 3, 'LOC')", "overlaps", "position 1"):
        cs.elements.spans_to_bio([(0, 2, "PER"), (1, 3, "LOC")], length=5)
    with refused(InvalidLabelError, "(start, end, type)"):
        cs.elements.spans_to_bio([(0, 2)], length=5)
    with refused(InvalidLabelError, "'NOUN'"):
        bio_to_spans(["NOUN"])


@pytest.mark.parametrize("decode", ["auto", "map", "bayes"])
@pytest.mark.parametrize("method", ["auto", "majority", "triplets"])
def test_a_bio_chain_never_predicts_what_cannot_follow(decode, method):
    votes, _ = cells(80, tags=5, seed=4)  # at random, so that most votes are illegal
    space = cs.Sequences(BIO, chain=True)
    named = np.frompyfunc(lambda cell: [BIO[code] for code in cell], 1, 1)(votes)
    for label in cs.LabelModel(space, method=method, decode=decode).fit(named).predict(named):
        for before, after in zip(["O", *label], label, strict=False):
            assert not after.startswith("I-") or before[2:] == after[2:]


def test_a_chain_of_other_tags_has_no_forbidden_steps():
    assert cs.Sequences(["noun", "verb"], chain=True).law.steps.all()
    assert cs.Sequences(["O", "I-PER"], chain=True).law.steps.all()
    assert cs.Sequences(BIO, chain=True).law.steps.sum() == 25 - 6
