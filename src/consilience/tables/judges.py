"""Tables of LLM judges: scores, labels, winners or rankings; repeated runs, and replies that say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from consilience.arrays import is_null
from consilience.exceptions import FileFormatError
from consilience.label_types import Classes, Scores
from consilience.label_types.base import LabelSpace
from consilience.tables.display import SourceTable
from consilience.tables.judge_columns import ANSWERS, JudgeReply, find_roles, judge_columns, judge_rows, only_criterion
from consilience.tables.orders import shared_orders
from consilience.tables.replies import Reply, read_order, read_score, read_winner, read_word
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JudgeTable", "read_judges", "winner_codes", "winner_of"]

#: At least this share of the replies must be numbers for the votes to be scores.
NUMBERS = 0.5
SHOWN = 60


@dataclass(frozen=True, eq=False)
class JudgeTable:
    """The votes of judges, and the replies that could not be read.

    Attributes
    ----------
    votes : Votes
        One source per judge, or per run of a judge; ``votes.repeated_pairs`` lists the runs of one judge, for
        ``LabelModel(dependencies=)``.
    kind : "pointwise", "pairwise" or "listwise"
    space : LabelSpace or None
        The label type of the votes; None where all say one and the same word.
    faults : SourceTable
        One row per judge and reason: how many replies are no vote, and the first of them.
    keys : pyarrow.Table
        What each item of the votes is: item, candidate, criterion, first, second and candidates, where there are such.
    """

    votes: Votes
    kind: str
    space: LabelSpace | None
    faults: SourceTable
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

    Parameters
    ----------
    source
        Path of a CSV, JSON Lines, Parquet or Arrow file; a frame, a dict of columns, or a list of dicts.
    kind
        "pointwise", "pairwise", "listwise"; "auto" goes by the names of the columns.
    item, judge, answer, candidate, criterion, run, first, second, error
        Names of the columns, where they are called otherwise than "prompt", "judge", "score", "label", "winner",
        "ranking", "candidate", "criterion", "run", "model_a", "model_b", "error", "status" and the like. In a pointwise
        table with a column "judge", the column "model" is the candidate that is judged.
    only
        The criterion to read. By default every (item, candidate, criterion) is an item of its own.
    labels
        The labels there are, for pointwise tables of labels; any other reply is a fault.
    scale
        Least and largest score; replies beyond it are faults.
    repeats
        Several runs of a judge: "separate" makes each one a source, "average" takes the mean of scores.

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
    given |= {"first": first, "second": second, "error": error}
    columns = judge_columns(source)
    found, kind = find_roles(columns, given, answer, kind)
    rows = judge_rows(columns, found)
    if only is not None:
        rows = only_criterion(rows, only, "criterion" in found)
    if kind == "pairwise":
        return _table(kind, *_pairwise(rows), repeats)
    if kind == "listwise":
        return _table(kind, *_listwise(rows), repeats)
    return _table(kind, *_pointwise(rows, labels, scale), repeats)


def _read(rows: list[JudgeReply], read: Callable[[JudgeReply], Reply]) -> list[JudgeReply]:
    return [row._replace(reply=Reply(reason="error") if row.failure is not None else read(row)) for row in rows]


def _pointwise(
    rows: list[JudgeReply], labels: Iterable[Any] | None, scale: tuple[float, float] | None
) -> tuple[list[JudgeReply], LabelSpace | None, None]:
    allowed = None if labels is None else list(labels)
    scored = _read(rows, lambda row: read_score(row.cell))
    answered = [row for row in scored if row.reply.reason not in ("error", "no reply", "no answer", "refused")]
    numbers = sum(row.reply.reason is None for row in answered)
    if allowed is not None or (answered and numbers < NUMBERS * len(answered)):
        worded = _read(rows, lambda row: read_word(row.cell, allowed))
        said = allowed or sorted({row.reply.value for row in worded if row.reply.reason is None}, key=str)
        return worded, Classes(said) if len(said) > 1 else None, None
    ends = Counter(row.reply.out_of for row in scored if row.reply.out_of is not None)
    end = scale[1] if scale is not None else (ends.most_common(1)[0][0] if ends else None)
    return [row._replace(reply=_on_scale(row.reply, scale, end)) for row in scored], Scores(range=scale), None


def _on_scale(reply: Reply, scale: tuple[float, float] | None, end: float | None) -> Reply:
    if reply.reason is not None:
        return reply
    if reply.out_of is not None and reply.out_of != end:
        return Reply(reason="another scale")
    if scale is not None and not scale[0] <= reply.value <= scale[1]:
        return Reply(reason="outside the scale")
    return reply


def _pairwise(rows: list[JudgeReply]) -> tuple[list[JudgeReply], LabelSpace | None, None]:
    coded = winner_codes(rows)
    order: dict[Any, tuple[Any, Any]] = {}
    canonical = []
    for row in _read(rows, lambda row: winner_of(row, coded)):
        key, reply = dict(row.key), row.reply
        if "first" in key:
            shown = (key["first"], key["second"])
            place = (key.get("item"), key.get("criterion"), frozenset(shown))
            kept = order.setdefault(place, shown)
            if kept != shown:
                swap = {"first": "second", "second": "first"}
                reply = reply._replace(value=swap.get(reply.value, reply.value))
                key["first"], key["second"] = kept
        canonical.append(row._replace(key=tuple(key.items()), reply=reply))
    ties = any(row.reply.value == "tie" for row in canonical)
    return canonical, Classes(["first", "second", *["tie"] * ties]), None


def winner_of(row: JudgeReply, coded: Mapping[Any, str]) -> Reply:
    """Return who won a comparison, or why that cannot be told."""
    key = dict(row.key)
    if coded and not is_null(row.cell):
        return Reply(coded[row.cell])
    return read_winner(row.cell, key.get("first"), key.get("second"))


def winner_codes(rows: Sequence[JudgeReply]) -> dict[Any, str]:
    """Return what whole numbers mean as winners; nothing where winners are no numbers, or names that are numbers."""
    said = [row for row in rows if not is_null(row.cell)]
    if not said or not all(isinstance(row.cell, (int, float)) and not isinstance(row.cell, bool) for row in said):
        return {}
    if all(row.cell in (dict(row.key).get("first"), dict(row.key).get("second")) for row in said):
        return {}
    values = {row.cell for row in said}
    if values <= {-1, 0, 1} and -1 in values:
        return {1: "first", -1: "second", 0: "tie"}
    if values <= {0, 1, 2} and 2 in values:
        return {1: "first", 2: "second", 0: "tie"}
    shown = ", ".join(map(str, sorted(values)[:6]))
    raise FileFormatError(
        f"The winners are the numbers {shown}, which can be read in several ways. Write 'first', 'second' and 'tie', "
        "or the name of the winner."
    )


def _listwise(rows: list[JudgeReply]) -> tuple[list[JudgeReply], LabelSpace, list[tuple[str, ...]]]:
    read = _read(rows, lambda row: read_order(row.cell))
    place = {key: number for number, key in enumerate(dict.fromkeys(row.key for row in read))}
    shared = shared_orders([(place[row.key], row.reply.value) for row in read], len(place))
    labelled = [
        row._replace(reply=row.reply._replace(value=label)) for row, label in zip(read, shared.labels, strict=True)
    ]
    return labelled, shared.space, list(shared.candidates)


def _table(
    kind: str, rows: list[JudgeReply], space: LabelSpace | None, candidates: list[tuple[str, ...]] | None, repeats: str
) -> JudgeTable:
    import pyarrow as pa

    keys = list(dict.fromkeys(row.key for row in rows))
    names = {key: _identity(key) for key in keys}
    if len(set(names.values())) < len(names):
        twice = next(name for name, count in Counter(names.values()).items() if count > 1)
        raise FileFormatError(f"Two different items are both called {twice!r}. Give every item an id of its own.")
    sources, pairs = _sources(rows, repeats)
    records = [(names[row.key], source, row.reply.value) for row, source in zip(rows, sources, strict=True)]
    votes = Votes.from_long(records, repeats=repeats)
    if pairs:
        votes = replace(votes, repeated_pairs=tuple(dict.fromkeys((*votes.repeated_pairs, *pairs))))
    columns = {role: pa.array([dict(key)[role] for key in keys]) for role, _ in keys[0]}
    if candidates is not None:
        columns["candidates"] = pa.array([list(names) for names in candidates], pa.list_(pa.string()))
    return JudgeTable(votes, kind, space, _faults(rows, names), pa.table(columns))


def _identity(key: tuple[tuple[str, Any], ...]) -> Any:
    """Return the id of an item: as it came where it is one value, else its parts as text."""
    parts = [value for _, value in key if not is_null(value)]
    return parts[0] if len(parts) == 1 else " | ".join(map(str, parts))


def _sources(rows: list[JudgeReply], repeats: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the source of each row, and pairs of runs of one judge where a column says which run it is."""
    runs: dict[str, dict[Any, None]] = {}
    for row in rows:
        runs.setdefault(row.judge, {})[row.run] = None
    again = len({(row.key, row.judge, row.run) for row in rows}) < len(rows)  # such as both orders of a comparison
    if again or repeats == "average" or all(len(own) == 1 for own in runs.values()):
        return [row.judge for row in rows], []
    named = {(who, run): who if len(own) == 1 else f"{who} #{run}" for who, own in runs.items() for run in own}
    pairs = [pair for who, own in runs.items() for pair in combinations([named[who, run] for run in own], 2)]
    return [named[row.judge, row.run] for row in rows], pairs


def _faults(rows: list[JudgeReply], names: Mapping[Any, Any]) -> SourceTable:
    found: dict[tuple[str, str], list[JudgeReply]] = {}
    for row in rows:
        if row.reply.reason is not None:
            found.setdefault((row.judge, row.reply.reason), []).append(row)
    ordered = sorted(found.items(), key=lambda entry: (entry[0][0], -len(entry[1])))
    return SourceTable(
        {
            "source": [who for (who, _), _ in ordered],
            "reason": [reason for (_, reason), _ in ordered],
            "replies": [len(own) for _, own in ordered],
            "first_item": [str(names[own[0].key]) for _, own in ordered],
            "example": [_shown(own[0]) for _, own in ordered],
        }
    )


def _shown(row: JudgeReply) -> str:
    said = row.failure if row.failure is not None else row.cell
    return "" if is_null(said) else " ".join(str(said).split())[:SHOWN]
