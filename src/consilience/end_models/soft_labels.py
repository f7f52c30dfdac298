"""Models of scikit-learn: any classifier, fitted to probabilities, and the paper's gradient boosting."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.end_models.inputs import EndModel, fit_weighted, length, read_weights, take_rows, takes_weights
from consilience.exceptions import InvalidInputError, UnsupportedError, needed

__all__ = ["SoftLabelClassifier", "gradient_boosting"]

#: A class below this share of an item is not worth a row.
NEGLIGIBLE = 1e-3


@dataclass(repr=False, eq=False)
class SoftLabelClassifier(EndModel):
    """Any scikit-learn classifier with sample weights, fitted to probabilities instead of labels.

    An item counts once for every class, with the probability of the class as its weight: what a loss that is linear in
    the label would do with the probabilities themselves.

    Parameters
    ----------
    estimator
        A classifier whose ``fit`` takes ``sample_weight``, or a pipeline that ends in one.
    classes
        Names of the classes in the order of the columns; numbers from 0 by default.

    Attributes
    ----------
    estimator_ : the fitted classifier
    classes_ : array of names

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = SoftLabelClassifier(LogisticRegression(), classes=["ham", "spam"])
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model.fit(X, np.column_stack([X[:, 0] < 0, X[:, 0] > 0]) * 0.8 + 0.1).predict([[-1.0], [1.0]]).tolist()
    ['ham', 'spam']
    """

    learned = "estimator_"
    #: `fit_end_model` passes probabilities.
    takes_probabilities = True

    estimator: Any
    _: KW_ONLY
    classes: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from ``(n, k)`` probabilities, such as ``label_model.predict_proba(votes)``."""
        base = needed("sklearn.base", "SoftLabelClassifier", "models")
        n = length(X)
        probabilities = _read_probabilities(y, n)
        weights = read_weights(sample_weight, n)
        names = np.arange(probabilities.shape[1]) if self.classes is None else np.asarray(self.classes)
        if len(names) != probabilities.shape[1]:
            raise InvalidInputError(
                f"y has {probabilities.shape[1]} columns and there are {len(names)} classes. Name one per column."
            )
        if not takes_weights(self.estimator):
            raise UnsupportedError(
                f"{type(self.estimator).__name__} takes no sample weights, and probabilities enter as such. Use a "
                "classifier that does, such as LogisticRegression or HistGradientBoostingClassifier."
            )
        shares = probabilities * weights[:, None]
        rows, columns = np.nonzero((probabilities >= NEGLIGIBLE) & (shares > 0))
        if len(np.unique(columns)) < 2:
            raise InvalidInputError("All probability lies on one class, so there is nothing to tell apart.")
        estimator = base.clone(self.estimator)
        self.estimator_ = fit_weighted(estimator, take_rows(X, rows), names[columns], shares[rows, columns])
        self.classes_ = np.asarray(self.estimator_.classes_)
        return self

    def predict(self, X: Any) -> Batch:
        """Return the most probable class of each row."""
        self._require_fitted()
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``(n, k)`` probabilities of `classes_`."""
        self._require_fitted()
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right classes."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=read_weights(sample_weight, len(right))))


def _read_probabilities(y: Any, n_items: int) -> FloatArray:
    try:
        table = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or len(table) != n_items or table.shape[1] < 2:
        raise InvalidInputError(
            f"y has shape {np.shape(y)}; expected ({n_items}, n_classes) probabilities, as predict_proba returns them."
        )
    for row in np.flatnonzero(~(np.isfinite(table) & (table >= 0)).all(axis=1))[:1]:
        raise InvalidInputError(f"Row {row} of y is {table[row].tolist()}. Probabilities are finite and not negative.")
    total = table.sum(axis=1, keepdims=True)
    for row in np.flatnonzero(np.abs(total[:, 0] - 1.0) > 1e-6)[:1]:
        raise InvalidInputError(f"Row {row} of y adds up to {total[row, 0]:g}, not 1. Divide each row by its sum.")
    return np.asarray(table / total)


def gradient_boosting(*, n_estimators: int = 250, standardize: bool = True, **settings: Any) -> Any:
    """Return scikit-learn's gradient boosting regression with the paper's settings.

    Parameters
    ----------
    n_estimators
        Trees; the paper has 250 and leaves all else at scikit-learn's defaults.
    standardize
        Whether features are brought to mean 0 and variance 1 first, as the paper's code does. Trees do not mind.
    settings
        Further settings of ``GradientBoostingRegressor``, such as ``random_state=0``.

    Examples
    --------
    >>> gradient_boosting(random_state=0, standardize=False)
    GradientBoostingRegressor(n_estimators=250, random_state=0)
    """
    ensemble, pipeline, preprocessing = (
        needed(f"sklearn.{part}", "gradient_boosting", "models") for part in ("ensemble", "pipeline", "preprocessing")
    )
    model = ensemble.GradientBoostingRegressor(n_estimators=n_estimators, **settings)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model) if standardize else model
