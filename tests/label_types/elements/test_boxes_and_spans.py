"""Sets of boxes and spans: labels, sources, copies, known labels, bad input; the kernels against brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import fitted

import consilience as cs
from consilience.exceptions import InvalidLabelError
from consilience.label_types.elements.kernels import (
    best_total,
    corner_gaps,
    length_costs,
    match_elements,
    overlap,
    place_elements,
    set_costs,
)
from consilience.label_types.elements.law import believe_elements


def crowd(n, seed, marking, false, noise, copies=0):
    """Draw images with boxes of different visibility, and sources that miss some, add some and draw inexactly."""
    rng = np.random.default_rng(seed)
    m = len(marking)
    labels, truth = np.empty((n, m + copies), dtype=object), []

    def boxes(count):
        low = rng.uniform(0, 900, (count, 2))
        return np.hstack([low, low + rng.uniform(40, 100, (count, 2))])

    for item in range(n):
        real = boxes(rng.poisson(4))
        visible = rng.normal(0, 1.0, len(real))
        truth.append(real)
        for source in range(m):
            logit = np.log(marking[source] / (1 - marking[source]))
            seen = real[rng.random(len(real)) < 1 / (1 + np.exp(-(logit + visible)))]
            moved = seen + noise[source] * 70 * rng.normal(size=seen.shape)
            labels[item, source] = np.vstack([moved, boxes(rng.poisson(false[source]))])
        for copy in range(copies):
            labels[item, m + copy] = labels[item, 0].copy()
    return labels, truth


MARKING, FALSE, NOISE = [0.9, 0.5, 0.8, 0.65, 0.75], [0.1, 1.2, 0.3, 0.6, 0.2], [0.02, 0.1, 0.03, 0.05, 0.08]


def test_precision_recall_noise_and_cost_of_sources_are_recovered_and_moments_rank_them():
    # 400 items of 4 boxes: a rate has a standard error of about .015; .06 is four of them. Noise is the mean distance,
    # .8 of the standard deviation, and a little less as the median lies among the votes: within a quarter of it.
    labels, truth = crowd(400, 0, MARKING, FALSE, NOISE)
    model = fitted(cs.Boxes(), labels)
    columns = model.source_model_.summary.columns
    marks = np.array([sum(map(len, labels[:, source])) for source in range(5)])
    real = marks - 400 * np.array(FALSE)
    assert columns["location_noise"] == pytest.approx(0.8 * np.array(NOISE), rel=0.25)
    assert columns["precision"] == pytest.approx(real / marks, abs=0.06)
    assert columns["recall"] == pytest.approx(real / sum(map(len, truth)), abs=0.06)
    gold = cs.Boxes().as_batch(truth)
    true = [cs.Boxes().distance(labels[:, source], gold).mean() for source in range(5)]
    # a mean cost has a standard error of about .01; the consensus lies nearer to votes than the truth does
    assert model.expected_cost_ == pytest.approx(np.array(true), abs=0.06)
    moments = cs.partitions.Moments.of(cs.Votes.from_array(labels[:200]), cs.Boxes())
    for cost in (model.expected_cost_, cs.LabelModel(cs.Boxes()).fit_moments(moments).expected_cost_):
        assert (np.argmin(cost), np.argmax(cost)) == (0, 1)


def test_labels_are_better_than_every_source_and_the_best_vote():
    labels, truth = crowd(150, 1, MARKING, FALSE, NOISE)
    space, gold = cs.Boxes(), cs.Boxes().as_batch(truth)
    own = space.distance(fitted(space, labels).predict(labels), gold).mean()
    best_vote = space.distance(space.weighted_mean(labels, np.ones(labels.shape)), gold).mean()
    sources = [space.distance(labels[:, source], gold).mean() for source in range(5)]
    # over seeds 0 to 4 the labels cost .08 to .12, the best source .17 to .20, the best vote .19 to .22
    assert own < 0.8 * min(sources)
    assert own < 0.8 * best_vote


def test_copies_are_found_and_honest_sources_are_not_called_copies():
    labels, truth = crowd(80, 3, [0.5, 0.7, 0.8, 0.75, 0.65, 0.7], [1.5, 0.3, 0.4, 0.2, 0.5, 0.3], [0.1] * 6, copies=3)
    names = ["bad", "a", "b", "c", "d", "e", "copy 1", "copy 2", "copy 3"]
    votes = cs.Votes.from_array(labels, sources=names)
    model = fitted(cs.Boxes(), votes)
    copied = np.isin(names, ["bad", "copy 1", "copy 2", "copy 3"])
    shared = model.source_model_.correlation
    assert shared[np.ix_(copied, copied)][~np.eye(4, dtype=bool)].min() > 0.8
    assert np.where(np.eye(5, dtype=bool), 0.0, shared[np.ix_(~copied, ~copied)]).max() < 0.3
    gold = cs.Boxes().as_batch(truth)
    alone = fitted(cs.Boxes(), votes, dependencies="none")
    own, fooled = (cs.Boxes().distance(one.predict(votes), gold).mean() for one in (model, alone))
    assert own < fooled - 0.1
    for seed in range(4):
        honest, _ = crowd(60, seed, [0.95] * 6, [0.02] * 6, [0.02] * 6)
        shared = fitted(cs.Boxes(), honest).source_model_.correlation
        assert np.where(np.eye(6, dtype=bool), 0.0, shared).max() < 0.4


def test_known_labels_teach_about_sources_that_agree_on_nothing_else():
    labels, truth = crowd(60, 4, MARKING, FALSE, NOISE)
    known = [label if item < 30 else None for item, label in enumerate(truth)]
    model = fitted(cs.Boxes(), labels, gold=known)
    told = model.explain(labels, 3)
    assert len(told.voices) == 5
    assert "item 3" in str(told)
    only = fitted(cs.Boxes(), labels, gold=known, method="labelled")
    true = np.array([cs.Boxes().distance(labels[:30, s], cs.Boxes().as_batch(truth[:30])).mean() for s in range(5)])
    # the cost to 30 known labels, drawn to the average of all sources
    assert np.corrcoef(only.expected_cost_, true)[0, 1] > 0.9
    assert np.argmax(model.expected_cost_) == 1


def test_an_empty_vote_is_not_an_abstention():
    box = [[10, 10, 30, 30]]
    model = fitted(cs.Boxes(), [[[[10 + item, 10, 30 + item, 30]]] * 4 for item in range(60)])
    rows = [[box, [], [], []], [box, None, None, None]]
    label = model.predict(rows)
    assert label[0].shape == (0, 4)
    assert label[1].tolist() == box
    assert model.confidence(rows)[0] > 0.5


def test_classes_are_voted_within_a_match():
    labels = np.empty((60, 4), dtype=object)
    rng = np.random.default_rng(0)
    for item in range(60):
        at = rng.uniform(0, 100, 2)
        for source in range(4):
            wrong = source == 3 and rng.random() < 0.5
            x, y = at + rng.normal(size=2)
            labels[item, source] = [(x, y, x + 20, y + 20, ["car", "person"][(item + wrong) % 2])]
    model = fitted(cs.Boxes(["car", "person"]), labels)
    assert [label[0][4] for label in model.predict(labels)] == ["car", "person"] * 30
    accuracy = model.source_model_.summary.columns["class_accuracy"]
    # 60 coin flips: .5 with a standard error of .065, drawn to the average by eight boxes
    assert accuracy[3] < 0.75 < min(accuracy[:3])


def test_spans_that_overlap_are_merged_kept_or_never_returned():
    assert cs.Spans().as_batch([[(0, 4), (4, 9), (20, 22)]])[0].tolist() == [[0, 9], [20, 22]]
    assert len(cs.Spans(overlap="keep").as_batch([[(0, 4), (2, 9)]])[0]) == 2
    starts = np.random.default_rng(1).integers(0, 3, (30, 5)) + 10 * (np.arange(5) % 2)
    labels = [[[(start, start + 12)] for start in row] for row in starts.tolist()]
    for label in fitted(cs.Spans(overlap="forbid"), labels).predict(labels):
        ordered = label[np.argsort(label[:, 0])]
        assert (ordered[1:, 0] >= ordered[:-1, 1]).all()


IMAGES = cs.Boxes(size=(640, 480))


@pytest.mark.parametrize(
    ("space", "label", "message"),
    [
        (IMAGES, [[5, 5, 3, 9]], r"box 0 is \(5, 5, 3, 9\): x1 is above x2"),
        (IMAGES, [[0, 0, 1, 1], [5, 5, float("nan"), 9]], "box 1 .* x2 is nan"),
        (IMAGES, [[0, 0, 700, 9]], "x2 is beyond 640"),
        (IMAGES, [[-1, 0, 7, 9]], "x1 is below 0"),
        (IMAGES, [[0, 0, 7]], "box 0 has 3 values"),
        (IMAGES, [0, 0, 7, 9], "put a single one into a list"),
        (IMAGES, "box", "label 'box' is not a list of"),
        (IMAGES, [[0, 0, 7, "9"]], "box 0 holds '9', which is not a number"),
        (IMAGES, [(0, 0, 4, 4, "car")], "name them: classes="),
        (cs.Boxes(), [{"x1": 1, "y1": 2, "x2": 3}], "box 0 has no 'y2'.*xmin/ymin/xmax/ymax"),
        (cs.Boxes(), [{"box": [1, 2, 3]}], "has 3 values"),
        (cs.Boxes(), [{"bbox": "1 2 3 4"}], "has 1 values"),
        (cs.Boxes(), [{"bbox": [1, 2, "3", 4]}], "'3', which is not a number"),
        (cs.Boxes(), [{"x1": 1, "y1": 2, "x2": 3, "y2": 4, "label": "car"}], "name them: classes="),
        (cs.Boxes(["car"]), [{"x1": 1, "y1": 2, "x2": 3, "y2": 4}], "has no class"),
        (cs.Boxes(["car"]), [{"box": [1, 2, 3, 4], "labels": ["car", "bus"]}], "one of 'car'"),
        (cs.Boxes(["car"]), [[1, 2, 3, 4]], "give all of them one, or none"),
        (cs.Boxes(), [7], "A label is a list of boxes"),
        (cs.Spans(), [{"start": 4}], "has no 'end'.*start_offset/end_offset"),
        (cs.Spans(length=20), [(15, 21)], "end is beyond 20"),
        (cs.Spans(), [(5, 5)], "start is not below end"),
        (cs.Spans(), [(-2, 5)], "start is below 0"),
        (cs.Spans(), [(0.5, 5)], "start is not a whole number"),
        (cs.Spans(overlap="forbid"), [(0, 5), (3, 9)], r"spans \(0, 5\) and \(3, 9\) overlap"),
        (cs.Spans(["place"]), [(0, 5, "plaice")], "class 'plaice', which is not one of 'place'"),
    ],
)
def test_a_wrong_element_is_refused_with_row_and_source(space, label, message):
    labels = np.empty((2, 2), dtype=object)
    labels[0, 0] = labels[0, 1] = labels[1, 0] = []
    labels[1, 1] = label
    votes = cs.Votes.from_array(labels, sources=["ann", "bob"])
    with pytest.raises(InvalidLabelError, match=f"(?s)Row 1, source 'bob': .*{message}"):
        cs.LabelModel(space).fit(votes)


def test_a_wrong_setting_is_refused():
    for options, message in (({"size": (0, 4)}, "two positive numbers"), ({"classes": "car"}, "not a list of names")):
        with pytest.raises(InvalidLabelError, match=message):
            cs.Boxes(**options)
    for options, message in (
        ({"classes": ["car", "car"]}, "named twice"),
        ({"overlap": "maybe"}, "overlap='maybe' is unknown"),
        ({"length": 0}, "not the length of a text"),
    ):
        with pytest.raises(InvalidLabelError, match=message):
            cs.Spans(**options)


@pytest.mark.parametrize(
    "written",
    [
        [1, 2, 31, 42, "car"],
        [[1, 2, 31, 42], "car"],
        {"x1": 1, "y1": 2, "x2": 31, "y2": 42, "label": "car"},
        {"xmin": 1, "ymin": 2, "xmax": 31, "ymax": 42, "class": "car"},
        {"left": 1, "top": 2, "right": 31, "bottom": 42, "type": "car"},
        {"box": [1, 2, 31, 42], "class": "car", "score": 0.9},
        {"bbox": [1, 2, 30, 40], "category": "car"},
        {"bbox": np.array([1, 2, 30, 40]), "category_name": "car"},
        {"x": 1, "y": 2, "width": 30, "height": 40, "rectanglelabels": ["car"], "rotation": 0},
        (3, 8, "car"),
        ((3, 8), "car"),
        {"start": 3, "end": 8, "labels": ["car"]},
        {"start_offset": 3, "end_offset": 8, "label": "car"},
        {"span": [3, 8], "entity": "car"},
    ],
)
def test_elements_are_read_as_other_tools_write_them(written):
    is_span = isinstance(written, tuple) or any(key in written for key in ("start", "start_offset", "span"))
    space = cs.Spans(["bus", "car"]) if is_span else cs.Boxes(["bus", "car"])
    expected = (3, 8, "car") if is_span else (1.0, 2.0, 31.0, 42.0, "car")
    assert space.as_labels(space.as_batch([[written]]))[0] == [expected]


def test_confidence_falls_with_inexact_corners_and_is_near_what_labels_reach():
    # 300 images of one object and five sources. Exact corners: certain labels; corners off by a tenth of the side:
    # the median of five overlaps about 0.87 with the truth, and the confidence says so to 0.05.
    rng = np.random.default_rng(3)
    space = cs.Boxes()
    reached = {}
    for spread in (0.0, 0.1):
        low = rng.uniform(0, 900, (300, 2))
        truth = np.hstack([low, low + 60.0])[:, None]
        votes = [[[box + rng.normal(0, 60.0 * spread, 4)] for _ in range(5)] for (box,) in truth]
        model = cs.LabelModel(space, random_state=0).fit(votes)
        right = 1.0 - space.distance(space.as_batch(model.predict(votes)), space.as_batch(truth)).mean()
        reached[spread] = (model.confidence(votes).mean(), right)
    assert reached[0.0][0] > 0.99
    assert 0.8 < reached[0.1][1] < 0.92
    assert abs(reached[0.1][0] - reached[0.1][1]) < 0.05


def test_confidence_of_a_class_in_doubt_is_lower():
    sure = [[[(40 * i, 0, 40 * i + 10, 10, "car")]] * 4 for i in range(30)]
    # Each two of the four against the other two, so that no pair looks like a camp.
    buses = ((2, 3), (1, 3), (1, 2))
    split = [[[(0, 0, 10, 10, "bus" if i in pair else "car")] for i in range(4)] for pair in buses]
    model = cs.LabelModel(cs.Boxes(["bus", "car"]), random_state=0).fit([*sure, *split])
    confidence = model.confidence([*sure[:1], *split])
    assert confidence[0] > 0.9
    assert ((confidence[1:] > 0.4) & (confidence[1:] < 0.8 * confidence[0])).all()


@pytest.mark.parametrize("space", [cs.Boxes(), cs.Spans()])
def test_costs_of_independent_sources_have_no_common_bias(space):
    # 250 items, six sources: the mean error of their costs has a standard deviation near 0.005.
    rng = np.random.default_rng(0)
    truth = space.as_labels(space.random(250, rng))
    votes = cs.simulate(space, truth, [0.3, 0.5, 0.7, 1.0, 1.5, 2.0], rng)
    true = [space.cost(space.as_batch(votes.labels[:, a]), space.as_batch(truth)).mean() for a in range(6)]
    assert abs(np.mean(fitted(space, votes).expected_cost_ - true)) < 0.02


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [
        ([0, 0, 2, 2], [1, 0, 3, 2], 1 / 3),
        ([0, 0, 2, 2], [2, 0, 4, 2], 0.0),
        ([0, 0, 4, 4], [1, 1, 3, 3], 0.25),
        ([5, 5, 5, 5], [5, 5, 5, 5], 1.0),
        ([5, 5, 5, 5], [0, 0, 9, 9], 0.0),
    ],
)
def test_overlap_is_intersection_over_union(left, right, share):
    assert overlap(np.array([left, right], dtype=float), 0, 1) == pytest.approx(share)


@settings(deadline=None, max_examples=60)
@given(rows=st.integers(1, 4), more=st.integers(0, 2), seed=st.integers(0, 10**6))
def test_assignment_is_as_good_as_the_best_of_all_orders(rows, more, seed):
    rng = np.random.default_rng(seed)
    gain = rng.random((rows, rows + more)) * (rng.random((rows, rows + more)) < 0.6)
    best = max(sum(gain[i, order[i]] for i in range(rows)) for order in permutations(range(rows + more), rows))
    assert best_total(gain) == pytest.approx(best)


def costs(sets, by_length=False, codes=None):
    values = np.array([element for one in sets for element in one], dtype=float).reshape(-1, 2 if by_length else 4)
    ends = np.cumsum([0, *map(len, sets)])
    kinds = np.zeros(len(values), dtype=np.int64) if codes is None else np.array(codes)
    costs = length_costs if by_length else set_costs
    return costs(values, kinds, ends, np.array([[0, 1]]))[0]


def test_cost_of_boxes_is_one_minus_matched_overlap_over_the_mean_number():
    # overlaps 1/3 and 1, three boxes here and two there: 1 - 2 (1/3 + 1) / 5
    left = [[0, 0, 2, 2], [10, 10, 12, 12], [50, 50, 60, 60]]
    right = [[1, 0, 3, 2], [10, 10, 12, 12]]
    assert costs([left, right]) == pytest.approx(1 - 2 * (4 / 3) / 5)
    assert costs([left, right], codes=[0, 0, 0, 0, 1]) == pytest.approx(1 - 2 * (1 / 3) / 5)
    assert costs([[], []]) == 0.0
    assert costs([left, []]) == 1.0


def test_cost_of_spans_counts_characters_once():
    # 0..10 in two pieces that overlap against 5..20: 5 characters in common, 10 and 15 marked
    assert costs([[[0, 6], [4, 10]], [[5, 20]]], by_length=True) == pytest.approx(1 - 2 * 5 / 25)


def test_marks_are_matched_to_the_element_most_sources_support():
    # Sources 0, 1, 2 mark the same box, source 1 another one beside it, source 2 one far away.
    values = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [4, 0, 14, 10], [1, 0, 10, 10], [50, 50, 60, 60]], dtype=float)
    sources = np.array([0, 1, 1, 2, 2])
    group, item = match_elements(values, np.zeros(5, dtype=np.int64), sources, np.array([0, 5]), 0.4)
    assert group[0] == group[1] == group[3]
    assert len({group[0], group[2], group[4]}) == 3
    assert item.tolist() == [0, 0, 0]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_a_group_has_one_mark_per_source_and_stays_within_its_item(seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 20, (30, 2))
    values = np.hstack([low, low + rng.uniform(2, 10, (30, 2))])
    item_of = np.sort(rng.integers(0, 4, 30))
    sources = np.zeros(30, dtype=np.int64)
    for item in range(4):
        rows = np.flatnonzero(item_of == item)
        sources[rows] = np.sort(rng.integers(0, 5, len(rows)))
    starts = np.searchsorted(item_of, np.arange(5))
    group, items = match_elements(values, rng.integers(0, 2, 30), sources, starts, 0.3)
    assert (group >= 0).all()
    assert (items[group] == item_of).all()
    marks = list(zip(group.tolist(), sources.tolist(), strict=True))
    assert len(set(marks)) == len(marks)


def test_probability_of_an_element_is_that_of_the_two_stories():
    """Two sources saw the item, one marked: real by one mark and one miss, false by whose it is."""
    nodes, log_weight = np.array([-1.0, 1.0]), np.log([0.5, 0.5])
    logit, rate, prior, same = np.array([0.5, -0.2]), np.array([0.3, 0.6]), 0.4, 0.05
    chance = 1 / (1 + np.exp(-(logit[:, None] + nodes)))
    seen = 0.5 * (chance[0] * (1 - chance[1])).sum()
    nobody = 0.5 * ((1 - chance[0]) * (1 - chance[1])).sum()
    real, false = prior * seen / (1 - nobody), (1 - prior) * (0.3 / 0.9) * (1 - same)
    one = np.array([0, 1])  # one group of one mark on one item
    probability, unseen, exposure = believe_elements(
        one, one[:1], one, np.ones((1, 2)), np.array([-1]), logit, rate, prior, same, nodes, log_weight
    )
    assert probability[0] == pytest.approx(real / (real + false))
    assert unseen[0] == pytest.approx(probability[0] * nobody / (1 - nobody))
    assert exposure.sum(axis=1) == pytest.approx(np.full(2, probability[0] + unseen[0]))


@pytest.mark.parametrize("weights", [[1.0, 3.0, 3.0], [3.0, 1.0, 3.0]])
def test_places_do_not_depend_on_who_is_first_of_those_who_agree(weights):
    """Two votes of total weight 4 count from 1 to 3, the third from 5.5 on; the middle, 3.5, is a fifth of the way."""
    values, one = np.array([[1.0, 9.0], [1.0, 9.0], [4.0, 9.0]]), np.zeros(3, dtype=np.int64)
    given = (values, one, np.array([0, 3]), np.arange(3), one[:1], np.ones((1, 3)), np.array(weights), np.ones(3), 0)
    assert place_elements(*given)[0].tolist() == [[pytest.approx(1.6), 9.0]]


def test_places_are_weighted_medians_classes_are_voted_and_gaps_are_shares_of_the_side():
    values = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [4, 0, 10, 10]], dtype=float)
    starts, sources, item = np.array([0, 3]), np.arange(3), np.zeros(1, dtype=np.int64)
    places, kinds, common, judged = place_elements(
        values, np.array([0, 1, 1]), starts, sources, item, np.ones((1, 3)), np.array([1.0, 1.0, 3.0]), np.ones(3), 2
    )
    # The weights 1, 1, 3 lie around .5, 1.5 and 3.5; their middle, 2.5, is halfway between the last two.
    assert places.tolist() == [[2.5, 0, 10, 10]]
    assert kinds.tolist() == [1]
    assert common[2] == pytest.approx(0.8)  # 60 of 75
    assert judged.tolist() == [True]
    sums = corner_gaps(values, starts, np.array([0, 2, 3]), np.array([0.5]), values[:1], 3)
    assert sums[0, 0, 2] == sums[0, 2, 0] == 0.5
    assert sums[1, 2, 3] == pytest.approx(0.5 * 3 / 4 / 10)
