"""Labels as tables: one row per item with label, confidence, number of votes and agreement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import (
    Batch,
    BoolArray,
    FloatArray,
    IntArray,
    hash_priority,
    is_null,
    sampled_rows,
    votes_per_item,
)
from consilience.estimation.protocol import Posterior
from consilience.exceptions import InvalidLabelError, UnsupportedError, needed
from consilience.label_model import LabelModel
from consilience.label_types import Preferences, Rankings, Scores
from consilience.label_types.base import NORMAL_95, LabelSpace
from consilience.lazy import narwhals as nw
from consilience.lazy import pyarrow as pa
from consilience.partitions.base import VotePartitions
from consilience.tables.encoding import encode
from consilience.tables.files import file_format, write_table
from consilience.tables.frames import is_dataset
from consilience.tables.training import pair_matrix
from consilience.tables.vote_tables import as_group, id_column, order_as_text
from consilience.votes import Votes

#: Items from which the distance between a vote and the label of another item is estimated.
UNRELATED_ITEMS = 5_000
UNRELATED_SEED = 2
#: Digits of numbers in text files.
DIGITS = 6


def label_table(
    model: LabelModel, votes: Any, *, ties: float | None = None, unrelated: float | None = None
) -> pa.Table:
    """Return an Arrow table with the columns item, label, confidence, n_votes and agreement.

    Scores have standard_error, low and high (the ends of the 95% interval) after the label.

    Rankings of named things are written as ``a > b = c``. They have no ties, unless `ties` says how probable an order
    must be: neighbors whose order is less probable are then tied.

    `agreement` does not depend on the weights. Where labels can be equal and come from a list it is the share of
    voters who gave the label; otherwise one minus their mean distance to it, relative to their mean distance to
    the label of another item, and at least 0. It is null where nobody voted. To write the labels of one
    table in parts, compute that distance once with `unrelated_distance` and pass it as `unrelated`.

    Partitions of votes in memory or in files are labeled chunk by chunk, with the numbers of the whole table; the
    labels of votes on a cluster stay there, see `consilience.partitions.predict_to`.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = Votes.from_matrix([["spam", "spam", "ham"], ["ham", "ham", "ham"], ["ham", "spam", "spam"]] * 20)
    >>> table = label_table(LabelModel(Classes(["ham", "spam"])).fit(votes), votes)
    >>> table.column_names, table.column("agreement").to_pylist()[:2]
    (['item', 'label', 'confidence', 'n_votes', 'agreement'], [0.6666666666666666, 1.0])
    """
    if isinstance(votes, VotePartitions):
        if votes.remote:
            raise UnsupportedError(
                f"The votes of {type(votes).__name__} stay where they are, and so do their labels. Use "
                "consilience.partitions.predict_frame(model, votes), which has the same columns, or predict_to."
            )
        distance = unrelated_distance(model, votes) if unrelated is None else unrelated
        tables = votes.map(lambda part: label_table(model, part.votes, ties=ties, unrelated=distance))
        return pa.concat_tables(tables, promote_options="permissive")
    table = model.source_model_.aligned(votes, model.space)
    belief = model.posterior(table)
    encoded = encode(table, model.space)
    cast = votes_per_item(encoded.observed)
    if unrelated is None and model.space.n_labels is None:
        rows = sampled_rows(table.items, UNRELATED_ITEMS / max(len(table), 1), UNRELATED_SEED)
        rows = rows[np.argsort(hash_priority(table.items[rows], UNRELATED_SEED), kind="stable")]
        unrelated = _unrelated(model.space, encoded[rows], belief.labels[rows])
    agreement = _agreement(model.space, encoded, belief, cast, unrelated)
    return pa.table(
        {
            "item": id_column(table.items),
            **_label_columns(model.space, belief, ties, cast == 0),
            "confidence": pa.array(belief.confidence),
            "n_votes": pa.array(cast),
            "agreement": pa.array(agreement, mask=cast == 0),
        }
    )


def unrelated_distance(model: LabelModel, partitions: VotePartitions) -> float | None:
    """Return the mean distance of votes to the label of another item, from a sample; None for finite label types."""
    if model.space.n_labels is not None:
        return None
    table = partitions.sample(UNRELATED_ITEMS, UNRELATED_SEED).whole.votes
    table = model.source_model_.aligned(table, model.space)
    rows = np.argsort(hash_priority(table.items, UNRELATED_SEED), kind="stable")
    return _unrelated(model.space, encode(table, model.space)[rows], model.posterior(table).labels[rows])


def label_frame(model: LabelModel, votes: Any, like: Any = None) -> Any:
    """Return `label_table` as the kind of frame that `like` is: polars, Arrow, a `datasets.Dataset`; or pandas.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = [["cat", "cat", "dog"], ["dog", "dog", "cat"], ["dog", "cat", "dog"]] * 10
    >>> model = LabelModel(Classes(["cat", "dog"])).fit(votes)
    >>> label_frame(model, votes)["label"].tolist()[:2]
    ['cat', 'dog']
    """
    if is_dataset(like):
        return needed("datasets", "A data set", "datasets").Dataset(label_table(model, votes))
    backend: Any = "pandas" if like is None else nw.from_native(like).implementation
    return nw.from_arrow(label_table(model, votes), backend=backend).to_native()


def write_labels(
    path: str | Path,
    model: LabelModel,
    votes: Any,
    *,
    ties: float | None = None,
    force: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write `label_table` to a CSV, JSON Lines, Parquet or Arrow file.

    An interrupted run leaves the old file or none; an existing file is replaced only with `force`. With `safe_csv`
    texts in a CSV file that a spreadsheet would take for a formula get a ' in front.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from consilience import Classes, LabelModel
    >>> votes = [["cat", "cat", "dog"], ["dog", "dog", "cat"], ["dog", "cat", "dog"]] * 10
    >>> model = LabelModel(Classes(["cat", "dog"])).fit(votes)
    >>> path = Path(mkdtemp()) / "labels.csv"
    >>> write_labels(path, model, votes)
    >>> path.read_text().splitlines()[0]
    'item,label,confidence,n_votes,agreement'
    """
    write_readable(path, label_table(model, votes, ties=ties), force=force, safe_csv=safe_csv)


def _unrelated(space: LabelSpace, votes: Votes, found: Batch) -> float:
    """Return the mean distance of votes to the label of the next item that has one."""
    voted = votes.observed.any(axis=1)
    rows, columns = np.nonzero(votes.observed)
    if len(rows) == 0:
        return 0.0
    labels = space.as_batch(found[voted])
    following = np.cumsum(voted)[rows] % len(labels)
    if len(labels) > 1 or space.continuous:
        try:
            distance = float(space.distance(labels[following], votes.labels[rows, columns]).mean())
        except InvalidLabelError:  # sequences or trees of different lengths
            distance = 0.0
        if distance > 0.0 or space.continuous:  # rankings of other things have no pair in common, and so no distance
            return distance
    return float(space.law.chance_cost ** (1.0 / space.power))  # no other item, but the chance cost is known


def _agreement(
    space: LabelSpace, votes: Votes, belief: Posterior, cast: IntArray, unrelated: float | None
) -> FloatArray:
    observed, voted = votes.observed, cast > 0
    if not voted.any():
        return np.zeros(len(observed))
    labels = space.as_batch(belief.labels[voted])
    if unrelated is None and labels.ndim == 1 and votes.labels.dtype.kind in "iu":  # codes: equal or not
        code = np.zeros(len(observed), dtype=votes.labels.dtype)
        code[voted] = labels
        return votes_per_item((votes.labels == code[:, None]) & observed) / np.maximum(cast, 1)
    rows, columns = np.nonzero(observed)
    position = np.cumsum(voted) - 1
    own = space.distance(labels[position[rows]], votes.labels[rows, columns])
    if unrelated is None:
        own = (own == 0.0).astype(np.float64)
    mean: FloatArray = np.bincount(rows, weights=own, minlength=len(observed)) / np.maximum(cast, 1)
    if unrelated is None:
        return mean
    return np.clip(1.0 - mean / unrelated, 0.0, 1.0) if unrelated > 0 else np.ones(len(observed))


def _label_columns(space: LabelSpace, belief: Posterior, ties: float | None, missing: BoolArray) -> dict[str, pa.Array]:
    """Return the label of each item, and how far off it may be where it is a number."""
    if not isinstance(space, Scores):
        return {"label": label_column(space, belief, ties)}
    deviation = belief.details["standard_deviation"]
    ends = [belief.labels + step * NORMAL_95 * deviation for step in (-1.0, 1.0)]
    low, high = ends if space.range is None else np.clip(ends, *space.range)
    others = {"standard_error": deviation, "low": low, "high": high}
    return {
        "label": label_column(space, belief, ties),
        **{name: pa.array(values, mask=missing) for name, values in others.items()},
    }


def write_readable(path: str | Path, table: pa.Table, *, force: bool = False, safe_csv: bool = False) -> None:
    """Write a table; in text files, which people read, numbers have six digits."""
    is_text = file_format(path) in ("csv", "jsonl")
    for place, column in enumerate(table.columns if is_text else ()):
        if pa.types.is_floating(column.type):
            numbers = pa.array(significant(column.to_numpy()), mask=column.is_null().to_numpy())
            table = table.set_column(place, table.column_names[place], numbers)
    write_table(path, table, force=force, safe_csv=safe_csv)


def significant(numbers: FloatArray) -> FloatArray:
    """Return numbers with six significant digits.

    >>> significant(np.array([123456.789, 0.0012345678, 0.0, np.nan])).tolist()
    [123457.0, 0.00123457, 0.0, nan]
    """
    size = np.where(np.isfinite(numbers) & (numbers != 0.0), np.abs(numbers), 1.0)
    scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(size)))
    return np.asarray(np.where(np.isfinite(scale), np.round(numbers * scale) / scale, numbers))


def label_column(space: LabelSpace, belief: Posterior, ties: float | None = None) -> pa.Array:
    """Return the labels of a posterior as an Arrow column; rankings of named things as text."""
    if ties is not None and not 0.5 <= ties <= 1.0:
        raise UnsupportedError(f"ties={ties!r} is not a probability from 0.5 to 1. Try 0.6.")
    names: Any
    if isinstance(space, Preferences):
        names = belief.details["candidates"]
    elif isinstance(space, Rankings) and any(isinstance(order, list) for order in belief.labels):
        names = [getattr(order, "names", space.names) for order in belief.labels]
    elif ties is not None:
        raise UnsupportedError(f"ties= is for rankings of named things, not for {type(space).__name__}.")
    else:  # votes as positions give labels as positions
        return space.to_arrow(belief.labels)
    texts: list[str | None] = []
    for row, order in enumerate(belief.labels):
        if is_null(order):
            texts.append(None)
        elif ties is None:
            texts.append(order_as_text(order))
        else:
            texts.append(order_as_text(_tied(order, names[row], belief.details["pair_probability"][row], ties)))
    return pa.array(texts, pa.string())


def _tied(order: list[Any], names: Sequence[Any], pairs: FloatArray, ties: float) -> list[tuple[Any, ...]]:
    """Return the order with uncertain neighbors joined."""
    before = pair_matrix(pairs)
    place = {name: index for index, name in enumerate(names)}
    groups: list[tuple[Any, ...]] = []
    for name in (name for entry in order for name in as_group(entry)):
        if groups and before[place[groups[-1][-1]], place[name]] < ties:
            groups[-1] += (name,)
        else:
            groups.append((name,))
    return groups
