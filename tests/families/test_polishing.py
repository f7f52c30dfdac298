"""Likelihoods on a sample of the items: when that is enough, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs

SPACES = {
    "gibbs": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))),
    "mallows": cs.Rankings(4),
}


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr("consilience.estimation.passes.SAMPLE_ITEMS", 500)
    return monkeypatch


def fitted(name):
    space = SPACES[name]
    rng = np.random.default_rng(0)
    votes = cs.simulate(space, space.random(3000, rng), [0.5, 0.7, 0.9, 0.6], rng)
    model = cs.LabelModel(space).fit(votes)
    return model, next(item.message for item in model.diagnostics_ if item.code == "polished-on-sample")


@pytest.mark.parametrize("name", SPACES)
def test_all_items_are_used_where_the_sample_is_imprecise(name, small_sample):
    model, message = fitted(name)
    assert "all 3,000 items after a start on" in message
    # standard errors of 3000 items are about .02
    assert model.weight_ == pytest.approx([0.5, 0.7, 0.9, 0.6], abs=0.12)


@pytest.mark.parametrize("name", SPACES)
def test_a_precise_sample_is_enough(name, small_sample):
    small_sample.setattr(f"consilience.families.{name}_likelihood.PRECISE", 1.0)
    model, message = fitted(name)
    assert "a seeded sample of" in message
    # standard errors of 500 items are about .05
    assert model.weight_ == pytest.approx([0.5, 0.7, 0.9, 0.6], abs=0.3)
