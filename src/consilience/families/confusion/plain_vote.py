"""The plain vote of categorical sources, and what all their estimates are put together with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Estimate, Request
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.confusion.parameters import ConfusionParameters, one_coin_tables
from consilience.families.confusion.shrinkage import LEAST_SKILL, evened
from consilience.families.findings import fell_back

__all__ = [
    "alike",
    "correlation_of",
    "equal_weights",
    "fallback",
    "fixed_prior",
    "parameters_of",
    "plain_vote",
    "votes_every_class",
    "with_silent",
]

#: Votes for a class are few by chance unless the logarithm of the probability of so few is below minus this.
TELLING = 8.0


def votes_every_class(votes: FloatArray) -> BoolArray:
    """Return which sources vote for all classes that occur, not just some (crowds and judges do)."""
    seen = votes.sum(axis=0) > 0
    total = np.maximum(votes.sum(axis=1), 1.0)
    needed = np.maximum(5.0, 0.02 * total / max(int(seen.sum()), 1))
    needed = np.minimum(needed, np.maximum(0.1 * total, 1.0))  # few votes cannot be asked for five of each class
    enough = (votes >= needed[:, None]) | ~seen
    # By chance hardly any may be for a rare class; and who never votes does not make others labeling functions.
    expected = np.outer(votes.sum(axis=1), votes.sum(axis=0)) / max(float(votes.sum()), 1.0)
    fewer = np.minimum(votes, expected)
    by_chance = expected - fewer + fewer * np.log(np.maximum(fewer, 1e-9) / np.maximum(expected, 1e-9)) < TELLING
    undecided = (enough | by_chance).all(axis=1)
    partial = ~undecided
    every: BoolArray = (enough.all(axis=1) | (undecided & ~partial.any()) | (votes.sum(axis=1) == 0)) & (seen.sum() > 1)
    return every


def fixed_prior(request: Request, k: int) -> FloatArray | None:
    """Return the class frequencies that are not to be learned, or None."""
    if isinstance(request.prior, str):
        # With a 0/1 cost the normaliser is the same for every class, so "gibbs" is "uniform".
        return None if request.prior == "auto" else np.full(k, 1.0 / k)
    return request.prior


def plain_vote(votes: FloatArray, moments: PairMoments, request: Request) -> ConfusionParameters:
    """Return equal weights, with shares of the votes as probabilities."""
    m, k = votes.shape
    usable = moments.usable(request.dependent)
    weights = np.where(usable, moments.both, 0.0)
    agreement = float((moments.agreement * weights).sum() / max(weights.sum(), 1.0)) if usable.any() else 0.64
    skill = max(np.sqrt(max(agreement - 1.0 / k, 0.0) / (1 - 1.0 / k)), LEAST_SKILL)
    accuracy = np.full(m, min((1 + (k - 1) * skill) / k, 0.95))
    total = votes.sum(axis=0) + 1.0
    prior = fixed_prior(request, k)
    parameters = parameters_of(
        one_coin_tables(accuracy, k),
        accuracy,
        total / total.sum() if prior is None else prior,
        np.full(m, np.inf),
        votes,
        moments,
        request,
    )
    return replace(parameters, shares=True, full=votes_every_class(votes))


def fallback(
    votes: FloatArray, moments: PairMoments, request: Request, reason: str, notes: tuple[Diagnostic, ...]
) -> Estimate:
    """Return the plain vote with a finding that says why."""
    return Estimate(plain_vote(votes, moments, request), "majority", reason, (*notes, fell_back(reason)))


def alike(votes: FloatArray, moments: PairMoments, request: Request, reason: str) -> Estimate:
    """Return the plain vote of judges that err independently: shares of votes would understate how sure it is."""
    plain = plain_vote(votes, moments, request)
    even = evened(plain.prior) if fixed_prior(request, votes.shape[1]) is None else plain.prior
    return Estimate(replace(plain, shares=False, prior=even), "majority", reason, (fell_back(reason),))


def equal_weights(votes: FloatArray, moments: PairMoments, request: Request, notes: tuple[Diagnostic, ...]) -> Estimate:
    """Keep equal weights where no source is identified: better than the accident of a solver's start."""
    reason = "no source has two independent partners"
    found = (*notes, fell_back(reason))
    return Estimate(plain_vote(votes, moments, request), request.method, f"equal weights, as {reason}", found)


def parameters_of(
    table: FloatArray,
    accuracy: FloatArray,
    prior: FloatArray,
    error: FloatArray,
    votes: FloatArray,
    moments: PairMoments,
    request: Request,
) -> ConfusionParameters:
    """Put the parameters of sources that vote every class together."""
    m, k = votes.shape
    loading = np.sqrt(1.0 - (prior**2).sum()) * (k * accuracy - 1) / (k - 1)
    full = np.ones(m, dtype=bool)
    parameters = ConfusionParameters(
        table=table,
        full=full,
        prior=prior,
        shift=np.zeros(k),
        abstention=np.zeros((m, k)),
        correlation=correlation_of(moments, loading, votes, full, request.dependent),
        accuracy=accuracy,
        cost_standard_error=np.where(votes.sum(axis=1) > 0, error, np.inf),
    )
    return with_silent(parameters, votes)


def correlation_of(
    moments: PairMoments, loading: FloatArray, votes: FloatArray, full: BoolArray, dependent: BoolArray
) -> FloatArray:
    """Return how far dependent sources repeat each other: given the class, or as a share of common votes."""
    if not dependent.any():
        return np.zeros_like(moments.both)
    conditional = moments.correlation(loading, dependent)
    count = votes.sum(axis=1)
    union = np.maximum(count[:, None] + count[None, :] - moments.both, 1.0)
    common = np.where(dependent, moments.agreement * moments.both / union, 0.0)
    return np.where(np.outer(full, full), conditional, np.clip(common, 0.0, 1.0))


def with_silent(parameters: ConfusionParameters, votes: FloatArray) -> ConfusionParameters:
    """Give sources that never vote the average accuracy of the others."""
    active = votes.sum(axis=1) > 0
    if active.all() or not active.any():
        return parameters
    return replace(parameters, accuracy=np.where(active, parameters.accuracy, parameters.accuracy[active].mean()))
