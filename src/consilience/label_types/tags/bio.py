"""Spans of text as tags, one per position: B-X begins a span of type X, I-X continues it, O is outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from consilience.exceptions import InvalidLabelError

OUTSIDE = "O"


def spans_to_bio(spans: Iterable[tuple[int, int, str]], length: int) -> list[str]:
    """Return one tag per position for spans ``(start, end, type)`` that do not overlap; ends are exclusive.

    An empty type gives plain B and I.

    Examples
    --------
    >>> spans_to_bio([(0, 1, "LOC"), (1, 3, "LOC")], length=4)
    ['B-LOC', 'B-LOC', 'I-LOC', 'O']
    """
    tags = [OUTSIDE] * length
    for span in spans:
        try:
            start, end, kind = span
        except (TypeError, ValueError):
            raise InvalidLabelError(f"span {span!r} is not (start, end, type). Give three values.") from None
        if not 0 <= start < end <= length:
            raise InvalidLabelError(
                f"span {span!r} does not lie within {length} positions. Count from 0; the end is exclusive."
            )
        taken = next((place for place in range(start, end) if tags[place] != OUTSIDE), None)
        if taken is not None:
            raise InvalidLabelError(f"span {span!r} overlaps another one at position {taken}. BIO tags hold one each.")
        tags[start] = _tag("B", kind)
        tags[start + 1 : end] = [_tag("I", kind)] * (end - start - 1)
    return tags


def bio_to_spans(tags: Sequence[str | None]) -> list[tuple[int, int, str]]:
    """Return the spans that BIO tags mark, as ``(start, end, type)`` with the end exclusive.

    An I after O or after another type begins a span; None is outside.

    Examples
    --------
    >>> bio_to_spans(["B-PER", "I-PER", "I-LOC", "O"])
    [(0, 2, 'PER'), (2, 3, 'LOC')]
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidLabelError(f"{tags!r} is not a list of BIO tags. Give one per position, such as ['B-PER', 'O'].")
    spans: list[tuple[int, int, str]] = []
    begun: tuple[int, str] | None = None
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, kind = _split(tag)
        goes_on = mark == "I" and begun is not None and begun[1] == kind
        if begun is not None and not goes_on:
            spans.append((begun[0], place, begun[1]))
            begun = None
        if mark in ("B", "I") and not goes_on:
            begun = (place, kind)
    return spans


def follows_bio(names: Sequence[str]) -> bool:
    """Return whether tags have BIO names: O, B-X and I-X, with a B-X for every I-X."""
    inside = [name for name in names if name == "I" or name.startswith("I-")]
    begins = all(_tag("B", _split(name)[1]) in names for name in inside)
    known = all(name == OUTSIDE or name in ("B", "I") or name[:2] in ("B-", "I-") for name in names)
    return known and begins and bool(inside)


def may_follow(before: str, after: str) -> bool:
    """Return whether a tag may follow another; the first tag of a sequence follows O."""
    (mark, kind), (mark_before, kind_before) = _split(after), _split(before)
    return mark != "I" or (mark_before in ("B", "I") and kind_before == kind)


def _tag(mark: str, kind: str) -> str:
    return f"{mark}-{kind}" if kind else mark


def _split(tag: str | None) -> tuple[str, str]:
    if tag is None or tag == OUTSIDE:
        return OUTSIDE, ""
    mark, _, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    if mark not in ("B", "I"):
        raise InvalidLabelError(f"tag {tag!r} is not a BIO tag. Use 'O', 'B-type' and 'I-type'.")
    return mark, kind
