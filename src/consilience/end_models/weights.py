"""Sample weights of scikit-learn estimators and pipelines."""

from __future__ import annotations

import inspect
from typing import Any

from consilience.arrays import FloatArray

__all__ = ["fit_weighted", "takes_weights"]


def takes_weights(model: Any) -> bool:
    """Return whether ``fit`` takes ``sample_weight``; that of a pipeline if its last step does."""
    steps = getattr(model, "steps", None)
    if steps:
        return takes_weights(steps[-1][1])
    return "sample_weight" in inspect.signature(model.fit).parameters


def fit_weighted(model: Any, X: Any, y: Any, weights: FloatArray | None) -> Any:
    """Fit, with weights if there are any; those of a pipeline go to its last step."""
    if weights is None:
        return model.fit(X, y)
    return model.fit(X, y, **{_name(model): weights})


def _name(model: Any) -> str:
    steps = getattr(model, "steps", None)
    return f"{steps[-1][0]}__{_name(steps[-1][1])}" if steps else "sample_weight"
