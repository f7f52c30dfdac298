"""What every method of learning the scales of sources on a manifold looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray
from consilience.families.base import Passes, Request, Sums
from consilience.families.pair_costs import PairCosts

if TYPE_CHECKING:
    from consilience.families.wrapped import WrappedNormalFamily

__all__ = ["Problem"]

#: Pairs closer than this share of the typical squared distance are copies.
COPIES = 1e-9


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: WrappedNormalFamily
    sums: Sums
    pairs: PairCosts
    request: Request
    passes: Passes | None

    @property
    def active(self) -> BoolArray:
        """Sources that vote."""
        active: BoolArray = np.diag(self.sums["both"]) > 0
        return active

    @property
    def usable(self) -> BoolArray:
        """Pairs that may be used as independent; copies may not, nor two sources that never vary."""
        usable = self.pairs.usable(self.request.dependent)
        constant = self.family.constant_sources(self.sums)
        return usable & ~self.copies & ~np.outer(constant, constant)

    @property
    def copies(self) -> BoolArray:
        """Pairs that never differ."""
        met = self.pairs.usable(np.zeros_like(self.request.dependent))
        level = float(self.pairs.cost[met].max(initial=0.0))
        copies: BoolArray = met & (self.pairs.cost <= COPIES * max(level, 1e-300))
        return copies

    @property
    def typical(self) -> float:
        """The median squared distance between two sources."""
        found = self.pairs.cost[self.usable]
        if len(found):
            return float(np.median(found))
        chance = self.family.mismatch
        if chance is not None and (np.isfinite(chance) & (chance > 0)).any():
            return float(np.median(chance[np.isfinite(chance) & (chance > 0)]))
        return 1.0

    @property
    def floor(self) -> float:
        """A cost that no source is taken to be below."""
        return 1e-4 * self.typical
