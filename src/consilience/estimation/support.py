"""Whether the votes support weights at all: is a source that is good elsewhere good here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.passes import VotePasses
from consilience.families.base import Chunk, Diagnostic, Estimate, Family, Parameters, Passes, Request, Sums
from consilience.families.product import ProductFamily, ProductParameters
from consilience.families.product_factors import FieldPasses, sums_of
from consilience.label_types.base import LabelSpace
from consilience.moments import Moments
from consilience.spaces.product import Product

__all__ = ["Consistency", "consistency_of_costs", "plain_vote", "with_support"]

#: Costs between votes that are looked at, so that the check stays cheap whatever the number of items.
PAIRS = 20_000
#: A source needs this many votes, and an item this many voters, before it says something about consistency.
MIN_VOTES, MIN_VOTERS = 5, 3
#: Votes that are predicted from the other votes, with weights and without.
PREDICTED_VOTES = 1_500
#: A consistency below this is hardly any.
LOW = 0.1
#: Weights that differ by a smaller part than this are the same.
SAME = 1e-3
#: Sources are told apart where they differ by more than chance plus this many of its standard deviations.
RATIO_Z = 1.65


class SampledPasses(Passes, Protocol):
    """Passes that can also show a few items at once."""

    def small_sample(self, size: int) -> Chunk:
        """Return a few items in one chunk, in an order that does not depend on theirs."""
        ...


@dataclass(frozen=True)
class _SampledField(FieldPasses):
    """Passes that show one field of a record."""

    passes: SampledPasses

    def small_sample(self, size: int) -> Chunk:
        return self._field(self.passes.small_sample(size))


@dataclass(frozen=True)
class Consistency:
    """How much of the differences between sources returns on other items.

    Parameters
    ----------
    correlation
        Within items, between the mean cost of a source elsewhere and its cost here.
    ratio
        Variance between sources over the one that chance would produce; about 1 where sources are alike.
    """

    correlation: float
    ratio: float
    n_sources: int

    @property
    def by_chance(self) -> bool:
        """Whether sources that are all alike would differ as much; the ratio is then a chi-square over its freedom."""
        return bool(self.ratio <= 1.0 + RATIO_Z * np.sqrt(2.0 / (self.n_sources - 1)))


def plain_vote(family: Family, moments: Moments, request: Request, passes: VotePasses | None) -> Parameters:
    """Return the parameters of sources that all weigh the same, and of which none depends on another."""
    plain = replace(
        request, method="majority", dependent=np.zeros_like(request.dependent), n_gold=0, learn=False, prior="auto"
    )
    if "majority" not in family.methods:
        return family.from_weights(np.ones(len(request.sources)), plain)
    return family.estimate(moments.sums, plain, passes).parameters


def consistency_of_costs(space: LabelSpace, sums: Sums, passes: SampledPasses) -> Consistency | None:
    """Compare the cost of a source on an item to that on all others, item by item; None if the votes cannot tell."""
    both = sums["both"]
    pairs_per_item = (both.sum() - np.trace(both)) / 2.0 / max(int(sums["items"]), 1)
    if pairs_per_item <= 0.0 or (np.diag(both) >= MIN_VOTES).sum() < MIN_VOTERS:
        return None
    chunk = passes.small_sample(int(np.ceil(PAIRS / pairs_per_item)))
    cost, seen = _costs_within_items(space, chunk)
    largest = float(cost.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return None
    return _consistency(cost / largest, seen)  # squares of huge costs would overflow


def _by_width(labels: Batch, observed: BoolArray) -> list[IntArray]:
    """Return the rows whose encoded labels are of one width, for each width: batches of others do not fit together.

    Trees of different sentences differ in width, and so do labels that were padded in different parts of the votes.
    """
    if labels.dtype != object:
        return [np.arange(len(labels))]
    row, voter = np.nonzero(observed)
    first = np.unique(row, return_index=True)[1]
    rows: dict[Any, list[int]] = {}
    for one, source in zip(row[first].tolist(), voter[first].tolist(), strict=True):
        rows.setdefault(np.shape(labels[one, source]), []).append(one)
    return [np.array(some) for some in rows.values()]


def _costs_within_items(space: LabelSpace, chunk: Chunk) -> tuple[FloatArray, FloatArray]:
    """Return the mean cost of each vote to the other votes on its item, and where there are enough of these."""
    observed = chunk.observed & (chunk.observed.sum(axis=1, keepdims=True) >= MIN_VOTERS)
    total = np.zeros(observed.shape)
    row, voter = np.nonzero(observed)
    widths = [np.isin(np.arange(len(observed)), some) for some in _by_width(chunk.labels, observed)]
    for apart in range(1, int(observed.sum(axis=1).max(initial=0))):  # each vote and the one so many after it
        first = np.flatnonzero(row[apart:] == row[:-apart])
        rows, left, right = row[first], voter[first], voter[first + apart]
        cost = np.zeros(len(rows))
        for some in widths:
            same = np.flatnonzero(some[rows])
            if len(same):
                cost[same] = space.cost(chunk.labels[rows[same], left[same]], chunk.labels[rows[same], right[same]])
        total[rows, left] += cost
        total[rows, right] += cost
    others = np.maximum(observed.sum(axis=1, keepdims=True) - 1, 1)
    return total / others, observed.astype(np.float64)


def _consistency(cost: FloatArray, seen: FloatArray) -> Consistency | None:
    seen = seen * (seen.sum(axis=0) >= MIN_VOTES)
    seen = seen * (seen.sum(axis=1, keepdims=True) >= MIN_VOTERS)
    count = seen.sum(axis=0)
    active = count >= 2
    if active.sum() < MIN_VOTERS:
        return None
    # Hard items cost everybody more: only differences between the sources of one item count, and those of items
    # on which votes are far apart no more than the others.
    here = _centred(cost, seen)
    spread = np.sqrt((here**2).sum(axis=1, keepdims=True))
    typical = float(np.median(spread[spread > 0])) if (spread > 0).any() else 0.0
    if typical == 0.0:
        return None
    here = here * np.minimum(1.0, 3.0 * typical / np.maximum(spread, typical * 1e-9))
    total = here.sum(axis=0)
    elsewhere = _centred((total - here) / np.maximum(count - 1, 1), seen)
    size = np.sqrt((here**2).sum() * (elsewhere**2).sum())
    correlation = float((here * elsewhere).sum() / size) if size > 0 else 0.0
    between = float((total[active] ** 2 / count[active]).sum())
    by_chance = float(((here**2).sum(axis=0)[active] / count[active]).sum())
    return Consistency(correlation, between / by_chance if by_chance > 0 else np.inf, int(active.sum()))


def _centred(values: FloatArray, seen: FloatArray) -> FloatArray:
    """Take the mean over the sources of each item away."""
    mean = (values * seen).sum(axis=1, keepdims=True) / np.maximum(seen.sum(axis=1, keepdims=True), 1.0)
    centred: FloatArray = (values - mean) * seen
    return centred


def with_support(
    estimate: Estimate,
    consistency: Consistency | None,
    plain: Parameters,
    space: LabelSpace,
    family: Family,
    sums: Sums,
    request: Request,
    passes: SampledPasses,
) -> Estimate:
    """Return the estimate, or equal weights where it tells sources apart that differ by chance only.

    Equal weights need two witnesses: mean costs of the sources that differ no more than chance would have them, and
    weighted labels that predict the vote of a source left out no better than equal weights do. The second keeps
    weights that rest on something else than the mean cost, such as sources that are good at different classes.
    All else that was learned is kept where the family can make sources alike; else the plain vote is taken. Every
    field of a record is judged on its own.
    """
    if isinstance(space, Product) and isinstance(family, ProductFamily) and isinstance(plain, ProductParameters):
        return _fields_with_support(estimate, plain, space, family, sums, request, passes)
    judged = request.method == "auto" and request.n_gold == 0 and estimate.method != "majority"
    if not judged or consistency is None or not consistency.by_chance or consistency.correlation >= LOW:
        return estimate
    if family.draws_together:
        return _told(estimate, consistency, "their weights were drawn together")
    if request.dependent.any():
        return estimate
    if estimate.dependent is not None and estimate.dependent.any():
        return estimate
    if family.knows_scale:  # lines were moved to equal ones on that scale already; plain means would be off it
        return estimate
    if _is_equal(family.summary(estimate.parameters).weight):
        return _told(estimate, consistency, "every source is given the same weight")
    chunk = passes.small_sample(PREDICTED_VOTES // MIN_VOTERS)
    alike = family.alike(estimate.parameters)
    gain = _gain(space, estimate.parameters, plain if alike is None else alike, chunk)
    if gain is None:
        return estimate
    mean, error = gain
    if mean > error:  # the weights predict votes better
        return estimate
    found = "weights of their own predict no vote better than equal ones do: every source is given the same weight"
    if alike is not None:
        return _told(replace(estimate, parameters=alike), consistency, found)
    equal = family.estimate(sums, replace(request, method="majority", learn=False), passes)
    told = _told(estimate, consistency, found)
    return Estimate(equal.parameters, "majority", told.reason, told.diagnostics)


def _fields_with_support(
    estimate: Estimate,
    plain: ProductParameters,
    space: Product,
    family: ProductFamily,
    sums: Sums,
    request: Request,
    passes: SampledPasses,
) -> Estimate:
    found = {}
    for name, part in estimate.parts.items():
        own, field, sampled = sums_of(sums, name), space.factors[name], _SampledField(passes, name, family.readable)
        asked = replace(request, n_gold=int(own["gold_items"]))
        consistency = consistency_of_costs(field, own, sampled)
        law = family.factors[name].family
        found[name] = with_support(part, consistency, plain[name], field, law, own, asked, sampled)
    changed = any(found[name] is not part for name, part in estimate.parts.items())
    return family.joined(found, sums, passes) if changed else estimate


def _told(estimate: Estimate, consistency: Consistency, consequence: str) -> Estimate:
    """Return the estimate with what was found about differences between sources."""
    seen = consistency.correlation
    message = (
        f"A source that is better on other items is no better here (correlation {seen:.2f}), and {consequence}. "
        "Pass gold= if you know better."
    )
    found = Diagnostic("weights-unsupported", "info", (), message)
    reason = f"sources differ no more than by chance (costs elsewhere and here correlate by {seen:.2f})"
    return replace(estimate, reason=reason, diagnostics=(*estimate.diagnostics, found))


def _is_equal(weight: FloatArray) -> bool:
    """Return whether all sources that count weigh the same, so that nothing is left to make alike."""
    loud = weight[weight > 0]
    return len(loud) > 1 and bool(np.ptp(loud) <= SAME * loud.max())


def _gain(space: LabelSpace, weighted: Parameters, plain: Parameters, chunk: Chunk) -> tuple[float, float] | None:
    """Return by how much weights lower the cost of predicting a vote from the others, and the standard error."""
    item, source = np.nonzero(chunk.observed & (chunk.observed.sum(axis=1, keepdims=True) >= MIN_VOTERS))
    item, source = item[:PREDICTED_VOTES], source[:PREDICTED_VOTES]
    if len(np.unique(item)) < 2:
        return None
    labels, observed = chunk.labels[item], chunk.observed[item].copy()
    observed[np.arange(len(item)), source] = False
    cost = np.zeros((2, len(item)))
    for rows in _by_width(labels, observed):
        for place, parameters in enumerate((weighted, plain)):
            found = space.law.posterior(parameters, labels[rows], observed[rows], "auto").labels
            cost[place, rows] = space.cost(found, labels[rows, source[rows]])
    total, count = np.bincount(item, cost[1] - cost[0]), np.bincount(item)
    mean = float(total.sum() / count.sum())
    return mean, float(np.sqrt(((total - mean * count) ** 2).sum()) / count.sum())
