"""Tables of comparisons: one row per judge and pair, as arenas and preference data sets have them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import FileFormatError
from consilience.label_types.codes import plain_value
from consilience.label_types.preferences.comparisons import OUTCOMES, UNPARSABLE, Comparisons
from consilience.tables.judge_columns import JudgeReply, find_roles, judge_columns, judge_rows
from consilience.tables.judges import winner_codes, winner_of
from consilience.tables.replies import Reply
from consilience.votes import Votes

__all__ = ["holds_comparisons", "read_preferences", "votes_of_comparisons"]

#: The id of the only row where everything is compared with everything.
ARENA = "all"


def read_preferences(
    source: Any,
    *,
    by: str | None = None,
    judge: str | None = None,
    first: str | None = None,
    second: str | None = None,
    outcome: str | None = None,
    question: str | None = None,
    run: str | None = None,
    error: str | None = None,
) -> Votes:
    """Return votes for `Preferences` from a table with one row per comparison.

    The outcome is "first" or "second", "A" or "B", "tie", 1, -1 and 0, the name of the winner, or a reply that holds
    one of these. A reply that says none of them, or is empty, is no tie: it is kept as unparsable and counted.

    Parameters
    ----------
    source
        Path of a CSV, JSON Lines, Parquet or Arrow file; a frame, a dict of columns, or a list of dicts.
    by
        The column whose values are the rows of the votes, such as "prompt": one ranking each. By default there is one
        ranking of everything.
    judge, first, second, outcome, question, run, error
        Names of the columns, where they are called otherwise than "judge", "model_a", "model_b", "winner", "prompt",
        "run", "error" and the like. The question tells comparisons of the same two items apart. Where there is a
        column of runs, answers of one judge to one question count as repeats, which are worth less than others.

    Examples
    --------
    >>> table = {"judge": ["x", "x", "y"], "model_a": ["m1", "m2", "m1"], "model_b": ["m2", "m3", "m3"]}
    >>> votes = read_preferences({**table, "winner": ["A", "tie", "m3"]})
    >>> votes.labels.tolist()
    [[m1 > m2, m2 = m3, m1 < m3]]
    """
    columns = judge_columns(source)
    if by is not None and question is None:
        question = by
    given = {"item": question, "judge": judge, "candidate": None, "criterion": None, "run": run}
    given |= {"first": first, "second": second, "error": error}
    if by is not None and by not in columns:
        find_roles(columns, {**given, "item": by}, outcome, "pairwise")
    found, _ = find_roles(columns, given, outcome, "pairwise")
    missing = [role for role in ("first", "second") if role not in found]
    if missing:
        raise FileFormatError(
            f"No column says what was shown {' and '.join(missing)}; the columns are "
            f"{', '.join(map(repr, columns))}. Say which it is, such as {missing[0]}={next(iter(columns))!r}."
        )
    found.pop("criterion", None)
    rows = judge_rows(columns, found)
    prompts = None if by is None else [plain_value(value) for value in columns[by]]
    return _votes(rows, prompts)


def holds_comparisons(names: list[str], judge: str | None = None, outcome: str | None = None) -> bool:
    """Return whether a table with these columns seems to hold one comparison per row."""
    given = {**dict.fromkeys(_ROLES), "judge": judge}
    try:
        found, kind = find_roles({name: [] for name in names}, given, outcome, "auto")
    except FileFormatError:
        return False
    return kind == "pairwise" and {"judge", "first", "second", "answer"} <= found.keys()


_ROLES = ("item", "judge", "candidate", "criterion", "run", "first", "second", "error")


def votes_of_comparisons(
    table: Any, by: str | None, judge: str | None = None, outcome: str | None = None
) -> Votes | None:
    """Return the votes of a frame that seems to hold one comparison per row; None if it does not."""
    import narwhals as nw

    if not holds_comparisons(list(map(str, nw.from_native(table).columns)), judge, outcome):
        return None
    return read_preferences(table, by=by, judge=judge, outcome=outcome)


def _votes(rows: list[JudgeReply], prompts: list[Any] | None) -> Votes:
    coded = winner_codes(rows)
    names = {plain_value(dict(row.key)[role]) for row in rows for role in ("first", "second")}
    ids: list[Any] = [ARENA] if prompts is None else list(dict.fromkeys(prompts))
    place = {item: at for at, item in enumerate(ids)}
    judges = {name: at for at, name in enumerate(dict.fromkeys(row.judge for row in rows))}
    cells: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for number, row in enumerate(rows):
        key = dict(row.key)
        one, two = plain_value(key["first"]), plain_value(key["second"])
        if one == two:
            raise FileFormatError(
                f"Row {number}, judge {row.judge!r}: {one!r} is compared with itself. Drop the row, or correct a name."
            )
        reply = Reply(reason="error") if row.failure is not None else winner_of(row, coded)
        if reply.reason is not None and _named(row.cell, names):
            raise FileFormatError(
                f"Row {number}, judge {row.judge!r}: the winner {plain_value(row.cell)!r} is neither {one!r} nor "
                f"{two!r}. Correct the row, or write 'first', 'second' or 'tie'."
            )
        value = UNPARSABLE if reply.reason is not None else OUTCOMES[reply.value]
        at = (0 if prompts is None else place[prompts[number]], judges[row.judge])
        cells.setdefault(at, []).append((one, two, value, plain_value(key.get("item")), plain_value(row.run)))
    labels = np.empty((len(ids), len(judges)), dtype=object)
    observed = np.zeros(labels.shape, dtype=bool)
    for at, said in cells.items():
        parts = list(zip(*said, strict=True))
        outcomes = np.array(parts[2], dtype=np.int8)
        labels[at] = Comparisons(parts[0], parts[1], outcomes, _some(parts[3]), _some(parts[4]))
        observed[at] = True
    items = np.array(ids) if len({type(item) for item in ids}) == 1 else np.array(ids, dtype=object)
    return Votes(labels, observed, tuple(judges), items)


def _some(values: tuple[Any, ...]) -> tuple[Hashable, ...] | None:
    return None if all(is_null(value) for value in values) else values


def _named(cell: Any, names: set[Any]) -> bool:
    """Return whether a reply is the name of an item of the table."""
    value = plain_value(cell)
    return isinstance(value, Hashable) and value in names
