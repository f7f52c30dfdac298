"""Settings by name: the contract of scikit-learn's estimators, without scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from consilience.exceptions import UnsupportedError


class Configurable:
    """Base of classes whose constructor stores its arguments under their own names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UnsupportedError(f"{type(self).__name__} has no setting {name!r}. Settings: {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=True, allow_nan=True, string=True, categorical=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "source_model_")

    def __repr__(self) -> str:
        shown = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name)
            if parameter.kind is parameter.KEYWORD_ONLY and _same(value, parameter.default):
                continue
            shown.append(f"{name}={value!r}" if parameter.kind is parameter.KEYWORD_ONLY else f"{value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(_same(one, other) for one, other in zip(left, right, strict=True))
    return left is right or (isinstance(left, (str, int, float, type(None))) and left == right)
