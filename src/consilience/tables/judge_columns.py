"""The columns of a table of judges, under the names they go by, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from consilience.arrays import is_null
from consilience.exceptions import FileFormatError
from consilience.tables.files import read_table
from consilience.tables.frames import columns_of
from consilience.tables.replies import UNREAD, Reply, failed

__all__ = ["ANSWERS", "JudgeReply", "find_roles", "judge_columns", "judge_rows", "only_criterion"]

#: What the columns may be called, the likelier name first.
NAMES: dict[str, tuple[str, ...]] = {
    "item": (
        "item",
        "item_id",
        "prompt_id",
        "question_id",
        "example_id",
        "task_id",
        "prompt",
        "question",
        "task",
        "id",
    ),
    "judge": ("judge", "judge_id", "judge_model", "evaluator", "rater", "annotator", "source", "worker", "model"),
    "candidate": ("candidate", "candidate_id", "response_id", "system", "model"),
    "criterion": ("criterion", "criteria", "aspect", "dimension", "metric"),
    "run": ("run", "run_id", "repeat", "trial", "sample", "seed"),
    "first": ("first", "a", "model_a", "response_a", "option_a", "answer_a", "left"),
    "second": ("second", "b", "model_b", "response_b", "option_b", "answer_b", "right"),
    "error": ("error", "error_message", "failure", "status"),
}
#: What the column of answers may be called, by kind of table.
ANSWERS: dict[str, tuple[str, ...]] = {
    "pairwise": ("winner", "preferred", "preference", "outcome", "choice", "verdict", "label"),
    "listwise": ("ranking", "order", "ranked"),
    "pointwise": ("score", "rating", "grade", "label", "verdict", "category", "reply", "judgment", "answer", "value"),
}


class JudgeReply(NamedTuple):
    """One reply: who, about what, and what was read."""

    key: tuple[tuple[str, Any], ...]
    judge: str
    run: Any
    cell: Any
    failure: Any = None
    reply: Reply = UNREAD


def judge_columns(source: Any) -> dict[str, list[Any]]:
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
    found = columns_of(source)
    columns = {
        name: [None if null else cell for cell, null in zip(column.values.tolist(), column.null, strict=True)]
        for name, column in found.items()
    }
    if not columns or not next(iter(columns.values())):
        raise FileFormatError("The table of judges has no rows. It needs one per judge and item.")
    return columns


def find_roles(
    columns: Mapping[str, Any], given: Mapping[str, str | None], answer: str | None, kind: str
) -> tuple[dict[str, str], str]:
    """Return the column of every role, and the kind of the table."""
    lower = {name.lower(): name for name in reversed(list(columns))}
    for name in (*given.values(), answer):
        if name is not None and name not in columns:
            close = get_close_matches(name, columns, n=1)
            raise FileFormatError(
                f"There is no column {name!r}; the columns are {_listed(columns)}."
                + (f" Did you mean {close[0]!r}?" if close else "")
            )
    found: dict[str, str] = {}
    for role, own in given.items():
        name = own or next((lower[alias] for alias in NAMES[role] if alias in lower), None)
        if name is not None and (own or name not in found.values()):
            found[role] = name
    if kind == "auto":
        kind = next((one for one in ("listwise", "pairwise") if _first_of(ANSWERS[one][:3], lower)), "pointwise")
        if kind == "pointwise" and "first" in found and "second" in found:
            kind = "pairwise"
    chosen = answer or _first_of(ANSWERS[kind], lower)
    if chosen is None or "judge" not in found or ("item" not in found and kind != "pairwise"):
        missing = [role for role in ("item", "judge") if role not in found] + ["answer"] * (chosen is None)
        raise FileFormatError(
            f"A {kind} table needs columns for item, judge and answer; {' and '.join(missing)} cannot be told from the "
            f"names {_listed(columns)}. Say which it is, such as {missing[0]}={next(iter(columns))!r}."
        )
    if kind == "pairwise" and "item" not in found and "first" not in found:
        raise FileFormatError(
            "A pairwise table needs a column that says what was compared. Pass item=, or first= and second=."
        )
    found["answer"] = chosen
    unused = ("candidate",) if kind == "pairwise" else ("first", "second", *["candidate"] * (kind == "listwise"))
    return {role: name for role, name in found.items() if role not in unused}, kind


def _first_of(aliases: Sequence[str], lower: Mapping[str, str]) -> str | None:
    return next((lower[alias] for alias in aliases if alias in lower), None)


def judge_rows(columns: Mapping[str, list[Any]], found: Mapping[str, str]) -> list[JudgeReply]:
    """Return the rows, each with what it is about, who judged, and the reply as it came."""
    keys = [role for role in ("item", "candidate", "criterion", "first", "second") if role in found]
    rows = []
    for place in range(len(columns[found["answer"]])):
        cell = {role: columns[name][place] for role, name in found.items()}
        empty = next((role for role in (*keys, "judge") if role != "criterion" and is_null(cell[role])), None)
        if empty is not None:
            raise FileFormatError(f"Row {place} has no {empty} ({found[empty]!r}). Fill it in, or drop the row.")
        key = tuple((role, cell[role]) for role in keys)
        failure = cell.get("error") if failed(cell.get("error")) else None
        rows.append(JudgeReply(key, str(cell["judge"]), cell.get("run"), cell["answer"], failure))
    return rows


def only_criterion(rows: list[JudgeReply], only: Any, has_criterion: bool) -> list[JudgeReply]:
    """Return the rows of one criterion, which then is no part of what they are about."""
    if not has_criterion:
        raise FileFormatError(f"only={only!r} picks a criterion, but no column is one. Pass criterion=.")
    there = dict.fromkeys(dict(row.key)["criterion"] for row in rows)
    if only not in there:
        raise FileFormatError(f"There is no criterion {only!r}; there are {', '.join(map(repr, there))}.")
    kept = [row for row in rows if dict(row.key)["criterion"] == only]
    return [row._replace(key=tuple(part for part in row.key if part[0] != "criterion")) for row in kept]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
