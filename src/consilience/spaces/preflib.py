"""Rankings in the text format of PrefLib (preflib.org): strict or tied orders, complete or not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consilience.exceptions import InvalidLabelError, UnsupportedError
from consilience.spaces.ranking_builders import positions_from_orders, positions_from_top_k
from consilience.spaces.ranking_items import Positions

__all__ = ["PrefLibProfile", "read_preflib"]


@dataclass(frozen=True, eq=False)
class PrefLibProfile:
    """Rankings of a PrefLib file.

    Attributes
    ----------
    positions : array of shape (n, r)
        The distinct rankings.
    counts : array of shape (n,)
        How many voters gave each of them.
    names : tuple of r strings
        Names of the items, their numbers where the file gives none.
    """

    positions: Positions
    counts: npt.NDArray[np.int64]
    names: tuple[str, ...]

    def expanded(self) -> Positions:
        """Return one ranking per voter."""
        return np.repeat(self.positions, self.counts, axis=0)


def read_preflib(text: str, *, unlisted: Literal["unseen", "below"] = "unseen") -> PrefLibProfile:
    r"""Return the rankings of PrefLib text (soc, soi, toc or toi): comment lines, then ``count: 1,2,{3,4}``.

    Parameters
    ----------
    unlisted
        What incomplete orders (soi, toi) mean by the items they leave out: the voter did not see them, or ranks them
        "below" the listed ones, as in elections where one lists favourites.

    Examples
    --------
    >>> profile = read_preflib("# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n2: 1,2\n1: {1,2}\n")
    >>> profile.positions.tolist(), profile.counts.tolist(), profile.names
    ([[0, 1], [0, 0]], [2, 1], ('tea', 'milk'))
    """
    if unlisted not in ("unseen", "below"):
        raise UnsupportedError(f"unlisted={unlisted!r} is unknown. Use 'unseen' or 'below'.")
    names: dict[int, str] = {}
    declared, orders, counts = 0, [], []
    for line_number, line in enumerate(text.splitlines(), start=1):
        if named := re.match(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*?)\s*$", line):
            names[int(named[1])] = named[2]
        elif total := re.match(r"#\s*NUMBER ALTERNATIVES\s*:\s*(\d+)", line):
            declared = int(total[1])
        elif line.strip() and not line.startswith("#"):
            count, order = _read_line(line, line_number, declared)
            counts.append(count)
            orders.append(order)
    if not orders:
        raise InvalidLabelError("The text holds no ranking. PrefLib lines look like '12: 1,3,{2,4}'.")
    number = declared or max(
        max(names, default=0), 1 + max(item for order in orders for group in order for item in group)
    )
    build = positions_from_orders if unlisted == "unseen" else positions_from_top_k
    positions = build(orders, number)
    return PrefLibProfile(
        positions, np.array(counts), tuple(names.get(item, str(item)) for item in range(1, number + 1))
    )


def _read_line(line: str, number: int, declared: int) -> tuple[int, list[Any]]:
    matched = re.fullmatch(r"\s*(\d+)\s*:\s*(\S.*?)\s*", line)
    entries = re.findall(r"\{[\d\s,]+\}|\d+", matched[2]) if matched else []
    if not matched or re.sub(r"\s", "", matched[2]) != re.sub(r"\s", "", ",".join(entries)):
        raise InvalidLabelError(
            f"Line {number} is {line.strip()[:60]!r}; expected 'count: 1,3,{{2,4}}'. Files in the format that PrefLib "
            "used before 2022 have to be downloaded again."
        )
    groups = [tuple(int(item) - 1 for item in re.findall(r"\d+", entry)) for entry in entries]
    items = [item + 1 for group in groups for item in group]
    wrong = next((item for item in items if item < 1 or item > (declared or item)), None)
    if wrong is not None:
        raise InvalidLabelError(f"Line {number} ranks item {wrong}; the items are 1 .. {declared or 'n'}.")
    if len(set(items)) < len(items):
        raise InvalidLabelError(f"Line {number} ranks an item twice: {line.strip()[:60]!r}. Correct the line.")
    return int(matched[1]), groups
