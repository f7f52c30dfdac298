"""A small network that ranks, trained by the likelihood of whole rankings (ListMLE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.end_models.inputs import check_count, needed
from consilience.end_models.ranking import ItemSets, RankingModel
from consilience.exceptions import InvalidInputError, UnsupportedError

__all__ = ["ListwiseRanker"]


@dataclass(repr=False, eq=False)
class ListwiseRanker(RankingModel):
    """A multilayer perceptron whose scores make the rankings likely: the paper's end model for rankings.

    The likelihood of a ranking is that of drawing its items one after the other, each with a probability in proportion
    to exp(score) among those that are left (Plackett-Luce; the loss is known as ListMLE).

    Parameters
    ----------
    hidden
        Units of the hidden layers. Three of 30 make the paper's four layers; ``(30, 30)`` is what its code has.
    epochs, batch_size
        Passes over the sets, and sets per step.
    learning_rate, momentum, weight_decay
        Of stochastic gradient descent.
    dropout
        Share of hidden units left out at random while learning.
    running_statistics
        Whether batch normalization uses means and variances kept from training when it predicts. False normalizes
        with those of the items that are predicted together, as the paper's code does.
    standardize
        Whether features are brought to mean 0 and variance 1 first.
    random_state
        Seed of the first weights, the order of the sets, dropout, and of how ties are ordered in each pass.

    Examples
    --------
    ``ListwiseRanker().fit(X, label_model.predict(votes), sample_weight=label_model.confidence(votes))`` with `X` of
    shape (n_sets, n_items, n_features).
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
        torch = needed("torch", "torch", "ListwiseRanker")
        self._check_settings()
        mean = sets.features.mean(axis=0) if self.standardize else np.zeros(sets.features.shape[1])
        spread = sets.features.std(axis=0) if self.standardize else np.ones(sets.features.shape[1])
        self.mean_, self.scale_ = mean, np.where(spread > 1e-12 * (1.0 + np.abs(mean)), spread, 1.0)
        features = torch.as_tensor((sets.features - self.mean_) / self.scale_, dtype=torch.float32)
        rows, counted = _padded(sets)
        places = np.where(counted, positions[rows], np.iinfo(np.int64).max)
        rng = np.random.default_rng(self.random_state)
        seed = int(rng.integers(2**31))
        with torch.random.fork_rng(devices=[]):  # the seeds of others are left alone
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
                shuffled = rng.permutation(len(sets))
                total = 0.0
                for batch in _batches(shuffled, int(self.batch_size)):
                    loss = _list_loss(
                        torch,
                        network,
                        features,
                        torch.as_tensor(sorted_rows[batch]),
                        torch.as_tensor(present[batch]),
                        torch.as_tensor(weights[batch], dtype=torch.float32),
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += float(loss.detach()) * len(batch)
                losses.append(total / len(sets))
        if not np.isfinite(losses[-1]):
            raise InvalidInputError(
                f"The loss grew without bound in {len(losses)} passes with learning_rate={self.learning_rate}. Lower "
                "it, or look for features with huge values."
            )
        self.loss_curve_ = np.array(losses)
        network.eval()
        self.network_ = network

    def _scores(self, features: FloatArray) -> FloatArray:
        torch = needed("torch", "torch", "ListwiseRanker")
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

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs)
        check_count("batch_size", self.batch_size)
        if not 0 < self.learning_rate < np.inf:
            raise UnsupportedError(
                f"learning_rate={self.learning_rate!r} is not a positive number. The paper's is 0.01."
            )
        if not 0 <= self.dropout < 1:
            raise UnsupportedError(f"dropout={self.dropout!r} is not a share from 0 to below 1.")
        if any(int(units) != units or units < 1 for units in self.hidden):
            raise UnsupportedError(f"hidden={self.hidden!r}; expected a number of units for each hidden layer.")


def _padded(sets: ItemSets) -> tuple[IntArray, Any]:
    """Return ``(n, w)`` rows of the items of each set, and which of them are there."""
    places = np.arange(int(sets.sizes.max()))
    counted = places < sets.sizes[:, None]
    return np.where(counted, sets.starts[:, None] + places, 0), counted


def _batches(order: IntArray, size: int) -> list[IntArray]:
    """Return batches of a size; a last one of a single set joins the one before, as one has too little variance."""
    found = [order[start : start + size] for start in range(0, len(order), size)]
    if len(found) > 1 and len(found[-1]) == 1:
        found[-2:] = [np.concatenate(found[-2:])]
    return found


def _list_loss(torch: Any, network: Any, features: Any, rows: Any, present: Any, weights: Any) -> Any:
    """Return the weighted mean of minus the log-likelihood of rankings, best item first in each row."""
    scores = torch.zeros(rows.shape)
    scores[present] = network(features[rows[present]])[:, 0]
    hidden = scores.masked_fill(~present, -1e9)  # finite, so that gradients are too
    # log of the sum over an item and all behind it; padding lies behind everything and adds nothing
    remaining = torch.logcumsumexp(hidden.flip(1), dim=1).flip(1)
    terms = torch.where(present, remaining.masked_fill(~present, 0.0) - scores, torch.zeros_like(scores))
    return (weights * terms.sum(dim=1)).mean()
