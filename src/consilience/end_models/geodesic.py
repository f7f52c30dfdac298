"""Regression whose labels are points of hyperbolic space or of a sphere."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.end_models.geodesic_fit import GeodesicFit, fit_geodesic, moved_along
from consilience.end_models.inputs import EndModel, check_count, read_covariates, read_labels, read_weights
from consilience.exceptions import ConsilienceWarning, InvalidInputError, UnsupportedError
from consilience.label_types.manifolds.spaces import Hyperbolic, Sphere

__all__ = ["GeodesicRegression"]


@dataclass(repr=False, eq=False)
class GeodesicRegression(EndModel):
    """Least squares regression on a curved space: ``y(x) = exp_p(sum_j (x_j - c_j) v_j)``.

    What a straight line is to numbers, a geodesic is to points. With one covariate predictions run along a geodesic;
    with several they fill a surface of geodesics through one point.

    Parameters
    ----------
    space : Hyperbolic or Sphere
        What a label is.
    center
        Whether p belongs to the mean of the covariates (True) or to zeros. With one covariate both describe the same
        curve. With several they are different models, as curved surfaces look different from every point.
    max_iterations
        Gauss-Newton steps. A handful is usual; running out of them is a warning.
    tolerance
        Steps that move predictions by less than this share of the spread of the labels end the search.

    Attributes
    ----------
    center_ : array of shape (k,)
        The covariates c.
    intercept_ : array of shape (d + 1,)
        The point p, where the covariates are `center_`; for `Hyperbolic` on the hyperboloid.
    coef_ : array of shape (k, d + 1)
        The velocities v, tangent vectors at `intercept_`.
    mean_squared_error_ : float
        Weighted mean squared distance of the labels to the fitted points.
    n_iter_, n_features_in_ : int

    Examples
    --------
    A quarter of the equator, from one point to another:

    >>> from consilience import Sphere
    >>> x = np.linspace(0, 1, 5)
    >>> y = np.column_stack([np.cos(x), np.sin(x), np.zeros(5)])
    >>> model = GeodesicRegression(Sphere(2)).fit(x, y)
    >>> model.predict([np.pi / 2]).round(6)
    array([[0., 1., 0.]])
    >>> round(model.score(x, y), 6)
    1.0
    """

    learned = "_fit"

    space: Hyperbolic | Sphere
    _: KW_ONLY
    center: bool = True
    max_iterations: int = 100
    tolerance: float = 1e-9

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the curve of least squared distance to the labels.

        Parameters
        ----------
        X : array of shape (n, k) or (n,)
            Covariates.
        y : array of shape (n, d + 1)
            One label per item, as the space writes them. Items with NaN or None are left out, as those that nobody
            voted on.
        sample_weight : array of shape (n,), optional
            How much each item counts, such as ``label_model.confidence(votes)``.
        """
        self._check_settings()
        covariates = read_covariates(X)
        points, present = read_labels(y, self.space, len(covariates))
        weights = read_weights(sample_weight, len(covariates))[present]
        counted = weights > 0
        x, points, weights = covariates[present][counted], points[counted], weights[counted]
        center = self._checked_center(x, weights)
        k = x.shape[1]
        # With one covariate the curve is the same wherever it starts, and the middle of the items is the best place.
        anchor = center if self.center or k == 1 else np.zeros(k)
        found = fit_geodesic(
            self.space.geometry,
            x - anchor,
            points,
            weights,
            max_iterations=int(self.max_iterations),
            tolerance=float(self.tolerance),
        )
        start, velocities = (found.base, found.velocities) if self.center or k > 1 else self._at_zero(found, anchor)
        self._fit, self._anchor = found, anchor
        self.center_ = center if self.center else np.zeros(k)
        self.intercept_, self.coef_ = start, velocities
        self.mean_squared_error_ = found.cost
        self.n_iter_, self.n_features_in_ = found.iterations, k
        if not found.converged:
            warnings.warn(
                f"GeodesicRegression did not come to rest after {found.iterations} of {self.max_iterations} steps. "
                "Raise max_iterations, or check the labels for outliers.",
                ConsilienceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Batch:
        """Return one point per row of covariates, as the space writes them."""
        return self.space.as_labels(self._points(self._new_covariates(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the squared distance that the curve explains, 1 at best.

        ``1 - sum d(y, predicted)^2 / sum d(y, mean)^2`` with the Frechet mean of these labels: the coefficient of
        determination, with distances of the space. Missing labels are left out.
        """
        covariates = self._new_covariates(X)
        points, present = read_labels(y, self.space, len(covariates))
        weights = read_weights(sample_weight, len(covariates))[present]
        if not weights.sum() > 0:
            raise InvalidInputError("sample_weight is zero for every item with a label. Pass some that count.")
        geometry = self.space.geometry
        predicted = self._points(covariates)[present]
        mean = geometry.means(points[None], (weights / weights.sum())[None]).points[0]
        error = float(weights @ geometry.distance(predicted, points) ** 2)
        total = float(weights @ geometry.distance(mean, points) ** 2)
        if total <= np.finfo(float).eps * float(weights.sum()):  # labels that do not differ
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

    def _new_covariates(self, X: Any) -> FloatArray:
        self._require_fitted()
        return read_covariates(X, self.n_features_in_)

    def _points(self, covariates: FloatArray) -> FloatArray:
        found = self._fit
        with np.errstate(over="ignore", invalid="ignore"):
            points = self.space.geometry.exp(found.base, (covariates - self._anchor) @ found.velocities)
        for row in np.flatnonzero(~np.isfinite(points).all(axis=1))[:1]:
            raise InvalidInputError(
                f"Row {row} of X lies so far from the items of the fit that the numbers of "
                "its point overflow. Predict nearer to them."
            )
        return points

    def _at_zero(self, found: GeodesicFit, anchor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return point and velocity of the curve where its covariate is zero."""
        with np.errstate(over="ignore", invalid="ignore"):
            point, velocity = moved_along(self.space.geometry, found.base, found.velocities[0], -float(anchor[0]))
        if not (np.isfinite(point).all() and np.isfinite(velocity).all()):
            raise InvalidInputError(
                f"X lies around {anchor[0]:g}, so far from zero that the numbers of the point there overflow. "
                "Use center=True."
            )
        return point, velocity[None]

    def _check_settings(self) -> None:
        if not isinstance(self.space, (Hyperbolic, Sphere)):
            raise UnsupportedError(
                f"GeodesicRegression fits points of Hyperbolic(d) and Sphere(d), not {self.space!r}. "
                "For numbers and vectors use a linear regression."
            )
        check_count("max_iterations", self.max_iterations)
        share = self.tolerance
        if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise UnsupportedError(f"tolerance={share!r} is not a share between 0 and 1. The default is 1e-9.")

    @staticmethod
    def _checked_center(x: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the mean covariates, if these differ enough to tell the velocities."""
        n, k = x.shape
        if n < k + 1:
            raise InvalidInputError(
                f"{n} items with a label and a weight are too few for {k} covariates: at least {k + 1} are needed."
            )
        center: FloatArray = weights @ x / weights.sum()
        spread = np.abs(x - center).max(axis=0)
        for column in np.flatnonzero(spread <= 1e-12 * np.abs(center))[:1]:
            raise InvalidInputError(
                f"Column {column} of X is {center[column]:g} for every item with a label, so nothing can be learned "
                "about it. Leave it out; the point where the curve starts needs no column."
            )
        if np.linalg.matrix_rank((x - center) / spread, tol=1e-9 * np.sqrt(n)) < k:
            raise InvalidInputError(
                f"The {k} columns of X depend on each other linearly over the {n} items with a label. "
                "Leave columns out, or label more items."
            )
        return center
