"""Findings about a fit, read off the engine's probabilities and the counts of votes.

Each finding states a fact, names the sources, and says what to do next, in two sentences at most. Nothing in the
package decides by a finding's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.protocol import Diagnostic, Hypothesis, Law, Request, Severity, Statistics, Trust

#: A statement is reported as found when it is more probable than its opposite by four to one.
LIKELY = 0.8
#: Two explanations compete when each has at least this probability.
RIVAL = 0.2
#: A mean quality below this is hardly a signal: 57.5% accuracy on two classes.
WEAK = 0.15
#: Misfit above this is reported. It lies between the values .1 and .2 of the engine's grid.
POOR = 0.14
#: With fewer items in common with each of two others, the agreement of a source means little.
MIN_OVERLAP = 10
#: Names shown before a list is cut.
SHOWN = 8


def listed(names: Sequence[str]) -> str:
    """Return names as a list to read, cut after the first few."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def trust_findings(trust: Trust, request: Request, votes: FloatArray) -> tuple[Diagnostic, ...]:
    """Return what the hypotheses say: no signal, rival camps, copies, alike sources, adversaries, misfit."""
    active = votes > 0
    found: list[Diagnostic] = []
    silent = float((np.tanh(trust.draws).mean(axis=1) < WEAK).mean())
    if silent > 0.5 and active.sum() > 1:
        message = (
            f"The sources agree hardly more than by chance (probability {silent:.0%}), so the labels are close to "
            "guesses. Check that all sources labeled the same items, add better sources, or pass gold=."
        )
        found.append(Diagnostic("no-signal", "error", (), message))
    rivals = competing_groups(trust.hypotheses)
    if rivals is not None:
        first, second = (request.named(group) for group in rivals)
        message = (
            f"Two groups agree among themselves more than with each other: {listed(first)} against {listed(second)}. "
            "The votes do not show which group is right, so both count; pass gold= with ten known labels to decide."
        )
        found.append(Diagnostic("competing-groups", "warning", (*first, *second), message))
    sure: BoolArray = (trust.together > LIKELY) | request.dependent
    np.fill_diagonal(sure, False)
    if sure.any():
        pairs = np.argwhere(np.triu(sure))
        named = [f"{request.sources[a]} and {request.sources[b]}" for a, b in pairs[:SHOWN]]
        more = f" and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
        message = (
            f"These sources share errors: {'; '.join(named)}{more}. Their shared errors count once; pass "
            "dependencies='none' if you know that they are independent."
        )
        found.append(Diagnostic("dependent-pair", "info", request.named(np.flatnonzero(sure.any(axis=1))), message))
    if trust.alike > LIKELY and active.sum() >= 3:
        message = (
            f"The votes do not show that any source is better than another (probability {trust.alike:.0%}), so all "
            "count about the same. More items or known labels would tell them apart."
        )
        found.append(Diagnostic("weights-unsupported", "info", (), message))
    if names := request.named(active & _reversed(trust)):
        message = f"Worse than chance: {listed(names)}. Check how their labels are coded; they may be reversed."
        found.append(Diagnostic("adversarial-source", "warning", names, message, advice="fix"))
    if trust.misfit > POOR:
        message = (
            f"No explanation fits the agreement between the sources (misfit {trust.misfit:.2f}), so they may share "
            "errors that the model does not see. Confidence was lowered; label 30 items by hand and pass them as gold=."
        )
        found.append(Diagnostic("poor-fit", "info", (), message))
    return tuple(found)


def competing_groups(hypotheses: Sequence[Hypothesis]) -> tuple[BoolArray, BoolArray] | None:
    """Return two groups of sources between which the votes cannot decide, or None.

    Probable hypotheses rank them in opposite order, or every source belongs to one of several groups.
    """
    camps = [one for one in hypotheses if (np.bincount(one.groups) > 1).all() and one.groups.max() > 0]
    if sum(one.probability for one in camps) > 0.5:
        first, second = np.argsort(-np.bincount(camps[0].groups), kind="stable")[:2]
        return camps[0].groups == first, camps[0].groups == second
    probable = [one for one in hypotheses if one.probability >= RIVAL]
    for one, other in combinations(probable, 2):
        change = one.u - other.u
        better, worse = change > 0.1, change < -0.1
        if better.sum() >= 2 and worse.sum() >= 2:
            mine, theirs = (each.u[better].mean() - each.u[worse].mean() for each in (one, other))
            if mine > 0 > theirs:
                return better, worse
    return None


def guessing_sources(trust: Trust, constant: BoolArray) -> BoolArray:
    """Return which sources are probably hardly better than guessing; none if this holds for all of them.

    If only a minority of the sources is constant, always giving the same label is evidence of guessing: these sources
    guess unless it is rather certain that they do not. Labeling functions of one class each are all constant.
    """
    quality = np.tanh(trust.draws)
    weak = (quality < WEAK).mean(axis=0)
    guessing: BoolArray = (weak > 0.5) & ((quality < 0.0).mean(axis=0) > 0.05)
    if constant.sum() * 2 < len(constant):
        guessing |= constant & (weak > RIVAL)
    guessing &= ~_reversed(trust)
    return guessing & ~guessing.all()


def _reversed(trust: Trust) -> BoolArray:
    worse: BoolArray = (trust.draws < 0.0).mean(axis=0) > 0.95
    return worse


def count_findings(
    law: Law, statistics: Statistics, request: Request, guessing: BoolArray | None = None
) -> tuple[Diagnostic, ...]:
    """Return what the counts of votes show: few, silent and constant sources, low overlap, unused labels."""
    votes = np.diag(statistics["both"])
    active = votes > 0
    count = int(active.sum())
    found = voter_findings(active, request)
    used = statistics["votes"].sum(axis=0) if "votes" in statistics else np.zeros(0)
    constant = law.constant_sources(statistics)
    # Labeling functions often vote for one class only. Their information lies in where they vote.
    everywhere = constant & (votes >= 0.9 * int(statistics["voted_items"]))
    if constant.any() and constant[active].all() and ("votes" not in statistics or (used > 0).sum() == 1):
        message = "All votes are for the same label, so agreement shows nothing. Check how labels are coded."
        found.append(Diagnostic("constant-source", "warning", request.named(constant), message))
    else:
        useless = np.zeros_like(active) if guessing is None else active & guessing
        same = constant & (everywhere | useless) if everywhere.sum() * 2 <= count else constant & useless
        found += _useless_sources(request, useless | same, same)
    if law.needs_overlap:
        # If one item holds many votes, as a sentence does, count the votes that two sources share, not the items.
        found += overlap_findings(statistics["shared"] if "shared" in statistics else statistics["both"], request)
    unused = np.flatnonzero(used == 0)
    if used.any() and len(unused):
        message = (
            f"No source ever votes for {len(unused)} of the {len(used)} labels (code {listed([*map(str, unused)])}). "
            "If they cannot occur, leave them out of the label type."
        )
        found.append(Diagnostic("unused-labels", "info", (), message))
    return tuple(found)


def voter_findings(active: BoolArray, request: Request) -> list[Diagnostic]:
    """Return what is known from which sources vote at all: too few, or some that never do."""
    count = int(active.sum())
    found: list[Diagnostic] = []
    if count < 3:
        voters = "No source votes" if count == 0 else f"Only {count} source{'s' if count > 1 else ''} voted"
        message = (
            f"{voters}, but it takes three to estimate quality from agreement. Add sources, or pass gold= with a few "
            "known labels."
        )
        found.append(Diagnostic("too-few-sources", "warning", request.named(active), message))
    if names := request.named(~active):
        message = f"Never voted: {listed(names)}. Remove them, or check how abstentions are coded."
        found.append(Diagnostic("never-votes", "info", names, message, advice="drop"))
    return found


def overlap_findings(shared: NDArray[Any], request: Request) -> list[Diagnostic]:
    """Return which sources share too little with others, from the ``(m, m)`` numbers of common items or votes."""
    both = shared.copy()
    voting = np.diag(both) > 0
    np.fill_diagonal(both, 0)
    partners = (both >= MIN_OVERLAP).sum(axis=1)
    # In a large crowd no two sources share many items, but each shares items with many: then the sum is enough.
    low = voting & (partners < 2) & (both.sum(axis=1) < 5 * MIN_OVERLAP)
    if voting.sum() < 3 or not low.any():
        return []
    names = request.named(low)
    message = (
        f"These sources have {MIN_OVERLAP} items in common with fewer than two others: {listed(names)}. Their quality "
        "is mostly borrowed from the others; collect votes on common items, or pass gold=."
    )
    severity: Severity = "warning" if low.sum() * 2 < voting.sum() else "info"
    return [Diagnostic("low-overlap", severity, names, message)]


def _useless_sources(request: Request, useless: BoolArray, same: BoolArray) -> list[Diagnostic]:
    """Return one finding about all sources that add nothing, of which some always give the `same` label."""
    names, constant = request.named(useless), request.named(same)
    if not names:
        return []
    if names == constant:
        message = f"Always voted for the same label: {listed(names)}. Such votes hardly count; drop these sources."
        return [Diagnostic("constant-source", "warning", names, message, advice="drop")]
    who = f"{len(names)} sources are" if len(names) > 1 else "One source is"
    always = f" (always the same label: {listed(constant)})" if constant else ""
    drop = "Drop them" if len(names) > 1 else "Drop it"
    message = f"{who} hardly better than guessing and hardly counted: {listed(names)}{always}. {drop}."
    return [Diagnostic("guessing-source", "info", names, message, advice="drop")]


def items_without_votes(statistics: Statistics, ids: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Return the finding that some items have no vote, with the ids of the first ones."""
    items = int(statistics["items"])
    empty = items - int(statistics["voted_items"])
    if empty == 0:
        return ()
    named = f" ({', '.join(ids)}{', ...' if empty > len(ids) else ''})" if ids else ""
    message = f"{empty} of {items} items have no vote{named}. Their label is missing and their confidence is 0."
    return (Diagnostic("items-without-votes", "info", (), message),)
