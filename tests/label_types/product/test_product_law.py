"""Records in a model: every field as if it were alone, abstentions by field, qualities by field, sums that add up."""

import warnings
from typing import Any

import numpy as np
import pytest
from refusals import refused
from simulated import GivenWeights, fitted

import consilience as cs
from consilience.exceptions import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
NAMES = ["ann", "bob", "cleo", "dan", "eve"]


def gap(left: float, right: float) -> float:
    return abs(left - right)


SPACES: dict[str, cs.LabelSpace] = {
    "stars": cs.Scores(),
    "topic": cs.Classes(4),
    "order": cs.Rankings(4),
    "level": cs.FiniteMetric([(0, 1), (1, 2), (2, 3)]),
    "gap": cs.Metric(gap),
}
EVERYTHING = cs.Product(**SPACES)
REVIEW = cs.Product(stars=cs.Scores(), topic=cs.Classes(4))


def tables(space: cs.Product = EVERYTHING, n: int = 250, missing: float = 0.2) -> dict[str, Any]:
    """Return votes of five sources on the fields of a product, with abstentions in each field alone."""
    rng = np.random.default_rng(0)
    noise = np.array([2.0, 4.0, 6.0, 9.0, 14.0])
    stars = rng.normal(50.0, 10.0, (n, 1)) + rng.normal(size=(n, 5)) * noise
    truth = rng.integers(4, size=(n, 1))
    topic = np.where(rng.random((n, 5)) < [0.5, 0.9, 0.8, 0.7, 0.6], truth, rng.integers(4, size=(n, 5)))
    found = {"stars": stars, "topic": topic, "gap": np.round(stars[:, ::-1])}
    for name, weights in (("order", [0.4, 0.6, 0.8, 1.2, 1.6]), ("level", [1.6, 0.3, 1.0, 0.8, 1.2])):
        own = SPACES[name]
        found[name] = cs.simulate(own, own.random(n, rng), weights, rng).labels
    for name, table in found.items():
        found[name] = table.astype(float) if name == "gap" else table
        found[name][rng.random((n, 5)) < missing] = np.nan if found[name].dtype.kind == "f" else -1
    return {name: found[name] for name in space.factors}


def alone(table: np.ndarray) -> cs.Votes:
    """Return the votes on one field for a model of its own."""
    if table.dtype.kind == "f":
        return cs.Votes.from_array(table, sources=NAMES)
    observed = table >= 0 if table.ndim == 2 else (table >= 0).any(axis=2)
    return cs.Votes.from_array(table, observed=observed, sources=NAMES)


def records(space: cs.Product, found: dict[str, Any]) -> cs.Votes:
    return cs.Votes.from_array(space.records(**found), sources=NAMES)


def weight(model: cs.LabelModel, name: str) -> np.ndarray:
    return model.source_model_.summary.parts[name].weight


@pytest.mark.parametrize("method", ["auto", "majority", "isotropic", "triplets"])
def test_a_field_gets_the_labels_it_would_get_alone(method):
    found = tables()
    votes = records(EVERYTHING, found)
    model = fitted(EVERYTHING, votes, method=method)
    belief = model.posterior(votes)
    for name, own in SPACES.items():
        table = alone(found[name])
        single = fitted(own, table, method=method)
        stated, voted = single.posterior(table), table.observed.any(axis=1)
        labels = np.array([label[name] for label in belief.labels[voted]])
        assert np.array_equal(labels, stated.labels[voted]), name
        assert np.array_equal(belief.details[f"{name}/confidence"], stated.confidence), name
        assert np.array_equal(weight(model, name), single.weight_), name
        for key, value in stated.details.items():
            assert np.array_equal(belief.details[f"{name}/{key}"], value), (name, key)


def test_dependencies_hold_in_every_field_and_a_named_prior_in_those_that_have_one():
    found, pairs = tables(REVIEW), [("ann", "bob")]
    model = fitted(REVIEW, records(REVIEW, found), dependencies=pairs)
    single = [fitted(SPACES[n], alone(found[n]), dependencies=pairs).source_model_.correlation for n in REVIEW.factors]
    for part, correlation in zip(model.source_model_.summary.parts.values(), single, strict=True):
        assert np.array_equal(part.correlation, correlation)
    assert np.allclose(model.source_model_.correlation, np.mean(single, axis=0))
    model = fitted(REVIEW, records(REVIEW, found), prior="uniform")
    assert np.allclose(model.source_model_.parameters["topic"].prior, 0.25)


def test_known_labels_count_in_the_fields_where_they_are_known():
    found, rng = tables(REVIEW), np.random.default_rng(1)
    stars = np.where(rng.random(250) < 0.2, rng.normal(70.0, 10.0, 250), np.nan)
    topic = np.where(rng.random(250) < 0.1, rng.integers(4, size=250), -1)
    gold = [{"stars": star, "topic": None if code < 0 else code} for star, code in zip(stars, topic, strict=True)]
    votes = records(REVIEW, found)
    model = fitted(REVIEW, votes, gold)
    for name, known in (("stars", stars), ("topic", topic)):
        single = fitted(REVIEW.factors[name], alone(found[name]), known)
        assert np.array_equal(weight(model, name), single.weight_)
    only_stars = fitted(REVIEW, votes, [{"stars": label["stars"]} for label in gold])
    assert np.array_equal(weight(only_stars, "topic"), fitted(cs.Classes(4), alone(found["topic"])).weight_)
    two = REVIEW.records(**{name: table[:, :2] for name, table in found.items()})
    findings = fitted(REVIEW, two, [{"stars": 50.0 + row % 7} for row in range(len(two))]).diagnostics_
    assert "too-few-sources" in {finding.code for finding in findings if finding.part == "topic"}


def test_records_in_records_are_the_fields_side_by_side():
    flat = cs.Product(**{name: SPACES[name] for name in ("stars", "topic", "level")})
    deep = cs.Product(inner=REVIEW, level=SPACES["level"])
    votes = records(flat, tables(flat))
    nested = np.empty(votes.shape, dtype=object)
    for place in np.argwhere(votes.observed):
        cell = votes.labels[tuple(place)]
        inner = {name: cell.get(name) for name in ("stars", "topic")}
        nested[tuple(place)] = {"inner": inner, "level": cell.get("level")}
    one, two = fitted(flat, votes), fitted(deep, cs.Votes.from_array(nested, sources=NAMES))
    for plain, deeper in zip(one.predict(votes), two.predict(nested), strict=True):
        assert plain == {**(deeper["inner"] or {"stars": None, "topic": None}), "level": deeper["level"]}
    # Each field counts once in the flat record, and the two inner ones together once in the deep record.
    assert {"inner/stars weight", "inner/stars error", "inner/topic error_rate"} <= two.sources_.columns.keys()
    inner = two.source_model_.summary.parts["inner"]
    assert inner.parts["stars"].weight.tolist() == one.source_model_.summary.parts["stars"].weight.tolist()
    assert inner.expected_cost == pytest.approx(
        inner.parts["stars"].expected_cost / two.source_model_.parameters["inner"].scale[0]
        + inner.parts["topic"].expected_cost / 0.75
    )


def test_an_empty_field_is_missing_and_says_nothing_about_the_record():
    found = tables(REVIEW, missing=0.0)
    found["stars"][:5] = np.nan
    found["topic"][5:9] = -1
    found["stars"][9], found["topic"][9] = np.nan, -1
    votes = records(REVIEW, found)
    belief = fitted(REVIEW, votes).posterior(votes)
    assert [label["stars"] for label in belief.labels[:5]] == [None] * 5
    assert [label["topic"] for label in belief.labels[5:9]] == [None] * 4
    assert belief.labels[9] is None
    assert belief.details["stars/confidence"][:5].tolist() == [0.0] * 5
    wrong = 1.0 - belief.details["topic/confidence"][:5]  # of four classes three are wrong by chance
    assert np.allclose(belief.confidence[:5], 1.0 - wrong / 0.75)
    assert belief.confidence[9] == 0.0
    for weight, space in ((1.0, REVIEW), (3.0, cs.Product(**REVIEW.factors, weights={"stars": 3.0}))):
        belief = fitted(space, votes).posterior(votes)
        stars, topic = (belief.details[f"{name}/confidence"][10:] for name in ("stars", "topic"))
        # Unrelated stars cost two variances, of which the confidence of a score has one.
        spared = (weight * (1.0 + stars) / 2.0 + 1.0 - (1.0 - topic) / 0.75) / (weight + 1.0)
        assert np.allclose(belief.confidence[10:], spared)


def test_a_record_without_fields_is_an_abstention():
    votes = records(REVIEW, tables(REVIEW))
    empty = votes.labels.copy()
    for row, source in np.argwhere(~votes.observed):
        empty[row, source] = {"stars": None} if row % 2 else {}
    one, two = fitted(REVIEW, votes), fitted(REVIEW, cs.Votes.from_array(empty, sources=NAMES))
    assert one.predict(votes).tolist() == two.predict(empty).tolist()
    assert one.sources_.columns == two.sources_.columns
    assert fitted(REVIEW, [[{}, {}, {}]] * 4).predict([[{}, {}, {}], [{}, None, {}]]).tolist() == [None, None]


def test_a_source_may_vote_on_one_field_only():
    found = tables(REVIEW, n=600, missing=0.0)
    found["topic"][:, 0] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(REVIEW, records(REVIEW, found))
    assert [item.part for item in model.diagnostics_ if item.code == "never-votes"] == ["topic"]
    summary = model.source_model_.summary
    assert np.isfinite(summary.cost_standard_error).all()
    # It is judged by the field it votes on: as good in the other, so twice the cost.
    scale = model.source_model_.parameters.scale[0]
    assert summary.expected_cost[0] == pytest.approx(2.0 * summary.parts["stars"].expected_cost[0] / scale)


def test_a_source_may_be_good_at_one_field_and_poor_at_another():
    # n = 600; the qualities differ by far more than their standard errors, so a false alarm is practically excluded.
    model = fitted(REVIEW, records(REVIEW, tables(REVIEW, n=600)))
    table = model.sources_.columns
    by = {name: dict(zip(table["source"], table[name], strict=True)) for name in ("stars error", "topic error_rate")}
    assert sorted(NAMES, key=by["stars error"].get) == [NAMES[at] for at in (0, 1, 2, 3, 4)]
    assert sorted(NAMES, key=by["topic error_rate"].get) == [NAMES[at] for at in (1, 2, 3, 4, 0)]


def test_the_unit_of_a_field_is_the_cost_of_unrelated_true_labels_and_does_not_matter():
    # n = 3000: the standard error of the unit is about 3%, so that 15% are five of them. Votes on different items are
    # twice as far apart as true labels.
    rng = np.random.default_rng(0)
    truth = 3.0 * rng.normal(size=(3000, 1, 3))
    votes = truth + 3.0 * rng.normal(size=(3000, 5, 3)) * np.linspace(0.7, 1.3, 5)[:, None]
    space = cs.Product(one=cs.Scores(), two=cs.Vectors(2), told=cs.Scores(mean=0.0, variance=7.0))

    def fit(factor: float) -> cs.LabelModel:
        one, two = factor * votes[..., 0], factor * votes[..., 1:]
        return fitted(space, space.records(one=one, two=two, told=votes[..., 0]))

    plain, large = fit(1.0), fit(1000.0)
    scale, moved = (model.source_model_.parameters.scale for model in (plain, large))
    assert scale[:2] == pytest.approx([18.0, 36.0], rel=0.15)
    assert scale[2] == 14.0
    assert moved == pytest.approx(scale * [1e6, 1e6, 1.0], rel=1e-3)
    # Only ratios to the unit enter the cost of a record.
    assert np.allclose(plain.expected_cost_, large.expected_cost_, rtol=1e-3)
    assert np.allclose(plain.weight_, large.weight_, rtol=1e-3)


def test_given_weights_are_shared_out_so_that_they_come_back():
    space = cs.Product(**REVIEW.factors, weights={"topic": 2.0})
    model = fitted(space, records(space, tables(REVIEW)), method=GivenWeights(2.0, 1.0, 1.0, 0.5, 0.5))
    assert model.weight_ == pytest.approx([2.0, 1.0, 1.0, 0.5, 0.5])


def test_findings_name_their_field():
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(5))
    found = tables(REVIEW, n=400, missing=0.0)
    found["topic"][:, 4] = 2
    found["stars"][:, 3] = found["stars"][:, 2]
    by_code = {(item.code, item.part): item for item in fitted(space, records(space, found)).diagnostics_}
    assert by_code["constant-source", "topic"].message.startswith("topic: Always voted for the same label")
    assert by_code["unused-labels", "topic"].message.startswith("topic: No source ever votes")
    assert ("constant-source", "stars") not in by_code
    assert by_code["method", ""].part == ""
    found["stars"][:, 2:] = np.nan
    few = [item for item in fitted(space, records(space, found)).diagnostics_ if item.code == "too-few-sources"]
    assert [(item.part, item.sources) for item in few] == [("stars", ("ann", "bob"))]
    assert few[0].message.startswith("stars: Only 2 sources voted")
    # The same finding in two fields is told twice.
    table = tables(REVIEW, n=100, missing=0.0)["topic"]
    table[3:, 2:] = -1
    space = cs.Product(one=cs.Classes(4), two=cs.Classes(4))
    model = fitted(space, records(space, {"one": table, "two": table}))
    told = [(item.part, item.sources) for item in model.diagnostics_ if item.code == "low-overlap"]
    assert told == [("one", ("cleo", "dan", "eve")), ("two", ("cleo", "dan", "eve"))]


def test_votes_may_come_in_pieces_even_where_a_field_is_silent():
    found = tables(n=200)
    for name in ("topic", "order", "level"):
        found[name][:100] = -1
    found["gap"][100:] = np.nan
    votes = records(EVERYTHING, found)
    at_once, pieces = fitted(EVERYTHING, votes), cs.LabelModel(EVERYTHING)
    for rows in (slice(50), slice(50, 100), slice(100, 200)):
        pieces.partial_fit(votes[rows])
    for name in ("stars", "topic", "order", "level"):
        assert np.allclose(weight(at_once, name), weight(pieces, name), rtol=1e-6), name


def test_a_method_that_needs_votes_names_the_field_when_there_are_none():
    space = cs.Product(topic=cs.Classes(4), stars=cs.Scores())
    with refused(UnsupportedError, "field 'topic'", "fit(votes)"):
        cs.LabelModel(space, method="em").fit_moments(cs.partitions.Moments.of(records(space, tables(space)), space))
