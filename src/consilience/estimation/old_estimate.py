"""The straight line from votes to a `SourceModel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.encoding import encode
from consilience.estimation.changes import changed_labels
from consilience.estimation.known import as_known_labels_say
from consilience.estimation.old_diagnostics import general_diagnostics, items_without_votes
from consilience.estimation.passes import SAMPLE_ITEMS, VotePasses, silent_items
from consilience.estimation.support import consistency_of_costs, plain_vote, with_support
from consilience.exceptions import InvalidVotesError, PriorError, UnknownSourceError, UnsupportedError
from consilience.families.base import Estimate, Family, Request, Sums
from consilience.label_types.base import LabelSpace
from consilience.moments import Moments, as_chunk
from consilience.partitions import InMemoryPartitions, Part, VotePartitions, chooser
from consilience.source_model import SourceModel

__all__ = ["SourceEstimator", "estimate_from_moments", "take_moments"]

#: Items whose votes represent the space before any statistics are taken.
ADAPT_ITEMS = 400
#: Items that a finding names.
SHOWN_ITEMS = 5
NAMED_PRIORS = ("auto", "uniform", "gibbs")


@runtime_checkable
class SourceEstimator(Protocol):
    """A method of your own: anything that turns moments into one weight per source."""

    def estimate(self, moments: Moments, space: LabelSpace, dependencies: tuple[tuple[str, str], ...]) -> FloatArray:
        """Return ``(m,)`` weights."""
        ...


def take_moments(
    space: LabelSpace, partitions: VotePartitions, seed: int, family: Family | None = None
) -> tuple[Moments, VotePasses]:
    """Encode the votes, adapt the family to a few of them, and take the moments of all."""
    if partitions.n_items == 0:
        raise InvalidVotesError("There are no items to learn from. Pass at least one row of votes.")
    encoded = partitions.transform(lambda part: replace(part, votes=encode(part.votes, space)))
    passes = VotePasses(encoded, encoded.n_items, seed)
    if family is None:
        sample = passes.small_sample(ADAPT_ITEMS) if space.law.adapts_to_votes else None
        family = space.law.adapt(sample, encoded.n_items, seed)
    if isinstance(encoded, InMemoryPartitions):
        return Moments(encoded.sources, passes.statistics(family), family), passes
    # Where reading is the larger part of the work, the sample is drawn in the same pass.
    gathered = encoded.reduce(_gatherer(family, chooser(encoded.n_items, SAMPLE_ITEMS, seed)))
    passes = replace(passes, drawn=InMemoryPartitions.of_parts(list(gathered.chosen)), silent=gathered.silent)
    return Moments(encoded.sources, gathered.sums, family), passes


@dataclass(frozen=True)
class _Gathered:
    """What one pass brings: sums, the sampled items of every chunk, and the first ids without a vote."""

    sums: Sums
    chosen: tuple[Part, ...]
    silent: tuple[str, ...]

    def __add__(self, other: _Gathered) -> _Gathered:
        silent = (self.silent + other.silent)[:SHOWN_ITEMS]
        return _Gathered(self.sums + other.sums, self.chosen + other.chosen, silent)


def _gatherer(family: Family, choose: Callable[[Part], Part]) -> Callable[[Part], _Gathered]:
    def gather(part: Part) -> _Gathered:
        sums = family.statistics(as_chunk(part.votes, part.gold, grouped=family.uses_groups))
        everywhere = int(sums["voted_items"]) == len(part)
        return _Gathered(sums, (choose(part),), () if everywhere else silent_items(part, SHOWN_ITEMS))

    return gather


def estimate_from_moments(
    space: LabelSpace,
    moments: Moments,
    passes: VotePasses | None = None,
    *,
    method: str | SourceEstimator = "auto",
    dependencies: Any = "learn",
    prior: Any = "auto",
    seed: int = 0,
    names_given: bool = True,
) -> SourceModel:
    """Learn about the sources from moments alone, or with further passes over the votes."""
    family = moments.law if moments.law is not None else space.law
    if not moments.sources:
        raise InvalidVotesError("There are no moments to learn from. Add Moments.of(votes, space) first.")
    pairs = read_dependencies(dependencies, moments.sources)
    request = Request(
        sources=moments.sources,
        method=method if isinstance(method, str) else "given",
        dependent=_mask(pairs, moments.sources),
        prior=read_prior(prior, space),
        n_gold=moments.n_gold,
        seed=seed,
        learn=isinstance(dependencies, str),
    )
    if isinstance(method, str):
        estimate = family.estimate(moments.sums, request, passes)
    elif isinstance(method, SourceEstimator):
        estimate = _from_estimator(method, moments, space, family, request, pairs)
    else:
        raise UnsupportedError(
            f"method={method!r} is neither a name nor an object with estimate(moments, space, dependencies). "
            f"Names: {', '.join(family.methods)}."
        )
    plain = plain_vote(family, moments, request, passes)
    consistency = None if passes is None else consistency_of_costs(space, moments.sums, passes)
    if passes is not None:
        estimate = with_support(estimate, consistency, plain, space, family, moments.sums, request, passes)
        estimate = as_known_labels_say(estimate, plain, space, family, request, passes)
    summary = family.summary(estimate.parameters)
    general = general_diagnostics(family, moments.sums, summary, request, estimate)
    some_silent = bool(moments.sums["voted_items"] < moments.sums["items"])
    shown = passes.items_without_votes(SHOWN_ITEMS) if passes is not None and some_silent else ()
    general += items_without_votes(moments.sums, shown)
    ordered = sorted(
        (*general, *estimate.diagnostics), key=lambda item: ("error", "warning", "info").index(item.severity)
    )
    seen: dict[tuple[str, tuple[str, ...], str], Any] = {}
    for item in ordered:
        seen.setdefault((item.code, item.sources, item.part), item)
    return SourceModel(
        sources=moments.sources,
        mixture=((1.0, estimate.parameters),),
        summary=summary,
        n_items=moments.n_items,
        votes=np.diag(moments.both).copy(),
        method=estimate.method,
        reason=estimate.reason,
        dependencies=pairs if estimate.dependent is None else _pairs(estimate.dependent, moments.sources),
        diagnostics=tuple(seen.values()),
        names_given=names_given,
        baseline=plain,
        consistency=float("nan") if consistency is None else consistency.correlation,
        changed=float("nan") if passes is None else changed_labels(space, estimate.parameters, plain, passes),
    )


def _from_estimator(
    estimator: SourceEstimator,
    moments: Moments,
    space: LabelSpace,
    family: Family,
    request: Request,
    pairs: tuple[tuple[str, str], ...],
) -> Estimate:
    weight = np.asarray(estimator.estimate(moments, space, pairs), dtype=np.float64)
    if weight.shape != (len(moments.sources),) or not np.isfinite(weight).all():
        raise InvalidVotesError(
            f"{type(estimator).__name__}.estimate returned {weight.shape} weights, not all finite perhaps; "
            f"expected {len(moments.sources)} finite numbers, one per source."
        )
    return Estimate(family.from_weights(weight, request), type(estimator).__name__, "weights by the given estimator")


def read_dependencies(dependencies: Any, sources: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the dependent pairs by name, or say which name is unknown."""
    if dependencies is None or (isinstance(dependencies, str) and dependencies == "learn"):
        return ()
    if isinstance(dependencies, str) or not isinstance(dependencies, Iterable):
        raise UnsupportedError(
            f"dependencies={dependencies!r} is not a list of pairs of source names. "
            "Pass 'learn', None, or a list such as [('a', 'b')]."
        )
    pairs = []
    for pair in dependencies:
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(members := tuple(pair)) != 2:
            raise UnsupportedError(f"Dependency {pair!r} is not a pair of source names. Write it as ('a', 'b').")
        names = tuple(_source_name(member, sources) for member in members)
        if names[0] == names[1]:
            raise UnsupportedError(f"Dependency {pair!r} names the same source twice. Pair it with another one.")
        if (names[1], names[0]) not in pairs:
            pairs.append((names[0], names[1]))
    return tuple(dict.fromkeys(pairs))


def _source_name(member: Any, sources: tuple[str, ...]) -> str:
    if isinstance(member, (int, np.integer)) and not isinstance(member, bool) and 0 <= member < len(sources):
        return sources[int(member)]
    if member in sources:
        return str(member)
    close = get_close_matches(str(member), sources, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(repr(name) for name in sources[:8])
    raise UnknownSourceError(f"dependencies names {member!r}, which is no source.{hint} Sources: {shown}.")


def _pairs(mask: BoolArray, sources: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((sources[left], sources[right]) for left, right in np.argwhere(np.triu(mask, 1)))


def _mask(pairs: tuple[tuple[str, str], ...], sources: tuple[str, ...]) -> BoolArray:
    position = {name: index for index, name in enumerate(sources)}
    mask = np.zeros((len(sources), len(sources)), dtype=bool)
    for left, right in pairs:
        mask[position[left], position[right]] = mask[position[right], position[left]] = True
    return mask


def read_prior(prior: Any, space: LabelSpace) -> str | FloatArray:
    """Return a named prior or checked probabilities."""
    if isinstance(prior, str):
        if prior not in NAMED_PRIORS:
            raise PriorError(f"prior={prior!r} is unknown. Use {', '.join(NAMED_PRIORS)}, or probabilities.")
        if prior != "auto" and not space.takes_prior:
            raise PriorError(
                f"{type(space).__name__} is not finite, so prior={prior!r} has no meaning. Leave it at 'auto'."
            )
        return prior
    size = space.n_labels
    if size is None:
        raise PriorError(f"{type(space).__name__} is not finite, so prior= takes no probabilities. Leave it at 'auto'.")
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise PriorError(
            f"prior={prior!r} is no list of probabilities. Give {size} numbers, or one of {', '.join(NAMED_PRIORS)}."
        ) from None
    if values.shape != (size,):
        raise PriorError(f"prior has shape {values.shape}; expected one probability for each of the {size} labels.")
    if not np.isfinite(values).all() or (values < 0).any():
        worst = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise PriorError(f"prior[{worst}] is {values[worst]}. Probabilities lie between 0 and 1.")
    if abs(values.sum() - 1.0) > 1e-6:
        raise PriorError(f"prior adds up to {values.sum():.6g}, not 1. Divide it by its sum.")
    return values
