"""Claim: with a few good sources among many poor ones, estimated weights more than halve the error of equal weights.

Twelve sources rank eight items for 300 queries. Three sources rank them well, and nine are hardly better than chance.
All Kemeny rankings are proven optimal, so the difference comes from the weights and not from the search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import consilience as cs

ITEMS = 8
#: Weight of each source in the Mallows model; 0 is random.
WEIGHTS = [1.0] * 3 + [0.05] * 9


@dataclass(frozen=True)
class Row:
    """Share of pairs in the wrong order, share of rankings that are right, and share that are proven optimal."""

    name: str
    error: float
    right: float
    optimal: float | None


def make_votes(n_queries: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (queries, sources, items) and the true positions."""
    space = cs.Rankings(ITEMS)
    truth = space.random(n_queries, rng)
    return np.stack([space.sample_around(truth, weight, rng) for weight in WEIGHTS], axis=1), truth


def compare(n_queries: int = 300, seed: int = 0) -> list[Row]:
    """Return the errors of each consensus."""
    votes, truth = make_votes(n_queries, np.random.default_rng(seed))
    space = cs.Rankings(ITEMS)

    def judge(name: str, positions: np.ndarray, optimal: np.ndarray | None = None) -> Row:
        right = float((positions == truth).all(axis=1).mean())
        proven = None if optimal is None else float(optimal.mean())
        return Row(name, space.kendall_error(positions, truth), right, proven)

    model = cs.LabelModel(space, random_state=seed).fit(votes)
    belief = model.posterior(votes)
    equal, learned, known = (cs.kemeny(votes, weights) for weights in (None, model.weight_, WEIGHTS))
    return [
        judge("Borda, equal weights", cs.rankings.borda(votes)),
        judge("Kemeny, equal weights", equal.positions, equal.optimal),
        judge("Kemeny, estimated weights", learned.positions, learned.optimal),
        judge("consilience, least expected error", belief.labels, belief.details["optimal"]),
        judge("Kemeny, true weights", known.positions, known.optimal),
    ]


if __name__ == "__main__":
    print(f"{'300 queries, 8 items, 12 sources':36}{'pairs wrong':>11}{'right':>8}{'proven optimal':>16}")
    for row in compare():
        proven = "" if row.optimal is None else f"{row.optimal:.0%}"
        print(f"{row.name:36}{row.error:>11.1%}{row.right:>8.1%}{proven:>16}")
