"""Why an item got its label: who voted how, how much each vote counted, and what would have changed the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.estimation.protocol import Posterior
from consilience.exceptions import InvalidVotesError, did_you_mean
from consilience.label_types.base import LabelSpace
from consilience.label_types.preferences.comparisons import Comparisons
from consilience.partitions.base import Part, VotePartitions
from consilience.prediction.inference import believe
from consilience.prediction.source_model import SourceModel, connected
from consilience.tables.encoding import encode
from consilience.tables.vote_tables import order_as_text
from consilience.votes import Votes

#: Smaller probabilities count as this one, so that log-odds stay finite.
SMALLEST = 1e-12
#: Items named if the one asked for does not exist, and silent sources named.
SHOWN, SHOWN_SILENT = 5, 8


@dataclass(frozen=True)
class Voice:
    """How one source influenced the label of one item: its vote, its weight, and the distance of the vote to the label.

    `contribution` is how far the log-odds of the label over the runner-up would fall without this source. For types
    without a finite list of labels it is how far the label would move, negative if it would move toward the vote, that
    is, if the source was outvoted. `label_without` is the label if this source had abstained, and `flips` tells whether
    it is a different one (never on a continuous scale). On a continuous scale `alone` is the label if no other source
    had voted: the vote, corrected for the bias of its source and shrunk toward the mean.
    """

    source: str
    vote: Any
    weight: float
    distance: float
    contribution: float
    label_without: Any
    flips: bool
    alone: Any = None

    @property
    def said(self) -> str:
        """The vote as text."""
        if isinstance(self.vote, Comparisons) and self.vote.ranking is None:
            return f"{len(self.vote):,} comparisons, {1.0 - self.distance:.0%} of them as in the label"
        vote, alone = _text(self.vote), _text(self.alone)
        return (
            f"said {vote}"
            if self.alone is None or alone == vote
            else f"said {vote}, which is {alone} on the common scale"
        )


@dataclass(frozen=True)
class Explanation:
    """Why one item got its label.

    Parameters
    ----------
    voices, abstained
        One voice per source that voted on the item, largest contribution first, and the names of the others.
    runner_up, margin
        The next best label, and the log-odds of the label over it. For types without a finite list of labels it is the
        best of the other votes, and the margin is its additional weighted cost. None and NaN if the scale is continuous
        or all votes are the same. A negative margin means that the other label has more support, but a larger expected
        cost: of 1, 1 and 5 stars, 2 may be the best guess without being the most probable one.
    flipped_by, flipped_to
        The fewest sources found, most supportive first, without which the label would be different, and that label.
        Empty and None if there is no such group.
    shared
        Groups of dependent sources among the voters. Each group shares one say.
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
        if not self.voices:
            return f"item {self.item}: no label, because no source voted on it"
        compared = any(isinstance(voice.vote, Comparisons) for voice in self.voices)
        label = order_as_text(self.label) if compared and isinstance(self.label, list) else _text(self.label)
        lines = [f"item {self.item}: {label} (confidence {self.confidence:.2f})"]
        if self.runner_up is not None:
            margin, other = round(self.margin, 2) + 0.0, _text(self.runner_up)
            ahead = f"{other} has more support (margin {margin:.2f}), but a larger expected cost"
            lines[0] += f"; {ahead}" if margin < 0 else f"; next best {other} (margin {margin:.2f})"
        width = max((len(voice.source) for voice in self.voices), default=0)
        for voice in self.voices:
            # On a continuous scale, every vote moves the label. Elsewhere, a vote counts and may decide.
            moves = voice.alone is not None and voice.label_without is not None
            without = f"; without it {_text(voice.label_without)}" if moves or voice.flips else ""
            counts = "" if moves or compared else f"contributes {round(voice.contribution, 2) + 0.0:+6.2f}  "
            lines.append(f"  {voice.source.ljust(width)}  weight {voice.weight:6.2f}  {counts}{voice.said}{without}")
        if 0 < len(self.abstained) <= SHOWN_SILENT:
            lines.append(f"  abstained: {', '.join(self.abstained)}")
        elif self.abstained:
            lines.append(f"  {len(self.abstained)} other sources did not vote")
        lines += [f"  share one say: {', '.join(group)}" for group in self.shared]
        if self.flipped_by:
            lines.append(f"  without {', '.join(self.flipped_by)} the label would be {_text(self.flipped_to)}")
        return "\n".join(lines)


def explain(model: SourceModel, space: LabelSpace, votes: Any, decode: str, item: Any) -> Explanation:
    """Explain the label of the item with this id. From partitions, only the votes on this item are collected."""
    if isinstance(votes, VotePartitions):
        votes = _votes_on(votes, item)
    table = model.aligned(votes, space)
    one = table[[_find(table, item)]]
    said = encode(one, space)
    identity, voters = one.items.tolist()[0], np.flatnonzero(said.observed[0])
    if len(voters) == 0:
        return Explanation(identity, None, 0.0, (), table.sources)

    def belief_without(groups: list[IntArray]) -> Posterior:
        masks = np.repeat(said.observed, len(groups), axis=0)
        for mask, silent in zip(masks, groups, strict=True):
            mask[silent] = False
        return believe(model, space.law, np.repeat(said.labels, len(groups), axis=0), masks, decode)

    def apart(batch: Batch) -> FloatArray:
        return space.distance(np.repeat(label, len(batch), axis=0), batch)

    def total_cost(one_label: Batch) -> float:
        return float(space.cost(np.repeat(one_label, len(cast), axis=0), cast) @ weight)

    def written(batch: Batch) -> list[Any]:
        labels = space.as_labels(batch, one.spelling or one.labels.dtype)
        same = np.repeat([0], len(labels))
        return list(space.in_words_of(labels, one.labels[same], one.observed[same]))

    belief = belief_without([voters[:0], *voters[:, None]])
    label, without, cast = belief.labels[:1], belief.labels[1:], said.labels[0, voters]
    distance, weight = apart(cast), model.summary.weight[voters]
    # Without its only voter, an item has no label.
    alone = len(voters) == 1
    moved = np.zeros(1) if alone else apart(without)
    other, margin = None, float("nan")
    if belief.probabilities is not None and belief.probabilities.shape[1] > 1:
        code = int(belief.labels[0])
        ranked = np.argsort(-belief.probabilities[0], kind="stable")
        second = int(ranked[0] if ranked[0] != code else ranked[1])
        odds = np.log(np.maximum(belief.probabilities, SMALLEST))
        lead = odds[:, code] - odds[:, second]
        contribution, margin = lead[0] - lead[1:], float(lead[0])
        other = np.array([second], dtype=belief.labels.dtype)
    elif alone:
        contribution = np.zeros(1)
    else:
        contribution = np.where(space.distance(without, cast) < distance, -moved, moved)
        candidates = np.concatenate([cast, without]) if space.votes_are_labels else without
        candidates = candidates[apart(candidates) > 0.0]
        if not space.continuous and len(candidates):
            costs = [total_cost(candidates[k : k + 1]) for k in range(len(candidates))]
            best = int(np.argmin(costs))
            other, margin = candidates[best : best + 1], costs[best] - total_cost(label)
    names = [table.sources[index] for index in voters]
    order = np.argsort(-contribution, kind="stable")
    spoken, labels_without = written(cast), [None] if alone else written(without)
    numbers = (array.tolist() for array in (weight, distance, contribution))
    flips = ((moved > 0.0) & (not space.continuous)).tolist()
    on_scale = [None] * len(voters)
    if space.continuous:
        on_scale = written(belief_without([voters[voters != one] for one in voters]).labels)
    voices = [Voice(*fields) for fields in zip(names, spoken, *numbers, labels_without, flips, on_scale, strict=True)]
    flipped_by, flipped_to = voters[:0], None
    if not space.continuous and not alone:
        heads = [voters[order][:count] for count in range(1, len(order))]
        labels = belief_without(heads).labels
        changed = np.flatnonzero(apart(labels) > 0.0)[:1]
        if len(changed):
            flipped_by, flipped_to = heads[changed[0]], written(labels[changed])[0]
    groups = connected(pair for pair in model.dependencies if set(pair) <= set(names))
    groups.sort(key=lambda group: min(map(names.index, group)))
    return Explanation(
        item=identity,
        label=written(label)[0],
        confidence=float(belief.confidence[0]),
        voices=tuple(voices[k] for k in order),
        abstained=tuple(table.sources[index] for index in np.flatnonzero(~said.observed[0])),
        runner_up=None if other is None else written(other)[0],
        margin=margin,
        flipped_by=tuple(table.sources[index] for index in flipped_by),
        flipped_to=flipped_to,
        shared=tuple(tuple(sorted(group, key=names.index)) for group in groups),
    )


def _votes_on(partitions: VotePartitions, item: Any) -> Votes:
    """Return the votes on the item from the first part that has it, or else the first few items."""

    def look(part: Part) -> tuple[Votes, bool]:
        row = _row_of(part.votes, item)
        return (part.votes[:SHOWN], False) if row is None else (part.votes[[row]], True)

    first: Votes | None = None
    for votes, found in partitions.map(look):
        if found:
            return votes
        first = votes if first is None else first
    if first is None:
        raise InvalidVotesError(f"There is no item {item!r}, because the votes are empty.")
    return first


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
    hint = did_you_mean(item, ids) or f" The first ones are {', '.join(map(repr, ids[:SHOWN]))}."
    raise InvalidVotesError(f"There is no item {item!r} in the votes.{hint}")


def _text(label: Any) -> str:
    return f"{label:.4g}" if isinstance(label, float) else str(_rounded(label))


def _rounded(label: Any) -> Any:
    """Return a label with all its numbers rounded to four digits, at any depth."""
    if isinstance(label, np.ndarray | np.generic):
        label = label.tolist()
    if isinstance(label, float):
        return float(f"{label:.4g}")
    if isinstance(label, dict):
        return {name: _rounded(value) for name, value in label.items()}
    return type(label)(map(_rounded, label)) if type(label) in (list, tuple) else label
