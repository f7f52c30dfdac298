"""The fit of hypotheses about the sources: maxima and Laplace evidences, a batch of them at once.

The model is written down in `consilience.estimation.trust`. Unknowns of a hypothesis are the realized qualities ``u``
of the sources and the shares ``x`` of its groups, ``z = (u, x)``. What is minimized is a sum of squares,

    cost(z) = (z - c)' Q (z - c) / 2                                         the prior
            + power / 2 (y - f(z))' S^-1 (y - f(z))                          the pairs, S from `_PairErrors`
            + (g - f(z))' S_g^-1 (g - f(z)) / 2                              known labels

by Levenberg-Marquardt. All arrays begin with the row of the hypothesis; rows that have arrived leave the batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.estimation.pair_table import LIMIT, Forward, PairTable
from consilience.estimation.protocol import MEAN, SPREAD
from consilience.estimation.scatter import Scatter

__all__ = [
    "COPIES",
    "KINDS",
    "SCHOOLS",
    "Beliefs",
    "Problem",
    "beliefs",
    "fit",
    "mean_sign",
    "normal_below",
]

#: What the members of a group have in common: they repeat each other, vote around one version of the truth, or are just
#: about equally good.
COPIES, SCHOOLS, KINDS = 0, 1, 2
#: Degrees of freedom of the t distribution of u: a few good sources among many poor ones are not surprising.
TAILS = 3.0
#: The share of sources that know nothing at all is Beta(1, this): one in five, give or take.
USELESS = 4.0
#: Softness of "more than half of the sources": one source of twenty.
HALF = 0.05
#: With known labels, probability that most sources follow one error, or oppose the truth; without, it is ruled out.
CONTRARY = 0.001
#: Probability that those who repeat each other word for word may be most sources, as they are one voice.
OUTVOTED = 0.05
#: The logistic function with this slope is within .01 of the normal distribution: x ~ N(0, 1) makes k^2 ~ U(0, 1).
SLOPE = 1.702
#: Correlation of x between the members of a group of copies.
ALIKE = 0.8
#: Correlation of quality inside a kind.
PEERS = 0.9
#: The variance of a nearly perfect source, or of an exact copy, is not trusted below a tenth.
FLOOR = 0.1
#: Nor is k above this.
EXACT = 0.995
#: Rows of a batch are taken together up to so many pairs of sources: their arrays stay in the cache.
PAIRS = 32_000
#: Votes of all magnitudes have agreements that nobody can reckon with. An error beyond the first says less than a
#: millionth of a vote; perfect sources agree by one, so that beyond the second all is error.
VAGUE, BEYOND = 1e3, 10.0
#: Beyond so many unknowns steps are found by conjugate gradients.
DIRECT = 200
#: Rows leave the batch when at most this share of them has not arrived yet.
STAY = 0.75

# The C library returns freed arrays to the system, which has to clear their pages when the next round asks for them
# again. Once an array of 16 MB was freed, it keeps so much for itself. Nothing is written to this one.
np.empty(2**21)


@dataclass(frozen=True)
class Problem:
    """The table of pairs as the fit needs it; sources in any order."""

    m: int  # number of sources
    value: FloatArray  # (m, m) agreements, 0 where a pair does not count
    usable: BoolArray  # (m, m)
    upper: BoolArray  # (m, m) the same, each pair once
    barred: FloatArray  # (m, m) infinite where a pair does not count, else 0
    variance: FloatArray  # (m, m) of the sampling
    unit: FloatArray  # (m, m) the same over one minus the squared agreement
    weight: FloatArray  # (m, m) of a pair where the fit begins, 0 where it does not count
    overlap: FloatArray  # (m, m) which part of a source's votes is on items of the other one
    power: float  # of the likelihood of the pairs
    follows: float  # what a source's quality, or share in an error, must exceed to say that it follows something
    luck: FloatArray  # (m,) variance of the realized quality, times 1 - q^2
    forward: Forward
    gold: FloatArray | None  # (2, m) agreement with known labels, and its precision
    scatter: Scatter | None  # of agreement from item to item

    @classmethod
    def of(cls, table: PairTable, forward: Forward, order: IntArray) -> Problem:
        """Return the problem of a table whose sources are taken in this order."""
        m = table.n_sources
        pick = np.ix_(order, order)
        usable = (table.usable & np.isfinite(table.value) & (table.error < VAGUE))[pick]
        both = np.maximum(np.asarray(table.both, dtype=np.float64)[pick], 1.0)
        votes = np.diag(both)
        value = np.clip(np.where(usable, table.value[pick], 0.0), -BEYOND, BEYOND)
        # Sources that have never disagreed may disagree on one of the next items.
        error = np.maximum(np.where(usable, table.error[pick], 1.0), 1.0 / (both + 1.0))
        overlap = np.minimum(both / votes[:, None], 1.0)
        # Many sources on few items agree by chance in whole clusters: by Marchenko and Pastur, the spectrum of a table
        # of m sources on n items is wider by m / n than independent errors of its pairs would make it.
        crowded = float(np.mean(overlap.sum(axis=1) / votes))
        # A source follows something if its squared quality, or share in an error, is beyond two standard errors.
        follows = float(np.sqrt(2.0 * np.median(error[usable]) / np.sqrt(m - 1.0))) if usable.any() else 1.0
        single = error**2 * both / (1.0 - np.clip(value, -0.95, 0.95) ** 2)
        unit = float(np.median(single[usable])) if usable.any() else 1.0
        gold = None
        if table.has_gold and table.gold_value is not None and table.gold_error is not None:
            known = ((table.gold_error < VAGUE) & np.isfinite(table.gold_value))[order]
            exact = np.maximum(np.where(known, table.gold_error[order], 1.0), 1.0 / (votes + 1.0))
            gold = np.where(known, [np.clip(table.gold_value[order], -BEYOND, BEYOND), 1.0 / exact**2], 0.0)
        power, scatter = 1.0 / (1.0 + crowded), None
        if table.scatter is not None and m <= DIRECT:
            scatter = Scatter.of(table.scatter[pick], value, both, usable, power)
        variance = error**2
        weight = np.where(usable, 1.0 / (variance + (np.median(variance[usable]) if usable.any() else 1.0)), 0.0)
        spread, luck = variance / np.maximum(1.0 - value**2, FLOOR), unit / votes
        upper, barred = np.triu(usable), np.where(usable, 0.0, np.inf)
        found = value, usable, upper, barred, variance, spread, weight, overlap, power, follows, luck
        return cls(m, *found, forward, gold, scatter)

    def features(self, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the features of qualities and their slope, each ``(*u.shape, k)``, and the signs ``(k,)``."""
        grid, phi, sign = self.forward.grid, self.forward.phi, self.forward.sign
        if grid is None or phi is None or sign is None:
            q = np.tanh(u)[..., None]
            return q, 1.0 - q**2, np.ones(1)
        step = grid[1] - grid[0]
        place = np.minimum(np.maximum((u - grid[0]) / step, 0.0), len(grid) - 1.001)
        low = place.astype(np.int64)
        one = phi.take(low, axis=0)
        change = phi.take(low + 1, axis=0) - one
        return one + (place - low)[..., None] * change, change / step, sign

    def agreement(self, u: FloatArray) -> FloatArray:
        """Return the expected agreements ``(m, m)`` of independent sources of these qualities."""
        phi, _, sign = self.features(u)
        expected: FloatArray = (phi * sign) @ phi.T
        return expected


@dataclass(frozen=True)
class _Rows:
    """Arrays with a row for every hypothesis."""

    def take(self, rows: IntArray) -> Self:
        """Return some of the rows."""
        return type(self)(*[None if value is None else value[rows] for value in vars(self).values()])


@dataclass(frozen=True)
class _Layout(_Rows):
    """Who is in a group with whom, and where the shares are among the unknowns."""

    tau: FloatArray  # (B,)
    omega: FloatArray  # (B,)
    school: BoolArray  # (B, 1)
    peers: BoolArray  # (B, 1) kinds
    size: FloatArray  # (B, m) of each source's group
    leads: FloatArray  # (B, m) 1 for the first of a group
    same: FloatArray  # (B, m, m) 1 in one group
    bears: FloatArray  # (B, m, m) 1 where the first source's group bears the error of the pair: the larger of the two
    member: BoolArray  # (B, m) shares errors with its group
    spot: FloatArray  # (B, m, p) 1 where a source has this share
    share: IntArray  # (B, p) a source that has this share
    group: FloatArray  # (B, g, m) 1 for the members of a group that shares errors
    prior: FloatArray  # (B, p, p) precision of x
    log: FloatArray  # (B,) log determinant of the covariance of x

    @classmethod
    def of(cls, group: IntArray, form: IntArray, tau: FloatArray, omega: FloatArray) -> _Layout:
        m = group.shape[1]
        row = np.arange(len(group))[:, None]
        equal = group[:, :, None] == group[:, None, :]
        size = equal.sum(axis=2)
        leader = equal.argmax(axis=2)
        leads = leader == np.arange(m)
        rank = size * m - group  # larger groups first, then earlier ones
        school, peers = (form == SCHOOLS)[:, None], (form == KINDS)[:, None]
        member = (size > 1) & ~peers
        number = np.cumsum(leads & member, axis=1)[row, leader] - 1
        place = np.where(school, number, np.cumsum(member, axis=1) - 1)
        places = np.arange(int(place.max(where=member, initial=-1)) + 1)
        groups = np.arange(int(number.max(where=member, initial=-1)) + 1)
        spot = ((place[:, :, None] == places) & member[:, :, None]).astype(np.float64)
        apart = ((number[:, None, :] == groups[:, None]) & member[:, None, :]).astype(np.float64)
        share = spot.argmax(axis=1)
        # Copies repeat their group about equally often: correlation ALIKE. Of schools there is one share each.
        taken = spot.any(axis=1)
        copied = np.where(~school & taken, ALIKE, 0.0)[:, :, None]
        count = size[row, share][:, :, None]
        mates = equal[row[:, :, None], share[:, :, None], share[:, None, :]] & taken[:, None, :]
        prior = (np.eye(len(places)) - np.where(mates, copied / (1.0 + (count - 1.0) * copied), 0.0)) / (1.0 - copied)
        log = (size - 1) * np.log(1.0 - ALIKE) + np.log(1.0 + (size - 1) * ALIKE)
        return cls(
            tau,
            omega,
            school,
            peers,
            size.astype(np.float64),
            leads.astype(np.float64),
            equal.astype(np.float64),
            (rank[:, :, None] > rank[:, None, :]).astype(np.float64),
            member,
            spot,
            share,
            apart,
            prior,
            (log * (leads & member & ~school)).sum(axis=1),
        )

    def sum(self, values: FloatArray) -> FloatArray:
        """Return for every source the sum over its group."""
        return _times(self.same, values)

    def k(self, point: FloatArray) -> FloatArray:
        """Return k, where k^2 is the share of a source's error variance that it has in common with its group.

        Copies: k^2 is uniform. Schools: all vote around one version of the truth, of squared quality 1 / (1 + c^2),
        which is uniform; who follows it better has more of its error in common with the others.
        """
        if not self.spot.shape[2]:
            return np.zeros(self.size.shape)
        odds = np.exp(SLOPE * point[:, 1])
        near = np.minimum(np.sqrt(odds) * np.abs(np.sinh(point[:, 0])), EXACT)
        return np.where(self.member, np.where(self.school, near, np.sqrt(odds / (1.0 + odds))), 0.0)


def _outer(one: FloatArray, two: FloatArray) -> FloatArray:
    product: FloatArray = one[:, :, None] * two[:, None, :]
    return product


def _diagonal(matrices: FloatArray) -> FloatArray:
    """Return a view of the diagonals, to change them in place."""
    size = matrices.shape[2]
    return matrices.reshape(len(matrices), size * size)[:, :: size + 1]


def _turn(matrices: FloatArray) -> FloatArray:
    return matrices.transpose(0, 2, 1)


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix and its vector."""
    product: FloatArray = (matrices @ vectors[:, :, None])[:, :, 0]
    return product


@dataclass(frozen=True)
class _PairErrors(_Rows):
    """The covariance of the agreements: own errors of the pairs, and what a group shares against an outsider.

    With ``D`` diagonal and one vector ``v_gb`` for every group and outsider, ``S = D + sum v v'``, and by Woodbury
    ``S^-1 = D^-1 - sum (D^-1 v)(D^-1 v)' / (1 + v' D^-1 v)``. Everything is times the power of the likelihood.
    """

    precision: FloatArray  # (B, m, m)
    shared: FloatArray  # (B, m, m) (D^-1 v): of the pair of a member and an outsider
    weight: FloatArray  # (B, g, m) power / (1 + v' D^-1 v)
    by_member: FloatArray  # (B, m, m) the same for each member
    log: FloatArray  # (B,) power times log determinant
    k: FloatArray  # (B, m) at the reference
    luck: FloatArray  # (B, m) standard deviation of the realized quality
    common: FloatArray  # (B, m) share of this luck that the members have in common
    gold: FloatArray | None  # (B, 3, m) known labels: own precision, load times precision, 1 + v' D^-1 v

    @classmethod
    def of(cls, problem: Problem, layout: _Layout, reference: FloatArray) -> _PairErrors:
        """Return the errors if `reference` is where the sources are."""
        m, upper = problem.m, problem.upper
        quality = np.tanh(reference[:, 0])
        rest = np.maximum(1.0 - quality**2, FLOOR)
        luck = np.sqrt(problem.luck / rest)
        k = np.minimum(layout.k(reference), EXACT)
        common = np.zeros_like(k)
        fitted = _outer(quality, quality)
        one = rest[:, :, None]
        if layout.spot.shape[2]:
            part = k * np.sqrt(rest)
            fitted += layout.same * _outer(part, part)
            one = np.where(layout.same, one * np.maximum(1.0 - k**2, FLOOR)[:, :, None], one)
            # Members have luck in common on items that they share.
            mates = np.vecdot(layout.same, problem.overlap) - np.diag(problem.overlap)
            common = k * np.sqrt(np.maximum(mates, 0.0) / np.maximum(layout.size - 1.0, 1.0))
        two = _turn(one)
        # Which part of a pair's variance belongs to that pair alone; the rest is luck of its sources. Luck on items
        # that a source did not share with the other one says nothing about this pair.
        both, left = one * two, 1.0 - problem.overlap
        own = both + (one - both) * left + (two - both) * left.T
        own /= one + two - both
        # The scatter goes with one minus the squared agreement: with that of the fit, not that of this table, or a pair
        # that agrees by luck would also look exact.
        own *= problem.unit * np.maximum(1.0 - fitted**2, FLOOR)
        gold = None
        if problem.gold is not None:
            known = problem.gold[1] > 0.0
            precise = problem.gold[1] / np.maximum(1.0 - k**2, FLOOR)
            load = precise * k / np.sqrt(np.where(known, problem.gold[1], 1.0)) * known
            whole = 1.0 + layout.sum(precise * k**2 / np.where(known, problem.gold[1], 1.0) * known)
            gold = np.stack([precise, load, whole], axis=1)
        square = layout.omega[:, None, None] ** 2 + problem.barred
        groups = layout.group
        if not groups.shape[1]:
            total = own + square
            log = problem.power * np.log(total[:, upper]).sum(axis=1)
            nothing = np.zeros((len(k), 0, m))
            return cls(problem.power / total, nothing, nothing, nothing, log, k, luck, common, gold)
        # The error of a pair is shared by all members of the larger of its two groups.
        bears = layout.bears * common[:, :, None]
        load = bears * np.sqrt(own)
        total = own * np.maximum(1.0 - (bears + _turn(bears)) ** 2, FLOOR) + square
        shared = load / total
        whole = 1.0 + groups @ (load * shared)
        weight = problem.power / whole
        log = problem.power * (np.log(total[:, upper]).sum(axis=1) + np.log(whole).sum(axis=(1, 2)))
        by_member = _turn(groups) @ weight
        return cls(problem.power / total, shared, weight, by_member, log, k, luck, common, gold)


@dataclass(frozen=True)
class _Prior(_Rows):
    """The prior of the realized u, a block for each group and the common mean, as a normal distribution; and of x."""

    precision: FloatArray  # (B, L, L) of z
    quad: FloatArray  # (B, m, m) of u
    inside: FloatArray  # (B, m) standard deviation of the lasting u that is the group's
    scale: FloatArray  # (B, m) standard deviation of the lasting u
    log: FloatArray  # (B,) log determinant of the covariance, and what t has over the normal distribution

    @classmethod
    def of(cls, layout: _Layout, errors: _PairErrors, point: FloatArray, heavy: bool) -> _Prior:
        """Return the prior, with the curvature that the t distribution has at this point, or a normal one."""
        m = layout.size.shape[1]
        square, log = _t_variances(layout, errors.luck, point[:, 0]) if heavy else (layout.tau[:, None] ** 2, 0.0)
        scale = np.sqrt(np.broadcast_to(square, layout.size.shape))
        # Who repeats a share k of the votes of one original has its own quality on the rest.
        alike = errors.k**2 / (errors.k**2 + (1.0 - errors.k) ** 2)
        alike = np.where(layout.peers & (layout.size > 1.0), PEERS, alike)
        inside = scale * np.sqrt(alike)
        spare = square * (1.0 - alike) + errors.luck**2 * (1.0 - errors.common**2)
        quad = np.zeros_like(layout.same)
        _diagonal(quad)[...] = 1.0 / spare
        log = log + np.log(spare).sum(axis=1)
        if (layout.size > 1.0).any():
            # K = diag(spare) + v v' + w w' in a group: quality and luck that its members have in common.
            shared = errors.common * errors.luck
            v, w = inside / spare, shared / spare
            vv, vw, ww = 1.0 + layout.sum(v * inside), layout.sum(v * shared), 1.0 + layout.sum(w * shared)
            det = vv * ww - vw**2
            quad -= layout.same * (_outer(v / det, ww * v - vw * w) + _outer(w / det, vv * w - vw * v))
            log = log + (layout.leads * np.log(det)).sum(axis=1)
        ones = quad.sum(axis=2)
        whole = 1.0 + SPREAD**2 * ones.sum(axis=1)
        quad -= _outer(ones * (SPREAD**2 / whole)[:, None], ones)
        log = log + np.log(whole)
        precision = quad
        if layout.spot.shape[2]:
            length = m + layout.spot.shape[2]
            precision = np.zeros((len(quad), length, length))
            precision[:, :m, :m] = quad
            precision[:, m:, m:] = layout.prior
            log = log + layout.log
        return cls(precision, quad, inside, scale, log)


def _t_variances(layout: _Layout, luck: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance of every source that a normal prior needs to have the slope of the t distribution at u.

    The level of a group is drawn once. Also returns minus twice what its log density exceeds that of the normal one by.
    """
    level, noise = layout.sum(u) / layout.size, (layout.sum(luck) / layout.size) ** 2
    least = TAILS * layout.tau[:, None] ** 2
    square, middle = least / TAILS, u.mean(axis=1, keepdims=True)
    for turn in range(6):
        total = square + noise
        if turn:
            weight = layout.leads / total
            middle = (np.vecdot(weight, level) / weight.sum(axis=1))[:, None]
        # The part of the distance that will last; the rest is luck on these items.
        away = ((level - middle) * square / total) ** 2
        square = (least + away) / (TAILS + 1.0)
    excess = np.log(2.0 * square / least) + away / square - (TAILS + 1.0) * np.log(1.0 + away / least)
    excess += 2.0 * (math.lgamma(0.5 * (TAILS + 1.0)) - math.lgamma(0.5 * TAILS))
    return square, -(layout.leads * excess).sum(axis=1)


@dataclass(frozen=True)
class _Squares(_Rows):
    """What the cost of a point depends on: prior and errors, see there, and the layout.

    The last ones are of the sources that share errors in some row, o of them; the others have no part in any group.
    """

    prior: FloatArray
    precision: FloatArray
    gold: FloatArray | None
    leads: FloatArray
    same: FloatArray
    school: BoolArray
    weight: FloatArray
    member: BoolArray  # (B, o)
    spot: FloatArray  # (B, o, p)
    group: FloatArray  # (B, g, o)
    shared: FloatArray  # (B, o, m)
    by_member: FloatArray  # (B, o, m)

    @classmethod
    def of(cls, layout: _Layout, errors: _PairErrors, prior: _Prior, own: slice | IntArray) -> _Squares:
        shared = own if layout.group.shape[1] else slice(None)
        return cls(
            prior.precision,
            errors.precision,
            errors.gold,
            layout.leads,
            layout.same,
            layout.school,
            errors.weight,
            layout.member[:, own],
            layout.spot[:, own],
            layout.group[:, :, own],
            errors.shared[:, shared],
            errors.by_member[:, shared],
        )


def _pairs(own: slice | IntArray) -> tuple[slice, slice | IntArray, slice | IntArray]:
    """Return the index of the pairs of these sources."""
    return (slice(None), own, own) if isinstance(own, slice) else (slice(None), own[:, None], own)


def _terms(
    problem: Problem, of: _Squares, own: slice | IntArray, z: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return cost, downhill direction and Gauss-Newton Hessian at a point."""
    m = problem.m
    u, centered = z[:, :m], z.copy()
    centered[:, :m] -= MEAN
    gradient = -_times(of.prior, centered)
    cost = -0.5 * np.vecdot(gradient, centered)
    down = gradient[:, :m]
    phi, slope, sign = problem.features(u)
    if len(sign) == 1:
        signed = sign * phi[:, :, 0]
        fitted, by = _outer(phi[:, :, 0], signed), _outer(slope[:, :, 0], signed)
    else:
        signed = _turn(phi * sign)
        fitted, by = phi @ signed, slope @ signed
    shares = of.spot.shape[2] > 0
    pairs = _pairs(own)
    if shares:
        # What two members of a group have in common is the product of their parts. Only members have any.
        odds = np.exp(SLOPE * _times(of.spot, z[:, m:]))
        square = np.where(of.school, odds, odds / (1.0 + odds))
        k, quality = of.member * np.sqrt(square), np.tanh(u[:, own])
        rest = np.sqrt(1.0 - quality**2)
        part = k * np.where(of.school, quality, rest)
        part_by = k * rest * np.where(of.school, rest, -quality)
        part_by_x = 0.5 * SLOPE * np.where(of.school, 1.0, 1.0 - square)
        by_mate = of.same[pairs] * part[:, None, :]
        both = by_mate * part[:, :, None]
        by_mate *= part_by[:, :, None]
        fitted[pairs] += both
        by[pairs] += by_mate
    residual = np.subtract(problem.value, fitted, out=fitted)
    weighted, steep, by_turned = of.precision * residual, of.precision * by, _turn(by)
    cost += 0.25 * np.vecdot(weighted.reshape(len(z), -1), residual.reshape(len(z), -1))
    down += np.vecdot(weighted, by)
    block = steep * by_turned
    diagonal = np.vecdot(steep, by)
    if shares:
        # The agreement of a pair changes with x of one source by `both` times that source's own factor.
        of_x = of.spot * part_by_x[:, :, None]
        slots = _turn(of_x)
        gradient[:, m:] += _times(slots, np.vecdot(weighted[pairs], both))
        cross, flat = steep[pairs] * both, of.precision[pairs] * both
        flat *= both
        hessian = np.empty_like(of.prior)
        if not isinstance(own, slice):
            hessian[:, :m, m:] = 0.0
        hessian[:, own, m:] = _with_sums(cross) @ of_x
        hessian[:, m:, :m] = _turn(hessian[:, :m, m:])
        hessian[:, m:, m:] = of.prior[:, m:, m:] + slots @ (_with_sums(flat) @ of_x)
        # Errors that the members share with an outsider.
        falls = of.shared * by[:, own]
        total = of.group @ (of.shared * residual[:, own])
        last = of.group @ (of.shared * by_turned[:, own])
        total_weighted, last_weighted = of.weight * total, of.weight * last
        members = _turn(of.group)
        cost -= 0.5 * np.vecdot(total_weighted.reshape(len(z), -1), total.reshape(len(z), -1))
        down[:, own] -= np.vecdot(falls, members @ total_weighted)
        down -= np.einsum("bgj,bgj->bj", total_weighted, last)
        cross = members @ last_weighted
        cross *= falls
        block[:, own] -= cross
        block[:, :, own] -= _turn(cross)
        cross = (falls * of.by_member) @ _turn(falls)
        cross *= of.same[pairs]
        block[pairs] -= cross
        diagonal -= np.einsum("bgj,bgj->bj", last_weighted, last)
    if problem.gold is not None and of.gold is not None:
        # Known labels are one more column, whose quality is known; copies are right or wrong on them together, too.
        best = problem.features(np.array([LIMIT]))[0][0] * sign
        precise, load, whole = of.gold[:, 0], of.gold[:, 1], of.gold[:, 2]
        off, falls = problem.gold[0] - phi @ best, slope @ best
        total = _times(of.same, load * off) / whole
        cost += 0.5 * (off**2 * precise - of.leads * total**2 * whole).sum(axis=1)
        down += falls * (off * precise - total * load)
        diagonal += falls**2 * precise
        block -= of.same * _outer(falls * load / whole, falls * load)
    _diagonal(block)[...] += diagonal
    if not shares:
        return cost, gradient, block + of.prior
    np.add(block, of.prior[:, :m, :m], out=hessian[:, :m, :m])
    return cost, gradient, hessian


def _with_sums(matrices: FloatArray) -> FloatArray:
    """Add the sum of each row to its diagonal, in place."""
    _diagonal(matrices)[...] += matrices @ np.ones(matrices.shape[2])
    return matrices


@dataclass(frozen=True)
class _Maximum(_Rows):
    """Where the fit of each hypothesis ended."""

    point: FloatArray  # (B, 2, m) realized u; x of every source
    cost: FloatArray  # (B,)
    hessian: FloatArray  # (B, L, L)


def _maximize(
    problem: Problem, layout: _Layout, point: FloatArray, reference: FloatArray | None, rounds: int
) -> tuple[_Maximum, _PairErrors, _Prior]:
    """Return the maximum of each hypothesis, the errors of the pairs and the prior with which it was found."""
    m = problem.m
    z = np.concatenate([point[:, 0], np.take_along_axis(point[:, 1], layout.share, axis=1)], axis=1)
    z[:, m:] *= layout.spot.any(axis=1)
    errors = _PairErrors.of(problem, layout, point if reference is None else reference)
    prior = _Prior.of(layout, errors, point, heavy=rounds == 1)
    # First with the tails of a normal distribution: who begins far out would stay there. Then with those of t, and with
    # variances from what was found. A single round only looks at the point where it begins.
    if rounds > 1:
        z, _, _ = _descend(problem, layout, errors, prior, z, rounds, 0.1)
        point = _by_source(layout, z)
        if reference is None:
            errors = _PairErrors.of(problem, layout, point)
        prior = _Prior.of(layout, errors, point, heavy=True)
    z, cost, hessian = _descend(problem, layout, errors, prior, z, rounds, 0.01)
    return _Maximum(_by_source(layout, z), cost, hessian), errors, prior


def _evidence(problem: Problem, layout: _Layout, maximum: _Maximum, errors: _PairErrors, prior: _Prior) -> FloatArray:
    """Return the log evidence of each hypothesis."""
    point, hessian = maximum.point, maximum.hessian
    evidence: FloatArray = -maximum.cost - 0.5 * (errors.log + prior.log + np.linalg.slogdet(hessian)[1])
    if errors.gold is not None:
        own = np.log(np.where(errors.gold[:, 0] > 0.0, errors.gold[:, 0], 1.0))
        evidence += 0.5 * (own - layout.leads * np.log(errors.gold[:, 2])).sum(axis=1)
    evidence += _useless(problem, layout, prior, point[:, 0], hessian[:, : problem.m, : problem.m])
    majority = _majority(problem, layout, point, layout.size**0)
    if problem.scatter is None:
        return evidence + majority
    phi, _, sign = problem.features(point[:, 0])
    inside = (layout.same > 0.0) & layout.member[:, :, None]
    copies = layout.member.any(axis=1) & ~layout.school[:, 0]
    plain, told = problem.scatter.evidence(np.tanh(point[:, 0]), (phi * sign) @ _turn(phi), inside, copies)
    seen = np.logaddexp(plain, told) + majority
    if copies.any():  # those that repeat each other word for word may be one voice
        one = _majority(problem, layout, point, np.where(layout.member, 1.0 / layout.size, 1.0))
        seen = np.logaddexp(seen, told + math.log(OUTVOTED) + one)
    return evidence + seen


def _by_source(layout: _Layout, z: FloatArray) -> FloatArray:
    """Return u and x of every source, ``(B, 2, m)``."""
    m = layout.size.shape[1]
    return np.stack([z[:, :m], _times(layout.spot, z[:, m:])], axis=1)


def _solve(hessian: FloatArray, damp: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the step of Levenberg and Marquardt, with many unknowns by conjugate gradients.

    The matrix is nearly diagonal then, and the next round corrects what twenty of them leave.
    """
    damped = hessian.copy()
    diagonal = _diagonal(damped)
    diagonal *= 1.0 + damp[:, None]
    if gradient.shape[1] <= DIRECT:
        return np.asarray(np.linalg.solve(damped, gradient[:, :, None])[:, :, 0], dtype=np.float64)
    step, left = np.zeros_like(gradient), gradient.copy()
    ahead = left / diagonal
    square = first = np.einsum("bi,bi->b", left, ahead)
    for _ in range(20):
        image = (damped @ ahead[:, :, None])[:, :, 0]
        length = (square / np.maximum(np.einsum("bi,bi->b", ahead, image), 1e-300))[:, None]
        step += length * ahead
        left -= length * image
        before, square = square, np.einsum("bi,bi->b", left, left / diagonal)
        if (square <= 1e-6 * first).all():
            break
        ahead = left / diagonal + (square / np.maximum(before, 1e-300))[:, None] * ahead
    return step


def _descend(
    problem: Problem,
    layout: _Layout,
    errors: _PairErrors,
    prior: _Prior,
    z: FloatArray,
    rounds: int,
    enough: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where Levenberg-Marquardt ends, the cost there and the Hessian of the last look."""
    anywhere = layout.member.any(axis=0)
    # Picking some of the sources is worth it if they are few.
    sharers: slice | IntArray = slice(problem.m) if 2 * anywhere.sum() > problem.m else np.flatnonzero(anywhere)
    of = _Squares.of(layout, errors, prior, sharers)
    trial, active = z, np.arange(len(z))
    damp, expected, cost = np.full(len(z), 1e-3), np.ones(len(z)), np.full(len(z), 1e300)
    gradient, hessian = z, prior.precision
    ends = np.empty_like(z), np.empty_like(cost), np.empty_like(hessian)
    for turn in range(rounds + 1):
        now, gradient_now, hessian_now = _terms(problem, of, sharers, trial)
        gain = cost - now
        better = gain >= -1e-12
        if not better.all():
            worse = np.flatnonzero(~better)
            for new, old in ((trial, z), (now, cost), (gradient_now, gradient), (hessian_now, hessian)):
                new[worse] = old[worse]
        z, cost, gradient, hessian = trial, now, gradient_now, hessian_now
        # The closer the gain is to what the parabola predicted, the longer the next step may be.
        surplus = np.minimum(np.maximum(2.0 * gain / expected - 1.0, -1.0), 1.0)
        damp = damp * np.where(better, np.maximum(1.0 - surplus**3, 1.0 / 3.0), 10.0)
        damp = np.maximum(damp, np.where(better, 1e-6, 1e-2))
        step = _solve(hessian, damp, gradient)
        short = np.abs(step).max(axis=1) <= 1.0
        trial = np.minimum(np.maximum(z + np.minimum(np.maximum(step, -1.0), 1.0), -LIMIT), LIMIT)
        step = trial - z
        expected = np.vecdot(gradient - 0.5 * _times(hessian, step), step)
        # A step that hardly gains is the last one, and is accepted without evaluating it again.
        last = short & (expected >= 0.0) & (expected < enough)
        going = ~last & ~(better & (gain < enough)) & (damp < 1e6)
        if turn == rounds:
            going[:] = False
        # Rows leave the batch when this saves time. Until then, further steps only improve them.
        if going.mean() < STAY:
            gone = np.flatnonzero(~going)
            own, last = active[gone], last[gone]
            ends[0][own] = np.where(last[:, None], trial[gone], z[gone])
            ends[1][own], ends[2][own] = cost[gone] - np.where(last, expected[gone], 0.0), hessian[gone]
            rest = np.flatnonzero(going)
            if not len(rest):
                break
            active, damp, expected, trial = active[rest], damp[rest], expected[rest], trial[rest]
            z, cost, gradient, hessian = z[rest], cost[rest], gradient[rest], hessian[rest]
            of = of.take(rest)
    return ends


@cache
def _nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return shares of useless sources between 0 and 1, and the log weights of their Beta(1, USELESS) distribution."""
    node, weight = np.polynomial.legendre.leggauss(count)
    share = (node + 1.0) / 2.0
    return share, np.log(weight / 2.0 * USELESS * (1.0 - share) ** (USELESS - 1.0))


def _useless(problem: Problem, layout: _Layout, prior: _Prior, u: FloatArray, hessian: FloatArray) -> FloatArray:
    """Return what the evidence gains if sources may know nothing at all, any share of them (a beta distribution).

    For each level of quality, which is drawn once for a group, a ratio of Savage and Dickey: the posterior density at
    zero over the prior one there says by how much the table prefers that it knows nothing.
    """
    weight = 1.0 / (prior.scale**2 + problem.luck) / layout.size
    middle = MEAN / SPREAD**2 + (weight * u).sum(axis=1, keepdims=True)
    middle /= 1.0 / SPREAD**2 + weight.sum(axis=1, keepdims=True)
    level, chance = layout.sum(u) / layout.size, (layout.same @ problem.luck) / layout.size
    total = chance + 1.0 / layout.sum(np.vecdot(layout.same, hessian))
    square = TAILS * (layout.tau[:, None] ** 2 + chance)
    ratio = -0.5 * level**2 / total - 0.5 * np.log(2.0 * total / square)
    ratio += 0.5 * (TAILS + 1.0) * np.log(1.0 + (level * chance / total - middle) ** 2 / square)
    ratio += math.lgamma(0.5 * TAILS) - math.lgamma(0.5 * (TAILS + 1.0))
    odds = layout.leads * np.expm1(np.minimum(ratio, 50.0))
    # The integral over the share of a polynomial of at most degree m + USELESS - 1: exact up to 200 sources.
    share, log = _nodes(min(problem.m // 2 + 3, 103))
    log = log + np.log1p(odds[:, :, None] * share).sum(axis=1)
    top = log.max(axis=1)
    gain: FloatArray = top + np.log(np.exp(log - top[:, None]).sum(axis=1))
    return gain


def normal_below(x: FloatArray) -> FloatArray:
    """Return the normal distribution function."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x])


def _majority(problem: Problem, layout: _Layout, point: FloatArray, voice: FloatArray) -> FloatArray:
    """Return the log probability that no single error is what most sources follow, and that most do not oppose truth.

    A source counts as far as it follows anything: its quality and its share of the group's error against chance. It
    counts for `voice` sources ``(B, m)``.
    """
    contrary = 0.0 if problem.gold is None else CONTRARY
    quality = np.tanh(point[:, 0])
    truth, error = quality**4, (layout.k(point) ** 2 * (1.0 - quality**2)) ** 2
    seen = (truth + error + problem.follows**4) / voice
    most = layout.sum(error / seen).max(axis=1) / (1e-9 + ((truth + error) / seen).sum(axis=1))
    probable = normal_below((0.5 - most) / HALF) * normal_below(mean_sign(problem, point[:, 0]) / (2.0 * HALF))
    return np.log(np.maximum(contrary + (1.0 - contrary) * probable, 1e-300))


def mean_sign(problem: Problem, u: FloatArray) -> FloatArray:
    """Return the mean sign of the qualities; who is within chance of zero has hardly any."""
    quality = np.tanh(u)
    mean: FloatArray = (quality / np.sqrt(quality**2 + problem.follows**2)).mean(axis=1)
    return mean


def _begin(problem: Problem, layout: _Layout) -> FloatArray:
    """Return where to begin: power iterations on the agreements between groups, then the shares inside."""
    usable = problem.usable
    weight = problem.weight
    inside = layout.same * layout.member[:, :, None]
    between = weight * (1.0 - inside)
    agreement = between * problem.value
    level = agreement.sum(axis=(1, 2)) / (2e-9 + between.sum(axis=(1, 2)))
    q = np.repeat(np.sqrt(np.clip(level, 0.05, 0.9))[:, None], problem.m, axis=1)
    for _ in range(12):
        below = _times(between, q**2)
        new = 0.5 * (q + _times(agreement, q) / np.maximum(below, 1e-9))
        q = np.where(below > 1e-9, np.minimum(np.maximum(new, -0.97), 0.97), q)
    x = np.zeros_like(q)
    if layout.spot.shape[2]:
        mates = inside * usable
        rest = np.sqrt(np.maximum(_outer(1.0 - q**2, 1.0 - q**2), 0.01))
        sums = np.stack([(mates * (problem.value - _outer(q, q)) / rest).sum(axis=2), mates.sum(axis=2)], axis=2)
        sums = np.concatenate([sums, sums[:, :, 1:] * q[:, :, None] ** 2], axis=2)
        # One share for a school, one for each copy.
        sums = np.where(layout.school[:, :, None], layout.same @ sums, sums)
        share, square = sums[:, :, 0] / np.maximum(sums[:, :, 1], 1.0), sums[:, :, 2] / np.maximum(sums[:, :, 1], 1.0)
        share, square = np.clip(share, 0.05, 0.95), np.clip(square, 0.05, 0.9)
        odds = np.where(layout.school, share * (1.0 - square) / square, share / (1.0 - share))
        x = np.where(layout.member, np.clip(np.log(odds) / SLOPE, -3.0, 3.0), 0.0)
    q *= np.where(q.sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
    return np.stack([np.arctanh(q), x], axis=1)


def _chunks(
    problem: Problem,
    group: IntArray,
    form: IntArray,
    tau: FloatArray,
    omega: FloatArray,
    begin: FloatArray | None,
    reference: FloatArray | None,
    rounds: int,
) -> Iterator[tuple[IntArray, _Layout, _Maximum, _PairErrors, _Prior]]:
    """Fit the hypotheses in batches that are small enough, those with as many unknowns together."""
    followers = np.where(form == KINDS, 0, problem.m - 1 - group.max(axis=1))
    most = max(1, PAIRS // problem.m**2)
    order = np.argsort(followers, kind="stable")
    alone = int((followers == 0).sum())
    for part in (order[:alone], order[alone:]):
        for start in range(0, len(part), most):
            rows = part[start : start + most]
            layout = _Layout.of(group[rows], form[rows], tau[rows], omega[rows])
            where = _begin(problem, layout) if begin is None else begin[rows]
            found = _maximize(problem, layout, where, None if reference is None else reference[rows], rounds)
            yield rows, layout, *found


def fit(
    problem: Problem,
    group: IntArray,
    form: IntArray,
    tau: FloatArray,
    omega: FloatArray,
    begin: FloatArray | None = None,
    reference: FloatArray | None = None,
    rounds: int = 25,
) -> tuple[FloatArray, FloatArray]:
    """Return the maximum of each hypothesis, ``(B, 2, m)`` u and x of every source, and its log evidence.

    A hypothesis has groups ``(B, m)``, a form, a spread and a misfit. The variances are taken at `reference`; without
    one, where the fit is, first at its beginning and then at its end.
    """
    point, evidence = np.zeros((len(group), 2, problem.m)), np.zeros(len(group))
    for rows, layout, maximum, errors, prior in _chunks(problem, group, form, tau, omega, begin, reference, rounds):
        point[rows] = maximum.point
        evidence[rows] = _evidence(problem, layout, maximum, errors, prior)
    return point, evidence


@dataclass(frozen=True)
class Beliefs(_Rows):
    """Posterior of the lasting u and of its mean mu, for every hypothesis."""

    mean: FloatArray  # (B, m)
    covariance: FloatArray  # (B, m, m)
    k: FloatArray  # (B, m)
    middle: FloatArray  # (B,) of mu
    middle_spread: FloatArray  # (B,)


def beliefs(
    problem: Problem,
    group: IntArray,
    form: IntArray,
    tau: FloatArray,
    omega: FloatArray,
    point: FloatArray,
    reference: FloatArray,
) -> Beliefs:
    """Return what hypotheses that were fitted say about the lasting qualities."""
    m, rows = problem.m, len(group)
    found = Beliefs(np.zeros((rows, m)), np.zeros((rows, m, m)), np.zeros((rows, m)), np.zeros(rows), np.zeros(rows))
    for own, layout, maximum, _, prior in _chunks(problem, group, form, tau, omega, point, reference, 1):
        u = maximum.point[:, 0]
        # Exact copies on few items leave directions that nothing determines, hence a tiny ridge.
        hessian = maximum.hessian
        _diagonal(hessian)[...] += 1e-9 * _diagonal(hessian).sum(axis=1, keepdims=True)
        inverse = np.linalg.inv(hessian)[:, :m, :m]
        lasting = layout.same * _outer(prior.inside, prior.inside)
        _diagonal(lasting)[...] = prior.scale**2
        lasting += SPREAD**2
        keep = lasting @ prior.quad
        away = (u - MEAN)[:, :, None]
        found.mean[own] = MEAN + (keep @ away)[:, :, 0]
        covariance = keep @ inverse @ _turn(keep) + lasting - keep @ lasting
        found.covariance[own] = (covariance + _turn(covariance)) / 2.0
        found.k[own] = layout.k(maximum.point)
        pull = SPREAD**2 * prior.quad.sum(axis=1)
        found.middle[own] = MEAN + (pull * (u - MEAN)).sum(axis=1)
        seen = SPREAD**2 * (1.0 - pull.sum(axis=1)) + np.einsum("bi,bij,bj->b", pull, inverse, pull)
        found.middle_spread[own] = np.sqrt(np.maximum(seen, 1e-12))
    return found
