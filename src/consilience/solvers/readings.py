"""Which pairs of sources depend on each other, and whether the votes can tell at all.

Sources that agree for the wrong reason look like sources that are right. Every explanation of the pair moments names
some pairs as dependent and reads the qualities of all sources off the others. A robust fit finds one such reading;
here it is compared with those that take a whole cluster of sources as dependent, and with the best one that turns the
qualities around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.solvers.pairs import components, has_odd_cycle

__all__ = [
    "PairReading",
    "Readings",
    "Refit",
    "clusters",
    "largest_group",
    "opposed",
    "read_dependence",
    "reading_groups",
    "remembered",
]

#: Residuals beyond this many standard errors make a pair dependent.
FLAG = 5.0
#: What a pair costs at most that is closer, or further apart, than a reading explains. Copying explains the former.
CLOSE, APART = 9.0, 36.0
#: Qualities within a reading are expected to scatter so far around their mean, which is expected to be this high.
SPREAD, LEVEL = 0.1, 0.4
#: A reading that fits worse by less than this is a rival.
GAP = 16.0
#: Clusters tried as dependent groups, and rounds in which each sheds the pairs that it does not explain.
CLUSTERS, ROUNDS = 16, 4
#: Clusters are looked for among at most so many sources.
CLUSTERED = 30


@dataclass(frozen=True)
class Refit:
    """Qualities ``(m,)`` between 0 and 1, and how many standard errors too close each pair is, ``(m, m)``.

    `scatter` is by how much the residuals of the pairs that were fitted exceed their standard errors.
    """

    quality: FloatArray
    too_close: FloatArray
    scatter: float = 1.0


@dataclass(frozen=True)
class PairReading:
    """One explanation: the dependent pairs ``(m, m)``, the qualities that follow, and how badly it fits.

    `misfit` is the mean square of the residuals of the other pairs, 1 if these are noise. `lenient` is the loss if all
    pairs within a group are taken for dependent, whether or not each is clear by itself.
    """

    dependent: BoolArray
    quality: FloatArray
    loss: float
    misfit: float = 1.0
    lenient: float = float("inf")


@dataclass(frozen=True)
class Readings:
    """The best explanation, and one that says the opposite and fits about as well, if there is one.

    `first` and `second` are the groups of sources that the two readings trust more than the other does.
    """

    best: PairReading
    rival: PairReading | None
    first: IntArray
    second: IntArray

    @property
    def doubtful(self) -> PairReading | None:
        """The reading with copies, where that without any fits about as well."""
        return None if self.best.dependent.any() else self.rival


def read_dependence(
    refit: Callable[[BoolArray], Refit], usable: BoolArray, closeness: FloatArray, flag: float = FLAG
) -> Readings:
    """Return the best explanation of the pair moments, and its rival if the votes cannot tell.

    Parameters
    ----------
    refit : callable
        From the pairs to learn from, ``(m, m)``, to a `Refit`. Residuals are of all pairs and on one scale.
    usable : array of shape (m, m)
        The pairs that were measured and are not known to be dependent.
    closeness : array of shape (m, m)
        How much two sources agree, by which they are clustered.
    flag : float
        Pairs too close by more standard errors than this are dependent.

    Returns
    -------
    Readings
        With no dependent pair in `best`, and no rival, if no pair stands out.
    """
    nothing = np.zeros_like(usable)
    refit = remembered(refit)
    base = refit(usable)
    flagged = _stand_out(base, usable, flag)
    start = PairReading(nothing, base.quality, _loss(base, usable))
    if not flagged.any():
        return Readings(start, None, *reading_groups(start, None))
    found = [_settle(refit, usable, dropped, flag) for dropped in (flagged, *clusters(closeness, usable))]
    kept = [reading for reading in found if reading is not None]
    if not kept:
        unsettled = PairReading(flagged, base.quality, start.loss)
        return Readings(unsettled, None, *reading_groups(unsettled, None))
    best = min(kept, key=lambda reading: reading.loss)
    suggested = found[0]
    # To say much the same as the pairs that stand out, but of other pairs, a reading has to be clearly better.
    if suggested is not None and suggested.loss < best.loss + GAP and not opposed(suggested.quality, best.quality):
        best = suggested
    contrary = [reading for reading in kept if opposed(reading.quality, best.quality)]
    rival = min(contrary, key=lambda reading: reading.loss, default=None)
    # Where even the best reading fits badly, a difference in fit says less.
    if rival is not None and rival.loss - best.loss >= GAP * max(1.0, best.misfit):
        rival = None
    return Readings(best, rival, *reading_groups(best, rival))


def largest_group(dependent: BoolArray) -> IntArray:
    """Return the largest group of sources that dependent pairs link.

    Examples
    --------
    >>> dependent = np.zeros((4, 4), dtype=bool)
    >>> dependent[1, 3] = dependent[3, 1] = True
    >>> largest_group(dependent)
    array([1, 3])
    """
    label = components(dependent)
    sizes = np.bincount(label)
    return np.flatnonzero(label == sizes.argmax())


def remembered(refit: Callable[[BoolArray], Refit]) -> Callable[[BoolArray], Refit]:
    """Return the same fits, each done once: many clusters end in the same pairs."""
    done: dict[bytes, Refit] = {}

    def once(kept: BoolArray) -> Refit:
        key = kept.tobytes()
        if key not in done:
            done[key] = refit(kept)
        return done[key]

    return once


def _settle(
    refit: Callable[[BoolArray], Refit], usable: BoolArray, dropped: BoolArray, flag: float
) -> PairReading | None:
    """Return the reading that starts from these dependent pairs, or None if it leaves nothing to learn from."""
    for _ in range(ROUNDS):
        kept = usable & ~dropped
        if not has_odd_cycle(kept)[usable.any(axis=1)].all():
            return None
        fit = refit(kept)
        more = _stand_out(fit, usable, flag) & ~dropped
        if not more.any():
            break
        dropped = dropped | more
    # Pairs of the cluster that turn out as close as independent sources are not dependent.
    dependent = dropped & (fit.too_close > flag)
    others = np.triu(usable & ~dependent)
    freedom = max(int(others.sum()) - int(usable.any(axis=1).sum()), 1)
    misfit = float(np.minimum(fit.too_close[others] ** 2, APART).sum()) / freedom
    return PairReading(dependent, fit.quality, _loss(fit, usable), misfit)


def _stand_out(fit: Refit, usable: BoolArray, flag: float) -> BoolArray:
    flagged: BoolArray = usable & (fit.too_close > flag)
    return flagged


def _loss(fit: Refit, usable: BoolArray) -> float:
    left, right = np.nonzero(np.triu(usable))
    z = fit.too_close[left, right]
    misfit = np.minimum(z**2, np.where(z > 0, CLOSE, APART)).sum()
    quality = fit.quality[usable.any(axis=1)]
    # Decides between five copies of a poor source and five excellent ones, which violate as many pairs.
    centre = max(float(quality.mean()), LEVEL) if len(quality) else LEVEL
    return float(misfit + ((quality - centre) ** 2).sum() / SPREAD**2)


def clusters(closeness: FloatArray, usable: BoolArray) -> Iterable[BoolArray]:
    """Yield the pairs within each cluster of average linkage that leaves two sources out, or more."""
    active = np.flatnonzero(usable.any(axis=1))
    if len(active) > CLUSTERED:
        return
    groups: list[list[int]] = [[int(source)] for source in active]
    count = 0
    while len(groups) > 1 and count < CLUSTERS:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
        i, j = max(pairs, key=lambda pair: float(closeness[np.ix_(groups[pair[0]], groups[pair[1]])].mean()))
        merged = groups[i] + groups[j]
        groups = [group for index, group in enumerate(groups) if index not in (i, j)] + [merged]
        if len(merged) > len(active) - 2:
            continue
        inside = np.zeros_like(usable)
        inside[np.ix_(merged, merged)] = True
        np.fill_diagonal(inside, False)
        count += 1
        yield inside & usable


def opposed(one: FloatArray, two: FloatArray) -> bool:
    """Return whether two readings rank the sources the other way round."""
    first, second = one - one.mean(), two - two.mean()
    return float(first @ second) < 0.0


def reading_groups(best: PairReading, rival: PairReading | None) -> tuple[IntArray, IntArray]:
    """Return the sources that the first reading trusts more than the second does, and the others."""
    if rival is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    more = (best.quality - best.quality.mean()) - (rival.quality - rival.quality.mean())
    return np.flatnonzero(more >= 0), np.flatnonzero(more < 0)
