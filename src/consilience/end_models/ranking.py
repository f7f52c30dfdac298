"""Models that rank the items of a set by their features, learned from rankings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.end_models.extras import needed
from consilience.end_models.inputs import read_weights
from consilience.end_models.item_sets import ItemSets, read_positions, read_sets
from consilience.exceptions import InvalidInputError, NotFittedError
from consilience.settings import Configurable

__all__ = ["LambdaRanker", "RankingModel"]

#: Relevance grades of LightGBM end here.
GRADES = 31


class RankingModel(Configurable, ABC):
    """A score per item, learned so that better items get larger scores."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rankings of item sets.

        Parameters
        ----------
        X : array of shape (n_sets, r, k), or one array of shape (r, k) per set
            Features of the items.
        y : array of shape (n_sets, r), or one array of positions per set
            As a model of `Rankings` predicts them: 0 is best, equal positions are tied, -1 is not ranked. None, or -1
            throughout, is no ranking, and the set is left out.
        sample_weight : array of shape (n_sets,), optional
            How much each set counts, such as ``label_model.confidence(votes)``.
        """
        sets = read_sets(X)
        positions = read_positions(y, sets)
        weights = read_weights(sample_weight, len(sets))
        ranked = np.bincount(sets.owner, weights=positions >= 0, minlength=len(sets)) >= 2
        counted = ranked & (weights > 0)
        if not counted.any():
            raise InvalidInputError("No set has two ranked items and a weight above zero. Pass some that do.")
        rows = counted[sets.owner] & (positions >= 0)
        sizes = np.bincount(sets.owner[rows], minlength=len(sets))[counted]
        kept = ItemSets(sets.features[rows], sizes.astype(np.int64), even=False)
        # Weights of mean one, so that the rate of learning does not depend on their unit.
        self._learn(kept, positions[rows], weights[counted] / weights[counted].mean())
        self.n_features_in_ = sets.features.shape[1]
        return self

    def score_items(self, X: Any) -> Batch:
        """Return one score per item, larger is better, in the shape of the sets."""
        sets = self._sets(X)
        return sets.split(self._scores(sets.features))

    def predict(self, X: Any) -> Batch:
        """Return the positions of the items of each set, 0 best; items of the same score are tied."""
        sets = self._sets(X)
        scores, owner = self._scores(sets.features), sets.owner
        order = np.lexsort((-scores, owner))
        first = np.r_[True, owner[order][1:] != owner[order][:-1]]
        lower = np.r_[False, scores[order][1:] < scores[order][:-1]] & ~first
        steps = np.cumsum(lower)
        positions = np.empty(len(scores), dtype=np.int64)
        positions[order] = steps - steps[first][owner[order]]
        return sets.split(positions)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of pairs in the right order, averaged over the sets; a tie is half right.

        Pairs that `y` does not order are not counted; this is 1 - Kendall error.
        """
        sets = self._sets(X)
        scores, positions = self._scores(sets.features), read_positions(y, sets)
        weights = read_weights(sample_weight, len(sets))
        right, total = np.zeros(len(sets)), np.zeros(len(sets))
        for index, (start, size) in enumerate(zip(sets.starts, sets.sizes, strict=True)):
            known = positions[start : start + size]
            said = scores[start : start + size]
            better = (known[:, None] < known[None, :]) & (known[:, None] >= 0)
            agreement = np.sign(said[:, None] - said[None, :])
            total[index] = better.sum()
            right[index] = ((1.0 + agreement) / 2.0)[better].sum()
        weights = np.where(total > 0, weights, 0.0)
        if not weights.sum() > 0:
            raise InvalidInputError("No ranking of y orders two items with a weight above zero. Pass some that do.")
        return float(weights @ (right / np.maximum(total, 1.0)) / weights.sum())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _sets(self, X: Any) -> ItemSets:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(X, y) first.")
        return read_sets(X, self.n_features_in_)

    @abstractmethod
    def _learn(self, sets: ItemSets, positions: IntArray, weights: FloatArray) -> None:
        """Fit to sets of at least two ranked items each."""

    @abstractmethod
    def _scores(self, features: FloatArray) -> FloatArray:
        """Return one finite score per row."""


class LambdaRanker(RankingModel):
    """Boosted trees that rank, by LightGBM's lambdarank objective.

    Parameters
    ----------
    n_estimators, learning_rate, num_leaves, min_child_samples
        As in LightGBM.
    n_jobs
        Threads; 1 by default, so that the same seed gives the same model.
    random_state
        Seed.
    settings
        Further settings of ``lightgbm.LGBMRanker`` by name, such as ``{"subsample": 0.5, "subsample_freq": 1}``.

    Notes
    -----
    The relevance of an item is the number of distinct places below its own, up to 30; gains grow with it by the same
    step, so that every swap of neighbours counts the same, as in Kendall's distance. ``settings={"label_gain": ...}``
    puts other gains.
    """

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        n_jobs: int = 1,
        random_state: int | None = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.settings = settings

    def _learn(self, sets: ItemSets, positions: IntArray, weights: FloatArray) -> None:
        lightgbm = needed("lightgbm", "models", "LambdaRanker")
        chosen = {name: value for name, value in self.get_params().items() if name != "settings"}
        chosen |= {"label_gain": list(range(GRADES)), "verbosity": -1, "deterministic": True}
        model = lightgbm.LGBMRanker(objective="lambdarank", **(chosen | (self.settings or {})))
        grades = _grades(sets, positions)
        model.fit(sets.features, grades, group=sets.sizes, sample_weight=weights[sets.owner])
        self.booster_ = model.booster_

    def _scores(self, features: FloatArray) -> FloatArray:
        return np.asarray(self.booster_.predict(features, num_threads=self.n_jobs), dtype=np.float64)


def _grades(sets: ItemSets, positions: IntArray) -> IntArray:
    """Return for each item how many distinct places of its set lie below its own."""
    grades = np.empty(len(positions), dtype=np.int64)
    for start, size in zip(sets.starts, sets.sizes, strict=True):
        _, place = np.unique(positions[start : start + size], return_inverse=True)
        grades[start : start + size] = place.max() - place
    return np.minimum(grades, GRADES - 1)
