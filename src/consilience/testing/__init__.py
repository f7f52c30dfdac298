"""Checks for your own label types and label models."""

from consilience.testing.audit_checks import audit_coverage
from consilience.testing.label_model_checks import LABEL_MODEL_CHECKS, LabelModelCheckError, check_label_model
from consilience.testing.space_checks import SPACE_CHECKS, SpaceCheckError, check_space

__all__ = [
    "LABEL_MODEL_CHECKS",
    "SPACE_CHECKS",
    "LabelModelCheckError",
    "SpaceCheckError",
    "audit_coverage",
    "check_label_model",
    "check_space",
]
