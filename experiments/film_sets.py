"""Sets of films to rank: separate films for training and test, the error measure, and the networks of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import consilience as cs

from .tables import FloatArray, IntArray

SET_SIZE = 5
TRAIN_SHARE = 0.75
#: The text has four layers and running statistics; the code three layers, dropout, weight decay, and no statistics.
NETWORKS: dict[str, dict[str, Any]] = {
    "text": {"epochs": 5},
    "code": {"epochs": 5, "hidden": (30, 30), "dropout": 0.01, "weight_decay": 1e-4, "running_statistics": False},
}


@dataclass(frozen=True)
class Errors:
    """Share of pairs in the wrong order: without the pairs tied in the gold, and with their order in the table."""

    skipped: float
    counted: float


@dataclass(frozen=True, eq=False)
class RankedSets:
    """Sets of things by row number, and the score that orders them: larger is better."""

    rows: IntArray
    features: FloatArray
    score: FloatArray

    @property
    def X(self) -> FloatArray:  # noqa: N802
        return self.features[self.rows]

    @property
    def gold(self) -> IntArray:
        """Positions, tied where scores are."""
        return cs.Rankings.positions_from_scores(self.score[self.rows]).astype(np.int64)

    @property
    def strict(self) -> IntArray:
        """Positions without ties, which are broken by the order in the set, as a sort does."""
        order = np.argsort(-self.score[self.rows], axis=1, kind="stable")
        return np.argsort(order, axis=1)

    def errors(self, positions: Any) -> Errors:
        space = cs.Rankings(self.rows.shape[1])
        return Errors(space.kendall_error(positions, self.gold), space.kendall_error(positions, self.strict))

    def votes_by(self, sources: dict[str, FloatArray]) -> cs.Votes:
        """Return how sources rank the sets by their own scores, ties kept."""
        ranked = [cs.Rankings.positions_from_scores(values[self.rows]) for values in sources.values()]
        return cs.Votes.from_array(np.stack(ranked, axis=1).astype(np.int64), sources=list(sources))


def draw_sets(
    features: FloatArray,
    score: FloatArray,
    n_train: int,
    n_test: int,
    rng: np.random.Generator,
    *,
    train_share: float = TRAIN_SHARE,
) -> tuple[RankedSets, RankedSets]:
    """Draw sets for training and for testing; no thing is in both."""
    order = rng.permutation(len(score))
    cut = int(train_share * len(score))
    parts = [
        np.stack([rng.choice(pool, SET_SIZE, replace=False) for _ in range(number)])
        for pool, number in ((order[:cut], n_train), (order[cut:], n_test))
    ]
    return RankedSets(parts[0], features, score), RankedSets(parts[1], features, score)


def ranker(model: str, seed: int, passes: int | None = None) -> Any:
    """Return a network of the paper, by "text" or "code", or boosted "trees"."""
    if model == "trees":
        return cs.end_models.LambdaRanker(random_state=seed)
    chosen = NETWORKS[model] if passes is None else {**NETWORKS[model], "epochs": passes}
    return cs.end_models.ListwiseRanker(**chosen, random_state=seed)


def end_model_errors(
    train: RankedSets, test: RankedSets, labels: Any, seed: int, weights: Any = None, model: str = "text"
) -> Errors:
    """Train on labels of the training sets, and measure on the test sets."""
    fitted = ranker(model, seed).fit(train.X, labels, sample_weight=weights)
    return test.errors(fitted.predict(test.X))


def supervised_errors(train: RankedSets, test: RankedSets, share: float, seed: int, model: str = "text") -> Errors:
    """Train on the gold of a share of the sets, the network of the text for twice as many passes, and measure."""
    known = max(2, round(share * len(train.rows)))
    passes = 2 * NETWORKS[model]["epochs"] if model == "text" and share < 1.0 else None
    fitted = ranker(model, seed, passes).fit(train.X[:known], train.gold[:known])
    return test.errors(fitted.predict(test.X))
