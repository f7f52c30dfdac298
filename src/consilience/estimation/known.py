"""Whether weights do as well as a plain vote on the items whose true label is known."""

from __future__ import annotations

import numpy as np

from consilience.estimation.passes import VotePasses
from consilience.families.base import Chunk, Diagnostic, Estimate, Family, Parameters, Request, Sums
from consilience.label_types.base import LabelSpace

__all__ = ["as_known_labels_say"]

#: Weights are given up where they do worse by this many standard errors, on at least so many known items.
WORSE, LEAST_ITEMS = 2.0, 10


def as_known_labels_say(
    estimate: Estimate, plain: Parameters, space: LabelSpace, family: Family, request: Request, passes: VotePasses
) -> Estimate:
    """Return the estimate, or the plain vote where known labels show that it would have been better.

    A model of the sources may be wrong in ways that the votes do not show. Where known labels had to choose between two
    of them, neither need be right: what was chosen has to do better than the plain vote, not only no worse.
    """
    if request.method != "auto" or request.n_gold < LEAST_ITEMS or estimate.method == "majority":
        return estimate

    def compare(chunk: Chunk) -> Sums:
        return _losses(chunk, space, family, estimate.parameters, plain)

    found = passes.over_sample(compare)
    count = int(found["known"])
    if count < LEAST_ITEMS:
        return estimate
    mean = float(found["lost"]) / count
    variance = max(float(found["squared"]) / count - mean**2, 0.0)
    error = np.sqrt(variance / (count - 1))
    if mean < 0.0 or (mean <= WORSE * error and not estimate.decided):
        return estimate
    message = (
        f"On the {count} items whose label is known, labels by weights cost {mean:.3g} more than those of a plain vote "
        f"(standard error {error:.2g}), so that every source is given the same weight. Sources may depend on each "
        "other in ways that the votes do not show: pass dependencies= if you know of some."
    )
    reason = f"on {count} known items weights do no better than a plain vote"
    note = Diagnostic("weights-unsupported", "warning", (), message)
    return Estimate(plain, "majority", reason, (*estimate.diagnostics, note))


def _losses(chunk: Chunk, space: LabelSpace, family: Family, weighted: Parameters, plain: Parameters) -> Sums:
    """Add up how much more the labels of known items cost with weights than by a plain vote."""
    rows = chunk.gold_rows
    rows = rows[chunk.observed[rows].any(axis=1)]
    lost = np.zeros(0)
    if len(rows) and chunk.known is not None:
        labels, observed, truth = chunk.labels[rows], chunk.observed[rows], chunk.known[rows]
        own, other = (
            np.asarray(space.cost(family.posterior(parameters, labels, observed, "auto").labels, truth))
            for parameters in (weighted, plain)
        )
        lost = own - other
    return Sums({"known": np.array(len(lost)), "lost": np.array(lost.sum()), "squared": np.array((lost**2).sum())})
