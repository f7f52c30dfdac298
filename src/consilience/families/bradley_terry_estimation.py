"""Learning about judges from their comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.families import bradley_terry_findings as findings
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.bradley_terry_parameters import BradleyTerryParameters
from consilience.families.bradley_terry_posterior import DRAWN_ITEMS, weighted_pairs
from consilience.families.comparisons import ComparisonTable, tabulate
from consilience.families.findings import dependent_pairs, needs_gold, not_converged
from consilience.solvers.bradley_terry import ROUNDS, VariationalFit, fit_judges
from consilience.solvers.pair_dependence import (
    SharedNoise,
    correlation_of_runs,
    noise_in_arena,
    noise_over_prompts,
    shares,
)
from consilience.solvers.pair_errors import joint_covariance
from consilience.solvers.pair_judges import JudgeTraits, PairTable, equal_judges, spectral_judges
from consilience.solvers.pair_polish import polish_judges

__all__ = ["estimate_judges"]

#: Votes per judge below which the judges of many prompts are not told apart.
MIN_VOTES = 50
#: Comparisons per item below which an arena tells little about its judges.
MIN_COMPARISONS = 4
#: Discrimination of known rankings, which are taken as nearly certain.
CERTAIN = 6.0
#: Comparisons on which judges of many prompts are polished.
POLISHED_VOTES = 8_000
PROMPT_ROUNDS = 60
#: Rounds after which the better start is known.
FIRST_ROUNDS = 40


@dataclass(frozen=True)
class Votes:
    """The comparisons at hand, and where rankings are known the judge that tells them, who comes last."""

    table: ComparisonTable
    known: bool
    items: tuple[object, ...] | None

    @property
    def m(self) -> int:
        """Number of judges, without the one that knows."""
        return self.table.pairs.n_judges - int(self.known)

    @property
    def per_prompt(self) -> bool:
        """Whether there are several groups of items."""
        return len(np.unique(self.table.pairs.group)) > 1

    @property
    def fixed(self) -> BoolArray:
        """The judge that is not learned about."""
        return np.arange(self.table.pairs.n_judges) >= self.m

    def start(self, traits: JudgeTraits) -> JudgeTraits:
        """Return where a fit starts: the judge that knows is certain."""
        if not self.known:
            return traits
        return replace(
            traits,
            slope=np.where(self.fixed, CERTAIN, traits.slope),
            bias=np.where(self.fixed, 0.0, traits.bias),
            tie=np.where(self.fixed, 1e-4, traits.tie),
        )


def estimate_judges(family: object, request: Request, passes: Passes) -> Estimate:
    """Return the traits of the judges."""
    votes = _gather(getattr(family, "items", None), request, passes)
    if request.method == "majority":
        return Estimate(_equal(votes), "majority", "every judge counts the same, as asked for")
    if request.method == "labelled" and not votes.known:
        raise needs_gold()
    if request.method == "labelled":
        told = np.unique(votes.table.pairs.group[votes.table.pairs.judge == votes.m])
        votes = replace(votes, table=votes.table.where(np.isin(votes.table.pairs.group, told)))
    plain = _equal(votes)
    about = findings.about_table(votes.table, request, votes.items)
    reason = _too_little(votes) if request.method == "auto" and not votes.known else None
    if reason is not None:
        return Estimate(plain, "majority", reason, (*about, findings.equal_judges(reason)))
    return _weighed(votes, plain, request, about)


def _weighed(votes: Votes, plain: BradleyTerryParameters, request: Request, about: tuple[Diagnostic, ...]) -> Estimate:
    correlation = plain.run_correlation
    if votes.per_prompt:  # who copies shows against what good judges would agree on, so these come first
        alone = _fitted(votes, np.ones(votes.m), correlation)
        noise = _shared_noise(votes, alone.traits, request)
    else:
        alone = None
        noise = _shared_noise(votes, None, request)
    copies = np.triu(noise.noise > 0 if noise.groups is None else noise.groups, 1)
    left, right = np.nonzero(copies)
    if copies.any() and not request.dependent.any():
        about = (*about, dependent_pairs(left, right, request))
    share = shares(noise.noise, noise.groups)
    found = alone if alone is not None and not copies.any() else _fitted(votes, share, correlation)
    pairs, fit, traits = found.pairs, found.fit, found.traits
    parameters = _described(votes, pairs, traits, fit, share, noise, correlation)
    if not fit.converged:
        about = (*about, not_converged())
    about = (*about, *findings.about_judges(parameters, plain, votes.table, request, _items_per_vote(votes)))
    kind = "many prompts, polished on draws of the scores" if votes.per_prompt else "one arena"
    method = "labelled" if request.method == "labelled" else "em"
    reason = f"Bradley-Terry with ties, position bias and a discrimination per judge; {kind}"
    dependent = request.dependent | copies | copies.T
    return Estimate(parameters, method, reason, about, dependent if dependent.any() else None)


@dataclass(frozen=True)
class _Fitted:
    pairs: PairTable
    fit: VariationalFit
    traits: JudgeTraits


def _fitted(votes: Votes, share: FloatArray, correlation: float) -> _Fitted:
    """Return the best of several fits to votes of these shares, polished where groups are small."""
    ties = bool((votes.table.pairs.outcome == 0).any())
    pairs = weighted_pairs(votes.table, np.r_[share, np.ones(int(votes.known))], correlation)
    fit = _best_fit(votes, pairs, ties)
    traits = fit.judges
    if votes.per_prompt and pairs.width <= DRAWN_ITEMS:
        traits = polish_judges(_some_prompts(pairs), traits, ties=ties, fixed=votes.fixed)
    return _Fitted(pairs, fit, traits)


def _best_fit(votes: Votes, pairs: PairTable, ties: bool) -> VariationalFit:
    rounds = PROMPT_ROUNDS if votes.per_prompt else ROUNDS
    starts = [equal_judges(pairs, ties=ties), spectral_judges(pairs, ties=ties)]
    if votes.known:  # judges of whom nothing is thought, so that the known order speaks first
        starts.append(equal_judges(pairs, 0.0, ties=ties))
    first = [
        fit_judges(pairs, votes.start(start), ties=ties, fixed=votes.fixed, rounds=min(rounds, FIRST_ROUNDS))
        for start in starts
    ]
    best = max(first, key=lambda fit: fit.bound)
    if best.converged or rounds <= FIRST_ROUNDS:
        return best
    return fit_judges(pairs, best.judges, ties=ties, fixed=votes.fixed, rounds=rounds)


def _equal(votes: Votes) -> BradleyTerryParameters:
    """Return judges that all count the same, and have no position bias."""
    table = votes.table.where(votes.table.pairs.judge < votes.m) if votes.known else votes.table
    ties = bool((table.pairs.outcome == 0).any())
    pairs = weighted_pairs(table, np.ones(table.pairs.n_judges), 1.0)
    rounds = PROMPT_ROUNDS if votes.per_prompt else ROUNDS
    start = equal_judges(pairs, ties=ties)
    fit = fit_judges(pairs, start, equal=True, position=False, ties=ties, rounds=rounds)
    gap = fit.scores.differences(table.pairs)[0]
    correlation = correlation_of_runs(table.pairs, fit.judges, gap, table.question)
    if (table.question >= 0).any():
        pairs = weighted_pairs(table, np.ones(table.pairs.n_judges), correlation)
        fit = fit_judges(pairs, fit.judges, equal=True, position=False, ties=ties, rounds=rounds)
    independent = SharedNoise(np.eye(votes.m), np.eye(votes.m), np.zeros((votes.m, votes.m), dtype=np.int64))
    described = _described(votes, pairs, fit.judges, fit, np.ones(votes.m), independent, correlation)
    slope = max(float(described.discrimination[0]), 0.05) if votes.m else 1.0
    return replace(
        described,
        discrimination=np.full(votes.m, slope),
        discrimination_error=np.zeros(votes.m),
        position_bias_error=np.zeros(votes.m),
        covariance=np.zeros((votes.m, 2, 2)),
        equal=True,
        position=False,
    )


def _described(
    votes: Votes,
    pairs: PairTable,
    traits: JudgeTraits,
    fit: VariationalFit,
    share: FloatArray,
    noise: SharedNoise,
    correlation: float,
) -> BradleyTerryParameters:
    """Return the parameters of the judges, without the one that knows."""
    m = votes.m
    covariance = traits.covariance[:m]
    if votes.per_prompt:
        errors = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
        slope_error, bias_error = errors[:, 0], errors[:, 1]
    else:
        joint = np.diag(joint_covariance(pairs, traits, fit.scores.mean[0]))
        first = pairs.width
        slope_error = np.sqrt(np.maximum(joint[first : first + m], 0.0))
        bias_error = np.sqrt(np.maximum(joint[first + pairs.n_judges : first + pairs.n_judges + m], 0.0))
    counted = np.bincount(votes.table.pairs.judge, minlength=m)[:m].astype(np.int64)
    silent = counted == 0
    return BradleyTerryParameters(
        discrimination=np.where(silent, traits.slope_mean, traits.slope[:m]),
        position_bias=np.where(silent, 0.0, traits.bias[:m]),
        tie=traits.tie[:m].copy(),
        discrimination_error=np.where(silent, np.inf, slope_error),
        position_bias_error=np.where(silent, np.inf, bias_error),
        covariance=covariance,
        share=share,
        noise=noise.noise,
        comparisons=counted,
        unparsable=votes.table.unparsable[:m],
        cycles=findings.cycles(votes.table)[:m],
        order_flips=findings.order_flips(votes.table)[:m],
        slope_mean=float(traits.slope_mean),
        slope_variance=float(traits.slope_variance),
        bias_mean=float(traits.bias_mean),
        bias_variance=float(traits.bias_variance),
        run_correlation=float(correlation),
        effective_judges=findings.effective_judges(noise, counted > 0),
        per_prompt=votes.per_prompt,
    )


def _shared_noise(votes: Votes, traits: JudgeTraits | None, request: Request) -> SharedNoise:
    """Return the correlations that count: those found, or those of the pairs that the user named.

    Parameters
    ----------
    traits
        Of the judges of many prompts.
    """
    m = votes.m
    own = votes.table.where(votes.table.pairs.judge < m)
    own = replace(own, pairs=replace(own.pairs, n_judges=m))
    if m < 2:
        return SharedNoise(np.eye(m), np.eye(m), np.zeros((m, m), dtype=np.int64))
    if traits is not None:
        found = noise_over_prompts(own.pairs, traits, own.unit)
    else:
        found = noise_in_arena(own.pairs, own.unit)
    if request.dependent.any():
        named = np.where(request.dependent, np.maximum(found.noise, np.maximum(found.raw, 0.0)), 0.0)
        np.fill_diagonal(named, 1.0)
        return replace(found, noise=named, groups=None)
    return found if request.learn else replace(found, noise=np.eye(m), groups=None)


def _too_little(votes: Votes) -> str | None:
    """Return why judges cannot be told apart, if so."""
    counts = np.bincount(votes.table.pairs.judge, minlength=votes.m)[: votes.m]
    active = counts[counts > 0]
    if len(active) < 2:
        return f"{len(active)} judge(s) compare, who cannot be checked against others"
    if votes.per_prompt and active.mean() < MIN_VOTES:
        return f"{active.mean():.0f} comparisons per judge over many prompts do not tell judges apart, {MIN_VOTES} may"
    return None


def _items_per_vote(votes: Votes) -> bool:
    """Return whether an arena has enough comparisons per item to tell its judges apart."""
    if votes.per_prompt:
        return True
    compared = int(votes.table.pairs.compared.sum())
    return len(votes.table.pairs) >= MIN_COMPARISONS * max(compared, 1)


def _some_prompts(pairs: PairTable) -> PairTable:
    """Return the comparisons of as many prompts as the polish needs; they come in no order that means anything."""
    if len(pairs) <= POLISHED_VOTES:
        return pairs
    share = POLISHED_VOTES / len(pairs)
    step = max(round(1.0 / share), 1)
    kept = pairs.where(pairs.group % step == 0)
    return replace(kept, group=kept.group // step, n_groups=(pairs.n_groups + step - 1) // step)


def _gather(items: tuple[object, ...] | None, request: Request, passes: Passes) -> Votes:
    """Bring the comparisons of the sampled rows together: chunks have names of their own, so they do not add up."""

    def keep(chunk: Chunk) -> Sums:
        key = uuid4().hex
        known = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
        told = as_object_array([None] * len(chunk)) if chunk.known is None else chunk.known
        return Sums(
            {
                f"labels {key}": chunk.labels,
                f"observed {key}": chunk.observed,
                f"known {key}": told,
                f"is known {key}": known,
            }
        )

    gathered = passes.over_sample(keep)
    parts: dict[str, list[Batch]] = {"labels": [], "observed": [], "known": [], "is known": []}
    for name, part in gathered.parts.items():
        parts[name.rsplit(" ", 1)[0]].append(part)
    observed, is_known = np.concatenate(parts["observed"]), np.concatenate(parts["is known"])
    labels = np.concatenate([np.asarray(part, dtype=object) for part in parts["labels"]])
    known = bool(is_known.any()) and request.method != "majority"
    if known:
        told = np.concatenate(parts["known"])
        column = as_object_array(cell if there else None for cell, there in zip(told, is_known, strict=True))
        labels = np.concatenate([labels, column[:, None]], axis=1)
        observed = np.concatenate([observed, is_known[:, None]], axis=1)
    table = tabulate(labels, observed, items)
    if known:  # what is certain counts in full
        certain = table.pairs.judge == observed.shape[1] - 1
        table = replace(table, pairs=replace(table.pairs, weight=np.where(certain, 1.0, table.pairs.weight)))
    return Votes(table, known, items)
