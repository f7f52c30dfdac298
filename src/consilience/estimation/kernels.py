"""The fit of one hypothesis about the sources, compiled: a maximum and a Laplace evidence.

The model is written down in `consilience.estimation.trust`. Unknowns are the realised qualities ``u`` of the sources,
followed by the shares ``x`` of the groups: one per member, or one per group, as `slot` says.
"""

from __future__ import annotations

import math
from pathlib import Path

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["COPIES", "KINDS", "SCHOOLS", "fit_hypothesis", "is_compiled", "start_point"]

#: The logistic function with this slope is within .01 of the normal distribution: x ~ N(0, 1) makes k^2 ~ U(0, 1).
SLOPE = 1.702
#: Correlation of x between the members of a group of copies.
ALIKE = 0.8
#: The variance of a nearly perfect source, or of an exact copy, is not trusted below a tenth.
FLOOR = 0.1
#: Beyond so many unknowns steps are found by conjugate gradients.
MANY = 200
#: Agreements of the pairs, which of them count, their sampling variances; which part of a source's votes is on items of
#: the other one; power of the likelihood of the pairs; variance of realised quality times ``1 - q^2``.
Pairs = tuple[FloatArray, BoolArray, FloatArray, FloatArray, float, FloatArray]
#: What the members of a group have in common: they repeat each other, vote around one version of the truth, or are just
#: about equally good.
COPIES, SCHOOLS, KINDS = 0, 1, 2
#: Correlation of quality inside a kind.
PEERS = 0.9
#: Number of each source's group, sizes of groups, place of each source's share among the unknowns (-1: none), form.
Groups = tuple[IntArray, IntArray, IntArray, int]
#: The forward map: its grid (empty for tanh), the features there, and their signs.
Map = tuple[FloatArray, FloatArray, FloatArray]
SAFE = {"reassoc", "contract", "nsz", "arcp"}
# Called by compiled code only: without entry points for Python they compile in half of the time.
_helper = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
_fast = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, fastmath=SAFE)


def is_compiled() -> bool:
    """Return whether the engine was compiled before, by this process or by one that left it on disk."""
    if not hasattr(fit_hypothesis, "stats"):  # NUMBA_DISABLE_JIT: nothing is compiled at all
        return True
    folder = Path(str(fit_hypothesis.stats.cache_path))
    return bool(fit_hypothesis.signatures) or any(folder.glob("*.fit_hypothesis-*"))


@_helper
def _share(x: float, u: float, school: bool) -> float:
    """Return k, where k^2 is the share of a source's error variance that it has in common with its group.

    Copies: k^2 is uniform. Schools: all vote around one version of the truth, of squared quality 1 / (1 + c^2), which
    is uniform; who follows it better has more of its error in common with the others.
    """
    if school:
        return min(math.exp(0.5 * SLOPE * x) * abs(math.sinh(u)), 0.995)
    return math.sqrt(1.0 / (1.0 + math.exp(-SLOPE * x)))


@_fast
def _cholesky(matrix: FloatArray, damp: float, factor: FloatArray) -> float:
    """Fill the lower triangle of `factor`, with the diagonal raised by `damp`; return the log determinant."""
    log = 0.0
    for i in range(len(matrix)):
        for j in range(i + 1):
            total = matrix[i, j]
            if i == j:
                total += damp * total
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                total = math.sqrt(max(total, 1e-12))
                factor[i, i] = total
                log += 2.0 * math.log(total)
            else:
                factor[i, j] = total / factor[j, j]
    return log


@_fast
def _solve(factor: FloatArray, right: FloatArray, out: FloatArray) -> None:
    size = len(right)
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * out[k]
        out[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        out[i] /= factor[i, i]
        for k in range(i):
            out[k] -= factor[i, k] * out[i]


@_fast
def _solve_roughly(matrix: FloatArray, damp: float, right: FloatArray, out: FloatArray, work: FloatArray) -> None:
    """Conjugate gradients, for many sources: the matrix is nearly diagonal, and the next round corrects the rest."""
    size = len(right)
    left, ahead, image = work[0], work[1], work[2]
    size_before = 0.0
    for i in range(size):
        out[i], left[i], ahead[i] = 0.0, right[i], right[i] / matrix[i, i]
        size_before += left[i] * ahead[i]
    first = size_before
    for _ in range(20):
        curved = 1e-300
        for i in range(size):
            total = damp * matrix[i, i] * ahead[i]
            for j in range(size):
                total += matrix[i, j] * ahead[j]
            image[i] = total
            curved += ahead[i] * total
        step, size_now = size_before / curved, 0.0
        for i in range(size):
            out[i] += step * ahead[i]
            left[i] -= step * image[i]
            size_now += left[i] * left[i] / matrix[i, i]
        if size_now <= 1e-6 * first:
            break
        for i in range(size):
            ahead[i] = left[i] / matrix[i, i] + size_now / size_before * ahead[i]
        size_before = size_now


@_helper
def _features(u: FloatArray, grid: FloatArray, table: FloatArray, phi: FloatArray, slope: FloatArray) -> None:
    """Fill the features of the forward map and their slopes; an empty table means tanh."""
    for a in range(len(phi)):
        if len(grid) == 0:
            phi[a, 0] = math.tanh(u[a])
            slope[a, 0] = 1.0 - phi[a, 0] ** 2
            continue
        step = grid[1] - grid[0]
        place = min(max((u[a] - grid[0]) / step, 0.0), len(grid) - 1.001)
        low = int(place)
        for k in range(phi.shape[1]):
            rise = table[low + 1, k] - table[low, k]
            phi[a, k] = table[low, k] + (place - low) * rise
            slope[a, k] = rise / step


@numba.njit(cache=True, nogil=True, error_model="numpy")
def start_point(value: FloatArray, weight: FloatArray, groups: Groups, point: FloatArray) -> None:
    """Fill in where to begin: power iterations on the agreements between groups, then the shares inside.

    `weight` is zero where a pair does not count.
    """
    group, _, slot, form = groups
    school = form == SCHOOLS
    m, total, whole = len(value), 0.0, 1e-9
    for a in range(m):
        for b in range(a):
            if group[a] != group[b] or slot[a] < 0:
                total += weight[a, b] * value[a, b]
                whole += weight[a, b]
    level = math.sqrt(min(max(total / whole, 0.05), 0.9))
    for a in range(m):
        point[a] = level
    for _ in range(12):
        total = 0.0
        for a in range(m):
            above, below = 0.0, 0.0
            for b in range(m):
                if a != b and (group[a] != group[b] or slot[a] < 0):
                    above += weight[a, b] * value[a, b] * point[b]
                    below += weight[a, b] * point[b] ** 2
            if below > 1e-9:
                point[a] = min(max(0.5 * (point[a] + above / below), -0.97), 0.97)
            total += point[a]
    turn = -1.0 if total < 0.0 else 1.0
    for i in range(m, len(point)):
        above, below, square = 0.0, 0.0, 0.0
        for a in range(m):
            for b in range(m):
                if slot[a] == i and group[a] == group[b] and a != b and weight[a, b] > 0.0:
                    rest = math.sqrt(max((1.0 - point[a] ** 2) * (1.0 - point[b] ** 2), 0.01))
                    above += (value[a, b] - point[a] * point[b]) / rest
                    below += 1.0
                    square += point[a] ** 2
        share = min(max(above / max(below, 1.0), 0.05), 0.95)
        square = min(max(square / max(below, 1.0), 0.05), 0.9)
        odds = share * (1.0 - square) / square if school else share / (1.0 - share)
        point[i] = min(max(math.log(odds) / SLOPE, -3.0), 3.0)
    for a in range(m):
        point[a] = math.atanh(turn * point[a])


@_helper
def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@_helper
def _majority(
    point: FloatArray, groups: Groups, chance: float, half: float, contrary: float, follows: FloatArray
) -> float:
    """Return the log probability that no single error is what most sources follow, and that most do not oppose truth.

    A source counts as far as it follows anything: its quality and its share of the group's error against `chance`.
    """
    group, _, slot, form = groups
    school = form == SCHOOLS
    m, whole, sign, most = len(slot), 1e-9, 0.0, 0.0
    for g in range(m):
        follows[g] = 0.0
    for a in range(m):
        quality = math.tanh(point[a])
        k = _share(point[slot[a]], point[a], school) if slot[a] >= 0 else 0.0
        truth, error = quality**4, (k * k * (1.0 - quality**2)) ** 2
        seen = truth + error + chance**4
        whole += (truth + error) / seen
        follows[group[a]] += error / seen
        most = max(most, follows[group[a]])
        sign += quality / math.sqrt(quality**2 + chance**2) / m
    probable = _normal((0.5 - most / whole) / half) * _normal(sign / (2.0 * half))
    return math.log(max(contrary + (1.0 - contrary) * probable, 1e-300))


@_helper
def _own(one: float, two: float, overlap_one: float, overlap_two: float) -> float:
    """Return which part of a pair's variance belongs to that pair alone; the rest is luck of its sources.

    Luck on items that a source did not share with the other one says nothing about this pair.
    """
    alone = one * (1.0 - two) * (1.0 - overlap_one) + two * (1.0 - one) * (1.0 - overlap_two)
    return (one * two + alone) / (1.0 - (1.0 - one) * (1.0 - two))


@_helper
def _scales(
    point: FloatArray, lucky: FloatArray, group: IntArray, size: IntArray, tau: float, tails: float, scale: FloatArray
) -> float:
    """Fill the spread of every source: a t distribution of u, as the normal one with its curvature at this point.

    The level of a group is drawn once. Returns by how much the log density exceeds that of the normal distributions.
    """
    m, mean, excess = len(group), 0.0, 0.0
    for a in range(m):
        scale[a] = tau
        mean += point[a] / m
    for turn in range(6):
        above, below, excess = 0.0, 0.0, 0.0
        for a in range(m):
            # The first member stands for its group.
            first, level, luck = True, 0.0, 0.0
            if size[group[a]] > 1:
                for b in range(m):
                    if group[b] == group[a]:
                        first = first and b >= a
                        level += point[b] / size[group[a]]
                        luck += lucky[b] / size[group[a]]
            else:
                level, luck = point[a], lucky[a]
            # What of the distance will last: the rest is luck on these items.
            away = ((level - mean) * scale[a] ** 2 / (scale[a] ** 2 + luck**2)) ** 2
            square = (tails * tau * tau + away) / (tails + 1.0)
            scale[a] = math.sqrt(square)
            if first:
                above += level / (square + luck**2)
                below += 1.0 / (square + luck**2)
                excess += 0.5 * math.log(2.0 * square / (tails * tau * tau)) + 0.5 * away / square
                excess -= 0.5 * (tails + 1.0) * math.log(1.0 + away / (tails * tau * tau))
                excess += math.lgamma(0.5 * (tails + 1.0)) - math.lgamma(0.5 * tails)
        if turn < 5:
            mean = above / below
    return excess


@_helper
def _variances(
    point: FloatArray,
    reference: FloatArray,
    pairs: Pairs,
    groups: Groups,
    tau: float,
    tails: float,
    omega: float,
    spread: float,
    matrices: FloatArray,
    work: FloatArray,
) -> float:
    """Fill precision and shared part of every pair's error, and the precision of the prior of realised u.

    Returns the log determinants: those of the pairs (each counted once) and minus that of the prior.
    """
    value, usable, variance, overlap, power, luck = pairs
    group, size, slot, form = groups
    school = form == SCHOOLS
    m = len(luck)
    precision, load, quad = matrices[0], matrices[1], matrices[2]
    rest, alone, lucky, ones = work[0], work[1], work[2], work[3]
    common, share, spare, scale, shared = work[4], work[5], work[6], work[7], work[8]
    for a in range(m):
        rest[a] = max(1.0 - math.tanh(reference[a]) ** 2, FLOOR)
        share[a] = min(_share(reference[slot[a]], reference[a], school), 0.995) if slot[a] >= 0 else 0.0
        alone[a] = max(1.0 - share[a] ** 2, FLOOR)
        lucky[a] = math.sqrt(luck[a] / rest[a])
        # Members have luck in common on items that they share.
        shared[a] = 0.0
        if slot[a] >= 0:
            for b in range(m):
                if group[b] == group[a] and b != a:
                    shared[a] += overlap[a, b] / (size[group[a]] - 1.0)
            shared[a] = share[a] * math.sqrt(shared[a])
    log = -2.0 * _scales(point, lucky, group, size, tau, tails, scale)
    for a in range(m):
        for b in range(a):
            precision[a, b] = precision[b, a] = load[a, b] = load[b, a] = 0.0
            if not usable[a, b]:
                continue
            # The scatter goes with one minus the squared agreement: with that of the fit, not that of this table,
            # or a pair that agrees by luck would also look exact.
            fitted = math.tanh(reference[a]) * math.tanh(reference[b])
            if group[a] == group[b]:
                fitted += share[a] * share[b] * math.sqrt(rest[a] * rest[b])
            sampled = variance[a, b] * max(1.0 - fitted**2, FLOOR) / max(1.0 - value[a, b] ** 2, FLOOR)
            if group[a] == group[b]:
                own = sampled * _own(rest[a] * alone[a], rest[b] * alone[b], overlap[a, b], overlap[b, a])
            else:
                own = sampled * _own(rest[a], rest[b], overlap[a, b], overlap[b, a])
                # The error of a pair is shared by all members of the larger of its two groups.
                first = size[group[a]] > size[group[b]] or (size[group[a]] == size[group[b]] and group[a] < group[b])
                if first and size[group[a]] > 1:
                    load[a, b] = shared[a] * math.sqrt(own)
                    own *= max(1.0 - shared[a] ** 2, FLOOR)
                elif not first and size[group[b]] > 1:
                    load[b, a] = shared[b] * math.sqrt(own)
                    own *= max(1.0 - shared[b] ** 2, FLOOR)
            precision[a, b] = precision[b, a] = 1.0 / (own + omega * omega)
            log += power * math.log(own + omega * omega)
    # Prior covariance of the realised u: a block per group (a diagonal and two vectors), and the common mean.
    whole = 0.0
    for a in range(m):
        ones[a] = 0.0
        for b in range(m):
            quad[a, b] = 0.0
    for g in range(len(size)):
        first, second, third = 1.0, 0.0, 1.0
        for a in range(m):
            if group[a] == g:
                # Who repeats a share k of the votes of one original and has its own quality on the rest.
                alike = share[a] ** 2 / (share[a] ** 2 + (1.0 - share[a]) ** 2)
                if form == KINDS and size[g] > 1:
                    alike = PEERS
                common[a], spare[a] = scale[a] * math.sqrt(alike), scale[a] ** 2 * (1.0 - alike)
                spare[a] += lucky[a] ** 2 * (1.0 - shared[a] ** 2)
                first += common[a] ** 2 / spare[a]
                second += common[a] * shared[a] * lucky[a] / spare[a]
                third += (shared[a] * lucky[a]) ** 2 / spare[a]
                log += math.log(spare[a])
        inside = first * third - second * second
        log += math.log(inside)
        for a in range(m):
            if group[a] != g:
                continue
            quad[a, a] += 1.0 / spare[a]
            if size[g] == 1:
                ones[a] = quad[a, a]
                continue
            fourth, fifth = common[a] / spare[a], shared[a] * lucky[a] / spare[a]
            for b in range(m):
                if group[b] == g:
                    one, two = common[b] / spare[b], shared[b] * lucky[b] / spare[b]
                    quad[a, b] -= (
                        fourth * (third * one - second * two) + fifth * (first * two - second * one)
                    ) / inside
            for b in range(m):
                if group[b] == g:
                    ones[a] += quad[a, b]
    for a in range(m):
        whole += ones[a]
    shrink = spread * spread / (1.0 + spread * spread * whole)
    log += math.log(1.0 + spread * spread * whole)
    for a in range(m):
        for b in range(m):
            quad[a, b] -= shrink * ones[a] * ones[b]
    return log


@_helper
def _add(
    weight: float,
    residual: float,
    places: IntArray,
    slopes: FloatArray,
    count: int,
    gradient: FloatArray,
    hessian: FloatArray,
) -> float:
    """Add a weighted square whose residual falls with `count` unknowns by these slopes; return its cost."""
    for i in range(count):
        gradient[places[i]] += weight * residual * slopes[i]
        for j in range(count):
            hessian[places[i], places[j]] += weight * slopes[i] * slopes[j]
    return 0.5 * weight * residual * residual


@_helper
def _terms(
    point: FloatArray,
    pairs: Pairs,
    groups: Groups,
    forward: Map,
    gold: FloatArray,
    mean: float,
    gradient: FloatArray,
    hessian: FloatArray,
    matrices: FloatArray,
    features: FloatArray,
    work: FloatArray,
    places: IntArray,
) -> float:
    """Fill the downhill direction and the Gauss-Newton Hessian at a point; return the cost (minus log posterior)."""
    value, usable, _, _, power, _ = pairs
    group, size, slot, form = groups
    school = form == SCHOOLS
    grid, table, sign = forward
    m, length, rank = len(value), len(point), len(sign)
    alike = ALIKE if form == COPIES else 0.0
    precision, load, quad, residual, by = matrices[0], matrices[1], matrices[2], matrices[3], matrices[4]
    part, part_by, part_by_x, share, slopes = work[0], work[1], work[2], work[5], work[9]
    phi, slope = features[0], features[1]
    _features(point, grid, table, phi, slope)
    cost = 0.0
    # The prior of u around its mean, and of x.
    for i in range(length):
        pull = 0.0 if i < m else point[i] / (1.0 - alike)
        for j in range(length):
            hessian[i, j] = 0.0
        if i >= m:
            hessian[i, i] = 1.0 / (1.0 - alike)
        for j in range(m if i < m else 0):
            hessian[i, j] = quad[i, j]
            pull += quad[i, j] * (point[j] - mean)
        gradient[i] = -pull
        cost += 0.5 * pull * (point[i] - mean if i < m else point[i])
    # What two members of a group have in common is the product of their parts.
    for a in range(m):
        k = 0.0
        if slot[a] >= 0:
            k = math.exp(0.5 * SLOPE * point[slot[a]]) if school else _share(point[slot[a]], 0.0, school)
        quality, rest = math.tanh(point[a]), 1.0 / math.cosh(point[a])
        part[a] = k * (quality if school else rest)
        part_by[a] = k * rest * (rest if school else -quality)
        part_by_x[a] = 0.5 * SLOPE * (1.0 if school else 1.0 - k * k)
    for a in range(m):
        for b in range(a):
            if not usable[a, b]:
                continue
            fitted, by_a, by_b = 0.0, 0.0, 0.0
            for c in range(rank):
                fitted += sign[c] * phi[a, c] * phi[b, c]
                by_a += sign[c] * slope[a, c] * phi[b, c]
                by_b += sign[c] * phi[a, c] * slope[b, c]
            count = 2
            if group[a] == group[b] and slot[a] >= 0:
                both = part[a] * part[b]
                fitted += both
                by_a += part_by[a] * part[b]
                by_b += part[a] * part_by[b]
                places[2], slopes[2] = slot[a], part_by_x[a] * both
                places[3], slopes[3] = slot[b], part_by_x[b] * both
                count = 4
            places[0], slopes[0] = a, by_a
            places[1], slopes[1] = b, by_b
            residual[a, b] = residual[b, a] = value[a, b] - fitted
            by[a, b], by[b, a] = by_a, by_b
            cost += _add(power * precision[a, b], residual[a, b], places, slopes, count, gradient, hessian)
    for g in range(len(size)):
        if size[g] < 2:
            continue
        # Errors that the members share with another source: one vector per group and source (Woodbury).
        for b in range(m):
            count, total, whole, last = 0, 0.0, 1.0, 0.0
            for a in range(m):
                if group[a] == g and load[a, b] > 0.0:
                    scaled = load[a, b] * precision[a, b]
                    whole += load[a, b] * scaled
                    total += scaled * residual[a, b]
                    last += scaled * by[b, a]
                    places[count], slopes[count] = a, scaled * by[a, b]
                    count += 1
            if count == 0:
                continue
            places[count], slopes[count] = b, last
            cost += 0.5 * power * math.log(whole)
            cost += _add(-power / whole, total, places, slopes, count + 1, gradient, hessian)
        # They repeat it about equally often: their x have the correlation `alike`, zero for schools.
        if alike > 0.0:
            count, total, whole = 0, 0.0, 1.0 + (size[g] - 1.0) * alike
            for a in range(m):
                if group[a] == g:
                    total -= point[slot[a]]
                    places[count], slopes[count] = slot[a], 1.0
                    count += 1
            cost += 0.5 * ((size[g] - 1.0) * math.log(1.0 - alike) + math.log(whole))
            cost += _add(-alike / (whole * (1.0 - alike)), total, places, slopes, size[g], gradient, hessian)
    # Known labels are one more column, whose quality is known; copies are right or wrong on them together, too.
    for g in range(len(size) if len(gold) else 0):
        count, total, whole = 0, 0.0, 1.0
        for a in range(m):
            if group[a] != g:
                continue
            places[count], slopes[count] = a, 0.0
            count += 1
            if gold[1, a] == 0.0:
                continue
            fitted, by_a = 0.0, 0.0
            for c in range(rank):
                fitted += sign[c] * phi[a, c] * gold[2, c]
                by_a += sign[c] * slope[a, c] * gold[2, c]
            own = max(1.0 - share[a] ** 2, FLOOR) / gold[1, a]
            scaled = share[a] / math.sqrt(gold[1, a]) / own
            r = gold[0, a] - fitted
            cost += 0.5 * r * r / own + 0.5 * math.log(own)
            gradient[a] += r * by_a / own
            hessian[a, a] += by_a * by_a / own
            whole += scaled * share[a] / math.sqrt(gold[1, a])
            total += scaled * r
            slopes[count - 1] = scaled * by_a
        cost += 0.5 * math.log(whole) + _add(-1.0 / whole, total, places, slopes, size[g], gradient, hessian)
    return cost


@_helper
def _useless(
    point: FloatArray,
    groups: Groups,
    hessian: FloatArray,
    quality_prior: tuple[float, float, float, float, float, float],
    luck: FloatArray,
    scale: FloatArray,
    number: FloatArray,
) -> float:
    """Return what the evidence gains if sources may know nothing at all, any share of them (a beta distribution).

    For each level of quality, which is drawn once for a group, a ratio of Savage and Dickey: the posterior density at
    zero over the prior one there says by how much the table prefers that it knows nothing. `number` becomes the
    distribution of how many do.
    """
    tau, tails, mean, spread, _, others = quality_prior
    group, size, _, _ = groups
    m, gain, levels = len(group), 0.0, 0
    above, below = mean / spread**2, 1.0 / spread**2
    for a in range(m):
        above += point[a] / (scale[a] ** 2 + luck[a]) / size[group[a]]
        below += 1.0 / (scale[a] ** 2 + luck[a]) / size[group[a]]
        number[a + 1] = 0.0
    number[0] = 1.0
    for a in range(m):
        first, level, chance, curvature = True, 0.0, 0.0, 0.0
        for b in range(m):
            if group[b] == group[a]:
                first = first and b >= a
                level += point[b] / size[group[a]]
                chance += luck[b] / size[group[a]]
                for c in range(m):
                    if group[c] == group[a]:
                        curvature += hessian[b, c]
        if not first:
            continue
        total = chance + 1.0 / curvature
        ratio = -0.5 * level**2 / total - 0.5 * math.log(2.0 * math.pi * total)
        square = tails * (tau**2 + chance)
        away = (level * chance / total - above / below) ** 2
        ratio += 0.5 * math.log(math.pi * square) + 0.5 * (tails + 1.0) * math.log(1.0 + away / square)
        ratio += math.lgamma(0.5 * tails) - math.lgamma(0.5 * (tails + 1.0))
        odds = math.exp(min(ratio, 50.0))
        gain += math.log(1.0 + odds)
        levels += 1
        for k in range(levels, 0, -1):
            number[k] = (number[k] + odds * number[k - 1]) / (1.0 + odds)
        number[0] /= 1.0 + odds
    probability = 0.0
    for k in range(levels + 1):
        fair = math.lgamma(1.0 + k) + math.lgamma(others + levels - k) - math.lgamma(1.0 + others + levels)
        probability += number[k] * math.exp(fair) * others
    return gain + math.log(probability)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fit_hypothesis(
    pairs: Pairs,
    groups: Groups,
    forward: Map,
    gold: FloatArray,
    quality_prior: tuple[float, float, float, float, float, float],
    truth_prior: tuple[float, float, float],
    omega: float,
    begin: FloatArray,
    reference: FloatArray,
    rounds: int,
) -> tuple[FloatArray, float, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Maximise the posterior of one hypothesis by Levenberg-Marquardt.

    The rows of `gold` are the agreement with known labels, its precision (0: none) and the features of the truth; it is
    empty without any. `quality_prior` is scale and degrees of freedom of the t distribution of u, mean and spread of
    its middle, and the largest u; `truth_prior` says that the truth is the main common factor, see `_majority`. The
    variances are taken at `reference`; if it is empty, where the fit is, first at its beginning and then at its end.
    Returns point, evidence, Hessian, prior precision of the realised u, and the spread of each source there: with its
    group, and in all.
    """
    tau, tails, mean, spread, limit, _ = quality_prior
    chance, half, contrary = truth_prior
    m, length = len(pairs[0]), len(begin)
    point, trial, step = begin.copy(), begin.copy(), begin.copy()
    gradient, gradient_new = begin.copy(), begin.copy()
    matrices, squares = np.zeros((5, m, m)), np.zeros((3, length, length))
    hessian, hessian_new, factor = squares[0], squares[1], squares[2]
    work, features = np.zeros((10, m + 4)), np.zeros((2, m, len(forward[2])))
    places = np.zeros(m + 4, dtype=np.int64)
    evidence = 0.0
    # First with the tails of a normal distribution: who begins far out would stay there. Then with those of t, and with
    # variances from what was found. A single round only looks at the point where it begins.
    for turn in range(0 if rounds > 1 else 1, 2):
        where = reference if len(reference) else point
        heavy = 1e6 if turn == 0 else tails
        log = _variances(point, where, pairs, groups, tau, heavy, omega, spread, matrices, work)
        cost, damp = 1e300, 1e-3
        for _ in range(rounds + 1):
            new = _terms(
                trial, pairs, groups, forward, gold, mean, gradient_new, hessian_new, matrices, features, work, places
            )
            if new <= cost + 1e-12:
                gain = cost - new
                cost = new
                for i in range(length):
                    point[i] = trial[i]
                gradient, gradient_new = gradient_new, gradient
                hessian, hessian_new = hessian_new, hessian
                damp = max(damp / 10.0, 1e-6)
                if gain < (1e-1 if turn == 0 else 1e-2):
                    break
            else:
                damp = damp * 10.0
                if damp > 1e6:
                    break
            if length > MANY:
                _solve_roughly(hessian, damp, gradient, step, factor)
            else:
                _cholesky(hessian, damp, factor)
                _solve(factor, gradient, step)
            for i in range(length):
                trial[i] = min(max(point[i] + min(max(step[i], -1.0), 1.0), -limit), limit)
        for i in range(length):
            trial[i] = point[i]
        evidence = -cost - 0.5 * log
    evidence += _useless(point, groups, hessian, quality_prior, pairs[5], work[7], work[0])
    evidence += _majority(point, groups, chance, half, contrary, work[0]) - 0.5 * _cholesky(hessian, 0.0, factor)
    return point, evidence, hessian, matrices[2], work[4, :m], work[7, :m]
