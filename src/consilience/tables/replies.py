"""What judges reply, as numbers, words, winners and orders; or why a reply is none of these.

Only what can be read in one way is read: a guess that is wrong now and then would be taken for the judge's error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.rankings.labels import order_of_text
from consilience.tables.vote_tables import as_group

__all__ = ["UNREAD", "Reply", "failed", "read_order", "read_score", "read_winner", "read_word"]

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
_WORDS = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}
_KEYS = ("score", "rating", "grade", "label", "verdict", "winner", "ranking", "answer", "value")
_FIRST = {"a", "first", "1", "model_a", "response_a", "option_a", "answer_a", "assistant_a", "left"}
_SECOND = {"b", "second", "2", "model_b", "response_b", "option_b", "answer_b", "assistant_b", "right"}
_TIE = {"tie", "c", "equal", "draw", "both", "same", "tie (bothbad)", "bothbad", "both_bad", "neither"}
#: Longer replies without a mark are sentences, not labels.
MOST_WORDS = 4


class Reply(NamedTuple):
    """What was read, or why nothing was.

    Parameters
    ----------
    out_of
        The end of the scale, where the reply names it ("7/10").
    """

    value: Any = None
    reason: str | None = None
    out_of: float | None = None


#: Before anything was read.
UNREAD = Reply()


def failed(status: Any) -> bool:
    """Return whether a column of states or errors says that there is no reply.

    Examples
    --------
    >>> [failed(status) for status in (None, "ok", False, 200, "timeout", True)]
    [False, False, False, False, True, True]
    """
    if is_null(status):
        return False
    text = str(status).strip().lower()
    return text not in {"", "ok", "success", "succeeded", "completed", "done", "parsed", "none", "false", "0", "200"}


def read_score(cell: Any) -> Reply:
    """Return the number of a reply: 7, "7", "7/10", "7 out of 10", "seven", "Score: 7", or JSON with a score.

    Examples
    --------
    >>> read_score("8/10").value, read_score("**Score:** 7").value, read_score('{"score": 6.5}').value
    (8.0, 7.0, 6.5)
    >>> read_score("between 6 and 8").reason, read_score("I cannot rate this.").reason, read_score("N/A").reason
    ('no clear number', 'refused', 'no answer')
    """
    if isinstance(cell, (bool, np.bool_)):
        return Reply(reason="no number")
    if isinstance(cell, (int, float, np.number)) and not is_null(cell):
        return Reply(float(cell)) if math.isfinite(cell) else Reply(reason="no clear number")
    text, reason = _plain(cell)
    if text is None:
        return Reply(reason=reason)
    if not isinstance(text, str):
        return Reply(reason="no clear number") if isinstance(text, (list, dict)) else read_score(text)
    if whole := _WHOLE.fullmatch(text):
        return _scored(whole)
    if text.lower() in _WORDS:
        return Reply(float(_WORDS[text.lower()]))
    named = {(found[1], found[2]): found for found in _NAMED.finditer(text)}
    if len(named) == 1:
        return _scored(next(iter(named.values())))
    if _REFUSAL.search(text):
        return Reply(reason="refused")
    return Reply(reason="no clear number" if re.search(r"\d", text) else "no number")


def read_word(cell: Any, allowed: Iterable[Any] | None = None) -> Reply:
    """Return the label of a reply: a word, "Verdict: good", or JSON with a label."""
    known = None if allowed is None else {str(name).lower(): name for name in allowed}
    if known is not None and str(cell).strip().lower() in known:  # "none" may be a label
        return Reply(known[str(cell).strip().lower()])
    text, reason = _plain(cell)
    if text is None:
        return Reply(reason=reason)
    if isinstance(text, str):
        named = _VERDICT.match(text)
        text = named[1].strip(" *\"'") if named else text
        if (known is None and len(text.split()) > MOST_WORDS) or _REFUSAL.search(text):
            return Reply(reason="refused" if _REFUSAL.search(text) else "not a label")
    if known is None:
        return Reply(reason="not a label") if isinstance(text, (list, dict)) else Reply(text)
    return Reply(known[str(text).lower()]) if str(text).lower() in known else Reply(reason="not a label")


def read_winner(cell: Any, first: Any = None, second: Any = None) -> Reply:
    """Return "first", "second" or "tie": from A, B, tie, [[A]], "Winner: A", JSON, 1, 2, 0, or the winner's name."""
    text, reason = _plain(cell)
    if text is None:
        return Reply(reason=reason)
    word = str(text)
    if named := _VERDICT.match(word):
        word = named[1].strip(" *\"'")
    if marked := re.findall(r"\[\[\s*([^\[\]]+?)\s*\]\]", word):
        if len(set(marked)) > 1:
            return Reply(reason="no clear winner")
        word = marked[0]
    for name, side in ((first, "first"), (second, "second")):
        if name is not None and word == str(name):
            return Reply(side)
    key = re.sub(r"^(?:response|option|answer|assistant|model)[\s_]+(?=[ab12]$)", "", word.strip().lower())
    for names, side in ((_FIRST, "first"), (_SECOND, "second"), (_TIE, "tie")):
        if key in names:
            return Reply(side)
    if _REFUSAL.search(word):
        return Reply(reason="refused")
    return Reply(reason="no clear winner")


def read_order(cell: Any) -> Reply:
    """Return an order of names, best first: a list, a JSON list, "a > b = c", or "[2] > [1]"."""
    text, reason = _plain(cell)
    if text is None:
        return Reply(reason=reason)
    try:
        if isinstance(text, str):
            if ">" not in text:
                return Reply(reason="refused" if _REFUSAL.search(text) else "no ranking")
            order = order_of_text(re.sub(r"\[\s*([^\[\]<>=]+?)\s*\]", r"\1", text))
        else:
            order = [tuple(map(str, one)) if isinstance(one, (list, tuple, set)) else str(one) for one in text]
    except (InvalidLabelError, TypeError):
        return Reply(reason="no ranking")
    names = [name for entry in order for name in as_group(entry)]
    if len(set(names)) < len(names):
        return Reply(reason="names one twice")
    return Reply(order) if names else Reply(reason="no ranking")


def _scored(found: re.Match[str]) -> Reply:
    value, end = float(found[1]), None if found[2] is None else float(found[2])
    if end is not None and not 0 <= value <= end:
        return Reply(reason="outside the scale")
    return Reply(value, out_of=end)


def _plain(cell: Any) -> tuple[Any, str | None]:
    """Return a reply without fences, stars and JSON around it; or None, and why there is no reply."""
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    if is_null(cell):
        return None, "no reply"
    if isinstance(cell, str):
        text = re.sub(r"^```\w*\s*|\s*```$", "", cell.strip()).strip().strip("*\"' ").replace("**", "")
        if text.lower().rstrip(".") in _NOTHING:
            return None, "no answer" if text else "no reply"
        if not text.startswith(("{", "[")) or text.startswith("[["):
            return text, None
        try:
            cell = json.loads(text)
        except ValueError:
            return text, None
    if isinstance(cell, dict):
        found = [cell[key] for key in _KEYS if key in cell]
        if len(found) != 1:
            return None, "no answer" if not found else "several answers"
        return _plain(found[0]) if isinstance(found[0], str) or is_null(found[0]) else (found[0], None)
    return cell, None
