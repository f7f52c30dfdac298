"""What there is to say about comparisons and their judges: cycles, order effects, graphs that fall apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from consilience.arrays import FloatArray
from consilience.estimation.protocol import Diagnostic, Request
from consilience.label_types.preferences.comparisons import ComparisonTable
from consilience.label_types.preferences.judges import totals

__all__ = ["about_judges", "about_table", "cycles", "order_flips"]

#: Below this rank correlation with equal judges, one pair in ten has changed its order. Reporting only.
DIFFERENT = 0.8
#: An item with at least so many votes that is shown first less or more often than this has no random place: by chance
#: one item in 50 with 10 votes, one in 20,000 with 40. Reporting only.
MIN_SHOWN, SHOWN_FIRST = 10, (0.2, 0.8)
#: A position bias beyond this lets the place win 67% of the time between equals. Reporting only.
LARGE_BIAS = 0.7
#: Comparisons per item below which an arena tells little about its judges. Reporting only.
MIN_COMPARISONS = 4
#: Names listed in a message.
NAMED = 5


def cycles(table: ComparisonTable) -> FloatArray:
    """Return, per judge, which share of the triples that it put in an order goes round in a circle."""
    pairs, width = table.pairs, table.pairs.width
    share = np.zeros(pairs.n_judges)
    for judge in np.flatnonzero(table.comparisons > 2):  # fewer make no circle
        own = table.where(pairs.judge == judge)
        there, group = np.unique(own.pairs.group, return_inverse=True)
        place = (group * width + own.pairs.first) * width + own.pairs.second
        net = totals(place, own.count * own.pairs.outcome, len(there) * width**2).reshape(-1, width, width)
        beats = (net > net.transpose(0, 2, 1)).astype(np.float64)
        either = beats + beats.transpose(0, 2, 1)
        triples = float(np.einsum("gij,gji->", either @ either, either)) / 6.0
        around = float(np.einsum("gij,gji->", beats @ beats, beats)) / 3.0
        share[judge] = around / triples if triples > 0 else 0.0
    return share


def order_flips(table: ComparisonTable) -> FloatArray:
    """Return, per judge, in which share of the pairs shown in both orders the answer went with the order."""
    own = table.where(table.pairs.shown > 0)
    pairs = own.pairs
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    cells, place = np.unique(np.stack([pairs.judge, pairs.group, low, high]), axis=1, return_inverse=True)
    forward = pairs.first < pairs.second
    won = own.count * np.where(forward, pairs.outcome, -pairs.outcome)
    sums, there = (
        [totals(place.reshape(-1)[way], values[way], cells.shape[1]) for way in (forward, ~forward)]
        for values in (won, own.count)
    )
    twice = (there[0] > 0) & (there[1] > 0)
    both, flips = (totals(cells[0, kept], None, pairs.n_judges) for kept in (twice, twice & (sums[0] * sums[1] < 0)))
    return np.asarray(flips / np.maximum(both, 1.0))


def about_table(table: ComparisonTable, request: Request, items: tuple[object, ...] | None) -> list[Diagnostic]:
    """Return findings about the comparisons, whatever the judges."""
    found = _disconnected(table)
    odd = _always_in_one_place(table)
    if odd:
        message = (
            f"{_listed(odd)}: nearly always shown in the same place, so a judge's liking for the place looks like "
            "one for the item. Show items in random order, or every pair in both orders."
        )
        found.append(Diagnostic("order-not-random", "warning", (), message))
    lost = table.unparsable[: len(request.sources)]
    if lost.any():
        worst = [f"{request.sources[who]} ({lost[who]})" for who in np.argsort(-lost, kind="stable") if lost[who]]
        message = (
            f"{int(lost.sum())} replies name no winner and no tie, and are left out: {_listed(worst)}. "
            "Look at them if they are many."
        )
        found.append(Diagnostic("unparsable-replies", "info", request.named(np.flatnonzero(lost)), message))
    compared = np.asarray(table.pairs.compared.any(axis=0))
    never = [item for at, item in enumerate(items or ()) if not compared[at]]
    if never:
        message = f"{_listed(never)}: never compared with anything; the place in the ranking means nothing. "
        found.append(Diagnostic("never-compared", "warning", (), message + "Collect comparisons."))
    return found


def about_judges(
    bias: FloatArray, error: FloatArray, run_correlation: float, tau: float, table: ComparisonTable, request: Request
) -> list[Diagnostic]:
    """Return findings about the judges, and whether weighing them changes the story.

    Parameters
    ----------
    bias, error
        ``(m,)`` position biases and their standard errors.
    tau
        Rank correlation with the ranking by equal judges.
    """
    found = []
    large = (np.abs(bias) > LARGE_BIAS) & (np.abs(bias) > 3.0 * error) & np.isfinite(error)
    if large.any():
        who = [
            f"{request.sources[judge]} ({'first' if bias[judge] > 0 else 'second'}, "
            f"{1.0 / (1.0 + np.exp(-abs(bias[judge]))):.0%})"
            for judge in np.flatnonzero(large)
        ]
        message = (
            f"Prefer the item shown in one place (which, and how often between equals): {_listed(who)}. "
            "It is allowed for; show both orders."
        )
        found.append(Diagnostic("position-bias", "info", request.named(large), message))
    if tau < DIFFERENT:
        message = (
            f"Weighing the judges changes the order much: Kendall's correlation with the ranking by equal judges is "
            f"{tau:.2f}. Compare with predict_baseline(votes), and pass gold= with a known ranking to decide."
        )
        found.append(Diagnostic("disagrees-with-plain-vote", "warning", (), message))
    compared = int(table.pairs.compared.sum())
    if not table.per_prompt and table.count.sum() < MIN_COMPARISONS * max(compared, 1):
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
    return found


def _listed(names: Iterable[object]) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:NAMED]) + (", ..." if len(shown) > NAMED else "")


def _disconnected(table: ComparisonTable) -> list[Diagnostic]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs, compared = table.pairs, table.pairs.compared
    one, two = (pairs.group * pairs.width + item for item in (pairs.first, pairs.second))
    graph = coo_array((np.ones(len(pairs)), (one, two)), shape=(compared.size, compared.size))
    part = connected_components(graph, directed=False)[1].reshape(compared.shape)
    split = [row for row in range(pairs.n_groups) if len(np.unique(part[row, compared[row]])) > 1]
    if not split:
        return []
    row = split[0]
    smallest = Counter(part[row, compared[row]].tolist()).most_common()[-1][0]
    apart = [table.names[row][at] for at in np.flatnonzero((part[row] == smallest) & compared[row])]
    where = "The items" if pairs.n_groups == 1 else f"In {len(split)} of {pairs.n_groups} groups, items"
    message = (
        f"{where} fall into parts that nobody compared with each other (such as {_listed(apart)}); scores of "
        "different parts have no common scale and their order is a guess. Collect comparisons between the parts."
    )
    return [Diagnostic("disconnected-comparisons", "warning", (), message)]


def _always_in_one_place(table: ComparisonTable) -> list[object]:
    first: Counter[object] = Counter()
    both: Counter[object] = Counter()
    own = table.where(table.pairs.shown > 0)
    for row, one, two, count in zip(own.pairs.group, own.pairs.first, own.pairs.second, own.count, strict=True):
        names = table.names[row]
        first[names[one]] += count
        both[names[one]] += count
        both[names[two]] += count
    low, high = SHOWN_FIRST
    return [name for name, count in both.items() if count >= MIN_SHOWN and not low <= first[name] / count <= high]
