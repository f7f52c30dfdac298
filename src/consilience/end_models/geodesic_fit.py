"""Least squares fit of a geodesic, or of a geodesic surface, to points of a space of constant curvature.

The model is ``y(x) = exp_p(sum_j x_j v_j)``. How a prediction moves with p and v is a Jacobi field. Carried back to
p it has one factor along the geodesic and one across, so that the normal equations fall apart: directions outside of
the span of the velocities all share one small system, those inside have another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.label_types.manifolds.geometry import Geometry

__all__ = ["GeodesicFit", "fit_geodesic", "moved_along"]

#: Geodesics longer than this, in curvature radii, would overflow the squares of the factors across.
LONGEST = 300.0
#: Shares of the items, nearest to the middle of the covariates, that give a start on a closed space.
CLOSED_STARTS = (1.0, 0.25)
#: Steps for each share on the way from such a start to all items, which doubles each time.
GROWING_STEPS = 10
#: Damping at the start, and where no step is short enough to lower the cost.
DAMPING, GIVE_UP = 1e-3, 1e10


@dataclass(frozen=True)
class GeodesicFit:
    """A base point and one velocity per covariate.

    Attributes
    ----------
    base : array of shape (D,)
        The value where all covariates are zero.
    velocities : array of shape (k, D)
        Tangent vectors at `base`.
    cost : float
        Weighted mean squared distance to the points.
    iterations : int
    converged : bool
        Whether the last step was short enough.
    """

    base: FloatArray
    velocities: FloatArray
    cost: float
    iterations: int = 0
    converged: bool = False


def moved_along(
    geometry: Geometry, base: FloatArray, velocity: FloatArray, time: float
) -> tuple[FloatArray, FloatArray]:
    """Return point and velocity of a geodesic at another time."""
    path = _paths(geometry, base, time * velocity[None])
    length = float(path.lengths[0])
    there = length / time * path.directions_there[0] if length > 0 else velocity.copy()
    return geometry.exp(base, time * velocity), there


def fit_geodesic(
    geometry: Geometry,
    covariates: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    *,
    max_iterations: int = 100,
    tolerance: float = 1e-9,
) -> GeodesicFit:
    """Return the geodesic of least weighted squared distance to the points, by damped Gauss-Newton steps.

    Parameters
    ----------
    geometry
        Hyperbolic or a sphere.
    covariates : array of shape (n, k)
    points : array of shape (n, D)
    weights : array of shape (n,)
        Not negative, and not all zero.
    max_iterations, tolerance
        Ends when predictions move by less than `tolerance` times the spread of the points.

    Examples
    --------
    >>> from consilience.label_types.manifolds.curved import HyperbolicGeometry
    >>> plane, time = HyperbolicGeometry(2), np.linspace(-1, 1, 5)[:, None]
    >>> curve = plane.exp(plane.origin, time * np.array([0.0, 0.6, 0.8]))
    >>> fit_geodesic(plane, time, curve, np.ones(5)).velocities.round(6)
    array([[0. , 0.6, 0.8]])
    """
    weights = weights / weights.sum()
    middle = geometry.means(points[None], weights[None]).points[0]
    open_space = geometry.curvature < 0
    # Coordinates of hyperbolic space lose digits far from the origin, so the middle of the points is moved there.
    home = geometry.origin if open_space else middle
    seen = _carried(geometry, points, middle, home) if open_space else points
    problem = _Problem(geometry, covariates, seen, weights)
    best, *others = (problem.minimize(start, max_iterations, tolerance) for start in _starts(problem, home))
    for found in others:
        if found.cost < best.cost * (1.0 - 1e-9):
            best = found
    if not open_space:
        return best
    base = _carried(geometry, best.base[None], home, middle)[0]
    velocities = _tangent(geometry, base, _turned(geometry, best.velocities, home, middle))
    return replace(best, base=base, velocities=velocities)


def _carried(geometry: Geometry, points: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return points moved by the isometry that carries `start` to `end` along their geodesic."""
    return geometry.exp(end, geometry.transport(start, end, geometry.log(start, points)))


def _turned(geometry: Geometry, vectors: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return tangent vectors, anywhere, moved by the same isometry, which is linear in the coordinates."""
    along = geometry.curvature * geometry.inner(start, vectors, start)[..., None]
    return np.asarray(along * end + geometry.transport(start, end, vectors - along * start))


def _tangent(geometry: Geometry, point: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors without what rounding put across the tangent space."""
    out = geometry.curvature * geometry.inner(point, vectors, np.broadcast_to(point, vectors.shape))
    return np.asarray(vectors - out[..., None] * point)


def _starts(whole: _Problem, home: FloatArray) -> Iterator[GeodesicFit]:
    """Yield linear regressions of the points as seen from their middle.

    On a closed space far points may be seen around the wrong side; there, fits that grow from fewer points are starts
    too.
    """
    n, k = whole.covariates.shape
    away = whole.covariates - whole.weights @ whole.covariates
    apart = ((away / np.maximum(np.sqrt(whole.weights @ away**2), 1e-300)) ** 2).sum(axis=1)
    order = np.argsort(apart, kind="stable")
    for share in CLOSED_STARTS if whole.geometry.curvature > 0 else (1.0,):
        count = max(round(share * n), min(n, k + 2))
        fit = whole.of(order[:count]).line(home if count == n else None)
        while count < n:  # what lies further out is met by a curve that has learned where to go
            fit = whole.of(order[:count]).minimize(fit, GROWING_STEPS, 1e-4)
            count = min(2 * count, n)
        yield replace(fit, cost=whole.cost(fit.base, fit.velocities))


class _Paths(NamedTuple):
    """Geodesics from one point at time one, with unit velocities at both ends, zero for a path of no length.

    Across a path, a move of its start moves its end by `cosine`, and a change of its velocity by `spread`.
    """

    lengths: FloatArray
    directions: FloatArray
    directions_there: FloatArray
    cosine: FloatArray
    spread: FloatArray


def _paths(geometry: Geometry, base: FloatArray, velocities: FloatArray) -> _Paths:
    lengths = np.sqrt(np.maximum(geometry.inner(base, velocities, velocities), 0.0))
    angles = lengths / geometry.radius
    if geometry.curvature < 0:
        angles = np.minimum(angles, LONGEST)
        cosine, sine = np.cosh(angles), np.sinh(angles)
    else:
        cosine, sine = np.cos(angles), np.sin(angles)
    present = (lengths > 0)[:, None]
    directions = np.where(present, velocities / np.where(present, lengths[:, None], 1.0), 0.0)
    factor = -geometry.curvature * geometry.radius * sine
    there = np.where(present, factor[:, None] * base, 0.0) + cosine[:, None] * directions
    spread = np.where(angles > 1e-8, sine / np.maximum(angles, 1e-300), 1.0)
    return _Paths(lengths, directions, there, cosine, spread)


@dataclass(frozen=True)
class _Problem:
    """Squared distances of given points to a geodesic, and how they change with it."""

    geometry: Geometry
    covariates: FloatArray
    points: FloatArray
    weights: FloatArray

    def of(self, rows: IntArray) -> _Problem:
        """Return the same problem for some of the points."""
        part = self.weights[rows]
        return _Problem(self.geometry, self.covariates[rows], self.points[rows], part / part.sum())

    def cost(self, base: FloatArray, velocities: FloatArray) -> float:
        """Return the weighted mean squared distance; infinite where numbers overflow."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            predicted = self.geometry.exp(base, self.covariates @ velocities)
            cost = float(self.weights @ self.geometry.distance(predicted, self.points) ** 2)
        return cost if np.isfinite(cost) else float("inf")

    def line(self, center: FloatArray | None) -> GeodesicFit:
        """Return the linear regression of the points as seen from a center, their mean if it is not given."""
        geometry = self.geometry
        if center is None:
            center = geometry.means(self.points[None], self.weights[None]).points[0]
        root = np.sqrt(self.weights)[:, None]
        design = np.hstack([np.ones((len(self.points), 1)), self.covariates])
        line = np.linalg.lstsq(root * design, root * geometry.log(center, self.points), rcond=None)[0]
        start = GeodesicFit(center, np.zeros_like(line[1:]), self.cost(center, np.zeros_like(line[1:])))
        found = self._moved(start, line)
        # A straight line in the tangent space may be worse than none, or leave the range of numbers.
        return found if found.cost <= start.cost else start

    def minimize(self, fit: GeodesicFit, max_iterations: int, tolerance: float) -> GeodesicFit:
        """Return the fit after steps that never raise the cost."""
        flat = np.zeros_like(fit.velocities)
        scale = float(np.sqrt(max(fit.cost, self.cost(fit.base, flat), np.finfo(float).tiny)))
        damping, converged, iteration = DAMPING, False, 0
        while iteration < max_iterations and not converged and damping < GIVE_UP:
            iteration += 1
            step = self._step_at(fit)
            while damping < GIVE_UP:
                change, length = step(damping)
                reached = self._moved(fit, change)
                # At the accuracy of the distances themselves no step lowers the cost any more.
                if reached.cost <= fit.cost * (1.0 + 1e-13) or length <= tolerance * scale:
                    break
                damping *= 10.0
            if reached.cost <= fit.cost * (1.0 + 1e-13):
                fit = reached
            # A step that is short for its damping says nothing.
            converged = length <= tolerance * scale and damping <= 1.0
            converged |= damping >= GIVE_UP and step(0.0)[1] <= 1e-5 * scale
            damping = max(damping / 10.0, 1e-12)
        return replace(fit, iterations=iteration, converged=bool(converged))

    def _moved(self, fit: GeodesicFit, change: FloatArray) -> GeodesicFit:
        with np.errstate(over="ignore", invalid="ignore"):
            base = self.geometry.exp(fit.base, change[0])
            velocities = self.geometry.transport(fit.base, base, fit.velocities + change[1:])
            velocities = _tangent(self.geometry, base, velocities)
        return GeodesicFit(base, velocities, self.cost(base, velocities))

    def _step_at(self, fit: GeodesicFit) -> Callable[[float], tuple[FloatArray, float]]:
        """Return what solves the normal equations for a damping.

        It returns the changes of base and velocities, ``(1 + k, D)``, and how far they move the predictions.
        """
        geometry, base, weights = self.geometry, fit.base, self.weights[:, None]
        velocities = self.covariates @ fit.velocities
        path, ends = _paths(geometry, base, velocities), geometry.exp(base, velocities)
        # Residuals are carried to the base along the path, however long it is.
        residuals = geometry.log(ends, self.points)
        shift = geometry.inner(base, residuals, path.directions_there)[:, None]
        residuals = _tangent(geometry, base, residuals + shift * (path.directions - path.directions_there))
        # Squared distances bend more than in flat space; on average over directions that is a factor per point.
        bend = geometry.curvature_bound(geometry.distance(ends, self.points))
        bent = self.weights * (1.0 + (geometry.dimension - 1) * bend) / geometry.dimension
        along = np.hstack([np.ones((len(ends), 1)), self.covariates])
        across = np.hstack([path.cosine[:, None], path.spread[:, None] * self.covariates])
        basis = _basis(geometry, fit)
        directions = geometry.inner(base, path.directions[:, None], basis[None])
        inside = geometry.inner(base, residuals[:, None], basis[None])
        projected = (directions * inside).sum(axis=1, keepdims=True) * directions
        inner_slope = across.T @ (weights * (inside - projected)) + along.T @ (weights * projected)
        outer_slope = across.T @ (weights * (residuals - inside @ basis))
        outer = directions[:, :, None] * directions[:, None, :]
        rest = np.eye(len(basis)) - outer
        inner_matrix = np.einsum("n,na,nb,nrs->arbs", bent, across, across, rest, optimize=True)
        inner_matrix += np.einsum("n,na,nb,nrs->arbs", bent, along, along, outer, optimize=True)
        inner_matrix = inner_matrix.reshape(inner_slope.size, inner_slope.size)
        outer_matrix = (across * bent[:, None]).T @ across

        def step(damping: float) -> tuple[FloatArray, float]:
            within = _damped(inner_matrix, inner_slope.reshape(-1, 1), damping).reshape(inner_slope.shape)
            outside = _damped(outer_matrix, outer_slope, damping)
            square = float((within * inner_slope).sum() + geometry.inner(base, outside, outer_slope).sum())
            return _tangent(geometry, base, within @ basis + outside), float(np.sqrt(max(square, 0.0)))

        return step


def _basis(geometry: Geometry, fit: GeodesicFit) -> FloatArray:
    """Return orthonormal tangent vectors that span the velocities, ``(r, D)``."""
    velocities = fit.velocities
    gram = geometry.inner(fit.base, velocities[:, None], velocities[None])
    values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
    kept = values > max(1e-14 * float(values.max(initial=0.0)), 1e-280)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ velocities)


def _damped(matrix: FloatArray, slope: FloatArray, damping: float) -> FloatArray:
    """Return the solution of equations whose diagonal is raised, in units of that diagonal."""
    if matrix.size == 0:
        return np.zeros_like(slope)
    unit = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / unit[:, None] / unit[None, :] + damping * np.eye(len(unit))
    return np.asarray(np.linalg.lstsq(scaled, slope / unit[:, None], rcond=1e-13)[0] / unit[:, None])
