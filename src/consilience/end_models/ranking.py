"""Models that rank the items of a set by their features, trained on rankings: boosted trees and a small network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.end_models.inputs import EndModel, as_numbers, check_count, read_weights
from consilience.exceptions import InvalidInputError, UnsupportedError, needed

#: The number of relevance grades of LightGBM.
GRADES = 31


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Features of the items of many sets, one set below the other; `even` if they were given as one array."""

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
        return np.cumsum(self.sizes) - self.sizes

    def parts(self, values: Batch) -> list[Batch]:
        """Return the values of each set."""
        return np.split(values, self.starts[1:])

    def split(self, values: Batch) -> Batch:
        """Return one value per item as ``(n_sets, r)``, or as an object array of one array per set."""
        return values.reshape(len(self.sizes), -1) if self.even else as_object_array(self.parts(values))


def _read_sets(X: Any, n_features: int | None = None) -> ItemSets:
    """Read an array ``(n_sets, r, k)``, or one array ``(r, k)`` per set."""
    remedy = "Pass an array (n_sets, n_items, n_features), or a list with one array (n_items, n_features) per set."
    parts = [as_numbers(part, "X", remedy) for part in X]
    if not parts:
        raise InvalidInputError("X is empty. Pass at least one set.")
    expected = n_features if n_features is not None else (parts[0].shape[1] if parts[0].ndim == 2 else None)
    for index, part in enumerate(parts):
        if part.ndim != 2 or part.shape[0] == 0 or part.shape[1] != expected or expected == 0:
            columns = "n_features" if expected is None else expected
            raise InvalidInputError(
                f"Set {index} of X has shape {part.shape}; expected (n_items, {columns}) with at least one item."
            )
        for row, column in np.argwhere(~np.isfinite(part))[:1].tolist():
            raise InvalidInputError(
                f"X is {part[row, column]} in set {index}, item {row}, feature {column}. Fill it in, or leave the set "
                "out."
            )
    even = isinstance(X, np.ndarray) and X.dtype != object
    return ItemSets(np.concatenate(parts), np.array([len(part) for part in parts], dtype=np.int64), even)


def _read_positions(y: Any, sets: ItemSets) -> IntArray:
    """Return one position per row of the sets, 0 best, -1 where an item is not ranked.

    A row of `y` may be longer than its set where the rest is negative, and None where nobody ranked the set.
    """
    rows = y.to_numpy() if hasattr(y, "to_numpy") else y
    if len(rows) != len(sets):
        raise InvalidInputError(f"X has {len(sets)} sets and y {len(rows)} rankings. Pass one ranking per set.")
    found = []
    for index, (row, size) in enumerate(zip(rows, sets.sizes.tolist(), strict=True)):
        try:
            given = np.full(size, -1.0) if is_null(row) else np.asarray(row, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        given = np.where(np.isnan(given), -1.0, given)
        if given.ndim != 1 or len(given) < size or (given[size:] >= 0).any() or (given != np.round(given)).any():
            shown = row if isinstance(row, str) else np.ravel(np.asarray(row, dtype=object)).tolist()
            raise InvalidInputError(
                f"Row {index} of y is {shown}; expected {size} positions, one per item of the set: 0 is best, equal "
                "ones are tied, -1 is not ranked."
            )
        found.append(np.maximum(given[:size], -1.0).astype(np.int64))
    positions = np.concatenate(found)
    if not (positions >= 0).any():
        raise InvalidInputError("All positions in y are missing. Pass at least one ranking.")
    return positions


class RankingModel(EndModel, ABC):
    """A score per item, learned so that better items get larger scores."""

    learned = "n_features_in_"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rankings of item sets.

        Features are an array ``(n_sets, r, k)``, or one array ``(r, k)`` per set. Positions ``(n_sets, r)``, or one
        array per set, are the predictions of a model of `Rankings`: 0 is best, equal positions are tied, -1 is not
        ranked. A set with None, or with -1 throughout, is left out. There is one weight per set.
        """
        sets = _read_sets(X)
        positions = _read_positions(y, sets)
        weights = read_weights(sample_weight, len(sets))
        counted = (np.bincount(sets.owner, weights=positions >= 0, minlength=len(sets)) >= 2) & (weights > 0)
        if not counted.any():
            raise InvalidInputError("No set has two ranked items and a weight above zero. Pass at least one such set.")
        rows = counted[sets.owner] & (positions >= 0)
        sizes = np.bincount(sets.owner[rows], minlength=len(sets))[counted]
        kept = ItemSets(sets.features[rows], sizes.astype(np.int64), even=False)
        # Weights of mean one, so that the learning rate does not depend on their unit.
        self._learn(kept, positions[rows], weights[counted] / weights[counted].mean())
        self.n_features_in_ = sets.features.shape[1]
        return self

    def score_items(self, X: Any) -> Batch:
        """Return one score per item, larger is better, in the shape of the sets."""
        sets = self._sets(X)
        return sets.split(self._scores(sets.features))

    def predict(self, X: Any) -> Batch:
        """Return the positions of the items of each set, 0 best; items of the same score are tied."""
        from scipy.stats import rankdata

        sets = self._sets(X)
        places = [rankdata(-own, method="dense") - 1 for own in sets.parts(self._scores(sets.features))]
        return sets.split(np.concatenate(places).astype(np.int64))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of pairs in the right order, averaged over the sets; a tie is half right.

        Pairs that `y` does not order are not counted; this is 1 - Kendall error.
        """
        sets = self._sets(X)
        scores, positions = self._scores(sets.features), _read_positions(y, sets)
        weights = read_weights(sample_weight, len(sets)).copy()
        share = np.zeros(len(sets))
        for index, (known, said) in enumerate(zip(sets.parts(positions), sets.parts(scores), strict=True)):
            better = (known[:, None] < known) & (known[:, None] >= 0)
            if better.any():
                share[index] = (1.0 + np.sign(said[:, None] - said)[better].mean()) / 2.0
            else:
                weights[index] = 0.0
        if not weights.sum() > 0:
            raise InvalidInputError(
                "No ranking in y orders two items with a weight above zero. Pass at least one that does."
            )
        return float(weights @ share / weights.sum())

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
    """Boosted trees that rank, with LightGBM's lambdarank objective.

    Settings are those of ``lightgbm.LGBMRanker``, with further ones in `settings`. With one thread, the default, the
    same seed gives the same model. The relevance of an item is the number of distinct places below its own, up to 30.
    Gains grow linearly with relevance, so that every swap of neighbors counts the same, as in Kendall's distance; use
    ``settings={"label_gain": ...}`` for other gains.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.random.default_rng(0).normal(size=(60, 4, 2))
    >>> positions = np.argsort(np.argsort(-features[:, :, 0], axis=1), axis=1)
    >>> ranker = LambdaRanker(n_estimators=20, min_child_samples=5).fit(features, positions)
    >>> ranker.predict(features[:1]).shape, bool(ranker.score(features, positions) > 0.9)
    ((1, 4), True)
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
        lightgbm = needed("lightgbm", "LambdaRanker", "models")
        chosen = {name: value for name, value in self.get_params().items() if name != "settings"}
        chosen |= {"label_gain": list(range(GRADES)), "verbosity": -1, "deterministic": True}
        model = lightgbm.LGBMRanker(objective="lambdarank", **(chosen | (self.settings or {})))
        # The number of distinct places below that of an item.
        places = [np.unique(part, return_inverse=True)[1] for part in sets.parts(positions)]
        grades = np.minimum(np.concatenate([place.max() - place for place in places]), GRADES - 1)
        model.fit(sets.features, grades, group=sets.sizes, sample_weight=weights[sets.owner])
        self.booster_ = model.booster_

    def _scores(self, features: FloatArray) -> FloatArray:
        return np.asarray(self.booster_.predict(features, num_threads=self.n_jobs), dtype=np.float64)


@dataclass(repr=False, eq=False)
class ListwiseRanker(RankingModel):
    """A multilayer perceptron trained with the Plackett-Luce likelihood (ListMLE): the paper's end model for rankings.

    Parameters
    ----------
    hidden
        Units of the hidden layers. Three layers of 30 are the paper's; its code has ``(30, 30)``.
    epochs, batch_size, learning_rate, momentum, weight_decay, dropout
        Settings of stochastic gradient descent. A batch is a number of sets.
    running_statistics
        Whether batch normalization uses the statistics of the training for predictions. False uses those of the items
        that are predicted together, as the paper's code does.
    standardize
        Whether features are scaled to mean 0 and variance 1.
    random_state
        Seed of the initial weights, the order of the sets, dropout, and the order of tied items.

    Examples
    --------
    >>> ranker = ListwiseRanker(epochs=5).fit(features, positions)  # doctest: +SKIP
    >>> ranker.predict(features[:1])  # doctest: +SKIP
    """

    _: KW_ONLY
    hidden: Sequence[int] = (30, 30, 30)
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.0
    weight_decay: float = 0.0
    dropout: float = 0.0
    running_statistics: bool = True
    standardize: bool = True
    random_state: int | None = 0

    def _learn(self, sets: ItemSets, positions: IntArray, weights: FloatArray) -> None:
        torch = needed("torch", "ListwiseRanker", "torch")
        check_count("epochs", self.epochs)
        check_count("batch_size", self.batch_size)
        if not 0 < self.learning_rate < np.inf:
            raise UnsupportedError(f"learning_rate={self.learning_rate!r} is not a positive number, such as 0.01.")
        if not 0 <= self.dropout < 1:
            raise UnsupportedError(f"dropout={self.dropout!r} is not a share from 0 to below 1.")
        if any(int(units) != units or units < 1 for units in self.hidden):
            raise UnsupportedError(f"hidden={self.hidden!r}; expected a number of units for each hidden layer.")
        mean = sets.features.mean(axis=0) if self.standardize else np.zeros(sets.features.shape[1])
        spread = sets.features.std(axis=0) if self.standardize else np.ones(sets.features.shape[1])
        self.mean_, self.scale_ = mean, np.where(spread > 1e-12 * (1.0 + np.abs(mean)), spread, 1.0)
        features = torch.as_tensor((sets.features - self.mean_) / self.scale_, dtype=torch.float32)
        # Rows of the items of each set, (n, w), which of them are there, and their places.
        width = np.arange(int(sets.sizes.max()))
        counted = width < sets.sizes[:, None]
        rows = np.where(counted, sets.starts[:, None] + width, 0)
        places = np.where(counted, positions[rows], np.iinfo(np.int64).max)
        rng = np.random.default_rng(self.random_state)
        seed = int(rng.integers(2**31))
        with torch.random.fork_rng(devices=[]):  # leaves the global generator alone
            torch.manual_seed(seed)
            network = self._network(torch, features.shape[1])
            optimizer = torch.optim.SGD(
                network.parameters(), lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay
            )
            network.train()
            losses = []
            for _ in range(int(self.epochs)):
                order = np.lexsort((rng.random(places.shape), places), axis=1)
                sorted_rows, present = np.take_along_axis(rows, order, 1), np.take_along_axis(counted, order, 1)
                shuffled, size, total = rng.permutation(len(sets)), int(self.batch_size), 0.0
                batches = [shuffled[start : start + size] for start in range(0, len(sets), size)]
                if len(batches) > 1 and len(batches[-1]) == 1:  # a single set has too little variance
                    batches[-2:] = [np.concatenate(batches[-2:])]
                for batch in batches:
                    given = (torch.as_tensor(array[batch]) for array in (sorted_rows, present, weights))
                    loss = _list_loss(torch, network, features, *given)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += float(loss.detach()) * len(batch)
                losses.append(total / len(sets))
        if not np.isfinite(losses[-1]):
            raise InvalidInputError(
                f"The loss diverged in {len(losses)} epochs with learning_rate={self.learning_rate}. Lower it, or look "
                "for features with huge values."
            )
        self.loss_curve_ = np.array(losses)
        network.eval()
        self.network_ = network

    def _scores(self, features: FloatArray) -> FloatArray:
        torch = needed("torch", "ListwiseRanker", "torch")
        given = torch.as_tensor((features - self.mean_) / self.scale_, dtype=torch.float32)
        with torch.no_grad():
            scores: FloatArray = self.network_(given)[:, 0].numpy().astype(np.float64)
        return scores

    def _network(self, torch: Any, width: int) -> Any:
        layers: list[Any] = []
        for units in self.hidden:
            layers.append(torch.nn.Linear(width, int(units)))
            layers.append(torch.nn.BatchNorm1d(int(units), track_running_stats=bool(self.running_statistics)))
            layers.append(torch.nn.ReLU())
            if self.dropout:
                layers.append(torch.nn.Dropout(float(self.dropout)))
            width = int(units)
        return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


def _list_loss(torch: Any, network: Any, features: Any, rows: Any, present: Any, weights: Any) -> Any:
    """Return the weighted mean of minus the log-likelihood of rankings, best item first in each row."""
    scores = torch.zeros(rows.shape)
    scores[present] = network(features[rows[present]])[:, 0]
    hidden = scores.masked_fill(~present, -1e9)  # finite, so that gradients are too
    # log of the sum over an item and all items after it; padding comes last and adds nothing
    remaining = torch.logcumsumexp(hidden.flip(1), dim=1).flip(1)
    terms = torch.where(present, remaining.masked_fill(~present, 0.0) - scores, torch.zeros_like(scores))
    return (weights.to(terms.dtype) * terms.sum(dim=1)).mean()
