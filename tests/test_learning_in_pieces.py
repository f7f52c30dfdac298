"""Votes in pieces, moments that add up, and known labels: however the evidence arrives, it counts the same."""

import warnings

import numpy as np
import pytest
from simulated import CASES, SPACES, simulated

import consilience as cs

#: The first piece is small, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
EXACT = [
    (kind, method)
    for kind, method in CASES
    if kind in ("two classes", "three classes", "path")
    and method in ("majority", "isotropic", "triplets", "quadratic", "moments")
]


def pieces(votes: cs.Votes) -> list[cs.Votes]:
    return [votes[:50], votes[50:51], votes[51:300], votes[300:]]


def learned_in_pieces(space: cs.LabelSpace, method: str, votes: cs.Votes) -> cs.LabelModel:
    model = cs.LabelModel(space, method=method)
    for part in pieces(votes):
        model.partial_fit(part)
    return model


@pytest.mark.parametrize(("kind", "method"), EXACT)
def test_closed_forms_learn_the_same_in_pieces_from_moments_and_at_once(kind, method):
    data = simulated(kind)
    whole = cs.LabelModel(data.space, method=method).fit(data.votes)
    moments = [cs.partitions.Moments.of(part, data.space) for part in pieces(data.votes)]
    summed = cs.LabelModel(data.space, method=method).fit_moments(sum(moments, start=cs.partitions.Moments.zero()))
    parts = learned_in_pieces(data.space, method, data.votes)
    for model in (parts, summed):
        assert np.allclose(model.weight_, whole.weight_, rtol=0, atol=1e-9)
        assert np.allclose(model.standard_error_, whole.standard_error_, rtol=0, atol=1e-9)
        assert model.source_model_.n_items == 400
    assert np.array_equal(parts.predict(data.votes), whole.predict(data.votes))


@pytest.mark.parametrize("method", ["em", "auto"])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "path"])
def test_likelihood_learns_nearly_the_same_in_pieces_as_at_once(kind, method):
    data = simulated(kind)
    whole = cs.LabelModel(data.space, method=method).fit(data.votes)
    parts = learned_in_pieces(data.space, method, data.votes)
    assert np.allclose(parts.weight_, whole.weight_, rtol=0, atol=1e-3)
    assert np.allclose(parts.predict_proba(data.votes), whole.predict_proba(data.votes), atol=1e-3)


@pytest.mark.parametrize("kind", ["metric", "metric with candidates"])
def test_costs_of_a_metric_are_the_same_in_pieces_from_moments_and_at_once(kind):
    # The weights are not: the unit of weight rests on reference labels, which come from the first piece.
    data = simulated(kind)
    whole = cs.LabelModel(data.space, method="isotropic").fit(data.votes)
    models = [learned_in_pieces(data.space, "isotropic", data.votes)]
    if kind == "metric with candidates":
        moments = [cs.partitions.Moments.of(part, data.space) for part in pieces(data.votes)]
        models.append(cs.LabelModel(data.space, method="isotropic").fit_moments(sum(moments[1:], start=moments[0])))
    for model in models:
        assert np.allclose(model.expected_cost_, whole.expected_cost_, rtol=0, atol=1e-9)


def test_later_pieces_may_lack_ids_or_have_sources_in_another_order_and_fit_forgets():
    data = simulated("three classes", coverage=1.0)
    model = cs.LabelModel(data.space, method="triplets")
    for start in range(0, 400, 100):
        model.partial_fit(data.votes.labels[start : start + 100])
    whole = cs.LabelModel(data.space, method="triplets").fit(data.votes)
    assert model.source_model_.n_items == 400
    assert np.allclose(model.weight_, whole.weight_, rtol=0, atol=1e-9)
    first = cs.LabelModel(data.space, method="triplets").fit(data.votes[:200])
    weight = first.weight_
    first.partial_fit(data.votes[200:].select(["eve", "cleo", "ann", "bob", "dan"]))
    assert np.allclose(first.weight_, whole.weight_, rtol=0, atol=1e-9)
    assert np.array_equal(first.fit(data.votes[:200]).weight_, weight)


@pytest.mark.parametrize("kind", ["two classes", "path"])
def test_auto_on_moments_alone_uses_pair_moments_and_says_so(kind):
    data = simulated(kind)
    model = cs.LabelModel(data.space).fit_moments(cs.partitions.Moments.of(data.votes, data.space))
    assert "agreement of all pairs" in model.source_model_.reason
    assert "EM" not in model.source_model_.reason


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_moments_of_a_metric_without_candidates_weigh_the_sources_in_any_unit(unit):
    data = simulated("metric")
    space = cs.Metric(lambda left, right: unit * np.abs(left - right), vectorized=True)
    model = cs.LabelModel(space).fit_moments(cs.partitions.Moments.of(data.votes, space))
    assert (np.argsort(model.weight_) == np.arange(5)).all()
    assert (model.weight_ > 0).all()


def known_fifth(truth: np.ndarray) -> np.ndarray:
    return np.arange(len(truth)) % 5 == 0


@pytest.mark.parametrize("kind", SPACES)
def test_known_labels_bring_the_costs_closer_to_the_truth(kind):
    # All labels known: the expected costs are then plain averages, up to the prior's pull of a few votes in 320.
    data = simulated(kind)
    model = cs.LabelModel(data.space, method="labelled").fit(data.votes, gold=data.truth)
    for source in range(5):
        rows = data.votes.observed[:, source]
        cost = data.space.distance(data.votes.labels[rows, source], data.truth[rows]).mean()
        # The engine draws qualities together where few items tell them apart.
        assert model.expected_cost_[source] == pytest.approx(cost, abs=0.06)


@pytest.mark.parametrize("method", ["auto", "labelled"])
def test_two_sources_are_weighed_when_labels_are_known(method):
    data = simulated("two classes", coverage=1.0)
    two = data.votes.select(["ann", "eve"])
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="too-few-sources"):
        model = cs.LabelModel(data.space, method=method).fit(two, gold=data.truth)
    assert model.weight_[1] > model.weight_[0] + 0.5
    assert np.array_equal(model.predict(two), two.labels[:, 1])


def gold_spellings(truth: np.ndarray, known: np.ndarray) -> dict[str, object]:
    some = [int(label) if told else None for label, told in zip(truth, known, strict=True)]
    return {
        "pair": (truth, known),
        "pair of lists": (truth.tolist(), known.tolist()),
        "minus one": np.where(known, truth, -1),
        "nan": np.where(known, truth, np.nan),
        "none": some,
        "none and minus one": [-1 if label is None and row % 2 else label for row, label in enumerate(some)],
        "objects": np.array(some, dtype=object),
    }


@pytest.mark.parametrize("spelling", gold_spellings(np.zeros(1), np.ones(1)))
def test_known_labels_may_be_spelled_in_any_way(spelling):
    data = simulated("three classes")
    known = known_fifth(data.truth)
    gold = gold_spellings(data.truth, known)[spelling]
    model = cs.LabelModel(data.space, method="labelled").fit(data.votes, gold=gold)
    assert model.source_model_.reason == "80 known labels"


def test_known_labels_in_pieces_add_up():
    data = simulated("three classes")
    model = cs.LabelModel(data.space, method="labelled")
    model.fit(data.votes[:200], gold=data.truth[:200]).partial_fit(data.votes[200:], gold=data.truth[200:])
    whole = cs.LabelModel(data.space, method="labelled").fit(data.votes, gold=data.truth)
    assert np.allclose(model.weight_, whole.weight_, rtol=0, atol=1e-9)


def test_partitions_are_added_to_what_was_learned():
    rng = np.random.default_rng(0)
    votes = cs.Votes.from_matrix(rng.integers(0, 3, size=(400, 4)), sources=list("abcd"))
    space = cs.Classes(3)
    pieces = cs.partitions.InMemoryPartitions.of(votes[200:], rows=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cs.LabelModel(space, method="triplets").partial_fit(votes[:200]).partial_fit(pieces)
        whole = cs.LabelModel(space, method="triplets").fit(votes)
        assert np.allclose(model.weight_, whole.weight_, rtol=1e-10)
        with pytest.raises(cs.exceptions.SourceMismatchError):
            model.partial_fit(cs.partitions.InMemoryPartitions.of(votes.select(["b", "a", "c", "d"])))


@pytest.mark.parametrize("field", [True, False])
def test_em_sees_the_votes_of_pieces_whose_labels_have_other_lengths(field):
    rng = np.random.default_rng(0)
    space: cs.LabelSpace = cs.Product(order=cs.Rankings(None)) if field else cs.Rankings(None)
    model = cs.LabelModel(space, method="em")
    for width in (4, 6):
        truth = np.tile(np.arange(width, dtype=np.int16), (80, 1))
        said = [cs.Rankings(width).sample_around(truth, weight, rng) for weight in (2.0, 1.0, 0.5, 0.1)]
        cells = np.stack(said, axis=1)
        model.partial_fit(space.records(order=cells) if isinstance(space, cs.Product) else cells)
    first, *_, last = model.expected_cost_
    assert first < last / 2
