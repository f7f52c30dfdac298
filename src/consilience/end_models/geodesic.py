"""Regression whose labels are points of hyperbolic space or of a sphere.

The model is ``y(x) = exp_p(sum_j x_j v_j)``. A prediction moves with p and v by a Jacobi field. Transported back to p,
it has one factor along the geodesic and one across, so that the normal equations separate: directions outside the span
of the velocities share one small system, and those inside have another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_floats, as_object_array, is_null
from consilience.end_models.inputs import EndModel, as_numbers, check_count, read_weights
from consilience.exceptions import ConsilienceWarning, InvalidInputError, InvalidLabelError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.label_types.manifolds.geometry import Geometry
from consilience.label_types.manifolds.spaces import Hyperbolic, Sphere

#: Geodesics longer than this, in curvature radii, would overflow the squares of the factors across.
LONGEST = 300.0
#: On a closed space, the fit starts from these shares of the items, closest to the middle of the covariates.
CLOSED_STARTS = (1.0, 0.25)
#: Steps for each share on the way from such a start to all items, which doubles each time.
GROWING_STEPS = 10
#: Damping at the start, and the value at which the search for a better step ends.
DAMPING, GIVE_UP = 1e-3, 1e10


@dataclass(repr=False, eq=False)
class GeodesicRegression(EndModel):
    """Least squares regression on a curved space: ``y(x) = exp_p(sum_j (x_j - c_j) v_j)``.

    It is the analog of linear regression. With one covariate predictions lie on a geodesic; with several covariates
    they lie on a surface of geodesics through one point.

    Parameters
    ----------
    space : Hyperbolic or Sphere
        The label type.
    center
        Whether c is the mean of the covariates (True) or zero. With one covariate both give the same curve; with
        several they are different models.
    max_iterations, tolerance
        The largest number of Gauss-Newton steps (a handful is usual), and the movement of predictions, as a share of
        the spread of the labels, at which they end.

    Attributes
    ----------
    center_, intercept_, coef_
        The covariates c, the point p (for `Hyperbolic` on the hyperboloid) and its tangent vectors v, ``(k, d + 1)``.
    mean_squared_error_ : float
        Weighted mean squared distance of the labels to the fitted points.

    Examples
    --------
    A quarter of the equator, from one point to another:

    >>> from consilience import Sphere
    >>> x = np.linspace(0, 1, 5)
    >>> y = np.column_stack([np.cos(x), np.sin(x), np.zeros(5)])
    >>> GeodesicRegression(Sphere(2)).fit(x, y).predict([np.pi / 2]).round(6)
    array([[0., 1., 0.]])
    """

    learned = "_fit"

    space: Hyperbolic | Sphere
    _: KW_ONLY
    center: bool = True
    max_iterations: int = 100
    tolerance: float = 1e-9

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the curve of least squared distance to labels ``(n, d + 1)``, given covariates ``(n, k)`` or ``(n,)``.

        Items with missing labels (NaN or None) are left out. `sample_weight` has one weight per item.
        """
        if not isinstance(self.space, (Hyperbolic, Sphere)):
            raise UnsupportedError(
                f"GeodesicRegression fits points of Hyperbolic(d) and Sphere(d), not {self.space!r}. "
                "For numbers and vectors use a linear regression."
            )
        check_count("max_iterations", self.max_iterations)
        share = self.tolerance
        if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise UnsupportedError(f"tolerance={share!r} is not a share between 0 and 1. The default is 1e-9.")
        covariates = _read_covariates(X)
        points, present = _read_labels(y, self.space, len(covariates))
        weights = read_weights(sample_weight, len(covariates))[present]
        counted = weights > 0
        x, points, weights = covariates[present][counted], points[counted], weights[counted]
        center = _checked_center(x, weights)
        k = x.shape[1]
        # With one covariate the curve does not depend on its start, and the middle of the items is the most accurate.
        anchor = center if self.center or k == 1 else np.zeros(k)
        steps, share = int(self.max_iterations), float(self.tolerance)
        found = fit_geodesic(self.space.geometry, x - anchor, points, weights, max_iterations=steps, tolerance=share)
        start = (found.base, found.velocities) if self.center or k > 1 else self._at_zero(found, float(anchor[0]))
        self._fit, self._anchor = found, anchor
        self.center_, (self.intercept_, self.coef_) = center if self.center else np.zeros(k), start
        self.mean_squared_error_, self.n_iter_, self.n_features_in_ = found.cost, found.iterations, k
        if not found.converged:
            warnings.warn(
                f"GeodesicRegression did not converge after {found.iterations} of {self.max_iterations} steps. "
                "Raise max_iterations, or check the labels for outliers.",
                ConsilienceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Batch:
        """Return one point per row of covariates, as the space writes them."""
        return self.space.as_labels(self._points(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, ``1 - sum d(y, predicted)^2 / sum d(y, mean)^2``; at most 1.

        The mean is the Frechet mean of these labels. Missing labels are left out.
        """
        predicted = self._points(X)
        points, present = _read_labels(y, self.space, len(predicted))
        weights = read_weights(sample_weight, len(predicted))[present]
        if not weights.sum() > 0:
            raise InvalidInputError(
                "sample_weight is zero for every item with a label. Pass at least one positive weight."
            )
        geometry = self.space.geometry
        mean = geometry.means(points[None], (weights / weights.sum())[None]).points[0]
        error = float(weights @ geometry.distance(predicted[present], points) ** 2)
        total = float(weights @ geometry.distance(mean, points) ** 2)
        if total <= np.finfo(float).eps * float(weights.sum()):  # all labels are equal
            return 1.0 if error <= np.finfo(float).eps * float(weights.sum()) else 0.0
        return 1.0 - error / total

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, multi_output=True, single_output=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=True),
        )

    def _points(self, X: Any) -> FloatArray:
        self._require_fitted()
        covariates, found = _read_covariates(X, self.n_features_in_), self._fit
        with np.errstate(over="ignore", invalid="ignore"):
            points = self.space.geometry.exp(found.base, (covariates - self._anchor) @ found.velocities)
        for row in np.flatnonzero(~np.isfinite(points).all(axis=1))[:1]:
            raise InvalidInputError(
                f"Row {row} of X is so far from the fitted items that its prediction overflows. "
                "Predict for covariates nearer to them."
            )
        return points

    def _at_zero(self, found: GeodesicFit, anchor: float) -> tuple[FloatArray, FloatArray]:
        """Return point and velocity of a curve of one covariate at zero."""
        geometry, time = self.space.geometry, -anchor
        with np.errstate(over="ignore", invalid="ignore"):
            path = _paths(geometry, found.base, time * found.velocities)
            point = geometry.exp(found.base, time * found.velocities[0])
            velocity = path.lengths[0] / time * path.directions_there if path.lengths[0] > 0 else found.velocities
        if not (np.isfinite(point).all() and np.isfinite(velocity).all()):
            raise InvalidInputError(
                f"X is around {anchor:g}, so far from zero that the point at zero overflows. Use center=True."
            )
        return point, velocity


def _read_covariates(X: Any, n_expected: int | None = None) -> FloatArray:
    """Return ``(n, k)`` finite numbers; one number per item is one covariate."""
    table = as_numbers(X, "X", "Pass one row of numbers per item; encode categories first.")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInputError(f"X has shape {table.shape}; expected (n_items, n_covariates), or one number per item.")
    if n_expected is not None and table.shape[1] != n_expected:
        found = "1 covariate" if table.shape[1] == 1 else f"{table.shape[1]} covariates"
        raise InvalidInputError(f"X has {found}, and this model was fitted on {n_expected}. Pass the same columns.")
    for row, column in np.argwhere(~np.isfinite(table))[:1].tolist():
        raise InvalidInputError(
            f"X is {table[row, column]} in row {row}, column {column}. Fill it in, or leave the item out."
        )
    return table


def _read_labels(y: Any, space: LabelSpace, n_items: int) -> tuple[Batch, BoolArray]:
    """Return the labels as points, and which items have one; NaN and None are missing."""
    given = y.to_numpy() if hasattr(y, "to_numpy") else y
    listed = isinstance(given, np.ndarray) or not hasattr(given, "__iter__")
    table = np.asarray(given) if listed else as_object_array(given)
    if table.ndim == 0 or len(table) != n_items:
        found = "no list" if table.ndim == 0 else f"{len(table)} labels"
        raise InvalidInputError(f"X has {n_items} items and y {found}. Pass one label per item, None where unknown.")
    if table.dtype.kind == "O":
        present = np.array([not _missing(value) for value in table], dtype=bool)
    else:
        numbers = as_numbers(table, "y", "Pass one point per item.").reshape(n_items, -1)
        present = np.asarray(~np.isnan(numbers).all(axis=1))
    rows = np.flatnonzero(present)
    if len(rows) == 0:
        raise InvalidInputError("All labels in y are missing. Pass at least one label.")
    try:
        return space.as_batch(table[rows]), present
    except InvalidLabelError as error:
        if error.index is None:
            raise
        row = int(rows[error.index])
        raise InvalidLabelError(f"row {row}: {error}", row) from None


def _missing(label: object) -> bool:
    if is_null(label):
        return True
    numbers = as_floats(label)
    return numbers is not None and numbers.size > 0 and bool(np.isnan(numbers).all())


def _checked_center(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean covariates, or raise an error if the covariates do not determine the velocities."""
    n, k = x.shape
    if n < k + 1:
        raise InvalidInputError(
            f"{n} items with a label and a weight are too few for {k} covariates. Pass at least {k + 1}."
        )
    center: FloatArray = weights @ x / weights.sum()
    spread = np.abs(x - center).max(axis=0)
    for column in np.flatnonzero(spread <= 1e-12 * np.abs(center))[:1]:
        raise InvalidInputError(
            f"Column {column} of X is {center[column]:g} for every item with a label. Leave it out; the model has an "
            "intercept without it."
        )
    if np.linalg.matrix_rank((x - center) / spread, tol=1e-9 * np.sqrt(n)) < k:
        raise InvalidInputError(
            f"The {k} columns of X depend on each other linearly for the {n} items with a label. Leave columns out, or "
            "label more items."
        )
    return center


@dataclass(frozen=True)
class GeodesicFit:
    """A base point, ``(D,)``, one tangent vector there per covariate, ``(k, D)``, and their mean squared distance."""

    base: FloatArray
    velocities: FloatArray
    cost: float
    iterations: int = 0
    converged: bool = False


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

    The geometry is hyperbolic or that of a sphere; weights are not negative, and not all zero. The search ends when
    predictions move by less than `tolerance` times the spread of the points.

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

    def carried(given: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Return points moved by the isometry that carries `start` to `end` along their geodesic."""
        return geometry.exp(end, geometry.transport(start, end, geometry.log(start, given)))

    # Coordinates of hyperbolic space lose digits far from the origin, so the middle of the points is moved to it.
    home = geometry.origin if open_space else middle
    problem = _Problem(geometry, covariates, carried(points, middle, home) if open_space else points, weights)
    best, *others = (problem.minimize(start, max_iterations, tolerance) for start in _starts(problem, home))
    for found in others:
        if found.cost < best.cost * (1.0 - 1e-9):
            best = found
    if not open_space:
        return best
    base = carried(best.base[None], home, middle)[0]
    # The same isometry for tangent vectors at any point: it is linear in the coordinates.
    along = geometry.curvature * geometry.inner(home, best.velocities, home)[..., None]
    velocities = along * middle + geometry.transport(home, middle, best.velocities - along * home)
    return replace(best, base=base, velocities=_tangent(geometry, base, velocities))


def _tangent(geometry: Geometry, point: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors projected to the tangent space, which removes rounding errors."""
    out = geometry.curvature * geometry.inner(point, vectors, np.broadcast_to(point, vectors.shape))
    return np.asarray(vectors - out[..., None] * point)


def _starts(whole: _Problem, home: FloatArray) -> Iterator[GeodesicFit]:
    """Yield linear regressions in the tangent space at the middle of the points.

    On a closed space the shortest path to a far point may go the wrong way, so fits that grow from fewer points are
    further starts.
    """
    n, k = whole.covariates.shape
    away = whole.covariates - whole.weights @ whole.covariates
    apart = ((away / np.maximum(np.sqrt(whole.weights @ away**2), 1e-300)) ** 2).sum(axis=1)
    order = np.argsort(apart, kind="stable")
    for share in CLOSED_STARTS if whole.geometry.curvature > 0 else (1.0,):
        count = max(round(share * n), min(n, k + 2))
        fit = whole.of(order[:count]).line(home if count == n else None)
        while count < n:  # outer points are added to a curve that already has the right direction
            fit = whole.of(order[:count]).minimize(fit, GROWING_STEPS, 1e-4)
            count = min(2 * count, n)
        yield replace(fit, cost=whole.cost(fit.base, fit.velocities))


class _Paths(NamedTuple):
    """Geodesics from one point at time one, with unit velocities at both ends (zero for paths of length zero).

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
        """Return the linear regression in the tangent space at a center, by default the mean of the points."""
        geometry = self.geometry
        if center is None:
            center = geometry.means(self.points[None], self.weights[None]).points[0]
        root = np.sqrt(self.weights)[:, None]
        design = np.hstack([np.ones((len(self.points), 1)), self.covariates])
        line = np.linalg.lstsq(root * design, root * geometry.log(center, self.points), rcond=None)[0]
        start = GeodesicFit(center, np.zeros_like(line[1:]), self.cost(center, np.zeros_like(line[1:])))
        found = self._moved(start, line)
        # A straight line in the tangent space may be worse than a constant, or overflow.
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
                # No step lowers the cost, given the accuracy of the distances.
                if reached.cost <= fit.cost * (1.0 + 1e-13) or length <= tolerance * scale:
                    break
                damping *= 10.0
            if reached.cost <= fit.cost * (1.0 + 1e-13):
                fit = reached
            # A step that is short because of damping does not show convergence.
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
        # Residuals are transported to the base along the path, whatever its length.
        residuals = geometry.log(ends, self.points)
        shift = geometry.inner(base, residuals, path.directions_there)[:, None]
        residuals = _tangent(geometry, base, residuals + shift * (path.directions - path.directions_there))
        # Squared distances curve more than in flat space; on average over directions by one factor per point.
        bend = geometry.curvature_bound(geometry.distance(ends, self.points))
        bent = self.weights * (1.0 + (geometry.dimension - 1) * bend) / geometry.dimension
        along = np.hstack([np.ones((len(ends), 1)), self.covariates])
        across = np.hstack([path.cosine[:, None], path.spread[:, None] * self.covariates])
        # Orthonormal tangent vectors that span the velocities, (r, D).
        gram = geometry.inner(base, fit.velocities[:, None], fit.velocities[None])
        values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
        kept = values > max(1e-14 * float(values.max(initial=0.0)), 1e-280)
        basis = np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ fit.velocities)
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


def _damped(matrix: FloatArray, slope: FloatArray, damping: float) -> FloatArray:
    """Return the solution of equations whose diagonal is raised, in units of that diagonal."""
    if matrix.size == 0:
        return np.zeros_like(slope)
    unit = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / unit[:, None] / unit[None, :] + damping * np.eye(len(unit))
    return np.asarray(np.linalg.lstsq(scaled, slope / unit[:, None], rcond=1e-13)[0] / unit[:, None])
