"""Tables of judges: scores, labels, winners or rankings, or comparisons of two items; repeated runs, unread replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import consilience.tables.replies as replies
from consilience.arrays import is_null
from consilience.exceptions import FileFormatError, did_you_mean
from consilience.label_types import Classes, Scores
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.label_types.preferences.comparisons import OUTCOMES, UNPARSABLE, Comparisons
from consilience.lazy import pyarrow as pa
from consilience.tables.display import SourceTable
from consilience.tables.files import SHOWN, read_table
from consilience.tables.frames import as_frame, columns_of, likely_column, row_name
from consilience.tables.receipt import Receipt, fault_table
from consilience.tables.replies import Unread
from consilience.tables.vote_tables import ranked_things
from consilience.votes import Votes

#: The id of the only row of an arena.
ARENA = "all"
#: The name of the judge if no column names one, and the name of pooled judges.
ONE_JUDGE, OTHERS = "judge", "other judges"
#: With many judges, those with fewer comparisons are pooled, because so few answers show no traits, and every pair of
#: judges takes time.
FEW_COMPARISONS, MANY_JUDGES = 5, 100
#: Possible names of the columns, the most likely first.
NAMES = {
    "item": "item item_id prompt_id question_id example_id task_id prompt question task id",
    "judge": "judge judge_id judge_model evaluator rater annotator source worker model",
    "candidate": "candidate candidate_id response_id system model",
    "criterion": "criterion criteria aspect dimension metric",
    "run": "run run_id repeat trial sample seed",
    "first": "first a model_a response_a option_a answer_a left",
    "second": "second b model_b response_b option_b answer_b right",
    "error": "error error_message failure status",
    "by": "",
}
#: Possible names of the column of answers, by kind of table.
ANSWERS = {
    "pairwise": "winner preferred preference outcome choice verdict label",
    "listwise": "ranking order ranked",
    "pointwise": "score rating grade label verdict category reply judgment answer value",
}
#: The columns that together identify the subject of a reply.
_KEYS = ("item", "candidate", "criterion", "first", "second")


@dataclass(frozen=True, eq=False)
class JudgeTable:
    """The votes of judges, and the replies that could not be read.

    Examples
    --------
    >>> table = read_judges([{"item": "a", "judge": "x", "score": "7/10"}, {"item": "a", "judge": "y", "score": "N/A"}])
    >>> table.votes, table.faults.columns["reason"]
    (Votes(1 item, 2 sources, 50% observed), ['no answer'])
    """

    #: One source per judge, or per run of one; `repeated_pairs` lists the runs, for ``LabelModel(dependencies=)``.
    votes: Votes
    #: "pointwise", "pairwise" or "listwise".
    kind: str
    #: The label type of the votes; None if all replies are the same word.
    space: LabelSpace | None
    #: One row per judge and reason: the number of replies that are not votes, and the first of them.
    faults: SourceTable
    #: Description of each item: item, candidate, criterion, first, second and candidates, if present.
    keys: pa.Table

    def __repr__(self) -> str:
        lost = sum(self.faults.columns["cells"])
        return f"JudgeTable({self.kind}, {self.votes!r}, {self.space!r}, {lost} replies unread)"


def read_judges(
    path: Any,
    *,
    kind: str = "auto",
    item: str | None = None,
    judge: str | None = None,
    answer: str | None = None,
    candidate: str | None = None,
    criterion: str | None = None,
    run: str | None = None,
    first: str | None = None,
    second: str | None = None,
    error: str | None = None,
    only: Any = None,
    labels: Iterable[Any] | None = None,
    scale: tuple[float, float] | None = None,
    repeats: str = "separate",
    drop: Iterable[str] = (),
    decimal: str | None = None,
) -> JudgeTable:
    """Read the replies of judges: one row per judge and item, and per run if a judge was asked several times.

    A table with one row per item and one column per judge is read as well; there, columns of texts that are not replies
    are left out, and so are those of `drop`.

    *Pointwise* tables hold scores or labels. *Pairwise* ones hold the winner of two: an item is a comparison, and the
    label says whether the "first" one is better, the "second", or neither ("tie"); the two are put in the order in
    which they come first, so that a comparison shown in both orders is one item. *Listwise* ones hold orders, best
    first. A reply without a clear answer is an abstention, counted in `faults`.

    `path` is that of a CSV, JSON Lines, Parquet or Arrow file, a frame, a dict of columns, or a list of dicts.
    The arguments from `item` to `error` are needed for columns with names other than "prompt", "judge", "score",
    "label", "winner", "ranking", "candidate", "criterion", "run", "model_a", "model_b", "error", "status" and the like.
    `kind` is detected from these names, too. In a pointwise table with a column "judge", the column "model" is the
    candidate.

    Every (item, candidate, criterion) is a separate item, unless `only` picks a criterion. Replies that are none of
    the `labels`, or are scores beyond the two ends of the `scale`, are faults. Several runs of a judge become separate
    sources, unless all are copies of rows. ``repeats="average"`` takes the mean of their scores, and other values are
    those of `Votes.from_long`. `decimal` is the decimal sign, by default the one with which most replies are numbers.

    Examples
    --------
    >>> table = read_judges(
    ...     [
    ...         {"prompt": "p1", "judge": "small", "score": "7/10"},
    ...         {"prompt": "p1", "judge": "large", "score": "Score: 8"},
    ...         {"prompt": "p2", "judge": "small", "score": "I cannot rate this."},
    ...         {"prompt": "p2", "judge": "large", "score": "4"},
    ...     ]
    ... )
    >>> table.votes.labels[table.votes.observed].tolist()
    [7.0, 8.0, 4.0]
    >>> table.faults
    source  reason   cells  first_item  example
    small   refused      1  p2          I cannot rate this.
    """
    if kind not in ("auto", *ANSWERS):
        raise FileFormatError(f"kind={kind!r} is unknown. Use one of auto, {', '.join(ANSWERS)}.")
    given = {"item": item, "judge": judge, "candidate": candidate, "criterion": criterion, "run": run}
    columns, named = _opened(path)
    left_out: tuple[str, ...] = ()
    places: Sequence[int] = range(len(next(iter(columns.values()))))  # of the rows in the table
    n_rows = len(places)
    roles = {**given, "first": first, "second": second, "error": error}
    try:
        found, kind = _roles(columns, roles, answer, kind)
    except FileFormatError:
        lower = {name.lower() for name in columns}
        others = f"{NAMES['judge']} {ANSWERS['pairwise']} {ANSWERS['listwise']}".split()
        is_long = judge or answer or kind not in ("auto", "pointwise") or lower.intersection(others)
        wide = None if is_long else _one_row_per_reply(columns, item, drop)
        if wide is None:
            raise
        columns, left_out, places = wide
        found, kind = _roles(columns, {**roles, "item": item or next(iter(columns))}, answer, kind)
    merged = n_rows - len(set(places))
    columns, kept = _merged(columns, found)
    merged += len(places) - len(kept)
    rows = _rows(columns, found, lambda row: named(places[kept[row]]))
    if only is not None:
        if "criterion" not in found:
            raise FileFormatError(f"only={only!r} picks a criterion, but no column is one. Pass criterion=.")
        there = dict.fromkeys(row.cells["criterion"] for row in rows)
        if only not in there:
            raise FileFormatError(f"There is no criterion {only!r}; there are {', '.join(map(repr, there))}.")
        rows = [row for row in rows if row.cells["criterion"] == only]
        for row in rows:
            del row.cells["criterion"]
    space: LabelSpace | None
    candidates: Sequence[Sequence[str]] | None = None
    notes: tuple[str, ...] = ()
    if kind == "pairwise":
        space = _read_pairs(rows)
    elif kind == "listwise":
        _read(rows, lambda row: replies.read_order(row.cells["answer"]))
        place = {key: number for number, key in enumerate(dict.fromkeys(row.key for row in rows))}
        space, candidates = ranked_things(((place[row.key], row.value) for row in rows), len(place))
    else:
        space, notes = _read_points(rows, labels, scale, decimal)
    receipt = Receipt(0, merged=merged, ids=found.get("item"), left_out=left_out, notes=notes)
    return _table(kind, rows, space, candidates, repeats, receipt)


def read_preferences(
    path: Any,
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
    one of these. A reply that says none of them, or is empty, is not a tie: it is kept as unparsable and counted.

    `path` is what `read_judges` takes. Each value of the column `by`, such as "prompt", becomes a row of the votes
    with its own ranking; by default there is one ranking of everything. The other arguments name columns that are
    not called "judge", "model_a", "model_b", "winner", "prompt", "run", "error" and the like. The question
    tells comparisons of the same two items apart. Where there is a column of runs, answers of one judge to one question
    count as repeats, which are worth less than others.

    Examples
    --------
    >>> table = {"judge": ["x", "x", "y"], "model_a": ["m1", "m2", "m1"], "model_b": ["m2", "m3", "m3"]}
    >>> votes = read_preferences({**table, "winner": ["A", "tie", "m3"]})
    >>> votes.labels.tolist()
    [[m1 > m2, m2 = m3, m1 < m3]]
    """
    columns, named = _opened(path)
    given = {"item": question or by, "judge": judge, "candidate": None, "run": run, "by": by}
    found, _ = _roles(columns, {**given, "first": first, "second": second, "error": error}, outcome, "pairwise")
    missing = [role for role in ("first", "second") if role not in found]
    if missing:
        raise FileFormatError(
            f"No column says what was shown {' and '.join(missing)}; the columns are "
            f"{', '.join(map(repr, columns))}. Name it, for example {missing[0]}={next(iter(columns))!r}."
        )
    rows = _rows(columns, found, named)
    _read_winners(rows)
    names = {plain_value(row.cells[role]) for row in rows for role in ("first", "second")}
    often = Counter(row.judge for row in rows)
    few = {name for name, count in often.items() if count < FEW_COMPARISONS} if len(often) > MANY_JUDGES else set()
    for row in rows:
        if row.judge in few:
            row.cells["judge"] = OTHERS
    judges = list(dict.fromkeys(row.judge for row in rows))
    said: dict[Any, dict[str, list[tuple[Any, ...]]]] = {}
    for row in rows:
        item, one, two, again = (plain_value(row.cells.get(role)) for role in ("item", "first", "second", "run"))
        if one == two:
            raise FileFormatError(
                f"{row.place}, judge {row.judge!r}: {one!r} is compared with itself. Drop the row, or correct a name."
            )
        answer = plain_value(row.cells["answer"])
        if row.reason is not None and isinstance(answer, Hashable) and answer in names:
            raise FileFormatError(
                f"{row.place}, judge {row.judge!r}: the winner {answer!r} is neither {one!r} nor "
                f"{two!r}. Correct the row, or write 'first', 'second' or 'tie'."
            )
        prompt = ARENA if by is None else plain_value(row.cells["by"])
        value = UNPARSABLE if row.reason is not None else OUTCOMES[row.value]
        said.setdefault(prompt, {}).setdefault(row.judge, []).append((one, two, value, item, again))
    labels = np.full((len(said), len(judges)), None, dtype=object)
    for place, by_judge in enumerate(said.values()):
        for name, comparisons in by_judge.items():
            ones, twos, values, items, runs = zip(*comparisons, strict=True)
            known = [None if all(map(is_null, column)) else column for column in (items, runs)]
            labels[place, judges.index(name)] = Comparisons(ones, twos, values, *known)
    notes = [f"No column names a judge; all answers are those of one, {ONE_JUDGE!r}."] * ("judge" not in found)
    if few:
        notes.append(f"{len(few):,} judges with fewer than {FEW_COMPARISONS} comparisons are pooled as {OTHERS!r}.")
    bad = sum(row.value == "both bad" for row in rows)
    if bad:
        ties = sum(row.value == "tie" for row in rows)
        notes.append(f"{bad:,} comparisons end with both bad, which counts as a tie, in addition to {ties:,} ties.")
    lost = fault_table((row.judge, ARENA, row.reason, row.cells["answer"]) for row in rows if row.reason is not None)
    receipt = Receipt(len(rows), faults=lost, unit="comparisons", notes=tuple(notes))
    return replace(Votes.from_array(labels, sources=judges, items=list(said)), receipt=receipt)


def votes_of_comparisons(
    table: Any, by: str | None, judge: str | None = None, outcome: str | None = None
) -> Votes | None:
    """Return the votes of a frame that seems to hold one comparison per row; None if it does not."""
    names = list(map(str, as_frame(table).columns))
    if sum(name.lower().startswith("winner_") for name in names) > 1:
        table = _columns(table)
        names = list(table)
    try:
        found, kind = _roles(dict.fromkeys(names), {**dict.fromkeys(NAMES), "judge": judge}, outcome, "auto")
    except FileFormatError:
        return None
    if kind != "pairwise" or not {"first", "second"} <= found.keys():
        return None
    return read_preferences(table, by=by, judge=judge, outcome=outcome)


@dataclass
class _Row:
    """One reply: the cells by role, and what was read from the answer, or why nothing was."""

    cells: dict[str, Any]
    place: str
    value: Any = None
    reason: str | None = None

    @property
    def key(self) -> tuple[tuple[str, Any], ...]:
        """What the reply is about."""
        return tuple((role, self.cells[role]) for role in _KEYS if role in self.cells)

    @property
    def judge(self) -> str:
        return str(self.cells.get("judge", ONE_JUDGE))


def _opened(path: Any) -> tuple[Mapping[str, list[Any]], Callable[[int], str]]:
    """Return the columns of a file or of what `_columns` takes, and what messages call its rows."""
    table = read_table(path) if isinstance(path, (str, Path)) else path
    return _columns(table), row_name(table)


def _columns(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame, a dict of columns or a list of dicts, with None for null."""
    is_list = isinstance(table, (list, tuple))
    if is_list and not (table and all(isinstance(record, Mapping) for record in table)):
        raise FileFormatError(
            "A list of replies holds one dict per reply, such as {'prompt': ..., 'judge': ..., 'score': ...}."
        )
    columns = _with_winner(
        {
            name: [None if null else cell for cell, null in zip(column.values.tolist(), column.null, strict=True)]
            for name, column in columns_of(table).items()
        }
    )
    if not columns or not next(iter(columns.values())):
        raise FileFormatError("The table of judges has no rows. It needs one per judge and item.")
    return columns


def _one_row_per_reply(
    columns: Mapping[str, list[Any]], item: str | None, drop: Iterable[str]
) -> tuple[dict[str, list[Any]], tuple[str, ...], Sequence[int]] | None:
    """Return a table with a column per judge as one with a row per reply, the other columns, and whence each row is.

    Where some columns hold numbers, those without any are other texts. None where fewer than two columns are judges.
    """
    dropped = set(drop)
    ids = item or likely_column("item", [name for name in columns if name not in dropped])
    columns, kept = _merged(columns, {} if ids is None else {"item": ids})
    judges = [name for name in columns if name not in {ids, *dropped}]
    share = {name: _share_of_numbers(columns[name]) for name in judges}
    if max(share.values(), default=0.0) >= replies.NUMBERS:
        judges = [name for name in judges if share[name] > 0.0]
    if len(judges) < 2:
        return None
    size = len(columns[judges[0]])
    items: list[Any] = columns[ids] if ids else list(range(size))
    cells = [cell for row in zip(*(columns[name] for name in judges), strict=True) for cell in row]
    table: dict[str, list[Any]] = {
        ids or "item": [one for one in items for _ in judges],
        "judge": judges * size,
        "reply": cells,
    }
    return table, tuple(name for name in share if name not in judges), [row for row in kept for _ in judges]


def _share_of_numbers(cells: Sequence[Any]) -> float:
    """Return which share of the cells that are not empty holds a number."""
    there = [cell for cell in cells if not is_null(cell)]
    return sum(replies.has_number(cell) or replies.has_number(cell, ",") for cell in there) / max(len(there), 1)


def _with_winner(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns with one of winners in place of ``winner_model_a``, ``winner_tie``, ... of 0 and 1."""
    marks = {name: column for name, column in columns.items() if name.lower().startswith("winner_")}
    if len(marks) < 2 or "winner" in columns or not all(cell in (0, 1) for own in marks.values() for cell in own):
        return columns
    sides = [name[len("winner_") :] for name in marks]
    won = [[side for side, mark in zip(sides, row, strict=True) if mark] for row in zip(*marks.values(), strict=True)]
    others = {name: column for name, column in columns.items() if name not in marks}
    return others | {"winner": [row[0] if len(row) == 1 else None for row in won]}


def _roles(
    columns: Mapping[str, Any], given: Mapping[str, str | None], answer: str | None, kind: str
) -> tuple[dict[str, str], str]:
    """Return the column of every role, and the kind of the table."""
    listed = ", ".join(map(repr, columns))
    for name in (*given.values(), answer):
        if name is not None and name not in columns:
            hint = did_you_mean(name, columns)
            raise FileFormatError(f"There is no column {name!r}; the columns are {listed}.{hint}")
    lower = {name.lower(): name for name in reversed(list(columns))}

    def first_of(aliases: Sequence[str]) -> str | None:
        return next((lower[alias] for alias in aliases if alias in lower), None)

    found: dict[str, str] = {}
    for role, own in given.items():
        name = own or first_of(NAMES[role].split())
        if name is not None and (own or name not in found.values()):
            found[role] = name
    if kind == "auto":
        kind = next((one for one in ("listwise", "pairwise") if first_of(ANSWERS[one].split()[:3])), "pointwise")
        if kind == "pointwise" and "first" in found and "second" in found:
            kind = "pairwise"
    chosen = answer or first_of(ANSWERS[kind].split())
    required = () if kind == "pairwise" else ("item", "judge")
    if required and "item" not in found:  # an id, but not that of a judge, a run or a criterion
        taken = {found.get(role) for role in ("judge", "criterion", "run")}
        ids = [name for name in columns if name.lower().endswith("_id") and name not in taken]
        if ids:
            found["item"] = ids[0]
            if found.get("candidate") == ids[0]:
                del found["candidate"]
    if chosen is None or not set(required) <= found.keys():
        missing = [role for role in required if role not in found] + ["answer"] * (chosen is None)
        raise FileFormatError(
            f"A {kind} table needs columns for item, judge and answer; {' and '.join(missing)} could not be identified "
            f"among {listed}. Name them with {', '.join(f'{role}=' for role in missing)}."
        )
    if kind == "pairwise" and ("first" in found) != ("second" in found):
        one, other = ("first", "second") if "first" in found else ("second", "first")
        raise FileFormatError(
            f"Column {found[one]!r} says what was shown {one}, and no column what was shown {other}; the columns are "
            f"{listed}. Name it with {other}=."
        )
    if kind == "pairwise" and "item" not in found and "first" not in found:
        raise FileFormatError(
            "A pairwise table needs a column that says what was compared. Pass item=, or first= and second=."
        )
    found["answer"] = chosen
    unused = {
        "pairwise": ("candidate",),
        "listwise": ("first", "second", "candidate"),
        "pointwise": ("first", "second"),
    }
    return {role: name for role, name in found.items() if role not in unused[kind]}, kind


def _merged(
    columns: Mapping[str, list[Any]], found: Mapping[str, str]
) -> tuple[Mapping[str, list[Any]], Sequence[int]]:
    """Return the columns without rows that are equal to an earlier one, and the places of those that stay.

    Where a judge also gave different answers about one thing, equal ones are runs as well, and stay.
    """
    roles = [found[role] for role in (*_KEYS, "judge", "run") if role in found]
    rows = list(zip(*(map(repr, columns[name]) for name in columns), strict=True))
    about = list(zip(*(map(repr, columns[name]) for name in roles), strict=True))
    if not about or len(set(rows)) == len(rows) or len(set(about)) < len(set(rows)):
        return columns, range(len(rows))
    first = {row: place for place, row in reversed(list(enumerate(rows)))}
    kept = sorted(first.values())
    return {name: [cells[place] for place in kept] for name, cells in columns.items()}, kept


def _rows(columns: Mapping[str, list[Any]], found: Mapping[str, str], place_of: Callable[[int], str]) -> list[_Row]:
    needed = [role for role in (*_KEYS, "judge") if role in found and role != "criterion"]
    rows = []
    for place in range(len(columns[found["answer"]])):
        cells = {role: columns[name][place] for role, name in found.items()}
        empty = next((role for role in needed if is_null(cells[role])), None)
        where = place_of(place)
        where = where[0].upper() + where[1:]
        if empty is not None:
            raise FileFormatError(f"{where} has no {empty} ({found[empty]!r}). Fill it in, or drop the row.")
        odd = next((role for role in (*needed, "run", "by") if not isinstance(cells.get(role), Hashable)), None)
        if odd is not None:
            shown = str(cells[odd])[:SHOWN]
            raise FileFormatError(
                f"{where}: {odd} ({found[odd]!r}) is {shown!r}, not a name. Write a text or a number."
            )
        rows.append(_Row(cells, where))
    return rows


def _read(rows: Sequence[_Row], read: Callable[[_Row], Any]) -> None:
    """Fill in what the answers say, or why they say nothing."""
    for row in rows:
        row.value, row.reason = None, None
        try:
            if replies.failed(row.cells.get("error")):
                raise Unread("error")
            row.value = read(row)
        except Unread as fault:
            row.reason = str(fault)


def _read_points(
    rows: list[_Row], labels: Iterable[Any] | None, scale: tuple[float, float] | None, decimal: str | None
) -> tuple[LabelSpace | None, tuple[str, ...]]:
    """Read numbers, or words where most replies are not numbers; return their type, and what was guessed."""
    allowed = None if labels is None else list(labels)
    texts = Counter(row.cells["answer"] for row in rows if isinstance(row.cells["answer"], str))
    sign, guessed = replies.decimal_sign(texts) if decimal is None else (decimal, None)
    _read(rows, lambda row: replies.read_score(row.cells["answer"], sign))
    answered = [row for row in rows if row.reason not in ("error", "no reply", "no answer", "refused")]
    numbers = sum(row.reason is None for row in answered)
    if allowed is not None or (answered and numbers < replies.NUMBERS * len(answered)):
        _read(rows, lambda row: replies.read_word(row.cells["answer"], allowed))
        said = allowed or sorted({row.value for row in rows if row.reason is None}, key=str)
        return Classes(said) if len(said) > 1 else None, ()
    scored = [row for row in rows if row.reason is None]
    scale = scale or replies.scale_named(row.value for row in scored)
    for row in scored:
        value, end = row.value
        row.reason = replies.off_scale(value, end, scale)
        row.value = value if row.reason is None else None
    return Scores(range=scale), () if guessed is None else (replies.sign_note(sign, guessed),)


def _read_pairs(rows: list[_Row]) -> LabelSpace:
    """Read winners, and put the two that are compared in the order in which they come first."""
    _read_winners(rows)
    order: dict[Any, tuple[Any, Any]] = {}
    for cells, row in ((row.cells, row) for row in rows if "first" in row.cells):
        shown = (cells["first"], cells["second"])
        kept = order.setdefault((cells.get("item"), cells.get("criterion"), frozenset(shown)), shown)
        if kept != shown:
            cells["first"], cells["second"] = kept
            row.value = {"first": "second", "second": "first"}.get(row.value, row.value)
    said = {row.value for row in rows}
    return Classes(["first", "second", *(word for word in ("tie", "both bad") if word in said)])


def _read_winners(rows: Sequence[_Row]) -> None:
    """Read who won; if all winners are whole numbers and no names, find out what these mean."""
    said = [row.cells for row in rows if not is_null(row.cells["answer"])]
    values = [cells["answer"] for cells in said]
    coded: dict[Any, str] = {}
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if numbers and not all(cells["answer"] in (cells.get("first"), cells.get("second")) for cells in said):
        second = next((code for code in (-1, 2) if code in values and set(values) <= {0, 1, code}), None)
        if second is None:
            raise FileFormatError(
                f"The winners are the numbers {', '.join(map(str, sorted(set(values))[:6]))}, which can be read in "
                "several ways. Write 'first', 'second' and 'tie', or the name of the winner."
            )
        coded = {1: "first", second: "second", 0: "tie"}

    def winner(row: _Row) -> str:
        answer = row.cells["answer"]
        if coded and not is_null(answer):
            return coded[answer]
        return replies.read_winner(answer, row.cells.get("first"), row.cells.get("second"))

    _read(rows, winner)


def _table(
    kind: str,
    rows: list[_Row],
    space: LabelSpace | None,
    candidates: Sequence[Sequence[str]] | None,
    repeats: str,
    receipt: Receipt,
) -> JudgeTable:
    keys = list(dict.fromkeys(row.key for row in rows))
    names: dict[Any, Any] = {}
    for key in keys:  # an id of one value is unchanged, others are their parts as text
        parts = [value for _, value in key if not is_null(value)]
        names[key] = parts[0] if len(parts) == 1 else " | ".join(map(str, parts))
    twice = next((name for name, count in Counter(names.values()).items() if count > 1), None)
    if twice is not None:
        raise FileFormatError(f"Two different items are both called {twice!r}. Give every item its own id.")
    sources, pairs = _sources(rows, repeats)
    records = [(names[row.key], source, row.value) for row, source in zip(rows, sources, strict=True)]
    votes = Votes.from_long(records, repeats=repeats)
    votes = replace(votes, repeated_pairs=tuple(dict.fromkeys((*votes.repeated_pairs, *pairs))))
    columns = {role: pa.array([dict(key)[role] for key in keys]) for role, _ in keys[0]}
    if candidates is not None:
        columns["candidates"] = pa.array(map(list, candidates), pa.list_(pa.string()))
    faults = fault_table(
        (row.judge, names[row.key], row.reason, row.cells["error" if row.reason == "error" else "answer"])
        for row in rows
        if row.reason is not None
    )
    receipt = replace(receipt, cells=len(rows), faults=faults, scale=getattr(space, "range", None))
    return JudgeTable(replace(votes, receipt=receipt), kind, space, faults, pa.table(columns))


def _sources(rows: list[_Row], repeats: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the source of each row, and pairs of runs of one judge where a column says which run it is."""
    runs: dict[str, dict[Any, str]] = {}
    for row in rows:
        runs.setdefault(row.judge, {})[row.cells.get("run")] = row.judge
    again = len({(row.key, row.judge, row.cells.get("run")) for row in rows}) < len(rows)  # such as both orders
    if again or repeats != "separate":
        return [row.judge for row in rows], []
    for judge, own in runs.items():
        if len(own) > 1:
            own |= {run: f"{judge} #{run}" for run in own}
    pairs = [pair for own in runs.values() for pair in combinations(own.values(), 2)]
    return [runs[row.judge][row.cells.get("run")] for row in rows], pairs
