"""Records: one law per field, with sources that may be good at one and poor at another.

The law of a vote is the product of the laws of its fields, so the pipeline learns every field on its own; what is
shared are the sources, the items and the dependencies that the user gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.pair_table import PairTable
from consilience.estimation.protocol import (
    Chunk,
    CompositeLaw,
    Hypothesis,
    Law,
    Mixture,
    Parameters,
    Posterior,
    Request,
    Statistics,
    Summary,
)
from consilience.exceptions import ConsilienceError, UnsupportedError
from consilience.label_types.cost_curve import find_root

__all__ = ["Factor", "ProductLaw", "any_part", "is_packed", "layout", "of_field", "pack", "part_labels", "part_there"]

#: Records are structured arrays with the labels of all fields and flags for the fields that are present.
LABELS, OBSERVED = "labels", "observed"
#: Largest weight that `weight_from_cost` returns.
MAX_WEIGHT = 2.0**20
#: Pairs of votes on different items, from which the distance of unrelated votes is estimated.
UNRELATED_PAIRS = 2000


@dataclass(frozen=True, eq=False)
class Factor:
    """One field of a product, with the cost between two batches of labels and the weight beside other fields."""

    law: Law
    cost: Callable[[Batch, Batch], FloatArray]
    weight: float = 1.0
    takes_prior: bool = False

    def unrelated_cost(self, sample: Chunk, seed: int, otherwise: float) -> float:
        """Return the cost of unrelated labels: as the law knows it, else the mean cost of votes on different items."""
        if 0.0 < self.law.chance_cost < np.inf:
            return self.law.chance_cost
        rows, columns = sample.places()
        rng = np.random.default_rng(seed)
        pairs = np.stack([rng.permutation(len(rows))[:UNRELATED_PAIRS] for _ in range(2)])
        left, right = pairs[:, rows[pairs[0]] != rows[pairs[1]]]
        if len(left) == 0:
            return otherwise
        seen = self.cost(sample.labels[rows[left], columns[left]], sample.labels[rows[right], columns[right]]).mean()
        return float(seen) if 0.0 < seen < np.inf else otherwise


@dataclass(frozen=True)
class ProductParameters(Parameters):
    """What is known about the sources, field by field; ``parameters["stars"]`` is what is most probable of one."""

    factors: Mapping[str, Mixture]
    scale: Annotated[FloatArray, Axes("fields", 0.0)]  # cost of unrelated true labels, by which costs are divided
    votes: Annotated[IntArray, Axes("fields m", 0)]  # how many votes each source cast on each field

    def __getitem__(self, name: str) -> Parameters:
        return self.factors[name][0][1]


@dataclass(frozen=True, eq=False)
class ProductLaw(CompositeLaw):
    """Votes that are records."""

    factors: Mapping[str, Factor]
    dtype: np.dtype[Any]  # for records without votes
    given_scale: FloatArray | None = None  # (fields,) cost of unrelated labels, once votes were seen
    parameter_class = ProductParameters
    adapts_to_votes: ClassVar[bool] = True

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"fields": len(self.factors)}

    @property
    def methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """The methods that every field has."""
        first, *others = (law.methods for law in self.fields.values())
        return tuple(name for name in first if all(name in other for other in others))

    @property
    def fields(self) -> Mapping[str, Law]:
        return {name: factor.law for name, factor in self.factors.items()}

    @cached_property
    def scale(self) -> FloatArray:
        """Cost of unrelated labels, one number per field."""
        if self.given_scale is not None:
            return self.given_scale
        chances = [law.chance_cost for law in self.fields.values()]
        return np.array([chance if 0.0 < chance < np.inf else 1.0 for chance in chances])

    @property
    def weights(self) -> FloatArray:
        """How much each field counts."""
        return np.array([factor.weight for factor in self.factors.values()])

    @property
    def rate(self) -> FloatArray:
        """By how much the cost of each field is multiplied in the cost of a record."""
        return np.asarray(self.weights / self.scale)

    @property
    def chance_cost(self) -> float:
        return float(self.weights.sum())  # by the choice of the scale

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> ProductLaw:
        return self._adapted(sample, lambda law, part: law.adapt(part, n_items, seed), seed)

    def adapt_in_parts(self, sample: Chunk, n_items: int, seed: int) -> ProductLaw:
        return self._adapted(sample, lambda law, part: law.adapt_in_parts(part, n_items, seed), seed)

    def _adapted(self, sample: Chunk | None, adapt: Callable[[Law, Any], Law], seed: int) -> ProductLaw:
        factors, scale = {}, self.scale.copy()
        for index, (name, factor) in enumerate(self.factors.items()):
            with of_field(name):
                part = None if sample is None else self.field_chunk(sample, name)
                factors[name] = replace(factor, law=adapt(factor.law, part))
                if part is not None:
                    scale[index] = factors[name].unrelated_cost(part, seed, scale[index])
        return replace(self, factors=factors, given_scale=scale)

    def measures_like(self, other: Law) -> bool:
        if not isinstance(other, ProductLaw) or list(self.factors) != list(other.factors):
            return False
        return all(law.measures_like(other.fields[name]) for name, law in self.fields.items())

    def check_method(self, method: str, *, has_votes: bool) -> None:
        for name, law in self.fields.items():
            if method not in law.methods:
                raise UnsupportedError(
                    f"method={method!r} is not available for the field {name!r}. Use one that every field has: "
                    f"{', '.join(self.methods)}."
                )

    # --- field by field -------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        parts = self._readable(chunk).counts()
        for name, law in self.fields.items():
            with of_field(name):
                own = law.statistics(self.field_chunk(chunk, name))
                parts |= {f"{name}/{key}": value for key, value in own.items()}
        return Statistics(parts)

    def field_statistics(self, statistics: Statistics, name: str) -> Statistics:
        start = f"{name}/"
        own = {key.removeprefix(start): value for key, value in statistics.items() if key.startswith(start)}
        return Statistics(own)

    def field_chunk(self, chunk: Chunk, name: str) -> Chunk:
        """Return the votes on one field: a source that leaves it out abstains there."""
        chunk = self._readable(chunk)
        labels, observed = part_labels(chunk.labels, name), chunk.observed & part_there(chunk.labels, name)
        if chunk.known is None or chunk.is_known is None:
            return Chunk(labels, observed, items=chunk.items, by_name=chunk.by_name)
        is_known = chunk.is_known & part_there(chunk.known, name)
        return Chunk(labels, observed, part_labels(chunk.known, name), is_known, chunk.items, chunk.by_name)

    def _readable(self, chunk: Chunk) -> Chunk:
        """Return a chunk of records in which a vote says something: empty records are abstentions."""
        labels = chunk.labels
        if not is_packed(labels, tuple(self.factors)):  # nobody votes, so the cells were never read
            labels = np.zeros(chunk.observed.shape, dtype=self.dtype)
        is_known = None if chunk.is_known is None or chunk.known is None else chunk.is_known & any_part(chunk.known)
        return replace(chunk, labels=labels, observed=chunk.observed & any_part(labels), is_known=is_known)

    def field_request(self, request: Request, name: str) -> Request:
        return request if self.factors[name].takes_prior else replace(request, prior="auto")

    def join(self, parts: Mapping[str, Mixture], statistics: Statistics) -> ProductParameters:
        votes = np.stack([np.diag(statistics[f"{name}/both"]) for name in self.factors])
        # Noise makes votes on different items farther apart than true labels, so the parameters are more accurate.
        apart = np.array(
            [sum(share * law.unrelated_cost(one) for share, one in parts[name]) for name, law in self.fields.items()]
        )
        known = (apart > 0.0) & np.isfinite(apart)
        return ProductParameters(dict(parts), np.where(known, apart, self.scale), votes)

    def join_summaries(self, parts: Mapping[str, Summary], parameters: ProductParameters) -> Summary:
        """Return what the fields amount to for whole records.

        ``expected_cost`` is the weighted sum of the costs of the fields, each divided by the cost of unrelated
        labels; ``weight`` is such that ``exp(-weight * cost)`` gives the fields, on average, the weights they have.
        A source that never votes on a field counts there as it does on the fields it votes on.
        """
        scale, weights = parameters.scale[:, None], self.weights[:, None]
        voted = parameters.votes > 0
        used = np.where(voted.any(axis=0), voted, True)
        present = np.where(used, weights, 0.0).sum(axis=0)
        filled = weights.sum() / present

        def used_parts(name: str) -> FloatArray:
            return np.where(used, np.stack([getattr(part, name) for part in parts.values()]), 0.0)

        cost, cost_error = (used_parts(name) * weights / scale for name in ("expected_cost", "cost_standard_error"))
        weight, error = (used_parts(name) * scale for name in ("weight", "standard_error"))
        together = used[:, :, None] & used[:, None, :]
        correlation = np.where(together, np.stack([part.correlation for part in parts.values()]), 0.0)
        return Summary(
            expected_cost=filled * cost.sum(axis=0),
            weight=weight.sum(axis=0) / present,
            standard_error=np.sqrt((error**2).sum(axis=0)) / present,
            cost_standard_error=filled * np.sqrt((cost_error**2).sum(axis=0)),
            correlation=correlation.sum(axis=0) / np.maximum(together.sum(axis=0), 1),
            parts=dict(parts),
        )

    # --- labels ---------------------------------------------------------------------------------------

    def posterior(self, parameters: ProductParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return records; ``details`` holds ``name/confidence`` and what else each law tells, by ``name/...``.

        The confidence of a record is the share of the cost of unrelated records that the fields with votes are expected
        to spare; ``name/confidence`` is what the law of a field states.
        """
        found, voted, stated = {}, {}, []
        details: dict[str, Any] = {}
        for name, law in self.fields.items():
            part = self.field_chunk(Chunk(labels, observed), name)
            mixture = parameters.factors[name]
            each = [(share, law.posterior(one, part.labels, part.observed, decode)) for share, one in mixture]
            belief = each[0][1] if len(each) == 1 else law.average(each, decode)
            found[name], voted[name] = belief.labels, np.asarray(part.observed.any(axis=1))
            stated.append(np.where(voted[name], law.spared(belief), 0.0))
            details |= {f"{name}/{key}": value for key, value in belief.details.items()}
            details[f"{name}/confidence"] = np.where(voted[name], belief.confidence, 0.0)
            if belief.probabilities is not None:
                details[f"{name}/probabilities"] = belief.probabilities
        counted = self.weights @ np.stack(list(voted.values()))
        confidence = np.clip(self.weights @ np.stack(stated) / np.where(counted > 0, counted, 1.0), 0.0, 1.0)
        return Posterior(pack(found, voted), confidence, None, details)

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: ProductParameters) -> Summary:
        return self.join_summaries(
            {name: law.summary(parameters[name]) for name, law in self.fields.items()}, parameters
        )

    def from_weights(self, weight: FloatArray, request: Request) -> ProductParameters:
        weight = np.asarray(weight, dtype=float)
        factors: dict[str, Mixture] = {
            name: ((1.0, law.from_weights(rate * weight, self.field_request(request, name))),)
            for rate, (name, law) in zip(self.rate, self.fields.items(), strict=True)
        }
        return ProductParameters(factors, self.scale, np.ones((len(factors), len(weight)), dtype=np.int64))

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean cost of records drawn with probability proportional to ``exp(-weight * cost)``."""
        weight = np.asarray(weight, dtype=float)
        rates = zip(self.rate, self.fields.values(), strict=True)
        return np.asarray(sum(rate * law.expected_cost(rate * weight) for rate, law in rates))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the weight by bisection; 0 for what costs more than chance."""
        cost = np.asarray(cost, dtype=float)
        flat = np.zeros(cost.shape)
        return find_root(lambda weight: (self.expected_cost(weight) - cost, flat), flat, 0.0, MAX_WEIGHT)

    def pair_table(self, statistics: Statistics) -> PairTable:
        raise NotImplementedError  # fields have one each

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> Parameters:
        raise NotImplementedError  # fields have their own


# --- records --------------------------------------------------------------------------------------------


def layout(parts: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> np.dtype[Any]:
    """Return the type of records whose parts have these types and label shapes."""
    labels = np.dtype([(name, dtype, shape) for name, (dtype, shape) in parts.items()])
    return np.dtype([(LABELS, labels), (OBSERVED, np.dtype([(name, np.bool_) for name in parts]))])


def pack(labels: Mapping[str, Batch], observed: Mapping[str, BoolArray]) -> Batch:
    """Return records from one array of labels per part, and from where the part is there."""
    shape = next(iter(observed.values())).shape
    packed = np.zeros(
        shape, dtype=layout({name: (array.dtype, array.shape[len(shape) :]) for name, array in labels.items()})
    )
    for name, array in labels.items():
        packed[LABELS][name] = array
        packed[OBSERVED][name] = observed[name]
    return packed


def is_packed(array: Batch, names: tuple[str, ...]) -> bool:
    """Return whether an array holds records with these fields."""
    return array.dtype.names == (LABELS, OBSERVED) and array.dtype[LABELS].names == names


def part_labels(records: Batch, name: str) -> Batch:
    """Return the labels of one part, in an array of their own."""
    return np.ascontiguousarray(records[LABELS][name])


def part_there(records: Batch, name: str) -> BoolArray:
    """Return where one part is there."""
    return np.ascontiguousarray(records[OBSERVED][name])


def any_part(records: Batch) -> BoolArray:
    """Return which labels hold anything at all; all of them if they are not records."""
    if records.dtype.names != (LABELS, OBSERVED):
        return np.ones(records.shape[:1], dtype=bool)
    names = records.dtype[LABELS].names or ()
    return np.any([records[OBSERVED][name] for name in names], axis=0)


@contextmanager
def of_field(name: str) -> Iterator[None]:
    """Say in an error of the library which field it is about."""
    try:
        yield
    except ConsilienceError as error:
        error.args = (f"field {name!r}: {error}",)
        raise
