"""Pair moments of categorical votes: agreement, and the class-summed covariance that is rank one.

With d = (k accuracy - 1) / (k - 1) the covariance of two independent sources that err evenly is g d d',
g = 1 - sum p(c)^2, which is 1 - 1/k for even classes; for two classes it is rank one whatever the confusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Sums
from consilience.families.pair_fits import uncorrelated_influence

__all__ = ["MIN_CO_VOTES", "PairMoments", "pair_moments", "pooled_moments"]

#: A pair needs this many items on which both vote before its covariance is used.
MIN_CO_VOTES = 10


@dataclass(frozen=True)
class PairMoments:
    """Pair quantities, each ``(m, m)`` unless said otherwise.

    Parameters
    ----------
    variance
        ``(m,)`` class-summed variance of the source's own votes.
    influence
        ``(groups, m, m)``: what each group of items adds to the error of `covariance`; the outer
        products sum to its covariance.
    agreement_influence
        The same for `agreement`.
    """

    n_classes: int
    both: FloatArray
    agreement: FloatArray
    covariance: FloatArray
    standard_error: FloatArray
    variance: FloatArray
    influence: FloatArray
    agreement_influence: FloatArray

    @property
    def scale(self) -> float:
        """The factor g of the rank-one form for even classes."""
        return 1.0 - 1.0 / self.n_classes

    def usable(self, dependent: BoolArray) -> BoolArray:
        """Return the pairs that may be used as independent."""
        usable: BoolArray = (self.both >= MIN_CO_VOTES) & ~dependent
        np.fill_diagonal(usable, False)
        return usable

    def clustered(self) -> PairMoments:
        """Return the same with errors for what is counted in clusters, such as the tags of one item."""
        between = np.sqrt((self.influence**2).sum(axis=0))
        return replace(self, standard_error=np.maximum(self.standard_error, between))

    def correlation(self, loading: FloatArray, dependent: BoolArray) -> FloatArray:
        """Return the correlation given the class on the dependent pairs, in [0, 1].

        Parameters
        ----------
        loading
            ``(m,)``; two independent sources have the product of theirs as covariance.
        """
        explained = np.outer(loading, loading)
        own = np.maximum(self.variance - np.diag(explained), 0.1 * self.variance)
        noise = np.sqrt(np.outer(own, own))
        rho = np.divide(
            self.covariance - explained, noise, out=np.zeros_like(noise), where=(noise > 0) & (self.both > 0)
        )
        return np.where(dependent, np.clip(rho, 0.0, 1.0), 0.0)


def pair_moments(sums: Sums, k: int) -> PairMoments:
    """Return the pair moments held in the statistics of one pass."""
    votes = sums["votes"].astype(np.float64)
    total = np.maximum(votes.sum(axis=1), 1.0)
    share = votes / total[:, None]
    variance = 1.0 - (share**2).sum(axis=1)
    if "pairs" in sums:
        return _from_contingency(sums["pairs"].astype(np.float64), k, variance)
    both = sums["both"].astype(np.float64)
    count = np.maximum(both, 1.0)
    agreement = sums["agree"] / count
    covariance = agreement - share @ share.T
    error = np.sqrt(np.maximum(agreement * (1.0 - agreement), 0.05) / count)
    influence = uncorrelated_influence(error)
    return PairMoments(k, both, agreement, covariance, error, variance, influence, influence)


def pooled_moments(parts: Sequence[PairMoments], cast: FloatArray) -> PairMoments:
    """Return the averages over several labels of the same items, each by how often two sources give it.

    Parameters
    ----------
    cast
        ``(parts, m)`` numbers of votes.
    """
    both = np.stack([part.both for part in parts])
    total = np.maximum(both.sum(axis=0), 1.0)
    share = both / total

    def average(name: str) -> FloatArray:
        return np.asarray(sum(weight * getattr(part, name) for weight, part in zip(share, parts, strict=True)))

    error = np.sqrt(np.sum([(weight * part.standard_error) ** 2 for weight, part in zip(share, parts, strict=True)], 0))
    variance = np.stack([part.variance for part in parts])
    return PairMoments(
        n_classes=parts[0].n_classes,
        both=both.sum(axis=0),
        agreement=average("agreement"),
        covariance=average("covariance"),
        standard_error=np.maximum(error, 1e-9),
        variance=(cast * variance).sum(axis=0) / np.maximum(cast.sum(axis=0), 1.0),
        influence=average("influence"),
        agreement_influence=average("agreement_influence"),
    )


def _from_contingency(pairs: FloatArray, k: int, variance: FloatArray) -> PairMoments:
    groups, size, _ = pairs.shape
    m = size // k
    by_group = pairs.reshape(groups, m, k, m, k).transpose(0, 1, 3, 2, 4)  # group, a, b, vote of a, vote of b
    counts = by_group.sum(axis=0)
    both = counts.sum(axis=(2, 3))
    count = np.maximum(both, 1.0)
    left = counts.sum(axis=3) / count[:, :, None]
    right = counts.sum(axis=2) / count[:, :, None]
    term = np.eye(k) - right[:, :, :, None] - left[:, :, None, :]
    term += np.einsum("abc,abc->ab", left, right)[:, :, None, None]
    agreement = np.einsum("abvv->ab", counts) / count
    covariance = np.einsum("abvw,abvw->ab", counts, term) / count
    second = np.einsum("abvw,abvw->ab", counts, term**2) / count
    error = np.sqrt(np.maximum(second - covariance**2, 1e-4) / count)
    if groups > 1:
        centred = term - covariance[:, :, None, None]
        influence = np.einsum("gabvw,abvw->gab", by_group, centred) / count
        agree = np.einsum("gabvv->gab", by_group) - agreement * by_group.sum(axis=(3, 4))
        agreement_influence = agree / count
    else:
        influence = uncorrelated_influence(error)
        agreement_influence = uncorrelated_influence(np.sqrt(agreement * (1 - agreement) / count))
    return PairMoments(k, both, agreement, covariance, error, variance, influence, agreement_influence)
