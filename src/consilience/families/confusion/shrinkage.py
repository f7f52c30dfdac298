"""How far the confusions of categorical sources are drawn together: as far as chance explains why they differ.

Votes on few items show differences between sources, and between classes, that are not there; weights made of them
lose to a plain vote. Both are kept to the degree that they exceed what chance would produce.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.confusion.parameters import FLOOR, ConfusionParameters, one_coin_tables
from consilience.families.pair_costs import kept_share, shrunk_costs

__all__ = ["drawn_together"]


def drawn_together(parameters: ConfusionParameters, votes: FloatArray) -> ConfusionParameters:
    """Return the parameters with accuracies nearer to their mean, and confusions nearer to even errors.

    Parameters
    ----------
    votes
        ``(m, k)`` how often each source votes each class.
    """
    k = parameters.n_classes
    judges = parameters.full & (votes.sum(axis=1) > 0)
    if int(judges.sum()) < 3:
        return parameters
    error = parameters.cost_standard_error
    accuracy = 1.0 - shrunk_costs(1.0 - parameters.accuracy, error, judges & np.isfinite(error))
    own = np.einsum("acc,c->a", parameters.table, parameters.prior)
    even = one_coin_tables(own, k)
    share = _share_of_classes(parameters, even, votes, judges)
    mixed = np.clip(even + share * (parameters.table - even), FLOOR, 1.0 - FLOOR)
    # In log-odds, where a step means the same whatever the accuracy.
    moved = np.clip(accuracy, 0.02, 0.98), np.clip(parameters.accuracy, 0.02, 0.98)
    step = np.log(moved[0] / (1.0 - moved[0])) - np.log(moved[1] / (1.0 - moved[1]))
    table = mixed * np.where(np.eye(k, dtype=bool), np.exp(step)[:, None, None], 1.0)
    table /= table.sum(axis=1, keepdims=True)
    return replace(
        parameters,
        table=np.where(judges[:, None, None], table, parameters.table),
        accuracy=np.where(judges, accuracy, parameters.accuracy),
    )


def _share_of_classes(parameters: ConfusionParameters, even: FloatArray, votes: FloatArray, judges: BoolArray) -> float:
    """Return which part of the differences between classes exceeds what chance would produce."""
    recall = np.einsum("acc->ac", parameters.table)[judges]
    coin = np.einsum("acc->ac", even)[judges]
    items = np.maximum(votes[judges].sum(axis=1)[:, None] * parameters.prior, 1.0)
    variance = np.maximum(coin * (1.0 - coin), 0.01) / items
    freedom = recall.size - len(recall)
    return kept_share(float(((recall - coin) ** 2 / variance).sum()), freedom) if freedom > 0 else 0.0
