"""What votes show before any model: how alike two sources are, and what will be trouble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import BoolArray
from consilience.estimation.protocol import Diagnostic
from consilience.label_types.base import LabelSpace
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["Pairs", "findings_in_votes", "pair_agreement"]

#: Items on which sources are compared, evenly spread over the table.
SAMPLE = 20_000
#: Two sources that always say the same on so many items are probably one.
COPIED = 30
#: Two sources should meet on this many items before their agreement means much.
FEW = 10
#: Names listed in a finding.
LISTED = 8


@dataclass(frozen=True)
class Pairs:
    """How alike two sources are, most alike first.

    Parameters
    ----------
    both
        Items that both voted on.
    agreement
        Share of them with the same label; None where they never meet.
    cost
        Mean cost between their labels, where there is a label type.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    both: tuple[int, ...]
    agreement: tuple[float | None, ...]
    cost: tuple[float | None, ...]
    measured: bool

    def columns(self) -> dict[str, list[Any]]:
        """Return the pairs as columns of a table."""
        columns: dict[str, list[Any]] = {
            "source": list(self.left),
            "and": list(self.right),
            "both": list(self.both),
            "agreement": list(self.agreement),
        }
        return columns | ({"mean cost": list(self.cost)} if self.measured else {})

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per pair."""
        columns = self.columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def extremes(self, count: int) -> Pairs:
        """Return the most alike pairs and the least alike ones."""
        size = len(self.left)
        chosen = sorted({*range(min(count, size)), *range(max(0, size - count), size)})
        return Pairs(
            tuple(self.left[place] for place in chosen),
            tuple(self.right[place] for place in chosen),
            tuple(self.both[place] for place in chosen),
            tuple(self.agreement[place] for place in chosen),
            tuple(self.cost[place] for place in chosen),
            self.measured,
        )


def pair_agreement(votes: Votes, space: LabelSpace | None) -> Pairs:
    """Return how often two sources meet, how often they say the same, and what lies between them."""
    table = votes if len(votes) <= SAMPLE else votes[np.linspace(0, len(votes) - 1, SAMPLE).astype(np.int64)]
    coded = table if space is None else encode(table, space)
    share = len(votes) / max(len(table), 1)
    found = []
    for a in range(votes.n_sources):
        for b in range(a + 1, votes.n_sources):
            rows = np.flatnonzero(coded.observed[:, a] & coded.observed[:, b])
            both = int((votes.observed[:, a] & votes.observed[:, b]).sum()) if share > 1 else len(rows)
            agreement = cost = None
            if len(rows):
                left, right = coded.labels[rows, a], coded.labels[rows, b]
                if space is None:
                    agreement = float(np.mean([_same(one, two) for one, two in zip(left, right, strict=True)]))
                else:
                    between = space.cost(left, right)
                    agreement, cost = float((between <= 1e-12).mean()), float(between.mean())
            found.append((votes.sources[a], votes.sources[b], both, agreement, cost))
    found.sort(key=lambda pair: (pair[3] is None, -(pair[3] or 0.0), pair[4] or 0.0))
    left_names, right_names, both_counts, agreements, costs = zip(*found, strict=True) if found else ((),) * 5
    return Pairs(left_names, right_names, both_counts, agreements, costs, space is not None)


def findings_in_votes(votes: Votes, pairs: Pairs) -> list[Diagnostic]:
    """Return what will be trouble whatever the model, worst first."""
    found = []
    count = votes.observed.sum(axis=0)
    active = int((count > 0).sum())
    if active < 3:
        found.append(
            _finding(
                "too-few-sources", "warning", (),
                f"{active} source(s) vote; agreement tells their qualities apart from 3 on. Add sources, or known "
                "labels with --gold.",
            )
        )  # fmt: skip
    silent = tuple(name for name, votes_cast in zip(votes.sources, count, strict=True) if votes_cast == 0)
    if silent:
        found.append(_finding("never-votes", "warning", silent, "no vote at all. Leave out with --drop."))
    copied = [
        (left, right)
        for left, right, both, agreement in zip(pairs.left, pairs.right, pairs.both, pairs.agreement, strict=True)
        if agreement == 1.0 and both >= COPIED
    ]
    for left, right in copied[:LISTED]:
        message = (
            f"the same vote on every item they share. If one copies the other, label with --depends {left},{right}."
        )
        found.append(_finding("copied-source", "warning", (left, right), message))
    met = {name: 0 for name in votes.sources}
    for left, right, both in zip(pairs.left, pairs.right, pairs.both, strict=True):
        if both >= FEW:
            met[left] += 1
            met[right] += 1
    lonely = tuple(name for name, meetings in met.items() if meetings < 2 and name not in silent)
    if lonely and active >= 3:
        message = f"fewer than two other sources vote on {FEW} or more of the same items, so little can be learned."
        found.append(_finding("low-overlap", "warning", lonely, message))
    voters = votes.observed.sum(axis=1)
    if (voters == 0).any():
        message = f"{_items(votes, voters == 0)} have no vote; their label will be missing."
        found.append(Diagnostic("items-without-votes", "info", (), message))
    if (voters == 1).any():
        message = f"{_items(votes, voters == 1)} have one vote only, which nobody can correct."
        found.append(Diagnostic("items-with-one-vote", "info", (), message))
    return found


def _finding(code: str, severity: Any, sources: tuple[str, ...], message: str) -> Diagnostic:
    named = ", ".join(sources[:LISTED]) + (", ..." if len(sources) > LISTED else "")
    return Diagnostic(code, severity, sources, f"{named}: {message}" if sources else message)


def _items(votes: Votes, chosen: BoolArray) -> str:
    ids = [str(item) for item in votes.items[chosen][:3].tolist()]
    more = ", ..." if chosen.sum() > len(ids) else ""
    return f"{int(chosen.sum())} of {len(votes)} items ({', '.join(ids)}{more})"


def _same(one: Any, two: Any) -> bool:
    return bool(np.array_equal(one, two)) if isinstance(one, np.ndarray) or isinstance(two, np.ndarray) else one == two
