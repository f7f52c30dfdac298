"""What every method of learning the errors of sources of vectors looks at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Passes, Request, Sums
from consilience.families.vector_fits import from_matrices, moment_matrices, truth_law
from consilience.families.vector_moments import VectorMoments
from consilience.families.vector_rounds import Plan

if TYPE_CHECKING:
    from consilience.families.vector import VectorFamily, VectorParameters

__all__ = ["Problem"]

#: A pair needs this many items on which both vote.
MIN_CO_VOTES = 5
#: No source has less noise than this share of its variance.
NOISE_FLOOR = 1e-4
#: Covariances below minus this many standard errors together make a source an adversary.
AGAINST = 4.0
#: y has a diagonal covariance below so many items per coordinate.
PER_LAW = 2


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: VectorFamily
    sums: Sums
    moments: VectorMoments
    request: Request
    passes: Passes | None

    @cached_property
    def shared_error(self) -> FloatArray:
        """``(m, m)`` standard errors of the traces of covariances, of Gaussian votes."""
        moments = self.moments
        own = moments.own
        together = np.einsum("ade,bed->ab", own, own, optimize=True)
        between = moments.covariance if moments.full else moments.covariance[..., None]
        across = np.einsum("abde,abed->ab", between, between) if moments.full else (between[..., 0] ** 2).sum(axis=2)
        error: FloatArray = np.sqrt(np.maximum(together + across, 1e-300) / np.maximum(moments.count, 1.0))
        return error

    @cached_property
    def paired(self) -> BoolArray:
        """Pairs of sources that vary, are not said to be dependent, and meet often enough."""
        varied = self.moments.varied
        paired: BoolArray = (self.moments.count >= MIN_CO_VOTES) & ~self.request.dependent & np.outer(varied, varied)
        np.fill_diagonal(paired, False)
        return paired

    @cached_property
    def against(self) -> BoolArray:
        """Sources that move against the others: they cannot be the truth plus noise."""
        z = np.where(self.paired, self.moments.shared_trace / self.shared_error, 0.0)
        partners = self.paired.sum(axis=1)
        score = z.sum(axis=1) / np.sqrt(np.maximum(partners, 1))
        against: BoolArray = (partners >= 2) & (score < -AGAINST) & ((z < 0).sum(axis=1) * 2 > partners)
        return against if int((self.moments.varied & ~against).sum()) >= 3 else np.zeros_like(against)

    @cached_property
    def active(self) -> BoolArray:
        """Sources whose votes vary, and not against the others."""
        return self.moments.varied & ~self.against

    @cached_property
    def usable(self) -> BoolArray:
        """Pairs that may be used as independent."""
        usable: BoolArray = self.paired & np.outer(self.active, self.active)
        return usable

    @property
    def votes(self) -> FloatArray:
        """``(m,)`` votes of each source."""
        return np.diag(self.moments.count)

    @property
    def typical_votes(self) -> float:
        """Median number of votes of the active sources."""
        return float(np.median(self.votes[self.active])) if self.active.any() else 0.0

    def start(self) -> VectorParameters:
        """Return matrix triplets with a prior, to start from."""
        variance = truth_law(self.family, self.moments, self.usable)[1]
        noise = moment_matrices(self.moments, self.usable, "triplets", variance)
        return from_matrices(self.family, self.moments, noise, self.active, self.usable, self.request.dependent)

    def plan(self, structure: str, offsets: bool) -> Plan:
        """Return a plan for EM that keeps what is known about y."""
        known = self.request.n_gold > 0
        mean = self.family.mean is None and (known or not offsets)
        items = float(self.votes.max(initial=0.0))
        law = "full" if items >= PER_LAW * self.family.d else "diagonal"
        return Plan(structure, offsets, self.active, self.floor, law, mean, self.family.covariance is None)

    @property
    def floor(self) -> FloatArray:
        """``(m,)`` least noise variance of each source."""
        least: FloatArray = NOISE_FLOOR * np.trace(self.moments.own, axis1=1, axis2=2) / self.family.d
        return least
