"""The diagnostics and errors that several families raise, worded once."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import InvalidVotesError
from consilience.families.base import Diagnostic, Request
from consilience.solvers.readings import Readings, largest_group

__all__ = [
    "adversaries",
    "competing",
    "competing_groups",
    "dependent_pairs",
    "fell_back",
    "needs_gold",
    "no_signal",
    "not_converged",
    "polished",
    "possible_copies",
    "repeated_votes",
    "unidentified",
]

#: Agreement that chance would produce this often is not taken for signal.
SIGNIFICANCE = 0.01
#: A source whose pairs together are this many standard errors too far apart misleads.
FAR = 4.0


SHARED_VOTE = "they share one vote"
OUTWEIGHED = "what they have in common counts once"
MAYBE_COPIES = "the votes alone cannot tell whether some sources copy each other or are better than the others"
CANNOT_TELL = "the votes alone cannot tell which of two groups of sources follows the truth"


def fell_back(reason: str) -> Diagnostic:
    """Equal weights were used."""
    return Diagnostic(
        "fell-back-to-majority",
        "warning",
        (),
        f"Every source has the same weight: {reason}. Pass gold= with a few known labels to weigh them.",
    )


def no_signal(request: Request, reason: str) -> Diagnostic:
    """The votes agree no more than by chance."""
    return Diagnostic(
        "no-signal", "error", request.sources, f"No quality can be learned: {reason}. Add better sources."
    )


def dependent_pairs(left: IntArray, right: IntArray, request: Request, remedy: str = SHARED_VOTE) -> Diagnostic:
    """Some pairs agree more than the weights of the two sources explain; `remedy` is what was done about it."""
    names = [f"{request.sources[a]} and {request.sources[b]}" for a, b in zip(left, right, strict=True)]
    involved = np.unique(np.concatenate([left, right]))
    return Diagnostic(
        "dependent-pair",
        "warning",
        request.named(involved),
        f"{'; '.join(names[:5])}{' ...' if len(names) > 5 else ''} agree in a way their weights do not explain; "
        f"{remedy}. Pass dependencies= to tell.",
    )


def repeated_votes(pairs: BoolArray, request: Request) -> tuple[Diagnostic, ...]:
    """Some pairs ``(m, m)`` cast the same vote too often for a continuous scale."""
    found = np.argwhere(np.triu(pairs, 1))
    if len(found) == 0:
        return ()
    named = [f"{request.sources[a]} and {request.sources[b]}" for a, b in found[:8]]
    message = (
        f"{'; '.join(named)}{' ...' if len(found) > 8 else ''}: the same vote, to the last digit, on many of the items "
        "they share; they do not count twice. Pass dependencies= to say which sources copy which."
    )
    return (Diagnostic("copied-source", "warning", request.named(np.unique(found)), message),)


def competing(readings: Readings, count: int, request: Request) -> Diagnostic | None:
    """Return the finding that the votes cannot tell which of two groups follows the truth, if so.

    Either two readings fit about as well, or the dependent sources are most of the `count` sources that vote, so that
    the others may as well be the ones that agree for the wrong reason.
    """
    if readings.rival is not None:
        return competing_groups(readings.first, readings.second, request)
    group = largest_group(readings.best.dependent)
    if 2 * len(group) <= count:
        return None
    others = np.setdiff1d(np.arange(len(request.sources)), group)
    return competing_groups(group, others, request) if len(others) else None


def possible_copies(dependent: BoolArray, request: Request) -> Diagnostic:
    """Some sources may be copies of each other, or may be far better than the others."""
    names = request.named(np.flatnonzero(dependent.any(axis=1)))
    return Diagnostic(
        "possible-copies",
        "warning",
        names,
        f"{', '.join(names)} agree so much with each other that they either copy each other or are far better than the "
        "others, and the votes alone cannot tell. Pass a few known labels as gold=, dependencies= with the pairs that "
        "copy, or dependencies='none' if none does.",
    )


def competing_groups(first: IntArray, second: IntArray, request: Request) -> Diagnostic:
    """Two groups of sources each agree among themselves, and the votes cannot tell which one follows the truth."""
    names = [", ".join(request.named(group)) for group in (first, second)]
    return Diagnostic(
        "competing-groups",
        "warning",
        (*request.named(first), *request.named(second)),
        f"Two groups of sources each agree among themselves more than with the other: {names[0]} against {names[1]}. "
        "The votes alone cannot tell which follows the truth; about three known labels decide. Pass them as gold=, or "
        "say which pairs agree for another reason with dependencies=.",
    )


def adversaries(left: IntArray, right: IntArray, apart: FloatArray, request: Request) -> tuple[Diagnostic, ...]:
    """Some sources are further from the others than unrelated ones would be.

    `left` and `right` are the pairs of sources that were looked at, `apart` by how many standard errors they are
    further apart than their weights explain.
    """
    m = len(request.sources)
    met = np.bincount(left, minlength=m) + np.bincount(right, minlength=m)
    total = np.bincount(left, apart, minlength=m) + np.bincount(right, apart, minlength=m)
    far = np.bincount(left[apart > 1], minlength=m) + np.bincount(right[apart > 1], minlength=m)
    names = request.named((met >= 2) & (2 * far > met) & (total > FAR * np.sqrt(np.maximum(met, 1))))
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: further from the other sources than chance would put it; the weight is zero. "
        "Check how its labels are coded; they may be reversed."
    )
    return (Diagnostic("adversarial-source", "warning", names, message),)


def not_converged() -> Diagnostic:
    """The likelihood did not come to rest."""
    return Diagnostic(
        "not-converged",
        "warning",
        (),
        "The likelihood was still moving after the last round; the labels are usable, the standard errors less so.",
    )


def polished(used: str, quantity: str, worst: float, limit: float) -> Diagnostic:
    """The likelihood saw a sample of the items."""
    return Diagnostic(
        "polished-on-sample",
        "info",
        (),
        f"The likelihood was maximised on {used}; on the sample the largest standard error of {quantity} was "
        f"{worst:.4f} (limit {limit}).",
    )


def unidentified(identified: BoolArray, active: BoolArray, request: Request) -> tuple[Diagnostic, ...]:
    """Some sources lack independent partners."""
    names = request.named(~identified & active)
    if not names:
        return ()
    return (
        Diagnostic(
            "too-few-sources",
            "warning",
            names,
            f"{', '.join(names)}: fewer than two independent partners that vote on the same items, so the quality "
            "is a guess. Remove a dependency, add sources, or pass gold=.",
        ),
    )


def needs_gold() -> InvalidVotesError:
    """Return the error for a method that learns from known labels when there are none."""
    return InvalidVotesError(
        "method='labelled' learns from known labels and none were given. "
        "Pass gold= with a few of them, or use method='auto'."
    )
