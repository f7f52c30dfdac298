"""What there is to say about comparisons and their judges: cycles, order effects, graphs that fall apart."""

from __future__ import annotations

from collections import Counter

import numpy as np

from consilience.arrays import FloatArray
from consilience.estimation.protocol import Diagnostic, Request
from consilience.label_types.preferences.comparisons import ComparisonTable
from consilience.label_types.preferences.judges import totals

__all__ = ["about_judges", "about_table", "cycles", "order_flips"]

#: Below this rank correlation, weighted and plain ranking tell different stories.
DIFFERENT = 0.8
#: An item with at least so many votes that is shown first less or more often than this has no random place.
MIN_SHOWN, SHOWN_FIRST = 10, (0.2, 0.8)
#: A position bias beyond this, and beyond three standard errors, is worth a word.
LARGE_BIAS = 0.7
#: Comparisons per item below which an arena tells little about its judges.
MIN_COMPARISONS = 4
NAMED = 5


def cycles(table: ComparisonTable) -> FloatArray:
    """Return, per judge, which share of the triples that it put in an order goes round in a circle."""
    pairs = table.pairs
    share = np.zeros(pairs.n_judges)
    for judge in np.flatnonzero(table.comparisons > 2):  # fewer make no circle
        own = pairs.where(pairs.judge == judge)
        there, group = np.unique(own.group, return_inverse=True)
        cells = len(there) * pairs.width**2
        place = group * pairs.width**2 + own.first * pairs.width + own.second
        net = totals(place, table.count[pairs.judge == judge] * own.outcome, cells).reshape(
            -1, pairs.width, pairs.width
        )
        net = net - net.transpose(0, 2, 1)
        beats = (net > 0).astype(np.float64)
        either = beats + beats.transpose(0, 2, 1)
        triples = float(np.einsum("gij,gji->", either @ either, either)) / 6.0
        around = float(np.einsum("gij,gji->", beats @ beats, beats)) / 3.0
        share[judge] = around / triples if triples > 0 else 0.0
    return share


def order_flips(table: ComparisonTable) -> FloatArray:
    """Return, per judge, in which share of the pairs shown in both orders the answer went with the order."""
    pairs = table.pairs
    shown = pairs.shown > 0
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    key = np.stack([pairs.judge, pairs.group, low, high], axis=1)[shown]
    forward = (pairs.first < pairs.second)[shown]
    outcome, often = np.where(forward, pairs.outcome[shown], -pairs.outcome[shown]), table.count[shown]
    flips, both = np.zeros(pairs.n_judges), np.zeros(pairs.n_judges)
    if len(key):
        cells, place = np.unique(key, axis=0, return_inverse=True)
        place = place.reshape(-1)
        size = len(cells)
        sums = [totals(place[way], (often * outcome)[way], size) for way in (forward, ~forward)]
        there = [totals(place[way], None, size) > 0 for way in (forward, ~forward)]
        twice = there[0] & there[1]
        both = totals(cells[twice, 0], None, pairs.n_judges)
        flips = totals(cells[twice, 0], (sums[0] * sums[1] < 0)[twice].astype(np.float64), pairs.n_judges)
    return np.asarray(flips / np.maximum(both, 1.0))


def about_table(table: ComparisonTable, request: Request, items: tuple[object, ...] | None) -> tuple[Diagnostic, ...]:
    """Return findings about the comparisons, whatever the judges."""
    return (*_connected(table), *_shown_first(table), *_unparsable(table, request), *_never_compared(table, items))


def _connected(table: ComparisonTable) -> list[Diagnostic]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = table.pairs
    size = pairs.n_groups * pairs.width
    one, two = pairs.group * pairs.width + pairs.first, pairs.group * pairs.width + pairs.second
    graph = coo_array((np.ones(len(pairs)), (one, two)), shape=(size, size))
    part = connected_components(graph, directed=False)[1].reshape(pairs.n_groups, pairs.width)
    compared = pairs.compared
    split = [row for row in range(pairs.n_groups) if len(np.unique(part[row, compared[row]])) > 1]
    if not split:
        return []
    row = split[0]
    counts = Counter(part[row, compared[row]].tolist())
    fewest = min(counts, key=lambda label: counts[label])
    names = [str(table.names[row][at]) for at in np.flatnonzero((part[row] == fewest) & compared[row])]
    shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    where = "" if pairs.n_groups == 1 else f"In {len(split)} of {pairs.n_groups} groups of items "
    verb = "The items" if pairs.n_groups == 1 else "items"
    return [
        Diagnostic(
            "disconnected-comparisons",
            "warning",
            (),
            f"{where}{verb} fall into parts that nobody compared with each other (such as {shown}); scores of "
            "different parts have no common scale and their order is a guess. Collect comparisons between the parts.",
        )
    ]


def _shown_first(table: ComparisonTable) -> list[Diagnostic]:
    pairs = table.pairs
    first: Counter[object] = Counter()
    both: Counter[object] = Counter()
    shown = np.flatnonzero(pairs.shown > 0)
    columns = (pairs.group, pairs.first, pairs.second, table.count)
    for row, one, two, count in zip(*(column[shown] for column in columns), strict=True):
        names = table.names[row]
        first[names[one]] += count
        both[names[one]] += count
        both[names[two]] += count
    low, high = SHOWN_FIRST
    odd = [name for name, count in both.items() if count >= MIN_SHOWN and not low <= first[name] / count <= high]
    if not odd:
        return []
    listed = ", ".join(str(name) for name in odd[:NAMED]) + (", ..." if len(odd) > NAMED else "")
    return [
        Diagnostic(
            "order-not-random",
            "warning",
            (),
            f"{listed}: nearly always shown in the same place, so that a judge's liking for the place looks like one "
            "for the item. Show items in random order, or every pair in both orders.",
        )
    ]


def _unparsable(table: ComparisonTable, request: Request) -> list[Diagnostic]:
    m = len(request.sources)
    lost = table.unparsable[:m]
    if not lost.any():
        return []
    worst = [f"{request.sources[judge]} ({lost[judge]})" for judge in np.argsort(-lost, kind="stable") if lost[judge]]
    return [
        Diagnostic(
            "unparsable-replies",
            "info",
            request.named(np.flatnonzero(lost)),
            f"{int(lost.sum())} replies name no winner and no tie, and are left out: {', '.join(worst[:NAMED])}"
            f"{', ...' if len(worst) > NAMED else ''}. Look at them if they are many.",
        )
    ]


def _never_compared(table: ComparisonTable, items: tuple[object, ...] | None) -> list[Diagnostic]:
    if items is None:
        return []
    there = set(np.flatnonzero(table.pairs.compared.any(axis=0)).tolist())
    never = [str(item) for at, item in enumerate(items) if at not in there]
    if not never:
        return []
    shown = ", ".join(never[:NAMED]) + (", ..." if len(never) > NAMED else "")
    message = f"{shown}: never compared with anything; the place in the ranking means nothing. Collect comparisons."
    return [Diagnostic("never-compared", "warning", (), message)]


def about_judges(
    bias: FloatArray, error: FloatArray, run_correlation: float, tau: float, table: ComparisonTable, request: Request
) -> tuple[Diagnostic, ...]:
    """Return findings about the judges, and whether weighing them changes the story.

    Parameters
    ----------
    bias, error
        ``(m,)`` position biases and their standard errors.
    tau
        Rank correlation with the ranking by equal judges.
    """
    found = _position(bias, error, request)
    if tau < DIFFERENT:
        message = (
            f"Weighing the judges changes the order much: Kendall's correlation with the ranking by equal judges is "
            f"{tau:.2f}. Compare with predict_baseline(votes), and pass gold= with a known ranking to decide."
        )
        found.append(Diagnostic("disagrees-with-plain-vote", "warning", (), message))
    compared = int(table.pairs.compared.sum())
    if len(np.unique(table.pairs.group)) < 2 and table.count.sum() < MIN_COMPARISONS * max(compared, 1):
        message = (
            "Fewer than 4 comparisons per item: the qualities of the judges are mostly borrowed from each other. "
            "Collect more comparisons before you trust them; the ranking itself is usable."
        )
        found.append(Diagnostic("judges-not-identified", "info", request.sources, message))
    if run_correlation > 0.0:
        message = (
            f"Answers of one judge to one question correlate by {run_correlation:.2f} beyond what scores "
            "explain, so that r runs count as r / (1 + (r - 1) rho) votes."
        )
        found.append(Diagnostic("repeated-runs", "info", (), message))
    return tuple(found)


def _position(bias: FloatArray, error: FloatArray, request: Request) -> list[Diagnostic]:
    large = (np.abs(bias) > LARGE_BIAS) & (np.abs(bias) > 3.0 * error) & np.isfinite(error)
    if not large.any():
        return []
    often = 1.0 / (1.0 + np.exp(-np.abs(bias)))
    who = [
        f"{request.sources[judge]} ({'first' if bias[judge] > 0 else 'second'}, {often[judge]:.0%})"
        for judge in np.flatnonzero(large)
    ]
    return [
        Diagnostic(
            "position-bias",
            "info",
            request.named(large),
            "Prefer the item shown in one place (which, and how often between equals): "
            f"{', '.join(who[:NAMED])}{', ...' if len(who) > NAMED else ''}. It is allowed for; show both orders.",
        )
    ]
