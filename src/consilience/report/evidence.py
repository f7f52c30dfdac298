"""What the report is about: the votes, what the model believes, single items, and how sources relate. Gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, hash_priority
from consilience.estimation.protocol import Posterior
from consilience.exceptions import NotFittedError, UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import VotePartitions
from consilience.prediction.inference import infer, vote_distances
from consilience.prediction.source_model import SourceModel, connected
from consilience.tables.encoding import align_sources, encode, read_gold
from consilience.votes import Votes


@dataclass(frozen=True, eq=False)
class Evidence:
    """Votes and beliefs about the same items.

    Parameters
    ----------
    votes, encoded
        As they came, and in the form of the space.
    belief
        With labels as users write them; arbitrary where nobody voted.
    rows
        The items that have a vote; `best` and `plain` are about these.
    best, plain
        Their labels in the form of the space: those of the model, and those of a plain vote.
    apart
        ``(n, m)`` distance of every vote to the label of its item; NaN where there is none.
    known
        Known labels as the votes of one source, or None.
    """

    space: LabelSpace
    model: SourceModel
    votes: Votes
    encoded: Votes
    belief: Posterior
    rows: IntArray
    best: Batch
    plain: Batch
    apart: FloatArray
    known: Votes | None

    @property
    def voted(self) -> BoolArray:
        """Which items have a vote."""
        mask = np.zeros(len(self.votes), dtype=bool)
        mask[self.rows] = True
        return mask

    @property
    def confidence(self) -> FloatArray:
        """Confidence in the label of each item that has a vote."""
        return self.belief.confidence[self.rows]


def gather(model: LabelModel, votes: Any, gold: Any = None) -> Evidence:
    """Return what there is to report about these votes."""
    if not isinstance(model, LabelModel):
        raise NotFittedError(
            f"A report is about a fitted LabelModel, not {type(model).__name__}. Pass the model first."
        )
    if not model.__sklearn_is_fitted__():
        raise NotFittedError(
            "This LabelModel has not been fitted, so there is nothing to report. Call fit(votes) first."
        )
    learned, space = model.source_model_, model.space
    table = align_sources(_whole(votes), space, learned.sources, learned.names_given)
    encoded = encode(table, space)
    found, baseline = (infer(one, space, table, model.decode) for one in (learned, learned.as_baseline()))
    rows = np.flatnonzero(found.voted)
    best, plain = (one.posterior.labels[rows] for one in (found, baseline))
    apart = np.full(encoded.observed.shape, np.nan)
    if len(rows):
        best, plain = space.as_batch(best), space.as_batch(plain)
        apart[rows] = vote_distances(space, encoded[rows], best)
    known = read_gold(gold, space, len(table))
    return Evidence(space, learned, table, encoded, found.posterior, rows, best, plain, apart, known)


def _whole(votes: Any) -> Any:
    """Return partitions as one table: the pictures need single items."""
    if not isinstance(votes, VotePartitions):
        return votes
    if votes.remote:
        raise UnsupportedError(
            f"A report shows single items, and the votes of {type(votes).__name__} stay where they are. Pass a "
            "sample of them: votes.sample(50_000, seed=0)."
        )
    return Votes.concatenate(list(votes.map(lambda part: part.votes)))


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
    plain = evidence.plain[place : place + 1] if moved else None
    known = evidence.known
    truth = known.labels[row : row + 1, 0] if known is not None and known.observed[row, 0] else None

    def written(label: Batch | None) -> Any:
        return None if label is None else _value(space.as_labels(label, np.dtype(object))[0])

    return Item(
        name=str(evidence.votes.items[row]),
        label=_value(evidence.belief.labels[row]),
        confidence=float(evidence.belief.confidence[row]),
        votes=votes,
        unlisted=len(voters) - len(votes),
        plain=written(plain),
        known=written(truth),
        details={name: values[row] for name, values in evidence.belief.details.items()},
    )


def _value(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


#: Items on which sources are compared with each other.
COMPARED_ITEMS = 20_000
#: Sources that are compared with each other: those of most votes.
COMPARED_SOURCES = 30
#: More sources than that are numbered on the map.
MAX_NAMES = 14
#: Findings that name sources which may depend on each other.
_DEPENDENCE = ("dependent-pair", "copied-source")


@dataclass(frozen=True, eq=False)
class Relations:
    """The sources that were compared, those of a group next to each other.

    Parameters
    ----------
    sources
        Their names; m of them.
    cost
        ``(m, m)`` mean cost between the votes of two sources on the same item; NaN where they never meet.
    to_label
        ``(m,)`` mean cost between its votes and the labels.
    groups
        Which of them, by position, depend on each other.
    places
        ``(m + 1, 2)`` places on a map in which near means similar; the last is that of the labels.
    """

    sources: tuple[str, ...]
    cost: FloatArray
    to_label: FloatArray
    groups: tuple[tuple[int, ...], ...]
    places: FloatArray

    @property
    def crowded(self) -> bool:
        """Whether there are too many of them for names on a map."""
        return len(self.sources) > MAX_NAMES


def relate(space: LabelSpace, model: SourceModel, encoded: Votes, best: Batch, voted: BoolArray) -> Relations:
    """Return how the sources with the most votes relate."""
    rows = np.flatnonzero(voted)
    if len(rows) > COMPARED_ITEMS:
        rows = np.sort(rows[np.argpartition(hash_priority(encoded.items[rows]), COMPARED_ITEMS)[:COMPARED_ITEMS]])
    labels, observed = encoded.labels[rows], encoded.observed[rows]
    best = best[(np.cumsum(voted) - 1)[rows]]
    most = np.argsort(-observed.sum(axis=0), kind="stable")[:COMPARED_SOURCES]
    chosen = np.sort(most[observed[:, most].any(axis=0)])
    m = len(chosen)
    cost = np.full((m + 1, m + 1), np.nan)
    said = [(labels[:, source], observed[:, source]) for source in chosen]
    said.append((best, np.ones(len(rows), dtype=bool)))
    for (a, (left, seen)), (b, (right, also_seen)) in combinations(enumerate(said), 2):
        both = np.flatnonzero(seen & also_seen)
        if len(both):
            cost[a, b] = cost[b, a] = float(space.cost(left[both], right[both]).mean())
    places = classical_scaling(cost)
    names = [encoded.sources[source] for source in chosen]
    order, groups = _arranged(names, dependent_groups(model), places[:m])
    ordered = tuple(names[source] for source in order)
    return Relations(ordered, cost[np.ix_(order, order)], cost[order, m], groups, places[np.append(order, m)])


def dependent_groups(model: SourceModel) -> list[list[str]]:
    """Return groups of sources linked by given dependencies, or by a finding about two sources."""
    found = [item.sources for item in model.diagnostics if item.code in _DEPENDENCE and len(item.sources) == 2]
    return connected([*model.dependencies, *found])


def classical_scaling(squares: FloatArray) -> FloatArray:
    """Return points of the plane whose squared distances are near the given ones (classical scaling).

    Unknown squares (NaN) are taken as the mean of the known ones. Mean costs add up over independent sources as
    squared distances do, so they are taken for those.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    >>> squares = ((corners[:, None] - corners) ** 2).sum(axis=2)
    >>> places = classical_scaling(squares)
    >>> ((places[:, None] - places) ** 2).sum(axis=2).round(6).tolist()
    [[0.0, 9.0, 16.0], [9.0, 0.0, 25.0], [16.0, 25.0, 0.0]]
    """
    n = len(squares)
    known = np.isfinite(squares) & ~np.eye(n, dtype=bool)
    filled = np.where(known, squares, squares[known].mean() if known.any() else 0.0)
    np.fill_diagonal(filled, 0.0)
    center = np.eye(n) - 1.0 / max(n, 1)
    values, vectors = np.linalg.eigh(-0.5 * center @ filled @ center)
    places = np.zeros((n, 2))
    for axis in range(min(2, n)):
        vector = vectors[:, -1 - axis]
        # The sign of an eigenvector is arbitrary; the largest entry is put on the positive side.
        sign = np.sign(vector[np.argmax(np.abs(vector))]) or 1.0
        places[:, axis] = sign * np.sqrt(max(float(values[-1 - axis]), 0.0)) * vector
    return places


def _arranged(
    names: list[str], groups: list[list[str]], places: FloatArray
) -> tuple[IntArray, tuple[tuple[int, ...], ...]]:
    """Return an order in which groups stay together and neighbors are similar, and the groups in that order."""
    index = {name: position for position, name in enumerate(names)}
    members = [[index[name] for name in group if name in index] for group in groups]
    members = [group for group in members if len(group) > 1]
    grouped = {position for group in members for position in group}
    blocks = [*members, *([position] for position in range(len(names)) if position not in grouped)]
    blocks.sort(key=lambda block: float(places[block, 0].mean()))
    order = np.array([position for block in blocks for position in block], dtype=np.int64)
    rank = {int(position): place for place, position in enumerate(order)}
    return order, tuple(tuple(rank[position] for position in block) for block in blocks if len(block) > 1)
