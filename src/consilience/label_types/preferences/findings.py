"""Findings about comparisons and their judges: cycles, order effects, disconnected items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.protocol import Diagnostic, Request, Severity
from consilience.label_types.preferences.likelihood import PairVotes, totals

#: At this rank correlation with the plain vote, one pair in ten has another order. Only for reporting.
DIFFERENT = 0.8
#: Least number of votes on an item, and the range of the share in which it is shown first if the order is random. By
#: chance, one item in 50 with 10 votes is outside, and one in 20,000 with 40. Only for reporting.
MIN_SHOWN, SHOWN_FIRST = 10, (0.2, 0.8)
#: At this position bias, the favored position wins 67% of comparisons between equals. Only for reporting.
LARGE_BIAS = 0.7
#: With fewer comparisons per item, an arena shows little about its judges. Only for reporting.
MIN_COMPARISONS = 4
#: Names listed in a message.
NAMED = 5


def cycles(pairs: PairVotes) -> FloatArray:
    """Return, per judge, the share of ordered triples that form a cycle."""
    width = pairs.width
    share = np.zeros(pairs.n_judges)
    for judge in np.flatnonzero(pairs.comparisons > 2):  # fewer cannot form a cycle
        own = pairs.where(pairs.judge == judge)
        there, group = np.unique(own.group, return_inverse=True)
        place = (group * width + own.first) * width + own.second
        net = totals(place, own.count * own.outcome, len(there) * width**2).reshape(-1, width, width)
        beats = (net > net.transpose(0, 2, 1)).astype(np.float64)
        either = beats + beats.transpose(0, 2, 1)
        triples = float(np.einsum("gij,gji->", either @ either, either)) / 6.0
        around = float(np.einsum("gij,gji->", beats @ beats, beats)) / 3.0
        share[judge] = around / triples if triples > 0 else 0.0
    return share


def order_flips(pairs: PairVotes) -> FloatArray:
    """Return, per judge, the share of pairs shown in both orders whose answer changed with the order."""
    own = pairs.where(pairs.shown > 0)
    low, high = np.minimum(own.first, own.second), np.maximum(own.first, own.second)
    cells, place = np.unique(np.stack([own.judge, own.group, low, high]), axis=1, return_inverse=True)
    backward = own.first > own.second
    place = 2 * place.reshape(-1) + backward
    won = np.where(backward, -own.outcome, own.outcome)
    sums, there = (totals(place, part, 2 * cells.shape[1]).reshape(-1, 2) for part in (own.count * won, own.count))
    twice = (there > 0).all(axis=1)
    flipped = twice & (sums.prod(axis=1) < 0)
    both, flips = (totals(cells[0, kept], None, own.n_judges) for kept in (twice, flipped))
    return np.asarray(flips / np.maximum(both, 1.0))


def about(
    pairs: PairVotes,
    items: tuple[object, ...] | None,
    bias: FloatArray,
    bias_error: FloatArray,
    run_correlation: float,
    tau: float,
    request: Request,
) -> list[Diagnostic]:
    """Return findings about the comparisons and their judges; `tau` is the rank correlation with the plain vote."""
    found = []

    def tell(code: str, severity: Severity, message: str, sources: tuple[str, ...] = ()) -> None:
        found.append(Diagnostic(code, severity, sources, message))

    compared = pairs.compared
    split = _disconnected(pairs, compared)
    if split:
        tell("disconnected-comparisons", "warning", split)
    odd = _always_in_one_place(pairs)
    if odd:
        tell(
            "order-not-random",
            "warning",
            f"Nearly always shown in the same position: {_listed(odd)}. Position bias cannot be separated from "
            "preference; show items in random order, or every pair in both orders.",
        )
    lost = np.array(pairs.unparsable[: len(request.sources)], dtype=np.int64)
    if lost.any():
        worst = [f"{request.sources[who]} ({lost[who]})" for who in np.argsort(-lost, kind="stable") if lost[who]]
        tell(
            "unparsable-replies",
            "info",
            f"{int(lost.sum())} replies name neither a winner nor a tie and were skipped: {_listed(worst)}. "
            "Read a few of them.",
            request.named(np.flatnonzero(lost)),
        )
    never = [item for at, item in enumerate(items or ()) if at >= compared.shape[1] or not compared[:, at].any()]
    if never:
        message = f"Never compared: {_listed(never)}. Their places in the ranking are arbitrary; "
        tell("never-compared", "warning", message + "collect comparisons, or leave these items out.")
    large = (np.abs(bias) > LARGE_BIAS) & (np.abs(bias) > 3.0 * bias_error) & np.isfinite(bias_error)
    if large.any():
        often = 1.0 / (1.0 + np.exp(-np.abs(bias)))
        who = [
            f"{request.sources[judge]} ({'first' if bias[judge] > 0 else 'second'} answer in {often[judge]:.0%})"
            for judge in np.flatnonzero(large)
        ]
        message = f"Judges favor a position between equal items: {_listed(who)}. "
        step = "The model corrects for it; showing both orders would confirm it."
        tell("position-bias", "info", message + step, request.named(large))
    if tau < DIFFERENT:
        tell(
            "disagrees-with-plain-vote",
            "warning",
            f"Weighting the judges changes the ranking substantially (Kendall's tau {tau:.2f} with equal "
            "judges). Compare with predict_baseline(votes), and pass gold= with a known ranking to decide.",
        )
    if not pairs.per_prompt and pairs.count.sum() < MIN_COMPARISONS * max(int(compared.sum()), 1):
        message = f"Fewer than {MIN_COMPARISONS} comparisons per item are too few to tell judges apart. "
        step = "The ranking can be used; collect more comparisons before you rely on the qualities."
        tell("judges-not-identified", "info", message + step, request.sources)
    if run_correlation > 0.0:
        tell(
            "repeated-runs",
            "info",
            f"Repeated answers of one judge to one question have a correlation rho of {run_correlation:.2f}, so r runs "
            "count as r / (1 + (r - 1) rho) votes.",
        )
    return found


def _listed(names: Iterable[object]) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:NAMED]) + (", ..." if len(shown) > NAMED else "")


def _disconnected(pairs: PairVotes, compared: BoolArray) -> str:
    """Return a message about items that were not compared with the others; empty if all are connected."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, two = (pairs.group * pairs.width + item for item in (pairs.first, pairs.second))
    graph = coo_array((np.ones(len(pairs)), (one, two)), shape=(compared.size, compared.size))
    part = connected_components(graph, directed=False)[1].reshape(compared.shape)
    split = [row for row in range(pairs.n_groups) if len(np.unique(part[row, compared[row]])) > 1]
    if not split:
        return ""
    row = split[0]
    smallest = Counter(part[row, compared[row]].tolist()).most_common()[-1][0]
    apart = [pairs.names[row][at] for at in np.flatnonzero((part[row] == smallest) & compared[row])]
    where = "The items" if pairs.n_groups == 1 else f"In {len(split)} of {pairs.n_groups} groups, items"
    return (
        f"{where} fall into parts that were not compared with each other (such as {_listed(apart)}), so the order "
        "between parts is a guess. Collect comparisons between the parts."
    )


def _always_in_one_place(pairs: PairVotes) -> list[object]:
    first: Counter[object] = Counter()
    both: Counter[object] = Counter()
    own = pairs.where(pairs.shown > 0)
    for row, one, two, count in zip(own.group, own.first, own.second, own.count, strict=True):
        names = own.names[row]
        first[names[one]] += count
        both.update({names[one]: count, names[two]: count})
    low, high = SHOWN_FIRST
    return [name for name, count in both.items() if count >= MIN_SHOWN and not low <= first[name] / count <= high]
