"""What method='auto' does, step by step, where every source has one weight: the same for each such family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Estimate, Parameters, Request
from consilience.families.findings import MAYBE_COPIES, SIGNIFICANCE, fell_back, no_signal, possible_copies
from consilience.families.pair_costs import shrunk_costs
from consilience.solvers.readings import PairReading, Readings

__all__ = ["Steps", "evened_costs", "follow", "plain_vote"]


@dataclass(frozen=True)
class Steps:
    """What a family does at each turn.

    Attributes
    ----------
    equal
        The parameters of the plain vote.
    labelled
        Learns from known labels alone, where there are some.
    chance, unrelated
        How likely such agreement is between unrelated sources, and in words that it is as likely as that.
    read_pairs
        Finds which pairs depend on each other; None where that is not looked for.
    dependent
        Learns where some pairs depend on each other; None from it means that the known labels say that none does.
    independent
        Learns where none does.
    needed
        What three sources are needed for.
    unheard
        The parameters where the votes say next to nothing, if those are not the plain vote's.
    feared
        The reading with copies that the votes do not rule out.
    """

    equal: Callable[[], Parameters]
    labelled: Callable[[], Estimate] | None
    chance: Callable[[], float]
    unrelated: str
    read_pairs: Callable[[], Readings] | None
    dependent: Callable[[Readings], Estimate | None]
    independent: Callable[[], Estimate]
    needed: str = "weights"
    unheard: Callable[[], Parameters] | None = None
    feared: Callable[[Readings], PairReading | None] = attrgetter("doubtful")


def follow(steps: Steps, count: int, request: Request) -> Estimate:
    """Learn from `count` sources that vote: labels where they must decide, else votes, else the plain vote."""
    if count < 3:
        if steps.labelled is not None:
            return steps.labelled()
        return plain_vote(steps.equal(), f"{count} source(s) vote, {steps.needed} need 3")
    chance = steps.chance()
    if chance > SIGNIFICANCE and not request.n_gold:
        reason = f"{steps.unrelated} (p = {chance:.2f})"
        parameters = (steps.unheard or steps.equal)()
        return plain_vote(parameters, reason, (no_signal(request, reason),))
    if request.learn and steps.read_pairs is not None:
        readings = steps.read_pairs()
        feared = steps.feared(readings)
        if feared is not None and not request.n_gold:
            copies = possible_copies(feared.dependent, request)
            return plain_vote(steps.equal(), MAYBE_COPIES, (copies,))
        found = steps.dependent(readings)
        if found is not None:
            return replace(found, decided=readings.rival is not None and request.n_gold > 0)
    return steps.independent()


def evened_costs(
    cost: FloatArray, error: FloatArray, active: BoolArray, estimate: Estimate, request: Request
) -> FloatArray:
    """Return the costs drawn together as far as chance explains why they differ; misleading sources stay apart."""
    misleading = {name for note in estimate.diagnostics if note.code == "adversarial-source" for name in note.sources}
    followed = active & np.array([name not in misleading for name in request.sources])
    return shrunk_costs(cost, error, followed)


def plain_vote(parameters: Parameters, reason: str, notes: tuple[Diagnostic, ...] = ()) -> Estimate:
    """Return the estimate that gives every source the same weight, and why."""
    return Estimate(parameters, "majority", reason, (*notes, fell_back(reason)))
