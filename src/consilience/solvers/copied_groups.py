"""Which sources copy each other: pairs that vary together more than one common truth explains.

Two independent sources have the covariance ``scale * d * d'``. A group of copies breaks that for its inner pairs, and
if it is large it bends the fit of all others. So every plausible group is left out in turn, one value d per source is
fitted to what remains, and the reading that explains most pairs with values that do not scatter too much is chosen.
That last condition is a bet: five copies of a poor source and five excellent sources break equally many pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["CopiedGroups", "PairCovariances", "Reading", "candidate_groups", "copied_groups", "fit_values"]

#: Independence is kept if no pair is this many standard errors off and chi-square is within three of its own.
STOP_Z, STOP_SIGMAS = 4.0, 3.0
#: ... nor one that far off by a smaller chance than this among all pairs, and chi-square within this share.
STOP_CHANCE, STOP_SHARE = 0.05, 0.1
#: A pair this many standard errors off is no longer fitted; it costs this squared, if too close.
CUT = 3.0
#: Copying cannot push two sources apart, so that a pair too far apart costs up to this many times as much.
APART = 4.0
#: Values of the sources differ by about this much, before anything is known, and their mean is not below the floor.
SPREAD, FLOOR = 0.1, 0.4
#: A flagged pair has at least this correlation given the truth.
LEAST_CORRELATION = 0.25
#: Readings whose losses are this close can hardly be told apart.
CLOSE = 12.0
#: With less in its third best source a reading says that nothing can be learned.
LEAST_VALUE = 0.35
#: From so many sources on, some of the very many pairs would be that far off by chance.
MANY_SOURCES = 64
#: How often pairs are dropped and values fitted again, and the steps of one fit.
REFITS, STEPS, STOP_STEPS = 8, 80, 300
#: With very many sources fewer groups are tried, those that differ most from the rest: so many pairs, and groups.
MAX_PAIRS, MIN_GROUPS = 500_000, 16


@dataclass(frozen=True)
class PairCovariances:
    """What is known about every pair of sources, each ``(m, m)`` but `variance`.

    Parameters
    ----------
    covariance, error
        Covariance of the votes of two sources, and its standard error.
    usable
        Pairs with enough common items; never the diagonal.
    variance
        ``(m,)`` variance of the votes of each source.
    scale
        The factor of ``d * d'`` in the covariance of independent sources.
    chance
        How often a source of value 0 is right; one of value 1 always is.
    """

    covariance: FloatArray
    error: FloatArray
    usable: BoolArray
    variance: FloatArray
    scale: float
    chance: float

    def residual(self, value: FloatArray) -> FloatArray:
        """Return by how many standard errors pairs agree more than ``(..., m)`` values explain."""
        explained = self.scale * value[..., :, None] * value[..., None, :]
        residual: FloatArray = np.where(self.usable, (self.covariance - explained) / self.error, 0.0)
        return residual

    def correlation(self, value: FloatArray) -> FloatArray:
        """Return the correlation of two sources given the truth, within [-1, 1]."""
        own = np.maximum(self.variance - self.scale * value**2, 0.1 * self.variance)
        noise = np.sqrt(np.outer(own, own))
        left = self.covariance - self.scale * np.outer(value, value)
        found = np.divide(left, noise, out=np.zeros_like(noise), where=self.usable & (noise > 0))
        clipped: FloatArray = np.clip(found, -1.0, 1.0)
        return clipped


@dataclass(frozen=True)
class Reading:
    """One way to read the agreements: a value per source, and the pairs that agree beyond them.

    Parameters
    ----------
    value
        ``(m,)``.
    dependent
        ``(m, m)`` flagged pairs.
    correlation
        ``(m, m)`` correlation given the truth; zero outside `dependent`.
    loss
        Twice a negative log-likelihood, up to a constant.
    """

    value: FloatArray
    dependent: BoolArray
    correlation: FloatArray
    loss: float

    @property
    def informative(self) -> bool:
        """Whether three sources or more have something to say."""
        return bool(np.sort(np.abs(self.value))[-3] >= LEAST_VALUE)

    def weight(self) -> FloatArray:
        """Return ``(m,)``: what a vote counts when all dependent partners vote, too."""
        weight: FloatArray = 1.0 / (1.0 + self.correlation.sum(axis=1))
        return weight


@dataclass(frozen=True)
class CopiedGroups:
    """Every reading, the best one first, then by loss; just one if independence explains all pairs."""

    readings: tuple[Reading, ...]

    @property
    def best(self) -> Reading:
        """The reading of least loss, among those that are close the first that trusts three sources or more."""
        return self.readings[0]

    @property
    def rival(self) -> Reading | None:
        """The best reading that trusts those whom the best one distrusts."""
        for other in self.readings[1:]:
            if _contrary(self.best.value, other.value):
                return other
        return None

    @property
    def gap(self) -> float:
        """How much worse the rival explains the pairs; infinite without one."""
        return float("inf") if self.rival is None else self.rival.loss - self.best.loss


def copied_groups(pairs: PairCovariances, evidence: FloatArray | None = None) -> CopiedGroups:
    """Find the pairs that are dependent given the truth.

    Parameters
    ----------
    pairs
        Every source should have at least three usable partners.
    evidence
        ``(m, 2)`` numbers of right and of wrong votes on items whose truth is known; those of dependent sources
        count as one.
    """
    m = len(pairs.variance)
    everything = fit_values(pairs, pairs.usable[None], np.full((1, m), 0.5), 1.0, STOP_STEPS)[0]
    z = pairs.residual(everything)
    if _explains(pairs, z):
        nothing = np.zeros((m, m))
        return CopiedGroups((Reading(everything, nothing.astype(bool), nothing, 0.0),))
    groups = candidate_groups(pairs)
    mask = np.repeat(pairs.usable[None], len(groups), axis=0)
    for index, group in enumerate(groups):
        mask[index][np.ix_(group, group)] = False
    mask = mask[(mask.sum(axis=2) >= 2).all(axis=1)]
    value = _trimmed(pairs, mask)
    readings = sorted((_reading(pairs, row, evidence) for row in value), key=lambda reading: reading.loss)
    # That everybody copies somebody and nobody knows anything explains much, and is of no use.
    preferred = next((reading for reading in readings if reading.informative), readings[0])
    allowed = CLOSE if evidence is None else 2.0 * CLOSE  # known labels decide between those that say something
    if preferred.loss < readings[0].loss + allowed:
        readings = [preferred, *(reading for reading in readings if reading is not preferred)]
    return CopiedGroups(tuple(readings))


def candidate_groups(pairs: PairCovariances) -> list[IntArray]:
    """Return the empty group and the clusters of three dendrograms of correlations, up to all but three sources."""
    from scipy.cluster.hierarchy import linkage

    m = len(pairs.variance)
    spread = np.sqrt(np.maximum(np.outer(pairs.variance, pairs.variance), 1e-12))
    related = np.where(pairs.usable, pairs.covariance, 0.0) / spread
    distance = np.clip(1.0 - related, 0.0, 2.0)
    found: dict[tuple[int, ...], float] = {(): np.inf}
    for method in ("average", "single", "complete"):
        members: dict[int, tuple[int, ...]] = {index: (index,) for index in range(m)}
        ties = {index: related[index] for index in range(m)}  # of everybody to the group; they add up
        for step, (left, right, _, _) in enumerate(linkage(distance[np.triu_indices(m, 1)], method)):
            group = tuple(sorted(members.pop(int(left)) + members.pop(int(right))))
            tie = ties.pop(int(left)) + ties.pop(int(right))
            members[m + step], ties[m + step] = group, tie
            if len(group) <= m - 3:
                inside = float(tie[list(group)].sum())
                outside = float(tie.sum()) - inside
                found[group] = inside / (len(group) - 1) - outside / (m - len(group))
    chosen = sorted(found, key=lambda group: -found[group])[: max(MAX_PAIRS // m**2, MIN_GROUPS)]
    return [np.array(group, dtype=np.int64) for group in chosen]


def fit_values(pairs: PairCovariances, mask: BoolArray, start: FloatArray, spread: float, steps: int) -> FloatArray:
    """Fit one value per source to the pairs in each of several masks, pulled to the mean of all values.

    Half steps of simultaneous least squares never diverge: the matrix of the problem, scaled to a unit diagonal, has
    eigenvalues between 0 and 2.

    Parameters
    ----------
    mask
        ``(c, m, m)``.
    start
        ``(c, m)``; the result has this shape, within [-1, 1].
    spread
        Standard deviation of the pull to the mean.
    """
    precision = np.where(mask, 1.0 / pairs.error**2, 0.0)
    target = precision * np.where(pairs.usable, pairs.covariance, 0.0)
    value = start
    for _ in range(steps):
        loading = (pairs.scale * value)[:, :, None]
        pull = value.mean(axis=1, keepdims=True) / spread**2
        upper = np.matmul(target, loading)[:, :, 0] + pull
        lower = np.matmul(precision, loading**2)[:, :, 0] + 1.0 / spread**2
        updated = 0.5 * (value + np.clip(upper / lower, -1.0, 1.0))
        moved = float(np.abs(updated - value).max())
        value = updated
        if moved < 1e-6:
            break
    return value


def _explains(pairs: PairCovariances, z: FloatArray) -> bool:
    measured = z[np.triu(pairs.usable)]
    freedom = max(len(measured) - len(pairs.variance), 1)
    # Among very many pairs some are far off by chance, and their standard errors are estimates, too.
    limit = 1.0 + max(STOP_SIGMAS * np.sqrt(2.0 / freedom), STOP_SHARE)
    farthest = max(STOP_Z, _rare(len(measured)))
    return bool(np.abs(measured).max(initial=0.0) < farthest and (measured**2).sum() / freedom < limit)


def _rare(count: int) -> float:
    """Return the standard errors that hardly any of so many pairs is off by chance."""
    return NormalDist().inv_cdf(1.0 - STOP_CHANCE / 2.0 / max(count, 1))


def _flagged_from(pairs: PairCovariances) -> float:
    """Return from how many standard errors on a pair is called dependent."""
    if len(pairs.variance) < MANY_SOURCES:
        return CUT
    return max(CUT, _rare(int(np.triu(pairs.usable).sum())))


def _trimmed(pairs: PairCovariances, mask: BoolArray) -> FloatArray:
    """Fit, drop the pairs that do not fit, and fit again until the pairs stay the same."""
    value = np.full(mask.shape[:2], 0.5)
    moving = np.arange(len(mask))
    for _ in range(REFITS):
        value[moving] = fit_values(pairs, mask[moving], value[moving], SPREAD, STEPS)
        z = np.abs(pairs.residual(value[moving]))
        kept = pairs.usable & (z < CUT)
        for row, source in np.argwhere(kept.sum(axis=2) < 2):  # everybody keeps two partners
            nearest = np.argsort(np.where(pairs.usable[source], z[row, source], np.inf))[:2]
            kept[row, source, nearest] = kept[row, nearest, source] = True
        changed = (kept != mask[moving]).any(axis=(1, 2))
        mask[moving] = kept
        moving = moving[changed]
        if not len(moving):
            break
    return value


def _reading(pairs: PairCovariances, value: FloatArray, evidence: FloatArray | None) -> Reading:
    z = pairs.residual(value)
    cost = np.minimum(z**2, np.where(z > 0, CUT**2, APART * CUT**2))
    loss = float(cost[np.triu(pairs.usable)].sum())
    loss += float(((value - max(value.mean(), FLOOR)) ** 2).sum()) / SPREAD**2
    correlation = pairs.correlation(value)
    dependent = pairs.usable & (z > _flagged_from(pairs)) & (correlation > LEAST_CORRELATION)
    reading = Reading(value, dependent, np.where(dependent, correlation, 0.0), loss)
    if evidence is None:
        return reading
    right = np.clip(pairs.chance + (1.0 - pairs.chance) * value, 0.05, 0.95)
    # Beside votes at random, so that readings with more independent votes do not seem less likely for that alone.
    told = evidence[:, 0] * np.log(right / pairs.chance)
    told += evidence[:, 1] * np.log((1.0 - right) / (1.0 - pairs.chance))
    return Reading(value, dependent, reading.correlation, loss - 2.0 * float(told @ reading.weight()))


def _contrary(left: FloatArray, right: FloatArray) -> bool:
    """Return whether two readings rank the sources the other way round."""
    return bool((left - left.mean()) @ (right - right.mean()) < 0)
