"""How far the confusions of categorical sources are drawn together: as far as chance explains why they differ.

Votes on few items show differences between sources, and between classes, that are not there; weights made of them
lose to a plain vote. Both are kept to the degree that they exceed what chance would produce.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.confusion.parameters import FLOOR, ConfusionParameters, one_coin_tables
from consilience.families.pair_costs import kept_share, shrunk_costs

__all__ = ["LEAST_SKILL", "above_chance", "as_pairs_support", "different_skills", "drawn_together", "evened", "upright"]


#: However little sources agree, votes that all count the same count more than which class is the more frequent.
LEAST_SKILL = 0.05
#: A variance counts as if so many further items had shown that of the other pairs.
POOLED = 10.0
#: Even classes still lean this far to the shares of the votes, so that ties are decided as in a plain vote.
LEANING = 0.01


def drawn_together(
    parameters: ConfusionParameters, votes: FloatArray, moments: PairMoments, dependent: BoolArray, told: bool = False
) -> ConfusionParameters:
    """Return the parameters with accuracies nearer to their mean, and confusions and classes nearer to even ones.

    Parameters
    ----------
    votes
        ``(m, k)`` how often each source votes each class.
    dependent
        ``(m, m)`` pairs that do not err independently.
    told
        Whether the class frequencies were given, and so stay.
    """
    if not told:
        parameters = upright(parameters, votes)
    k = parameters.n_classes
    judges = parameters.full & (votes.sum(axis=1) > 0)
    if int(judges.sum()) < 3:
        return parameters
    error = parameters.cost_standard_error
    accuracy = 1.0 - shrunk_costs(1.0 - parameters.accuracy, error, judges & np.isfinite(error))
    accuracy = as_pairs_support(accuracy, judges, moments, dependent)
    accuracy = np.where(judges, above_chance(accuracy, parameters.accuracy, error, k), accuracy)
    own = np.einsum("acc,c->a", parameters.table, parameters.prior)
    even = one_coin_tables(own, k)
    share = _share_of_classes(parameters, even, votes, judges)
    mixed = np.clip(even + share * (parameters.table - even), FLOOR, 1.0 - FLOOR)
    # In log-odds, where a step means the same whatever the accuracy.
    moved = np.clip(accuracy, 0.02, 0.98), np.clip(own, 0.02, 0.98)
    step = np.log(moved[0] / (1.0 - moved[0])) - np.log(moved[1] / (1.0 - moved[1]))
    table = mixed * np.where(np.eye(k, dtype=bool), np.exp(step)[:, None, None], 1.0)
    table /= table.sum(axis=1, keepdims=True)
    return replace(
        parameters,
        table=np.where(judges[:, None, None], table, parameters.table),
        prior=parameters.prior if told else _as_shares_support(parameters, votes, judges, share),
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


def as_pairs_support(accuracy: FloatArray, judges: BoolArray, moments: PairMoments, dependent: BoolArray) -> FloatArray:
    """Return accuracies that differ no more than the agreements of pairs do.

    The likelihood believes its own labels: of many weak sources it follows some by accident, and the better these
    then seem the smaller their errors. The pairs hold no labels.
    """
    usable = moments.usable(dependent) & np.outer(judges, judges)
    linked = usable.any(axis=1)
    freedom = int(linked.sum()) - 1
    if freedom < 2:
        return accuracy
    spread = different_skills(moments, usable)
    kept = kept_share(spread, freedom)
    centre = accuracy[linked].mean()
    level = max(centre, _least(moments.n_classes))  # on the whole sources are better than chance
    # Who meets nobody often enough to be compared is no better known than the others.
    return np.where(judges, level + kept * (accuracy - centre), accuracy)


def _least(k: int) -> float:
    return (1.0 + (k - 1) * LEAST_SKILL) / k


def above_chance(accuracy: FloatArray, raw: FloatArray, error: FloatArray, k: int) -> FloatArray:
    """Return accuracies that are below chance only where the votes clearly say so.

    What a source says is used against it as far as its own accuracy, `raw` with this standard error, is worse than
    chance by more than chance explains. Otherwise it still counts a little, as everybody does in a plain vote.
    """
    least = _least(k)
    below = np.maximum(1.0 / k - raw, 0.0) / np.maximum(error, 1e-9)
    kept = np.array([kept_share(float(z) ** 2, 1) for z in below])
    return np.where(accuracy < least, least + kept * (accuracy - least), accuracy)


def different_skills(moments: PairMoments, usable: BoolArray) -> float:
    """Return the chi-square by which pairs of sources agree as those of unequal skill: a score test of equality."""
    linked = np.flatnonzero(usable.any(axis=1))
    chosen = np.ix_(linked, linked)
    pairs, count = usable[chosen], np.maximum(moments.both[chosen], 1.0)
    one_item = moments.standard_error[chosen] ** 2 * count
    pooled = float(np.median(one_item[pairs]))
    precision = np.where(pairs, count * (count + POOLED) / (count * one_item + POOLED * pooled), 0.0)
    covariance = moments.covariance[chosen]
    level = float((precision * covariance).sum() / precision.sum())
    score = (precision * (covariance - level)).sum(axis=1)
    information = precision + np.diag(precision.sum(axis=1))
    return float(score @ np.linalg.lstsq(information, score, rcond=None)[0])


def _as_shares_support(
    parameters: ConfusionParameters, votes: FloatArray, judges: BoolArray, of_classes: float
) -> FloatArray:
    """Return class frequencies as uneven as the shares of the votes, or differences between classes, support."""
    cast = votes[judges].sum(axis=0)
    uneven = float(((cast - cast.mean()) ** 2).sum() / max(cast.mean(), 1.0))
    kept = max(of_classes, kept_share(uneven, len(cast) - 1))
    even = evened(cast / max(float(cast.sum()), 1.0))
    prior: FloatArray = even + kept * (parameters.prior - even)
    return prior


def evened(share: FloatArray) -> FloatArray:
    """Return even class frequencies that still decide ties for the class that gets more votes."""
    even: FloatArray = 1.0 / len(share) + LEANING * (share - 1.0 / len(share))
    return even


def upright(parameters: ConfusionParameters, votes: FloatArray) -> ConfusionParameters:
    """Return two classes the other way round where judges would otherwise be worse than chance on average.

    Of one rare class and one frequent one the rounds may end in the mirror image, which explains votes as well.
    """
    if parameters.n_classes != 2 or not parameters.full.all() or not votes.any():
        return parameters
    if np.average(parameters.accuracy, weights=votes.sum(axis=1)) >= 0.5:
        return parameters
    return replace(
        parameters,
        table=parameters.table[:, :, ::-1],
        prior=parameters.prior[::-1],
        shift=parameters.shift[::-1],
        accuracy=1.0 - parameters.accuracy,
    )
