"""Why an item got its label."""

import numpy as np
import pytest
from simulated import GivenWeights

import consilience as cs
from consilience.exceptions import InvalidVotesError


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
