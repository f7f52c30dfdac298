"""Records of several labels: one family per field, with sources that may be good at one and poor at another.

The law of a vote is the product of the laws of its fields, so every field is learned and inferred by its own
family; what is shared are the sources, the items and the dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import ModelFormatError, UnsupportedError
from consilience.families.base import (
    Chunk,
    Estimate,
    Family,
    Parameters,
    Passes,
    Posterior,
    Request,
    Summary,
    Sums,
    count_sums,
)
from consilience.families.product_factors import Factor, FieldPasses, of_field, prefixed, sums_of, unrelated_cost
from consilience.families.product_parameters import ProductParameters, combined
from consilience.families.records import any_part, is_packed, pack, part_of

__all__ = ["ProductFamily", "ProductParameters"]

#: Largest weight that `weight_from_cost` returns.
MAX_WEIGHT = 2.0**20


@dataclass(frozen=True, eq=False)
class ProductFamily(Family):
    """Votes that are records.

    Parameters
    ----------
    factors
        The fields by name.
    dtype
        Type of a table of records in which nobody votes.
    given_scale, given_scale_error
        Cost of unrelated labels for each field, once votes were seen, and its standard error.
    """

    factors: Mapping[str, Factor]
    dtype: np.dtype[Any]
    given_scale: FloatArray | None = None
    given_scale_error: FloatArray | None = None

    adapts_to_votes: ClassVar[bool] = True

    @property
    def methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """The methods that every field has."""
        first, *others = (factor.family.methods for factor in self.factors.values())
        return tuple(name for name in first if all(name in other for other in others))

    @cached_property
    def scale(self) -> FloatArray:
        """Cost of unrelated labels, one number per field."""
        if self.given_scale is not None:
            return self.given_scale
        chances = [factor.family.unrelated_cost for factor in self.factors.values()]
        return np.array([chance if 0.0 < chance < np.inf else 1.0 for chance in chances])

    @property
    def scale_error(self) -> FloatArray:
        """Standard error of `scale`."""
        return np.zeros(len(self.factors)) if self.given_scale_error is None else self.given_scale_error

    @property
    def rate(self) -> FloatArray:
        """By how much the cost of each field is multiplied in the cost of a record."""
        weights = np.array([factor.weight for factor in self.factors.values()])
        rate: FloatArray = weights / self.scale
        return rate

    @property
    def unrelated_cost(self) -> float:
        return float(sum(factor.weight for factor in self.factors.values()))  # by the choice of the scale

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Family:
        return self._adapted(sample, lambda family, part: family.adapt(part, n_items, seed), seed)

    def adapt_in_parts(self, sample: Chunk, n_items: int, seed: int) -> Family:
        return self._adapted(sample, lambda family, part: family.adapt_in_parts(part, n_items, seed), seed)

    def _adapted(self, sample: Chunk | None, adapt: Callable[[Family, Any], Family], seed: int) -> Family:
        if sample is not None:
            sample = self.readable(sample)
        factors, scale, error = {}, self.scale.copy(), self.scale_error.copy()
        for index, (name, factor) in enumerate(self.factors.items()):
            with of_field(name):
                part = None if sample is None else part_of(sample, name)
                factors[name] = replace(factor, family=adapt(factor.family, part))
                if part is not None:
                    scale[index], error[index] = unrelated_cost(factors[name], factor, part, seed)
        return replace(self, factors=factors, given_scale=scale, given_scale_error=error)

    def measures_like(self, other: Family) -> bool:
        if not isinstance(other, ProductFamily) or list(self.factors) != list(other.factors):
            return False
        return all(self.factors[name].family.measures_like(factor.family) for name, factor in other.factors.items())

    def statistics(self, chunk: Chunk) -> Sums:
        chunk = self.readable(chunk)
        parts = count_sums(chunk)
        for name, factor in self.factors.items():
            with of_field(name):
                parts |= prefixed(name, factor.family.statistics(part_of(chunk, name)))
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        constant = np.diag(sums["both"]) > 0
        for name, factor in self.factors.items():
            own = sums_of(sums, name)
            constant &= factor.family.constant_sources(own) | (np.diag(own["both"]) == 0)
        return constant

    def parts(self, sums: Sums, summary: Summary) -> dict[str, tuple[Family, Sums, Summary]]:
        return {
            name: (factor.family, sums_of(sums, name), summary.parts[name]) for name, factor in self.factors.items()
        }

    def check_method(self, method: str, passes: Passes | None, needs_votes: tuple[str, ...] = ()) -> None:
        for name, factor in self.factors.items():
            if method not in factor.family.methods:
                raise UnsupportedError(
                    f"method={method!r} is not available for the field {name!r}. Use one that every field has: "
                    f"{', '.join(self.methods)}."
                )

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        self.check_method(request.method, passes)
        return self.joined(
            {name: self._estimate_field(name, sums, request, passes) for name in self.factors}, sums, passes
        )

    def joined(self, found: Mapping[str, Estimate], sums: Sums, passes: Passes | None) -> Estimate:
        """Return one estimate of records from those of the fields."""
        methods = [estimate.method for estimate in found.values()]
        votes = np.stack([np.diag(sums[f"{name}/both"]) for name in self.factors])
        parameters = {name: estimate.parameters for name, estimate in found.items()}
        scale, error = self._scales(parameters, sums, passes)
        return Estimate(
            ProductParameters(parameters, scale, votes, error),
            methods[0] if len(set(methods)) == 1 else ", ".join(f"{name}: {found[name].method}" for name in found),
            "; ".join(f"{name}: {estimate.reason}" for name, estimate in found.items()),
            tuple(item.of_part(name) for name, estimate in found.items() for item in estimate.diagnostics),
            parts=found,
        )

    def _scales(
        self, parameters: Mapping[str, Parameters], sums: Sums, passes: Passes | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cost of unrelated labels in every field and its error, by what the fits say about the truth."""
        scale, error = self.scale.copy(), self.scale_error.copy()
        for index, (name, factor) in enumerate(self.factors.items()):
            own = None if passes is None else FieldPasses(passes, name, self.readable)
            found = factor.family.unrelated_truth(parameters[name], sums_of(sums, name), own)
            if found is not None and 0.0 < found[0] < np.inf:
                scale[index], error[index] = found
        return scale, error

    def _estimate_field(self, name: str, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        factor, own = self.factors[name], sums_of(sums, name)
        asked = replace(
            request,
            n_gold=int(own["gold_items"]),
            prior=request.prior if factor.takes_prior else "auto",
        )
        with of_field(name):
            return factor.family.estimate(
                own, asked, None if passes is None else FieldPasses(passes, name, self.readable)
            )

    def round(self, parameters: ProductParameters, chunk: Chunk) -> Sums:
        chunk = self.readable(chunk)
        parts: dict[str, Any] = {}
        for name, factor in self.factors.items():
            parts |= prefixed(name, factor.family.round(parameters[name], part_of(chunk, name)))
        return Sums(parts)

    def posterior(self, parameters: ProductParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return records; ``details`` holds ``name/confidence`` and what else each family tells, by ``name/...``.

        The confidence of a record is the weighted mean of the confidences of the fields that have votes.
        """
        chunk = self.readable(Chunk(labels, observed, np.zeros(len(observed), dtype=np.int64)))
        found: dict[str, Batch] = {}
        voted: dict[str, BoolArray] = {}
        details: dict[str, Any] = {}
        confidence, counted = np.zeros(len(observed)), np.zeros(len(observed))
        for name, factor in self.factors.items():
            part = part_of(chunk, name)
            belief = factor.family.posterior(parameters[name], part.labels, part.observed, decode)
            found[name], voted[name] = belief.labels, np.asarray(part.observed.any(axis=1))
            details[f"{name}/confidence"] = np.where(voted[name], belief.confidence, 0.0)
            if belief.probabilities is not None:
                details[f"{name}/probabilities"] = belief.probabilities
            details |= {f"{name}/{key}": value for key, value in belief.details.items()}
            confidence += factor.weight * details[f"{name}/confidence"]
            counted += factor.weight * voted[name]
        confidence = np.clip(confidence / np.where(counted > 0, counted, 1.0), 0.0, 1.0)
        return Posterior(pack(found, voted), confidence, None, details)

    def summary(self, parameters: ProductParameters) -> Summary:
        """Return the summaries of the fields (`parts`), and what they amount to for whole records.

        ``expected_cost`` is the weighted sum of the costs of the fields, each divided by the cost of unrelated
        labels; ``weight`` is such that ``exp(-weight * cost)`` gives the fields, on average, the weights they have.
        A source that never votes on a field counts there as it does on the fields it votes on.
        """
        parts = {name: factor.family.summary(parameters[name]) for name, factor in self.factors.items()}
        weights = np.array([factor.weight for factor in self.factors.values()])
        return combined(parts, weights, parameters.scale, parameters.scale_error, parameters.votes > 0)

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        factors = {
            name: factor.family.from_weights(
                rate * np.asarray(weight, dtype=float),
                request if factor.takes_prior else replace(request, prior="auto"),
            )
            for rate, (name, factor) in zip(self.rate, self.factors.items(), strict=True)
        }
        votes = np.ones((len(factors), len(weight)), dtype=np.int64)
        return ProductParameters(factors, self.scale, votes, self.scale_error)

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        stored = fields["factors"]
        if list(stored) != list(self.factors):
            raise ModelFormatError(
                f"The model's records have the fields {', '.join(stored)}, and those of the given space "
                f"{', '.join(self.factors)}. Pass the space that the model was fitted with."
            )
        factors = {name: factor.family.restore(stored[name]) for name, factor in self.factors.items()}
        scale = np.asarray(fields["scale"])
        error = np.asarray(fields.get("scale_error", np.zeros(len(scale))))
        return ProductParameters(factors, scale, np.asarray(fields["votes"]), error)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean cost of records drawn with probability proportional to ``exp(-weight * cost)``."""
        weight = np.asarray(weight, dtype=float)
        rates = zip(self.rate, self.factors.values(), strict=True)
        total: FloatArray = np.sum(
            [rate * factor.family.expected_cost(rate * weight) for rate, factor in rates], axis=0
        )
        return total

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the weight by bisection; 0 for what costs more than chance."""
        cost = np.asarray(cost, dtype=float)
        low, high = np.zeros(cost.shape), np.ones(cost.shape)
        while (short := (self.expected_cost(high) > cost) & (high < MAX_WEIGHT)).any():
            high = np.where(short, 2.0 * high, high)
        for _ in range(100):
            middle = (low + high) / 2.0
            above = self.expected_cost(middle) > cost
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        rates = zip(self.rate, self.factors.values(), strict=True)
        pairs = [rate * factor.family.pair_cost(rate * left, rate * right) for rate, factor in rates]
        total: FloatArray = np.sum(pairs, axis=0)
        return total

    def readable(self, chunk: Chunk) -> Chunk:
        """Return a chunk of records in which a vote says something: empty records are abstentions."""
        labels = chunk.labels
        if not is_packed(labels, tuple(self.factors)):  # nobody votes, so the cells were never read
            labels = np.zeros(chunk.observed.shape, dtype=self.dtype)
        is_known = None if chunk.is_known is None or chunk.known is None else chunk.is_known & any_part(chunk.known)
        return replace(chunk, labels=labels, observed=chunk.observed & any_part(labels), is_known=is_known)
