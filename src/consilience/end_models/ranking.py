"""Models that rank the items of a set by their features, learned from rankings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.end_models.inputs import EndModel, as_numbers, needed, read_weights
from consilience.exceptions import InvalidInputError

__all__ = ["ItemSets", "LambdaRanker", "RankingModel"]

#: Relevance grades of LightGBM end here.
GRADES = 31


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Features of the items of many sets, one set below the other.

    Attributes
    ----------
    features : array of shape (n_items, k)
    sizes : array of shape (n_sets,)
        Number of items of each set.
    even : bool
        Whether the sets were given as one array, so that results are one array too.
    """

    features: FloatArray
    sizes: IntArray
    even: bool

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def owner(self) -> IntArray:
        """The set that each row belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def starts(self) -> IntArray:
        """First row of each set."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def split(self, values: Batch) -> Batch:
        """Return one value per item as ``(n_sets, r)``, or as an object array of one array per set."""
        if self.even:
            return values.reshape(len(self.sizes), -1)
        return as_object_array(self.parts(values))

    def parts(self, values: Batch) -> list[Batch]:
        """Return the values of each set."""
        return np.split(values, self.starts[1:])


def _read_sets(X: Any, n_features: int | None = None) -> ItemSets:
    """Read an array ``(n_sets, r, k)``, or one array ``(r, k)`` per set."""
    even = isinstance(X, np.ndarray) and X.dtype != object
    remedy = "Pass an array (n_sets, n_items, n_features), or a list with one array (n_items, n_features) per set."
    parts = [as_numbers(part, "X", remedy) for part in X]
    if not parts:
        raise InvalidInputError("X holds no set. Pass at least one.")
    expected = n_features if n_features is not None else (parts[0].shape[1] if parts[0].ndim == 2 else None)
    for index, part in enumerate(parts):
        if part.ndim != 2 or part.shape[0] == 0 or part.shape[1] != expected or expected == 0:
            columns = "n_features" if expected is None else expected
            raise InvalidInputError(
                f"Set {index} of X has shape {part.shape}; expected (n_items, {columns}) with at least one item."
            )
    features = np.concatenate(parts)
    sets = ItemSets(features, np.array([len(part) for part in parts], dtype=np.int64), even)
    for row, column in np.argwhere(~np.isfinite(features))[:1].tolist():
        owner = sets.owner[row]
        raise InvalidInputError(
            f"X is {features[row, column]} in set {owner}, item {row - sets.starts[owner]}, feature {column}. "
            "Fill it in, or leave the set out."
        )
    return sets


def _read_positions(y: Any, sets: ItemSets) -> IntArray:
    """Return one position per row of the sets, 0 best, -1 where an item is not ranked.

    A row of `y` may be longer than its set where the rest is negative, and None where nobody ranked the set.
    """
    rows = y.to_numpy() if hasattr(y, "to_numpy") else y
    if len(rows) != len(sets):
        raise InvalidInputError(f"X has {len(sets)} sets and y {len(rows)} rankings. Pass one ranking per set.")
    found = [_row(row, int(size), index) for index, (row, size) in enumerate(zip(rows, sets.sizes, strict=True))]
    positions = np.concatenate(found)
    if not (positions >= 0).any():
        raise InvalidInputError("y ranks no item: all positions are missing. Pass some rankings that are known.")
    return positions


def _row(row: Any, size: int, index: int) -> IntArray:
    if is_null(row):
        return np.full(size, -1, dtype=np.int64)
    try:
        given = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    given = np.where(np.isnan(given), -1.0, given)
    if given.ndim != 1 or len(given) < size or (given[size:] >= 0).any() or (given != np.round(given)).any():
        shown = row if isinstance(row, str) else np.ravel(np.asarray(row, dtype=object)).tolist()
        raise InvalidInputError(
            f"Row {index} of y is {shown}; expected {size} positions, one per item of the set: 0 is best, equal "
            "ones are tied, -1 is not ranked."
        )
    return np.maximum(given[:size], -1.0).astype(np.int64)


class RankingModel(EndModel, ABC):
    """A score per item, learned so that better items get larger scores."""

    learned = "n_features_in_"

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
        sets = _read_sets(X)
        positions = _read_positions(y, sets)
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
        scores, positions = self._scores(sets.features), _read_positions(y, sets)
        weights = read_weights(sample_weight, len(sets))
        right, total = np.zeros(len(sets)), np.zeros(len(sets))
        for index, (known, said) in enumerate(zip(sets.parts(positions), sets.parts(scores), strict=True)):
            better = (known[:, None] < known[None, :]) & (known[:, None] >= 0)
            agreement = np.sign(said[:, None] - said[None, :])
            total[index] = better.sum()
            right[index] = ((1.0 + agreement) / 2.0)[better].sum()
        weights = np.where(total > 0, weights, 0.0)
        if not weights.sum() > 0:
            raise InvalidInputError("No ranking of y orders two items with a weight above zero. Pass some that do.")
        return float(weights @ (right / np.maximum(total, 1.0)) / weights.sum())

    def _sets(self, X: Any) -> ItemSets:
        self._require_fitted()
        return _read_sets(X, self.n_features_in_)

    @abstractmethod
    def _learn(self, sets: ItemSets, positions: IntArray, weights: FloatArray) -> None:
        """Fit to sets of at least two ranked items each."""

    @abstractmethod
    def _scores(self, features: FloatArray) -> FloatArray:
        """Return one finite score per row."""


@dataclass(repr=False, eq=False)
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
    step, so that every swap of neighbors counts the same, as in Kendall's distance. ``settings={"label_gain": ...}``
    puts other gains.
    """

    _: KW_ONLY
    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    n_jobs: int = 1
    random_state: int | None = 0
    settings: dict[str, Any] | None = None

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
    places = [np.unique(part, return_inverse=True)[1] for part in sets.parts(positions)]
    return np.minimum(np.concatenate([place.max() - place for place in places]), GRADES - 1)
