"""Level 2: one EM driver for every label type that refines its parameters beyond what qualities determine.

A law brings an E-step that returns sums and an M-step that turns sums into parameters, drawn towards those that the
trust engine gave. The driver goes over a sample of the items, and over all of them only where the sample leaves some
source with too few votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import softmax
from consilience.estimation.passes import VotePasses
from consilience.estimation.protocol import Diagnostic, Law, Mixture, Parameters, Statistics
from consilience.partitions.threads import map_in_threads, usual_threads

__all__ = ["polish"]

#: Largest number of rounds of EM. The start is already close, so a handful is usually enough.
MAX_ROUNDS = 50
#: EM has converged when no number moves by more than this share of the largest in its array, below any sampling error.
STILL = 2e-3
#: Votes of a source in the sample that determine a rate to within .01 (sqrt(.25 / 2500)).
PRECISE_VOTES = 2_500
#: Less probable results of EM are left out, because each result takes time at every label.
NEGLIGIBLE = 0.01


def polish(law: Law, mixture: Mixture, passes: VotePasses) -> tuple[Mixture, tuple[Diagnostic, ...]]:
    """Refine the parameters under each hypothesis by EM; the probabilities stay those of the trust engine."""
    prepared = passes.prepared_sample(law.prepare)
    workers = usual_threads() if law.side_by_side and len(prepared) > 1 else 1

    def sums_of_sample(step: Callable[[Any], Statistics]) -> Statistics:
        return reduce(add, map(step, prepared) if workers == 1 else map_in_threads(step, prepared, workers))

    def sums_of_all(step: Callable[[Any], Statistics]) -> Statistics:
        return passes.over_all(lambda chunk: step(law.prepare(chunk)))

    use_all = _needs_all_items(passes)
    finished, converged = [], True
    for probability, start in mixture:
        ends = [_rounds(law, one, start, sums_of_sample) for one in law.starts(start)]
        shares = softmax(np.array([law.evidence(end.before, end.statistics, start) for end in ends]))
        shares = np.where(shares < NEGLIGIBLE, 0.0, shares)
        for share, end in zip(shares / shares.sum(), ends, strict=True):
            if share > 0.0:
                last = _rounds(law, end.after, start, sums_of_all) if use_all else end
                finished.append((probability * float(share), last.after))
                converged &= last.converged
    notes: tuple[Diagnostic, ...] = ()
    if not converged:
        message = f"EM did not converge in {MAX_ROUNDS} rounds. The labels can be used; more items would help."
        notes = (Diagnostic("not-converged", "info", (), message),)
    return tuple(finished), notes


def _needs_all_items(passes: VotePasses) -> bool:
    if not passes.complete or passes.n_items <= passes.n_sampled:
        return False
    votes = passes.over_sample(lambda chunk: Statistics({"votes": chunk.observed.sum(axis=0)}))["votes"]
    return bool((votes < PRECISE_VOTES).any())


class _Round(NamedTuple):
    before: Parameters
    statistics: Statistics
    after: Parameters
    converged: bool = False


def _rounds(
    law: Law, parameters: Parameters, start: Parameters, sums: Callable[[Callable[[Any], Statistics]], Statistics]
) -> _Round:
    """Return the last round."""
    for _ in range(MAX_ROUNDS):
        statistics = sums(partial(law.e_step, parameters))
        last = _Round(parameters, statistics, law.m_step(parameters, statistics, start))
        parameters = last.after
        if _largest_change(last.before, parameters) <= STILL:
            return last._replace(converged=True)
    return last


def _largest_change(before: Parameters, after: Parameters) -> float:
    """Return the largest change of any number, relative to the largest of its array."""
    change = 0.0
    for field in fields(after):
        old, value = getattr(before, field.name), getattr(after, field.name)
        if value is not old and isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            was, now = np.where(np.isfinite(old), old, 0.0), np.where(np.isfinite(value), value, 0.0)
            change = max(change, float(np.abs(now - was).max()) / max(float(np.abs(was).max()), 1e-12))
    return change
