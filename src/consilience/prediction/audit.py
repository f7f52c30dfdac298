"""How good the labels of all items are, estimated from items that were labeled by hand, with valid intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_floats, hash_priority, is_null
from consilience.estimation.calibration import share_right
from consilience.estimation.protocol import Diagnostic, Posterior
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.prediction.inference import infer, vote_distances
from consilience.prediction.intervals import Estimate, estimate_mean
from consilience.prediction.source_model import SourceModel
from consilience.tables.display import Cell, aligned, findings_fragment, table_fragment
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["Audit", "audit", "expected_distance", "strata_of", "usual_distance"]

#: Folds of the known labels that the model learned from.
FOLDS = 5
#: Strata by how far votes are apart. K strata of equal size explain 1 - 1 / K^2 of what a line explains: 96%.
STRATA = 5


@dataclass(frozen=True)
class Audit:
    """Estimates over all items from those that were labeled by hand, each with a 95% interval.

    Parameters
    ----------
    measure
        "accuracy" where a label is right or wrong (larger is better), else "mean distance" (smaller is better).
    labels, plain_vote, difference
        The measure of the labels, of the plain vote, and the first minus the second.
    sources, classes, slices
        The same measure for the votes of each source, for the items with each label, and for each value of `by`.
    shares
        The true share of each label, for finite label types.
    mean_score
        The mean of the true scores; None for other label types.
    stated, confidence
        The mean confidence that the model states, and what it should be.
    cross_fitted
        How many known labels the model had learned from. They were compared with labels of models that had not.
    """

    measure: str
    labels: Estimate
    plain_vote: Estimate
    difference: Estimate
    sources: Mapping[str, Estimate]
    classes: Mapping[Any, Estimate]
    slices: Mapping[Any, Estimate]
    shares: Mapping[Any, Estimate]
    mean_score: Estimate | None
    stated: float
    confidence: Estimate
    cross_fitted: int = 0

    def labels_needed(self, margin: float) -> int:
        """Return about how many more items to label by hand for an interval of plus or minus `margin` for `labels`."""
        if not isinstance(margin, (int, float)) or not margin > 0:
            raise UnsupportedError(f"margin={margin!r} is not a width. Use a positive number, such as 0.02.")
        return self.labels.labels_needed(float(margin))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """A finding if the stated confidence lies outside the interval."""
        real = self.confidence
        if real.known == 0 or real.low <= self.stated <= real.high:
            return ()
        message = (
            f"The mean stated confidence is {self.stated:.3f}, but the audit finds {real.low:.3f} to {real.high:.3f}. "
            "Fit again with these known labels (gold=) to calibrate it."
        )
        return (Diagnostic("audit-disagrees", "warning", (), message),)

    def rows(self) -> Iterator[tuple[str, str, Estimate]]:
        """Yield what the estimate is about (``"source ann"``), its measure, and the estimate."""
        yield "labels", self.measure, self.labels
        yield "plain vote", self.measure, self.plain_vote
        yield "labels - plain vote", self.measure, self.difference
        for kind, found in (("items of", self.slices), ("labeled", self.classes), ("source", self.sources)):
            for name, one in found.items():
                yield f"{kind} {name}", self.measure, one
        for name, one in self.shares.items():
            yield f"truth {name}", "share", one
        if self.mean_score is not None:
            yield "truth", "mean score", self.mean_score

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns of a table."""
        rows = list(self.rows())
        return {
            "about": [about for about, _, _ in rows],
            "measure": [measure for _, measure, _ in rows],
            **{name: [getattr(one, name) for _, _, one in rows] for name in ("value", "low", "high", "known", "items")},
        }

    def _shown(self) -> dict[str, list[str]]:
        return {
            name: [f"{one:.3f}" if isinstance(one, float) else str(one) for one in values]
            for name, values in self.columns().items()
        }

    def __str__(self) -> str:
        return "\n".join([*aligned(self._shown()), *map(str, self.diagnostics)])

    def _repr_html_(self) -> str:
        table = table_fragment((name, list(map(Cell.text, texts))) for name, texts in self._shown().items())
        return table + findings_fragment(self.diagnostics)


@dataclass(frozen=True)
class _View:
    """What one model says about the items with a vote: its belief, with encoded labels, the labels of its plain vote,
    and strata of items whose losses may differ.
    """

    belief: Posterior
    plain: Batch
    strata: IntArray

    @property
    def labels(self) -> Batch:
        return self.belief.labels


#: The values of the known items, and the values that a view expects for all items.
_Values = Callable[[_View], tuple[FloatArray, FloatArray]]


def audit(
    model: SourceModel,
    space: LabelSpace,
    votes: Votes,
    gold: Votes | None,
    decode: str,
    refit: Callable[[Votes | None], SourceModel],
    weights: Any = None,
    by: Any = None,
) -> Audit:
    """Estimate how good the labels of these votes are from the known labels `gold`.

    `refit` learns again from other known labels. It is called if the model learned from some of those given here.
    """
    if gold is None:
        raise InvalidVotesError("An audit needs known labels, but gold contains none. Label a few items by hand first.")
    encoded = encode(votes, space)
    rows = np.flatnonzero(votes.observed.any(axis=1))
    weight = _weights(weights, len(votes))
    is_known = gold.observed[:, 0] & np.isfinite(weight)
    known = np.flatnonzero(is_known[rows])
    if len(known) == 0:
        raise InvalidVotesError(
            "No item has a known label, a vote and a weight. Label the items that model.suggest(votes, k) returns."
        )
    slices = _slices(by, len(votes))
    voted, truth, weight = encoded[rows], gold.labels[rows[known], 0], weight[rows[known]]

    def view_of(one: SourceModel) -> _View:
        own, plain = (infer(each, space, votes, decode).posterior for each in (one, one.as_baseline()))
        belief = _subset(own, rows)
        belief = replace(belief, labels=space.as_batch(belief.labels))
        return _View(belief, space.as_batch(plain.labels[rows]), strata_of(space, belief, voted))

    main = view_of(model)
    _, clusters = np.unique(votes.items[rows[known]], return_inverse=True)
    used = np.isin(hash_priority(votes.items[rows[known]]), model.known_items)
    # Random folds, the same in every run, with all rows of an item in one fold.
    _, drawn = np.unique(hash_priority(votes.items[rows[known]], seed=1), return_inverse=True)
    fold = np.where(used, drawn % FOLDS, FOLDS)
    views = [main] * (FOLDS + 1)
    for number in np.unique(fold[used]):
        held_out = rows[known[fold == number]]
        seen = gold.observed.copy()
        seen[held_out] = False
        seen[rows[known[~used]]] = False
        views[number] = view_of(refit(replace(gold, observed=seen) if seen.any() else None))

    scale = usual_distance(space, voted, main.labels)
    zero_one = space.right_or_wrong and voted.labels.ndim == 2
    n_labels = space.n_labels if main.belief.probabilities is not None else None
    farthest = np.inf
    if n_labels is not None:
        codes = np.arange(n_labels, dtype=main.labels.dtype)
        farthest = max(float(space.distance(np.full_like(codes, code), codes).max()) for code in codes)

    def expects(view: _View, batch: Batch, which: IntArray | slice = slice(None)) -> FloatArray:
        return expected_distance(space, view.belief, batch, which, scale)

    def loss(pick: Callable[[_View], Batch]) -> _Values:
        return lambda view: (space.distance(pick(view)[known], truth), expects(view, pick(view)))

    def of_source(source: int) -> _Values:
        seen = np.flatnonzero(voted.observed[:, source])
        both = np.flatnonzero(voted.observed[known, source])

        def values(view: _View) -> tuple[FloatArray, FloatArray]:
            found, expected = np.zeros(len(known)), np.zeros(len(rows))
            if len(both):
                found[both] = space.distance(voted.labels[known[both], source], truth[both])
            expected[seen] = expects(view, voted.labels[seen, source], seen)
            return found, expected

        return values

    everything = np.ones(len(rows), dtype=bool)

    def measured(chosen: BoolArray, of: _Values, **limits: Any) -> Estimate:
        """Return a mean over the chosen items; `limits` say how it is bounded."""
        inside, values, control = chosen[known], np.zeros(len(known)), np.zeros(len(known))
        variance, strata = 0.0, np.zeros(len(known), dtype=np.int64)
        sizes = np.zeros((len(known), 1 + max(int(view.strata.max()) for view in views)))
        for number in np.unique(fold[inside]):
            value, expected = of(views[number])
            own, stratum = fold == number, views[number].strata
            strata[own] = stratum[known[own]]
            sizes[own] = np.bincount(stratum[chosen], minlength=sizes.shape[1]) / chosen.sum()
            values[own] = value[own]
            control[own] = expected[known[own]] - expected[chosen].mean()
            variance = max(variance, float(expected[chosen].var()))
        return estimate_mean(
            values[inside],
            control[inside],
            weight[inside],
            int(chosen.sum()),
            variance=variance,
            clusters=clusters[inside] if clusters.max() + 1 < len(clusters) else None,
            strata=strata[inside],
            sizes=sizes[inside],
            **limits,
        )

    def measure_of(chosen: BoolArray, of: _Values) -> Estimate:
        mean_loss = measured(chosen, of, zero_one=zero_one, scale=scale, limits=(0.0, farthest))
        return mean_loss.transformed(-1.0, 1.0) if space.right_or_wrong else mean_loss

    def over(groups: npt.NDArray[Any]) -> dict[Any, Estimate]:
        names = {name: None for name in groups.tolist() if not is_null(name)}
        return {name: measure_of(groups == name, loss(lambda view: view.labels)) for name in names}

    classes: dict[Any, Estimate] = {}
    shares: dict[Any, Estimate] = {}
    if n_labels is not None:
        spelled = space.as_labels(np.arange(n_labels), votes.spelling or votes.labels.dtype).tolist()
        classes = {spelled[int(code)]: one for code, one in over(main.labels.astype(np.int64)).items()}

        def share_of(code: int) -> _Values:
            right = (truth == code).astype(np.float64)
            return lambda view: (right, cast(FloatArray, view.belief.probabilities)[:, code])

        for code in np.unique(np.concatenate([main.labels, truth]).astype(np.int64)).tolist():
            shares[spelled[code]] = measured(everything, share_of(code), zero_one=True)
    mean_score = None
    if space.continuous and main.labels.ndim == 1 and main.labels.dtype.kind == "f":
        mean_score = measured(everything, lambda view: (truth.astype(float), view.labels.astype(float)))
    columns = [source for source in range(voted.n_sources) if voted.observed[:, source].any()]

    def doubt(view: _View) -> tuple[FloatArray, FloatArray]:
        right = share_right(space, space.law, _subset(view.belief, known), truth)
        return 1.0 - right, 1.0 - view.belief.confidence

    mean_doubt = measured(everything, doubt, zero_one=n_labels is not None, scale=1.0, limits=(0.0, 1.0))
    return Audit(
        measure="accuracy" if space.right_or_wrong else "mean distance",
        labels=measure_of(everything, loss(lambda view: view.labels)),
        plain_vote=measure_of(everything, loss(lambda view: view.plain)),
        difference=_difference(space, views, known, truth, expects, measured),
        sources={voted.sources[one]: measure_of(voted.observed[:, one], of_source(one)) for one in columns},
        classes=classes,
        slices={} if slices is None else over(slices[rows]),
        shares=shares,
        mean_score=mean_score,
        stated=float(main.belief.confidence.mean()),
        confidence=mean_doubt.transformed(-1.0, 1.0),
        cross_fitted=int(used.sum()),
    )


def expected_distance(
    space: LabelSpace, belief: Posterior, batch: Batch, which: IntArray | slice = slice(None), scale: float = 1.0
) -> FloatArray:
    """Return the distance to the truth that the model expects of labels, up to a factor without probabilities.

    `which` are the items of the labels, and `scale` is a usual distance.
    """
    if belief.probabilities is None:
        apart: FloatArray = space.distance(batch, belief.labels[which])
        return apart + scale * (1.0 - belief.confidence[which])
    probabilities = belief.probabilities[which]
    total = np.zeros(len(probabilities))
    for code in range(probabilities.shape[1]):
        total += probabilities[:, code] * space.distance(batch, np.full(len(total), code, dtype=belief.labels.dtype))
    return total


def strata_of(space: LabelSpace, belief: Posterior, votes: Votes) -> IntArray:
    """Return the stratum of each item; losses may differ between strata in a way that the model does not expect.

    Items of one stratum have the same label (finite label types), or votes that are about as far from the label.
    """
    if belief.probabilities is not None:
        return belief.labels.astype(np.int64)
    apart = np.nanmean(vote_distances(space, votes, belief.labels), axis=1)
    return np.digitize(apart, np.quantile(apart, np.arange(1, STRATA) / STRATA), right=True)


def usual_distance(space: LabelSpace, votes: Votes, labels: Batch) -> float:
    """Return the usual distance of a wrong vote to the label: the mean distance, each weighted by itself."""
    apart = vote_distances(space, votes, labels)
    total = float(np.nansum(apart))
    return float(np.nansum(apart**2)) / total if total > 0 else 0.0


def _difference(
    space: LabelSpace,
    views: list[_View],
    known: IntArray,
    truth: Batch,
    expects: Callable[[_View, Batch], FloatArray],
    measured: Callable[..., Estimate],
) -> Estimate:
    """Return the difference of the measure between labels and plain vote, which comes from items where they differ.

    The distance between the two labels of an item bounds the difference of their losses.
    """
    apart = np.max([space.distance(view.labels, view.plain) for view in views], axis=0)
    inside = apart > 0.0
    sign = -1.0 if space.right_or_wrong else 1.0
    if not inside.any():
        return Estimate(0.0, 0.0, 0.0, len(known), len(inside))

    def values(view: _View) -> tuple[FloatArray, FloatArray]:
        own, plain = (space.distance(batch[known], truth) for batch in (view.labels, view.plain))
        return own - plain, expects(view, view.labels) - expects(view, view.plain)

    most = float(apart[inside].mean())
    if space.right_or_wrong:  # -1, 0 or 1, counted as 0, 1/2 or 1

        def halves(view: _View) -> tuple[FloatArray, FloatArray]:
            known_values, expected = values(view)
            return (known_values + 1.0) / 2.0, (expected + 1.0) / 2.0

        found = measured(inside, halves, zero_one=True).transformed(2.0, -1.0)
    else:
        found = measured(inside, values, limits=(-most, most))
    if found.known == 0:
        found = Estimate(0.0, -most, most, 0, 0)
    return replace(found.transformed(sign * float(inside.mean())), known=len(known), items=len(inside))


def _subset(belief: Posterior, which: IntArray) -> Posterior:
    """Return the belief about some of the items, without details."""
    probabilities = None if belief.probabilities is None else belief.probabilities[which]
    return Posterior(belief.labels[which], belief.confidence[which], probabilities)


def _weights(weights: Any, n_items: int) -> FloatArray:
    if weights is None:
        return np.ones(n_items)
    found = as_floats(weights)
    if found is None:
        raise InvalidVotesError(
            f"weights={weights!r} are not numbers. Give one over the probability of each item, or NaN."
        )
    if found.shape != (n_items,):
        raise InvalidVotesError(f"weights has shape {found.shape} for {n_items} items. Give one per item.")
    bad = np.flatnonzero(~((found > 0) & (found < np.inf)) & ~np.isnan(found))
    if len(bad):
        raise InvalidVotesError(
            f"weights[{bad[0]}] is {found[bad[0]]}. A weight is one over a probability, or NaN for an item that was "
            "not drawn at random."
        )
    return found


def _slices(by: Any, n_items: int) -> npt.NDArray[Any] | None:
    if by is None:
        return None
    found = np.array(list(by), dtype=object)
    if found.shape != (n_items,):
        raise InvalidVotesError(f"by has shape {found.shape} for {n_items} items. Give one value per item.")
    return found
