"""Classification from probabilities of labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.end_models.extras import needed
from consilience.end_models.inputs import read_weights
from consilience.end_models.rows import length, take_rows
from consilience.end_models.weights import fit_weighted, takes_weights
from consilience.exceptions import InvalidInputError, NotFittedError, UnsupportedError
from consilience.settings import Configurable

__all__ = ["SoftLabelClassifier"]

#: A class below this share of an item is not worth a row.
NEGLIGIBLE = 1e-3


class SoftLabelClassifier(Configurable):
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

    #: `fit_end_model` passes probabilities.
    takes_probabilities = True

    def __init__(self, estimator: Any, *, classes: Any = None) -> None:
        self.estimator = estimator
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from ``(n, k)`` probabilities, such as ``label_model.predict_proba(votes)``."""
        base = needed("sklearn.base", "models", "SoftLabelClassifier")
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
        return np.asarray(self._fitted.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``(n, k)`` probabilities of `classes_`."""
        return np.asarray(self._fitted.predict_proba(X), dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right classes."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=read_weights(sample_weight, len(right))))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    @property
    def _fitted(self) -> Any:
        if not hasattr(self, "estimator_"):
            raise NotFittedError("This SoftLabelClassifier has not been fitted. Call fit(X, probabilities) first.")
        return self.estimator_


def _read_probabilities(y: Any, n_items: int) -> FloatArray:
    try:
        table = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or len(table) != n_items or table.shape[1] < 2:
        raise InvalidInputError(
            f"y has shape {np.shape(y)}; expected ({n_items}, n_classes) probabilities, as predict_proba returns them."
        )
    wrong = ~(np.isfinite(table) & (table >= 0)).all(axis=1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(f"Row {row} of y is {table[row].tolist()}. Probabilities are finite and not negative.")
    total = table.sum(axis=1, keepdims=True)
    off = np.abs(total[:, 0] - 1.0) > 1e-6
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise InvalidInputError(f"Row {row} of y adds up to {total[row, 0]:g}, not 1. Divide each row by its sum.")
    normalized: FloatArray = table / total
    return normalized
