"""Weighted means on the unit hyperboloid, the unit sphere and pairs of opposite points (rotations), item by item.

A point of the hyperboloid is ``(t, x)`` with ``t^2 = 1 + |x|^2``; only x is stored in the loops, so that no point can
leave the hyperboloid. Coordinates grow like the exponential of the distance from the origin. An item whose votes lie
far out is therefore moved to the origin first: along the line through its first guess a point is the pair of a signed
length and of what is across, and the move adds to the length, so that nothing cancels.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["hyperbolic_means", "sphere_means"]

#: Beyond this distance from the origin of its frame an estimate gets a frame of its own, at most so many times.
FAR, FRAMES = 2.0, 40
#: Share of its precision that a vote keeps near the opposite point, where the wrapped normal has a pole.
KEPT = 1e-3
#: Votes this close to the opposite point have no direction; one is made up.
OPPOSITE = 1e-7
SAFE = {"reassoc", "contract", "nsz", "arcp"}


@numba.njit(cache=True, nogil=True, error_model="numpy")
def volume_pull(r: float) -> float:
    """Return ``(coth r - 1 / r) / r``: what the volume of hyperbolic space adds to the weight of a vote."""
    if r < 1e-2:
        return 1.0 / 3.0 - r * r / 45.0
    return (1.0 / math.tanh(r) - 1.0 / r) / r


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _dot(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for axis in range(len(left)):
        total += left[axis] * right[axis]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _length(x: FloatArray) -> float:
    return math.sqrt(_dot(x, x))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _shift(x: FloatArray, line: FloatArray, length: float, result: FloatArray) -> None:
    """Move a point by `length` along the line through the origin with this unit direction."""
    along = _dot(x, line)
    for axis in range(len(x)):
        result[axis] = x[axis] - along * line[axis]
    across = math.sqrt(1.0 + _dot(result, result))
    moved = across * math.sinh(math.asinh(along / across) + length)
    for axis in range(len(x)):
        result[axis] += moved * line[axis]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_guess(votes: FloatArray, weight: FloatArray, guess: FloatArray) -> float:
    """Put the direction of the mean of the votes in the tangent space at the origin into `guess`; return its length."""
    guess[:] = 0.0
    for source in range(len(votes)):
        size = _length(votes[source, 1:])
        if weight[source] > 0.0 and size > 0.0:
            guess += weight[source] * math.asinh(size) / size * votes[source, 1:]
    length = _length(guess)
    if length > 0.0:
        guess /= length
    return length / weight.sum()


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spent(votes: FloatArray, weight: FloatArray, line: FloatArray, length: float, room: FloatArray) -> float:
    """Return the weighted squared distances of the votes to the point at `length` on the line."""
    total = 0.0
    for source in range(len(votes)):
        if weight[source] > 0.0:
            _shift(votes[source, 1:], line, -length, room)
            total += weight[source] * math.asinh(_length(room)) ** 2
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _slope(
    local: FloatArray,
    time: FloatArray,
    precision: FloatArray,
    volume: FloatArray,
    point: FloatArray,
    slope: FloatArray,
) -> tuple[float, float]:
    """Put minus the gradient at `point` into `slope`; return a bound on the curvature and the sum of weights.

    The curvature of ``r^2 / 2`` is at most ``r coth r``.
    """
    at = math.sqrt(1.0 + _dot(point, point))
    slope[:] = 0.0
    own, bound, total = 0.0, 0.0, 0.0
    for source in range(len(local)):
        if precision[source] <= 0.0 and volume[source] <= 0.0:
            continue
        product, gap = 0.0, 0.0
        for axis in range(len(point)):
            product += point[axis] * local[source, axis]
            gap += (point[axis] - local[source, axis]) ** 2
        cosine = at * time[source] - product
        # Half of the squared chord: by differences where votes are near, by the product where they are far.
        chord = gap - (at - time[source]) ** 2 if cosine < 2.0 else 2.0 * (cosine - 1.0)
        chord = max(chord, 0.0)
        r = 2.0 * math.asinh(0.5 * math.sqrt(chord))
        if r < 1e-6:
            ratio, stretch = 1.0, 1.0
        else:
            sine = math.sqrt(chord * (1.0 + 0.25 * chord))
            ratio, stretch = r / sine, r * (1.0 + 0.5 * chord) / sine
        weight = precision[source]
        if volume[source] > 0.0:
            weight += volume[source] * volume_pull(r)
        for axis in range(len(point)):
            slope[axis] += weight * ratio * local[source, axis]
        own += weight * ratio * (1.0 + 0.5 * chord)
        bound += weight * stretch
        total += weight
    for axis in range(len(point)):
        slope[axis] -= own * point[axis]
    return bound, total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _enter_frame(votes: FloatArray, line: FloatArray, length: float, local: FloatArray, time: FloatArray) -> None:
    """Put the votes as seen from the point at `length` on the line into `local` and `time`."""
    for source in range(len(votes)):
        if length == 0.0:
            local[source] = votes[source, 1:]
        else:
            _shift(votes[source, 1:], line, -length, local[source])
        time[source] = math.sqrt(1.0 + _dot(local[source], local[source]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def hyperbolic_means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray, tolerance: float, max_steps: int
) -> tuple[FloatArray, BoolArray]:
    """Return the point of least ``sum_a precision_a r_a^2 / 2 + volume_a log(sinh r_a / r_a)`` for every item.

    Gradient steps. A vote at distance r pulls with the weight ``precision + volume (coth r - 1 / r) / r``, which falls
    with r, so that with the weights held the cost is bounded from above; the step is short enough for the curvature
    that it may run into, so that every step lowers the cost.

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
    means = np.zeros((n, size))
    converged = np.ones(n, np.bool_)
    local, time = np.empty((m, d)), np.empty(m)
    point, slope, line, room = np.zeros(d), np.empty(d), np.empty(d), np.empty(d)
    for item in range(n):
        means[item, 0] = 1.0
        weight = np.maximum(precision[item], 0.0) + np.maximum(volume[item], 0.0) / 3.0
        if weight.sum() <= 0.0:
            continue
        own = votes[item]
        length = _first_guess(own, weight, line)
        point[:] = 0.0
        if length <= FAR:
            point += math.sinh(length) * line
            length = 0.0
        else:
            best = _spent(own, weight, line, length, room)
            at_origin = _spent(own, weight, line, 0.0, room)
            if at_origin < best:
                best, length = at_origin, 0.0
            heaviest = own[np.argmax(weight), 1:]
            reach = _length(heaviest)
            if reach > 0.0:
                slope[:] = heaviest / reach
                if _spent(own, weight, slope, math.asinh(reach), room) < best:
                    line[:] = slope
                    length = math.asinh(reach)
        _enter_frame(own, line, length, local, time)
        converged[item] = False
        frames = 0
        for _ in range(max_steps):
            bound, mass = _slope(local, time, precision[item], volume[item], point, slope)
            along = _dot(point, slope) ** 2 / (1.0 + _dot(point, point))
            size_of_slope = math.sqrt(max(_dot(slope, slope) - along, 0.0))
            # ``r coth r`` grows by at most the length of the step.
            reach = size_of_slope / (bound + mass * size_of_slope / bound)
            if not reach > tolerance:
                converged[item] = True
                break
            cosine, factor = math.cosh(reach), math.sinh(reach) / size_of_slope
            for axis in range(d):
                point[axis] = cosine * point[axis] + factor * slope[axis]
            if frames < FRAMES and _dot(point, point) > math.sinh(FAR) ** 2:
                frames += 1
                if length != 0.0:
                    _shift(point, line, length, room)
                    point[:] = room
                line[:] = point / _length(point)
                length = math.asinh(_length(point))
                point[:] = 0.0
                _enter_frame(own, line, length, local, time)
        if length != 0.0:
            _shift(point, line, length, room)
            point[:] = room
        means[item, 1:] = point
        means[item, 0] = math.sqrt(1.0 + _dot(point, point))
    return means, converged


# --- spheres and rotations ---------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _angle(left: FloatArray, right: FloatArray) -> float:
    apart, together = 0.0, 0.0
    for axis in range(len(left)):
        apart += (left[axis] - right[axis]) ** 2
        together += (left[axis] + right[axis]) ** 2
    return 2.0 * math.atan2(math.sqrt(apart), math.sqrt(together))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spent_on_sphere(votes: FloatArray, precision: FloatArray, point: FloatArray, folded: bool) -> float:
    total = 0.0
    for source in range(len(votes)):
        if precision[source] > 0.0:
            r = _angle(point, votes[source])
            if folded:
                r = min(r, math.pi - r)
            total += precision[source] * r * r
    return total


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
            if math.pi - r < OPPOSITE:  # every direction leads there: that of the axis the point is least along
                least = np.argmin(np.abs(point))
                made_up = -point[least] * point
                made_up[least] += 1.0
                slope += weight * r / _length(made_up) * made_up
            else:
                factor, cosine = weight * (r / math.sin(r) if r > 1e-6 else 1.0), math.cos(r)
                for axis in range(len(point)):
                    slope[axis] += factor * (sign * votes[source, axis] - cosine * point[axis])
        along = _dot(slope, point)
        for axis in range(len(point)):
            slope[axis] -= along * point[axis]
        size = _length(slope)
        # The curvature of r^2 / 2 is at most one on a sphere, so that this step cannot overshoot.
        reach = size / mass
        if not reach > tolerance:
            return True, furthest
        cosine, factor = math.cos(reach), math.sin(reach) / size
        for axis in range(len(point)):
            point[axis] = cosine * point[axis] + factor * slope[axis]
        length = _length(point)
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
    means[:, 0] = 1.0
    converged, unique = np.ones(n, np.bool_), np.ones(n, np.bool_)
    point, other, slope = np.empty(size), np.empty(size), np.empty(size)
    limit = 0.25 * math.pi if folded else 0.5 * math.pi
    for item in range(n):
        own, weight, pull = votes[item], precision[item], volume[item]
        heaviest = np.argmax(weight)
        if weight[heaviest] <= 0.0:
            continue
        point[:] = 0.0
        for source in range(m):
            if weight[source] > 0.0:
                sign = -1.0 if folded and _dot(own[source], own[heaviest]) < 0.0 else 1.0
                point += sign * weight[source] * own[source]
        length = _length(point)
        if length > 1e-9 * weight[heaviest]:
            point /= length
        else:
            point[:] = own[heaviest]
        done, furthest = _descend(own, weight, pull, folded, tolerance, max_steps, point, slope)
        if furthest >= limit:
            unique[item] = False
            least = np.inf
            for source in range(m):
                if weight[source] > 0.0:
                    spent = _spent_on_sphere(own, weight, own[source], folded)
                    if spent < least:
                        least = spent
                        other[:] = own[source]
            finished, _ = _descend(own, weight, pull, folded, tolerance, max_steps, other, slope)
            spent = _spent_on_sphere(own, weight, point, folded)
            if _spent_on_sphere(own, weight, other, folded) < spent * (1.0 - 1e-9):
                point[:] = other
                done = finished
        means[item] = point
        converged[item] = done
    return means, converged, unique
