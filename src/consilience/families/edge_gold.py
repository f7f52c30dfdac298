"""What a few known trees say about error rates, beside what agreement says.

Agreement cannot see errors that sources share: tokens that are hard for everybody, wrong heads that attract
everybody. Error rates learned from it are then too small, all in the same direction, and so is their standard error.
Known trees have no such bias, and are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Request, Sums

__all__ = ["GoldErrors", "Settled", "settle"]

#: Known trees contradict the agreement if chance would make them differ less often than this. The test is lenient:
#: sources that err together are the rule, and trusting known trees in vain costs little.
DOUBT = 0.1

#: Error rates are pulled to their mean with the weight of this many tokens.
PULL = 2.0
#: Errors cluster in sentences at least this much, as far as fewer than five known ones can tell.
FEW_SENTENCES, DESIGN_EFFECT = 5, 2.0


@dataclass(frozen=True)
class GoldErrors:
    """Error rates on known trees with standard errors, ``(m,)`` each; infinite for sources that vote on none."""

    error: FloatArray
    standard_error: FloatArray

    @classmethod
    def of(cls, sums: Sums) -> GoldErrors:
        """Return the error rates; their variance is binomial times a factor for clustering, common to all sources."""
        tokens = sums["gold_tokens"].astype(np.float64)
        wrong = sums["gold_wrong"].astype(np.float64)
        if tokens.sum() == 0:
            return cls(np.full(len(tokens), 0.3), np.full(len(tokens), np.inf))
        average = (wrong.sum() + 0.5) / (tokens.sum() + 1.0)
        error = (wrong + PULL * average) / (tokens + PULL)
        binomial = error * (1.0 - error) * tokens
        raw = wrong / np.maximum(tokens, 1.0)
        scatter = (
            sums["gold_square_wrong"] - 2.0 * raw * sums["gold_product"] + raw**2 * sums["gold_square_tokens"]
        ).sum()
        sentences = int(sums["gold_sentences"].max())
        effect = max(1.0, scatter / binomial.sum() * sentences / max(sentences - 1, 1))
        if sentences < FEW_SENTENCES:
            effect = max(effect, DESIGN_EFFECT)
        variance = effect * error * (1.0 - error) / np.maximum(tokens, 1.0)
        return cls(error, np.where(tokens > 0, np.sqrt(variance), np.inf))


@dataclass(frozen=True)
class Settled:
    """Error rates from agreement and known trees together.

    Parameters
    ----------
    factor
        By how much known trees multiply the odds of an error; 1 where they do not contradict the agreement.
    disagree
        Whether they contradict it.
    """

    error: FloatArray
    standard_error: FloatArray
    factor: float
    disagree: bool

    def reason(self, count: int) -> str:
        """Return in words what the known trees did."""
        if self.disagree:
            return f"{count} known trees correct the level"
        return f"{count} known trees agree with it"

    def findings(self, request: Request) -> tuple[Diagnostic, ...]:
        """Return the finding that sources share errors, where known trees show it."""
        if not self.disagree or self.factor <= 1.0:
            return ()
        message = (
            f"Known labels show {self.factor:.1f} times the odds of an error that agreement suggests, so the sources "
            "err together; the known labels decide. Without them every source would look better than it is."
        )
        return (Diagnostic("shared-errors", "info", request.sources, message),)


def settle(error: FloatArray, standard_error: FloatArray, gold: GoldErrors) -> Settled:
    """Combine error rates from agreement with those on known trees.

    Both are compared on the scale of log-odds. If they differ by no more than their standard errors explain (one time
    in ten), they are averaged by precision. Otherwise agreement is wrong about the level: known trees say by how
    much on the average, and by how much sources deviate from that average (the between-source variance of DerSimonian
    and Laird). This variance, and that of the average, is added to that of the agreement before averaging by precision:
    what agreement says counts for as much as it has earned, and known trees count alone where it has earned nothing.
    """
    level, variance = _log_odds(error, standard_error)
    told, told_variance = _log_odds(gold.error, gold.standard_error)
    paired = np.isfinite(variance) & np.isfinite(told_variance)
    shift, doubt, disagree = 0.0, 0.0, False
    if paired.any():
        gap, spread = (told - level)[paired], (variance + told_variance)[paired]
        disagree = _chance((gap**2 / spread).sum(), len(gap)) < DOUBT
        if disagree:
            shift, doubt = _shift(gap, spread)
    moved, moved_variance = level + shift, variance + doubt
    own, other = _precision(moved_variance), _precision(told_variance)
    total = own + other
    known = total > 0
    safe = np.where(known, total, 1.0)
    mixed = np.where(known, (own * moved + other * told) / safe, moved)
    share = 1.0 / (1.0 + np.exp(-mixed))
    spread = np.where(known, share * (1.0 - share) / np.sqrt(safe), np.inf)
    return Settled(share, spread, float(np.exp(shift)), disagree)


def _shift(gap: FloatArray, spread: FloatArray) -> tuple[float, float]:
    """Return the mean gap, and the variance of what remains: between sources, and of the mean itself."""
    weight = 1.0 / spread
    mean = float(np.average(gap, weights=weight))
    if len(gap) < 2:
        return mean, float(gap @ gap)
    excess = float((weight * (gap - mean) ** 2).sum()) - (len(gap) - 1)
    between = max(excess, 0.0) / (weight.sum() - (weight**2).sum() / weight.sum())
    precision = 1.0 / (spread + between)
    return float(np.average(gap, weights=precision)), float(between + 1.0 / precision.sum())


def _log_odds(error: FloatArray, standard_error: FloatArray) -> tuple[FloatArray, FloatArray]:
    share = np.clip(error, 1e-4, 1.0 - 1e-4)
    finite: BoolArray = np.isfinite(standard_error)
    size = np.where(finite, standard_error, 0.0) / (share * (1.0 - share))
    return np.log(share / (1.0 - share)), np.where(finite, np.maximum(size, 1e-6) ** 2, np.inf)


def _precision(variance: FloatArray) -> FloatArray:
    return np.where(np.isfinite(variance), 1.0 / np.where(np.isfinite(variance), variance, 1.0), 0.0)


def _chance(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, value))
