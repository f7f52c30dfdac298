"""The table of sources: what it shows, and what it turns into."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import MissingPackageError
from consilience.prediction.verdict import verdict


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    votes = cs.simulate(
        cs.Classes(2), rng.integers(2, size=300), [2.0, 1.5, 1.0], rng, sources=["ann", "<bob>", "cleo"]
    )
    return cs.LabelModel(cs.Classes(2)).fit(votes).sources_


def test_it_prints_one_aligned_line_per_source(table):
    *lines, unit, note = repr(table).splitlines()
    assert len(lines) == 4
    assert unit.startswith("error_rate: how often a vote is wrong; weight: ")
    assert note == "effective number of sources: 2.6 of 3; 0% of the labels differ from the plain vote"
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["source", "error_rate", "weight"]  # all votes are there, so their number is left out
    assert re.fullmatch(r"ann +1\d% \(\d-\d\d%\) +\d\.\d\d", lines[1])


def test_the_best_source_comes_first_and_each_label_type_has_its_own_unit():
    rng = np.random.default_rng(1)
    units = {
        "error_rate": cs.Classes(3),
        "error": cs.Scores(),
        "pairs_wrong": cs.Rankings(5),
        "mean_distance": cs.FiniteMetric(abs(np.subtract.outer(range(4), range(4)))),
        "F1": cs.Boxes(),
        "word_error_rate": cs.Texts(),
        "typical_distance": cs.Sphere(2),
    }
    for unit, space in units.items():
        chance = float(space.law.expected_cost(np.zeros(1))[0])
        weight = space.law.weight_from_cost(chance * np.array([0.9, 0.2, 0.5, 0.35]))
        votes = cs.simulate(space, space.random(150, rng), weight, rng, sources=["poor", "best", "fair", "good"])
        table = cs.LabelModel(space).fit(votes).sources_.columns
        assert table["source"] == ["best", "good", "fair", "poor"], unit
        ends = zip(table[f"{unit}_low"], table[unit], table[f"{unit}_high"], strict=True)
        assert all(low <= value <= high for low, value, high in ends), unit
        assert (table[unit] == sorted(table[unit])) == (unit != "F1")


def test_scores_have_bias_slope_and_reliability_and_a_judge_who_knows_nothing_is_bounded():
    # 400 items: a bias has a standard error of about .1, a slope of .05; the best source sets the scale.
    rng = np.random.default_rng(2)
    truth = rng.normal(6.0, 2.0, 400)
    votes = np.column_stack(
        [
            truth + rng.normal(0, 0.3, 400),
            truth + rng.normal(0, 0.6, 400),
            2.0 + truth + rng.normal(0, 0.8, 400),
            3.0 + 0.5 * truth + rng.normal(0, 0.5, 400),
            rng.normal(6.0, 2.0, 400),
        ]
    )
    names = ["exact", "good", "lenient", "narrow", "noise"]
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="scale-not-identified"):
        model = cs.LabelModel(cs.Scores()).fit(cs.Votes.from_array(votes, sources=names))
    rows = {row["source"]: row for row in model.sources_.to_arrow().to_pylist()}
    assert rows["lenient"]["bias"] - rows["exact"]["bias"] == pytest.approx(2.0, abs=0.5)
    assert rows["narrow"]["slope"] / rows["exact"]["slope"] == pytest.approx(0.5, abs=0.1)
    assert rows["exact"]["reliability"] > 0.95 > 0.2 > abs(rows["noise"]["reliability"])
    assert rows["noise"]["error"] < 1.2 * truth.std()  # never more than knowing nothing
    assert rows["noise"]["advice"] == "drop"
    sentence = verdict(model.source_model_, model.space)
    assert sentence.startswith("Trust exact")
    assert "noise adds nothing" in sentence


def test_spammers_and_constant_voters_are_named_in_one_finding_and_to_drop():
    # 300 items, 20 workers: a guesser is missed, or an honest one accused, in fewer than one of a hundred draws.
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=300)
    right = rng.random((300, 20)) < rng.uniform(0.7, 0.95, 20)
    said = np.where(right, truth[:, None], rng.integers(4, size=(300, 20)))
    said[:, 0] = 1
    said[:, 1:3] = rng.integers(4, size=(300, 2))
    said[rng.random(said.shape) < 0.6] = -1
    model = cs.LabelModel(cs.Classes(4)).fit(said)
    found = {finding.code: finding for finding in model.diagnostics_}
    assert found["guessing-source"].sources == ("source_0", "source_1", "source_2")
    assert "(always the same label: source_0)" in found["guessing-source"].message
    columns = model.sources_.columns
    dropped = {name for name, advice in zip(columns["source"], columns["advice"], strict=True) if advice == "drop"}
    assert dropped == {"source_0", "source_1", "source_2"}


def test_names_are_escaped_in_html(table):
    assert "&lt;bob&gt;" in table._repr_html_()
    assert "<bob>" not in table._repr_html_()


@pytest.mark.parametrize("target", ["to_pandas", "to_polars", "to_arrow"])
def test_it_becomes_a_frame_of_any_kind(table, target):
    frame = getattr(table, target)()
    assert frame.shape == (3, 9)
    assert list(frame["source"] if target != "to_arrow" else frame["source"].to_pylist()) == ["ann", "<bob>", "cleo"]


def test_a_missing_package_is_named_with_its_install_line(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="pip install polars"):
        table.to_polars()


def test_the_share_of_labels_that_differ_from_the_plain_vote_is_counted():
    rng = np.random.default_rng(0)  # 150 items are fewer than are looked at, so all of them are
    votes = cs.simulate(cs.Classes(2), rng.integers(2, size=150), [2.9, 2.2, 1.1, 0.4, 0.4], rng)
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    differ = float(np.mean(model.predict(votes) != model.predict_baseline(votes)))
    assert differ > 0
    assert model.source_model_.changed == pytest.approx(differ)
    assert f"{differ:.0%} of the labels differ from the plain vote" in str(model.sources_)


@pytest.mark.parametrize("given", [True, False], ids=["given", "found"])
@pytest.mark.parametrize("classes", [2, 4])
def test_correlation_potentials_are_recovered(given, classes):
    space, rng = cs.Classes(classes), np.random.default_rng(7)
    dependencies = {(4, 5): 1.0}
    votes = cs.simulate(space, space.random(8_000, rng), [0.8, 1, 1.2, 1.4, 1, 1.2], rng, dependencies=dependencies)
    model = cs.LabelModel(space, dependencies=[("source_4", "source_5")] if given else None, random_state=0)
    potential = model.fit(votes).source_model_.correlation_potential
    # the standard deviation over draws is .035 at most: false alarm 1 in 10^4
    assert potential[4, 5] == pytest.approx(1.0, abs=0.14)


def test_what_any_two_sources_share_is_no_potential():
    learned = cs.LabelModel(cs.Classes(2)).fit([[0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 1]]).source_model_
    rho = np.array([[0.0, 0.007, 0.5035], [0.007, 0.0, 0.007], [0.5035, 0.007, 0.0]])  # .5035 is .007 and half the rest
    found = replace(learned, quality=np.zeros(3), summary=replace(learned.summary, correlation=rho))
    # beyond .007 two coins are both right, or both wrong, with probability 3/8: odds of 9, theta = ln(9) / 2
    assert found.correlation_potential[0] == pytest.approx([0.0, 0.0, np.log(9.0) / 2.0], abs=1e-9)
