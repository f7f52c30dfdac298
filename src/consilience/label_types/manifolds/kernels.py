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
            best, cost = -1, _spent_on_sphere(votes[item], precision[item], point, folded)
            own = cost
            for source in range(m):
                if precision[item, source] > 0.0:
                    spent = _spent_on_sphere(votes[item], precision[item], votes[item, source], folded)
                    if best < 0 or spent < cost:
                        best, cost = source, spent
            other[:] = votes[item, best]
            finished, _ = _descend(
                votes[item], precision[item], volume[item], folded, tolerance, max_steps, other, slope, room
            )
            if _spent_on_sphere(votes[item], precision[item], other, folded) < own * (1.0 - 1e-9):
                point[:] = other
                done = finished
        means[item] = point
        converged[item] = done
    return means, converged, unique
