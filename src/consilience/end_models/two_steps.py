"""From votes and features to an end model in one call, with labels or probabilities as targets."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, as_floats
from consilience.end_models.inputs import EndModel, read_weights
from consilience.exceptions import InvalidInputError, UnsupportedError, needed
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.tables.frames import n_rows, take_rows
from consilience.votes import as_votes

UNSURE = ("weight", "drop", "keep")
#: A class with a smaller probability gets no row.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True, eq=False)
class FittedEndModel:
    """An end model, the labels it was trained on, and the items that were used.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from consilience import Classes
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
    >>> features = [[0.0], [1.0], [0.0], [1.0]] * 10
    >>> fitted = fit_end_model(LogisticRegression(), features, votes, space=Classes(2))
    >>> fitted.predict([[0.9]]).tolist(), int(fitted.used.sum())
    ([1], 40)
    """

    end_model: Any
    label_model: LabelModel
    labels: Batch
    confidence: FloatArray
    used: BoolArray

    def predict(self, X: Any) -> Any:
        """Return the predictions of the end model for new items, which need no votes."""
        return self.end_model.predict(X)

    def __repr__(self) -> str:
        return f"FittedEndModel({self.end_model!r}, learned from {int(self.used.sum())} of {len(self.used)} items)"


def fit_end_model(
    model: Any,
    X: Any,
    votes: Any,
    *,
    space: LabelSpace | None = None,
    label_model: LabelModel | None = None,
    gold: Any = None,
    unsure: str = "weight",
    min_confidence: float = 0.0,
) -> FittedEndModel:
    """Learn labels from votes, and train an end model on the labels; items without votes are left out.

    Parameters
    ----------
    model
        Anything with ``fit(X, y)`` and ``predict(X)``: a scikit-learn estimator or pipeline, or a model of
        `consilience.end_models`. A `SoftLabelClassifier` gets probabilities as targets, other models get labels.
    X
        Features, one row per item (for rankings: one set of rows per item), in the order of the votes.
    votes
        As `LabelModel.fit` takes them.
    space
        The label type, for ``LabelModel(space)``.
    label_model
        Instead of `space`: a `LabelModel`, perhaps fitted.
    gold
        Known labels of some items, as `LabelModel.fit` takes them.
    unsure
        "weight": the confidence of a label is the weight of its item, and items below `min_confidence` are left out.
        "drop": items below `min_confidence` are left out, and the others have equal weights. "keep": all labeled items
        have equal weights. Probabilities need no weights.
    min_confidence
        Between 0 and 1.

    Examples
    --------
    >>> from consilience import Classes
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> truth = (X[:, 0] > 0).astype(int)
    >>> votes = np.where(rng.random((300, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    >>> fitted = fit_end_model(LogisticRegression(), X, votes, space=Classes(2))
    >>> fitted.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist()
    [0, 1]
    """
    _check(model, unsure, min_confidence)
    if (space is None) == (label_model is None):
        raise UnsupportedError("Pass either space or label_model: what a label is, or the model that learns labels.")
    labels_from = LabelModel(cast("LabelSpace", space)) if label_model is None else label_model
    table = as_votes(votes, labels_from.space)
    if n_rows(X) != len(table):
        raise InvalidInputError(
            f"X has {n_rows(X)} rows for {len(table)} items. Give one row per item, in the same order."
        )
    if not hasattr(labels_from, "source_model_"):
        labels_from.fit(table, gold=gold)
    elif gold is not None:
        raise UnsupportedError(
            "label_model is already fitted, so gold would be ignored. Fit it with gold, or pass a new one."
        )
    belief = labels_from.posterior(table)
    soft = bool(getattr(model, "takes_probabilities", False))
    used = table.observed.any(axis=1) & (belief.confidence >= min_confidence)
    if not used.any():
        raise InvalidInputError(
            f"No item has a label with confidence {min_confidence:g} or more; the largest is "
            f"{float(belief.confidence.max(initial=0.0)):.2f}. Lower min_confidence."
        )
    rows = np.flatnonzero(used)
    weighted = unsure == "weight" and not soft
    if weighted and not (belief.confidence[rows] > 0).any():
        raise InvalidInputError(
            "All labels have confidence 0, so all weights are 0. Use unsure='keep' to train anyway."
        )
    targets = labels_from.predict_proba(table) if soft else belief.labels
    weights = belief.confidence[rows] if weighted else None
    fitted = _fit_weighted(model, take_rows(X, rows), _dense(targets[rows]), weights)
    return FittedEndModel(model if fitted is None else fitted, labels_from, belief.labels, belief.confidence, used)


def _check(model: Any, unsure: str, min_confidence: float) -> None:
    name = type(model).__name__
    for method in ("fit", "predict"):
        if not callable(getattr(model, method, None)):
            raise UnsupportedError(f"{name} has no method {method!r}. Pass a model with fit and predict.")
    if unsure not in UNSURE:
        raise UnsupportedError(f"unsure={unsure!r} is unknown. Use one of {', '.join(map(repr, UNSURE))}.")
    if isinstance(min_confidence, bool) or not 0 <= min_confidence <= 1:
        raise UnsupportedError(f"min_confidence={min_confidence!r} is not a number between 0 and 1.")
    if unsure == "drop" and min_confidence == 0:
        raise UnsupportedError("unsure='drop' needs a limit. Pass min_confidence, such as 0.5.")
    if unsure == "keep" and min_confidence > 0:
        raise UnsupportedError("unsure='keep' keeps all items, so min_confidence has no effect. Pass unsure='drop'.")
    if unsure == "weight" and not getattr(model, "takes_probabilities", False) and not _takes_weights(model):
        raise UnsupportedError(
            f"{name} takes no sample weights. Use unsure='drop' with min_confidence=0.5, for example, or unsure='keep'."
        )


def _dense(labels: Batch) -> Batch:
    """Return labels in an array of their common type, if they have one, as most models need it."""
    if labels.dtype != object:
        return labels
    kinds = {type(label) for label in labels}
    return np.array(labels.tolist()) if kinds <= {str} or kinds <= {int} or kinds <= {float} else labels


@dataclass(repr=False, eq=False)
class SoftLabelClassifier(EndModel):
    """A scikit-learn classifier trained on probabilities instead of labels.

    Every item is used once for each class, with the probability of the class as its weight.

    Parameters
    ----------
    estimator
        A classifier whose ``fit`` takes ``sample_weight``, or a pipeline that ends in one.
    classes
        Names of the classes in the order of the columns; numbers from 0 by default.

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
        probabilities = _read_probabilities(y, n_rows(X))
        weights = read_weights(sample_weight, len(probabilities))
        names = np.arange(probabilities.shape[1]) if self.classes is None else np.asarray(self.classes)
        if len(names) != probabilities.shape[1]:
            raise InvalidInputError(
                f"y has {probabilities.shape[1]} columns and there are {len(names)} classes. Name one per column."
            )
        if not _takes_weights(self.estimator):
            raise UnsupportedError(
                f"{type(self.estimator).__name__} takes no sample weights. Use a classifier that does, such as "
                "LogisticRegression or HistGradientBoostingClassifier."
            )
        shares = probabilities * weights[:, None]
        rows, columns = np.nonzero((probabilities >= NEGLIGIBLE) & (shares > 0))
        if len(np.unique(columns)) < 2:
            raise InvalidInputError("All items belong to one class. Pass items of at least two classes.")
        estimator = base.clone(self.estimator)
        self.estimator_ = _fit_weighted(estimator, take_rows(X, rows), names[columns], shares[rows, columns])
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
    table = as_floats(y)
    if table is None or table.ndim != 2 or len(table) != n_items or table.shape[1] < 2:
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

    `standardize` scales features to mean 0 and variance 1, as the paper's code does. Further settings are those of
    ``GradientBoostingRegressor``.

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


def _takes_weights(model: Any) -> bool:
    """Return whether ``fit`` takes ``sample_weight``; that of a pipeline if its last step does."""
    while steps := getattr(model, "steps", None):
        model = steps[-1][1]
    return "sample_weight" in inspect.signature(model.fit).parameters


def _fit_weighted(model: Any, X: Any, y: Any, weights: FloatArray | None) -> Any:
    """Fit, with weights if there are any; those of a pipeline go to its last step."""
    if weights is None:
        return model.fit(X, y)
    name, last = "sample_weight", model
    while steps := getattr(last, "steps", None):
        step, last = steps[-1]
        name = name.replace("sample_weight", f"{step}__sample_weight")
    return model.fit(X, y, **{name: weights})
