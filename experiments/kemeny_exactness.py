"""Claim: `kemeny` finds the best ranking, and reports correctly whether it is proven optimal.

Random weighted instances with ties and unseen items, compared with the enumeration of all orders (up to seven items)
and with the full integer program of linear ordering (10, 15 and 20 items).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
from rich.progress import track
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

import consilience as cs

from .tables import QUICK, FloatArray, IntArray, Settings, markdown_table, read_settings, verdict, write_results

#: Number of instances by number of items.
ENUMERATED = {3: 2000, 4: 2000, 5: 2000, 6: 1000, 7: 500}
PROGRAMMED = {10: 2000, 15: 1000, 20: 300}
QUICK_SHARE = 0.01
LIMIT = 60.0
#: Up to this many items every ranking is proven optimal without asking.
PROVEN = 15


def instance(items: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Return 3 to 9 votes around a common order, with ties and unseen items, and their weights."""
    sources = int(rng.integers(3, 10))
    noise = rng.uniform(0.3, 1.5)
    scores = np.arange(items) / items + noise * rng.normal(size=(sources, items))
    scores = np.where(rng.random((sources, 1)) < 0.5, np.round(scores * 2), scores)  # half of the sources know ties
    seen = rng.random((sources, items)) < 0.85
    seen[:, :2] = True
    positions = cs.Rankings.positions_from_scores(scores, seen=seen)
    # Equal weights make ties between orders.
    weights = np.where(rng.random(sources) < 0.3, 1.0, rng.exponential(size=sources))
    return np.asarray(positions, dtype=np.int64), weights


def pair_weights(positions: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how much weight puts i before j, and how much puts j before i, for i < j."""
    left, right = np.triu_indices(positions.shape[1], 1)
    one, two = positions[:, left], positions[:, right]
    both = (one >= 0) & (two >= 0)
    return weights @ (both & (one < two)), weights @ (both & (one > two))


def by_enumeration(before: FloatArray, behind: FloatArray, orders: IntArray) -> float:
    """Return the least weight that any order contradicts."""
    left, right = np.triu_indices(orders.shape[1], 1)
    ahead = orders[:, left] < orders[:, right]
    return float((ahead @ behind + ~ahead @ before).min())


def by_program(before: FloatArray, behind: FloatArray, items: int, limit: float = LIMIT) -> float | None:
    """Return the same by integer programming, or None in want of time."""
    pairs = {pair: index for index, pair in enumerate(combinations(range(items), 2))}
    triples = list(combinations(range(items), 3))
    columns = np.array([[pairs[i, j], pairs[j, k], pairs[i, k]] for i, j, k in triples])
    rows = np.repeat(np.arange(len(triples)), 3)
    signs = np.tile([1.0, 1.0, -1.0], len(triples))
    matrix = csr_array((signs, (rows, columns.ravel())), shape=(len(triples), len(pairs)))
    found = milp(
        behind - before,
        constraints=LinearConstraint(matrix, 0.0, 1.0),
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": limit, "mip_rel_gap": 0.0},
    )
    return float(found.fun + before.sum()) if found.status == 0 else None


def compare(items: int, count: int, seed: int) -> list[str]:
    """Return a row of the table: how often the least cost was found, proven, and the worst difference."""
    rng = np.random.default_rng(1000 * seed + items)
    orders = np.array(list(permutations(range(items)))) if items in ENUMERATED else np.zeros((0, items), dtype=int)
    compared = proven = equal = false = solved = 0
    worst = 0.0
    for _ in range(count):
        positions, weights = instance(items, rng)
        before, behind = pair_weights(positions, weights)
        best = by_enumeration(before, behind, orders) if len(orders) else by_program(before, behind, items)
        if best is None:
            continue
        found = cs.kemeny(positions, weights)
        gap = float(found.cost[0]) - best
        close = abs(gap) <= 1e-7 * (1.0 + best)
        compared, proven, equal = compared + 1, proven + bool(found.optimal[0]), equal + close
        false += bool(found.optimal[0]) and not close
        worst = max(worst, gap / (1.0 + best))
        if items > PROVEN:
            exact = cs.kemeny(positions, weights, exact="milp", time_limit=LIMIT)
            solved += bool(exact.optimal[0]) and abs(float(exact.cost[0]) - best) <= 1e-7 * (1.0 + best)
    referee = "enumeration" if len(orders) else "integer program"
    by_request = str(solved) if items > PROVEN else ""
    return [str(items), referee, str(compared), str(equal), str(proven), str(false), f"{worst:.1e}", by_request]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all comparisons and write the table."""
    settings: Settings = read_settings("experiments.kemeny_exactness", __doc__, 1, 1, arguments)
    sizes = ENUMERATED | PROGRAMMED
    rows = []
    for items, count in track(sizes.items(), description="kemeny"):
        scaled = max(int(count * QUICK_SHARE), 5) if settings.quick else count
        rows.append(compare(items, scaled, settings.seeds))
    columns = [
        "items",
        "referee",
        "instances",
        "least cost found",
        "proven optimal",
        "proven but wrong",
        "worst excess",
    ]
    blocks = [
        "3 to 9 sources per instance, half of them with ties, each item seen with probability .85; weights exponential "
        "or equal. *worst excess*: of the cost over the least one, relative.",
        markdown_table([*columns, 'proven with exact="milp"'], rows),
        "## Targets",
        QUICK if settings.quick else verdicts(rows),
    ]
    path = settings.results / "kemeny_exactness.md"
    write_results(path, "Kemeny rankings: exactness", settings.command, [f"seed {settings.seeds}"], blocks)


def verdicts(rows: Sequence[Sequence[str]]) -> str:
    """Say whether every ranking of up to 15 items is the best one, and every proof true."""
    exact = [row for row in rows if int(row[0]) <= PROVEN]
    longer = [row for row in rows if int(row[0]) > PROVEN]
    found = sum(int(row[2]) for row in exact)
    false = sum(int(row[5]) for row in rows)
    return "\n".join(
        [
            verdict(
                "Least cost found and proven in every instance of up to 15 items",
                all(row[2] == row[3] == row[4] for row in exact),
                f"{found} instances",
            ),
            verdict(
                "Least cost found and proven by exact='milp' in every longer one",
                all(row[2] == row[7] for row in longer),
                f"{sum(int(row[2]) for row in longer)} instances",
            ),
            verdict("Never proven but wrong", false == 0, f"{false} of {sum(int(row[2]) for row in rows)}"),
        ]
    )


if __name__ == "__main__":
    main()
