"""Weighted means on the unit hyperboloid, item by item.

A point is ``(t, x)`` with ``t^2 = 1 + |x|^2``; only x is stored in the loops, so that no point can leave the
hyperboloid. Coordinates grow like the exponential of the distance from the origin. An item whose votes lie far out
is therefore moved to the origin first: along the line through its first guess a point is the pair of a signed
length and of what is across, and the move adds to the length, so that nothing cancels.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["hyperbolic_means"]

#: Beyond this distance from the origin of its frame an estimate gets a frame of its own, at most so many times.
FAR, FRAMES = 2.0, 40
SAFE = {"reassoc", "contract", "nsz", "arcp"}


@numba.njit(cache=True, nogil=True, error_model="numpy")
def volume_pull(r: float) -> float:
    """Return ``(coth r - 1 / r) / r``: what the volume of hyperbolic space adds to the weight of a vote."""
    if r < 1e-2:
        return 1.0 / 3.0 - r * r / 45.0
    return (1.0 / math.tanh(r) - 1.0 / r) / r


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _squared_length(x: FloatArray) -> float:
    total = 0.0
    for axis in range(len(x)):
        total += x[axis] * x[axis]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE)
def _shift(x: FloatArray, line: FloatArray, length: float, result: FloatArray) -> None:
    """Move a point by `length` along the line through the origin with this unit direction."""
    along = 0.0
    for axis in range(len(x)):
        along += x[axis] * line[axis]
    across = 1.0
    for axis in range(len(x)):
        result[axis] = x[axis] - along * line[axis]
        across += result[axis] * result[axis]
    across = math.sqrt(across)
    moved = across * math.sinh(math.asinh(along / across) + length)
    for axis in range(len(x)):
        result[axis] += moved * line[axis]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_guess(votes: FloatArray, weight: FloatArray, guess: FloatArray) -> float:
    """Put the mean of the votes in the tangent space at the origin into `guess`; return its length."""
    guess[:] = 0.0
    total = 0.0
    for source in range(len(votes)):
        if weight[source] <= 0.0:
            continue
        total += weight[source]
        size = math.sqrt(_squared_length(votes[source, 1:]))
        if size > 0.0:
            factor = weight[source] * math.asinh(size) / size
            for axis in range(len(guess)):
                guess[axis] += factor * votes[source, axis + 1]
    length = math.sqrt(_squared_length(guess)) / total
    if length > 0.0:
        scale = 1.0 / (length * total)
        for axis in range(len(guess)):
            guess[axis] *= scale
    return length


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spent(votes: FloatArray, weight: FloatArray, line: FloatArray, length: float, room: FloatArray) -> float:
    """Return the weighted squared distances of the votes to the point at `length` on the line."""
    total = 0.0
    for source in range(len(votes)):
        if weight[source] > 0.0:
            _shift(votes[source, 1:], line, -length, room)
            distance = math.asinh(math.sqrt(_squared_length(room)))
            total += weight[source] * distance * distance
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
    d = len(point)
    at = math.sqrt(1.0 + _squared_length(point))
    for axis in range(d):
        slope[axis] = 0.0
    own, bound, total = 0.0, 0.0, 0.0
    for source in range(len(local)):
        if precision[source] <= 0.0 and volume[source] <= 0.0:
            continue
        product, gap = 0.0, 0.0
        for axis in range(d):
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
        factor = weight * ratio
        for axis in range(d):
            slope[axis] += factor * local[source, axis]
        own += factor * (1.0 + 0.5 * chord)
        bound += weight * stretch
        total += weight
    for axis in range(d):
        slope[axis] -= own * point[axis]
    return bound, total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _enter_frame(votes: FloatArray, line: FloatArray, length: float, local: FloatArray, time: FloatArray) -> None:
    for source in range(len(votes)):
        if length == 0.0:
            local[source] = votes[source, 1:]
        else:
            _shift(votes[source, 1:], line, -length, local[source])
        time[source] = math.sqrt(1.0 + _squared_length(local[source]))


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
    local, time, weight = np.empty((m, d)), np.empty(m), np.empty(m)
    point, slope, line, room = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for item in range(n):
        means[item, 0] = 1.0
        total = 0.0
        heaviest = 0
        for source in range(m):
            weight[source] = max(precision[item, source], 0.0) + max(volume[item, source], 0.0) / 3.0
            total += weight[source]
            if weight[source] > weight[heaviest]:
                heaviest = source
        if total <= 0.0:
            continue
        length = _first_guess(votes[item], weight, line)
        if length <= FAR:
            for axis in range(d):
                point[axis] = math.sinh(length) * line[axis] if length > 0.0 else 0.0
            length = 0.0
        else:
            point[:] = 0.0
            best = _spent(votes[item], weight, line, length, room)
            if _spent(votes[item], weight, line, 0.0, room) < best:
                best, length = _spent(votes[item], weight, line, 0.0, room), 0.0
            room_size = math.sqrt(_squared_length(votes[item, heaviest, 1:]))
            if room_size > 0.0:
                slope[:] = votes[item, heaviest, 1:] / room_size
                reach = math.asinh(room_size)
                if _spent(votes[item], weight, slope, reach, room) < best:
                    line[:] = slope
                    length = reach
        _enter_frame(votes[item], line, length, local, time)
        done = False
        frames = 0
        for _ in range(max_steps):
            bound, mass = _slope(local, time, precision[item], volume[item], point, slope)
            at = math.sqrt(1.0 + _squared_length(point))
            product = 0.0
            for axis in range(d):
                product += point[axis] * slope[axis]
            size_of_slope = math.sqrt(max(_squared_length(slope) - (product / at) ** 2, 0.0))
            # ``r coth r`` grows by at most the length of the step.
            step = 1.0 / (bound + mass * size_of_slope / bound)
            reach = step * size_of_slope
            if not reach > tolerance:
                done = True
                break
            cosine, factor = math.cosh(reach), math.sinh(reach) / size_of_slope
            for axis in range(d):
                point[axis] = cosine * point[axis] + factor * slope[axis]
            if frames < FRAMES and _squared_length(point) > math.sinh(FAR) ** 2:
                frames += 1
                if length != 0.0:
                    _shift(point, line, length, room)
                    point[:] = room
                away = math.sqrt(_squared_length(point))
                line[:] = point / away
                length = math.asinh(away)
                point[:] = 0.0
                _enter_frame(votes[item], line, length, local, time)
        if length != 0.0:
            _shift(point, line, length, room)
            point[:] = room
        means[item, 1:] = point
        means[item, 0] = math.sqrt(1.0 + _squared_length(point))
        converged[item] = done
    return means, converged
