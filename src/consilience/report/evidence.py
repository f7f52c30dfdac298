"""What the report is about: the votes, what the model believes, single items and what they look like, and how sources
relate. Gathered once.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, hash_priority, is_null
from consilience.estimation.protocol import Posterior
from consilience.exceptions import InvalidVotesError, NotFittedError
from consilience.label_model import LabelModel
from consilience.label_types import Scores
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.partitions.base import VotePartitions
from consilience.prediction.inference import infer, vote_distances
from consilience.prediction.source_model import SourceModel, connected
from consilience.tables.encoding import encode, read_gold
from consilience.tables.frames import as_frame
from consilience.votes import Votes

#: Votes listed per item.
MAX_VOTES = 40
#: A difference below this is rounding.
EQUAL = 1e-9
#: Items on which sources are compared with each other.
COMPARED_ITEMS = 20_000
#: Number of sources that are compared with each other, those with the most votes.
COMPARED_SOURCES = 30
#: More sources than that are numbered on the map.
MAX_NAMES = 14
#: Letters of one cell that are shown, and pixels of the longer side of an embedded picture.
MAX_LETTERS, MAX_PIXELS = 1_200, 360
#: Largest picture, in bytes, that is embedded unchanged if Pillow is not installed.
MAX_BYTES = 60_000
#: File extensions of pictures that a browser shows and that contain no scripts.
PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
#: Findings that name sources which may depend on each other.
_DEPENDENCE = ("dependent-pair", "copied-source")


@dataclass(frozen=True)
class Picture:
    """A small picture inside the page; `size` is that of the file in pixels, where it is known."""

    address: str
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Content:
    """Columns about the items, one cell per item of the votes."""

    columns: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, show: Any, n_items: int) -> Content:
        """Return the columns of a frame or a mapping, or say that it does not fit the votes."""
        if show is None:
            return cls({})
        if not isinstance(show, Mapping):
            show = as_frame(show).to_dict(as_series=False)
        columns = {str(name): list(values) for name, values in show.items()}
        for name, values in columns.items():
            if len(values) != n_items:
                raise InvalidVotesError(
                    f"show has {len(values)} rows in column {name!r}, and there are {n_items} items. Pass one row per "
                    "item, in the order of the votes."
                )
        return cls(columns)

    def texts(self, row: int) -> dict[str, str]:
        """Return the cells of an item that are not pictures."""
        cells = {name: values[row] for name, values in self.columns.items()}
        return {
            name: text if len(text := str(cell)) <= MAX_LETTERS else f"{text[:MAX_LETTERS]}…"
            for name, cell in cells.items()
            if not is_null(cell) and _picture_file(cell) is None
        }

    def picture(self, row: int) -> Picture | None:
        """Return the picture of an item, where a cell is the path of one."""
        files = (_picture_file(values[row]) for values in self.columns.values())
        return next((_embedded(file) for file in files if file is not None), None)


def _picture_file(cell: Any) -> Path | None:
    """Return the file that a cell names, if it is a picture that is there."""
    if not isinstance(cell, str | Path) or Path(cell).suffix.lower() not in PICTURES:
        return None
    return Path(cell) if Path(cell).is_file() else None


def _embedded(file: Path) -> Picture | None:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        data = file.read_bytes()
        kind = PICTURES[file.suffix.lower()]
        return Picture(f"data:image/{kind};base64,{b64encode(data).decode()}") if len(data) <= MAX_BYTES else None
    try:
        with Image.open(file) as image:
            size = image.size
            image.thumbnail((MAX_PIXELS, MAX_PIXELS))
            out = BytesIO()
            image.convert("RGB").save(out, "JPEG", quality=80)
    except (OSError, UnidentifiedImageError):
        return None
    return Picture(f"data:image/jpeg;base64,{b64encode(out.getvalue()).decode()}", size)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Votes, as they came and in the form of the space, and what the model believes about their items.

    `rows` are the items that have a vote; `best` and `plain` are their labels in the form of the space, those of the
    model and those of a plain vote. `apart` has the distance ``(n, m)`` of every vote to the label of its item, NaN
    where there is none; `known` are known labels as the votes of one source; `content` is what the items look like.
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
    content: Content

    @property
    def confidence(self) -> FloatArray:
        """Confidence in the label of each item that has a vote."""
        return self.belief.confidence[self.rows]

    def distances_to_known(self) -> list[FloatArray]:
        """Return the distances to the known labels of the model's labels, of the plain vote's, and of each source."""
        seen = [np.flatnonzero(voted) for voted in self.encoded.observed.T]
        votes = [(rows, self.encoded.labels[rows, source]) for source, rows in enumerate(seen)]
        found = []
        for rows, labels in ((self.rows, self.best), (self.rows, self.plain), *votes):
            known = self.known.observed[rows, 0] if self.known is not None else np.zeros(len(rows), dtype=bool)
            truth = self.known.labels[rows[known], 0] if self.known is not None else labels[:0]
            found.append(self.space.distance(labels[known], truth) if known.any() else np.zeros(0))
        return found


def gather(model: LabelModel, votes: Any, gold: Any = None, show: Any = None) -> Evidence:
    """Return what there is to report about these votes."""
    if not isinstance(model, LabelModel):
        raise NotFittedError(
            f"A report is about a fitted LabelModel, not {type(model).__name__}. Pass the model first."
        )
    if not model.__sklearn_is_fitted__():
        raise NotFittedError(
            "This LabelModel has not been fitted, so there is nothing to report. Call fit(votes) first."
        )
    if isinstance(votes, VotePartitions):
        votes = votes.in_memory("A report shows")
    learned, space = model.source_model_, model.space
    table = learned.aligned(votes, space)
    encoded = encode(table, space)
    found, baseline = (infer(one, space, table, model.decode) for one in (learned, learned.as_baseline()))
    rows = np.flatnonzero(found.voted)
    best, plain = (one.posterior.labels[rows] for one in (found, baseline))
    apart = np.full(encoded.observed.shape, np.nan)
    if len(rows):
        best, plain = space.as_batch(best), space.as_batch(plain)
        apart[rows] = vote_distances(space, encoded[rows], best)
    known = read_gold(gold, space, len(table), table)
    content = Content.of(show, len(table))
    return Evidence(space, learned, table, encoded, found.posterior, rows, best, plain, apart, known, content)


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
    """An item, its label and the votes on it, loudest source first, of which some are not listed.

    `plain` is what a plain vote would say, where that is another label; `details` are further facts from the model.
    """

    name: str
    label: Any
    confidence: float
    votes: tuple[Vote, ...]
    unlisted: int = 0
    plain: Any = None
    known: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, str] = field(default_factory=dict)
    picture: Picture | None = None


def contested_items(evidence: Evidence, count: int) -> list[Item]:
    """Return the items of largest doubt (1 - confidence) times mean distance between votes and label.

    Doubt alone would list items that few sources saw, distance alone those where the wrong ones are known to err.
    """
    rows = evidence.rows
    if len(rows) == 0:
        return []
    votes_per_item = evidence.encoded.observed[rows].sum(axis=1)
    dissent = np.nansum(evidence.apart[rows], axis=1) / np.maximum(votes_per_item, 1)
    trouble = np.maximum(1.0 - evidence.confidence, EQUAL) * dissent
    order = np.argsort(-trouble, kind="stable")[:count]
    moved = evidence.space.distance(evidence.best, evidence.plain) > EQUAL
    found = []
    for place in order[trouble[order] > 0.0].tolist():
        row, known = int(rows[place]), evidence.known
        is_known = known is not None and known.observed[row, 0]
        plain = evidence.plain[place : place + 1] if moved[place] else None
        truth = known.labels[row : row + 1, 0] if known is not None and is_known else None
        found.append(_item(evidence, row, plain, truth))
    return found


def _item(evidence: Evidence, row: int, plain: Batch | None, truth: Batch | None) -> Item:
    weight, votes, belief = evidence.model.summary.weight, evidence.votes, evidence.belief
    voters = np.flatnonzero(evidence.encoded.observed[row])
    voters = voters[np.argsort(-weight[voters], kind="stable")]
    said = [
        (votes.sources[one], plain_value(votes.labels[row, one]), weight[one], evidence.apart[row, one])
        for one in voters
    ]

    def written(label: Batch | None) -> Any:
        if label is None:
            return None
        labels = evidence.space.as_labels(label, np.dtype(object))
        return plain_value(evidence.space.in_words_of(labels, votes.labels[[row]], votes.observed[[row]])[0])

    return Item(
        name=str(votes.items[row]),
        label=plain_value(belief.labels[row]),
        confidence=float(belief.confidence[row]),
        votes=tuple(Vote(number, *one) for number, one in enumerate(said[:MAX_VOTES], start=1)),
        unlisted=max(len(said) - MAX_VOTES, 0),
        plain=written(plain),
        known=written(truth),
        details={name: values[row] for name, values in belief.details.items()},
        content=evidence.content.texts(row),
        picture=evidence.content.picture(row),
    )


@dataclass(frozen=True, eq=False)
class Relations:
    """The m sources that were compared, those of a group next to each other.

    `cost` ``(m, m)`` is the mean cost between the votes of two sources on the same item, NaN where they never meet; for
    scores one minus their correlation (`is_correlation`), which offset and slope do not change. `to_label` ``(m,)`` is
    that to the labels. `groups` says which of them, by position, depend on each other. `places` ``(m + 1, 2)`` are
    places on a map in which near means similar; the last is that of the labels.
    """

    sources: tuple[str, ...]
    cost: FloatArray
    to_label: FloatArray
    groups: tuple[tuple[int, ...], ...]
    places: FloatArray
    is_correlation: bool = False

    @property
    def crowded(self) -> bool:
        """Whether there are too many of them for names on a map."""
        return len(self.sources) > MAX_NAMES


def relate(evidence: Evidence) -> Relations:
    """Return how the sources with the most votes relate; groups depend on each other, as specified or as detected."""
    encoded, chosen_items = evidence.encoded, np.arange(len(evidence.rows))
    if len(chosen_items) > COMPARED_ITEMS:
        priority = hash_priority(encoded.items[evidence.rows])
        chosen_items = np.sort(np.argpartition(priority, COMPARED_ITEMS)[:COMPARED_ITEMS])
    rows = evidence.rows[chosen_items]
    labels, observed = encoded.labels[rows], encoded.observed[rows]
    most = np.argsort(-observed.sum(axis=0), kind="stable")[:COMPARED_SOURCES]
    chosen = np.sort(most[observed[:, most].any(axis=0)])
    m = len(chosen)
    said = [(labels[:, source], observed[:, source]) for source in chosen]
    said.append((evidence.best[chosen_items], np.ones(len(rows), dtype=bool)))
    cost = np.full((m + 1, m + 1), np.nan)
    is_correlation = isinstance(evidence.space, Scores)
    apart = _uncorrelated if is_correlation else lambda left, right: float(evidence.space.cost(left, right).mean())
    for (a, (left, seen)), (b, (right, also_seen)) in combinations(enumerate(said), 2):
        both = np.flatnonzero(seen & also_seen)
        if len(both):
            cost[a, b] = cost[b, a] = apart(left[both], right[both])
    places = classical_scaling(cost)
    found = [one.sources for one in evidence.model.diagnostics if one.code in _DEPENDENCE and len(one.sources) == 2]
    index = {encoded.sources[source]: place for place, source in enumerate(chosen)}
    linked = [
        [index[name] for name in group if name in index] for group in connected([*evidence.model.dependencies, *found])
    ]
    blocks = [group for group in linked if len(group) > 1]
    grouped = {place for block in blocks for place in block}
    blocks += [[place] for place in range(m) if place not in grouped]
    blocks.sort(key=lambda block: float(places[block, 0].mean()))  # neighbors are similar
    order = np.array([place for block in blocks for place in block], dtype=np.int64)
    rank = np.argsort(order)
    return Relations(
        sources=tuple(encoded.sources[chosen[place]] for place in order),
        cost=cost[np.ix_(order, order)],
        to_label=cost[order, m],
        groups=tuple(tuple(rank[block].tolist()) for block in blocks if len(block) > 1),
        places=places[np.append(order, m)],
        is_correlation=is_correlation,
    )


def _uncorrelated(left: Batch, right: Batch) -> float:
    """Return one minus the correlation; NaN where one side does not vary."""
    one, two = (np.asarray(side, dtype=np.float64) - np.mean(side) for side in (left, right))
    size = float(np.sqrt((one @ one) * (two @ two)))
    return 1.0 - float(one @ two) / size if size > 0 else float("nan")


def classical_scaling(squares: FloatArray) -> FloatArray:
    """Return points of the plane whose squared distances are near the given ones (classical scaling).

    Unknown squares (NaN) are taken as the mean of the known ones. Mean costs add up over independent sources as
    squared distances do, so they are taken for those.
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
