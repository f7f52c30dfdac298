"""Tables of judges: scores, labels, winners or rankings, or comparisons of two items; repeated runs, unread replies."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import FileFormatError, InvalidLabelError, did_you_mean
from consilience.label_types import Classes, Scores
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.label_types.preferences.comparisons import OUTCOMES, UNPARSABLE, Comparisons
from consilience.label_types.rankings.labels import order_of_text
from consilience.tables.display import SourceTable
from consilience.tables.files import read_table
from consilience.tables.frames import columns_of
from consilience.tables.training import shared_orders
from consilience.tables.vote_tables import as_group
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa


#: At least this share of the replies must be numbers for the votes to be scores.
NUMBERS = 0.5
SHOWN = 60
#: The id of the only row where everything is compared with everything.
ARENA = "all"
#: What the columns may be called, the likelier name first.
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
#: What the column of answers may be called, by kind of table.
ANSWERS = {
    "pairwise": "winner preferred preference outcome choice verdict label",
    "listwise": "ranking order ranked",
    "pointwise": "score rating grade label verdict category reply judgment answer value",
}
#: The columns that together say what a reply is about.
_KEYS = ("item", "candidate", "criterion", "first", "second")


@dataclass(frozen=True, eq=False)
class JudgeTable:
    """The votes of judges, and the replies that could not be read."""

    #: One source per judge, or per run of one; `repeated_pairs` lists the runs, for ``LabelModel(dependencies=)``.
    votes: Votes
    #: "pointwise", "pairwise" or "listwise".
    kind: str
    #: The label type of the votes; None where all say one and the same word.
    space: LabelSpace | None
    #: One row per judge and reason: how many replies are no vote, and the first of them.
    faults: SourceTable
    #: What each item of the votes is: item, candidate, criterion, first, second and candidates, where there are such.
    keys: pa.Table

    def __repr__(self) -> str:
        lost = sum(self.faults.columns["replies"])
        return f"JudgeTable({self.kind}, {self.votes!r}, {self.space!r}, {lost} replies unread)"


def read_judges(
    source: Any,
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
) -> JudgeTable:
    """Read what judges said: one row per judge and item, and per run where a judge was asked several times.

    *Pointwise* tables hold scores or labels. *Pairwise* ones hold the winner of two: an item is a comparison, and the
    label says whether the "first" one is better, the "second", or neither ("tie"); the two are put in the order in
    which they come first, so that a comparison shown in both orders is one item. *Listwise* ones hold orders, best
    first. What is no clear answer is an abstention, counted in `faults`.

    `source` is the path of a CSV, JSON Lines, Parquet or Arrow file, a frame, a dict of columns, or a list of dicts.
    The arguments from `item` to `error` name columns that are called otherwise than "prompt", "judge", "score",
    "label", "winner", "ranking", "candidate", "criterion", "run", "model_a", "model_b", "error", "status" and the like;
    `kind` goes by these names, too. In a pointwise table with a column "judge", the column "model" is the candidate.

    Every (item, candidate, criterion) is an item of its own, unless `only` picks a criterion. Replies that are none of
    the `labels`, or are scores beyond the two ends of the `scale`, are faults. Several runs of a judge become sources
    of their own; ``repeats="average"`` takes the mean of their scores.

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
    source  reason   replies  first_item  example
    small   refused        1  p2          I cannot rate this.
    """
    if kind not in ("auto", *ANSWERS):
        raise FileFormatError(f"kind={kind!r} is unknown. Use one of auto, {', '.join(ANSWERS)}.")
    if repeats not in ("separate", "average"):
        raise FileFormatError(f"repeats={repeats!r} is unknown. Use 'separate' or 'average'.")
    given = {"item": item, "judge": judge, "candidate": candidate, "criterion": criterion, "run": run}
    columns = _columns(source)
    found, kind = _roles(columns, {**given, "first": first, "second": second, "error": error}, answer, kind)
    rows = _rows(columns, found)
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
    if kind == "pairwise":
        space = _read_pairs(rows)
    elif kind == "listwise":
        _read(rows, lambda row: read_order(row.cells["answer"]))
        place = {key: number for number, key in enumerate(dict.fromkeys(row.key for row in rows))}
        orders = [(place[row.key], row.value) for row in rows]
        shared, space, candidates = shared_orders(orders, len(place))
        for row, label in zip(rows, shared, strict=True):
            row.value = label
    else:
        space = _read_points(rows, labels, scale)
    return _table(kind, rows, space, candidates, repeats)


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

    `source` is what `read_judges` takes. Each value of the column `by`, such as "prompt", becomes a row of the votes
    with a ranking of its own; by default there is one ranking of everything. The other arguments name columns that are
    called otherwise than "judge", "model_a", "model_b", "winner", "prompt", "run", "error" and the like. The question
    tells comparisons of the same two items apart. Where there is a column of runs, answers of one judge to one question
    count as repeats, which are worth less than others.

    Examples
    --------
    >>> table = {"judge": ["x", "x", "y"], "model_a": ["m1", "m2", "m1"], "model_b": ["m2", "m3", "m3"]}
    >>> votes = read_preferences({**table, "winner": ["A", "tie", "m3"]})
    >>> votes.labels.tolist()
    [[m1 > m2, m2 = m3, m1 < m3]]
    """
    columns = _columns(source)
    given = {"item": question or by, "judge": judge, "candidate": None, "run": run, "by": by}
    found, _ = _roles(columns, {**given, "first": first, "second": second, "error": error}, outcome, "pairwise")
    missing = [role for role in ("first", "second") if role not in found]
    if missing:
        raise FileFormatError(
            f"No column says what was shown {' and '.join(missing)}; the columns are "
            f"{', '.join(map(repr, columns))}. Say which it is, such as {missing[0]}={next(iter(columns))!r}."
        )
    rows = _rows(columns, found)
    _read_winners(rows)
    names = {plain_value(row.cells[role]) for row in rows for role in ("first", "second")}
    judges = list(dict.fromkeys(row.judge for row in rows))
    said: dict[Any, dict[str, list[tuple[Any, ...]]]] = {}
    for number, row in enumerate(rows):
        item, one, two, again = (plain_value(row.cells.get(role)) for role in ("item", "first", "second", "run"))
        if one == two:
            raise FileFormatError(
                f"Row {number}, judge {row.judge!r}: {one!r} is compared with itself. Drop the row, or correct a name."
            )
        answer = plain_value(row.cells["answer"])
        if row.reason is not None and isinstance(answer, Hashable) and answer in names:
            raise FileFormatError(
                f"Row {number}, judge {row.judge!r}: the winner {answer!r} is neither {one!r} nor "
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
    return Votes.from_array(labels, sources=judges, items=list(said))


def votes_of_comparisons(
    table: Any, by: str | None, judge: str | None = None, outcome: str | None = None
) -> Votes | None:
    """Return the votes of a frame that seems to hold one comparison per row; None if it does not."""
    import narwhals as nw

    names = list(map(str, nw.from_native(table).columns))
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
    value: Any = None
    reason: str | None = None

    @property
    def key(self) -> tuple[tuple[str, Any], ...]:
        """What the reply is about."""
        return tuple((role, self.cells[role]) for role in _KEYS if role in self.cells)

    @property
    def judge(self) -> str:
        return str(self.cells["judge"])


def _columns(source: Any) -> dict[str, list[Any]]:
    """Return the columns of a file, a frame, a dict of columns or a list of dicts, with None for null."""
    if isinstance(source, (str, Path)):
        source = read_table(source)
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(record, Mapping) for record in source):
            raise FileFormatError(
                "A list of replies holds one dict per reply, such as {'prompt': ..., 'judge': ..., 'score': ...}."
            )
        names = dict.fromkeys(str(key) for record in source for key in record)
        return {name: [record.get(name) for record in source] for name in names}
    columns = {
        name: [None if null else cell for cell, null in zip(column.values.tolist(), column.null, strict=True)]
        for name, column in columns_of(source).items()
    }
    if not columns or not next(iter(columns.values())):
        raise FileFormatError("The table of judges has no rows. It needs one per judge and item.")
    return columns


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
    if chosen is None or "judge" not in found or ("item" not in found and kind != "pairwise"):
        missing = [role for role in ("item", "judge") if role not in found] + ["answer"] * (chosen is None)
        raise FileFormatError(
            f"A {kind} table needs columns for item, judge and answer; {' and '.join(missing)} cannot be told from the "
            f"names {listed}. Say which it is, such as {missing[0]}={next(iter(columns))!r}."
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


def _rows(columns: Mapping[str, list[Any]], found: Mapping[str, str]) -> list[_Row]:
    needed = [role for role in (*_KEYS, "judge") if role in found and role != "criterion"]
    rows = []
    for place in range(len(columns[found["answer"]])):
        cells = {role: columns[name][place] for role, name in found.items()}
        empty = next((role for role in needed if is_null(cells[role])), None)
        if empty is not None:
            raise FileFormatError(f"Row {place} has no {empty} ({found[empty]!r}). Fill it in, or drop the row.")
        rows.append(_Row(cells))
    return rows


def _read(rows: Sequence[_Row], read: Callable[[_Row], Any]) -> None:
    """Fill in what the answers say, or why they say nothing."""
    for row in rows:
        row.value, row.reason = None, None
        try:
            if failed(row.cells.get("error")):
                raise Unread("error")
            row.value = read(row)
        except Unread as fault:
            row.reason = str(fault)


def _read_points(
    rows: list[_Row], labels: Iterable[Any] | None, scale: tuple[float, float] | None
) -> LabelSpace | None:
    allowed = None if labels is None else list(labels)
    _read(rows, lambda row: read_score(row.cells["answer"]))
    answered = [row for row in rows if row.reason not in ("error", "no reply", "no answer", "refused")]
    numbers = sum(row.reason is None for row in answered)
    if allowed is not None or (answered and numbers < NUMBERS * len(answered)):
        _read(rows, lambda row: read_word(row.cells["answer"], allowed))
        said = allowed or sorted({row.value for row in rows if row.reason is None}, key=str)
        return Classes(said) if len(said) > 1 else None
    scored = [row for row in rows if row.reason is None]
    ends = Counter(row.value[1] for row in scored if row.value[1] is not None)
    end = scale[1] if scale is not None else next((end for end, _ in ends.most_common(1)), None)
    for row in scored:
        row.value, own = row.value
        if own not in (None, end):
            row.reason = "another scale"
        elif scale is not None and not scale[0] <= row.value <= scale[1]:
            row.reason = "outside the scale"
        row.value = row.value if row.reason is None else None
    return Scores(range=scale)


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
    return Classes(["first", "second", *["tie"] * any(row.value == "tie" for row in rows)])


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
        return read_winner(answer, row.cells.get("first"), row.cells.get("second"))

    _read(rows, winner)


def _table(
    kind: str, rows: list[_Row], space: LabelSpace | None, candidates: Sequence[Sequence[str]] | None, repeats: str
) -> JudgeTable:
    import pyarrow as pa

    keys = list(dict.fromkeys(row.key for row in rows))
    names: dict[Any, Any] = {}
    for key in keys:  # the id is as it came where it is one value, else its parts as text
        parts = [value for _, value in key if not is_null(value)]
        names[key] = parts[0] if len(parts) == 1 else " | ".join(map(str, parts))
    twice = next((name for name, count in Counter(names.values()).items() if count > 1), None)
    if twice is not None:
        raise FileFormatError(f"Two different items are both called {twice!r}. Give every item an id of its own.")
    sources, pairs = _sources(rows, repeats)
    records = [(names[row.key], source, row.value) for row, source in zip(rows, sources, strict=True)]
    votes = Votes.from_long(records, repeats=repeats)
    votes = replace(votes, repeated_pairs=tuple(dict.fromkeys((*votes.repeated_pairs, *pairs))))
    columns = {role: pa.array([dict(key)[role] for key in keys]) for role, _ in keys[0]}
    if candidates is not None:
        columns["candidates"] = pa.array(map(list, candidates), pa.list_(pa.string()))
    return JudgeTable(votes, kind, space, _faults(rows, names), pa.table(columns))


def _sources(rows: list[_Row], repeats: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the source of each row, and pairs of runs of one judge where a column says which run it is."""
    runs: dict[str, dict[Any, str]] = {}
    for row in rows:
        runs.setdefault(row.judge, {})[row.cells.get("run")] = row.judge
    again = len({(row.key, row.judge, row.cells.get("run")) for row in rows}) < len(rows)  # such as both orders
    if again or repeats == "average":
        return [row.judge for row in rows], []
    for judge, own in runs.items():
        if len(own) > 1:
            own |= {run: f"{judge} #{run}" for run in own}
    pairs = [pair for own in runs.values() for pair in combinations(own.values(), 2)]
    return [runs[row.judge][row.cells.get("run")] for row in rows], pairs


def _faults(rows: list[_Row], names: Mapping[Any, Any]) -> SourceTable:
    found: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        if row.reason is not None:
            found.setdefault((row.judge, row.reason), []).append(row)
    listed = []
    for (judge, reason), own in sorted(found.items(), key=lambda entry: (entry[0][0], -len(entry[1]))):
        said = own[0].cells["error" if reason == "error" else "answer"]
        example = "" if is_null(said) else " ".join(str(said).split())[:SHOWN]
        listed.append((judge, reason, len(own), str(names[own[0].key]), example))
    titles = ("source", "reason", "replies", "first_item", "example")
    return SourceTable({title: [row[place] for row in listed] for place, title in enumerate(titles)})


# --- what judges reply, as numbers, words, winners and orders; or why a reply is none of these -------------------

# Only what can be read in one way is read: a guess that is wrong now and then would be taken for the judge's error.
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_SCALE = rf"(?:\s*(?:/|out of)\s*({_NUMBER}))?"
_WHOLE = re.compile(rf"({_NUMBER}){_SCALE}\s*(?:points?)?\.?", re.IGNORECASE)
#: After a number that stands alone: neither more digits nor the second half of a range.
_ALONE = r"(?![\d.,]*\d)(?!\s*(?:[-~]|to|or)\s*\d)"
_NAMED = re.compile(
    rf"\b(?:score|rating|grade)\b\W{{0,4}}(?:is\s+)?\W{{0,4}}?({_NUMBER}){_SCALE}{_ALONE}", re.IGNORECASE
)
_VERDICT = re.compile(
    r"^(?:(?:final|overall)\s+)?(?:label|verdict|answer|winner|class|category)\s*(?:is|:|=)\s*(.+?)\.?$", re.I
)
_REFUSAL = re.compile(
    r"^\W*(?:i.?m\s+)?(?:sorry|unable to)\b|\bas an ai\b"
    r"|\b(?:i|we)\s+(?:cannot|can.?t|can not|won.?t|will not|must decline|am unable)\b",
    re.IGNORECASE,
)
_NOTHING = {"", "-", "--", "?", "n/a", "na", "nan", "none", "null", "not applicable", "unknown"}
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ANSWER_FIELDS = ("score", "rating", "grade", "label", "verdict", "winner", "ranking", "answer", "value")
_SIDES = {
    "first": {"a", "first", "1", "model_a", "response_a", "option_a", "answer_a", "assistant_a", "left"},
    "second": {"b", "second", "2", "model_b", "response_b", "option_b", "answer_b", "assistant_b", "right"},
    "tie": {"tie", "c", "equal", "draw", "both", "same", "tie (bothbad)", "bothbad", "both_bad", "neither"},
}
#: States of a reply that came.
_FINE = {"", "ok", "success", "succeeded", "completed", "done", "parsed", "none", "false", "0", "200"}
#: Longer replies without a mark are sentences, not labels.
MOST_WORDS = 4


class Unread(Exception):  # noqa: N818  it never leaves the package
    """A reply that is no vote, and in few words why."""


def failed(status: Any) -> bool:
    """Return whether a column of states or errors says that there is no reply: "timeout" does, "ok" and 200 do not."""
    return not is_null(status) and str(status).strip().lower() not in _FINE


def read_score(cell: Any) -> tuple[float, float | None]:
    """Return the number of a reply, and the end of its scale where it names one."""
    if isinstance(cell, (bool, np.bool_)):
        raise Unread("no number")
    if isinstance(cell, (int, float, np.number)) and not is_null(cell):
        if not math.isfinite(cell):
            raise Unread("no clear number")
        return float(cell), None
    text = _plain(cell)
    if isinstance(text, (list, dict)):
        raise Unread("no clear number")
    if not isinstance(text, str):
        return read_score(text)
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower())), None
    found = _WHOLE.fullmatch(text)
    if found is None:
        named = {(match[1], match[2]): match for match in _NAMED.finditer(text)}
        if len(named) != 1:
            raise Unread(_refusal(text, "no clear number" if re.search(r"\d", text) else "no number"))
        found = next(iter(named.values()))
    value, end = float(found[1]), None if found[2] is None else float(found[2])
    if end is not None and not 0 <= value <= end:
        raise Unread("outside the scale")
    return value, end


def read_word(cell: Any, allowed: Iterable[Any] | None = None) -> Any:
    """Return the label of a reply: a word, "Verdict: good", or JSON with a label."""
    known = None if allowed is None else {str(name).lower(): name for name in allowed}
    if known is not None and str(cell).strip().lower() in known:  # "none" may be a label
        return known[str(cell).strip().lower()]
    text = _plain(cell)
    if isinstance(text, str):
        text = _verdict(text)
        if (known is None and len(text.split()) > MOST_WORDS) or _REFUSAL.search(text):
            raise Unread(_refusal(text, "not a label"))
    if isinstance(text, (list, dict)) if known is None else str(text).lower() not in known:
        raise Unread("not a label")
    return text if known is None else known[str(text).lower()]


def read_winner(cell: Any, first: Any = None, second: Any = None) -> str:
    """Return "first", "second" or "tie": from A, B, tie, [[A]], "Winner: A", JSON, 1, 2, 0, or the winner's name."""
    word = _verdict(str(_plain(cell)))
    if marked := re.findall(r"\[\[\s*([^\[\]]+?)\s*\]\]", word):
        if len(set(marked)) > 1:
            raise Unread("no clear winner")
        word = marked[0]
    for name, side in ((first, "first"), (second, "second")):
        if name is not None and word == str(name):
            return side
    key = re.sub(r"^(?:response|option|answer|assistant|model)[\s_]+(?=[ab12]$)", "", word.strip().lower())
    for side, names in _SIDES.items():
        if key in names:
            return side
    raise Unread(_refusal(word, "no clear winner"))


def read_order(cell: Any) -> list[Any]:
    """Return an order of names, best first: a list, a JSON list, "a > b = c", or "[2] > [1]"."""
    text = _plain(cell)
    try:
        if isinstance(text, str):
            if ">" not in text:
                raise Unread(_refusal(text, "no ranking"))
            order = order_of_text(re.sub(r"\[\s*([^\[\]<>=]+?)\s*\]", r"\1", text))
        else:
            order = [tuple(map(str, one)) if isinstance(one, (list, tuple, set)) else str(one) for one in text]
    except (InvalidLabelError, TypeError):
        raise Unread("no ranking") from None
    names = [name for entry in order for name in as_group(entry)]
    if len(set(names)) < len(names):
        raise Unread("names one twice")
    if not names:
        raise Unread("no ranking")
    return order


def _refusal(text: str, otherwise: str) -> str:
    return "refused" if _REFUSAL.search(text) else otherwise


def _verdict(text: str) -> str:
    """Return what stands behind "Verdict:" or the like, if anything does."""
    named = _VERDICT.match(text)
    return named[1].strip(" *\"'") if named else text


def _plain(cell: Any) -> Any:
    """Return a reply without fences, stars and JSON around it."""
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    if is_null(cell):
        raise Unread("no reply")
    if isinstance(cell, str):
        text = re.sub(r"^```\w*\s*|\s*```$", "", cell.strip()).strip().strip("*\"' ").replace("**", "")
        if text.lower().rstrip(".") in _NOTHING:
            raise Unread("no answer" if text else "no reply")
        if not text.startswith(("{", "[")) or text.startswith("[["):
            return text
        try:
            cell = json.loads(text)
        except ValueError:
            return text
    if isinstance(cell, dict):
        found = [cell[key] for key in _ANSWER_FIELDS if key in cell]
        if len(found) != 1:
            raise Unread("several answers" if found else "no answer")
        return _plain(found[0]) if isinstance(found[0], str) or is_null(found[0]) else found[0]
    return cell
