"""Why an item got its label: who said what, how much it counted, and what would have changed the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Posterior
from consilience.exceptions import InvalidVotesError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import Part, VotePartitions
from consilience.prediction.inference import believe
from consilience.prediction.source_model import SourceModel, connected
from consilience.tables.encoding import align_sources, encode
from consilience.votes import Votes

__all__ = ["Explanation", "Voice", "explain"]

#: Probabilities are not told apart from 0 below this, so that log-odds stay finite.
SMALLEST = 1e-12
#: Items named where the one that was asked for is not there.
SHOWN = 5


@dataclass(frozen=True)
class Voice:
    """What one source did to the label of one item.

    Parameters
    ----------
    vote
        What it said, as the user writes labels.
    weight
        How loudly it counts on all items.
    distance
        Between its vote and the label.
    contribution
        Without this source, by how much the log-odds of the label over the runner-up would fall. Where there is
        no finite list of labels: how far the label would move, with a minus where that brings it closer to the
        vote's own side than it is now, that is, where the source was outvoted.
    label_without
        The label if this source had abstained.
    flips
        Whether that is another label; always False for labels on a continuous scale.
    """

    source: str
    vote: Any
    weight: float
    distance: float
    contribution: float
    label_without: Any
    flips: bool


@dataclass(frozen=True)
class Explanation:
    """The story of one label.

    Parameters
    ----------
    voices
        One per source that voted on the item, largest contribution first.
    abstained
        Names of the sources that did not vote.
    runner_up, margin
        The next best label, and the log-odds of the label over it. Where there is no finite list of labels it is
        the best among the other votes, and the margin is the weighted cost it has more than the label. None and
        NaN where the scale is continuous or nobody said anything else.
    flipped_by, flipped_to
        The fewest sources found, most supportive first, without which the label would be another one, and which.
        Empty and None if no such group leaves a vote over.
    shared
        Groups of voting sources that depend on each other and therefore share their say.
    """

    item: Any
    label: Any
    confidence: float
    voices: tuple[Voice, ...]
    abstained: tuple[str, ...]
    runner_up: Any = None
    margin: float = float("nan")
    flipped_by: tuple[str, ...] = ()
    flipped_to: Any = None
    shared: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        lines = [f"item {self.item}: {_text(self.label)} (confidence {self.confidence:.2f})"]
        if self.runner_up is not None:
            lines[0] += f"; next best {_text(self.runner_up)} (margin {self.margin:.2f})"
        width = max((len(voice.source) for voice in self.voices), default=0)
        for voice in self.voices:
            flip = f"  without it: {_text(voice.label_without)}" if voice.flips else ""
            lines.append(
                f"  {voice.source.ljust(width)}  weight {voice.weight:6.2f}  "
                f"contributes {round(voice.contribution, 2) + 0.0:+6.2f}  said {_text(voice.vote)}{flip}"
            )
        if self.abstained:
            lines.append(f"  abstained: {', '.join(self.abstained)}")
        lines += [f"  share one say: {', '.join(group)}" for group in self.shared]
        if self.flipped_by:
            lines.append(f"  without {', '.join(self.flipped_by)} the label would be {_text(self.flipped_to)}")
        return "\n".join(lines)


def explain(model: SourceModel, space: LabelSpace, votes: Any, decode: str, item: Any) -> Explanation:
    """Return why the item of this id got its label; of partitions only its own votes are brought here."""
    if isinstance(votes, VotePartitions):
        votes = _votes_on(votes, item)
    table = align_sources(votes, space, model.sources, model.names_given)
    row = _find(table, item)
    one = table[[row]]
    said = encode(one, space)
    voters = np.flatnonzero(said.observed[0])

    def belief_of(observed: BoolArray) -> Posterior:
        labels = np.repeat(said.labels, len(observed), axis=0)
        return believe(model, space.law, labels, observed, decode)

    def written(batch: Batch) -> list[Any]:
        return list(space.as_labels(batch, one.labels.dtype))

    identity = one.items.tolist()[0]
    if len(voters) == 0:
        return Explanation(identity, None, 0.0, (), table.sources)
    masks = np.repeat(said.observed, len(voters) + 1, axis=0)
    masks[np.arange(1, len(voters) + 1), voters] = False
    belief = belief_of(masks)
    # Without its only voter an item has no label at all.
    alone = len(voters) == 1
    label, without = belief.labels[:1], belief.labels[1:]
    cast = said.labels[0, voters]
    distance = space.distance(_repeated(label, len(voters)), cast)
    moved = np.zeros(1) if alone else space.distance(_repeated(label, len(voters)), without)
    contribution = _contributions(space, belief, cast, distance, moved, without)
    flips = (moved > 0.0) & ~np.full(len(voters), space.continuous)
    names = [table.sources[index] for index in voters]
    order = np.argsort(-contribution, kind="stable")
    spoken, unwritten = written(cast), [None] if alone else written(without)
    voices = tuple(
        Voice(
            names[k],
            spoken[k],
            float(model.weight[voters[k]]),
            float(distance[k]),
            float(contribution[k]),
            unwritten[k],
            bool(flips[k]),
        )
        for k in order
    )
    runner_up, margin = _runner_up(space, belief, label, cast, without, model.weight[voters], written)
    flipped_by, flipped_to = _flip(space, label, said.observed, voters[order], belief_of, written)
    return Explanation(
        item=identity,
        label=written(label)[0],
        confidence=float(belief.confidence[0]),
        voices=voices,
        abstained=tuple(table.sources[index] for index in np.flatnonzero(~said.observed[0])),
        runner_up=runner_up,
        margin=margin,
        flipped_by=tuple(table.sources[index] for index in flipped_by),
        flipped_to=flipped_to,
        shared=_groups(model, names),
    )


def _votes_on(partitions: VotePartitions, item: Any) -> Votes:
    """Return the votes on the item, from the first part that holds it; the first few items where none does."""
    first: Votes | None = None
    for votes, found in partitions.map(partial(_look_for, item)):
        if found:
            return votes
        first = votes if first is None else first
    if first is None:
        raise InvalidVotesError(f"There is no item {item!r} in the votes, which hold no item at all.")
    return first


def _look_for(item: Any, part: Part) -> tuple[Votes, bool]:
    row = _row_of(part.votes, item)
    return (part.votes[:SHOWN], False) if row is None else (part.votes[[row]], True)


def _row_of(table: Votes, item: Any) -> int | None:
    ids = table.items.tolist()
    for candidate in (item, int(item) if isinstance(item, str) and item.isdigit() else item):
        if candidate in ids:
            return int(ids.index(candidate))
    return None


def _find(table: Votes, item: Any) -> int:
    row = _row_of(table, item)
    if row is not None:
        return row
    ids = table.items.tolist()
    close = get_close_matches(str(item), [str(name) for name in ids], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else f" The first ones are {', '.join(map(repr, ids[:SHOWN]))}."
    raise InvalidVotesError(f"There is no item {item!r} in the votes.{hint}")


def _repeated(label: Batch, n: int) -> Batch:
    return np.repeat(label, n, axis=0)


def _contributions(
    space: LabelSpace, belief: Posterior, cast: Batch, distance: FloatArray, moved: FloatArray, without: Batch
) -> FloatArray:
    if belief.probabilities is not None and belief.probabilities.shape[1] > 1:
        label, other = _best_two(belief)
        odds = np.log(np.maximum(belief.probabilities, SMALLEST))
        lead: FloatArray = odds[:, label] - odds[:, other]
        added: FloatArray = lead[0] - lead[1:]
        return added
    if len(cast) == 1:
        return np.zeros(1)
    pulled_away: BoolArray = space.distance(without, cast) < distance
    return np.where(pulled_away, -moved, moved)


def _best_two(belief: Posterior) -> tuple[int, int]:
    """Return the code of the label of the first item, and of the most probable other one."""
    if belief.probabilities is None:
        return 0, 0
    code = int(belief.labels[0])
    ranked = np.argsort(-belief.probabilities[0], kind="stable")
    return code, int(ranked[0] if ranked[0] != code else ranked[1])


def _runner_up(
    space: LabelSpace,
    belief: Posterior,
    label: Batch,
    cast: Batch,
    without: Batch,
    weight: FloatArray,
    written: Any,
) -> tuple[Any, float]:
    if belief.probabilities is not None and belief.probabilities.shape[1] > 1:
        code, next_best = _best_two(belief)
        odds = np.log(np.maximum(belief.probabilities[0], SMALLEST))
        return written(np.array([next_best], dtype=belief.labels.dtype))[0], float(odds[code] - odds[next_best])
    if space.continuous or len(cast) == 1:
        return None, float("nan")
    candidates = np.concatenate([cast, without])
    other = space.distance(_repeated(label, len(candidates)), candidates) > 0.0
    if not other.any():
        return None, float("nan")
    candidates = candidates[other]
    voices = _repeated(cast[None], len(candidates)).reshape(len(candidates) * len(cast), *cast.shape[1:])
    each = _repeated(candidates, len(cast))
    cost = space.cost(each, voices).reshape(len(candidates), len(cast)) @ weight
    best = int(np.argmin(cost))
    own = float(space.cost(_repeated(label, len(cast)), cast) @ weight)
    return written(candidates[best : best + 1])[0], float(cost[best] - own)


def _flip(
    space: LabelSpace, label: Batch, observed: BoolArray, order: IntArray, belief_of: Any, written: Any
) -> tuple[IntArray, Any]:
    """Return the shortest head of `order` whose silence changes the label, and the label it becomes."""
    if space.continuous or len(order) < 2:
        return order[:0], None
    masks = np.repeat(observed, len(order) - 1, axis=0)
    for count in range(1, len(order)):
        masks[count - 1, order[:count]] = False
    labels = belief_of(masks).labels
    changed = np.flatnonzero(space.distance(_repeated(label, len(labels)), labels) > 0.0)
    if len(changed) == 0:
        return order[:0], None
    first = int(changed[0])
    return order[: first + 1], written(labels[first : first + 1])[0]


def _groups(model: SourceModel, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the voting sources that are connected by dependencies, group by group."""
    groups = connected(pair for pair in model.dependencies if set(pair) <= set(names))
    groups.sort(key=lambda group: min(map(names.index, group)))
    return tuple(tuple(sorted(group, key=names.index)) for group in groups)


def _text(label: Any) -> str:
    if isinstance(label, float):
        return f"{label:.4g}"
    return str(label.tolist() if isinstance(label, np.ndarray | np.generic) else label)
