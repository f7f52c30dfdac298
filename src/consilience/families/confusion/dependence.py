"""Which categorical sources copy each other, learned from their votes.

Sources that vote every class: pairs that agree more than one common truth explains. Labeling functions: only near
copies, which fire on the same items, as two of them may well agree for good reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Diagnostic, Request
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.findings import (
    MAYBE_COPIES,
    competing_groups,
    dependent_pairs,
    possible_copies,
)
from consilience.solvers.copied_groups import CLOSE, PairCovariances, Reading, copied_groups
from consilience.solvers.readings import Refit
from consilience.solvers.robust import fit_pair_moments
from consilience.solvers.triplets import rank_one
from consilience.solvers.weighed_readings import fear_of_copies, weigh_readings

__all__ = ["RIVALS", "Dependence", "learn_dependence", "near_copies"]

#: Common items from which a covariance is used here; on fewer, copies would be made out of accidents.
MIN_COMMON = 30
#: Beyond this many common items the error of a covariance is that of the model, not of the sample.
MAX_COMMON = 20_000
#: From so many sources on standard errors are pooled, those of all pairs counting as much as so many items.
MANY_SOURCES, DRAWN_TO = 64, 40.0
#: Fewer sources than this cannot tell who copies whom.
MIN_SOURCES = 5
#: Copies of which no pair stands out are looked for with so many sources, from so many common items on.
FEWEST_SOURCES, FEW_COMMON = 4, 10
#: With more common items than this, pairs of copies stand out if there are any, among sources enough to look for them;
#: among fewer, more items tell no more, as small errors of the model would.
MANY_COMMON = 1000
#: Skills scatter by about this much before anything is known, and their products hold up to this error.
SKILL_SPREAD, UNEVEN = 0.4, 0.03
#: Copies are believed if the other sources agree by this many standard errors, all their pairs together.
WITNESSES = 2.33
#: A variance counts as if so many further items had shown that of the other pairs.
POOLED = 10.0
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
    doubt
        Why no weights are to be trusted, where another reading explains the votes nearly as well.
    notes
        What to tell the user.
    """

    dependent: BoolArray
    skill: FloatArray | None = None
    doubt: str = ""
    notes: tuple[Diagnostic, ...] = ()

    def harmless(self, dependent: BoolArray) -> BoolArray:
        """Return dependent pairs without those learned of sources that are better than the rest.

        Where all weigh the same, copies of good sources may well count more than once, as in any plain vote.
        """
        involved = self.dependent.any(axis=1)
        if self.skill is None or involved.all():
            return dependent
        good = involved & (self.skill > self.skill[~involved].mean())
        kept: BoolArray = dependent & ~(self.dependent & np.outer(good, good))
        return kept


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
    # Where some meet others too rarely, what the rest alone suggests would be half the story.
    if len(judges) < MIN_SOURCES or len(judges) < len(_connected(moments, full & (votes.sum(axis=1) > 0), FEW_COMMON)):
        return _faint(moments, votes, full, request, copies)
    evidence = None if gold is None else _right_and_wrong(gold)[judges]
    found = copied_groups(_pairs(moments, judges), evidence)
    best, rival = found.best, found.rival
    if not best.dependent.any():
        return _faint(moments, votes, full, request, copies)
    limit = CLOSE if evidence is None else CLOSE_WITH_GOLD
    notes: tuple[Diagnostic, ...] = ()
    if rival is not None and found.gap < limit:
        notes = (_competing(best, rival, judges, request),)
        if evidence is None:
            return Dependence(nothing, doubt=RIVALS, notes=notes)
    dependent = copies.copy()
    dependent[np.ix_(judges, judges)] |= best.dependent
    skill = np.full(len(votes), np.median(best.value))
    skill[judges] = best.value
    return Dependence(dependent, skill, notes=(*_named(dependent, request), *notes))


def _faint(moments: PairMoments, votes: FloatArray, full: BoolArray, request: Request, copies: BoolArray) -> Dependence:
    """Find copies of which no single pair stands out, or say that there may be some."""
    judges = _connected(moments, full & (votes.sum(axis=1) > 0), FEW_COMMON)
    nothing = Dependence(copies, notes=_named(copies, request))
    # Among so many sources a few copies mislead nobody, and the comparison would take minutes.
    if not FEWEST_SOURCES <= len(judges) < MANY_SOURCES:
        return nothing
    pairs = _pairs(moments, judges, FEW_COMMON)
    # Few common items may agree by luck: their variance is pooled with that of all pairs.
    common = np.maximum(moments.both[np.ix_(judges, judges)], 1.0)
    variance = pairs.error**2 * common
    pooled = float(np.median(variance[pairs.usable]))
    error = np.sqrt((variance * common + pooled * POOLED) / (common + POOLED) / np.minimum(common, MANY_COMMON))
    # With more than two classes the covariance of sources that err unevenly is not quite a product.
    pairs = replace(pairs, error=np.hypot(error, UNEVEN * pairs.scale if moments.n_classes > 2 else 0.0))
    scale = np.sqrt(np.outer(pairs.variance, pairs.variance))
    if float(np.median(common[pairs.usable])) > MANY_COMMON and len(judges) >= MIN_SOURCES:
        return nothing
    closeness = pairs.covariance / np.maximum(scale, 1e-12)
    feared = fear_of_copies(common, pairs.usable)
    found = weigh_readings(_refit(pairs), pairs.usable, closeness, spread=SKILL_SPREAD, doubt=feared)
    possible = found.doubtful
    if found.best.dependent.any() and not _others_agree(pairs, found.best.dependent):
        possible = found.best
    if possible is not None and not request.n_gold:
        suspected = np.zeros_like(copies)
        suspected[np.ix_(judges, judges)] = possible.dependent
        return Dependence(copies, doubt=MAYBE_COPIES, notes=(possible_copies(suspected, request),))
    if not found.best.dependent.any():
        return nothing
    if found.rival is not None and not request.n_gold:
        notes = (competing_groups(judges[found.first], judges[found.second], request),)
        return Dependence(np.zeros_like(copies), doubt=RIVALS, notes=notes)
    dependent = copies.copy()
    dependent[np.ix_(judges, judges)] |= found.best.dependent
    skill = np.full(len(votes), np.median(found.best.quality))
    skill[judges] = found.best.quality
    return Dependence(dependent, skill, notes=_named(dependent, request))


def _others_agree(pairs: PairCovariances, dependent: BoolArray) -> bool:
    """Return whether those outside the groups agree among themselves: without that they are no witnesses.

    Excellent sources among random ones look like copies, too, if the noise of the others is taken for knowledge.
    """
    others = ~dependent.any(axis=1)
    left, right = np.nonzero(np.triu(pairs.usable & np.outer(others, others)))
    strength = pairs.covariance[left, right] / pairs.error[left, right]
    return bool(strength.sum() > WITNESSES * np.sqrt(len(strength)))


def _refit(pairs: PairCovariances) -> Callable[[BoolArray], Refit]:
    """Return the fit of one value per source to some of the covariances, under a robust loss."""
    left, right = np.nonzero(np.triu(pairs.usable))
    row, m, error = np.arange(len(left)), len(pairs.variance), pairs.error

    def refit(kept: BoolArray) -> Refit:
        chosen = kept[left, right]
        one, two = left[chosen], right[chosen]
        place = row[: len(one)]

        def moment(value: FloatArray) -> FloatArray:
            product: FloatArray = pairs.scale * value[one] * value[two]
            return product

        def slope(value: FloatArray) -> FloatArray:
            result = np.zeros((len(one), m))
            result[place, one], result[place, two] = pairs.scale * value[two], pairs.scale * value[one]
            return result

        precision = np.where(kept, 1.0 / error**2, 0.0)
        start = rank_one(pairs.covariance / pairs.scale, kept, precision, np.full(m, 0.5)).value
        fit = fit_pair_moments(
            moment,
            slope,
            pairs.covariance[one, two],
            error[one, two],
            [np.clip(start, -0.95, 0.95), np.full(m, 0.5)],
            lower=-1.0,
            upper=1.0,
            prior_spread=SKILL_SPREAD,
            corrected_scatter=m >= 7,
        )
        too_close = np.where(
            pairs.usable, (pairs.covariance - pairs.scale * np.outer(fit.weight, fit.weight)) / error, 0.0
        )
        # Products are the same with all signs turned around; sources are better than chance on the whole.
        return Refit(fit.weight if fit.weight.sum() >= 0 else -fit.weight, too_close, fit.inflation)

    return refit


def near_copies(moments: PairMoments, votes: FloatArray, full: BoolArray) -> BoolArray:
    """Return the pairs of labeling functions that give the same vote wherever one of them votes, or nearly so."""
    count = votes.sum(axis=1)
    union = count[:, None] + count[None, :] - moments.both
    same = moments.agreement * moments.both >= SAME_VOTES * np.maximum(union, 1.0)
    candidate = ~full & (count >= MIN_VOTES)
    found: BoolArray = same & np.outer(candidate, candidate)
    np.fill_diagonal(found, False)
    return found


def _connected(moments: PairMoments, candidate: BoolArray, least: int = MIN_COMMON) -> IntArray:
    """Return the sources that have three or more partners among themselves."""
    kept = candidate.copy()
    common = (moments.both >= least) & ~np.eye(len(kept), dtype=bool)
    while True:
        partners = (common & kept).sum(axis=1)
        lonely = kept & (partners < 3)
        if not lonely.any():
            return np.flatnonzero(kept)
        kept &= ~lonely


def _pairs(moments: PairMoments, judges: IntArray, least: int = MIN_COMMON) -> PairCovariances:
    chosen = np.ix_(judges, judges)
    both = moments.both[chosen]
    usable = both >= least
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
