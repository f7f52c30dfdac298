"""Qualities on single tags in closed form: loadings, priors from third moments, and the two rates that follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import GROUPS, Chunk, Sums
from consilience.families.pair_costs import blend
from consilience.families.tags.parameters import tag_votes
from consilience.solvers.quadratic import prior_from_skewness, rates_from_loading

__all__ = ["Qualities", "skewness_sums", "solve_prior"]

#: Standard error of a skewness that was read off the vote shares, which takes errors to be even.
SHARE_ERROR = 1.0
#: Skill of a source of which nothing is known.
DEFAULT_SKILL = 0.4


@dataclass(frozen=True)
class Qualities:
    """Qualities ``(m, d)`` of the sources on the tags.

    Parameters
    ----------
    loading
        Two independent sources have the product of theirs as covariance on a tag.
    skill, skill_error
        Sensitivity plus specificity minus 1, with standard errors.
    identified
        Where a source has two independent partners; elsewhere its skill over all tags stands in.
    overall
        ``(m,)`` skill over all tags.
    prior
        ``(d,)`` how often each tag is present.
    least
        Rates are kept this far from 0 and 1.
    """

    mean: FloatArray
    loading: FloatArray
    skill: FloatArray
    skill_error: FloatArray
    identified: BoolArray
    overall: FloatArray
    prior: FloatArray
    least: FloatArray

    @classmethod
    def of(
        cls,
        mean: FloatArray,
        loading: FloatArray,
        error: FloatArray,
        identified: BoolArray,
        prior: FloatArray,
        cast: FloatArray,
    ) -> Qualities:
        """Turn loadings into skills under a prior."""
        scale = np.sqrt(prior * (1.0 - prior))
        skill = np.clip(loading / scale, -1.0, 1.0)
        skill_error = np.where(identified, error / scale, np.inf)
        weight = np.where(identified & np.isfinite(skill_error), 1.0 / (skill_error**2 + 0.01), 0.0)
        total = weight.sum(axis=1)
        overall = np.where(total > 0, (weight * np.where(identified, skill, 0.0)).sum(axis=1), 0.0)
        overall = overall / np.where(total > 0, total, 1.0)
        typical = float(np.median(overall[total > 0])) if (total > 0).any() else DEFAULT_SKILL
        overall = np.where(total > 0, overall, typical)
        skill = np.where(identified, skill, overall[:, None])
        least = np.clip(1.0 / (cast + 2.0), 1e-3, 0.02)
        return cls(mean, skill * scale, skill, skill_error, identified, overall, prior, least)

    def pulled(self, spread: float) -> Qualities:
        """Pull skills on single tags to the skill over all, as far as their standard errors ask for it."""
        others = np.repeat(self.overall[:, None], self.skill.shape[1], axis=1)
        skill, _ = blend(self.skill, self.skill_error, others, np.full(self.skill.shape, spread))
        skill = np.clip(skill, -0.95, 0.95)
        return replace(self, skill=skill, loading=skill * np.sqrt(self.prior * (1.0 - self.prior)))

    @property
    def sensitivity(self) -> FloatArray:
        """How often a source says 1 where the truth is 1."""
        return np.clip(self._rates[0], self.least, 1.0 - self.least)

    @property
    def specificity(self) -> FloatArray:
        """How often a source says 0 where the truth is 0."""
        return np.clip(1.0 - self._rates[1], self.least, 1.0 - self.least)

    @property
    def _rates(self) -> tuple[FloatArray, FloatArray]:
        rates = [
            rates_from_loading(self.mean[:, tag], self.loading[:, tag], float(prior))
            for tag, prior in enumerate(self.prior)
        ]
        return np.stack([one for one, _ in rates], axis=1), np.stack([zero for _, zero in rates], axis=1)


def skewness_sums(chunk: Chunk, mean: FloatArray, loading: FloatArray) -> Sums:
    """Return third moments of centred votes over all triples of sources, and what a skewness of 1 would make of them.

    With x the centred votes of an item times their loadings, the sum over all triples is the third elementary symmetric
    polynomial of x, so that a pass costs no more than the votes.

    Parameters
    ----------
    mean, loading
        ``(m, d)``; a source of loading zero is left out.
    """
    d = mean.shape[1]
    found, unit = np.zeros((GROUPS, d)), np.zeros((GROUPS, d))
    for tag in range(d):
        codes, seen = tag_votes(chunk.labels, chunk.observed, tag)
        centred = np.where(seen, codes - mean[:, tag], 0.0) * loading[:, tag]
        found[:, tag] = np.bincount(chunk.groups, _triples(centred), minlength=GROUPS)
        unit[:, tag] = np.bincount(chunk.groups, _triples(seen * loading[:, tag] ** 2), minlength=GROUPS)
    return Sums({"third": found, "third_unit": unit})


def _triples(values: FloatArray) -> FloatArray:
    """Return the sum over all triples of columns of their product (Newton's identity)."""
    first, second, third = values.sum(axis=1), (values**2).sum(axis=1), (values**3).sum(axis=1)
    total: FloatArray = (first**3 - 3.0 * first * second + 2.0 * third) / 6.0
    return total


def solve_prior(sums: Sums, shares: FloatArray) -> FloatArray:
    """Return ``(d,)`` how often each tag is present, from third moments where they are precise, else `shares`."""
    found, unit = sums["third"], sums["third_unit"]
    total = unit.sum(axis=0)
    known = total > 1e-12
    skewness = np.where(known, found.sum(axis=0) / np.where(known, total, 1.0), 0.0)
    scatter = ((found - skewness * unit) ** 2).sum(axis=0)
    error = np.where(known, np.sqrt(scatter) / np.where(known, total, 1.0), np.inf)
    groups = (unit > 0).sum(axis=0)
    error = np.where(groups >= 10, error, np.inf)  # too few items to tell how precise the third moment is
    assumed = (1.0 - 2.0 * shares) / np.sqrt(shares * (1.0 - shares))
    mixed, _ = blend(skewness, error, assumed, np.full(len(shares), SHARE_ERROR))
    return np.clip(prior_from_skewness(mixed), 1e-3, 1 - 1e-3)
