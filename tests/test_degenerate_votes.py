"""Votes from which little or nothing can be learned: a defined result and a finding, never NaN, for every method."""

from functools import cache

import numpy as np
import pytest
from simulated import codes
from spaces import SPACES

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from fuzzing.targets import check_model

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
ROWS, SOURCES = 30, ("ann", "bob", "cleo", "dan", "eve")
KINDS = (
    *("two classes", "ordinal", "words", "numbers, scaled to coordinates", "rankings of any length", "preferences"),
    *("scores", "vectors", "tags", "BIO chains", "trees with relations", "hyperbolic plane", "covariance matrices"),
    *("boxes with classes", "texts", "records of a score and a class"),
)
#: Where every method is tried; elsewhere "auto" alone, as the others do nothing new there.
ALL_METHODS = ("one source", "identical sources", "all abstain", "one vote per item")


@cache
def drawn(kind):
    """Return the votes of five sources of half the chance cost, and the truth."""
    space, rng = SPACES[kind], np.random.default_rng(3)
    truth = space.as_labels(space.random(ROWS, rng))
    half = space.law.weight_from_cost(space.law.expected_cost(np.zeros(1)) / 2.0)
    return cs.simulate(space, truth, np.repeat(half, 5), rng, sources=SOURCES), truth


def only(cells):
    """Return a situation in which these cells alone hold a vote; they are a function of rows and columns."""

    def situation(votes, truth):
        shown = np.broadcast_to(cells(np.arange(ROWS)[:, None], np.arange(5)), votes.shape)
        return cs.Votes.from_array(votes.labels, observed=shown, sources=SOURCES)

    return situation


def saying(labels):
    return lambda votes, truth: cs.Votes.from_array(labels(votes.labels, truth), sources=SOURCES)


#: What is wrong with the votes, and what a fit by "auto" must say about it.
SITUATIONS = {
    "one source": (lambda votes, truth: votes.select(["ann"]), {"too-few-sources"}),
    "two sources": (lambda votes, truth: votes.select(["ann", "bob"]), {"too-few-sources"}),
    "one item": (lambda votes, truth: votes[:1], {"low-overlap"}),
    "identical sources": (saying(lambda labels, truth: labels[:, [2] * 5]), set()),
    "one label only": (saying(lambda labels, truth: labels[[0] * ROWS][:, [0] * 5]), set()),
    "all abstain": (only(lambda row, column: row + column < 0), {"never-votes", "too-few-sources"}),
    "one never votes": (only(lambda row, column: column != 2), {"never-votes"}),
    "one vote per item": (only(lambda row, column: column == row % 5), {"low-overlap"}),
    "a single vote": (only(lambda row, column: (row == 3) & (column == 1)), {"never-votes", "too-few-sources"}),
    "all perfect": (saying(lambda labels, truth: np.stack([truth] * 5, axis=1)), set()),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_gives_finite_numbers_and_labels_and_the_trouble_is_named(kind, situation):
    space, (votes, truth) = SPACES[kind], drawn(kind)
    change, expected = SITUATIONS[situation]
    table = change(votes, truth)
    for method in space.law.methods if situation in ALL_METHODS else ("auto",):
        gold = None
        if method == "labelled":
            gold = [label if row % 3 == 0 else None for row, label in enumerate(truth[: len(table)])]
        model = cs.LabelModel(space, method=method).fit(table, gold)
        check_model(model, table)
        assert np.isfinite(model.expected_cost_).all(), method
        assert not np.isnan(model.standard_error_).any(), method  # infinite where nothing is known
        assert np.isfinite(model.source_model_.correlation).all(), method
        silent = ~table.observed.any(axis=0)
        if method == "auto":
            expected = expected if space.law.needs_overlap else expected - {"low-overlap"}
            assert codes(model) >= expected
        if silent.any():
            named = [finding.sources for finding in model.diagnostics_ if finding.code == "never-votes"]
            assert named[:1] == [tuple(np.array(table.sources)[silent])], method


LISTED = ["two classes", "ordinal", "words"]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", LISTED)
def test_unanimous_votes_are_never_overruled_and_silent_sources_change_nothing(kind, situation):
    space, (votes, truth) = SPACES[kind], drawn(kind)
    table = SITUATIONS[situation][0](votes, truth)
    model = cs.LabelModel(space).fit(table)
    found = model.predict(table)
    for row, shown in enumerate(table.observed):
        said = set(table.labels[row, shown].tolist())
        assert len(said) != 1 or found[row] in said
    if situation == "one never votes":
        without = cs.LabelModel(space).fit(table.select(["ann", "bob", "dan", "eve"]))
        assert np.mean(found == without.predict(table.select(["ann", "bob", "dan", "eve"]))) > 0.95
        others = np.delete(model.weight_, 2)
        assert 0.95 * others.min() <= model.weight_[2] <= 1.05 * others.max()
    if situation == "two sources":
        assert model.weight_[0] == pytest.approx(model.weight_[1], rel=0.2)
    if situation == "one label only":
        assert (model.weight_ > 0).all()
        assert "adversarial-source" not in codes(model)


def test_votes_at_random_have_no_signal_and_constant_sources_are_told_from_functions_for_one_class():
    rng = np.random.default_rng(0)
    noise = fit_classes(rng.integers(2, size=(300, 5)).astype(float))
    assert "no-signal" in codes(noise)
    # Four judges and one labeling function that finds a quarter of class 1: where it votes it is right.
    truth = rng.integers(2, size=(400, 1))
    votes = np.where(rng.random((400, 5)) < 0.8, truth, 1 - truth).astype(float)
    votes[:, 4] = np.where((truth[:, 0] == 1) & (rng.random(400) < 0.25), 1.0, np.nan)
    assert "constant-source" not in codes(fit_classes(votes))
    votes[:, 4] = 1.0
    assert "constant-source" in codes(fit_classes(votes))


def fit_classes(votes):
    return cs.LabelModel(cs.Classes(2)).fit(votes)


def test_one_warning_per_fit_names_every_serious_finding():
    votes = np.random.default_rng(0).integers(2, size=(60, 5)).astype(float)
    votes[:, 2:] = np.nan
    with pytest.warns(ConsilienceWarning) as caught:
        cs.LabelModel(cs.Classes(2)).fit(votes)
    [warning] = caught
    assert "too-few-sources" in str(warning.message)
    assert "Only 2 sources voted" in str(warning.message)
    assert warning.filename == __file__
