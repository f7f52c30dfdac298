"""Texts: the words that differ are marked."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup

from consilience.label_types import Texts
from consilience.label_types.texts.words import exact_words, plain_words
from consilience.report.labels.base import label_html, plain_text
from consilience.report.svg import element, joined

__all__: list[str] = []


@label_html.register
def _(space: Texts, label: Any, other: Any = None) -> Markup:
    if other is None:
        return element("span", plain_text(label), class_="text")
    split = exact_words if space.exact else plain_words
    (own, written), (beside, _) = split(label), split(other)
    pieces: list[Markup] = []
    for change, first, last, _, _ in SequenceMatcher(None, own, beside, autojunk=False).get_opcodes():
        for word in written[first:last]:
            css = None if change == "equal" else "differs"
            pieces += [
                element("span", plain_text(word.rstrip()), class_=css),
                Markup(" " if word.endswith(" ") else ""),
            ]
    return element("span", joined(pieces), class_="text")
