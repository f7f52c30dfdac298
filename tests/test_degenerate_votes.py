"""Votes from which little or nothing can be learned: a defined result and a finding, never NaN, for every method."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from simulated import CASES, SPACES, simulated

import consilience as cs
from consilience.exceptions import ConsilienceWarning

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
nan = float("nan")
Situation = Callable[[str], tuple[np.ndarray, np.ndarray]]


def changed(change: Callable[..., np.ndarray] | None = None, rows: int = 60, columns: int = 5) -> Situation:
    """Return a function of the kind of space that makes votes of 5 sources in floats, changed, and the truth."""

    def situation(kind: str) -> tuple[np.ndarray, np.ndarray]:
        data = simulated(kind, n=60, coverage=1.0)
        votes, truth = data.votes.labels.astype(float), data.truth.astype(float)
        votes = votes if change is None else change(votes, truth)
        return votes[:rows, :columns], truth[:rows]

    return situation


def only(votes: np.ndarray, rows: np.ndarray | int, columns: np.ndarray | int) -> np.ndarray:
    """Return votes of which only these cells are left."""
    left = np.full_like(votes, nan)
    left[rows, columns] = votes[rows, columns]
    return left


def with_source(votes: np.ndarray, value: float) -> np.ndarray:
    """Return votes in which the third source always says the same."""
    votes[:, 2] = value
    return votes


def one_never_votes(kind: str) -> tuple[np.ndarray, np.ndarray]:
    return changed(lambda votes, _: with_source(votes, nan))(kind)


def one_label(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = changed()(kind)
    return np.ones_like(votes), np.ones_like(truth)


#: What is wrong with the votes, and what a fit by "auto" must say about it (as far as the space can tell).
SITUATIONS: dict[str, tuple[Situation, set[str]]] = {
    "one source": (changed(columns=1), {"too-few-sources"}),
    "two sources": (changed(columns=2), {"too-few-sources"}),
    "three sources": (changed(columns=3), set()),
    "one item": (changed(rows=1), {"low-overlap"}),
    "two items": (changed(rows=2), {"low-overlap"}),
    "three items": (changed(rows=3), {"low-overlap"}),
    "identical sources": (changed(lambda votes, _: np.repeat(votes[:, 2:3], 5, axis=1)), set()),
    "one label only": (one_label, {"constant-source"}),
    "all abstain": (
        changed(lambda votes, _: np.full_like(votes, nan)),
        {"never-votes", "items-without-votes", "too-few-sources"},
    ),
    "one never votes": (one_never_votes, {"never-votes"}),
    "one is constant": (changed(lambda votes, _: with_source(votes, 1.0)), {"constant-source"}),
    "one vote per item": (changed(lambda votes, _: only(votes, np.arange(60), np.arange(60) % 5)), {"low-overlap"}),
    "a single vote": (changed(lambda votes, _: only(votes, 3, 1)), {"never-votes", "too-few-sources"}),
    "all perfect": (changed(lambda _, truth: np.repeat(truth[:, None], 5, axis=1)), set()),
    "at random": (
        changed(lambda votes, _: np.random.default_rng(5).integers(2, size=votes.shape).astype(float)),
        {"no-signal"},
    ),
}


@cache
def fit(kind: str, method: str, situation: str) -> tuple[cs.LabelModel, np.ndarray]:
    """Return the model of a situation, fitted once for all tests, and the votes."""
    votes, truth = SITUATIONS[situation][0](kind)
    gold = truth if method == "labelled" else None
    return cs.LabelModel(SPACES[kind], method=method).fit(votes, gold), votes


def codes(model: cs.LabelModel) -> set[str]:
    return {finding.code for finding in model.diagnostics_}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_nothing_learned_or_predicted_is_nan(kind, method, situation):
    model, votes = fit(kind, method, situation)
    assert np.isfinite(model.weight_).all()
    assert np.isfinite(model.expected_cost_).all()
    assert not np.isnan(model.standard_error_).any()  # infinite where nothing is known
    assert np.isfinite(model.source_model_.correlation).all()
    confidence = model.confidence(votes)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    missing = np.isnan(votes).all(axis=1)
    labels = model.predict(votes).astype(float)
    assert np.array_equal((labels == -1) | np.isnan(labels), missing)
    if model.space.n_labels:
        assert np.allclose(model.predict_proba(votes).sum(axis=1), 1.0)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", SPACES)
def test_auto_says_what_is_wrong_and_never_overrules_unanimous_votes(kind, situation):
    model, votes = fit(kind, "auto", situation)
    # A source of a metric scatters little or much; that it is constant shows only where labels are listed.
    expected = SITUATIONS[situation][1] - ({"constant-source"} if kind.startswith("metric") else set())
    assert codes(model) >= expected
    low, high = np.nanmin(votes, axis=1, initial=9.0, where=~np.isnan(votes)), np.nanmax(votes, axis=1, initial=-9.0)
    agreed = (low == high) & (np.isfinite(votes).sum(axis=1) > 0)
    assert np.array_equal(model.predict(votes)[agreed].astype(float), low[agreed])


@pytest.mark.parametrize("situation", ["one never votes", "all abstain"])
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_source_that_never_votes_has_an_infinite_error_and_a_weight_within_the_others(kind, method, situation):
    model, votes = fit(kind, method, situation)
    silent = np.isnan(votes).all(axis=0)
    assert np.isinf(model.standard_error_[silent]).all()
    named = [finding.sources for finding in model.diagnostics_ if finding.code == "never-votes"]
    assert named == [tuple(np.array(model.source_model_.sources)[silent])]
    if situation == "one never votes" and method != "labelled":
        others = np.delete(model.weight_, 2)
        assert 0.95 * others.min() <= model.weight_[2] <= 1.05 * others.max()


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_source_that_never_votes_changes_nothing_for_the_others(kind, method):
    model, votes = fit(kind, method, "one never votes")
    some = np.delete(votes, 2, axis=1)
    gold = one_never_votes(kind)[1] if method == "labelled" else None
    without = cs.LabelModel(SPACES[kind], method=method).fit(some, gold)
    if not kind.startswith("metric"):  # there the unit of weight rests on references, drawn by position
        assert np.allclose(np.delete(model.weight_, 2), without.weight_, atol=0.1)
    assert (model.predict(votes) == without.predict(some)).mean() > 0.95


@pytest.mark.parametrize("kind", SPACES)
def test_two_sources_get_equal_weights_and_unanimous_ones_do_not_count_as_worse_than_chance(kind):
    model, _ = fit(kind, "auto", "two sources")
    assert model.weight_[0] == pytest.approx(model.weight_[1], rel=0.2)
    unanimous, _ = fit(kind, "auto", "one label only")
    assert (unanimous.weight_ > 0).all()
    assert "adversarial-source" not in codes(unanimous)


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_one_or_two_sources_are_too_few_a_single_one_is_believed_and_identical_ones_weigh_the_same(kind, method):
    assert "too-few-sources" in codes(fit(kind, method, "two sources")[0])
    model, votes = fit(kind, method, "one source")
    assert "too-few-sources" in codes(model)
    if method != "quadratic":
        assert np.array_equal(model.predict(votes).astype(float), votes[:, 0])
    if method != "labelled":
        model, votes = fit(kind, method, "identical sources")
        assert np.ptp(model.weight_) <= 0.4 * np.abs(model.weight_).max()
        assert np.array_equal(model.predict(votes).astype(float), votes[:, 0])


def test_labeling_function_for_one_class_is_not_called_constant():
    # Four judges and one labeling function that finds a quarter of class 1: where it votes it is right.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(400, 1))
    votes = np.where(rng.random((400, 5)) < 0.8, truth, 1 - truth).astype(float)
    votes[:, 4] = np.where((truth[:, 0] == 1) & (rng.random(400) < 0.25), 1.0, nan)
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    assert "constant-source" not in {item.code for item in model.diagnostics_}


def test_one_warning_per_fit_names_every_serious_finding():
    votes, _ = one_never_votes("two classes")
    votes[:, 4] = nan
    votes[:, 3] = nan
    with pytest.warns(ConsilienceWarning) as caught:
        cs.LabelModel(cs.Classes(2)).fit(votes)
    [warning] = caught
    assert "too-few-sources" in str(warning.message)
    assert "Only 2 sources voted" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("space", [cs.Rankings(3), cs.Rankings(["tea", "milk", "juice"])], ids=["numbers", "names"])
def test_rankings_by_nobody_have_as_many_places_as_items(space):
    nobody = [[None] * 4] * 5
    with pytest.warns(ConsilienceWarning):
        model = cs.LabelModel(space).fit(nobody)
    assert model.explain(nobody, 0).confidence == 0.0
    plain = model.posterior(nobody).labels
    assert [label if label is None else len(label) for label in plain] in ([3] * 5, [None] * 5)
