"""The steps from votes to what is known about the sources, in order.

    votes -> statistics -> pair table -> trust -> hypotheses -> parameters -> EM -> mixture

One pass computes sums, and one engine decides which sources to trust. The law of the label type computes parameters
for each hypothesis, and one EM driver refines them. Nothing flows back, and no stage depends on the label type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.calibration import calibrate
from consilience.estimation.diagnostics import count_findings, guessing_sources, items_without_votes, trust_findings
from consilience.estimation.em import polish
from consilience.estimation.known_labels import as_random_sample, without_known_labels
from consilience.estimation.passes import VotePasses, silent_items
from consilience.estimation.protocol import (
    MEAN,
    SAMPLE_ITEMS,
    SPREAD,
    CompositeLaw,
    Diagnostic,
    Hypothesis,
    Law,
    Mixture,
    Parameters,
    Request,
    Statistics,
    Summary,
    Trust,
)
from consilience.exceptions import (
    ConsilienceError,
    InvalidVotesError,
    PriorError,
    UnknownSourceError,
    UnsupportedError,
    did_you_mean,
)
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import (
    InMemoryPartitions,
    Moments,
    Part,
    VotePartitions,
    as_chunk,
    chooser,
    known_items,
)
from consilience.prediction.inference import believe
from consilience.prediction.source_model import SourceModel
from consilience.progress import working
from consilience.tables.encoding import encode

__all__ = ["SourceEstimator", "learn", "take_moments"]

#: Items whose votes represent the space before any statistics are taken.
ADAPT_ITEMS = 400
#: Items that a finding names.
SHOWN_ITEMS = 5
#: Items that are also labeled by the plain vote, to report how many labels differ.
COMPARED_ITEMS = 200
#: Labels on a continuous scale differ if their distance exceeds this share of the median distance between two votes.
DIFFERENT_SHARE = 0.1
NAMED_PRIORS = ("auto", "uniform", "gibbs")


@runtime_checkable
class SourceEstimator(Protocol):
    """A method of your own: anything that turns moments into one weight per source."""

    def estimate(self, moments: Moments, space: LabelSpace, dependencies: tuple[tuple[str, str], ...]) -> FloatArray:
        """Return ``(m,)`` weights."""
        ...


# --- one pass over the votes ----------------------------------------------------------------------------


def take_moments(
    space: LabelSpace, partitions: VotePartitions, seed: int, law: Law | None = None
) -> tuple[Moments, VotePasses]:
    """Encode the votes, adapt the law to a few of them, and take the statistics of all."""
    if partitions.n_items == 0:
        raise InvalidVotesError("There are no items to learn from. Pass at least one row of votes.")
    encoded = partitions.transform(lambda part: replace(part, votes=encode(part.votes, space)))
    passes = VotePasses(encoded, encoded.n_items, seed)
    if law is None:
        sample = passes.small_sample(ADAPT_ITEMS) if space.law.adapts_to_votes else None
        law = space.law.adapt(sample, encoded.n_items, seed)
    if isinstance(encoded, InMemoryPartitions):
        whole = encoded.whole
        return Moments(encoded.sources, passes.statistics(law), law, known_items(whole.votes, whole.gold)), passes
    # If reading takes most of the time, the sample is drawn in the same pass.
    choose = chooser(encoded.n_items, SAMPLE_ITEMS, seed)

    def gather(part: Part) -> _Gathered:
        statistics = law.statistics(as_chunk(part.votes, part.gold))
        everywhere = int(statistics["voted_items"]) == len(part)
        silent = () if everywhere else silent_items(part, SHOWN_ITEMS)
        return _Gathered(statistics, (choose(part),), silent, known_items(part.votes, part.gold))

    gathered = encoded.reduce(gather)
    passes = replace(passes, drawn=InMemoryPartitions.of_parts(list(gathered.chosen)), silent=gathered.silent)
    return Moments(encoded.sources, gathered.statistics, law, gathered.known), passes


@dataclass(frozen=True)
class _Gathered:
    """What one pass brings: sums, sampled items of every chunk, the first ids without a vote, and the known items."""

    statistics: Statistics
    chosen: tuple[Part, ...]
    silent: tuple[str, ...]
    known: npt.NDArray[np.uint64]

    def __add__(self, other: _Gathered) -> _Gathered:
        silent = (self.silent + other.silent)[:SHOWN_ITEMS]
        known = np.concatenate([self.known, other.known])
        return _Gathered(self.statistics + other.statistics, self.chosen + other.chosen, silent, known)


# --- from statistics to a model -------------------------------------------------------------------------


def learn(
    space: LabelSpace,
    moments: Moments,
    passes: VotePasses | None = None,
    *,
    method: str | SourceEstimator = "auto",
    dependencies: Any = None,
    prior: Any = "auto",
    seed: int = 0,
    names_given: bool = True,
) -> SourceModel:
    """Learn about the sources from statistics alone, or with further passes over the votes."""
    law = moments.law if moments.law is not None else space.law
    if not moments.sources:
        raise InvalidVotesError("There are no moments to learn from. Add Moments.of(votes, space) first.")
    sources = moments.sources
    pairs = read_dependencies(dependencies, sources)
    dependent = np.zeros((len(sources), len(sources)), dtype=bool)
    for left, right in pairs:
        dependent[sources.index(left), sources.index(right)] = True
    request = Request(
        sources=sources,
        method=method if isinstance(method, str) else "given",
        dependent=dependent | dependent.T,
        prior=read_prior(prior, space),
        n_gold=moments.n_gold,
        seed=seed,
        learn=not isinstance(dependencies, str) or dependencies != "none",
    )
    statistics = moments.sums
    if isinstance(method, str):
        law.check_method(method, has_votes=passes is not None)
        learned = _learn(law, statistics, request, passes)
    elif isinstance(method, SourceEstimator):
        learned = _given(method, moments, space, law, request, pairs)
    else:
        raise UnsupportedError(
            f"method={method!r} is neither a name nor an object with estimate(moments, space, dependencies). "
            f"Names: {', '.join(law.methods)}."
        )
    shared = np.argwhere(np.triu(request.dependent | learned.dependent, 1))
    model = SourceModel(
        sources=sources,
        mixture=learned.mixture,
        summary=learned.summary,
        n_items=moments.n_items,
        votes=np.diag(moments.both).copy(),
        method=request.method if isinstance(method, str) else type(method).__name__,
        reason=learned.reason,
        dependencies=tuple((sources[left], sources[right]) for left, right in shared),
        names_given=names_given,
        baseline=_plain(law, statistics, replace(request, prior="auto")),
        quality=learned.quality,
        known_items=moments.known_items,
    )
    how = Diagnostic("method", "info", (), f"Method {model.method!r}: {learned.reason}.")
    found = [how, *learned.findings]
    if passes is not None and request.n_gold:
        stated = model
        over = passes.over_all if passes.complete else passes.over_sample
        calibration = calibrate(space, law, lambda labels, seen: believe(stated, law, labels, seen, "auto"), over)
        model = replace(model, calibration=calibration)
        found += calibration.findings(request.n_gold)
    some_silent = bool(statistics["voted_items"] < statistics["items"])
    shown = passes.items_without_votes(SHOWN_ITEMS) if passes is not None and some_silent else ()
    found += items_without_votes(statistics, shown)
    # Worst first, each code once for the same sources and field.
    once: dict[tuple[str, tuple[str, ...], str], Diagnostic] = {}
    for item in sorted(found, key=lambda item: ("error", "warning", "info").index(item.severity)):
        once.setdefault((item.code, item.sources, item.part), item)
    changed = float("nan") if passes is None else _changed_labels(space, law, model, passes)
    return replace(model, diagnostics=tuple(once.values()), changed=changed)


@dataclass(frozen=True)
class _Learned:
    """What was learned about the sources by one law; `dependent` are the ``(m, m)`` pairs found to share errors."""

    mixture: Mixture
    summary: Summary
    dependent: BoolArray
    reason: str
    findings: tuple[Diagnostic, ...] = ()
    quality: FloatArray | None = None


def _learn(law: Law, statistics: Statistics, request: Request, passes: VotePasses | None) -> _Learned:
    """Learn by the method asked for; records field by field."""
    if isinstance(law, CompositeLaw):
        return _learn_fields(law, statistics, request, passes)
    foreseen = request.n_gold and request.method == "auto" and not law.scale_from_known
    if foreseen and passes is not None and passes.complete:
        alone, votes_alone = without_known_labels(law, statistics, passes)
        first = _learn(law, alone, replace(request, n_gold=0), votes_alone)
        statistics = as_random_sample(law, statistics, alone, first.mixture, passes, request.seed)
    estimate = _estimate(law, statistics, request)
    mixture, reason, trust = estimate.mixture, estimate.reason, estimate.trust
    findings = [*estimate.findings, *law.notes()]
    if estimate.refine and passes is not None and law.refines(mixture):
        with working("refining by EM"):
            mixture, notes = polish(law, mixture, passes)
        reason = f"{reason}, then EM"
        findings += notes
    mixture = law.merge(mixture)
    if estimate.refine and trust is not None and passes is not None:
        mixture = law.foresee(mixture, trust.together, passes.small_sample(ADAPT_ITEMS))
    votes = np.diag(statistics["both"])
    guessing = None if trust is None else guessing_sources(trust, law.constant_sources(statistics))
    if trust is not None and (own := law.guessing_sources(mixture[0][1])) is not None:
        guessing = own
    findings += count_findings(law, statistics, request, guessing)
    summary = _summary(law, mixture, trust, votes)
    if trust is None:
        return _Learned(mixture, summary, np.zeros_like(request.dependent), reason, tuple(findings))
    findings += trust_findings(trust, request, votes)
    findings += law.findings(trust, mixture, statistics, request)
    return _Learned(mixture, summary, trust.together > 0.5, reason, tuple(findings), np.tanh(trust.u))


def _learn_fields(law: CompositeLaw, statistics: Statistics, request: Request, passes: VotePasses | None) -> _Learned:
    parts = {}
    for name, field in law.fields.items():
        asked = law.field_request(request, name)
        own = law.field_statistics(statistics, name)
        asked = replace(asked, n_gold=int(own["gold_items"]))
        seen = None if passes is None else passes.of(partial(law.field_chunk, name=name))
        try:
            field.check_method(asked.method, has_votes=passes is not None)
            parts[name] = _learn(field, own, asked, seen)
        except ConsilienceError as error:
            error.args = (f"field {name!r}: {error}",)
            raise
    parameters = law.join({name: part.mixture for name, part in parts.items()}, statistics)
    summary = law.join_summaries({name: part.summary for name, part in parts.items()}, parameters)
    reasons = [f"{name}: {part.reason}" for name, part in parts.items()]
    findings = tuple(item.of_part(name) for name, part in parts.items() for item in part.findings)
    dependent = np.any([part.dependent for part in parts.values()], axis=0)
    return _Learned(((1.0, parameters),), summary, dependent, "; ".join(reasons), findings)


def _plain(law: Law, statistics: Statistics, request: Request) -> Parameters:
    """Return the parameters of the plain vote: all sources alike, nobody shares errors."""
    if isinstance(law, CompositeLaw):
        parts = {
            name: ((1.0, _plain(field, law.field_statistics(statistics, name), law.field_request(request, name))),)
            for name, field in law.fields.items()
        }
        return law.join(parts, statistics)
    return law.parameters(Hypothesis.plain(len(request.sources)), statistics, request)


@dataclass(frozen=True)
class _Estimate:
    """Parameters under each hypothesis, what the engine found (None for the paper's methods), and if EM may follow."""

    mixture: Mixture
    reason: str = "as requested"
    trust: Trust | None = None
    refine: bool = False
    findings: tuple[Diagnostic, ...] = ()


def _estimate(law: Law, statistics: Statistics, request: Request) -> _Estimate:
    # The estimators are loaded by the first fit, not by `import consilience`.
    from consilience.estimation.paper_methods import isotropic, quadratic, triplets
    from consilience.estimation.trust import trust

    m = len(request.sources)
    method = request.method
    if method == "majority":
        return _Estimate(((1.0, law.parameters(Hypothesis.plain(m), statistics, request)),))
    table, forward = law.pair_table(statistics), law.forward(statistics)
    if method == "quadratic":
        joint, votes, prior = law.label_indicators(statistics, request)
        accuracy = quadratic(joint, votes, statistics["both"], prior, request.dependent)
        return _Estimate(((1.0, law.from_weights(law.weight_from_accuracy(accuracy), request)),))
    if method in ("isotropic", "triplets"):
        if method == "isotropic":
            cost, identified = isotropic(table, request.dependent)
            parameters = law.from_weights(law.weight_from_cost(cost), request)
        else:
            u, identified = triplets(table, request.dependent)
            parameters = law.parameters(Hypothesis.independent(u), statistics, request)
        findings: tuple[Diagnostic, ...] = ()
        if names := request.named(~identified & (np.diag(statistics["both"]) > 0)):
            message = (
                f"These sources have items in common with fewer than two independent ones: {', '.join(names)}. "
                "Their quality is a guess; add sources, remove a dependency, or pass gold=."
            )
            findings = (Diagnostic("too-few-sources", "warning", names, message),)
        return _Estimate(((1.0, parameters),), findings=findings)
    if method == "em":
        # Independent sources with the engine's prior: q is about .5.
        before = Hypothesis.independent(np.full(m, MEAN), np.full(m, SPREAD))
        return _Estimate(((1.0, law.parameters(before, statistics, request)),), refine=True)
    learn = request.learn
    if method == "labelled":
        if not request.n_gold:
            raise InvalidVotesError(
                "method='labelled' learns from known labels, but none were given. "
                "Pass gold= with a few of them, or use method='auto'."
            )
        table, learn = replace(table, error=np.full_like(table.error, np.inf)), False
    elif not learn:
        table = replace(table, linked=None)  # declared independent, even if votes are identical
    with working("weighing the sources"):
        found = trust(table, forward, linked=request.dependent, learn=learn, seed=request.seed)
    if table.widened is not None:  # the engine treats the errors of pairs as independent
        found = replace(found, draws=found.u + (found.draws - found.u) * table.widened)
    if learn:
        found = found.reweighed([law.group_evidence(one.groups, statistics) for one in found.hypotheses])
    mixture = tuple((one.probability, law.parameters(one, statistics, request)) for one in found.hypotheses)
    if method == "labelled":
        return _Estimate(mixture, f"{request.n_gold} known labels", found)
    several = f", averaged over {len(mixture)} explanations" if len(mixture) > 1 else ""
    return _Estimate(mixture, f"quality learned from the agreement of all pairs{several}", found, refine=True)


def _given(
    estimator: SourceEstimator,
    moments: Moments,
    space: LabelSpace,
    law: Law,
    request: Request,
    pairs: tuple[tuple[str, str], ...],
) -> _Learned:
    weight = np.asarray(estimator.estimate(moments, space, pairs), dtype=np.float64)
    if weight.shape != (len(moments.sources),) or not np.isfinite(weight).all():
        raise InvalidVotesError(
            f"{type(estimator).__name__}.estimate returned weights of shape {weight.shape}, perhaps not all finite; "
            f"expected {len(moments.sources)} finite numbers, one per source."
        )
    parameters = law.from_weights(weight, request)
    nothing = np.zeros_like(request.dependent)
    findings = () if isinstance(law, CompositeLaw) else count_findings(law, moments.sums, request)
    return _Learned(((1.0, parameters),), law.summary(parameters), nothing, "weights by the given estimator", findings)


def _summary(law: Law, mixture: Mixture, found: Trust | None, votes: FloatArray) -> Summary:
    """Return the mean over hypotheses; standard errors are those of the engine's posterior."""
    summaries = [(probability, law.summary(parameters)) for probability, parameters in mixture]
    numbers: dict[str, Any] = {
        name: sum(probability * getattr(one, name) for probability, one in summaries)
        for name in ("expected_cost", "weight", "correlation")
    }
    if found is not None:
        quality, deviation = np.tanh(found.u), np.tanh(found.draws).std(axis=0)
        cost_error, error = law.quality_errors(mixture[0][1], quality, deviation)
        numbers["standard_error"] = np.where(votes == 0, np.inf, error)
        numbers["cost_standard_error"] = np.where(votes == 0, np.inf, cost_error)
    first = summaries[0][1]
    averaged: dict[str, Any] = {
        name: sum(probability * one.columns[name] for probability, one in summaries)
        for name, values in first.columns.items()
        if values.dtype.kind == "f"
    }
    return replace(first, **numbers, columns={**first.columns, **averaged})


def _changed_labels(space: LabelSpace, law: Law, model: SourceModel, passes: VotePasses) -> float:
    """Return the share of the items whose label is not that of the plain vote; NaN without a vote."""
    chunk = passes.small_sample(COMPARED_ITEMS)
    rows = np.flatnonzero(chunk.observed.any(axis=1))
    if len(rows) == 0:
        return float("nan")
    labels, observed = chunk.labels[rows], chunk.observed[rows]
    own, other = (believe(one, law, labels, observed, "auto").labels for one in (model, model.as_baseline()))
    apart = np.asarray(space.distance(own, other), dtype=np.float64)
    least = 0.0
    several = np.flatnonzero(observed.sum(axis=1) >= 2)
    if space.continuous and len(several):
        first = observed[several].argmax(axis=1)
        last = observed.shape[1] - 1 - observed[several, ::-1].argmax(axis=1)
        between = space.distance(labels[several, first], labels[several, last])
        least = DIFFERENT_SHARE * float(np.median(between))
    return float(np.mean(apart > least))


# --- settings, resolved -----------------------------------------------------------------------------------


def read_dependencies(dependencies: Any, sources: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the dependent pairs by name, or say which name is unknown."""
    if dependencies is None or (isinstance(dependencies, str) and dependencies == "none"):
        return ()
    if isinstance(dependencies, str) or not isinstance(dependencies, Iterable):
        raise UnsupportedError(
            f"dependencies={dependencies!r} is not a list of pairs of source names. "
            "Pass a list such as [('a', 'b')], 'none' if all are independent, or leave it out."
        )
    pairs = []
    for pair in dependencies:
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(members := tuple(pair)) != 2:
            raise UnsupportedError(f"Dependency {pair!r} is not a pair of source names. Write it as ('a', 'b').")
        names = []
        for member in members:
            if isinstance(member, (int, np.integer)) and not isinstance(member, bool) and 0 <= member < len(sources):
                names.append(sources[int(member)])
            elif member in sources:
                names.append(str(member))
            else:
                hint, shown = did_you_mean(member, sources), ", ".join(map(repr, sources[:8]))
                raise UnknownSourceError(
                    f"dependencies names {member!r}, which is not a source.{hint} Sources: {shown}."
                )
        if names[0] == names[1]:
            raise UnsupportedError(f"Dependency {pair!r} names the same source twice. Pair it with another one.")
        if (names[1], names[0]) not in pairs:
            pairs.append((names[0], names[1]))
    return tuple(dict.fromkeys(pairs))


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
            f"prior={prior!r} is not a list of probabilities. Give {size} numbers, or one of {', '.join(NAMED_PRIORS)}."
        ) from None
    if values.shape != (size,):
        raise PriorError(f"prior has shape {values.shape}; expected one probability for each of the {size} labels.")
    if not np.isfinite(values).all() or (values < 0).any():
        worst = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise PriorError(f"prior[{worst}] is {values[worst]}. Probabilities lie between 0 and 1.")
    if abs(values.sum() - 1.0) > 1e-6:
        raise PriorError(f"prior adds up to {values.sum():.6g}, not 1. Divide it by its sum.")
    return values
