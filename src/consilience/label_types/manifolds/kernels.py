"""Weighted means on the unit hyperboloid, the unit sphere and pairs of opposite points (rotations), item by item.

A point of the hyperboloid is ``(t, x)`` with ``t^2 = 1 + |x|^2``; only x is stored in the loops, so that no point can
leave the hyperboloid. Coordinates grow like the exponential of the distance from the origin. The votes on an item are
therefore moved to the origin first: along the line through its first guess a point is the pair of a signed length and
of what is across, and the move adds to the length, so that nothing cancels.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["hyperbolic_means", "sphere_means"]

#: Beyond this distance from the origin of its frame an estimate gets a frame of its own, at most so many times.
FAR, FRAMES = 2.0, 400
#: Share of its precision that a vote keeps near the opposite point, where the wrapped normal has a pole.
KEPT = 1e-3
#: Votes this close to the opposite point have no direction; one is made up.
OPPOSITE = 1e-7

kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})


@kernel
def _dot(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for axis in range(len(left)):
        total += left[axis] * right[axis]
    return total


@kernel
def _shift(x: FloatArray, line: FloatArray, length: float, result: FloatArray) -> None:
    """Move a point by `length` along the line through the origin with this unit direction."""
    along = _dot(x, line)
    for axis in range(len(x)):
        result[axis] = x[axis] - along * line[axis]
    across = math.sqrt(1.0 + _dot(result, result))
    moved = across * math.sinh(math.asinh(along / across) + length)
    for axis in range(len(x)):
        result[axis] += moved * line[axis]


@kernel
def _slope(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, point: FloatArray, slope: FloatArray
) -> tuple[float, float]:
    """Put minus the gradient at `point` into `slope`; return a bound on the curvature and the sum of weights.

    The curvature of ``r^2 / 2`` is at most ``r coth r``.
    """
    at = math.sqrt(1.0 + _dot(point, point))
    slope[:] = 0.0
    bound, total = 0.0, 0.0
    for source in range(len(votes)):
        weight = precision[source]
        if weight <= 0.0 and volume[source] <= 0.0:
            continue
        time, product, gap = votes[source, 0], 0.0, 0.0
        for axis in range(len(point)):
            product += point[axis] * votes[source, axis + 1]
            gap += (point[axis] - votes[source, axis + 1]) ** 2
        cosine = at * time - product
        # Half of the squared chord: by differences where votes are near, by the product where they are far.
        chord = max(gap - (at - time) ** 2 if cosine < 2.0 else 2.0 * (cosine - 1.0), 0.0)
        r = 2.0 * math.asinh(0.5 * math.sqrt(chord))
        ratio = r / math.sqrt(chord * (1.0 + 0.25 * chord)) if r > 1e-6 else 1.0
        if volume[source] > 0.0:
            pull = 1.0 / 3.0 - r * r / 45.0 if r < 1e-2 else (1.0 / math.tanh(r) - 1.0 / r) / r
            weight += volume[source] * pull
        for axis in range(len(point)):
            slope[axis] += weight * ratio * votes[source, axis + 1]
        bound += weight * ratio * (1.0 + 0.5 * chord)
        total += weight
    for axis in range(len(point)):
        slope[axis] -= bound * point[axis]
    return bound, total


@kernel
def hyperbolic_means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, tolerance: float, max_steps: int
) -> tuple[FloatArray, BoolArray]:
    """Return the point of least ``sum_a precision_a r_a^2 / 2 + volume_a log(sinh r_a / r_a)`` for every item.

    Gradient steps from the vote of most weight. A vote at distance r pulls with the weight ``precision + volume (coth r
    - 1 / r) / r``, which falls with r, so that with the weights held the cost is bounded from above; the step is short
    enough for the curvature that it may run into, so that every step lowers the cost, which has one minimum.

    Parameters
    ----------
    votes
        ``(n, m, d + 1)`` points of the unit hyperboloid, the first coordinate time-like.
    precision, volume
        ``(n, m)``; a vote with neither is not there.
    tolerance
        Steps shorter than this end the search.

    Returns
    -------
    means, converged
        ``(n, d + 1)``, the origin where nobody votes, and ``(n,)``.
    """
    n, m, size = votes.shape
    d = size - 1
    means, converged = np.zeros((n, size)), np.ones(n, np.bool_)
    local, point, slope, line, room = np.empty((m, size)), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for item in range(n):
        means[item, 0] = 1.0
        weight = np.maximum(precision[item], 0.0) + np.maximum(volume[item], 0.0) / 3.0
        heaviest = np.argmax(weight)
        if weight[heaviest] <= 0.0:
            continue
        point[:] = votes[item, heaviest, 1:]
        line[:] = 0.0
        length = 0.0
        converged[item] = False
        frames = 0
        for step in range(max_steps):
            if step == 0 or (frames < FRAMES and _dot(point, point) > math.sinh(FAR) ** 2):
                frames += 1
                _shift(point, line, length, room)
                reach = math.sqrt(_dot(room, room))
                length = math.asinh(reach)
                line[:] = room / reach if reach > 0.0 else room
                point[:] = 0.0
                for source in range(m):
                    _shift(votes[item, source, 1:], line, -length, local[source, 1:])
                    local[source, 0] = math.sqrt(1.0 + _dot(local[source, 1:], local[source, 1:]))
            bound, mass = _slope(local, precision[item], volume[item], point, slope)
            along = _dot(point, slope) ** 2 / (1.0 + _dot(point, point))
            steepness = math.sqrt(max(_dot(slope, slope) - along, 0.0))
            # ``r coth r`` grows by at most the length of the step.
            reach = steepness / (bound + mass * steepness / bound)
            if not reach > tolerance:
                converged[item] = True
                break
            cosine, factor = math.cosh(reach), math.sinh(reach) / steepness
            for axis in range(d):
                point[axis] = cosine * point[axis] + factor * slope[axis]
        _shift(point, line, length, means[item, 1:])
        means[item, 0] = math.sqrt(1.0 + _dot(means[item, 1:], means[item, 1:]))
    return means, converged


# --- spheres and rotations ---------------------------------------------------------------------------------


@kernel
def _angle(left: FloatArray, right: FloatArray) -> float:
    apart, together = 0.0, 0.0
    for axis in range(len(left)):
        apart += (left[axis] - right[axis]) ** 2
        together += (left[axis] + right[axis]) ** 2
    return 2.0 * math.atan2(math.sqrt(apart), math.sqrt(together))


@kernel
def _spent(votes: FloatArray, precision: FloatArray, point: FloatArray, folded: bool) -> float:
    total = 0.0
    for source in range(len(votes)):
        if precision[source] > 0.0:
            r = _angle(point, votes[source])
            if folded:
                r = min(r, math.pi - r)
            total += precision[source] * r * r
    return total


@kernel
def _descend(
    votes: FloatArray,
    precision: FloatArray,
    volume: FloatArray,
    folded: bool,
    tolerance: float,
    max_steps: int,
    point: FloatArray,
) -> tuple[bool, float]:
    """Move `point` to a minimum; return whether it came to rest, and how far the furthest vote is."""
    slope, furthest = np.empty(len(point)), 0.0
    for _ in range(max_steps):
        slope[:] = 0.0
        mass, furthest = 0.0, 0.0
        for source in range(len(votes)):
            weight = precision[source]
            if weight <= 0.0:
                continue
            r = _angle(point, votes[source])
            sign = 1.0
            if folded and r > 0.5 * math.pi:
                sign, r = -1.0, math.pi - r
            furthest = max(furthest, r)
            if volume[source] > 0.0:
                pull = 1.0 / 3.0 + r * r / 45.0 if r < 1e-2 else (1.0 / r - 1.0 / math.tan(r)) / r
                weight = max(weight - volume[source] * pull, KEPT * weight)
            mass += weight
            if math.pi - r < OPPOSITE:  # every direction leads there: that of the axis the point is least along
                least = np.argmin(np.abs(point))
                made_up = -point[least] * point
                made_up[least] += 1.0
                slope += weight * r / math.sqrt(_dot(made_up, made_up)) * made_up
            else:
                factor, cosine = weight * (r / math.sin(r) if r > 1e-6 else 1.0), math.cos(r)
                for axis in range(len(point)):
                    slope[axis] += factor * (sign * votes[source, axis] - cosine * point[axis])
        along = _dot(slope, point)
        for axis in range(len(point)):
            slope[axis] -= along * point[axis]
        size = math.sqrt(_dot(slope, slope))
        # The curvature of r^2 / 2 is at most one on a sphere, so that this step cannot overshoot.
        reach = size / mass
        if not reach > tolerance:
            return True, furthest
        cosine, factor = math.cos(reach), math.sin(reach) / size
        for axis in range(len(point)):
            point[axis] = cosine * point[axis] + factor * slope[axis]
        point /= math.sqrt(_dot(point, point))
    return False, furthest


@kernel
def sphere_means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, folded: bool, tolerance: float, max_steps: int
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return the point of least ``sum_a precision_a r_a^2 / 2 + volume_a log(sin r_a / r_a)`` for every item.

    A vote at distance r pulls with the weight ``precision - volume (1 / r - cot r) / r``, not below a thousandth of
    its precision. Where votes are not within a quarter turn of the label there may be several minima: the search
    then also starts at the vote of least cost, and the lower end is kept.

    Parameters
    ----------
    votes
        ``(n, m, d + 1)`` unit vectors.
    precision, volume
        ``(n, m)``; a vote without precision is not there.
    folded
        Whether opposite points are the same point.

    Returns
    -------
    means, converged, unique
        ``(n, d + 1)``, the first axis where nobody votes; and ``(n,)`` each. `unique` is whether all votes are near
        enough that no other minimum can exist.
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
                sign = -1.0 if folded and _dot(own[source], own[heaviest]) < 0.0 else 1.0
                point += sign * weight[source] * own[source]
        length = math.sqrt(_dot(point, point))
        point[:] = point / length if length > 1e-9 * weight[heaviest] else own[heaviest]
        converged[item], furthest = _descend(own, weight, pull, folded, tolerance, max_steps, point)
        if furthest >= limit:
            unique[item] = False
            least, start = np.inf, heaviest
            for source in range(m):
                spent = _spent(own, weight, own[source], folded)
                if weight[source] > 0.0 and spent < least:
                    least, start = spent, source
            other = own[start].copy()
            finished, _ = _descend(own, weight, pull, folded, tolerance, max_steps, other)
            if _spent(own, weight, other, folded) < _spent(own, weight, point, folded) * (1.0 - 1e-9):
                point[:] = other
                converged[item] = finished
    return means, converged, unique
