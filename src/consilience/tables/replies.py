"""What people and language models reply, as numbers, words, winners and orders; or why a reply is none of these."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import InvalidLabelError
from consilience.json_text import parse_json
from consilience.label_types.rankings.labels import order_of_text
from consilience.tables.vote_tables import as_group

#: At least this share of the replies must be numbers for the votes to be scores.
NUMBERS = 0.5
#: Words that mean "no answer".
MISSING = frozenset({"-", "--", "?", "n/a", "#n/a", "na", "<na>", "nan", "none", "null"})
# Only unambiguous replies are read, because a wrong guess would count as an error of the judge.
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_SCALE = rf"(?:\s*(?:/|out of)\s*({_NUMBER}))?"
_WHOLE = re.compile(rf"({_NUMBER}){_SCALE}\s*(?:points?)?\.?", re.IGNORECASE)
#: What may not follow a number that stands alone: more digits, or the second half of a range.
_ALONE = r"(?![\d.,]*\d)(?!\s*(?:[-~]|to|or)\s*\d)"
_NAMED = re.compile(
    rf"\b(?:score|rating|grade)\b\W{{0,4}}(?:is\s+)?\W{{0,4}}?({_NUMBER}){_SCALE}{_ALONE}", re.IGNORECASE
)
#: "7/10" at the start or the end, and "I would give this a 7".
_MARKED = (
    _NAMED,
    re.compile(rf"^({_NUMBER}){_SCALE.rstrip('?')}(?=[.,;:!)]?(?:\s|$)(?!\s*(?:[-~]|to|or)\s*\d))", re.IGNORECASE),
    re.compile(rf"(?<![\d/.,])(?<!to )(?<!or )(?<!- )({_NUMBER}){_SCALE.rstrip('?')}[.!]?$", re.IGNORECASE),
    re.compile(
        rf"\bI(?:.?d|.?ll| would| will)?\s+(?:give|rate|score)\s+(?:(?!than|least|most|between)[a-z]+\s+){{1,4}}?"
        rf"({_NUMBER}){_SCALE}{_ALONE}",
        re.IGNORECASE,
    ),
)
_VERDICT = re.compile(
    r"^(?:(?:final|overall)\s+)?(?:label|verdict|answer|winner|class|category)\s*(?:is|:|=)\s*(.+?)\.?$", re.I
)
REFUSAL = re.compile(
    r"^\W*(?:i.?m\s+)?(?:sorry|unable to)\b|\bas (?:an ai|a (?:large )?language model)\b"
    r"|\b(?:i|we)\s+(?:cannot|can.?t|can not|won.?t|will not|must decline|am unable)\b",
    re.IGNORECASE,
)
_NOTHING = MISSING | {"", "not applicable", "unknown"}
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ANSWER_FIELDS = ("score", "rating", "grade", "label", "verdict", "winner", "ranking", "answer", "value")
_SIDES = {
    "first": {"a", "first", "1", "model_a", "response_a", "option_a", "answer_a", "assistant_a", "left"},
    "second": {"b", "second", "2", "model_b", "response_b", "option_b", "answer_b", "assistant_b", "right"},
    "tie": {"tie", "c", "equal", "draw", "both", "same"},
    "both bad": {"tie (bothbad)", "bothbad", "both_bad", "both bad", "neither"},
}
#: States of a reply that arrived.
_FINE = {"", "ok", "success", "succeeded", "completed", "done", "parsed", "none", "false", "0", "200"}
#: Longer replies without a marker are sentences, not labels.
MOST_WORDS = 4


class Unread(Exception):  # noqa: N818  it never leaves the package
    """A reply that is not a vote, and why in a few words."""


def failed(status: Any) -> bool:
    """Return whether a column of states or errors says that there is no reply: "timeout" does, "ok" and 200 do not."""
    return not is_null(status) and str(status).strip().lower() not in _FINE


def decimal_sign(cells: Counter[Any]) -> tuple[str, str | None]:
    """Return the decimal sign that makes numbers of most cells, and the first of these with a comma, if any.

    The other sign may stand between thousands.
    """
    dotted = [cell for cell in cells if isinstance(cell, str) and re.search(r"\d[.,]\d", cell)]
    read = {sign: [cell for cell in dotted if has_number(cell, sign)] for sign in (".", ",")}
    # The point, if both can read all replies.
    sign = max(read, key=lambda sign: sum(cells[cell] for cell in read[sign]))
    return sign, next((cell for cell in read[sign] if "," in cell), None)


def sign_note(sign: str, example: str) -> str:
    """Return what to say about a decimal sign that was guessed."""
    other, meant = (".", "a decimal comma") if sign == "," else (",", "commas between thousands")
    return f"Numbers such as {example!r} were read with {meant}; pass decimal={other!r} if that is wrong."


def has_number(cell: Any, decimal: str = ".") -> bool:
    """Return whether a reply is read as a number."""
    try:
        read_score(cell, decimal)
    except Unread:
        return False
    return True


def _with_point(text: str, decimal: str) -> str:
    """Return text whose numbers have a decimal point, and no sign between thousands."""
    other = "." if decimal == "," else ","
    thousands = rf"(?<![\d.,])[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?![\d{other}])"
    text = re.sub(thousands, lambda found: found[0].replace(other, ""), text)
    if decimal == ",":  # where a point between other digits is not part of a number
        text = re.sub(r"(?<=\d),(?=\d)", ".", re.sub(r"(?<=\d)\.(?=\d)", " ", text))
    return text


def read_score(cell: Any, decimal: str = ".") -> tuple[float, float | None]:
    """Return the number of a reply, and the end of its scale where it names one."""
    if isinstance(cell, (bool, np.bool_)):
        raise Unread("no number")
    if isinstance(cell, (int, float, np.number)) and not is_null(cell):
        # A whole number may be larger than any float.
        if not -sys.float_info.max <= cell <= sys.float_info.max:
            raise Unread("no clear number")
        return float(cell), None
    text = _plain(cell)
    if isinstance(text, (list, dict)):
        raise Unread("no clear number")
    if not isinstance(text, str):
        return read_score(text)
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower())), None
    text = _with_point(text, decimal)
    found = _WHOLE.fullmatch(text)
    if found is None:
        ways = ({(match[1], match[2]): match for match in way.finditer(text)} for way in _MARKED)
        named = next(filter(None, ways), {})
        if len(named) != 1:
            raise Unread(_refusal(text, "no clear number" if re.search(r"\d", text) else "no number"))
        found = next(iter(named.values()))
    value, end = float(found[1]), None if found[2] is None else float(found[2])
    if math.isinf(value):
        raise Unread("no clear number")
    if end is not None and not 0 <= value <= end:
        raise Unread("outside the scale")
    return value, end


def scale_named(read: Iterable[tuple[float, float | None]]) -> tuple[float, float] | None:
    """Return the ends of the scale that most replies such as "8/10" name; the lower one is 1 unless one is below."""
    read = list(read)
    ends = Counter(end for _, end in read if end is not None)
    if not ends:
        return None
    return 0.0 if any(0 <= value < 1 for value, _ in read) else 1.0, ends.most_common(1)[0][0]


def off_scale(value: float, end: float | None, scale: tuple[float, float] | None) -> str | None:
    """Return what is wrong with a number, and the end of its own scale, on the scale of all; None if nothing is."""
    if scale is None:
        return None
    if end not in (None, scale[1]):
        return "another scale"
    return None if scale[0] <= value <= scale[1] else f"outside {scale[0]:g}-{scale[1]:g}"


def read_word(cell: Any, allowed: Iterable[Any] | None = None) -> Any:
    """Return the label of a reply: a word, "Verdict: good", or JSON with a label."""
    known = None if allowed is None else {str(name).lower(): name for name in allowed}
    if known is not None and str(cell).strip().lower() in known:  # "none" may be a label
        return known[str(cell).strip().lower()]
    text = _plain(cell)
    if isinstance(text, str):
        text = _verdict(text)
        if (known is None and len(text.split()) > MOST_WORDS) or REFUSAL.search(text):
            raise Unread(_refusal(text, "not a label"))
    if isinstance(text, (list, dict)) if known is None else str(text).lower() not in known:
        raise Unread("not a label")
    return text if known is None else known[str(text).lower()]


def read_winner(cell: Any, first: Any = None, second: Any = None) -> str:
    """Return "first", "second", "tie" or "both bad": A, B, tie, [[A]], "Winner: A", JSON, 1, 2, 0, or the name."""
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
    return "refused" if REFUSAL.search(text) else otherwise


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
            cell = parse_json(text)
        except ValueError:
            return text
    if isinstance(cell, dict):
        found = [cell[key] for key in _ANSWER_FIELDS if key in cell]
        if len(found) != 1:
            raise Unread("several answers" if found else "no answer")
        return _plain(found[0]) if isinstance(found[0], str) or is_null(found[0]) else found[0]
    return cell
