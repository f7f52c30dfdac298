"""Known labels as if they were those of a random sample of the items.

People label the items that puzzle them, and on these every source errs more often than on others. The sums over known
items are therefore compared with what the votes alone make the model expect of the same items, ``f``:

    known - f(known) + f(all),    where f(all) is scaled to as many items

For a random sample, this is unbiased for any ``f``, and it varies less than the sums over known items alone. For items
that were chosen because of their votes, it is as unbiased as ``f`` is right about them. If known labels set the scale
of scores and vectors, ``f`` cannot be computed. They keep the plain sums, which made little difference in experiments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import Batch, hash_priority
from consilience.estimation.passes import VotePasses
from consilience.estimation.protocol import Chunk, Law, Mixture, Posterior, Statistics

__all__ = ["as_random_sample", "without_known_labels"]

#: Labels drawn for each known item. They represent its probabilities to within 1/32.
DRAWS = 16


def without_known_labels(law: Law, statistics: Statistics, passes: VotePasses) -> tuple[Statistics, VotePasses]:
    """Return the statistics and passes of the votes alone."""
    votes_alone = passes.of(lambda chunk: replace(chunk, known=None, is_known=None))
    names = law.statistics(votes_alone.small_sample(1))
    left = {name: value for name, value in statistics.items() if name in names}
    return Statistics({**left, "gold_items": np.zeros_like(statistics["gold_items"])}), votes_alone


def as_random_sample(
    law: Law, statistics: Statistics, votes_alone: Statistics, mixture: Mixture, passes: VotePasses, seed: int
) -> Statistics:
    """Return the statistics with the sums over known items corrected by what `mixture`, learned from votes, expects."""
    names = [name for name in statistics if name not in votes_alone]

    def expected(chunk: Chunk, draws: int) -> Statistics:
        rows = np.flatnonzero(chunk.observed.any(axis=1))
        if not len(rows):
            return Statistics({"items": np.zeros(())})
        chunk = chunk.rows(rows)
        each = [(share, law.posterior(one, chunk.labels, chunk.observed, "auto")) for share, one in mixture]
        belief = each[0][1] if len(each) == 1 else law.average(each, "auto")
        sums = Statistics()
        turns = draws if belief.probabilities is not None else 1
        for turn in range(turns):
            known = _drawn(belief, chunk, seed, turn, turns)
            sums += law.statistics(replace(chunk, known=known, is_known=np.ones(len(rows), dtype=bool)))
        found = {name: sums[name] / turns for name in names if name in sums}
        return Statistics({**found, "items": np.array(float(len(rows)))})

    known = passes.over_all(lambda chunk: expected(chunk.rows(chunk.gold_rows), DRAWS))
    every = passes.over_sample(lambda chunk: expected(chunk, 1))
    if not known["items"]:
        return statistics
    share = known["items"] / every["items"]
    corrected = {}
    for name in names:
        if name in known and name in every:
            value = statistics[name] - known[name] + share * every[name]
            # Counts remain non-negative.
            corrected[name] = np.maximum(value, 0.0) if (every[name] >= 0).all() else value
    return Statistics({**statistics, **corrected})


def _drawn(belief: Posterior, chunk: Chunk, seed: int, turn: int, turns: int) -> Batch:
    """Return a label of each item, drawn where there are probabilities, every part of which has its turn."""
    if belief.probabilities is None:
        return belief.labels
    items = np.arange(len(chunk)) if chunk.items is None else chunk.items
    level = (hash_priority(items, seed).astype(np.float64) / 2.0**64 + turn) / turns
    drawn = (belief.probabilities.cumsum(axis=1) < level[:, None]).sum(axis=1)
    return np.minimum(drawn, belief.probabilities.shape[1] - 1)
