"""From cells as people type them to votes, the same for every file format: what is missing, numbers inside text,
spellings, columns that are not votes. Nothing is lost in silence; the receipt of the votes counts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import consilience.tables.replies as replies
from consilience.arrays import Batch, as_object_array
from consilience.exceptions import FileFormatError, InvalidLabelError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.label_types.linear.space import Scores
from consilience.label_types.rankings.labels import names_of
from consilience.tables.cells import tighten
from consilience.tables.encoding import encode, wrong_labels
from consilience.tables.files import typed_cells
from consilience.tables.notation import MOST_CLASSES, Declared, word_for
from consilience.tables.receipt import Receipt
from consilience.tables.replies import NUMBERS
from consilience.votes import Votes

#: Label types whose cells are names, so that two spellings of one name are suspicious.
_NAMED = (None, "classes", "ordinal")
#: A word for "missing" in at least this share of the cells may be a label.
FREQUENT = 0.1
#: Spellings listed in a note.
LISTED = 3
#: Ways to read items that a list leaves out.
UNLISTED = ("below", "unseen")
#: The note if neither was chosen.
RANKED_BELOW = "what a list leaves out is ranked below its end; pass unlisted='unseen' if it was never seen."
#: With at most this many different labels, the labels are checked instead of all cells.
FEW_WORDS = 1000
#: Rows from which columns of texts that were voted on are recognized.
SHOWING_ROWS = 5000
#: Lists are the top of longer ones if at least this share of them has one length, shorter than all names together.
TOP = 0.9


def cleaned(
    votes: Votes,
    declared: Declared,
    *,
    abstain: Any = None,
    decimal: str | None = None,
    fold: bool = False,
    may_leave_out: bool = False,
    strict: bool = False,
) -> Votes:
    """Return votes without cells that say nothing, numbers read from text, and spellings joined if `fold` says so.

    Words such as "N/A" are missing, unless they are labels that were `declared`. What the caller leaves open is guessed
    from the cells: the decimal sign, and whether -1 abstains; each guess is a note in the receipt, with what changes
    it. With `may_leave_out`, columns that do not look like votes are left out. With `strict`, only what equals
    `abstain` is missing, and nothing is guessed.
    """
    if votes.labels.ndim != 2:
        return votes
    if votes.labels.dtype == object:
        votes = _read_texts(votes, declared, abstain, decimal, fold, may_leave_out, strict)
    code = abstain if abstain is not None or strict else abstain_code(votes, declared)
    if code is None or votes.labels.dtype == object:
        return votes
    same = np.flatnonzero(votes.labels[votes.observed] == _as_number(code)).tolist()
    kept = _without(votes, same, [repr(str(code))] * len(same))
    guess = f"{code} was read as 'abstains'; pass space=Classes([{code}, 0, 1, ...]) if it is a class."
    receipt = _receipt(kept)
    return replace(kept, receipt=replace(receipt, abstain=code, notes=(*receipt.notes, *[guess] * (abstain is None))))


def abstain_code(votes: Votes, declared: Declared) -> int | None:
    """Return -1 where all other cells are codes 0, 1, ... of classes, as in a matrix of labeling functions."""
    if declared.kind not in (None, "classes") or declared.scale is not None or votes.labels.dtype.kind not in "if":
        return None
    cells = votes.labels[votes.observed]
    if not (cells == -1).any():
        return None
    others = {
        str(int(value)) if value == int(value) else str(value) for value in np.unique(cells[cells != -1]).tolist()
    }
    codes = declared.labels or others
    return -1 if len(codes) > 1 and others <= codes == set(map(str, range(len(codes)))) else None


def _read_texts(
    votes: Votes, declared: Declared, abstain: Any, decimal: str | None, fold: bool, may_leave_out: bool, strict: bool
) -> Votes:
    """Return votes with cells of text cleaned."""
    if may_leave_out and not strict:
        votes = _leave_out(votes, columns_of_texts(votes) if declared.kind in _NAMED or declared.numeric else [])
    seen = _scalars(_listed(votes))
    out = {cell: reason for cell in seen if (reason := _missing(cell, declared, abstain, strict)) is not None}
    left = Counter({cell: count for cell, count in seen.items() if cell not in out})
    read: dict[Any, Any] = {}
    notes: list[str] = []
    scale = None
    if any(isinstance(cell, str) for cell in left):
        sign, guessed = (decimal, None) if decimal is not None else replies.decimal_sign(left)
        numbers, why = _numbers(left, sign)
        refused = sum(left[cell] for cell, reason in why.items() if reason == "refused")
        share = sum(left[cell] for cell in numbers) / max(left.total() - refused, 1)
        are_numbers = declared.numeric or (declared.numeric is None and share >= NUMBERS and bool(numbers))
        if strict and are_numbers and guessed is not None:
            raise FileFormatError(
                f"The comma in {guessed!r} may be a decimal comma, or stand between thousands. Pass decimal=',' or "
                "decimal='.'."
            )
        if are_numbers and (not strict or (decimal is not None and not why)):
            notes += [] if guessed is None else [replies.sign_note(sign, guessed)]
            scale = declared.scale or replies.scale_named(numbers.values())
            why |= {
                cell: reason
                for cell, (value, end) in numbers.items()
                if (reason := replies.off_scale(value, end, scale))
            }
            _check_most_are_numbers(why, left)
            read = {cell: value for cell, (value, _) in numbers.items()}
            out |= why
            if may_leave_out:
                votes = _leave_out(votes, _without_numbers(votes, read))
        elif strict or declared.kind in _NAMED:
            read, spellings = ({}, []) if strict else _folded(left, declared, fold)
            notes += spellings + [
                f"{reason} was read as missing; pass space=Classes([{reason}, ...]) if it is a class."
                for cell, reason in out.items()
                if str(cell) != str(abstain) and reason and seen[cell] >= FREQUENT * seen.total()
            ]
            if not read:
                texts = [cell for cell in left if isinstance(cell, str)]
                read = dict(zip(texts, typed_cells(texts), strict=True)) if out else {}
    if not out and not read and not notes:
        return votes
    receipt = replace(_receipt(votes), scale=scale, notes=(*_receipt(votes).notes, *notes))
    return _applied(replace(votes, receipt=receipt), out, read)


def read_by(votes: Votes, space: LabelSpace, name: str, *, strict: bool = False, unlisted: str | None = None) -> Votes:
    """Return votes whose cells are labels of the space; unless `strict`, others abstain and are counted.

    If most cells are not labels, the label type is wrong, which is refused as if strict.
    """
    ranks = word_for(space) == "rankings"
    if unlisted is not None and not ranks:
        raise UnsupportedError(f"unlisted={unlisted!r} is for rankings, not for {type(space).__name__}. Leave it out.")
    try:
        read = labels_from_text(votes, space, name)
        listed = _listed(votes) if votes.labels.dtype == object else []
        words = _scalars(listed)
        known = 0 < words.total() == len(listed) and len(words) <= FEW_WORDS
        if not known or wrong_labels(as_object_array(words), space):
            encode(read, space)
    except (FileFormatError, InvalidLabelError):
        if strict:
            raise
        cells = _cells(votes)[0]
        bad = list(wrong_labels(cells, space))
        if not bad or len(bad) > len(cells) / 2:
            raise
        read = labels_from_text(_without(votes, bad, ["not a label"] * len(bad)), space, name)
    if isinstance(space, Scores) and space.range is not None and read.labels.dtype.kind in "iuf":
        numbers = read.labels[read.observed]
        low, high = space.range
        beyond = np.flatnonzero((numbers < low) | (numbers > high)).tolist()
        reason = f"outside {low:g}-{high:g}"
        if beyond and strict:
            _, rows, columns = _cells(read)
            place = beyond[0]
            raise FileFormatError(
                f"{name!r}, item {read.items.tolist()[rows[place]]!r}, source {read.sources[columns[place]]!r}: "
                f"{numbers[place]:g} is {reason}. Correct the cell, or give a wider range."
            )
        read = _without(read, beyond, [reason] * len(beyond))
    return with_unlisted(read, unlisted) if ranks else read


def with_unlisted(votes: Votes, unlisted: str | None) -> Votes:
    """Return orders of names in which what a source leaves out of a row comes last ("below"), or is "unseen".

    None decides: where nearly all orders have one length, and rows hold more names than that, they are the top of
    longer lists, so that the rest is below.
    """
    if unlisted not in (None, *UNLISTED):
        raise FileFormatError(f"unlisted={unlisted!r} is unknown. Use 'below' or 'unseen'.")
    if votes.labels.dtype != object or votes.labels.ndim != 2 or unlisted == "unseen":
        return votes
    cells, rows, columns = _cells(votes)
    listed = [names_of(cell) for cell in cells]
    if not any(listed):
        return votes
    names: dict[int, dict[str, None]] = {}
    for row, own in zip(rows.tolist(), listed, strict=True):
        names.setdefault(row, {}).update(dict.fromkeys(own))
    lengths = [len(own) for own in listed]
    longest = max(lengths)
    shorter = [row for row, own in names.items() if len(own) > longest]
    top = lengths.count(longest) >= TOP * len(lengths) and len(shorter) >= TOP * len(names)
    if unlisted is None and not top:
        return votes
    labels = votes.labels.copy()
    for row, column, cell, own in zip(rows.tolist(), columns.tolist(), cells, listed, strict=True):
        rest = tuple(name for name in names[row] if name not in set(own))
        labels[row, column] = [*cell, *([rest] if len(rest) > 1 else rest)]
    receipt = _receipt(votes)
    if unlisted is None:
        note = f"Lists look like the top {longest} of longer ones; {RANKED_BELOW}"
        receipt = replace(receipt, notes=(*receipt.notes, note))
    return replace(votes, labels=labels, receipt=receipt)


def refuse_mixed_cells(votes: Votes, name: str) -> None:
    """Refuse a source that mixes numbers and text: a few cells that are not numbers are mistakes."""
    if votes.labels.dtype != object:
        return
    cells, rows, columns = _cells(votes)
    is_number = np.array([_as_number(cell) is not None for cell in cells.tolist()], dtype=bool)
    for column, source in enumerate(votes.sources):
        mine = columns == column
        if mine.any() and NUMBERS < is_number[mine].mean() < 1.0:
            odd = int(np.flatnonzero(mine & ~is_number)[0])
            raise FileFormatError(
                f"{name!r}: source {source!r} mixes numbers and text: {cells[odd]!r} for item "
                f"{votes.items.tolist()[rows[odd]]!r}. Correct the cell, leave it empty, or pass "
                f"abstain={cells[odd]!r} if it means that the source abstains."
            )


def labels_from_text(votes: Votes, space: LabelSpace, name: str) -> Votes:
    """Return votes whose cells of text are read as labels of the space."""
    if votes.labels.dtype != object:
        return votes
    cells, rows, columns = _cells(votes)
    if not any(isinstance(cell, str) for cell in cells.tolist()):
        return votes
    try:
        read = space.read_text(cells)
    except InvalidLabelError as error:
        if error.index is None:
            raise
        item, source = votes.items.tolist()[rows[error.index]], votes.sources[columns[error.index]]
        raise FileFormatError(f"{name!r}, item {item!r}, source {source!r}: {error}") from None
    labels: Batch = np.empty(votes.labels.shape, dtype=object)
    labels[rows, columns] = as_object_array(read)
    return replace(votes, labels=tighten(labels, ~votes.observed))


def columns_of_texts(votes: Votes) -> list[int]:
    """Return columns of the texts that were voted on, among columns of votes: each has words that no other has."""
    if votes.labels.dtype != object or votes.labels.ndim != 2:
        return []
    columns = zip(votes.labels[:SHOWING_ROWS].T, votes.observed[:SHOWING_ROWS].T, strict=True)
    texts = [[cell for cell in labels[observed] if isinstance(cell, str)] for labels, observed in columns]
    unique = [set(cells) for cells in texts]
    odd = []
    for place, cells in enumerate(texts):
        alone = unique[place].difference(*unique[:place], *unique[place + 1 :])
        if len(alone) >= 0.9 * len(unique[place]) and len(unique[place]) >= max(10, 0.9 * len(cells)):
            odd.append(place)
    others = set(range(votes.n_sources)) - set(odd)
    return odd if len(others) > 1 and all(len(unique[place]) <= MOST_CLASSES for place in others) else []


def _missing(cell: Any, declared: Declared, abstain: Any, strict: bool) -> str | None:
    """Return why a cell is not a vote, "" if it is blank, None if it may be one."""
    word = cell.strip() if isinstance(cell, str) else cell
    if abstain is not None and (cell == abstain or str(word) == str(abstain) or word == _as_number(abstain)):
        return repr(word)
    if (
        isinstance(word, str)
        and not strict
        and word not in declared.labels
        and (not word or word.casefold() in replies.MISSING)
    ):
        return repr(word) if word else ""
    return None


def _numbers(cells: Iterable[Any], decimal: str) -> tuple[dict[Any, tuple[float, float | None]], dict[Any, str]]:
    """Return the numbers in cells with the ends of their scales, and why other cells hold none."""
    numbers: dict[Any, tuple[float, float | None]] = {}
    why: dict[Any, str] = {}
    for cell in cells:
        text = cell
        if isinstance(cell, str) and (
            not any(sign.isdigit() for sign in cell) or (len(cell) > 1 and cell[0] == "0" and cell.isdigit())
        ):
            text = "not a number"  # number words and ids such as 007 are names
        try:
            numbers[cell] = replies.read_score(text, decimal)
        except replies.Unread as fault:
            refuses = isinstance(cell, str) and replies.REFUSAL.search(cell)
            why[cell] = "refused" if refuses else "not a number" if str(fault).startswith("no ") else str(fault)
    return numbers, why


def _folded(cells: Counter[Any], declared: Declared, fold: bool) -> tuple[dict[Any, str], list[str]]:
    """Return the spelling that stands for each text that differs from it only in case or blanks, and what to say."""
    groups: dict[str, list[str]] = {}
    for cell in [*declared.labels, *(cell for cell in cells if isinstance(cell, str))]:
        groups.setdefault(" ".join(cell.casefold().split()), []).append(cell)
    several = [list(dict.fromkeys(group)) for group in groups.values() if len(set(group)) > 1]
    if not several:
        return {}, []
    for group in several:
        group.sort(key=lambda cell: (cell not in declared.labels, -cells[cell]))
    shown = [" and ".join(map(repr, group)) for group in several[:LISTED]]
    named = "; ".join(shown) + ("; ..." if len(several) > LISTED else "")
    if not fold:
        return {}, [f"These labels differ only in case or blanks; fold=True joins them: {named}."]
    joined = [f"Joined spellings: {named}."]
    return {cell: group[0] for group in several for cell in group[1:] if cell not in declared.labels}, joined


def _check_most_are_numbers(why: dict[Any, str], cells: Counter[Any]) -> None:
    wrong = Counter({cell: cells[cell] for cell, reason in why.items() if reason != "refused"})
    if wrong.total() > cells.total() / 2:
        shown = ", ".join(f"{str(cell)!r} ({count})" for cell, count in wrong.most_common(LISTED))
        raise FileFormatError(
            f"{wrong.total()} of {cells.total()} cells are not numbers of this label type: {shown}. Choose another "
            "label type or range, or leave out columns that are not votes with drop='NAME'."
        )


def _without_numbers(votes: Votes, read: dict[Any, Any]) -> list[int]:
    """Return the columns in which no cell is a number, among columns of numbers."""
    columns = zip(votes.labels.T, votes.observed.T, strict=True)
    has = [any(isinstance(cell, (str, int, float)) and cell in read for cell in cells[seen]) for cells, seen in columns]
    return [place for place, any_number in enumerate(has) if not any_number and votes.observed[:, place].any()]


def _leave_out(votes: Votes, odd: Sequence[int]) -> Votes:
    if not odd:
        return votes
    names = [votes.sources[place] for place in odd]
    kept = votes.select([name for name in votes.sources if name not in names])
    receipt = _receipt(votes)
    cells = receipt.cells - votes.n_items * len(odd)
    empty = receipt.empty - int((~votes.observed[:, list(odd)]).sum())
    labels = tighten(kept.labels, ~kept.observed) if kept.labels.dtype == object else kept.labels
    receipt = replace(receipt, cells=cells, empty=empty, left_out=(*receipt.left_out, *names))
    return replace(kept, labels=labels, receipt=receipt)


def _applied(votes: Votes, out: dict[Any, str], read: dict[Any, Any]) -> Votes:
    """Return votes without the cells that are `out`, and with those of `read` in place of others."""
    cells, rows, columns = _cells(votes)
    listed = cells.tolist()
    hashed = [cell if isinstance(cell, (str, int, float)) else None for cell in listed]
    places = [place for place, cell in enumerate(hashed) if cell is not None and cell in out]
    reasons = [out[listed[place]] for place in places]
    values = [cell if key is None else read.get(key, cell) for cell, key in zip(listed, hashed, strict=True)]
    stay = [value for value, key in zip(values, hashed, strict=True) if key is None or key not in out]
    if read and all(isinstance(value, (int, float)) and value == int(value) for value in stay):
        values = [int(value) if isinstance(value, float) else value for value in values]
    labels: Batch = np.empty(votes.labels.shape, dtype=object)
    labels[rows, columns] = as_object_array(values)
    kept = _without(votes, places, reasons)
    return replace(kept, labels=tighten(labels, ~kept.observed))


def _without(votes: Votes, places: Sequence[int], reasons: Sequence[str]) -> Votes:
    """Return votes without some of the observed cells, counted in the receipt; a blank one is empty."""
    if not places:
        return votes
    cells, rows, columns = _cells(votes)
    items = votes.items.tolist()
    listed = list(places)
    observed = votes.observed.copy()
    observed[rows[listed], columns[listed]] = False
    faults = [
        (votes.sources[columns[place]], items[rows[place]], reason, cells[place])
        for place, reason in zip(listed, reasons, strict=True)
        if reason
    ]
    receipt = _receipt(votes)
    receipt = replace(receipt, empty=receipt.empty + len(listed) - len(faults)) + faults
    return replace(votes, observed=observed, receipt=receipt)


def _receipt(votes: Votes) -> Receipt:
    if votes.receipt is not None:
        return votes.receipt
    return Receipt(votes.observed.size, int(np.count_nonzero(~votes.observed)))


def _cells(votes: Votes) -> tuple[Batch, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    rows, columns = np.nonzero(votes.observed)
    return votes.labels[rows, columns], rows, columns


def _listed(votes: Votes) -> list[Any]:
    return _cells(votes)[0].tolist()


def _scalars(cells: list[Any]) -> Counter[Any]:
    """Return how often each text or number occurs."""
    try:
        return Counter({cell: count for cell, count in Counter(cells).items() if isinstance(cell, (str, int, float))})
    except TypeError:  # lists among them
        return Counter(cell for cell in cells if isinstance(cell, (str, int, float)))


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
