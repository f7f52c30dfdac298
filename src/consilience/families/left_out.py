"""Whether the votes support weights of their own for every source, or only the plain mean: by sources left out.

If the noise of a source is independent of the others, its votes correlate with a consensus of the *others* in
proportion to the correlation of that consensus with the truth. So two ways to combine votes can be compared without a
known label: by how well each predicts the votes of every source that was left out. Parameters come from other items
than those they are judged on, as weights always suit the items they were learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import GROUPS, Chunk, Diagnostic, Passes, Sums
from consilience.families.gaussian_rounds import thinned
from consilience.families.part_passes import PartPasses, rows_of

__all__ = ["STEPS", "Predict", "Support", "drawn_note", "support_of"]

#: Shares of the way from equal lines (0) to lines of their own (1) that are compared.
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Votes of the typical source from which on parameters may be judged on the items they were learned from.
AMPLE = 1000
FOLDS = 5
#: A gain counts less this many standard errors, so that chance alone rarely makes labels worse than plain means.
CAUTION = 1.645
#: Sources that are left out in turn, at most; with fewer than `FEWEST` too little is left to tell anything.
MOST, FEWEST = 60, 5


#: From labels and who voted to the consensus at every step, ``(n, *label_shape)`` each, measured from the mean of y.
Predict = Callable[[npt.NDArray[Any], BoolArray], list[FloatArray]]


@dataclass(frozen=True)
class Support:
    """How well the consensus of the others predicts each source, at every step from equal lines to own ones.

    `gain` is by which part the correlation with the truth exceeds that of equal lines, `error` its standard error.
    """

    gain: FloatArray
    error: FloatArray

    @property
    def contradicted(self) -> bool:
        """Whether what was learned is clearly worse than the plain mean."""
        return bool(self.gain[-1] < -CAUTION * self.error[-1])

    @property
    def share(self) -> float:
        """The step to take: of those about as good as the best one, allowing for chance, the last.

        None at all if what was learned is clearly worse than the plain mean: then it describes the votes badly, and
        half of it is no better founded.
        """
        if self.contradicted:
            return STEPS[0]
        sure = self.gain - CAUTION * self.error
        best = int(sure.argmax())
        good = np.flatnonzero(sure >= sure[best] - 0.25 * self.error[best])
        return STEPS[int(good.max())]


def support_of(
    votes: FloatArray,
    active: BoolArray,
    dependent: BoolArray,
    centre: FloatArray,
    passes: Passes | None,
    learned: Predict,
    again: Callable[[PartPasses], Predict],
) -> Support | None:
    """Return what the votes say about the steps; None where they are not at hand, or the sources too few.

    Parameters
    ----------
    votes, active
        ``(m,)`` votes of each source, and the sources that are left out in turn.
    dependent
        ``(m, m)`` pairs that are left out together.
    centre
        ``(m, *label_shape)`` mean vote of each source.
    learned
        What was learned from all items.
    again
        Learns the same from a part of them.
    """
    if passes is None or int(active.sum()) < FEWEST:
        return None
    targets = np.flatnonzero(active)
    targets = targets[np.argsort(-votes[targets], kind="stable")][:MOST]
    together = dependent | np.eye(len(votes), dtype=bool)

    def judged(predict: Predict, kept: BoolArray) -> Sums:
        def look(chunk: Chunk) -> Sums:
            return _left_out(predict, rows_of(chunk, np.asarray(kept[chunk.groups])), targets, together, centre)

        return passes.over_sample(thinned(look, passes.n_sampled))

    if float(np.median(votes[active])) >= AMPLE:
        total = judged(learned, np.ones(GROUPS, dtype=bool))
    else:
        total = Sums.zero()
        for fold in range(FOLDS):
            tested = np.arange(GROUPS) % FOLDS == fold
            total = total + judged(again(PartPasses(passes, ~tested)), tested)
    return _support(total["left_out"]) if total["left_out"].any() else None


def _left_out(predict: Predict, chunk: Chunk, targets: IntArray, together: BoolArray, centre: FloatArray) -> Sums:
    """Return, by group of items, step and source, the sums of 1, c, v, c^2, v^2, c v for its vote v and the others' c.

    Votes are measured from the mean of the source; coordinates add up.
    """
    found = np.zeros((GROUPS, len(STEPS), len(targets), 6))
    for place, target in enumerate(targets):
        others = chunk.observed & ~together[target]
        rows = np.flatnonzero(chunk.observed[:, target] & others.any(axis=1))
        if len(rows) == 0:
            continue
        vote = (chunk.labels[rows, target].astype(np.float64) - centre[target]).reshape(len(rows), -1)
        for number, labels in enumerate(predict(chunk.labels[rows], others[rows])):
            consensus = labels.reshape(len(rows), -1)
            parts = [np.ones_like(vote), consensus, vote, consensus**2, vote**2, consensus * vote]
            once = np.stack([part.sum(axis=1) for part in parts], axis=1)
            np.add.at(found[:, number, place], chunk.groups[rows], once)
    return Sums({"left_out": found})


def _support(sums: FloatArray) -> Support:
    whole = _gain(sums.sum(axis=0))
    used = np.flatnonzero(sums[..., 0].any(axis=(1, 2)))
    without = np.array([_gain(sums.sum(axis=0) - sums[one]) for one in used])
    spread = (len(used) - 1) * without.var(axis=0) if len(used) > 1 else np.full(len(whole), np.inf)
    return Support(whole, np.sqrt(spread))


def _gain(sums: FloatArray) -> FloatArray:
    """Return by which part the correlation with the truth exceeds that of equal lines, for every step."""
    count = np.maximum(sums[..., 0], 1.0)
    mean, level = sums[..., 1] / count, sums[..., 2] / count
    own = np.maximum(sums[..., 3] / count - mean**2, 0.0)
    wide = np.maximum(sums[..., 4] / count - level**2, 0.0)
    both = sums[..., 5] / count - mean * level
    scale = np.sqrt(own * wide)
    correlation = np.where(scale > 0, both / np.where(scale > 0, scale, 1.0), 0.0)
    # Sources that follow nobody would only add noise, and one on a reversed scale says the same to every step.
    weight = count[0] * np.maximum(correlation.mean(axis=0), 0.0)
    total = correlation @ weight
    gain: FloatArray = total / max(float(total[0]), 1e-12) - 1.0
    return gain


def drawn_note(support: Support) -> Diagnostic:
    """The votes do not fully support a line and a weight of its own for every source."""
    message = (
        f"Lines and weights were moved {1.0 - support.share:.0%} of the way to equal ones: learned on some items and "
        f"tried on others, a consensus with lines of their own predicts the source left out by {support.gain[-1]:+.1%} "
        f"(standard error {support.error[-1]:.1%}) against the plain mean. More items per source, or gold=, would help."
    )
    return Diagnostic("drawn-together", "info", (), message)
