"""The best vote on every text, or a text written anew from all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.families.base import Posterior
from consilience.families.similarity import vote_pairs
from consilience.families.text_table import WordTable
from consilience.label_types.vote_correlation import discount_correlated

if TYPE_CHECKING:
    from consilience.families.texts import TextFamily, TextParameters

__all__ = ["best_texts"]

#: Steps of the search for a better text.
MOST_STEPS = 6


def best_texts(family: TextFamily, parameters: TextParameters, labels: Batch, observed: BoolArray) -> Posterior:
    """Return labels, confidence, and whether each label was written anew."""
    from consilience.families.texts import KINDS
    from consilience.kernels.texts import write_texts

    n = len(observed)
    rows, sources = np.nonzero(observed)
    weights = (np.maximum(parameters.weight, 1e-9) * discount_correlated(observed, parameters.correlation))[
        rows, sources
    ]
    item_start = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    texts, pairs = labels[rows, sources], vote_pairs(item_start)
    table = family.table(texts)
    known = table if family.kind in KINDS else None
    cost = family.pair_distances(texts, known, pairs)
    write = family.write and known is not None
    flat, ends, picked = write_texts(
        table.words, table.starts, item_start, weights, cost, KINDS.get(family.kind, 0), write
    )
    found: list[str | None] = []
    anew = np.zeros(n, dtype=bool)
    for item in range(n):
        first, last = int(item_start[item]), int(item_start[item + 1])
        if first == last:
            found.append(None)
            continue
        text, own = flat[ends[item] : ends[item + 1]], np.arange(first, last)
        if known is None:
            best = texts[picked[item]]
            label = _searched(family, table, texts[own], own, weights[own], best) if family.write else best
            anew[item] = label not in texts[own].tolist()
        else:
            label, anew[item] = _spelled(table, text, texts, own, weights, int(picked[item]))
        found.append(label)
    chosen = as_object_array(found)
    distance = _distances(family, chosen, texts, rows, weights, n)
    # An imaginary vote that has nothing in common with the label, as heavy as the average one, stands for doubt.
    usual = float(parameters.weight.mean()) if len(parameters.weight) else 1.0
    total = np.bincount(rows, weights, minlength=n)
    apart = np.minimum(distance / family.unrelated_cost, 1.0) if family.unrelated_cost > 0 else np.zeros(n)
    confidence = 1.0 - (apart * total + usual) / np.maximum(total + usual, 1e-300)
    details = {"written_anew": anew, "expected_distance": distance}
    return Posterior(chosen, np.clip(confidence, 0.0, 1.0), None, details)


def _spelled(
    table: WordTable, text: IntArray, texts: Batch, own: IntArray, weights: FloatArray, picked: int
) -> tuple[str, bool]:
    """Return words as a text: that of the heaviest vote with the same words, or one that is written anew."""
    order = own[np.argsort(-weights[own], kind="stable")].tolist()
    for vote in (picked, *order):
        if np.array_equal(table.words[table.starts[vote] : table.starts[vote + 1]], text):
            return texts[vote], False
    return table.spelled(text, order), True


def _distances(
    family: TextFamily, chosen: Batch, texts: Batch, rows: IntArray, weights: FloatArray, n: int
) -> FloatArray:
    if len(rows) == 0:
        return np.zeros(n)
    spent = np.bincount(rows, weights * family.cost(chosen[rows], texts), minlength=n)
    mean: FloatArray = spent / np.maximum(np.bincount(rows, weights, minlength=n), 1e-300)
    return mean


def _searched(
    family: TextFamily, table: WordTable, texts: Batch, own: IntArray, weights: FloatArray, start: str
) -> str:
    """Change single words of a text while that brings it closer to the votes, by a distance that is given."""
    from consilience.kernels.texts import neighbours

    if len(texts) < 3:
        return start
    first, last = table.starts[own[0]], table.starts[own[-1] + 1]
    numbers, words = np.unique(table.words[first:last], return_inverse=True)
    starts = table.starts[own[0] : own[-1] + 2] - first
    share = weights / weights.sum()

    def spent(text: str) -> float:
        return float(family.cost(as_object_array([text] * len(texts)), texts) @ share)

    best, least = start, spent(start)
    place = int(np.flatnonzero(np.array(texts.tolist(), dtype=object) == start)[0])
    current = words[starts[place] : starts[place + 1]].astype(np.int64)
    for _ in range(MOST_STEPS):
        flat, ends = neighbours(current, words.astype(np.int64), starts, share, len(numbers))
        options = [flat[ends[k] : ends[k + 1]] for k in range(len(ends) - 1)]
        spelled = [table.spelled(numbers[option], own.tolist()) for option in options]
        costs = [spent(text) if text else np.inf for text in spelled]
        if not costs or min(costs) >= least - 1e-9:
            break
        chosen = int(np.argmin(costs))
        best, least, current = spelled[chosen], costs[chosen], options[chosen]
    return best
