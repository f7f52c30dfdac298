"""Gradient boosting, the paper's end model for scores."""

from __future__ import annotations

from typing import Any

from consilience.end_models.extras import needed

__all__ = ["gradient_boosting"]


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
    ensemble = needed("sklearn.ensemble", "models", "gradient_boosting")
    model = ensemble.GradientBoostingRegressor(n_estimators=n_estimators, **settings)
    if not standardize:
        return model
    pipeline = needed("sklearn.pipeline", "models", "gradient_boosting")
    preprocessing = needed("sklearn.preprocessing", "models", "gradient_boosting")
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model)
