"""Level 0: how much each two sources agree, how sure that is, and what independent sources would show.

A label type turns its sums into a `PairTable` and says with a `Forward` map how the qualities of two independent
sources make their expected agreement. The trust engine needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["LIMIT", "Forward", "PairTable", "Statistics", "agreement_sums", "agreement_table", "ratio_sums", "row_sums"]

#: Largest |u|. A quality of q = tanh(4) = .9993 stands for "always right".
LIMIT = 4.0
#: The standard error of every pair includes this many items of average scatter, because few items can agree by luck.
BORROWED_ITEMS = 10.0
#: With fewer items in common, the agreement of a pair cannot be distinguished from luck.
MIN_COMMON_ITEMS = 3


class Statistics(dict[str, npt.NDArray[Any]]):
    """Named arrays that add up: integers exactly, floats to rounding. What a pass over the votes brings back.

    Examples
    --------
    >>> total = Statistics(votes=np.array([1, 2])) + Statistics(votes=np.array([3, 4]))
    >>> total["votes"].tolist()
    [4, 6]
    >>> (total + Statistics())["votes"].tolist()
    [4, 6]
    """

    def __add__(self, other: Statistics) -> Statistics:
        both = {name: value + other[name] for name, value in self.items() if name in other}
        return Statistics({**self, **other, **both})


@dataclass(frozen=True)
class PairTable:
    """The agreement of each two sources: 0 by chance, and 1 for sources that are always right."""

    value: FloatArray  # (m, m) mean agreement
    error: FloatArray  # (m, m) its standard error; infinite where too few items are in common
    both: FloatArray  # (m, m) items in common; on the diagonal the votes of each source
    gold_value: FloatArray | None = None  # (m,) agreement with known labels
    gold_error: FloatArray | None = None
    linked: BoolArray | None = None  # (m, m) pairs that certainly share errors: identical votes on continuous labels
    cost: FloatArray | None = None  # (m, m) mean cost between two sources, where the label type has one
    # (m,) factor by which qualities scatter more than with independent pairs, where it is known
    widened: FloatArray | None = None
    # (m, m) variance of the agreement from item to item, where it is not determined by its mean
    scatter: FloatArray | None = None

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.value)

    @property
    def usable(self) -> BoolArray:
        """``(m, m)`` pairs of different sources with enough items in common."""
        usable: BoolArray = np.isfinite(self.error) & ~np.eye(len(self.error), dtype=bool)
        return usable

    @property
    def has_gold(self) -> bool:
        """Whether some source voted on an item whose label is known."""
        return self.gold_error is not None and bool(np.isfinite(self.gold_error).any())

    def of_sources(self, chosen: IntArray) -> PairTable:
        """Return the table of some of the sources."""
        pairs = np.ix_(chosen, chosen)
        given = {name: value for name, value in vars(self).items() if value is not None}
        return PairTable(**{name: value[pairs if value.ndim == 2 else chosen] for name, value in given.items()})


@dataclass(frozen=True)
class Forward:
    """Expected agreement of two independent sources, ``sum_k sign_k phi_k(u_a) phi_k(u_b)``.

    A source of quality ``u`` agrees with the truth by ``q = tanh(u)``. Without a table ``phi = tanh``: the product
    form, exact for classes, tags, scores, spheres and hyperbolic spaces. With one, ``table[g, h]`` is the agreement
    at ``grid[g], grid[h]`` and its leading eigenvectors are the features, so that any exact or simulated pair moment
    can be given.
    """

    #: Qualities u at which most laws tabulate their agreement.
    USUAL_GRID: ClassVar[FloatArray] = np.linspace(-LIMIT, LIMIT, 161)

    grid: FloatArray | None = None
    phi: FloatArray | None = None
    sign: FloatArray | None = None

    @classmethod
    def of_table(cls, grid: FloatArray, table: FloatArray, rank: int = 4) -> Forward:
        """Return the map whose agreements at the points of an even grid of u are given, ``(g, g)``.

        The leading eigenvectors come from a subspace iteration that begins with polynomials. Agreement is smooth in u,
        so that a few rounds are exact, at a hundredth of the cost of all eigenvectors.
        """
        table = (table + table.T) / 2.0
        basis = np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, len(grid)), 4 * rank - 1)
        for _ in range(4):
            basis = np.linalg.qr(table @ basis)[0]
        values, vectors = np.linalg.eigh(basis.T @ table @ basis)
        vectors = basis @ vectors
        top = np.argsort(-np.abs(values))[:rank]
        return cls(grid, vectors[:, top] * np.sqrt(np.abs(values[top])), np.sign(values[top]))


def agreement_sums(
    agreement: Callable[[IntArray, int, int], FloatArray],
    observed: BoolArray,
    gold: Callable[[IntArray, int], FloatArray] | None = None,
    gold_rows: IntArray | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the additive sums behind a pair table, for any function of two votes.

    ``agreement(rows, a, b)`` compares the votes of sources a and b on each of these items, and ``gold(rows, a)`` those
    of source a with the known labels.
    """
    m = observed.shape[1]
    total, square, count = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    with_others = np.zeros(observed.shape)
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero(observed[:, a] & observed[:, b])
            if len(rows):
                value = agreement(rows, a, b)
                total[a, b], square[a, b], count[a, b] = value.sum(), value @ value, len(rows)
                with_others[rows, a] += value
                with_others[rows, b] += value
    others = observed * (observed.sum(axis=1, keepdims=True) - 1.0)
    sums = {
        "agreement_rows": row_sums(with_others, others),
        "agreement": total + total.T,
        "agreement_square": square + square.T,
        "agreement_count": count + count.T,
        "agreement_votes": observed.sum(axis=0).astype(np.float64),
    }
    if gold is not None and gold_rows is not None and len(gold_rows):
        known = np.zeros((3, m))
        for a in range(m):
            rows = gold_rows[observed[gold_rows, a]]
            if len(rows):
                value = gold(rows, a)
                known[:, a] = value.sum(), value @ value, len(rows)
        sums |= {"gold_agreement": known[0], "gold_agreement_square": known[1], "gold_agreement_count": known[2]}
    return sums


def row_sums(with_others: FloatArray, others: FloatArray) -> FloatArray:
    """Return ``(3, m)`` sums of S^2, S T and T^2, where a source agrees by S in total with T others on an item."""
    both = ((with_others, with_others), (with_others, others), (others, others))
    return np.stack([(left * right).sum(axis=0) for left, right in both])


def ratio_sums(sums: FloatArray, least_scatter: FloatArray | float, prefix: str = "") -> dict[str, FloatArray]:
    """Return the sums of `agreement_sums` where items are of different sizes and every comparison counts once.

    With S agreements in the T comparisons of an item, `sums` are those of S, T, S^2, S T and T^2 over the items. They
    are worth ``(sum T)^2 / sum T^2`` items of one size. Where all agree alike the next one may not, so they scatter at
    least by `least_scatter`.
    """
    total, size, total_square, product, size_square = sums
    items = size**2 / np.maximum(size_square, 1.0)
    mean = total / np.maximum(size, 1.0)
    scatter = total_square - 2.0 * mean * product + mean**2 * size_square
    square = items * (np.maximum(scatter, least_scatter) / np.maximum(size_square, 1.0) + mean**2)
    names = ("agreement", "agreement_square", "agreement_count")
    return {prefix + name: value for name, value in zip(names, (items * mean, square, items), strict=True)}


def agreement_table(
    sums: Any,
    transform: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]] = lambda *same: same,
) -> PairTable:
    """Return the pair table of sums under the names of `agreement_sums`.

    `transform` maps the mean of the summed quantity, and its deviation from item to item, to those of agreement. Pairs
    borrow scatter on the scale of agreement: good sources hardly scatter, on whatever scale the others scatter most.
    """
    count, votes = sums["agreement_count"], sums["agreement_votes"]
    m = len(count)
    off = ~np.eye(m, dtype=bool)
    mean, scatter = _mean_and_scatter(sums["agreement"], sums["agreement_square"], count)
    widened = None
    if "agreement_rows" in sums:
        widened = _widened(sums["agreement_rows"], sums["agreement"], count, scatter)
    mean, deviation = transform(mean, np.sqrt(scatter / np.maximum(count, 1.0)))
    pooled = float((count * deviation**2)[off].sum()) / max(float(count[off].sum()), 1.0)
    error = np.where(count >= MIN_COMMON_ITEMS, _error(deviation, count, pooled), np.inf)
    gold_mean = gold_error = None
    if "gold_agreement" in sums:
        known = sums["gold_agreement_count"]
        gold_mean, gold_scatter = _mean_and_scatter(sums["gold_agreement"], sums["gold_agreement_square"], known)
        gold_mean, gold_deviation = transform(gold_mean, np.sqrt(gold_scatter / np.maximum(known, 1.0)))
        gold_error = np.where(known > 0, _error(gold_deviation, known, pooled), np.inf)
    both = np.where(off, count, 0.0) + np.diag(votes)
    value = np.where(off, mean, 1.0)
    return PairTable(value, error, both, gold_mean, gold_error, widened=widened, scatter=deviation**2)


def _widened(rows: FloatArray, total: FloatArray, count: FloatArray, scatter: FloatArray) -> FloatArray:
    """Return by how much more qualities scatter than if the agreements of a source with others were independent.

    A vote that is off agrees less with all others. With S the sum of the agreements of a source on an item with T
    others, `rows` are the sums of S^2, S T and T^2. Two agreements of a source then have some correlation r, so that
    each is the sum of a part r for each source and a rest. Of m sources a quality, found by least squares from all
    pairs of variance 1, has the variance g of their rests, and that of its own part in full.
    """
    off = ~np.eye(len(count), dtype=bool)
    square, product, size_square = rows
    pairs = (count * off).sum(axis=1)
    mean = (total * off).sum(axis=1) / np.maximum(pairs, 1.0)
    partners = size_square / np.maximum(pairs, 1.0)
    together = np.maximum(square - 2.0 * mean * product + mean**2 * size_square, 0.0)
    alone = np.maximum((scatter * off).sum(axis=1), 1e-300)
    shared = np.clip((together / alone - 1.0) / np.maximum(partners - 1.0, 1e-9), 0.0, 0.5)
    shared = np.where(partners > 1.5, shared, 0.0)
    g = (partners - 2.0 + (partners + 1.0) / (2.0 * np.maximum(partners, 1.0))) / np.maximum(partners - 1.0, 0.5) ** 2
    return np.sqrt(np.maximum(1.0 + shared * (1.0 / np.maximum(g, 1e-3) - 2.0), 1.0))


def _mean_and_scatter(total: FloatArray, square: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = total / np.maximum(count, 1.0)
    return mean, np.maximum(square - count * mean**2, 0.0)


def _error(deviation: FloatArray, count: FloatArray, pooled: float) -> FloatArray:
    scatter = (count * deviation**2 + BORROWED_ITEMS * pooled) / (count + BORROWED_ITEMS)
    return np.asarray(np.sqrt(scatter / np.maximum(count, 1.0)))
