"""The law that needs nothing but a cost: votes of any kind, compared pair by pair.

Two votes on one item cost each other less than two votes on different items. The difference is the covariance of two
sources if labels are points of a (perhaps unknown) flat space whose squared distances are the costs; divided by how
far the votes of each source scatter, it is a correlation, and independent sources have the product of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, as_object_array, softmax
from consilience.estimation.pair_table import LIMIT, Forward, PairTable, agreement_table
from consilience.estimation.protocol import (
    Chunk,
    Diagnostic,
    Hypothesis,
    Law,
    Mixture,
    Posterior,
    Request,
    Statistics,
    Summary,
)
from consilience.exceptions import DistanceError
from consilience.label_types.cost_curve import (
    CostCurve,
    SteppedCurve,
    conditional,
    cost_step,
    pair_agreement,
    pooled_curve,
)
from consilience.label_types.held_out import HeldOutLaw, HeldOutParameters
from consilience.label_types.landmarks import Landmarks, first_of_each
from consilience.label_types.pair_costs import CostFunction, MismatchLaw, cost_table, mismatched_costs
from consilience.label_types.vote_correlation import discount_correlated

#: Labels that represent the whole space, and random labels used before any vote is seen. Budgets of time, because the
#: table of their costs grows with the square.
REFERENCES, POOL = 48, 128
#: Up to this many candidates, or labels that recur across items, count as the whole space. Budgets of time.
MAX_LISTED, MAX_RECURRING = 256, 64
#: Votes that are searched for labels missing among the references, and items that are searched for the smallest cost.
LOOKED, LOOKED_ITEMS = 1000, 60
#: One label in so many is held out, to measure how well an embedding keeps the costs of new labels.
JUDGING = 4
#: Share of negative spectrum that squared distances of a flat space may have because of rounded labels.
BENT = 0.03
#: Qualities at which votes are simulated, and truths around which they are drawn. An agreement is accurate to about
#: .05, and a polynomial through all of them smooths it.
SIMULATED_QUALITIES, SIMULATED_TRUTHS = 12, 400
#: With fewer known labels, their scatter is taken from the votes.
BORROWED_GOLD = 10.0
#: A source whose votes scatter by less than this share of the typical one is nearly constant, and agrees with nobody.
STILL = 0.05


@dataclass(frozen=True)
class MetricParameters(HeldOutParameters):
    """Expected costs and weights of m sources, each ``(m,)`` if nothing else is said."""

    expected_cost: Annotated[FloatArray, Axes("m", 0.0)]
    weight: Annotated[FloatArray, Axes("m")]
    correlation: Correlation  # of errors given the truth
    cost_slope: Annotated[FloatArray, Axes("m")]  # how fast the cost falls with the quality of a source
    # Standard error of the cost for given qualities, because the scatter of the truth is unknown
    gauge_error: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    weight_slope: Annotated[FloatArray, Axes("m")]  # how fast the weight falls with the cost
    chance: Annotated[float, Axes("", 0.0, infinite=True)]  # mean cost between unrelated labels
    # The labels over which votes follow the exact law, with their costs; None where there is no list
    listed: Annotated[Batch, Axes("labels ...")] | None = None
    listed_costs: Annotated[FloatArray, Axes("labels labels", 0.0)] | None = None


@dataclass(frozen=True, eq=False)
class MetricLaw(MismatchLaw, HeldOutLaw):
    """Votes known through their pairwise cost."""

    cost: CostFunction  # (n, ...), (n, ...) -> (n,)
    mean: Callable[[Batch, FloatArray], Batch]  # votes (n, m, ...), weights (n, m) -> (n, ...)
    # (n, ...) -> (n, d) embedding, None, or "mds" to learn one (`Landmarks`) from a sample
    coordinates: Callable[[Batch], FloatArray] | str | None = None
    candidates: Batch | None = None  # labels to choose from instead of the votes, or None
    # size, rng -> labels that represent the space before votes are seen, or None
    pool: Callable[[int, np.random.Generator], Batch] | None = None
    # centers, weight, rng -> simulated votes, if the space defines them, or None
    sample: Callable[[Batch, float, np.random.Generator], Batch] | None = None
    exponent: float = 1.0  # power of the cost that is the squared distance of a flat space, or 1
    # Set by `adapt`: votes on different items, one each; the step of the costs, or 0; the distinct labels if they are
    # few and recur, or None
    references: Batch | None = None
    step: float = 0.0
    recurring: Batch | None = None
    parameter_class = MetricParameters

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> MetricLaw:
        """Look at votes on different items, and learn coordinates where asked for."""
        return self._adapted(self.pool_labels if sample is None else _references(sample, seed), sample, seed)

    def adapt_in_parts(self, sample: Chunk, n_items: int, seed: int) -> Law:
        # The measure must be the same in all parts, so it only depends on the votes if nothing else is known.
        pool = self.pool_labels
        return self._adapted(_references(sample, seed) if pool is None else pool, sample, seed)

    def _adapted(self, labels: Batch | None, sample: Chunk | None, seed: int) -> MetricLaw:
        """Return the law with a measure that suits these labels, and with what the votes of a sample look like."""
        law = self._flattened(labels)
        if sample is None or not sample.observed.any():
            return law
        references, rng = _references(sample, seed), np.random.default_rng(seed)
        _check_symmetric(self.cost, references[:12])
        mismatch, _ = mismatched_costs(law.measure, sample, rng)
        rows, columns = sample.places()
        some = rng.permutation(len(rows))[:LOOKED]
        recurring = _recurring(self.cost, references, sample.labels[rows[some], columns[some]])
        step = _smallest_cost(self.cost, sample)
        found = replace(law, references=references, mismatch=mismatch, step=step, recurring=recurring)
        counts = found._listed_votes(sample)
        return found if counts is None else replace(found, mismatch=found._listed_mismatch(counts))

    def _flattened(self, labels: Batch | None) -> MetricLaw:
        """Return the law with coordinates, or with the exponent that makes costs squared distances of a flat space."""
        if labels is None or len(labels) < 2 or callable(self.coordinates):
            return self
        few = self.candidates is not None and len(self.candidates) <= MAX_LISTED
        listed = self.candidates if few else _recurring(self.cost, labels[:REFERENCES], labels)
        if self.coordinates == "mds":
            different = labels[first_of_each(labels)[0]] if listed is None else listed
            judging = different[::JUDGING] if listed is None and len(different) > 2 * JUDGING else None
            landmarks = different if judging is None else np.delete(different, np.s_[::JUDGING], axis=0)
            return replace(self, coordinates=Landmarks.of(self.cost, landmarks, judging))
        if listed is not None:
            return self  # the agreement of two sources is exact, so costs are used unchanged
        squared = cost_table(self.cost, labels, labels) ** 2
        centered = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
        values = np.linalg.eigvalsh(-(centered + centered.T) / 4.0)
        is_flat = np.maximum(-values, 0.0).sum() <= BENT * np.abs(values).sum()
        return replace(self, exponent=2.0) if is_flat else self

    def measures_like(self, other: Law) -> bool:
        if not isinstance(other, MetricLaw):
            return False
        mine, theirs = self.coordinates, other.coordinates
        if isinstance(mine, Landmarks) and isinstance(theirs, Landmarks):
            return np.array_equal(mine.projection, theirs.projection)
        return isinstance(mine, Landmarks) == isinstance(theirs, Landmarks) and self.exponent == other.exponent

    # --- the space, as far as it is known ---------------------------------------------------------------

    def measure(self, left: Batch, right: Batch) -> FloatArray:
        """Return what agreement is measured by: squared distances in a flat space where there is one, or else costs."""
        if callable(self.coordinates):
            return ((self.coordinates(left) - self.coordinates(right)) ** 2).sum(axis=1)
        return self.cost(left, right) ** self.exponent

    @cached_property
    def pool_labels(self) -> Batch | None:
        """Random labels that stand for the space before any vote is seen, where it can make some."""
        return None if self.pool is None else self.pool(POOL, np.random.default_rng(0))

    @cached_property
    def reference_costs(self) -> FloatArray:
        """``(L, L)`` costs among the references."""
        labels = self.pool_labels if self.references is None else self.references
        costs = np.zeros((0, 0)) if labels is None else cost_table(self.cost, labels, labels)
        return costs if costs.max(initial=0.0) > 0 else np.array([[0.0, 1.0], [1.0, 0.0]])

    @property
    def listed(self) -> Batch | None:
        """All labels, where they are known: few candidates, or few labels that recur."""
        labels = self.recurring if self.candidates is None else self.candidates
        return None if labels is None or not 1 < len(labels) <= MAX_LISTED else labels

    @cached_property
    def listed_costs(self) -> FloatArray | None:
        """``(K, K)`` costs between them."""
        costs = None if self.listed is None else cost_table(self.cost, self.listed, self.listed)
        return costs if costs is not None and costs.max() > 0 else None

    @cached_property
    def curve(self) -> CostCurve | SteppedCurve:
        """Mean cost against weight, if votes were drawn from all labels or from the references."""
        if self.listed_costs is not None:
            return pooled_curve(self.listed_costs, complete=True)
        return pooled_curve(self.reference_costs, step=self.step)

    @property
    def _is_listed(self) -> bool:
        return self.exponent == 1.0 and self.listed_costs is not None

    @cached_property
    def _listed_measure(self) -> FloatArray:
        """``(K, K)`` what agreement is measured by, between all labels."""
        return cost_table(self.measure, self.listed, self.listed)  # type: ignore[arg-type]

    def _listed_votes(self, chunk: Chunk) -> IntArray | None:
        """Return ``(m, K)`` how often each source votes for each label of the list, or None if there is another one."""
        if not self._is_listed or self.listed is None:
            return None
        rows, sources = np.nonzero(chunk.observed)
        first, same = first_of_each(chunk.labels[rows, sources])
        cost = cost_table(self.cost, chunk.labels[rows, sources][first], self.listed)
        if (cost.min(axis=1, initial=0.0) > 0).any():
            return None
        size, m = len(self.listed), chunk.observed.shape[1]
        cell = sources * size + cost.argmin(axis=1)[same]
        return np.bincount(cell, minlength=m * size).reshape(m, size)

    def _listed_mismatch(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return ``(m, m)`` how far all votes of two sources are apart."""
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        return share @ self._listed_measure @ share.T

    # --- level 0 ----------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        labels, observed, known, gold = chunk.labels, chunk.observed, chunk.known, chunk.gold_rows
        total = np.zeros((observed.shape[1], observed.shape[1]))
        placed: FloatArray | None = None
        if callable(self.coordinates):
            points = self.coordinates(labels[observed])
            placed = np.zeros((*observed.shape, points.shape[1]))
            placed[observed] = points

        def between(rows: IntArray, a: int, b: int) -> FloatArray:
            cost = self.cost(labels[rows, a], labels[rows, b])
            total[a, b] = total[b, a] = cost.sum()
            if placed is None:
                return cost**self.exponent
            return ((placed[rows, a] - placed[rows, b]) ** 2).sum(axis=1)

        parts = self.pair_sums(chunk, between) | {"pair_cost": total}
        if self.candidates is not None and (counts := self._listed_votes(chunk)) is not None:
            parts["listed_votes"] = counts
        if known is not None and len(gold) > 1:
            apart = self.measure(known[gold], known[np.roll(gold, 1)])
            parts["gold_chance"] = np.array([apart.sum(), len(apart)])
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        table = agreement_table(statistics)
        chance, own, unit, power = self._units(statistics)
        value, error = _raised((chance - table.value) / unit, table.error / unit, power)
        gold_value, gold_error = table.gold_value, table.gold_error
        if gold_value is not None and gold_error is not None:
            truth = float(np.median(own))
            gold_unit = np.full_like(own, truth)
            if not self._is_listed:
                total, count = statistics.get("gold_chance", (0.0, 0.0))
                truth = (total + BORROWED_GOLD * truth) / (count + BORROWED_GOLD)
                gold_unit = np.sqrt(own * truth)
            gold_unit = np.maximum(gold_unit, 1e-300)
            gold_value = ((own + truth) / 2.0 - gold_value) / gold_unit
            gold_value, gold_error = _raised(gold_value, gold_error / gold_unit, power)
        error = np.where(unit > 1e-300, error, np.inf)  # equal votes carry no information
        # If agreement is a power of the measure, the scatter formulas do not apply to it.
        scatter = None if power != 1.0 or table.scatter is None else table.scatter / np.maximum(unit, 1e-150) ** 2
        table = replace(table, scatter=scatter)
        found = replace(table, value=value, error=error, gold_value=gold_value, gold_error=gold_error)
        return self.finished(found, statistics)

    def _units(self, statistics: Statistics) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the measure between votes on different items ``(m, m)``, in sources ``(m,)``, its unit, and a power.

        The power takes the middle agreement to 1 / e, and is 1 where that is lower already. A power of a product is a
        product of powers. It moves sources that are all good, on the scale of how labels scatter, to where their
        differences show.
        """
        count, labels = statistics["agreement_count"], self.pool_labels
        votes = statistics.get("listed_votes", np.zeros(0))
        if votes.sum() == statistics["agreement_votes"].sum() > 0:
            chance = self._listed_mismatch(votes)
        elif self.mismatch is not None:
            chance = self.mismatch
        elif labels is None:
            chance = np.full(count.shape, self.chance_cost**self.exponent)
        else:
            chance = np.full(count.shape, max(float(self.measure(labels, np.roll(labels, 1, axis=0)).mean()), 1e-300))
        usual = float(np.median(np.diag(chance)))
        own = np.maximum(np.diag(chance), STILL * usual)
        unit = np.maximum(np.sqrt(np.outer(own, own)), 1e-300)  # noise changes the scatter, so use correlations
        if self._is_listed:
            return chance, own, unit, 1.0
        met = (count > 0) & ~np.eye(len(count), dtype=bool)
        value = ((chance - statistics["agreement"] / np.maximum(count, 1.0)) / unit)[met]
        middle = float(np.clip(np.median(value), 1e-3, 1.0 - 1e-3)) if met.any() else 0.1
        return chance, own, unit, max(1.0, -1.0 / float(np.log(middle)))

    def forward(self, statistics: Statistics) -> Forward:
        """Return the exact agreement over a list, or that of votes which the space itself draws around the references.

        The agreement of simulated votes over the product of their qualities is smoothed by a polynomial of degree two.
        """
        if self._is_listed and self.listed is not None and self.listed_costs is not None:
            grid = np.linspace(-LIMIT, LIMIT, 81)
            weight = self.weight_from_cost(self.chance_cost * (1.0 - np.tanh(grid)))
            return Forward.of_table(grid, pair_agreement(self.listed_costs, weight, self._listed_measure))
        sample, references, power = self.sample, self.references, self._units(statistics)[-1]
        if callable(self.coordinates) or sample is None or references is None:
            return Forward()
        rng = np.random.default_rng(0)
        truth = references[rng.integers(len(references), size=SIMULATED_TRUTHS)]
        weights = self.weight_from_cost(np.linspace(0.95, 0.02, SIMULATED_QUALITIES) * self.chance_cost)
        first, second = ([sample(truth, float(weight), rng) for weight in weights] for _ in range(2))

        def apart(one: Batch, two: Batch) -> float:
            return float(self.measure(one, two).mean())

        def unrelated(one: Batch, two: Batch) -> float:
            return max(apart(one, two[rng.permutation(len(two))]), 1e-300)

        own = np.array([unrelated(one, two) for one, two in zip(first, second, strict=True)])
        scatter = unrelated(truth, truth)
        near = np.array([(apart(truth, one) + apart(truth, two)) / 2.0 for one, two in zip(first, second, strict=True)])
        quality = ((own + scatter) / 2.0 - near) / np.sqrt(own * scatter)
        table = np.array([[apart(one, two) for two in second] for one in first])
        value = (np.add.outer(own, own) - table - table.T) / 2.0 / np.sqrt(np.outer(own, own))

        def shape(each: FloatArray) -> FloatArray:
            left, right = np.meshgrid(each, each, indexing="ij")
            terms = [np.ones_like(left), left + right, left * right, left**2 + right**2]
            return (left * right)[..., None] * np.stack(terms, axis=-1)

        factor = np.linalg.lstsq(shape(quality).reshape(-1, 4), value.ravel(), rcond=None)[0]
        grid = np.linspace(-LIMIT, LIMIT, 161)
        table = np.clip(shape(np.abs(np.tanh(grid)) ** (1.0 / power)) @ factor, 0.0, 1.0) ** power
        return Forward.of_table(grid, np.outer(np.sign(grid), np.sign(grid)) * table)

    # --- level 2 ----------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> MetricParameters:
        m, chance, quality = len(hypothesis.u), self.chance_cost, hypothesis.quality
        if hypothesis.is_plain:  # costs only affect confidence
            return replace(self._of_costs(np.full(m, 0.5 * chance)), weight=np.ones(m))
        if self._is_listed:
            found = self._of_costs(chance * (1.0 - quality), chance)
            if m > 1 and not request.prior_is("gibbs"):  # nothing can be learned about a single source
                found = replace(found, listed=self.listed, listed_costs=self.listed_costs)
            return replace(found, correlation=hypothesis.correlation)
        _, own, _, power = self._units(statistics)
        # The cost is not linear in the quality near one, so its slope is taken over the error of the quality.
        step = np.minimum(hypothesis.spread, 1.0)
        raised = np.tanh(hypothesis.u + np.multiply.outer([0.0, -1.0, 1.0], step))
        quality = np.sign(raised) * np.abs(raised) ** (1.0 / power)
        # The truth scatters like the votes of good sources. Noise widens the votes of bad ones.
        truth = float(np.average(own, weights=np.clip(quality[0], 0.01, 1.0) ** 8)) if m else 1.0
        cost = np.maximum((own + truth) / 2.0 - quality * np.sqrt(own * truth), 1e-6 * truth)
        # Between own * (1 - q^2) / 2, where errors are added to the truth, and own * (1 - q), where votes replace it.
        gauge = own * (1.0 - quality[0]) ** 2 / 4.0
        *turned, unrelated = self._in_cost_units(np.append(cost, truth))
        found, low, high = np.reshape(turned, cost.shape)
        slope = (low - high) / np.maximum(raised[2] - raised[1], 1e-12)
        parameters = self._of_costs(found, slope, found / np.maximum(cost[0], 1e-300) * gauge)
        return replace(parameters, correlation=hypothesis.correlation, chance=float(unrelated))

    def _of_costs(
        self, cost: FloatArray, slope: FloatArray | float = 0.0, gauge_error: FloatArray | float = 0.0
    ) -> MetricParameters:
        m, weight = len(cost), self.weight_from_cost(cost)
        slope, gauge_error = np.broadcast_to(slope, m).copy(), np.broadcast_to(gauge_error, m).copy()
        weight_slope = 1.0 / np.maximum(np.abs(self.curve.slope(weight)), 1e-12)
        return MetricParameters(cost, weight, np.zeros((m, m)), slope, gauge_error, weight_slope, self.chance_cost)

    def _in_cost_units(self, squared: FloatArray) -> FloatArray:
        """Turn mean squared distances of a flat space into mean costs, by how the two relate on the references."""
        labels, costs = self.references, self.reference_costs
        # If all labels are equal, there is no relation to learn.
        if labels is None or len(labels) != len(costs) or not (callable(self.coordinates) or self.exponent != 1.0):
            return squared
        measure = cost_table(self.measure, labels, labels)
        kept = (measure > 1e-12) & (costs > 1e-12)
        if kept.sum() < 3 or np.ptp(np.log(measure[kept])) < 1e-6:
            return squared
        slope = float(np.clip(np.polyfit(np.log(measure[kept]), np.log(costs[kept]), 1)[0], 0.1, 2.0))
        return float(costs[kept].mean()) / float(measure[kept].mean()) ** slope * squared**slope

    # --- level 3 ----------------------------------------------------------------------------------------

    def posterior(self, parameters: MetricParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        counted = discount_correlated(observed, parameters.correlation)
        weights = np.maximum(parameters.weight, 0.0) * counted
        # Sources without weight count on items on which nobody else votes.
        silent = observed.any(axis=1) & ~(weights > 0).any(axis=1)
        weights[silent] = observed[silent] * 1e-6
        if parameters.listed is not None and parameters.listed_costs is not None and decode != "map":
            return self._among_all(parameters.listed, parameters.listed_costs, parameters, labels, counted)
        best = self._least_expected_cost(labels, weights) if decode == "bayes" else self.mean(labels, weights)
        rows, sources = np.nonzero(weights > 0)
        cost = self.cost(labels[rows, sources], best[rows]) if len(rows) else np.zeros(0)
        spent = np.bincount(rows, weights[rows, sources] * cost, minlength=len(observed)).astype(np.float64)
        stated = _confidence(spent, weights, counted, parameters.expected_cost, parameters.chance)
        return Posterior(best, parameters.come_true(stated))

    def foresee(self, mixture: Mixture, together: FloatArray, sample: Chunk) -> Mixture:
        # With a list of labels, the posterior is exact, and confidence needs no calibration.
        listed = getattr(mixture[0][1], "listed", None) is not None
        return mixture if listed else super().foresee(mixture, together, sample)

    def agreement(self, parameters: MetricParameters, votes: Batch, labels: Batch) -> FloatArray:
        return -self.cost(votes, labels)

    def expected_agreement(self, parameters: MetricParameters, share: FloatArray) -> FloatArray:
        """Return minus the costs of pairs: squares add up in a flat space, elsewhere the shares spared multiply."""
        chance, cost = parameters.chance, parameters.expected_cost
        if self.exponent != 1.0:
            return -np.sqrt(np.add.outer(cost**2, (chance * (1.0 - share)) ** 2))
        return chance * (np.outer(np.maximum(1.0 - cost / max(chance, 1e-100), 0.0), share) - 1.0)

    def _among_all(
        self, listed: Batch, costs: FloatArray, parameters: MetricParameters, votes: Batch, counted: FloatArray
    ) -> Posterior:
        """Return the candidate (or vote) of least expected cost, where every label of a list may be the truth."""
        scores = np.zeros((len(counted), len(listed)))
        voted = [np.flatnonzero(column > 0) for column in counted.T]
        for source, rows in enumerate(voted):
            if len(rows):
                weight = float(parameters.weight[source])
                evidence = weight * cost_table(self.cost, votes[rows, source], listed)
                evidence += conditional(costs, weight).log_normalizer
                scores[rows] -= counted[rows, source, None] * evidence
        belief = softmax(scores)
        if self.candidates is not None:
            expected = belief @ costs
            best = listed[expected.argmin(axis=1)]
        else:
            expected = np.full(counted.shape, np.inf)
            for source, rows in enumerate(voted):
                if len(rows):
                    apart = cost_table(self.cost, votes[rows, source], listed)
                    expected[rows, source] = (belief[rows] * apart).sum(axis=1)
            best = votes[np.arange(len(votes)), expected.argmin(axis=1)]
        spared = 1.0 - expected.min(axis=1) / max(parameters.chance, 1e-100)
        return Posterior(best, np.clip(np.where(np.isfinite(spared), spared, 0.0), 0.0, 1.0))

    def _least_expected_cost(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the candidate (or vote) of least posterior expected cost."""
        best = []
        for mine, weight in zip(votes, weights, strict=True):
            present = weight > 0
            options = mine[present] if self.candidates is None else self.candidates
            if present.any():
                belief = softmax(-cost_table(self.cost, options, mine[present]) @ weight[present])
                best.append(options[int((cost_table(self.cost, options, options) @ belief).argmin())])
            else:
                best.append(mine[0])
        return as_object_array(best) if votes.dtype == object else np.array(best)

    def notes(self) -> tuple[Diagnostic, ...]:
        if not isinstance(self.coordinates, Landmarks):
            return ()
        dimension, eps = len(self.coordinates.projection), self.coordinates.distortion
        message = (
            f"Labels were embedded in {dimension} coordinates to estimate the sources, with a distortion of {eps:.2f}. "
            f"Up to scale, squared distances are {1.0 - eps:.2f} to 1 times the costs of the labels."
        )
        return (Diagnostic("embedding", "info", (), message),)

    # --- summaries for all label types --------------------------------------------------------------------

    def summary(self, parameters: MetricParameters) -> Summary:
        unknown = np.full(len(parameters.weight), np.inf)
        return Summary(parameters.expected_cost, parameters.weight, unknown, unknown, parameters.correlation)

    def quality_errors(
        self, parameters: MetricParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        cost_error = np.hypot(parameters.cost_slope * error, parameters.gauge_error)
        return cost_error, cost_error * parameters.weight_slope

    def from_weights(self, weight: FloatArray, request: Request) -> MetricParameters:
        return replace(self._of_costs(self.expected_cost(weight)), weight=weight)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self.curve.expected_cost(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.curve.weight_from_cost(cost)


def _confidence(
    spent: FloatArray, weights: FloatArray, counted: FloatArray, cost: FloatArray, chance: float
) -> FloatArray:
    """Return the share of chance cost that labels are expected to remove, from the weighted cost `spent` to the votes.

    A mean of the votes has the precision ``1 / cost`` of all together, a medoid at least that of the best one; the
    geometric mean of the two is taken. It is better or worse as the votes on this item lie closer to the label or
    further off than usual, one more vote of the usual cost counted in.
    """
    chance = max(chance, 1e-100)  # zero if all labels are equal
    told = np.maximum(1.0 / np.maximum(cost, 1e-6 * chance) - 1.0 / chance, 0.0)
    told = np.where(weights > 0, told * counted, 0.0)
    together, best = told.sum(axis=1) + 1.0 / chance, told.max(axis=1, initial=0.0) + 1.0 / chance
    usual = weights @ cost
    one = usual / np.maximum((weights > 0).sum(axis=1), 1)
    ratio = (spent + one) / np.maximum(usual + one, 1e-300)
    return np.asarray(np.clip(1.0 - np.minimum(ratio, 3.0) / (chance * np.sqrt(together * best)), 0.0, 1.0))


# --- what votes on different items look like --------------------------------------------------------------


def _references(sample: Chunk, seed: int) -> Batch:
    """Return votes on different items, one each: votes on one item are too alike to represent the space."""
    rng = np.random.default_rng(seed)
    rows, columns = sample.places()
    order = rng.permutation(len(rows))
    _, first = np.unique(rows[order], return_index=True)
    chosen = order[rng.permutation(first)][:REFERENCES]
    return sample.labels[rows[chosen], columns[chosen]]


def _recurring(cost: CostFunction, references: Batch, votes: Batch) -> Batch | None:
    """Return the different labels among votes, or None where most references stand alone or labels are too many."""
    same = cost_table(cost, references, references) <= 0
    if np.mean(same.sum(axis=1) > 1) < 0.5:
        return None
    different = references[same.argmax(axis=1) == np.arange(len(same))]
    missing = votes[(cost_table(cost, votes, different) > 0).all(axis=1)]
    while len(missing) and len(different) <= MAX_RECURRING:
        different = np.concatenate([different, missing[:1]])
        missing = missing[cost_table(cost, missing, missing[:1])[:, 0] > 0]
    return different if 1 < len(different) <= MAX_RECURRING else None


def _smallest_cost(cost: CostFunction, sample: Chunk) -> float:
    """Return the smallest positive cost between votes on one item, 0 where hardly any comes twice."""
    found = [np.zeros(0)]
    for labels, observed in zip(sample.labels[:LOOKED_ITEMS], sample.observed, strict=False):
        if observed.sum() >= 2:
            found.append(cost_table(cost, labels[observed], labels[observed])[np.triu_indices(observed.sum(), 1)])
    costs = np.concatenate(found)
    positive = costs[costs > 0]
    return float(positive.min()) if cost_step(positive) > 0 else 0.0


def _check_symmetric(cost: CostFunction, labels: Batch) -> None:
    table = cost_table(cost, labels, labels)
    shown = [repr(label) for label in labels.tolist()]
    wrong = np.flatnonzero(~np.isclose(np.diag(table), 0.0))
    if len(wrong):
        one = wrong[0]
        raise DistanceError(f"The distance from {shown[one]} to itself is {table[one, one]:.6g}; it must be 0.")
    if not np.allclose(table, table.T):
        one, two = np.argwhere(~np.isclose(table, table.T))[0]
        raise DistanceError(
            f"The distance from {shown[one]} to {shown[two]} is {table[one, two]:.6g}, but {table[two, one]:.6g} back. "
            "Make it symmetric, for instance by taking the mean of both."
        )


def _raised(value: FloatArray, error: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """Return a power of agreements, signs kept, and their standard errors."""
    if power == 1.0:
        return value, error
    size, known = np.abs(value), np.isfinite(error)
    finite = np.where(known, error, 0.0)
    spread = power * np.maximum(size, 1e-3) ** (power - 1.0) * finite
    # The power of an agreement near zero is flat, so the slope is taken one standard error above.
    least = np.minimum(size + finite, 1.0) ** power - size**power
    return np.sign(value) * size**power, np.where(known, np.maximum(spread, least), np.inf)
