"""Single items: those on which sources disagree most, with every vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consilience.report.evidence import Evidence

__all__ = ["Item", "Vote", "contested_items"]

#: Votes listed per item.
MAX_VOTES = 40
#: A difference below this is rounding.
EQUAL = 1e-9


@dataclass(frozen=True)
class Vote:
    """What one source said about an item; `number` names the vote in pictures."""

    number: int
    source: str
    label: Any
    weight: float
    distance: float


@dataclass(frozen=True)
class Item:
    """An item, its label and the votes on it.

    Parameters
    ----------
    votes
        Loudest source first.
    unlisted
        How many votes more there are.
    plain
        What a plain vote would say, where that is another label; else None.
    known
        The known label, or None.
    details
        What else the model knows about this item, by name.
    """

    name: str
    label: Any
    confidence: float
    votes: tuple[Vote, ...]
    unlisted: int = 0
    plain: Any = None
    known: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)


def contested_items(evidence: Evidence, count: int) -> list[Item]:
    """Return the items of largest doubt (1 - confidence) times mean distance between votes and label.

    Doubt alone would list items that few sources saw, distance alone those where the wrong ones are known to err.
    """
    rows = evidence.rows
    if len(rows) == 0:
        return []
    votes_per_item = evidence.encoded.observed[rows].sum(axis=1)
    dissent = np.nansum(evidence.apart[rows], axis=1) / np.maximum(votes_per_item, 1)
    doubt = np.maximum(1.0 - evidence.confidence, EQUAL)
    trouble = doubt * dissent
    order = np.argsort(-trouble, kind="stable")[:count]
    moved = evidence.space.distance(evidence.best, evidence.plain) > EQUAL
    return [
        _item(evidence, int(rows[place]), int(place), bool(moved[place])) for place in order if trouble[place] > 0.0
    ]


def _item(evidence: Evidence, row: int, place: int, moved: bool) -> Item:
    space, weight = evidence.space, evidence.model.weight
    voters = np.flatnonzero(evidence.encoded.observed[row])
    voters = voters[np.argsort(-weight[voters], kind="stable")]
    votes = tuple(
        Vote(
            number,
            evidence.votes.sources[source],
            _value(evidence.votes.labels[row, source]),
            float(weight[source]),
            float(evidence.apart[row, source]),
        )
        for number, source in enumerate(voters[:MAX_VOTES], start=1)
    )
    known = evidence.known
    return Item(
        name=str(evidence.votes.items[row]),
        label=_value(evidence.belief.labels[row]),
        confidence=float(evidence.belief.confidence[row]),
        votes=votes,
        unlisted=len(voters) - len(votes),
        plain=_value(space.as_labels(evidence.plain[place : place + 1], np.dtype(object))[0]) if moved else None,
        known=None
        if known is None or not known.observed[row, 0]
        else _value(space.as_labels(known.labels[row : row + 1, 0], np.dtype(object))[0]),
        details={name: values[row] for name, values in evidence.belief.details.items()},
    )


def _value(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
