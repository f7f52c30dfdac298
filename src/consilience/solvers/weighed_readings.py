"""Independent sources or copies: which of the two the pair moments support, where these are known exactly.

Sources that copy each other look like excellent ones: every pair within the group agrees, and a fit that trusts them
explains all their pairs. What it cannot explain is how much the *other* sources agree with each other, each pair a
little more than it should. No pair needs to stand out for that; so readings are compared by how well they explain all
pairs, and where neither is clearly better the votes cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import erfc

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.pairs import components, has_odd_cycle
from consilience.solvers.readings import (
    APART,
    FLAG,
    ROUNDS,
    PairReading,
    Readings,
    Refit,
    clusters,
    largest_group,
    opposed,
    reading_groups,
    remembered,
)

__all__ = ["contradict", "fear_of_copies", "weigh_readings"]

#: A pair of a group counts as dependent if it is this many standard errors too close.
MEMBER = 3.0
#: What it costs to say that one source copies another, and that one more does: twice the logarithm of the odds against.
PRICE, ONE_MORE = 9.0, 5.0
#: Copies are believed if they explain the pairs better by this much, and doubted unless they do so worse by that much.
SURE, DOUBT = 6.0, 3.0
#: Where a wrong guess would make labels worse than a plain vote, copies that explain the pairs worse by this much are
#: still feared, and by half as much again where pairs have so few common items that their moments are hardly normal.
FEARED, NORMAL = 6.0, 100.0
#: A reading that trusts the opposite sources is a rival unless it is worse by this much.
RIVAL = 9.0
#: Of four sources, two that copy each other look like the other two doing so.
FEWEST = 5
#: Qualities scatter by about this much, before anything is known.
SPREAD = 0.4
#: Of readings that have copies, those whose qualities scatter by this much are preferred.
STRICT = 0.25
#: A source without quality whose pairs together are this many standard errors too far apart misleads.
NOTHING, FAR = 0.02, 4.0
#: Chi-square over its freedom within so many standard deviations needs no other explanation, unless some sources seem
#: better than the others by this much.
EASY, AHEAD = 1.0, 0.15
#: Copies are feared if taking them for good sources would make this part more labels wrong than a plain vote.
HARM = 0.05
#: With fewer pairs to spare than this, their scatter says nothing about the standard errors.
LEAST_FREEDOM = 4


def weigh_readings(
    refit: Callable[[BoolArray], Refit],
    usable: BoolArray,
    closeness: FloatArray,
    flag: float = FLAG,
    spread: float = SPREAD,
    doubt: float = DOUBT,
) -> Readings:
    """Return the best explanation of exact pair moments, and its rival if the votes cannot tell.

    Parameters
    ----------
    refit : callable
        From the pairs to learn from, ``(m, m)``, to a `Refit`, with residuals of all pairs in standard errors.
    usable : array of shape (m, m)
        The pairs that were measured and are not known to be dependent.
    closeness : array of shape (m, m)
        How much two sources agree, by which they are clustered.
    flag : float
        Pairs outside a group are dependent beyond this many standard errors.
    spread : float
        Standard deviation of the qualities, before anything is known.
    doubt : float
        Copies that explain the pairs worse than independent sources by less than this are still possible.

    Returns
    -------
    Readings
        Without a dependent pair in `best` but with a `rival` if there may be copies, and may be not.
    """
    fit = remembered(refit)
    usable = usable & ~_misled(fit(usable), usable)
    base = fit(usable)
    starts = [usable & (base.too_close > flag), *clusters(closeness, usable)]
    if _explains(base, usable):  # copies could only hide as the better sources
        starts = [dropped for dropped in starts if _ahead(base.quality, dropped, usable)]
    scale = min(_scatters(fit, usable, starts), default=1.0)
    units, nobody = (scale, spread), np.zeros_like(usable)
    start = PairReading(nobody, base.quality, _loss(base, usable, nobody, units))
    settled = (_settle(fit, usable, dropped, flag, units) for dropped in starts if dropped.any())
    found = [reading for reading in settled if reading is not None and reading.dependent.any()]
    if not found:
        return Readings(start, None, *reading_groups(start, None))
    # Of explanations about as good, the one that accuses fewest.
    fewest = min(_strict(reading, usable, spread) for reading in found) + 2.0 * SURE
    close = [reading for reading in found if _strict(reading, usable, spread) < fewest]
    best = min(close, key=lambda reading: (int(reading.dependent.sum()), reading.loss))
    # That most sources copy each other would leave hardly a pair to explain.
    most = (int(usable.any(axis=1).sum()) + 1) // 2
    few = [reading for reading in found if len(largest_group(reading.dependent)) <= most]
    if best.loss > start.loss - SURE or int(usable.any(axis=1).sum()) < FEWEST:
        # Copies are to be feared if weights that take them for good sources would lose to a plain vote, whether or not
        # another group explains the pairs better.
        possible = [reading for reading in few if reading.lenient <= start.loss + doubt]
        feared = [reading for reading in possible if _harm(base.quality, reading, usable) > HARM]
        harmful = min(feared, key=lambda reading: reading.lenient, default=None)
        return Readings(start, harmful, *reading_groups(start, harmful))
    contrary = [reading for reading in few if contradict(reading, best)]
    rival = min(contrary, key=lambda reading: _strict(reading, usable, spread), default=None)
    if rival is not None:
        gap = _strict(rival, usable, spread) - _strict(best, usable, spread)
        rival = rival if gap < RIVAL * max(1.0, best.misfit) else None
    return Readings(best, rival, *reading_groups(best, rival))


def fear_of_copies(common: FloatArray, usable: BoolArray) -> float:
    """Return how much worse copies may explain the pairs and still be feared.

    Parameters
    ----------
    common, usable : arrays of shape (m, m)
        Numbers of items on which two sources both vote, and the pairs that are used.
    """
    usual = float(np.median(common[usable])) if usable.any() else 0.0
    return FEARED * (1.0 + 0.5 * min(1.0, NORMAL / max(usual, 1.0)))


def contradict(one: PairReading, other: PairReading) -> bool:
    """Return whether two readings trust opposite sources: of all, or of those whom just one takes for copies.

    Many sources that both take for poor ones would hide that they exchange the few that count.
    """
    first, second = one.dependent.any(axis=1), other.dependent.any(axis=1)
    first, second = first & ~second, second & ~first
    if not first.any() or not second.any():
        return opposed(one.quality, other.quality)
    exchanged = one.quality[first].mean() < one.quality[second].mean()
    return bool(exchanged and other.quality[second].mean() < other.quality[first].mean())


def _strict(reading: PairReading, usable: BoolArray, spread: float) -> float:
    """Return the loss of a reading with copies, which should not need very unequal qualities besides."""
    quality = reading.quality[usable.any(axis=1)]
    return reading.loss + float(((quality - quality.mean()) ** 2).sum()) * (1.0 / STRICT**2 - 1.0 / spread**2)


def _explains(fit: Refit, usable: BoolArray) -> bool:
    """Return whether residuals are what chance alone would leave."""
    z = fit.too_close[np.triu(usable)]
    freedom = max(len(z) - int(usable.any(axis=1).sum()), 1)
    limit = 1.0 + EASY * np.sqrt(2.0 / freedom)
    return bool(z.max(initial=0.0) < MEMBER and float(z @ z) / freedom < limit)


def _ahead(quality: FloatArray, dropped: BoolArray, usable: BoolArray) -> bool:
    """Return whether the sources of a group seem clearly better than the others."""
    inside = dropped.any(axis=1)
    others = usable.any(axis=1) & ~inside
    return bool(inside.any() and others.any() and quality[inside].mean() > quality[others].mean() + AHEAD)


def _harm(quality: FloatArray, reading: PairReading, usable: BoolArray) -> float:
    """Return by which part more labels would be wrong with weights than by a plain vote, if a reading were right.

    The weights are the log-odds that follow from `quality`. Votes are taken as signs, their sum as normal, and those of
    a group as the same one.
    """
    active = usable.any(axis=1)
    signal = reading.quality[active]
    noise = np.sqrt(np.maximum(1.0 - signal**2, 0.05))
    group = components(reading.dependent[np.ix_(active, active)])
    together = np.where(group[:, None] == group[None, :], np.outer(noise, noise), 0.0)

    def wrong(weight: FloatArray) -> float:
        spread = float(np.sqrt(weight @ together @ weight))
        return 0.5 * erfc(float(weight @ signal) / max(spread, 1e-12) / np.sqrt(2.0))

    bounded = np.clip(quality[active], -0.98, 0.98)
    return wrong(np.log((1.0 + bounded) / (1.0 - bounded))) / max(wrong(np.ones(len(signal))), 1e-12) - 1.0


def _misled(fit: Refit, usable: BoolArray) -> BoolArray:
    """Return the pairs of sources that are clearly further from all others than unrelated ones would be.

    No copying explains that, so they would only blur the comparison.
    """
    total = np.where(usable, fit.too_close, 0.0).sum(axis=1)
    far = (fit.quality <= NOTHING) & (total < -FAR * np.sqrt(np.maximum(usable.sum(axis=1), 1)))
    misled: BoolArray = far[:, None] | far[None, :]
    return misled


def _scatters(fit: Callable[[BoolArray], Refit], usable: BoolArray, starts: Iterable[BoolArray]) -> list[float]:
    """Return by how much residuals exceed their standard errors, by every reading that leaves enough pairs.

    Under the right one this is how approximate the moments are; a wrong one would hide behind its own misfit.
    """
    sources = int(usable.any(axis=1).sum())
    kept = [usable, *(usable & ~dropped for dropped in starts)]
    ample = [pairs for pairs in kept if int(np.triu(pairs).sum()) - sources >= LEAST_FREEDOM]
    return [fit(pairs).scatter for pairs in ample if has_odd_cycle(pairs)[usable.any(axis=1)].all()]


def _settle(
    fit: Callable[[BoolArray], Refit], usable: BoolArray, dropped: BoolArray, flag: float, units: tuple[float, float]
) -> PairReading | None:
    """Return the reading that starts from these dependent pairs, or None if it leaves nothing to learn from.

    `units` are what standard errors are multiplied by, and the expected scatter of the qualities.
    """
    scale, _ = units
    for _ in range(ROUNDS):
        kept = usable & ~dropped
        if not has_odd_cycle(kept)[usable.any(axis=1)].all():
            return None
        found = fit(kept)
        more = usable & (found.too_close > flag * scale) & ~dropped
        if not more.any():
            break
        dropped = dropped | more
    dependent = dropped & (found.too_close > MEMBER * scale)
    linked = _within_groups(dependent, dropped & (found.too_close > 0.0))
    others = np.triu(usable & ~dependent)
    freedom = max(int(others.sum()) - int(usable.any(axis=1).sum()), 1)
    misfit = float(np.minimum((found.too_close[others] / scale) ** 2, APART).sum()) / freedom
    loss, lenient = (_loss(found, usable, pairs, units) for pairs in (dependent, linked))
    return PairReading(dependent, found.quality, loss, misfit, lenient)


def _within_groups(clear: BoolArray, closer: BoolArray) -> BoolArray:
    """Return the clear pairs, with those of their groups that are closer at all.

    On few items hardly a pair of a group is clear, and the others would speak against a group that explains them.
    """
    group = components(clear)
    linked: BoolArray = clear | (closer & (group[:, None] == group[None, :]))
    return linked


def _loss(fit: Refit, usable: BoolArray, dependent: BoolArray, units: tuple[float, float]) -> float:
    """Return twice the negative log-likelihood of the other pairs, with the price of every copied source."""
    scale, spread = units
    z = fit.too_close[np.triu(usable & ~dependent)] / scale
    misfit = float(np.minimum(z**2, np.where(z > 0, FLAG**2, APART)).sum())
    sizes = np.bincount(components(dependent))
    price = float(np.where(sizes > 1, PRICE + ONE_MORE * (sizes - 2), 0.0).sum())
    quality = fit.quality[usable.any(axis=1)]
    scatter = float(((quality - quality.mean()) ** 2).sum()) / spread**2 if len(quality) else 0.0
    return misfit + price + scatter
