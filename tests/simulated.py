"""Simulated votes that several test files share, one set per kind of label space; fits without warnings."""

import warnings
from dataclasses import dataclass

import numpy as np

import consilience as cs

PATH = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


def gap(left, right):
    return np.abs(left - right)


SPACES: dict[str, cs.LabelSpace] = {
    "two classes": cs.Classes(2),
    "three classes": cs.Classes(3),
    "path": cs.FiniteMetric(PATH),
    "metric": cs.Metric(gap, vectorized=True),
    "metric with candidates": cs.Metric(gap, candidates=np.arange(5.0), vectorized=True),
    "metric with mds": cs.Metric(gap, embed="mds", vectorized=True),
}

METHODS = ["auto", "majority", "isotropic", "triplets", "quadratic", "em", "labelled"]

#: Every kind of space with every method it has.
CASES = [(kind, method) for kind, space in SPACES.items() for method in METHODS if method in space.law.methods]


@dataclass(frozen=True)
class Data:
    """Votes of five sources, from weak to strong, and the truth."""

    space: cs.LabelSpace
    votes: cs.Votes
    truth: np.ndarray


def simulated(kind: str, n: int = 400, seed: int = 0, coverage: float = 0.8) -> Data:
    """Return votes in integers, or in floats for metrics."""
    space, rng = SPACES[kind], np.random.default_rng(seed)
    finite = space if space.n_labels is not None else SPACES["path"]
    truth = finite.random(n, rng)
    votes = cs.simulate(
        finite, truth, np.linspace(0.6, 2.0, 5), rng, coverage=coverage, sources=["ann", "bob", "cleo", "dan", "eve"]
    )
    if space.n_labels is None:
        votes = cs.Votes.from_array(
            votes.labels.astype(float), observed=votes.observed, sources=votes.sources, items=votes.items
        )
        truth = truth.astype(float)
    return Data(space, votes, truth)


class GivenWeights:
    """A `SourceEstimator` that is told the weights."""

    def __init__(self, *weight: float) -> None:
        self.weight = np.array(weight, dtype=float)

    def estimate(self, moments, space, dependencies):
        return self.weight


def fitted(space, votes, gold=None, **settings) -> cs.LabelModel:
    """Return a model whose findings are not warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold)


def codes(model: cs.LabelModel) -> set[str]:
    """Return the codes of the findings."""
    return {finding.code for finding in model.diagnostics_}
