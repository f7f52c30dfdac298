"""What every method of learning the lines of sources of scores looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Passes, Request, Sums
from consilience.families.gaussian_moments import ScoreMoments

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily

__all__ = ["Problem"]

#: A pair needs this many items on which both vote.
MIN_CO_VOTES = 5


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: GaussianFamily
    sums: Sums
    moments: ScoreMoments
    request: Request
    passes: Passes | None

    @property
    def active(self) -> BoolArray:
        """Sources whose votes vary."""
        return self.moments.varied

    @property
    def usable(self) -> BoolArray:
        """Pairs that may be used as independent."""
        usable: BoolArray = (self.moments.count >= MIN_CO_VOTES) & ~self.request.dependent
        usable &= np.outer(self.active, self.active)
        np.fill_diagonal(usable, False)
        return usable

    @property
    def dependent(self) -> BoolArray:
        """Dependent pairs of sources that vary."""
        dependent: BoolArray = self.request.dependent & np.outer(self.active, self.active)
        return dependent

    @property
    def scale(self) -> FloatArray:
        """Standard deviation of each source; one for those that do not vary."""
        return np.where(self.active, np.sqrt(self.moments.variance), 1.0)

    @property
    def correlation(self) -> FloatArray:
        """Correlations over the items on which both vote, by the variances of all votes."""
        between = self.moments.covariance / np.outer(self.scale, self.scale)
        return np.clip(between, -1.0, 1.0)

    @property
    def correlation_error(self) -> FloatArray:
        """Their standard errors; those of covariances of Gaussian votes."""
        error: FloatArray = np.sqrt((1.0 + self.correlation**2) / np.maximum(self.moments.count, 1.0))
        return error

    @property
    def can_run(self) -> bool:
        """Whether the likelihood can be taken over the items themselves."""
        return self.passes is not None
