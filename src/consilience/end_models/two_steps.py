"""From votes and features to a model in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.end_models.inputs import fit_weighted, length, take_rows, takes_weights
from consilience.exceptions import InvalidInputError, UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.tables.encoding import votes_for

__all__ = ["FittedEndModel", "fit_end_model"]

UNSURE = ("weight", "drop", "keep")


@dataclass(frozen=True, eq=False)
class FittedEndModel:
    """A model learned from votes, with the labels it was learned from.

    Attributes
    ----------
    end_model : the model that was passed, fitted
    label_model : LabelModel
    labels : array of shape (n_items, ...)
        The label of every item; the missing value where nobody voted.
    confidence : array of shape (n_items,)
    used : array of bool
        Items that the end model learned from.
    """

    end_model: Any
    label_model: LabelModel
    labels: Batch
    confidence: FloatArray
    used: BoolArray

    def predict(self, X: Any) -> Any:
        """Return what the end model says about new items; nobody needs to vote on them."""
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
    """Learn labels from votes, and a model of the features from the labels.

    Parameters
    ----------
    model
        Anything with ``fit(X, y)`` and ``predict(X)``: a scikit-learn estimator or pipeline, or a model of
        `consilience.end_models`. A `SoftLabelClassifier` is given probabilities, every other model labels.
    X
        Features, one row per item (for rankings: one set of rows per item), in the order of the votes.
    votes
        As `LabelModel.fit` takes them.
    space
        What a label is; ``LabelModel(space)`` learns the labels.
    label_model
        Instead of `space`: a `LabelModel` with other settings. One that is fitted is used as it is.
    gold
        Known labels of some items, as `LabelModel.fit` takes them.
    unsure
        "weight": the confidence of a label is the weight of its item, and items below `min_confidence` are left out.
        "drop": items below `min_confidence` are left out, and the others count the same. "keep": all labeled items
        count the same. Probabilities say themselves how sure they are, and get no further weight.
    min_confidence
        Between 0 and 1.

    Returns
    -------
    FittedEndModel
        Items that nobody voted on are not learned from.

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
    table = votes_for(votes, labels_from.space)
    n = length(X)
    if n != len(table):
        raise InvalidInputError(f"X has {n} rows for {len(table)} items. Give one row per item, in the same order.")
    if not hasattr(labels_from, "source_model_"):
        labels_from.fit(table, gold=gold)
    elif gold is not None:
        raise UnsupportedError(
            "label_model is fitted already, so gold would not be used. Fit it with gold, or pass a new one."
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
            "All labels have confidence 0: the sources tell nothing. Use unsure='keep' to learn anyway."
        )
    targets = labels_from.predict_proba(table) if soft else belief.labels
    weights = belief.confidence[rows] if weighted else None
    fitted = fit_weighted(model, take_rows(X, rows), _dense(targets[rows]), weights)
    return FittedEndModel(model if fitted is None else fitted, labels_from, belief.labels, belief.confidence, used)


def _check(model: Any, unsure: str, min_confidence: float) -> None:
    for needed in ("fit", "predict"):
        if not callable(getattr(model, needed, None)):
            raise UnsupportedError(
                f"{type(model).__name__} has no method {needed!r}. Pass a model with fit and predict."
            )
    if unsure not in UNSURE:
        raise UnsupportedError(f"unsure={unsure!r} is unknown. Use one of {', '.join(map(repr, UNSURE))}.")
    if isinstance(min_confidence, bool) or not 0 <= min_confidence <= 1:
        raise UnsupportedError(f"min_confidence={min_confidence!r} is not a number between 0 and 1.")
    if unsure == "drop" and min_confidence == 0:
        raise UnsupportedError("unsure='drop' needs a limit. Pass min_confidence, such as 0.5.")
    if unsure == "keep" and min_confidence > 0:
        raise UnsupportedError("unsure='keep' keeps all items, so min_confidence has no use. Pass unsure='drop'.")
    if unsure == "weight" and not getattr(model, "takes_probabilities", False) and not takes_weights(model):
        raise UnsupportedError(
            f"{type(model).__name__} takes no sample weights. Use unsure='drop' with min_confidence=0.5, say, or "
            "unsure='keep'."
        )


def _dense(labels: Batch) -> Batch:
    """Return labels that all models take: an array of objects becomes one of its own type where they agree on it."""
    if labels.dtype != object:
        return labels
    kinds = {type(label) for label in labels}
    return np.array(labels.tolist()) if kinds <= {str} or kinds <= {int} or kinds <= {float} else labels
