"""Votes from which little or nothing can be learned: a defined result and a finding, never NaN, for every method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulated import CASES, SPACES, simulated

import consilience as cs
from consilience.exceptions import ConsilienceWarning

nan = float("nan")


def regular(kind: str, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of 5 sources in floats, and the truth."""
    data = simulated(kind, n=n, coverage=1.0)
    return data.votes.labels.astype(float), data.truth.astype(float)


def identical(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    return np.repeat(votes[:, 2:3], 5, axis=1), truth


def one_label(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    return np.ones_like(votes), np.ones_like(truth)


def all_abstain(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    return np.full_like(votes, nan), truth


def one_never_votes(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    votes[:, 2] = nan
    return votes, truth


def one_is_constant(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    votes[:, 2] = 1.0
    return votes, truth


def one_vote_per_item(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    alone = np.full_like(votes, nan)
    rows = np.arange(len(votes))
    alone[rows, rows % 5] = votes[rows, rows % 5]
    return alone, truth


def a_single_vote(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    single = np.full_like(votes, nan)
    single[3, 1] = votes[3, 1]
    return single, truth


def all_perfect(kind: str) -> tuple[np.ndarray, np.ndarray]:
    _, truth = regular(kind)
    return np.repeat(truth[:, None], 5, axis=1), truth


def at_random(kind: str) -> tuple[np.ndarray, np.ndarray]:
    votes, truth = regular(kind)
    return np.random.default_rng(5).integers(2, size=votes.shape).astype(float), truth


def sources(count: int) -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    def few_sources(kind: str) -> tuple[np.ndarray, np.ndarray]:
        votes, truth = regular(kind)
        return votes[:, :count], truth

    return few_sources


def items(count: int) -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    def few_items(kind: str) -> tuple[np.ndarray, np.ndarray]:
        votes, truth = regular(kind)
        return votes[:count], truth[:count]

    return few_items


#: What is wrong with the votes, and what a fit by "auto" must say about it (as far as the space can tell).
SITUATIONS: dict[str, tuple[Callable[[str], tuple[np.ndarray, np.ndarray]], set[str]]] = {
    "one source": (sources(1), {"too-few-sources"}),
    "two sources": (sources(2), {"too-few-sources"}),
    "three sources": (sources(3), set()),
    "one item": (items(1), {"low-overlap"}),
    "two items": (items(2), {"low-overlap"}),
    "three items": (items(3), {"low-overlap"}),
    "identical sources": (identical, set()),
    "one label only": (one_label, {"constant-source"}),
    "all abstain": (all_abstain, {"never-votes", "items-without-votes", "too-few-sources"}),
    "one never votes": (one_never_votes, {"never-votes"}),
    "one is constant": (one_is_constant, {"constant-source"}),
    "one vote per item": (one_vote_per_item, {"low-overlap"}),
    "a single vote": (a_single_vote, {"never-votes", "too-few-sources"}),
    "all perfect": (all_perfect, set()),
    "at random": (at_random, {"no-signal"}),
}


def fit(kind: str, method: str, situation: str) -> tuple[cs.LabelModel, np.ndarray]:
    votes, truth = SITUATIONS[situation][0](kind)
    gold = truth if method == "labelled" else None
    return cs.LabelModel(SPACES[kind], method=method).fit(votes, gold), votes


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
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


@pytest.mark.parametrize("situation", [name for name, (_, codes) in SITUATIONS.items() if codes])
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_auto_says_what_is_wrong(kind, situation):
    model, _ = fit(kind, "auto", situation)
    # A source of a metric scatters little or much; that it is constant shows only where labels are listed.
    expected = SITUATIONS[situation][1] - ({"constant-source"} if kind.startswith("metric") else set())
    assert {item.code for item in model.diagnostics_} >= expected


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_unanimous_votes_are_never_overruled(kind, situation):
    model, votes = fit(kind, "auto", situation)
    low, high = np.nanmin(votes, axis=1, initial=9.0, where=~np.isnan(votes)), np.nanmax(votes, axis=1, initial=-9.0)
    agreed = (low == high) & (np.isfinite(votes).sum(axis=1) > 0)
    assert np.array_equal(model.predict(votes)[agreed].astype(float), low[agreed])


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("situation", ["one never votes", "all abstain"])
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_source_that_never_votes_has_an_infinite_standard_error(kind, method, situation):
    model, votes = fit(kind, method, situation)
    silent = np.isnan(votes).all(axis=0)
    assert np.isinf(model.standard_error_[silent]).all()
    assert [item.sources for item in model.diagnostics_ if item.code == "never-votes"] == [
        tuple(np.array(model.source_model_.sources)[silent])
    ]


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(("kind", "method"), [case for case in CASES if case[1] != "labelled"])
def test_source_that_never_votes_has_a_weight_within_those_of_the_others(kind, method):
    model, _ = fit(kind, method, "one never votes")
    others = np.delete(model.weight_, 2)
    assert 0.95 * others.min() <= model.weight_[2] <= 1.05 * others.max()


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_source_that_never_votes_changes_nothing_for_the_others(kind, method):
    votes, truth = one_never_votes(kind)
    gold = truth if method == "labelled" else None
    some = np.delete(votes, 2, axis=1)
    model = cs.LabelModel(SPACES[kind], method=method).fit(votes, gold)
    without = cs.LabelModel(SPACES[kind], method=method).fit(some, gold)
    if not kind.startswith("metric"):  # there the unit of weight rests on references, drawn by position
        assert np.allclose(np.delete(model.weight_, 2), without.weight_, atol=0.1)
    assert (model.predict(votes) == without.predict(some)).mean() > 0.95


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("kind", SPACES)
def test_two_sources_get_equal_weights(kind):
    model, _ = fit(kind, "auto", "two sources")
    assert model.weight_[0] == pytest.approx(model.weight_[1], rel=0.2)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("situation", ["one source", "two sources"])
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_every_method_says_that_one_or_two_sources_are_too_few(kind, method, situation):
    model, _ = fit(kind, method, situation)
    assert "too-few-sources" in {item.code for item in model.diagnostics_}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(("kind", "method"), [case for case in CASES if case[1] != "quadratic"])
def test_single_source_is_simply_believed(kind, method):
    model, votes = fit(kind, method, "one source")
    assert np.array_equal(model.predict(votes).astype(float), votes[:, 0])


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(("kind", "method"), [case for case in CASES if case[1] != "labelled"])
def test_identical_sources_get_equal_weights(kind, method):
    model, votes = fit(kind, method, "identical sources")
    assert np.ptp(model.weight_) <= 0.4 * np.abs(model.weight_).max()
    assert np.array_equal(model.predict(votes).astype(float), votes[:, 0])


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("kind", SPACES)
def test_unanimous_sources_do_not_count_as_worse_than_chance(kind):
    model, _ = fit(kind, "auto", "one label only")
    assert (model.weight_ > 0).all()
    assert "adversarial-source" not in {item.code for item in model.diagnostics_}


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
