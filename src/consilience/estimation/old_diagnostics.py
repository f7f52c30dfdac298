"""Findings that hold for any label type: who never votes, who overlaps too little, who misleads."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, IntArray
from consilience.families.base import Diagnostic, Estimate, Family, Request, Summary, Sums

__all__ = ["general_diagnostics", "items_without_votes"]

#: Two sources should meet on this many items before their agreement means much.
MIN_OVERLAP = 10


def general_diagnostics(
    family: Family, sums: Sums, summary: Summary, request: Request, estimate: Estimate
) -> tuple[Diagnostic, ...]:
    """Return what a user should know about these votes and sources, worst first."""
    votes = np.diag(sums["both"])
    active = votes > 0
    found = [Diagnostic("method", "info", (), f"Method {estimate.method!r}: {estimate.reason}.")]
    silent = request.named(~active)
    if silent:
        found.append(
            Diagnostic(
                "never-votes",
                "warning",
                silent,
                f"{', '.join(silent)}: no vote at all, so nothing is known and the weight is the average. "
                "Leave the source out, or check how its abstentions are coded.",
            )
        )
    if int(active.sum()) < 3:
        found.append(_too_few_sources(active, request))
    learned = np.zeros_like(request.dependent) if estimate.dependent is None else estimate.dependent
    found += _about_votes(family, sums, summary, request, learned)
    dependent = [
        f"{request.sources[a]} and {request.sources[b]} ({summary.correlation[a, b]:.2f})"
        for a, b in np.argwhere(np.triu(request.dependent))
    ]
    if dependent:
        involved = request.named(np.flatnonzero(request.dependent.sum(axis=1)))
        message = f"Given as dependent, they share their votes (correlation in brackets): {'; '.join(dependent[:8])}."
        found.append(Diagnostic("dependent-pair", "info", involved, message))
    return tuple(found)


def _about_votes(
    family: Family, sums: Sums, summary: Summary, request: Request, learned: BoolArray
) -> list[Diagnostic]:
    """Return findings about the labels that were voted; where these are records, about each field."""
    parts = family.parts(sums, summary)
    if parts:
        return [
            item.of_part(name)
            for name, (own, own_sums, own_summary) in parts.items()
            for item in (
                *_few_sources_of_part(own_sums, request, sums),
                *_about_votes(own, own_sums, own_summary, request, learned),
            )
        ]
    return [
        *_constant(family, sums, request),
        *_low_overlap(sums, request),
        *_copied(family, sums, request, learned),
        *_adversarial(family, summary, request, np.diag(_meetings(sums))),
        *_unused_labels(sums),
    ]


def _too_few_sources(active: BoolArray, request: Request) -> Diagnostic:
    return Diagnostic(
        "too-few-sources",
        "warning",
        request.named(active),
        f"{int(active.sum())} source(s) vote; agreement tells their qualities apart from 3 on. "
        "Add sources, or pass gold= with a few known labels.",
    )


def _few_sources_of_part(sums: Sums, request: Request, whole: Sums) -> list[Diagnostic]:
    """Report that few sources vote on a field, where that is not so for the records anyway."""
    active = np.diag(sums["both"]) > 0
    many = int((np.diag(whole["both"]) > 0).sum()) >= 3
    return [_too_few_sources(active, request)] if many and active.sum() < 3 else []


def items_without_votes(sums: Sums, ids: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """Return the finding that some items have no vote, with the ids of the first ones."""
    items = int(sums["items"])
    empty = items - int(sums["voted_items"])
    if empty == 0:
        return ()
    named = f" ({', '.join(ids)}{', ...' if empty > len(ids) else ''})" if ids else ""
    message = f"{empty} of {items} items have no vote{named}; their label is missing and their confidence 0."
    return (Diagnostic("items-without-votes", "info", (), message),)


def _constant(family: Family, sums: Sums, request: Request) -> list[Diagnostic]:
    constant = family.constant_sources(sums)
    votes = np.diag(sums["both"])
    active = votes > 0
    if constant.any() and constant[active].all() and _one_label(sums):
        message = "All votes are for one and the same label, so nothing can be learned from agreement."
        return [Diagnostic("constant-source", "warning", request.named(constant), message)]
    # Labeling functions that vote one class only are the rule in their kind, and tell by where they vote.
    constant &= votes >= 0.9 * int(sums["voted_items"])
    if not constant.any() or constant.sum() * 2 > active.sum():
        return []
    names = request.named(constant)
    message = f"{', '.join(names)}: always the same label, whatever the item; such a vote carries no information."
    return [Diagnostic("constant-source", "warning", names, message)]


def _copied(family: Family, sums: Sums, request: Request, learned: BoolArray) -> list[Diagnostic]:
    """Report pairs that never differ, on more items than chance and skill would explain."""
    same = _never_differ(sums) & (sums["both"] >= 3 * MIN_OVERLAP) & ~request.dependent
    varied = ~family.constant_sources(sums)
    pairs = np.argwhere(np.triu(same & np.outer(varied, varied), 1))
    if len(pairs) == 0:
        return []
    named = [f"{request.sources[a]} and {request.sources[b]}" for a, b in pairs[:8]]
    noticed = learned[pairs[:, 0], pairs[:, 1]].all()
    message = f"{'; '.join(named)}{' ...' if len(pairs) > 8 else ''}: the same vote on every item they share. " + (
        "What they have in common counts once."
        if noticed
        else "If one copies the other, pass dependencies= with these pairs, so that they count as one."
    )
    return [Diagnostic("copied-source", "info", request.named(np.unique(pairs)), message)]


def _never_differ(sums: Sums) -> BoolArray:
    if "pair_cost" in sums:
        never: BoolArray = sums["pair_cost"].sum(axis=0) <= 0.0
    elif "pairs" in sums:
        m, k = sums["votes"].shape
        agree = np.einsum("acbc->ab", sums["pairs"].sum(axis=0).reshape(m, k, m, k))
        never = agree >= sums["both"] - 1e-9
    else:
        never = sums["agree"] >= sums["both"] if "agree" in sums else np.zeros(sums["both"].shape, dtype=bool)
    return never


def _unused_labels(sums: Sums) -> list[Diagnostic]:
    counts = sums["votes"].sum(axis=0) if "votes" in sums else np.zeros(0)
    unused = np.flatnonzero(counts == 0)
    if not counts.any() or len(unused) == 0:
        return []
    shown = ", ".join(map(str, unused[:8])) + (" ..." if len(unused) > 8 else "")
    message = (
        f"No source ever votes for {len(unused)} of the {len(counts)} labels (code {shown}). "
        "If they cannot occur, leave them out of the space."
    )
    return [Diagnostic("unused-labels", "info", (), message)]


def _one_label(sums: Sums) -> bool:
    return "votes" not in sums or int((sums["votes"].sum(axis=0) > 0).sum()) == 1


def _meetings(sums: Sums) -> IntArray:
    """Return how often two sources meet; where one item holds many votes, how many of these they share."""
    return sums["shared"] if "shared" in sums else sums["both"]


def _low_overlap(sums: Sums, request: Request) -> list[Diagnostic]:
    both = _meetings(sums).copy()
    active = np.diag(both) > 0
    np.fill_diagonal(both, 0)
    partners = (both >= MIN_OVERLAP).sum(axis=1)
    # In a large crowd no two meet often, yet everybody meets many: then the sum of all meetings will do.
    low = active & (partners < 2) & (both.sum(axis=1) < 5 * MIN_OVERLAP)
    if active.sum() < 3 or not low.any():
        return []
    names = request.named(low)
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    message = (
        f"{shown}: fewer than two other sources vote on {MIN_OVERLAP} or more of the same items, so the quality is "
        "mostly borrowed from the other sources. Collect overlapping votes, or pass gold=."
    )
    return [Diagnostic("low-overlap", "warning" if low.sum() * 2 < active.sum() else "info", names, message)]


def _adversarial(family: Family, summary: Summary, request: Request, votes: IntArray) -> list[Diagnostic]:
    chance = float(family.expected_cost(np.zeros(1))[0])
    finite = np.isfinite(summary.cost_standard_error)
    error = np.where(finite, summary.cost_standard_error, np.inf)
    worse = (votes >= MIN_OVERLAP) & finite & (summary.expected_cost - 3.0 * error > chance * 1.02)
    if not worse.any():
        return []
    names = request.named(worse)
    message = (
        f"{', '.join(names)}: worse than chance. A systematic error can still be informative, but check how the "
        "labels are coded."
    )
    return [Diagnostic("adversarial-source", "warning", names, message)]
