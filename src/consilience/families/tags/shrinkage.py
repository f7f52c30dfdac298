"""How far the rates of sources on tags are drawn together: as far as chance explains why they differ.

The likelihood believes its own labels; on few items it follows some sources, and some tags, by accident.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.confusion.shrinkage import above_chance, as_pairs_support, evened
from consilience.families.pair_costs import kept_share, shrunk_costs
from consilience.families.tags.parameters import TagParameters

__all__ = ["tags_drawn_together"]

#: Rates are kept this far away from 0 and 1 before log-odds are taken.
FLOOR = 1e-4


def tags_drawn_together(
    parameters: TagParameters, votes: FloatArray, pooled: PairMoments, dependent: BoolArray
) -> TagParameters:
    """Return accuracies nearer to their mean, and the rates of a source on its tags nearer to its accuracy.

    Parameters
    ----------
    votes
        ``(d, m, 2)`` how often each source denies and gives each tag.
    pooled
        Pair moments over all tags together.
    dependent
        ``(m, m)`` pairs that do not err independently.
    """
    active = votes.sum(axis=(0, 2)) > 0
    if int(active.sum()) < 3:
        return parameters
    error, own = parameters.cost_standard_error, 1.0 - parameters.cost
    accuracy = 1.0 - shrunk_costs(parameters.cost, error, active & np.isfinite(error))
    accuracy = as_pairs_support(accuracy, active, pooled, dependent)
    accuracy = np.where(active, above_chance(accuracy, own, error, 2), own)
    step = _log_odds(accuracy) - _log_odds(own)
    rates = np.stack([parameters.specificity, parameters.sensitivity], axis=2)
    share = _share_of_differences(rates[active], own[active], parameters.prior, votes[:, active])
    mixed = own[:, None, None] + share * (rates - own[:, None, None])
    drawn = 1.0 / (1.0 + np.exp(-_log_odds(mixed) - step[:, None, None]))
    drawn = np.where(active[:, None, None], drawn, rates)
    return replace(
        parameters,
        specificity=drawn[:, :, 0],
        sensitivity=drawn[:, :, 1],
        prior=_as_shares_support(parameters.prior, votes, share),
        cost=1.0 - accuracy,
    )


def _share_of_differences(rates: FloatArray, own: FloatArray, prior: FloatArray, votes: FloatArray) -> float:
    """Return which part of the differences between tags, and between giving and denying them, exceeds chance."""
    cast = votes.sum(axis=2).T[:, :, None] * np.stack([1.0 - prior, prior], axis=1)
    variance = np.maximum(own * (1.0 - own), 0.01)[:, None, None] / np.maximum(cast, 1.0)
    return kept_share(float(((rates - own[:, None, None]) ** 2 / variance).sum()), rates.size - len(rates))


def _as_shares_support(prior: FloatArray, votes: FloatArray, of_rates: float) -> FloatArray:
    """Return how often tags are present, as uneven as the shares of the votes or the rates support."""
    cast = votes.sum(axis=1)
    mean = cast.mean(axis=1, keepdims=True)
    uneven = float(((cast - mean) ** 2 / np.maximum(mean, 1.0)).sum())
    kept = max(of_rates, kept_share(uneven, len(cast)))
    even = np.array([evened(one / max(float(one.sum()), 1.0))[1] if one.any() else 0.5 for one in cast])
    drawn: FloatArray = even + kept * (prior - even)
    return drawn


def _log_odds(rate: FloatArray) -> FloatArray:
    bounded = np.clip(rate, FLOOR, 1.0 - FLOOR)
    odds: FloatArray = np.log(bounded / (1.0 - bounded))
    return odds
