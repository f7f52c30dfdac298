"""Least squares fit of a geodesic, or of a geodesic surface, to points of a space of constant curvature.

The model is ``y(x) = exp_p(sum_j x_j v_j)``. How a prediction moves with p and v is a Jacobi field. Carried back to
p it has one factor along the geodesic and one across, so that the normal equations fall apart: directions outside of
the span of the velocities all share one small system, those inside have another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.label_types.manifolds.geometry import Geometry

__all__ = ["GeodesicFit", "fit_geodesic", "geodesic_points", "moved_along"]

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


def geodesic_points(geometry: Geometry, base: FloatArray, velocities: FloatArray, covariates: FloatArray) -> FloatArray:
    """Return ``exp_base(covariates @ velocities)``, ``(n, D)``."""
    return geometry.exp(base, covariates @ velocities)


def moved_along(
    geometry: Geometry, base: FloatArray, velocity: FloatArray, time: float
) -> tuple[FloatArray, FloatArray]:
    """Return point and velocity of a geodesic at another time."""
    path = _Path(geometry, base, time * velocity[None])
    speed = float(np.sqrt(max(float(geometry.inner(base, velocity, velocity)), 0.0)))
    forward = np.sign(time) * speed * path.directions_there[0]
    return geometry.exp(base, time * velocity), forward if path.lengths[0] > 0 else velocity.copy()


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
    best: GeodesicFit | None = None
    for start in _starts(geometry, covariates, seen, weights, home):
        problem = _Problem(geometry, covariates, seen, weights)
        found = problem.minimise(start, max_iterations, tolerance)
        if best is None or found.cost < best.cost * (1.0 - 1e-9):
            best = found
    if best is None:  # without overflow at least the constant curve is a start
        return GeodesicFit(middle, np.zeros((covariates.shape[1], len(middle))), float("inf"))
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
    turned: FloatArray = along * end + geometry.transport(start, end, vectors - along * start)
    return turned


def _tangent(geometry: Geometry, point: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors without what rounding put across the tangent space."""
    out = geometry.curvature * geometry.inner(point, vectors, np.broadcast_to(point, vectors.shape))
    tangent: FloatArray = vectors - out[..., None] * point
    return tangent


def _starts(
    geometry: Geometry, covariates: FloatArray, points: FloatArray, weights: FloatArray, home: FloatArray
) -> Iterator[GeodesicFit]:
    """Yield linear regressions of the points as seen from their middle.

    On a closed space far points may be seen round the wrong side; there, fits that grow from fewer of them are starts
    too.
    """
    n, k = covariates.shape
    away = covariates - weights @ covariates
    apart = ((away / np.maximum(np.sqrt(weights @ away**2), 1e-300)) ** 2).sum(axis=1)
    order = np.argsort(apart, kind="stable")
    whole = _Problem(geometry, covariates, points, weights)
    for share in CLOSED_STARTS if geometry.curvature > 0 else (1.0,):
        count = max(round(share * n), min(n, k + 2))
        fit = _line(whole.of(order[:count]), home if count == n else None)
        while count < n:  # what lies further out is met by a curve that has learned where to go
            fit = whole.of(order[:count]).minimise(fit, GROWING_STEPS, 1e-4)
            count = min(2 * count, n)
        yield replace(fit, cost=whole.cost(fit.base, fit.velocities))


def _line(problem: _Problem, centre: FloatArray | None) -> GeodesicFit:
    """Return the linear regression of the points as seen from a centre, their mean if it is not given."""
    geometry, weights, points = problem.geometry, problem.weights, problem.points
    if centre is None:
        centre = geometry.means(points[None], weights[None]).points[0]
    root = np.sqrt(weights)[:, None]
    design = np.hstack([np.ones((len(points), 1)), problem.covariates])
    line = np.linalg.lstsq(root * design, root * geometry.log(centre, points), rcond=None)[0]
    constant = GeodesicFit(centre, np.zeros_like(line[1:]), problem.cost(centre, np.zeros_like(line[1:])))
    with np.errstate(over="ignore", invalid="ignore"):
        base = geometry.exp(centre, line[0])
        velocities = _tangent(geometry, base, geometry.transport(centre, base, line[1:]))
    cost = problem.cost(base, velocities)
    # A straight line in the tangent space may be worse than none, or leave the range of numbers.
    return GeodesicFit(base, velocities, cost) if cost <= constant.cost else constant


@dataclass(frozen=True)
class _Path:
    """Geodesics from one point with given velocities, at time one."""

    geometry: Geometry
    base: FloatArray
    velocities: FloatArray

    @cached_property
    def lengths(self) -> FloatArray:
        square = self.geometry.inner(self.base, self.velocities, self.velocities)
        length: FloatArray = np.sqrt(np.maximum(square, 0.0))
        return length

    @cached_property
    def angles(self) -> FloatArray:
        """Lengths in curvature radii."""
        angles = self.lengths / self.geometry.radius
        return np.minimum(angles, LONGEST) if self.geometry.curvature < 0 else angles

    @cached_property
    def directions(self) -> FloatArray:
        """Unit velocities at the start; zero for a path of no length."""
        length = np.where(self.lengths > 0, self.lengths, 1.0)[:, None]
        direction: FloatArray = np.where(self.lengths[:, None] > 0, self.velocities / length, 0.0)
        return direction

    @cached_property
    def directions_there(self) -> FloatArray:
        """Unit velocities at the end."""
        factor = -self.geometry.curvature * self.geometry.radius * self.sine
        present = (self.lengths > 0)[:, None]
        end: FloatArray = np.where(present, factor[:, None] * self.base, 0.0) + self.cosine[:, None] * self.directions
        return end

    @property
    def cosine(self) -> FloatArray:
        """How far a move of the start moves the end, across the path."""
        cosine: FloatArray = np.cosh(self.angles) if self.geometry.curvature < 0 else np.cos(self.angles)
        return cosine

    @property
    def sine(self) -> FloatArray:
        sine: FloatArray = np.sinh(self.angles) if self.geometry.curvature < 0 else np.sin(self.angles)
        return sine

    @property
    def spread(self) -> FloatArray:
        """How far a change of the velocity moves the end, across the path."""
        return np.where(self.angles > 1e-8, self.sine / np.maximum(self.angles, 1e-300), 1.0)

    def carried_back(self, tangents: FloatArray) -> FloatArray:
        """Return tangent vectors at the end carried to the start along the path, however long it is."""
        along = self.geometry.inner(self.base, tangents, self.directions_there)[:, None]
        back: FloatArray = tangents + along * (self.directions - self.directions_there)
        return _tangent(self.geometry, self.base, back)


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
            predicted = geodesic_points(self.geometry, base, velocities, self.covariates)
            cost = float(self.weights @ self.geometry.distance(predicted, self.points) ** 2)
        return cost if np.isfinite(cost) else float("inf")

    def minimise(self, fit: GeodesicFit, max_iterations: int, tolerance: float) -> GeodesicFit:
        """Return the fit after steps that never raise the cost."""
        flat = np.zeros_like(fit.velocities)
        scale = float(np.sqrt(max(fit.cost, self.cost(fit.base, flat), np.finfo(float).tiny)))
        damping, converged, iteration = DAMPING, False, 0
        while iteration < max_iterations and not converged and damping < GIVE_UP:
            iteration += 1
            equations = self._equations(fit)
            while damping < GIVE_UP:
                change, length = equations.solve(damping)
                reached = self._moved(fit, change)
                # At the accuracy of the distances themselves no step lowers the cost any more.
                if reached.cost <= fit.cost * (1.0 + 1e-13) or length <= tolerance * scale:
                    break
                damping *= 10.0
            if reached.cost <= fit.cost * (1.0 + 1e-13):
                fit = reached
            # A step that is short for its damping says nothing.
            converged = length <= tolerance * scale and damping <= 1.0
            converged |= damping >= GIVE_UP and equations.solve(0.0)[1] <= 1e-5 * scale
            damping = max(damping / 10.0, 1e-12)
        return replace(fit, iterations=iteration, converged=bool(converged))

    def _moved(self, fit: GeodesicFit, change: FloatArray) -> GeodesicFit:
        with np.errstate(over="ignore", invalid="ignore"):
            base = self.geometry.exp(fit.base, change[0])
            velocities = self.geometry.transport(fit.base, base, fit.velocities + change[1:])
            velocities = _tangent(self.geometry, base, velocities)
        return GeodesicFit(base, velocities, self.cost(base, velocities))

    def _equations(self, fit: GeodesicFit) -> _Equations:
        geometry = self.geometry
        path = _Path(geometry, fit.base, self.covariates @ fit.velocities)
        ends = geometry.exp(fit.base, path.velocities)
        residuals = path.carried_back(geometry.log(ends, self.points))
        # Squared distances bend more than in flat space; on average over directions that is a factor per point.
        bend = geometry.curvature_bound(geometry.distance(ends, self.points))
        weight = self.weights * (1.0 + (geometry.dimension - 1) * bend) / geometry.dimension
        along = np.hstack([np.ones((len(ends), 1)), self.covariates])
        across = np.hstack([path.cosine[:, None], path.spread[:, None] * self.covariates])
        basis = _basis(geometry, fit)
        directions = geometry.inner(fit.base, path.directions[:, None], basis[None])
        inside = geometry.inner(fit.base, residuals[:, None], basis[None])
        projected = (directions * inside).sum(axis=1, keepdims=True) * directions
        slope_inside = across.T @ (self.weights[:, None] * (inside - projected))
        slope_inside += along.T @ (self.weights[:, None] * projected)
        outer = directions[:, :, None] * directions[:, None, :]
        rest = np.eye(len(basis)) - outer
        inner_matrix = np.einsum("n,na,nb,nrs->arbs", weight, across, across, rest, optimize=True)
        inner_matrix += np.einsum("n,na,nb,nrs->arbs", weight, along, along, outer, optimize=True)
        return _Equations(
            geometry,
            fit.base,
            basis,
            inner_matrix.reshape(slope_inside.size, slope_inside.size),
            slope_inside,
            (across * weight[:, None]).T @ across,
            across.T @ (self.weights[:, None] * (residuals - inside @ basis)),
        )


def _basis(geometry: Geometry, fit: GeodesicFit) -> FloatArray:
    """Return orthonormal tangent vectors that span the velocities, ``(r, D)``."""
    velocities = fit.velocities
    gram = geometry.inner(fit.base, velocities[:, None], velocities[None])
    values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
    kept = values > max(1e-14 * float(values.max(initial=0.0)), 1e-280)
    basis: FloatArray = (vectors[:, kept] / np.sqrt(values[kept])).T @ velocities
    return basis


@dataclass(frozen=True)
class _Equations:
    """Normal equations: for directions in the span of the velocities, and for all others."""

    geometry: Geometry
    base: FloatArray
    basis: FloatArray
    inner_matrix: FloatArray
    inner_slope: FloatArray
    outer_matrix: FloatArray
    outer_slope: FloatArray

    def solve(self, damping: float) -> tuple[FloatArray, float]:
        """Return the changes of base and velocities, ``(1 + k, D)``, and how far they move the predictions."""
        inside = _damped(self.inner_matrix, self.inner_slope.reshape(-1, 1), damping).reshape(self.inner_slope.shape)
        outside = _damped(self.outer_matrix, self.outer_slope, damping)
        change = _tangent(self.geometry, self.base, inside @ self.basis + outside)
        square = float((inside * self.inner_slope).sum())
        square += float(self.geometry.inner(self.base, outside, self.outer_slope).sum())
        return change, float(np.sqrt(max(square, 0.0)))


def _damped(matrix: FloatArray, slope: FloatArray, damping: float) -> FloatArray:
    """Return the solution of equations whose diagonal is raised, in units of that diagonal."""
    if matrix.size == 0:
        return np.zeros_like(slope)
    unit = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / unit[:, None] / unit[None, :] + damping * np.eye(len(unit))
    solution: FloatArray = np.linalg.lstsq(scaled, slope / unit[:, None], rcond=1e-13)[0] / unit[:, None]
    return solution
