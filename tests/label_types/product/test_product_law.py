"""Records in a model: every field as if it were alone, abstentions by field, qualities by field, sums that add up."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from refusals import refused

import consilience as cs
from consilience.exceptions import ConsilienceWarning, UnsupportedError

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


def tables(n: int = 250, seed: int = 0, missing: float = 0.2) -> dict[str, Any]:
    """Return votes of five sources on five fields, with abstentions in each field alone."""
    rng = np.random.default_rng(seed)
    noise = np.array([2.0, 4.0, 6.0, 9.0, 14.0])
    stars = rng.normal(50.0, 10.0, (n, 1)) + rng.normal(size=(n, 5)) * noise
    truth = rng.integers(4, size=(n, 1))
    topic = np.where(rng.random((n, 5)) < [0.5, 0.9, 0.8, 0.7, 0.6], truth, rng.integers(4, size=(n, 5)))
    found = {"stars": stars, "topic": topic, "gap": np.round(stars[:, ::-1])}
    for name, weights in (("order", [0.4, 0.6, 0.8, 1.2, 1.6]), ("level", [1.6, 0.3, 1.0, 0.8, 1.2])):
        space = SPACES[name]
        found[name] = cs.simulate(space, space.random(n, rng), weights, rng).labels
    for name, table in found.items():
        found[name] = table.astype(float) if name == "gap" else table
        found[name][rng.random((n, 5)) < missing] = np.nan if found[name].dtype.kind == "f" else -1
    return found


def alone(name: str, table: np.ndarray) -> cs.Votes:
    """Return the votes on one field for a model of its own."""
    if table.dtype.kind == "f":
        return cs.Votes.from_array(table, sources=NAMES)
    observed = table >= 0 if table.ndim == 2 else (table >= 0).any(axis=2)
    return cs.Votes.from_array(table, observed=observed, sources=NAMES)


def fitted(space: cs.LabelSpace, votes: Any, gold: Any = None, **settings: Any) -> cs.LabelModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold)


def records(space: cs.Product, found: dict[str, Any]) -> cs.Votes:
    return cs.Votes.from_array(space.records(**found), sources=NAMES)


def column(labels: np.ndarray, name: str) -> np.ndarray:
    return np.array([label[name] for label in labels])


# --- every field as if it were alone ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "majority", "isotropic", "triplets"])
def test_a_field_gets_the_labels_it_would_get_alone(method):
    found, space = tables(), cs.Product(**SPACES)
    votes = records(space, found)
    model = fitted(space, votes, method=method)
    belief = model.posterior(votes)
    for name, own in SPACES.items():
        table = alone(name, found[name])
        single = fitted(own, table, method=method)
        voted = table.observed.any(axis=1)
        labels = column(belief.labels[voted], name)
        assert np.array_equal(labels, single.predict(table)[voted]), name
        assert np.array_equal(belief.details[f"{name}/confidence"], single.confidence(table)), name
        assert np.array_equal(model.source_model_.summary.parts[name].weight, single.weight_), name
        for key, value in single.posterior(table).details.items():
            assert np.array_equal(belief.details[f"{name}/{key}"], value), (name, key)


def test_dependencies_hold_in_every_field():
    found, space = tables(), cs.Product(stars=SPACES["stars"], topic=SPACES["topic"])
    found = {name: found[name] for name in space.factors}
    pairs = [("ann", "bob")]
    model = fitted(space, records(space, found), dependencies=pairs)
    singles = {n: fitted(SPACES[n], alone(n, found[n]), dependencies=pairs) for n in space.factors}
    for name, single in singles.items():
        part = model.source_model_.summary.parts[name]
        assert np.array_equal(part.correlation, single.source_model_.correlation)
    mean = np.mean([single.source_model_.correlation for single in singles.values()], axis=0)
    assert np.allclose(model.source_model_.correlation, mean)


def test_known_labels_count_in_the_fields_where_they_are_known():
    found, space = tables(), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    rng = np.random.default_rng(1)
    stars = np.where(rng.random(250) < 0.2, rng.normal(70.0, 10.0, 250), np.nan)
    topic = np.where(rng.random(250) < 0.1, rng.integers(4, size=250), -1)
    gold = [
        {"stars": None if np.isnan(star) else star, "topic": None if code < 0 else int(code)}
        for star, code in zip(stars, topic, strict=True)
    ]
    votes = records(space, found)
    model = fitted(space, votes, gold)
    for name, known in (("stars", stars), ("topic", topic)):
        single = fitted(space.factors[name], alone(name, found[name]), known)
        assert np.array_equal(model.source_model_.summary.parts[name].weight, single.weight_)
    only_stars = fitted(space, votes, [{"stars": label["stars"]} for label in gold])
    single = fitted(cs.Classes(4), alone("topic", found["topic"]))
    assert np.array_equal(only_stars.source_model_.summary.parts["topic"].weight, single.weight_)


def test_known_labels_of_one_field_are_not_looked_for_in_another():
    found, space = tables(missing=0.0), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    votes = space.records(**{name: found[name][:, :2] for name in space.factors})
    model = fitted(space, votes, [{"stars": 50.0 + row % 7} for row in range(len(votes))])
    codes = {finding.code for finding in model.diagnostics_ if finding.part == "topic"}
    assert "too-few-sources" in codes


def test_a_named_prior_reaches_the_fields_that_have_one():
    found, space = tables(), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    model = fitted(space, records(space, found), prior="uniform")
    assert np.allclose(model.source_model_.parameters["topic"].prior, 0.25)


def test_records_in_records_are_the_fields_side_by_side():
    found = tables()
    flat = cs.Product(**{name: SPACES[name] for name in ("stars", "topic", "level")})
    deep = cs.Product(inner=cs.Product(stars=SPACES["stars"], topic=SPACES["topic"]), level=SPACES["level"])
    found = {name: found[name] for name in flat.factors}
    votes = records(flat, found)
    nested = np.empty(votes.shape, dtype=object)
    for row, source in np.ndindex(votes.shape):
        cell = votes.labels[row, source]
        if cell is not None:
            inner = {name: cell.get(name) for name in ("stars", "topic")}
            nested[row, source] = {"inner": inner, "level": cell.get("level")}
    one, two = fitted(flat, votes), fitted(deep, cs.Votes.from_array(nested, sources=NAMES))
    for plain, deeper in zip(one.predict(votes), two.predict(nested), strict=True):
        inside = deeper["inner"] or {"stars": None, "topic": None}
        assert plain == {**inside, "level": deeper["level"]}
    # Each field counts once in the flat record, and the two inner ones together once in the deep record.
    columns = two.sources_.columns
    assert columns["inner/stars weight"] == one.sources_.columns["stars weight"]
    assert columns["inner expected_cost"] == pytest.approx(
        np.array(columns["inner/stars expected_cost"]) / two.source_model_.parameters["inner"].scale[0]
        + np.array(columns["inner/topic expected_cost"]) / 0.75
    )


# --- abstentions by field --------------------------------------------------------------------------


def test_an_empty_field_is_missing_and_says_nothing_about_the_record():
    found, space = tables(missing=0.0), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    found["stars"][:5] = np.nan
    found["topic"][5:9] = -1
    found["stars"][9], found["topic"][9] = np.nan, -1
    votes = records(space, found)
    model = fitted(space, votes)
    belief = model.posterior(votes)
    assert [label["stars"] for label in belief.labels[:5]] == [None] * 5
    assert [label["topic"] for label in belief.labels[5:9]] == [None] * 4
    assert belief.labels[9] is None
    assert belief.details["stars/confidence"][:5].tolist() == [0.0] * 5
    assert np.array_equal(belief.confidence[:5], belief.details["topic/confidence"][:5])
    assert belief.confidence[9] == 0.0
    both = (belief.details["stars/confidence"][10:] + belief.details["topic/confidence"][10:]) / 2
    assert np.allclose(belief.confidence[10:], both)


def test_the_confidence_of_a_record_follows_the_weights_of_the_fields():
    found = {name: table for name, table in tables(missing=0.0).items() if name in ("stars", "topic")}
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(4), weights={"stars": 3.0})
    votes = records(space, found)
    belief = fitted(space, votes).posterior(votes)
    mean = (3.0 * belief.details["stars/confidence"] + belief.details["topic/confidence"]) / 4.0
    assert np.allclose(belief.confidence, mean)


def test_a_record_without_fields_is_an_abstention():
    found = {name: table for name, table in tables().items() if name in ("stars", "topic")}
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    votes = records(space, found)
    empty = votes.labels.copy()
    for row, source in np.argwhere(~votes.observed):
        empty[row, source] = {"stars": None} if row % 2 else {}
    one, two = fitted(space, votes), fitted(space, cs.Votes.from_array(empty, sources=NAMES))
    assert one.predict(votes).tolist() == two.predict(empty).tolist()
    assert one.sources_.columns == two.sources_.columns
    assert fitted(space, [[{}, {}, {}]] * 4).predict([[{}, {}, {}], [{}, None, {}]]).tolist() == [None, None]


def test_a_source_may_vote_on_one_field_only():
    found, space = tables(n=600, missing=0.0), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    found["topic"][:, 0] = -1
    model = cs.LabelModel(space).fit(records(space, found))  # warnings are errors here
    assert [item.part for item in model.diagnostics_ if item.code == "never-votes"] == ["topic"]
    summary = model.source_model_.summary
    assert np.isfinite(summary.cost_standard_error).all()
    # It is judged by the field it votes on: as good in the other, so twice the cost.
    scale = model.source_model_.parameters.scale[0]
    assert summary.expected_cost[0] == pytest.approx(2.0 * summary.parts["stars"].expected_cost[0] / scale)


def test_nobody_at_all_and_nobody_in_one_field():
    space = cs.Product(**SPACES)
    empty = np.full((6, 3), None, dtype=object)
    model = fitted(space, empty)
    assert model.predict(empty).tolist() == [None] * 6
    assert model.confidence(empty).tolist() == [0.0] * 6
    found = {"stars": tables()["stars"]}
    model = fitted(space, records(space, found))
    label = model.predict(records(space, found))[0]
    assert label == {"stars": label["stars"], "topic": None, "order": None, "level": None, "gap": None}
    assert np.isfinite(model.expected_cost_).all()


@pytest.mark.parametrize("m", [1, 2])
def test_one_or_two_sources_give_labels_and_a_warning(m):
    found, space = tables(n=40), cs.Product(**SPACES)
    votes = space.records(**{name: table[:, :m] for name, table in found.items()})
    with pytest.warns(ConsilienceWarning, match="too-few-sources"):
        model = cs.LabelModel(space).fit(votes)
    assert all(label is None or set(label) == set(SPACES) for label in model.predict(votes))


# --- qualities -------------------------------------------------------------------------------------


def test_who_is_good_at_one_field_may_be_poor_at_another():
    # n = 600; the qualities differ by far more than their standard errors, so a false alarm is practically excluded.
    found, space = tables(n=600), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    table = fitted(space, records(space, {name: found[name] for name in space.factors})).sources_.columns
    assert np.argsort(table["stars expected_cost"]).tolist() == [0, 1, 2, 3, 4]
    assert np.argsort(table["topic expected_cost"]).tolist() == [1, 2, 3, 4, 0]


def test_the_unit_of_a_field_does_not_matter():
    found, space = tables(), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    one = fitted(space, records(space, found))
    large = found | {"stars": 1000.0 * found["stars"]}
    two = fitted(space, records(space, large))
    assert np.allclose(one.expected_cost_, two.expected_cost_, rtol=1e-3)
    assert np.allclose(one.weight_, two.weight_, rtol=1e-3)


def test_given_weights_are_shared_out_so_that_they_come_back():
    class Given:
        def estimate(self, moments, space, dependencies):
            return np.array([2.0, 1.0, 1.0, 0.5, 0.5])

    found = {name: table for name, table in tables().items() if name in ("stars", "topic")}
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(4), weights={"topic": 2.0})
    model = fitted(space, records(space, found), method=Given())
    assert model.weight_ == pytest.approx([2.0, 1.0, 1.0, 0.5, 0.5])


# --- findings --------------------------------------------------------------------------------------


def test_findings_name_their_field():
    found, space = tables(n=400, missing=0.0), cs.Product(stars=cs.Scores(), topic=cs.Classes(5))
    found = {name: found[name] for name in space.factors}
    found["topic"][:, 4] = 2
    found["stars"][:, 3] = found["stars"][:, 2]
    model = fitted(space, records(space, found))
    by_code = {(item.code, item.part): item for item in model.diagnostics_}
    assert by_code["constant-source", "topic"].message.startswith("topic: Always the same label")
    assert by_code["unused-labels", "topic"].message.startswith("topic: No source ever votes")
    assert ("constant-source", "stars") not in by_code
    assert by_code["method", ""].part == ""


def test_the_same_finding_in_two_fields_is_told_twice():
    found, space = tables(n=100, missing=0.0), cs.Product(one=cs.Classes(4), two=cs.Classes(4))
    found = {"one": found["topic"], "two": found["topic"].copy()}
    for table in found.values():
        table[3:, 2:] = -1
    model = fitted(space, records(space, found))
    told = [(item.part, item.sources) for item in model.diagnostics_ if item.code == "low-overlap"]
    assert told == [("one", ("cleo", "dan", "eve")), ("two", ("cleo", "dan", "eve"))]


def test_too_few_sources_in_one_field_are_reported_for_this_field():
    found, space = tables(n=100, missing=0.0), cs.Product(stars=cs.Scores(), topic=cs.Classes(4))
    found = {name: found[name] for name in space.factors}
    found["stars"][:, 2:] = np.nan
    model = fitted(space, records(space, found))
    few = [item for item in model.diagnostics_ if item.code == "too-few-sources"]
    assert [(item.part, item.sources) for item in few] == [("stars", ("ann", "bob"))]
    assert few[0].message.startswith("stars: Only 2 sources voted")


# --- sums ------------------------------------------------------------------------------------------


def test_moments_of_parts_add_up_and_suffice_for_a_fit():
    found, space = tables(), cs.Product(**SPACES)
    votes = records(space, found)
    whole = cs.partitions.Moments.of(votes, space)
    first = cs.partitions.Moments.of(votes[:100], space)
    parts = first + cs.partitions.Moments.of(votes[100:], space)
    for name, total in whole.sums.parts.items():
        assert np.allclose(total, parts.sums[name], rtol=1e-10), name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        one = cs.LabelModel(space, method="triplets").fit_moments(whole)
        two = cs.LabelModel(space, method="triplets").fit_moments(parts)
    for name in ("stars", "topic", "order", "level"):
        assert np.allclose(one.source_model_.summary.parts[name].weight, two.source_model_.summary.parts[name].weight)


def test_a_field_learns_from_moments_as_it_would_alone():
    found, space = tables(), cs.Product(**SPACES)
    moments = cs.partitions.Moments.of(records(space, found), space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model = cs.LabelModel(space).fit_moments(moments)
        for name, own in SPACES.items():
            single = cs.LabelModel(own).fit_moments(cs.partitions.Moments.of(alone(name, found[name]), own))
            assert np.array_equal(model.source_model_.summary.parts[name].weight, single.weight_), name


def test_votes_may_come_in_pieces():
    found, space = tables(n=300), cs.Product(**SPACES)
    votes = records(space, found)
    at_once = fitted(space, votes)
    pieces = cs.LabelModel(space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        for start in (0, 100, 200):
            pieces.partial_fit(votes[start : start + 100])
    for name in ("stars", "topic", "order", "level"):
        one, two = (model.source_model_.summary.parts[name].weight for model in (at_once, pieces))
        assert np.allclose(one, two, rtol=1e-6), name


def test_a_piece_in_which_a_field_is_silent_can_follow_and_lead():
    found, space = tables(n=200), cs.Product(**SPACES)
    for table in found.values():
        if table.dtype.kind != "f":
            table[:100] = -1
    found["gap"][100:] = np.nan
    votes = records(space, found)
    model = cs.LabelModel(space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model.partial_fit(votes[:100]).partial_fit(votes[100:])
    at_once = fitted(space, votes)
    one, two = (each.source_model_.summary.parts["topic"].weight for each in (at_once, model))
    assert np.allclose(one, two, rtol=1e-6)


def test_a_method_that_needs_votes_names_the_field_when_there_are_none():
    space = cs.Product(topic=cs.Classes(4), stars=cs.Scores())
    found = {name: tables()[name] for name in space.factors}
    with refused(UnsupportedError, "field 'topic'", "fit(votes)"):
        cs.LabelModel(space, method="em").fit_moments(cs.partitions.Moments.of(records(space, found), space))
