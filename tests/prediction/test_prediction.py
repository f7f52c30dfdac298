"""What a model tells: explanations, the table of sources, items worth labeling by hand, distributions of labels."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from simulated import GivenWeights

import consilience as cs
from consilience.exceptions import InvalidVotesError, MissingPackageError, UnsupportedError
from consilience.prediction.inference import Distribution
from consilience.prediction.verdict import verdict


def fitted(space, votes, *weight, prior="uniform"):
    return cs.LabelModel(space, method=GivenWeights(*weight), prior=prior).fit(votes)


@pytest.fixture
def classes():
    votes = cs.Votes.from_matrix(
        [[0, 1, 1, -1], [0, 0, 0, 0], [1, -1, -1, -1], [-1, -1, -1, -1]],
        sources=["ann", "bob", "cleo", "dan"],
        items=["x", "y", "z", "nobody"],
    )
    return fitted(cs.Classes(2), votes, 2.0, 0.5, 0.7, 1.0), votes


def test_contribution_to_a_class_is_the_weight_for_it_or_against_it_and_a_source_may_flip_it(classes):
    # With a uniform prior the log-odds of class 0 over 1 are 2.0 - 0.5 - 0.7 = 0.8, a sum over the sources.
    model, votes = classes
    story = model.explain(votes, "x")
    assert (story.label, story.runner_up, story.abstained) == (0, 1, ("dan",))
    assert story.margin == pytest.approx(0.8)
    assert [voice.source for voice in story.voices] == ["ann", "bob", "cleo"]
    assert [voice.contribution for voice in story.voices] == pytest.approx([2.0, -0.5, -0.7])
    assert [voice.flips for voice in story.voices] == [True, False, False]
    assert story.voices[0].label_without == 1
    assert (story.flipped_by, story.flipped_to) == (("ann",), 1)
    text = str(story)
    assert text.splitlines()[0].startswith("item x: 0 (confidence 0.69); next best 1")
    assert "abstained: dan" in text
    assert "without ann the label would be 1" in text


def test_unanimous_labels_only_voters_items_without_votes_and_unknown_items_are_explained_too(classes):
    model, votes = classes
    story = model.explain(votes, "y")
    assert (story.flipped_by, story.flipped_to) == ((), None)
    assert story.confidence == pytest.approx(1 / (1 + np.exp(-4.2)))
    alone = model.explain(votes, "z")
    assert ([voice.source for voice in alone.voices], alone.label) == (["ann"], 1)
    nobody = model.explain(votes, "nobody")
    assert (nobody.label, nobody.confidence, nobody.abstained) == (None, 0.0, ("ann", "bob", "cleo", "dan"))
    assert str(nobody) == "item nobody: no label, because no source voted on it"
    with pytest.raises(InvalidVotesError, match=r"no item 'nobodi'.*Did you mean 'nobody'"):
        model.explain(votes, "nobodi")


def test_rankings_name_the_next_best_order_and_its_extra_cost():
    votes = cs.Votes.from_array(
        [[[0, 1, 2], [0, 1, 2], [2, 1, 0]]] * 4, sources=["ann", "bob", "cleo"], items=list("abcd")
    )
    story = fitted(cs.Rankings(3), votes, 1.0, 1.0, 1.5, prior="auto").explain(votes, "a")
    assert list(story.label) == [0, 1, 2]
    # The label costs 3 inversions of weight 1.5; the reverse order costs 3 of weight 2.
    assert list(story.runner_up) == [2, 1, 0]
    assert story.margin == pytest.approx(6.0 - 4.5)
    # Without ann the third source outweighs the second, and all three pairs turn.
    assert {voice.source: voice.contribution for voice in story.voices} == {"ann": 3.0, "bob": 3.0, "cleo": 0.0}


def test_negative_margin_is_explained_by_the_expected_cost():
    line = cs.FiniteMetric([[abs(a - b) for b in range(5)] for a in range(5)], names=[1, 2, 3, 4, 5])
    votes = cs.Votes.from_matrix([[1, 1, 5, 5, 2], [3, 3, 3, 3, 3]])
    model = cs.LabelModel(line, method=GivenWeights(0.6, 0.6, 0.6, 0.6, 0.1), decode="bayes").fit(votes)
    story = model.explain(votes, 0)
    odds = np.log(model.predict_proba(votes)[0])
    assert odds[story.label - 1] - odds[story.runner_up - 1] == pytest.approx(story.margin)
    assert story.margin < 0
    first = f"{story.runner_up} has more support (margin {story.margin:.2f}), but a larger expected cost"
    assert first in str(story).splitlines()[0]
    assert model.explain(votes, 1).margin > 0


def test_score_moves_towards_the_others_without_a_source():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=300)
    votes = truth[:, None] + rng.normal(size=(300, 4)) * [0.3, 0.5, 0.8, 1.0]
    model = cs.LabelModel(cs.Scores(mean=0.0, variance=1.0)).fit(votes)
    story = model.explain(votes, 7)
    masked = votes[7:8].copy()
    for voice in story.voices:
        column = model.source_model_.sources.index(voice.source)
        without = masked.copy()
        without[0, column] = np.nan
        assert voice.label_without == pytest.approx(model.predict(without)[0])
        assert abs(voice.contribution) == pytest.approx(abs(model.predict(masked)[0] - voice.label_without))
        assert not voice.flips
    assert story.runner_up is None
    assert story.flipped_by == ()


@pytest.mark.parametrize(
    "space", [cs.Vectors(3), cs.Boxes(["car"]), cs.Sphere(2), cs.Product(stars=cs.Scores())], ids=repr
)
def test_numbers_are_told_with_four_digits_and_votes_that_are_on_the_common_scale_once(space):
    rng = np.random.default_rng(5)
    votes = cs.simulate(space, space.random(60, rng), [3.0, 2.0, 1.0], rng)
    told = str(cs.LabelModel(space, method="majority").fit(votes).explain(votes, 3))
    assert not re.search(r"\.\d{8}", told), told
    assert re.search(r"said (\S.*), which is \1 on", told) is None


def test_dependent_sources_that_both_vote_are_named_as_sharing_their_say():
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=400)
    votes = np.where(rng.random((400, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    votes[:, 1] = votes[:, 0]
    model = cs.LabelModel(cs.Classes(2), dependencies=[(0, 1)]).fit(votes)
    names = model.source_model_.sources
    assert model.explain(votes, 0).shared == ((names[0], names[1]),)


def test_scores_are_told_on_the_common_scale_crowds_by_who_voted_and_arenas_in_one_line_per_judge():
    rng = np.random.default_rng(0)
    truth = rng.normal(6.0, 2.0, 300)
    votes = np.column_stack([truth, truth, 3.0 + truth, truth]) + rng.normal(0, 0.3, (300, 4))
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="scale-not-identified"):
        model = cs.LabelModel(cs.Scores()).fit(cs.Votes.from_array(votes, sources=["a", "b", "lenient", "c"]))
    story = model.explain(votes, 0)
    voices = {voice.source: voice for voice in story.voices}
    # Noise of .3: alone, each vote says what the others say, within four standard errors of their difference.
    assert abs(voices["lenient"].alone - voices["a"].alone) < 4 * 0.3 * np.sqrt(2)
    assert f"said {votes[0, 2]:.4g}, which is {voices['lenient'].alone:.4g}" in str(story)
    few = np.full((60, 30), -1)
    for row, chosen in enumerate(rng.permuted(np.tile(np.arange(30), (60, 1)), axis=1)[:, :3]):
        few[row, chosen] = row % 2
    crowd = cs.LabelModel(cs.Classes(2), method="majority").fit(
        cs.Votes.from_matrix(few, sources=[f"w{n}" for n in range(30)])
    )
    assert "27 other sources did not vote" in str(crowd.explain(few, 0))
    said = [{"first": "x", "second": "y", "outcome": "first"}] * 30 + [
        {"first": "x", "second": "y", "outcome": "second"}
    ] * 10
    arena = cs.Votes.from_array([[said, said, said]], sources=["j1", "j2", "j3"], items=["all"])
    judged = str(cs.LabelModel(cs.Preferences(), method="majority").fit(arena).explain(arena, "all"))
    assert len(judged.splitlines()) == 4
    assert "40 comparisons" in judged


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


def panel(space, share, n, seed):
    rng = np.random.default_rng(seed)
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    truth = space.as_labels(space.random(n, rng))
    return cs.simulate(space, truth, space.law.weight_from_cost(chance * np.asarray(share)), rng), truth


def test_suggested_items_are_disputed_ones_by_id():
    votes, _ = panel(cs.Classes(3), [0.3, 0.5, 0.6, 0.7], 200, 0)
    named = cs.Votes.from_array(votes.labels, items=[f"item {row}" for row in range(200)])
    model = cs.LabelModel(cs.Classes(3)).fit(named)
    chosen = model.suggest(named, 10, "learn").items
    assert len(set(chosen)) == 10
    assert set(chosen) <= set(named.items)
    rows = np.isin(named.items, chosen)
    assert model.confidence(named)[rows].max() < np.median(model.confidence(named))


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(
    ("k", "message"),
    [*((k, "is not a number of items") for k in (0, -1, 2.5, True)), (21, "more than the 20 items with a vote")],
)
def test_a_number_of_suggestions_that_is_none_or_too_large_is_refused(k, message):
    votes, _ = panel(cs.Classes(2), [0.3, 0.5, 0.6], 20, 0)
    with pytest.raises(UnsupportedError, match=message):
        cs.LabelModel(cs.Classes(2)).fit(votes).suggest(votes, k)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_suggested_items_teach_more_about_classes_than_random_ones():
    # 24 draws of 300 items, 50 known labels, scored on 3000 fresh items: two other streams gave -3.2% and -1.9% with
    # standard errors of 0.9%, so the mean is positive by chance about once in 300.
    space, difference = cs.Classes(3), []
    for seed in range(24):
        votes, truth = panel(space, np.linspace(0.25, 0.85, 6), 300, 7000 + seed)
        fresh, fresh_truth = panel(space, np.linspace(0.25, 0.85, 6), 3000, 17000 + seed)
        chosen = cs.LabelModel(space).fit(votes).suggest(votes, 50, "learn").items
        drawn = np.random.default_rng(seed).choice(300, 50, replace=False)
        wrong = []
        for items in (chosen, drawn):
            known = np.isin(np.arange(300), items)
            wrong.append((cs.LabelModel(space).fit(votes, gold=(truth, known)).predict(fresh) != fresh_truth).mean())
        difference.append(wrong[0] - wrong[1])
    assert np.mean(difference) < 0


RNG = np.random.default_rng(0)
TRUTH = RNG.normal(3.0, 1.0, 400)
VOTES = TRUTH[:, None] + RNG.normal(size=(400, 4)) * [0.3, 0.5, 0.8, 1.0]


def test_intervals_of_scores_hold_the_truth_as_often_as_they_say():
    model = cs.LabelModel(cs.Scores(mean=3.0, variance=1.0)).fit(VOTES)
    found = model.predict_distribution(VOTES)
    np.testing.assert_array_equal(found.mean, model.predict(VOTES))
    for level in (0.5, 0.95):
        lower, upper = found.interval(level)
        # 400 items: five standard errors of the share, a false alarm in a million
        spread = 5 * np.sqrt(level * (1 - level) / 400)
        assert ((lower <= TRUTH) & (upper >= TRUTH)).mean() == pytest.approx(level, abs=spread)


def test_items_without_votes_may_lie_anywhere_and_means_are_those_before_rounding_and_clipping():
    votes = np.vstack([VOTES, np.full((1, 4), np.nan)])
    found = cs.LabelModel(cs.Scores()).fit(VOTES).predict_distribution(votes)
    assert np.isnan(found.mean[-1])
    assert found.standard_deviation[-1] == np.inf
    lower, upper = found.interval()
    assert (lower[-1], upper[-1]) == (-np.inf, np.inf)
    assert np.isfinite(lower[:-1]).all()
    whole = cs.LabelModel(cs.Scores(range=(2, 4), integer=True)).fit(VOTES)
    plain = cs.LabelModel(cs.Scores(range=(2, 4), clip=False)).fit(VOTES)
    assert set(whole.predict(VOTES)) <= {2.0, 3.0, 4.0}
    np.testing.assert_allclose(whole.predict_distribution(VOTES).mean, plain.predict(VOTES))


def test_finite_label_types_have_probabilities_and_others_say_what_to_use():
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    found = model.predict_distribution(votes)
    np.testing.assert_array_equal(found.probabilities, model.predict_proba(votes))
    assert found.mean is None
    with pytest.raises(UnsupportedError, match="probabilities, not intervals"):
        found.interval()
    rankings = np.array([[[0, 1, 2]] * 3] * 20)
    with pytest.raises(UnsupportedError, match=r"posterior\(votes\)"):
        cs.LabelModel(cs.Rankings(3), method="majority").fit(rankings).predict_distribution(rankings)
    for level in (0.0, 1.0, 95):
        with pytest.raises(UnsupportedError, match="not a probability"):
            Distribution(np.zeros(1), np.ones(1)).interval(level)
