"""Rankings as text: best first, ``>`` between ranks, ``=`` between ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["read_ranking", "spell_ranking"]


def spell_ranking(order: Sequence[Any]) -> str:
    """Return an order of names as text.

    Examples
    --------
    >>> spell_ranking(["fig", ("cherry", "plum")])
    'fig > cherry = plum'
    """
    return " > ".join(" = ".join(group) if isinstance(group, tuple) else group for group in order)


def read_ranking(text: str) -> list[Any]:
    """Return the order of names that a text spells, as `Rankings` takes it.

    Examples
    --------
    >>> read_ranking("fig > cherry = plum")
    ['fig', ('cherry', 'plum')]
    """
    groups = [tuple(group.split(" = ")) for group in text.split(" > ")]
    return [group if len(group) > 1 else group[0] for group in groups]
