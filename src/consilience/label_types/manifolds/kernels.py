"""Weighted means on the unit hyperboloid, the unit sphere and pairs of opposite points (rotations), item by item.

Points are ``(t, x)`` with ``t^2 + |x|^2 = 1`` on the sphere and ``t^2 - |x|^2 = 1`` on the hyperboloid, where they grow
like the exponential of the distance from the origin. Votes there are therefore moved to the origin first: along the
line through a first guess a point is the pair of a signed length and of what is across, and the move adds to the
length, so that nothing cancels.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray

#: Beyond this distance from the origin of its frame, an estimate gets a new frame, at most so many times.
FAR, FRAMES = 2.0, 400
#: Share of its precision that a vote keeps near the opposite point, where the wrapped normal has a pole.
KEPT = 1e-3
#: Votes this close to the opposite point have no direction, so an arbitrary one is used.
OPPOSITE = 1e-7

kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})


@kernel
def _product(left: FloatArray, right: FloatArray, bend: float) -> float:
    """Return ``bend * t * t + x . x``, with a bend of 1 on the sphere and -1 on the hyperboloid."""
    total = bend * left[0] * right[0]
    for axis in range(1, len(left)):
        total += left[axis] * right[axis]
    return total


@kernel
def _distance(left: FloatArray, right: FloatArray, bend: float) -> tuple[float, float, float]:
    """Return the distance of two points, its sine and its cosine, hyperbolic ones on the hyperboloid."""
    apart, together = bend * (left[0] - right[0]) ** 2, bend * (left[0] + right[0]) ** 2
    for axis in range(1, len(left)):
        apart += (left[axis] - right[axis]) ** 2
        together += (left[axis] + right[axis]) ** 2
    if bend > 0.0:
        r = 2.0 * math.atan2(math.sqrt(apart), math.sqrt(together))
        return r, 0.5 * math.sqrt(apart * together), 0.25 * (together - apart)
    # From differences for near points, from the product for far ones.
    cosine = -_product(left, right, bend)
    chord = max(apart if cosine < 2.0 else 2.0 * (cosine - 1.0), 0.0)
    return 2.0 * math.asinh(0.5 * math.sqrt(chord)), math.sqrt(chord * (1.0 + 0.25 * chord)), 1.0 + 0.5 * chord


@kernel
def _descend(
    votes: FloatArray,
    precision: FloatArray,
    volume: FloatArray,
    bend: float,
    folded: bool,
    far: float,
    tolerance: float,
    max_steps: int,
    point: FloatArray,
) -> tuple[bool, float]:
    """Move `point` to a minimum, or to where its t exceeds `far`; return whether it rests, and the furthest vote.

    A vote at distance r pulls with the weight ``precision + volume (cot r - 1 / r) / r``, with ``coth`` on the
    hyperboloid, where it falls with r, so that with the weights held the cost is bounded from above.
    """
    slope, furthest = np.empty(len(point)), 0.0
    for _ in range(max_steps):
        for axis in range(len(point)):
            slope[axis] = 0.0
        mass, bound, furthest = 0.0, 0.0, 0.0
        for source in range(len(votes)):
            weight = precision[source]
            if weight <= 0.0 and volume[source] <= 0.0:
                continue
            sign = 1.0
            r, sine, cosine = _distance(point, votes[source], bend)
            if folded and cosine < 0.0:
                r, cosine, sign = math.pi - r, -cosine, -1.0
            furthest = max(furthest, r)
            if volume[source] > 0.0:
                pull = -bend / 3.0 - r * r / 45.0 if r < 1e-2 else (cosine / sine - 1.0 / r) / r
                weight = max(weight + volume[source] * pull, KEPT * weight)
            mass += weight
            # The curvature of r^2 / 2 is at most one on the sphere, and r coth r on the hyperboloid.
            bound += weight * (r * cosine / sine if bend < 0.0 and r > 1e-6 else 1.0)
            if bend > 0.0 and math.pi - r < OPPOSITE:  # every direction leads there: take the smallest coordinate
                least = 0
                for axis in range(1, len(point)):
                    if abs(point[axis]) < abs(point[least]):
                        least = axis
                factor = weight * r / math.sqrt(1.0 - point[least] ** 2)
                for axis in range(len(point)):
                    slope[axis] += factor * ((1.0 if axis == least else 0.0) - point[least] * point[axis])
            else:
                factor = weight * (r / sine if r > 1e-6 else 1.0)
                for axis in range(len(point)):
                    slope[axis] += factor * (sign * votes[source, axis] - cosine * point[axis])
        along = bend * _product(slope, point, bend)
        for axis in range(len(point)):
            slope[axis] -= along * point[axis]
        size = math.sqrt(max(_product(slope, slope, bend), 0.0))
        # No step overshoots, because r coth r grows by at most the length of the step.
        reach = size / bound if bend > 0.0 else size / (bound + mass * size / bound)
        if not reach > tolerance:
            return True, furthest
        sine, cosine = (math.sin(reach), math.cos(reach)) if bend > 0.0 else (math.sinh(reach), math.cosh(reach))
        for axis in range(len(point)):
            point[axis] = cosine * point[axis] + sine / size * slope[axis]
        length = math.sqrt(bend * _product(point, point, bend))
        for axis in range(len(point)):
            point[axis] /= length
        if point[0] > far:
            break
    return False, furthest


@kernel
def _shift(point: FloatArray, line: FloatArray, length: float, result: FloatArray) -> None:
    """Move a point of the hyperboloid by `length` along the line through the origin with this unit direction."""
    along = _product(point, line, 0.0)
    for axis in range(len(point)):
        result[axis] = point[axis] - along * line[axis]
    across = math.sqrt(1.0 + _product(result, result, 0.0))
    moved = across * math.sinh(math.asinh(along / across) + length)
    for axis in range(len(point)):
        result[axis] += moved * line[axis]
    result[0] = math.sqrt(1.0 + _product(result, result, 0.0))


@kernel
def hyperbolic_means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, tolerance: float, max_steps: int
) -> tuple[FloatArray, BoolArray]:
    """Return the point of least ``sum_a precision_a r_a^2 / 2 + volume_a log(sinh r_a / r_a)`` for every item.

    Votes ``(n, m, d + 1)`` of neither precision nor volume ``(n, m)`` are not there. The cost has one minimum; the
    search starts at the vote of most weight, and a step shorter than the tolerance ends it. Returns ``(n, d + 1)``
    means, the origin where nobody votes, and whether they converged.
    """
    n, m, size = votes.shape
    means, converged = np.zeros((n, size)), np.ones(n, np.bool_)
    means[:, 0] = 1.0
    local, point, line = np.empty((m, size)), np.empty(size), np.empty(size)
    for item in range(n):
        most, heaviest = 0.0, 0
        for source in range(m):
            weight = max(precision[item, source], 0.0) + max(volume[item, source], 0.0) / 3.0
            if weight > most:
                most, heaviest = weight, source
        if most <= 0.0:
            continue
        mean = means[item]
        for axis in range(size):
            mean[axis] = votes[item, heaviest, axis]
        for frame in range(FRAMES):
            reach = math.sqrt(_product(mean, mean, 0.0))
            for axis in range(size):
                line[axis] = mean[axis] / max(reach, 1e-300) if axis > 0 else 0.0
                point[axis] = 0.0 if axis > 0 else 1.0
            for source in range(m):
                _shift(votes[item, source], line, -math.asinh(reach), local[source])
            far = math.cosh(FAR) if frame < FRAMES - 1 else np.inf
            converged[item], _ = _descend(
                local, precision[item], volume[item], -1.0, False, far, tolerance, max_steps, point
            )
            _shift(point, line, math.asinh(reach), mean)
            if point[0] <= far:
                break
    return means, converged


@kernel
def _spent(votes: FloatArray, precision: FloatArray, point: FloatArray, folded: bool) -> float:
    total = 0.0
    for source in range(len(votes)):
        if precision[source] > 0.0:
            r, _, _ = _distance(point, votes[source], 1.0)
            total += precision[source] * (min(r, math.pi - r) if folded else r) ** 2
    return total


@kernel
def sphere_means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, folded: bool, tolerance: float, max_steps: int
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return the point of least ``sum_a precision_a r_a^2 / 2 + volume_a log(sin r_a / r_a)`` for every item.

    Votes ``(n, m, d + 1)`` without precision are not there; no other pulls with less than a thousandth of it. `folded`
    says that opposite points are the same point. Where votes are not within a quarter turn of the label there may be
    several minima: the search then also starts at the vote of least cost, and the lower end is kept. Returns the means,
    the first axis where nobody votes; whether they converged; and whether no other minimum can exist.
    """
    n, m, size = votes.shape
    means, converged, unique = np.zeros((n, size)), np.ones(n, np.bool_), np.ones(n, np.bool_)
    limit = 0.25 * math.pi if folded else 0.5 * math.pi
    for item in range(n):
        own, weight, pull, point = votes[item], precision[item], volume[item], means[item]
        heaviest = np.argmax(weight)
        if weight[heaviest] <= 0.0:
            point[0] = 1.0
            continue
        for source in range(m):
            if weight[source] > 0.0:
                sign = -1.0 if folded and _product(own[source], own[heaviest], 1.0) < 0.0 else 1.0
                for axis in range(size):
                    point[axis] += sign * weight[source] * own[source, axis]
        length = math.sqrt(_product(point, point, 1.0))
        for axis in range(size):
            point[axis] = point[axis] / length if length > 1e-9 * weight[heaviest] else own[heaviest, axis]
        converged[item], furthest = _descend(own, weight, pull, 1.0, folded, np.inf, tolerance, max_steps, point)
        if furthest >= limit:
            unique[item] = False
            least, start = np.inf, int(heaviest)
            for source in range(m):
                spent = _spent(own, weight, own[source], folded)
                if weight[source] > 0.0 and spent < least:
                    least, start = spent, source
            other = own[start].copy()
            finished, _ = _descend(own, weight, pull, 1.0, folded, np.inf, tolerance, max_steps, other)
            if _spent(own, weight, other, folded) < _spent(own, weight, point, folded) * (1.0 - 1e-9):
                converged[item] = finished
                for axis in range(size):
                    point[axis] = other[axis]
    return means, converged, unique
