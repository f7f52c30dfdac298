"""Columns become tables of labels, long or wide, with names of sources and ids of items, and these Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import InvalidVotesError, TransposedVotesError, UnknownSourceError, did_you_mean
from consilience.label_types.codes import arrow_column
from consilience.label_types.rankings.space import Rankings
from consilience.lazy import pyarrow as pa
from consilience.tables.cells import blank, common_dtype
from consilience.tables.frames import ALIASES, Column, columns_of, missing_column, row_name, to_column
from consilience.tables.receipt import Receipt

#: Names of columns of ids (the last one is from pandas); with fewer rows, a table is not checked.
_ID_NAMES, _FEW = ALIASES["item"] | {"item", "unnamed: 0"}, 3
#: Ways to treat several votes of one source on one item.
REPEATS = ("identical", "refuse", "first", "last", "majority", "average", "separate")
#: Pairs of source names.
Pairs = tuple[tuple[str, str], ...]
Codes = npt.NDArray[np.intp]


class LabelTable(NamedTuple):
    """Labels and observed mask, both with one row per item and one column per source."""

    labels: Batch
    observed: BoolArray
    sources: tuple[str, ...]
    items: npt.NDArray[Any]


#: A function that reads the cells of a table, and counts those that are not votes.
Clean = Callable[[LabelTable, Receipt], tuple[LabelTable, Receipt]]


def read_long(
    frame: Any, item: str, source: str, label: str, repeats: str, clean: Clean | None = None
) -> tuple[LabelTable, Pairs, Receipt]:
    """Return the table of (item, source, label) rows, pairs of runs of one source, and what became of the rows.

    A null label abstains. What `clean` does to the cells is done before votes on the same item are merged.
    """
    roles = {"item": item, "source": source, "label": label}
    tuples = isinstance(frame, (list, tuple)) and not all(isinstance(record, Mapping) for record in frame)
    columns = columns_of(_by_column(frame, list(roles.values())) if tuples else frame)
    if not any(len(column.null) for column in columns.values()):
        raise InvalidVotesError(
            "There are no items: the table has no rows. Pass at least one row (item, source, label)."
        )
    for role, name in roles.items():
        if name not in columns:
            raise missing_column(name, role, columns, frame)
    _check_repeats(repeats)
    named = row_name(frame)
    ids, voters = _present(columns[item], "item", named), _present(columns[source], "source", named)
    said = columns[label]
    item_codes, item_rows = factorize(ids, "item id")
    source_codes, source_rows = factorize(voters, "source name")
    names = tuple(map(str, voters[source_rows].tolist()))
    cells = item_codes * len(names) + source_codes
    kept = np.arange(len(ids))
    if repeats == "identical":
        again = np.flatnonzero(np.isin(cells, cells[_runs(cells) > 0]) & ~said.null)
        copies = _copies(zip(cells[again].tolist(), map(repr, said.values[again].tolist()), strict=True))
        kept = np.delete(kept, again[copies])
    run = _runs(cells[kept])
    most = int(run.max()) + 1
    keys, rows = np.unique(item_codes[kept] * most + run, return_inverse=True)
    labels = blank((len(keys), len(names)), np.int64 if said.values.dtype.kind == "i" else said.values.dtype)
    observed = np.zeros(labels.shape, dtype=bool)
    cast = ~said.null[kept]
    places = rows.reshape(-1)[cast], source_codes[kept][cast]
    labels[places] = said.values[kept][cast]
    observed[places] = True
    unmerged = LabelTable(labels, observed, names, ids[item_rows][keys // most])
    receipt = Receipt(len(kept), int((~cast).sum()), merged=len(ids) - len(kept), ids=item)
    if most == 1:
        table, receipt = (unmerged, receipt) if clean is None else clean(unmerged, receipt)
        return table, (), receipt
    origin = np.zeros(labels.shape, dtype=np.intp)
    origin[places] = kept[cast]
    table, pairs, receipt, left = _merged(
        unmerged, receipt, repeats, clean, lambda row, column: named(int(origin[row, column]))
    )
    return table, pairs, replace(receipt, merged=receipt.merged + left)


def _merged(
    unmerged: LabelTable, receipt: Receipt, repeats: str, clean: Clean | None, place: Callable[[int, int], str]
) -> tuple[LabelTable, Pairs, Receipt, int]:
    """Return one row per item, pairs of runs of one source, what became of the cells, and how many votes went."""
    if clean is not None:
        unmerged, receipt = clean(unmerged, receipt)
    rows, columns = np.nonzero(unmerged.observed)
    item_codes, item_rows = factorize(unmerged.items, "item id")
    names, source_codes = unmerged.sources, columns
    pairs: Pairs = ()
    said = Column(unmerged.labels[rows, columns], np.zeros(len(rows), dtype=bool))
    cells = item_codes[rows] * len(names) + source_codes
    chosen = np.arange(len(rows))
    if repeats == "separate":
        # The k-th answer belongs to the k-th run, even if an earlier one is empty.
        source_codes, names, pairs = _separate_repeats(_runs(item_codes)[rows], source_codes, names)
        cells = item_codes[rows] * len(names) + source_codes
    elif repeats == "average":
        cells, said = _average_repeats(cells, said)
        chosen = np.arange(len(cells))
    else:
        voters = as_object_array(names)[columns]
        where = list(zip(rows.tolist(), columns.tolist(), strict=True))
        chosen = _chosen_repeats(
            chosen, cells, said, repeats, unmerged.items[rows], voters, lambda at: place(*where[at])
        )
    labels = blank((len(item_rows), len(names)), np.int64 if said.values.dtype.kind == "i" else said.values.dtype)
    observed = np.zeros(labels.shape, dtype=bool)
    labels.reshape(-1)[cells[chosen]] = said.values[chosen]
    observed.reshape(-1)[cells[chosen]] = True
    left = len(rows) - len(chosen)
    table = LabelTable(labels, observed, names, unmerged.items[item_rows])
    return table, pairs, replace(receipt, cells=receipt.cells - left), left


def _check_repeats(repeats: str) -> None:
    if repeats not in REPEATS:
        raise InvalidVotesError(f"repeats={repeats!r} is unknown. Use one of {', '.join(map(repr, REPEATS))}.")


def _copies(keys: Iterable[Any]) -> list[int]:
    """Return the places of keys that came before."""
    seen: set[Any] = set()
    return [place for place, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def _chosen_repeats(
    rows: Codes, cells: Codes, said: Column, repeats: str, ids: Batch, voters: Batch, place: Callable[[int], str]
) -> Codes:
    """Return the rows that count, one per item and source."""
    run = _runs(cells)
    if not run.any() or repeats == "first":
        return rows[run == 0]
    if repeats == "last":
        return rows[_runs(cells[::-1])[::-1] == 0]
    again = np.isin(cells, cells[run > 0])
    kept = list(rows[~again])
    groups: dict[int, list[int]] = {}
    for cell, row in zip(cells[again].tolist(), rows[again].tolist(), strict=True):
        groups.setdefault(cell, []).append(row)
    for group in groups.values():
        written = [repr(said.values[row : row + 1].tolist()[0]) for row in group]
        other = next(
            (at for at, text in enumerate(written) if (repeats == "refuse" and at) or text != written[0]), None
        )
        if other is not None and repeats != "majority":
            who, what = (values[group[0] : group[0] + 1].tolist()[0] for values in (voters, ids))
            raise InvalidVotesError(
                f"Source {who!r} votes twice on item {what!r}: {written[0]} in {place(group[0])} and {written[other]} "
                f"in {place(group[other])}. Choose with repeats='first', 'last', 'majority' or 'average' (of numbers), "
                "or make every run a source with repeats='separate'."
            )
        kept.append(group[max(range(len(group)), key=lambda at: (written.count(written[at]), -at))])
    return np.sort(np.array(kept, dtype=np.intp))


def _by_column(records: list[Any] | tuple[Any, ...], names: list[str]) -> dict[str, list[Any]]:
    """Return the columns of a list of tuples in the order of `names`."""
    for row, record in enumerate(records):
        if not isinstance(record, (tuple, list)) or len(record) != len(names):
            raise InvalidVotesError(
                f"Row {row} is {record!r}, but a record has {len(names)} entries: "
                f"({', '.join(names)}). Pass tuples like that, dicts, or a dataframe."
            )
    return {name: [record[place] for record in records] for place, name in enumerate(names)}


def _runs(cells: Codes) -> Codes:
    """Return how many votes on the same cell come before each one."""
    order = np.argsort(cells, kind="stable")
    begins = np.append(True, np.diff(cells[order]) != 0)
    run = np.empty(len(cells), dtype=np.intp)
    run[order] = np.arange(len(cells)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return run


def _average_repeats(cells: Codes, label: Column) -> tuple[Codes, Column]:
    """Return every cell once, with the mean of its labels that are not null."""
    if label.values.dtype.kind not in "biuf":
        kind = next((type(value).__name__ for value in label.values[~label.null].tolist()), "nothing")
        raise InvalidVotesError(
            f'repeats="average" needs labels that are numbers, not {kind}. Use repeats="separate", or aggregate '
            "repeated votes first."
        )
    unique, place = np.unique(cells, return_inverse=True)
    seen = np.bincount(place, weights=~label.null, minlength=len(unique))
    numbers = np.where(label.null, 0.0, label.values.astype(np.float64))
    total = np.bincount(place, weights=numbers, minlength=len(unique))
    return unique, Column(total / np.maximum(seen, 1.0), seen == 0)


def _separate_repeats(run: Codes, source: Codes, names: tuple[str, ...]) -> tuple[Codes, tuple[str, ...], Pairs]:
    """Return the source of every row, the names of sources, and the pairs of runs of one source.

    The k-th vote of "judge" on an item comes from "judge #k", if "judge" repeats any vote.
    """
    runs = np.zeros(len(names), dtype=np.intp)
    np.maximum.at(runs, source, run + 1)
    apart: list[str] = []
    pairs: list[tuple[str, str]] = []
    for name, count in zip(names, runs.tolist(), strict=True):
        own = [name] if count == 1 else [f"{name} #{number}" for number in range(1, count + 1)]
        taken = next((one for one in own if count > 1 and one in names), None)
        if taken is not None:
            raise InvalidVotesError(
                f"Source {name!r} repeats votes and {taken!r} is the name of another source. Rename one of them."
            )
        apart += own
        pairs += combinations(own, 2)
    return (np.cumsum(runs) - runs)[source] + run, tuple(apart), tuple(pairs)


def read_wide(
    frame: Any, sources: Iterable[str] | None, item: str | None, repeats: str = "refuse", clean: Clean | None = None
) -> tuple[LabelTable, Pairs, Receipt]:
    """Return the table of a frame with one column per source, pairs of runs of one source, and what became of it.

    Null is an abstention. Rows of one id are merged as votes of a long table are, once the cells are clean.
    """
    _check_repeats(repeats)
    columns = columns_of(frame)
    if item is not None and item not in columns:
        raise missing_column(item, "item", columns, frame)
    if sources is None and item is None:
        if {"item", "source", "label"} <= columns.keys():
            raise InvalidVotesError(
                "The columns 'item', 'source' and 'label' look like one row per vote. Use "
                "Votes.from_long(frame), or name the columns of votes with sources=."
            )
        for name, column in columns.items() if len(columns) > 1 else ():
            values = column.values.tolist() if name.lower() in _ID_NAMES and not column.null.any() else []
            if len(values) < _FEW or column.values.dtype.kind == "f" or len(set(map(str, values))) < len(values):
                continue
            raise InvalidVotesError(  # it would count as a source
                f"Column {name!r} looks like ids of items, not like votes. Set it aside with "
                f"Votes.from_frame(frame, item={name!r}), or name the columns of votes with sources=."
            )
    names = as_names(sources) if sources is not None else tuple(name for name in columns if name != item)
    check_known(names, columns)
    n_items = len(next(iter(columns.values())).null) if columns else 0
    check_names(names, n_items, len(names))
    if n_items == 0:
        raise InvalidVotesError("There are no items: the table has no rows. Pass at least one row, one per item.")
    chosen = [columns[name] for name in names]
    labels = blank((n_items, len(names)), common_dtype([one.values.dtype for one in chosen if not one.null.all()]))
    observed = np.zeros(labels.shape, dtype=bool)
    for place, column in enumerate(chosen):
        present = observed[:, place] = ~column.null
        if column.values.dtype.kind == labels.dtype.kind or present.all():
            labels[:, place] = column.values  # whose empty cells have the same missing value
        else:
            labels[present, place] = column.values[present]
    if item is None:
        return _cleaned(LabelTable(labels, observed, names, np.arange(n_items)), Receipt(0), clean)
    named = row_name(frame)
    ids = _present(columns[item], "item", named)
    if repeats == "refuse":
        check_unique_ids(ids, named)
    codes, first = factorize(ids, "item id")
    kept = np.arange(n_items)
    if len(first) < n_items and repeats == "identical":
        again = np.flatnonzero(np.bincount(codes)[codes] > 1)
        said = (repr([*labels[row][observed[row]].tolist(), *observed[row].tolist()]) for row in again)
        kept = np.delete(kept, again[_copies(zip(codes[again].tolist(), said, strict=True))])
    unmerged = LabelTable(labels, observed, names, ids)
    if len(kept) < n_items:
        unmerged = LabelTable(labels[kept], observed[kept], names, ids[kept])
    if len(first) == len(kept):
        return _cleaned(unmerged, Receipt(0, merged=n_items - len(kept), ids=item), clean)
    cells = unmerged.observed.size
    receipt = Receipt(cells, cells - int(np.count_nonzero(unmerged.observed)), ids=item)
    table, pairs, receipt, _ = _merged(unmerged, receipt, repeats, clean, lambda row, _: named(int(kept[row])))
    return table, pairs, replace(receipt, merged=0 if repeats == "separate" else n_items - len(first))


def _cleaned(table: LabelTable, receipt: Receipt, clean: Clean | None) -> tuple[LabelTable, Pairs, Receipt]:
    cells = table.observed.size
    receipt = replace(receipt, cells=cells, empty=cells - int(np.count_nonzero(table.observed)))
    table, receipt = (table, receipt) if clean is None else clean(table, receipt)
    return table, (), receipt


def item_ids(items: Any, n_items: int) -> npt.NDArray[Any]:
    """Return the ids a caller gave, or 0, 1, ... if none were given."""
    return np.arange(n_items) if items is None else _present(to_column(items), "item")


def _present(column: Column, role: str, place: Callable[[int], str] = "row {}".format) -> Batch:
    """Return the values of a column that has no gaps."""
    if column.null.any():
        where = place(int(np.argmax(column.null)))
        raise InvalidVotesError(
            f"{where[0].upper()}{where[1:]} has no {role}. Fill in its {role}, or drop the row; only a label may "
            "be null, which means that the source abstains."
        )
    return column.values


def long_arrow(table: LabelTable) -> pa.Table:
    """Return one row (item, source, label) per vote, and one with a null for who has none."""
    rows, columns = np.nonzero(table.observed)
    labels: list[Any] = table.labels[rows, columns].tolist()
    if len(table.items):
        silent_items = np.flatnonzero(~table.observed.any(axis=1))
        silent_sources = np.flatnonzero(~table.observed.any(axis=0))
        # The row of a silent first source already exists if the first item is silent, too.
        if len(silent_items) and silent_items[0] == 0 and len(silent_sources) and silent_sources[0] == 0:
            silent_items = silent_items[1:]
        rows = np.concatenate([rows, silent_items, np.zeros_like(silent_sources)])
        columns = np.concatenate([columns, np.zeros_like(silent_items), silent_sources])
        labels += [None] * (len(rows) - len(labels))
    names = pa.array(table.sources, pa.string()).take(pa.array(columns))
    ids = id_column(table.items[rows])
    return pa.table({"item": ids, "source": names, "label": _arrow_labels(storable(labels))})


def id_column(items: npt.NDArray[Any]) -> pa.Array:
    """Return ids as an Arrow column; ids of several types become text."""
    return pa.array(items) if items.dtype.kind == "i" else arrow_column(items.tolist())


def wide_arrow(table: LabelTable, item: str = "item") -> pa.Table:
    """Return one row per item with a column of ids and one per source, null where it abstains."""
    if item in table.sources:
        raise InvalidVotesError(f"A source is called {item!r}, as the column of ids is. Name that column differently.")
    cells = np.full(table.observed.shape, None, dtype=object)
    cells[table.observed] = as_object_array(storable(table.labels[table.observed].tolist()))
    columns = {name: _arrow_labels(cells[:, place].tolist()) for place, name in enumerate(table.sources)}
    return pa.table({item: id_column(table.items), **columns})


def _arrow_labels(labels: list[Any]) -> pa.Array:
    try:
        return pa.array(labels)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        if all(label is None or isinstance(label, (str, int, float)) for label in labels):
            return pa.array([None if label is None else str(label) for label in labels], pa.string())
        if all(label is None or isinstance(label, (list, tuple, dict)) for label in labels):
            # mixed lists, such as corners and a class, are written as JSON, which the label type reads
            texts = [None if label is None else json.dumps(label, default=_plain) for label in labels]
            return pa.array(texts, pa.string())
        raise InvalidVotesError(
            f"The labels do not fit into one Arrow column: {error}. Turn labels of mixed types into text first."
        ) from error


def storable(labels: list[Any]) -> list[Any]:
    """Return labels as Arrow takes them: sets as sorted lists, orders of names as text if any of them has a tie."""
    cast = [label for label in labels if label is not None]
    if all(isinstance(label, list) for label in cast):
        entries = [entry for label in cast for entry in label]
        if any(map(_is_tie, entries)) and all(isinstance(entry, str) or _is_tie(entry) for entry in entries):
            return [None if label is None else order_as_text(label) for label in labels]
    return [_plain(label) for label in labels]


def _plain(label: Any) -> Any:
    if isinstance(label, (set, frozenset)):
        return sorted(label, key=str)
    return label.tolist() if isinstance(label, (np.ndarray, np.generic)) else label


def _is_tie(entry: Any) -> bool:
    return isinstance(entry, tuple) and all(isinstance(name, str) for name in entry)


def as_group(entry: Any) -> tuple[Any, ...]:
    """Return an entry of an order, which is a name or a tuple of tied ones, as a tuple."""
    return entry if isinstance(entry, tuple) else (entry,)


def order_as_text(order: list[Any]) -> str:
    """Return names, best first, as text such as ``a > b = c``; ties are tuples."""
    return " > ".join(" = ".join(map(str, as_group(entry))) for entry in order)


def ranked_things(
    orders: Iterable[tuple[int, list[Any] | None]], n_items: int
) -> tuple[Rankings, tuple[tuple[str, ...], ...]]:
    """Return the type of the labels in (item, order) pairs, and what is ranked in each item.

    Where all items rank the same things, these are the names of the type; else items have their own names. An order
    may leave out what its source did not see.
    """
    ranked: list[set[str]] = [set() for _ in range(n_items)]
    for item, order in orders:
        ranked[item].update(name for entry in order or () for name in as_group(entry))
    candidates = tuple(tuple(sorted(names)) for names in ranked)
    distinct = {names for names in candidates if names}
    return Rankings(list(distinct.pop()) if len(distinct) == 1 else None), candidates


# --- names of sources and ids of items --------------------------------------------------------------------


def as_names(sources: str | Iterable[Any]) -> tuple[str, ...]:
    """Return source names as text; a single text is a single name."""
    names = (sources,) if isinstance(sources, str) else tuple(sources)
    for place, name in enumerate(names):
        if is_null(name):
            raise InvalidVotesError(f"Source {place} has no name: {name!r}. Give every source its own name.")
    return tuple(map(str, names))


def check_names(names: Sequence[str], n_items: int, n_sources: int) -> None:
    """Raise unless there is one name per source, each different."""
    if n_sources == 0:
        raise InvalidVotesError("There are no sources. Pass at least one column of votes.")
    if len(names) != n_sources:
        shown = f"There are {n_sources} columns of votes, but {len(names)} source names"
        if len(names) == n_items:
            raise TransposedVotesError(
                f"{shown}, as many as rows: items and sources look swapped. "
                "Items are rows and sources are columns; pass votes.T."
            )
        raise InvalidVotesError(f"{shown}. Pass one name per column.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        columns = " and ".join(str(column) for column, name in enumerate(names) if name == twice)
        raise InvalidVotesError(
            f"The source name {twice!r} occurs twice, for columns {columns}. Give every source its own name."
        )


def check_known(names: Iterable[str], known: Mapping[str, Any]) -> None:
    """Raise if a source is not among the known ones, with those that may be meant."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, most=3) or f" Choose from {', '.join(map(repr, known))}."
            raise UnknownSourceError(f"There is no source {name!r}.{hint}")


def factorize(values: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return a code per value, in order of first appearance, and the row of that appearance."""
    if values.dtype.kind in "iu" and (values[1:] > values[:-1]).all():
        return np.arange(len(values)), np.arange(len(values))
    if values.dtype.kind in "biuf":
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        return rank[codes.reshape(-1)], np.sort(first).astype(np.intp)
    # Hashing beats sorting for text, and none of these calls runs Python code per row.
    listed = values.tolist()
    try:
        position = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    except TypeError:
        seen: set[Any] = set()
        for row, value in enumerate(listed):
            try:
                seen.add(value)
            except TypeError:
                raise InvalidVotesError(
                    f"Row {row}: {value!r} cannot be used as {what}. Use numbers or text."
                ) from None
        raise
    hashed = np.fromiter(map(position.__getitem__, listed), dtype=np.intp, count=len(listed))
    return hashed, np.unique(hashed, return_index=True)[1].astype(np.intp)


def check_unique_ids(ids: npt.NDArray[Any], place: Callable[[int], str] = "row {}".format) -> None:
    """Raise if two items have the same id, naming it and both rows."""
    codes, first = factorize(ids, "item id")
    if len(first) == len(ids):
        return
    second = int(np.argmax(np.isin(np.arange(len(ids)), first, invert=True)))
    first_row = int(first[codes[second]])
    raise InvalidVotesError(
        f"Item id {ids.tolist()[second]!r} occurs twice, in {place(first_row)} and {place(second)}. Give every item "
        "its own id, or merge rows with repeats='first', 'last', 'majority' or 'average'."
    )
