"""Which categorical sources copy each other, learned from their votes.

Sources that vote every class: pairs that agree more than one common truth explains. Labeling functions: only near
copies, which fire on the same items, as two of them may well agree for good reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Diagnostic, Request
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.findings import competing_groups, dependent_pairs
from consilience.solvers.copied_groups import CLOSE, PairCovariances, Reading, copied_groups

__all__ = ["RIVALS", "Dependence", "learn_dependence", "near_copies"]

#: Common items from which a covariance is used here; on fewer, copies would be made out of accidents.
MIN_COMMON = 30
#: Beyond this many common items the error of a covariance is that of the model, not of the sample.
MAX_COMMON = 20_000
#: From so many sources on standard errors are pooled, those of all pairs counting as much as so many items.
MANY_SOURCES, DRAWN_TO = 64, 40.0
#: Fewer sources than this cannot tell who copies whom.
MIN_SOURCES = 5
#: With known labels two readings can be told apart unless their losses are this close.
CLOSE_WITH_GOLD = 4.0
#: Labeling functions with the same vote on this share of the items where either votes are near copies.
SAME_VOTES, MIN_VOTES = 0.8, 10

SHARED = "they share one vote on items where both vote"
RIVALS = "two groups of sources contradict each other, and the votes cannot tell which one follows the truth"


@dataclass(frozen=True)
class Dependence:
    """What was learned about copying.

    Parameters
    ----------
    dependent
        ``(m, m)`` pairs found.
    skill
        ``(m,)`` skills that explain the other pairs, where copies were found among sources that vote every class.
    rivals
        Whether another reading explains the votes nearly as well, so that none is to be trusted.
    notes
        What to tell the user.
    """

    dependent: BoolArray
    skill: FloatArray | None = None
    rivals: bool = False
    notes: tuple[Diagnostic, ...] = ()


def learn_dependence(
    moments: PairMoments, votes: FloatArray, full: BoolArray, request: Request, gold: FloatArray | None = None
) -> Dependence:
    """Find the pairs that do not err independently.

    Parameters
    ----------
    full
        ``(m,)`` sources that vote every class.
    gold
        ``(m, k, k)`` votes on known items as ``[source, vote, class]``, or None.
    """
    nothing = np.zeros_like(request.dependent)
    if not request.learn:
        return Dependence(nothing)
    copies = near_copies(moments, votes, full)
    judges = _connected(moments, full & (votes.sum(axis=1) > 0))
    if len(judges) < MIN_SOURCES:
        return Dependence(copies, notes=_named(copies, request))
    evidence = None if gold is None else _right_and_wrong(gold)[judges]
    found = copied_groups(_pairs(moments, judges), evidence)
    best, rival = found.best, found.rival
    if not best.dependent.any():
        return Dependence(copies, notes=_named(copies, request))
    limit = CLOSE if evidence is None else CLOSE_WITH_GOLD
    notes: tuple[Diagnostic, ...] = ()
    if rival is not None and found.gap < limit:
        notes = (_competing(best, rival, judges, request),)
        if evidence is None:
            return Dependence(nothing, rivals=True, notes=notes)
    dependent = copies.copy()
    dependent[np.ix_(judges, judges)] |= best.dependent
    skill = np.full(len(votes), np.median(best.value))
    skill[judges] = best.value
    return Dependence(dependent, skill, notes=(*_named(dependent, request), *notes))


def near_copies(moments: PairMoments, votes: FloatArray, full: BoolArray) -> BoolArray:
    """Return the pairs of labeling functions that give the same vote wherever one of them votes, or nearly so."""
    count = votes.sum(axis=1)
    union = count[:, None] + count[None, :] - moments.both
    same = moments.agreement * moments.both >= SAME_VOTES * np.maximum(union, 1.0)
    candidate = ~full & (count >= MIN_VOTES)
    found: BoolArray = same & np.outer(candidate, candidate)
    np.fill_diagonal(found, False)
    return found


def _connected(moments: PairMoments, candidate: BoolArray) -> IntArray:
    """Return the sources that have three or more partners among themselves."""
    kept = candidate.copy()
    common = (moments.both >= MIN_COMMON) & ~np.eye(len(kept), dtype=bool)
    while True:
        partners = (common & kept).sum(axis=1)
        lonely = kept & (partners < 3)
        if not lonely.any():
            return np.flatnonzero(kept)
        kept &= ~lonely


def _pairs(moments: PairMoments, judges: IntArray) -> PairCovariances:
    chosen = np.ix_(judges, judges)
    both = moments.both[chosen]
    usable = both >= MIN_COMMON
    np.fill_diagonal(usable, False)
    error = moments.standard_error[chosen]
    if len(judges) >= MANY_SOURCES and usable.any():
        # Among very many pairs some seem exact by accident on their few items: their errors are drawn to the usual.
        one_item = error**2 * both
        usual = np.median(one_item[usable])
        error = np.sqrt((both * one_item + DRAWN_TO * usual) / (both + DRAWN_TO) / np.maximum(both, 1.0))
    error = error * np.sqrt(np.maximum(both / MAX_COMMON, 1.0))
    return PairCovariances(
        moments.covariance[chosen], error, usable, moments.variance[judges], moments.scale, 1.0 / moments.n_classes
    )


def _right_and_wrong(gold: FloatArray) -> FloatArray:
    right = np.einsum("acc->a", gold)
    return np.stack([right, gold.sum(axis=(1, 2)) - right], axis=1)


def _competing(best: Reading, rival: Reading, judges: IntArray, request: Request) -> Diagnostic:
    """Name those whom only the one reading trusts, and those whom only the other does."""
    difference = (best.value - best.value.mean()) - (rival.value - rival.value.mean())
    first = judges[difference > 0.25 * difference.max()]
    second = judges[difference < 0.25 * difference.min()]
    return competing_groups(first, second, request)


def _named(dependent: BoolArray, request: Request) -> tuple[Diagnostic, ...]:
    left, right = np.nonzero(np.triu(dependent))
    return (dependent_pairs(left, right, request, SHARED),) if len(left) else ()
