"""Judges whose votes are not independent given the scores: copies of each other, and runs of one judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.solvers.bradley_terry import fit_judges, scores_given_judges
from consilience.solvers.pair_copies import OVERDISPERSION, copied_groups, unexplained
from consilience.solvers.pair_judges import JudgeTraits, PairTable, equal_judges, outcome_moments, totals

__all__ = ["SharedNoise", "correlation_of_runs", "noise_in_arena", "noise_over_prompts", "residuals", "shares"]

#: Shared comparisons below which copies cannot be told from chance, and standard errors that chance may reach.
MIN_SHARED, MIN_ERRORS = 80, 3.0
#: A correlation given what the other judges say that is a copy.
OTHERS_CUT = 0.5
OWN_ROUNDS = 50
#: Nodes of the integral over a difference of scores.
NODES = 9


@dataclass(frozen=True)
class SharedNoise:
    """Correlations between judges.

    Parameters
    ----------
    raw
        ``(m, m)`` of the outcomes on shared comparisons.
    noise
        ``(m, m)`` of what the scores leave unexplained; zero where it is no more than chance.
    shared
        ``(m, m)`` how many comparisons two judges share.
    groups
        ``(m, m)`` pairs of one group, which has one vote together whatever its correlations; None where there is none.
    """

    raw: FloatArray
    noise: FloatArray
    shared: IntArray
    groups: BoolArray | None = None


def residuals(pairs: PairTable, judges: JudgeTraits, mean: FloatArray) -> FloatArray:
    """Return standardised residuals of the outcomes, where differences of scores are known."""
    who = pairs.judge
    expected, variance = outcome_moments(judges.slope[who] * mean + judges.bias[who] * pairs.shown, judges.tie[who])
    return np.asarray((pairs.outcome - expected) / np.sqrt(np.maximum(variance, 0.05)))


def correlation_of_runs(pairs: PairTable, judges: JudgeTraits, mean: FloatArray, question: IntArray) -> float:
    """Return how far answers of one judge to one question go together beyond what scores explain.

    Parameters
    ----------
    question
        Number of the question of each comparison, the same for all runs of it; below zero where there are no runs.
    """
    asked = question >= 0
    if not asked.any():
        return 0.0
    forward = np.where(pairs.first < pairs.second, 1.0, -1.0)
    own = (residuals(pairs, judges, mean) * forward)[asked]
    _, cell = np.unique(question[asked] * pairs.n_judges + pairs.judge[asked], return_inverse=True)
    size = int(cell.max()) + 1
    runs, sums, squares = totals(cell, None, size), totals(cell, own, size), totals(cell, own**2, size)
    again = runs > 1
    room = float(((runs - 1.0) * squares)[again].sum())
    return float(np.clip((sums**2 - squares)[again].sum() / room, 0.0, 1.0)) if room > 0 else 0.0


def noise_in_arena(pairs: PairTable, unit: IntArray) -> SharedNoise:
    """Compare what is left of the votes of two judges after the fit of each one alone.

    The fit of each judge alone takes away its taste; what copies share beyond that is their noise. Residuals of a
    common fit would not do: once copies rule the scores, it is the good judges who seem to go together. How much of
    their taste copies share cannot be seen, so that a group of them has one vote.

    Parameters
    ----------
    unit
        Number of what was shown: the same items in the same order.
    """
    m = pairs.n_judges
    size = int(unit.max(initial=-1)) + 1
    place = pairs.judge * size + unit
    count = totals(place, None, m * size).reshape(m, size)
    seen = (count > 0).astype(np.float64)
    shared = np.array([np.minimum(count, own).sum(axis=1) for own in count]).astype(np.int64)

    def by_unit(values: FloatArray) -> FloatArray:
        return np.asarray(totals(place, values, m * size).reshape(m, size) / np.maximum(count, 1.0))

    def correlation(values: FloatArray) -> FloatArray:
        mean = by_unit(values)
        square = mean**2 @ seen.T
        return np.asarray(mean @ mean.T / np.sqrt(np.maximum(square * square.T, 1e-12)))

    raw = _cleaned(correlation(pairs.outcome), shared >= 2)
    if not (np.triu(shared, 1) >= MIN_SHARED).any():
        return SharedNoise(raw, np.eye(m), shared)
    ties = bool((pairs.outcome == 0).any())
    own = replace(pairs, group=pairs.judge, n_groups=m)
    fit = fit_judges(own, equal_judges(own, ties=ties), ties=ties, rounds=OWN_ROUNDS)
    left, variance, room = unexplained(own, fit.judges, fit.scores.differences(own)[0])
    found = correlation(left)
    expected = by_unit(variance)
    total = np.maximum(expected @ seen.T, 1e-12)
    # Where few outcomes are in doubt, and the same ones for both judges, these few decide.
    error = np.sqrt(np.maximum(expected @ expected.T, 1e-12) / (total * total.T)) * OVERDISPERSION
    error /= np.maximum(np.minimum(room, room[:, None]), 1e-3)
    copied = copied_groups(found, error, shared >= MIN_SHARED)
    return SharedNoise(raw, _cleaned(found, copied), shared, copied)


def noise_over_prompts(pairs: PairTable, judges: JudgeTraits, unit: IntArray) -> SharedNoise:
    """Compare how often two judges agree with how often they should, by the scores that the other judges point to."""
    m = pairs.n_judges
    raw, noise, counts = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m), dtype=np.int64)
    plain = replace(judges, covariance=np.zeros_like(judges.covariance))
    last = {}  # the last vote of each judge on each unit
    for judge in range(m):
        rows = np.flatnonzero(pairs.judge == judge)
        last[judge] = dict(zip(unit[rows].tolist(), rows.tolist(), strict=True))
    for one in range(m):
        for two in range(one):
            both = sorted(last[one].keys() & last[two].keys())
            counts[one, two] = counts[two, one] = len(both)
            if len(both) < 2:
                continue
            left = np.array([last[one][key] for key in both])
            right = np.array([last[two][key] for key in both])
            mine, other = pairs.outcome[left], pairs.outcome[right]
            size = np.sqrt(max(float((mine**2).sum() * (other**2).sum()), 1e-12))
            raw[one, two] = raw[two, one] = float((mine * other).sum()) / size
            if len(both) < MIN_SHARED or m < 3:
                continue
            rest = pairs.where((pairs.judge != one) & (pairs.judge != two))
            excess, room, spread = _excess(pairs, plain, rest, left, right)
            if excess > MIN_ERRORS * spread and excess > OTHERS_CUT * room:
                noise[one, two] = noise[two, one] = min(excess / room, 1.0)
    return SharedNoise(_cleaned(raw, counts >= 2), _cleaned(noise, noise > 0), counts)


def _excess(
    pairs: PairTable, judges: JudgeTraits, rest: PairTable, left: IntArray, right: IntArray
) -> tuple[float, float, float]:
    """Return the agreement beyond what is expected, how much there could be, and its standard deviation by chance."""
    scores = scores_given_judges(rest, judges, rounds=6)
    mean, variance = scores.differences(pairs.where(left))
    nodes, weight = np.polynomial.hermite_e.hermegauss(NODES)
    weight = weight / weight.sum()
    gap = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    parts = []
    for rows in (left, right):
        who, shown = pairs.judge[rows], pairs.shown[rows]
        eta = judges.slope[who][:, None] * gap + (judges.bias[who] * shown)[:, None]
        parts.append(outcome_moments(eta, judges.tie[who][:, None]))
    (one, one_variance), (two, two_variance) = parts
    expected = (one * two) @ weight
    square = ((one**2 + one_variance) * (two**2 + two_variance)) @ weight
    excess = float((pairs.outcome[left] * pairs.outcome[right] - expected).sum())
    room = float(np.sqrt((one_variance @ weight).sum() * (two_variance @ weight).sum()))
    return excess, room, float(np.sqrt(np.maximum(square - expected**2, 0.0).sum()))


def shares(noise: FloatArray, groups: BoolArray | None = None) -> FloatArray:
    """Return how much a vote of each judge counts, so that copies have one vote together.

    Parameters
    ----------
    noise
        ``(m, m)`` correlations.
    groups
        ``(m, m)`` pairs that count as copies whatever their correlation.

    Examples
    --------
    >>> shares(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])).tolist()
    [0.5, 0.5, 1.0]
    """
    together = np.maximum(noise, 0.0) if groups is None else np.where(groups, 1.0, np.maximum(noise, 0.0))
    np.fill_diagonal(together, 1.0)
    return np.asarray(1.0 / together.sum(axis=1))


def _cleaned(correlation: FloatArray, kept: BoolArray) -> FloatArray:
    clean = np.where(kept, np.clip(correlation, -1.0, 1.0), 0.0)
    np.fill_diagonal(clean, 1.0)
    return clean
