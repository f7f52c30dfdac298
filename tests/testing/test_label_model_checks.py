"""How the label model behaves, for every kind of label; and that the checks notice models that misbehave."""

import numpy as np
import pytest
from spaces import ONE_OF_EACH
from spaces import SPACES as EVERY

import consilience as cs
from consilience.testing import LABEL_MODEL_CHECKS, LabelModelCheckError, check_label_model

#: One of every exported label type, and two further ones.
SPACES = {
    name: one for name, one in EVERY.items() if one in ONE_OF_EACH.values() or name in ("named classes", "chains")
}
SPACES["words"] = cs.Metric(lambda a, b: np.abs(a - b), candidates=np.arange(6.0), vectorized=True)  # as numbers
LONG = {
    "more_items_give_better_qualities",
    "intervals_of_qualities_cover",
    "an_expert_outweighs_the_others",
    "known_labels_do_not_hurt",
    "degenerate_votes_have_labels",
    "copies_gain_no_weight",
    "confidence_is_what_happens",
    "confidence_is_not_too_high_with_copies",
}
#: Demands that are not met yet on one of the five seeds or more.
MISSED = {
    # On seed 1 errors differ by 1.54 to 1, demanded 1.5: slopes of 300 items are known to a tenth.
    ("scores", "alike_sources_are_not_told_apart"),
    # On 84 to 89% of the items on three seeds, and on 88% on one, demanded 95%: experts are taken for copies.
    ("two classes", "an_expert_outweighs_the_others"),
    ("trees", "an_expert_outweighs_the_others"),
    # Labels cost 40 to 50% more than those of the plain vote: whoever is right about one span is so about all of them.
    ("spans", "quality_that_does_not_persist_is_not_used"),
    # Labels cost 10 to 17% more than those of the plain vote, on three seeds.
    ("preferences", "quality_that_does_not_persist_is_not_used"),
    # Errors fall by the power .05 to .23 on four seeds, demanded .35: costs of the best judges are .01 too high.
    ("preferences", "more_items_give_better_qualities"),
}


@pytest.mark.parametrize(
    "check", [one for one in LABEL_MODEL_CHECKS if one.__name__ not in LONG], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("name", ["two classes", "rankings", "scores"])
def test_the_label_model_behaves(name, check):
    if (name, check.__name__) not in MISSED:
        check(cs.LabelModel, SPACES[name], np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("check", LABEL_MODEL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SPACES)
def test_the_label_model_behaves_on_five_seeds(name, check, request):
    if (name, check.__name__) in MISSED:
        request.applymarker(pytest.mark.xfail(raises=AssertionError, reason="this demand is not met yet"))
    failed = {}
    for seed in range(5):
        try:
            check(cs.LabelModel, SPACES[name], np.random.default_rng(seed))
        except LabelModelCheckError as error:
            failed[seed] = str(error)
    assert failed == {}


class FirstSource:
    """Believes whoever stands in the first column."""

    def __init__(self, space):
        self.space = space

    def fit(self, votes):
        return self

    def predict(self, votes):
        return votes.labels[:, 0]


def PlainVote(space):  # noqa: N802
    """Counts every source alike."""
    return cs.LabelModel(space, method="majority")


class Broken(FirstSource):
    def predict(self, votes):
        raise KeyError("source 0")


class AbsoluteUnit(FirstSource):
    """Rounds to whole numbers, whatever the unit of the votes."""

    def predict(self, votes):
        return np.round(votes.labels.mean(axis=1))


class Sure(cs.LabelModel):
    """Says that every label is certain, and that no source has an error."""

    def predict_proba(self, votes):
        certain = super().predict_proba(votes)
        return (certain == certain.max(axis=1, keepdims=True)).astype(float)

    @property
    def cost_standard_error_(self):
        return 0.0 * super().cost_standard_error_


class Backwards(cs.LabelModel):
    """Takes the worst sources for the best."""

    @property
    def expected_cost_(self):
        return -super().expected_cost_

    def confidence(self, votes):
        return 1.0 - super().confidence(votes)


class Unlike(cs.LabelModel):
    """Tells sources apart that are alike, and follows the fourth one on every item with a vote of it."""

    @property
    def expected_cost_(self):
        return super().expected_cost_ * np.linspace(1.0, 2.0, len(super().expected_cost_))

    def predict(self, votes):
        return votes.labels[:, -1]


def _check(name):
    return next(check for check in LABEL_MODEL_CHECKS if check.__name__ == name)


@pytest.mark.parametrize(
    ("model", "name", "space", "message"),
    [
        (Sure, "confidence_is_what_happens", cs.Classes(3), "stated with probability 1.000"),
        (Sure, "confidence_is_not_too_high_with_copies", cs.Classes(3), "with copies, what is stated"),
        pytest.param(
            *(Sure, "intervals_of_qualities_cover", cs.Vectors(1), "hold the truth in 0% of cases"),
            marks=pytest.mark.slow,
        ),
        (Backwards, "source_qualities_are_recovered", cs.Vectors(1), "rank correlation of -"),
        (Backwards, "the_model_agrees_with_the_votes", cs.Vectors(1), "correlate by -"),
        (Backwards, "disputed_items_are_less_certain", cs.Classes(3), "from the most certain third to the least"),
        (Unlike, "alike_sources_are_not_told_apart", cs.Classes(3), "sources of one quality"),
        (Unlike, "quality_that_does_not_persist_is_not_used", cs.Classes(3), "qualities that change by item"),
        (Unlike, "good_votes_are_told_from_bad_ones", cs.Classes(3), "votes are ranked by"),
        (FirstSource, "spam_is_ignored", cs.Classes(3), "three spammers among ten sources"),
        (PlainVote, "copies_gain_no_weight", cs.Rankings(4), "three copies"),
        (AbsoluteUnit, "the_unit_does_not_matter", cs.Vectors(1), "unit of the votes"),
    ],
)
def test_every_rule_finds_a_model_that_breaks_it(model, name, space, message):
    with pytest.raises(LabelModelCheckError, match=message):
        _check(name)(model, space, np.random.default_rng(0))


def test_the_error_says_what_each_check_demands_and_what_was_raised(monkeypatch):
    chosen = tuple(_check(name) for name in ("degenerate_votes_have_labels", "spam_is_ignored"))
    monkeypatch.setattr("consilience.testing.label_model_checks.LABEL_MODEL_CHECKS", chosen)
    with pytest.raises(LabelModelCheckError) as caught:
        check_label_model(Broken, cs.Classes(2))
    told = str(caught.value)
    assert "fails 2 of 2 checks on Classes" in told
    assert "degenerate_votes_have_labels: one vote per item: KeyError: 'source 0'" in told
    assert "spam_is_ignored: KeyError was raised: 'source 0'" in told
    assert "Check that degenerate tables give one label per item, and no NaN for items with votes." in told


def test_a_model_that_follows_one_source_is_found_out_without_further_methods():
    with pytest.raises(LabelModelCheckError) as caught:
        check_label_model(FirstSource, cs.Classes(2))
    for check in ("alike_sources_are_not_told_apart", "spam_is_ignored", "order_and_names_do_not_matter"):
        assert check in str(caught.value)
