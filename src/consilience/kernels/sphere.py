"""Weighted means on the unit sphere, and on pairs of opposite points (rotations), item by item."""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["sphere_means"]

#: Share of its precision that a vote keeps near the opposite point, where the wrapped normal has a pole.
KEPT = 1e-3
#: Votes this close to the opposite point have no direction; one is made up.
OPPOSITE = 1e-7
SAFE = {"reassoc", "contract", "nsz", "arcp"}


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _angle(left: FloatArray, right: FloatArray) -> float:
    apart, together = 0.0, 0.0
    for axis in range(len(left)):
        apart += (left[axis] - right[axis]) ** 2
        together += (left[axis] + right[axis]) ** 2
    return 2.0 * math.atan2(math.sqrt(apart), math.sqrt(together))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spent(votes: FloatArray, precision: FloatArray, point: FloatArray, folded: bool) -> float:
    total = 0.0
    for source in range(len(votes)):
        if precision[source] > 0.0:
            r = _angle(point, votes[source])
            if folded:
                r = min(r, math.pi - r)
            total += precision[source] * r * r
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _any_direction(point: FloatArray, result: FloatArray) -> None:
    """Put a unit vector orthogonal to `point` into `result`: towards the axis it is least along."""
    least = 0
    for axis in range(len(point)):
        if abs(point[axis]) < abs(point[least]):
            least = axis
    for axis in range(len(point)):
        result[axis] = -point[least] * point[axis]
    result[least] += 1.0
    size = 0.0
    for axis in range(len(point)):
        size += result[axis] ** 2
    for axis in range(len(point)):
        result[axis] /= math.sqrt(size)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _descend(
    votes: FloatArray,
    precision: FloatArray,
    volume: FloatArray,
    folded: bool,
    tolerance: float,
    max_steps: int,
    point: FloatArray,
    slope: FloatArray,
    room: FloatArray,
) -> tuple[bool, float]:
    """Move `point` to a minimum; return whether it came to rest, and how far the furthest vote is."""
    furthest = 0.0
    for _ in range(max_steps):
        slope[:] = 0.0
        mass, furthest = 0.0, 0.0
        for source in range(len(votes)):
            if precision[source] <= 0.0:
                continue
            r = _angle(point, votes[source])
            sign = 1.0
            if folded and r > 0.5 * math.pi:
                sign, r = -1.0, math.pi - r
            furthest = max(furthest, r)
            weight = precision[source]
            if volume[source] > 0.0:
                pull = 1.0 / 3.0 + r * r / 45.0 if r < 1e-2 else (1.0 / r - 1.0 / math.tan(r)) / r
                weight = max(weight - volume[source] * pull, KEPT * weight)
            mass += weight
            if math.pi - r < OPPOSITE:
                _any_direction(point, room)
                for axis in range(len(point)):
                    slope[axis] += weight * r * room[axis]
            else:
                factor = weight * (r / math.sin(r) if r > 1e-6 else 1.0)
                cosine = math.cos(r)
                for axis in range(len(point)):
                    slope[axis] += factor * (sign * votes[source, axis] - cosine * point[axis])
        size, along = 0.0, 0.0
        for axis in range(len(point)):
            along += slope[axis] * point[axis]
        for axis in range(len(point)):
            slope[axis] -= along * point[axis]
            size += slope[axis] ** 2
        size = math.sqrt(size)
        # The curvature of r^2 / 2 is at most one on a sphere, so that this step cannot overshoot.
        reach = size / mass
        if not reach > tolerance:
            return True, furthest
        cosine, factor = math.cos(reach), math.sin(reach) / size
        length = 0.0
        for axis in range(len(point)):
            point[axis] = cosine * point[axis] + factor * slope[axis]
            length += point[axis] ** 2
        length = math.sqrt(length)
        for axis in range(len(point)):
            point[axis] /= length
    return False, furthest


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
    means = np.zeros((n, size))
    converged, unique = np.ones(n, np.bool_), np.ones(n, np.bool_)
    point, other, slope, room = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    limit = 0.25 * math.pi if folded else 0.5 * math.pi
    for item in range(n):
        heaviest, present = 0, False
        for source in range(m):
            present = present or precision[item, source] > 0.0
            if precision[item, source] > precision[item, heaviest]:
                heaviest = source
        if not present:
            means[item, 0] = 1.0
            continue
        point[:] = 0.0
        for source in range(m):
            if precision[item, source] <= 0.0:
                continue
            product = 0.0
            for axis in range(size):
                product += votes[item, source, axis] * votes[item, heaviest, axis]
            sign = -1.0 if folded and product < 0.0 else 1.0
            for axis in range(size):
                point[axis] += sign * precision[item, source] * votes[item, source, axis]
        length = 0.0
        for axis in range(size):
            length += point[axis] ** 2
        length = math.sqrt(length)
        if length > 1e-9 * precision[item, heaviest]:
            point /= length
        else:
            point[:] = votes[item, heaviest]
        done, furthest = _descend(
            votes[item], precision[item], volume[item], folded, tolerance, max_steps, point, slope, room
        )
        if furthest >= limit:
            unique[item] = False
            best, cost = -1, _spent(votes[item], precision[item], point, folded)
            own = cost
            for source in range(m):
                if precision[item, source] > 0.0:
                    spent = _spent(votes[item], precision[item], votes[item, source], folded)
                    if best < 0 or spent < cost:
                        best, cost = source, spent
            other[:] = votes[item, best]
            finished, _ = _descend(
                votes[item], precision[item], volume[item], folded, tolerance, max_steps, other, slope, room
            )
            if _spent(votes[item], precision[item], other, folded) < own * (1.0 - 1e-9):
                point[:] = other
                done = finished
        means[item] = point
        converged[item] = done
    return means, converged, unique
