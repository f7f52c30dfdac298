"""How many words differ between two texts."""

from __future__ import annotations

from consilience.label_types import register_distance

__all__ = ["word_edit_distance"]


def word_edit_distance(left: str, right: str) -> int:
    """Return the least number of words to insert, delete or replace to turn one text into the other.

    Registered as ``"word-edit-distance"``, so models that use it can be saved and loaded.

    Examples
    --------
    >>> word_edit_distance("the cat sat", "a cat sat down")
    2
    """
    if left == right:
        return 0
    target = right.split()
    above = list(range(len(target) + 1))
    for row, word in enumerate(left.split(), start=1):
        current = [row]
        for column, other in enumerate(target):
            current.append(min(above[column + 1] + 1, current[column] + 1, above[column] + (word != other)))
        above = current
    return above[-1]


register_distance("word-edit-distance", word_edit_distance)
