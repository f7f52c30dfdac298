"""The fields of a claim of the paper, for the page of results."""

from __future__ import annotations

from dataclasses import dataclass

#: A file of results, the beginning of the heading above a table, a row and a column of it.
Cell = tuple[str, str, str, str]


@dataclass(frozen=True)
class Figure:
    """One line of numbers: printed in the paper, from its authors' code run again, and from our tables."""

    name: str
    paper: str
    reference: str
    cell: Cell | None = None


@dataclass(frozen=True)
class Holds:
    """The claim itself: one of our figures is below (or above) another of ours."""

    ours: str
    other: str
    below: bool = True


@dataclass(frozen=True)
class BetterBelow:
    """Better than the reference: a figure of ours is below this number."""

    ours: str
    reference: float


@dataclass(frozen=True)
class BetterAbove:
    """Better than the reference: a figure of ours is above this number."""

    ours: str
    reference: float


@dataclass(frozen=True)
class Versus:
    """A table that has the plain vote beside ours.

    Every row or column with `ours` in its name is compared with the one that has `plain` in the same place, in all
    columns or rows that `settings` finds; smaller is better unless `above`.
    """

    file: str
    heading: str
    ours: str
    plain: str
    above: bool = False
    settings: str = "."


@dataclass(frozen=True)
class Claim:
    """One table, figure or theorem of the paper.

    Lines under "Targets" of the files decide as well if the pattern `targets` finds something in their words; with
    `against` they speak against the claim. `differs` says how text and code of the paper differ, `needs` what has to be
    there before the experiment can run, `why` explains the verdict in a few words.
    """

    title: str
    where: str
    says: str
    files: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    tests: tuple[Holds | BetterBelow | BetterAbove, ...] = ()
    targets: str = "$^"
    reason: str = ""
    differs: str = ""
    needs: str = ""
    against: bool = False
    why: str = ""
