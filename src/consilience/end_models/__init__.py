"""End models: models of items, trained on the labels of a `LabelModel`."""

from consilience.end_models import parser_families
from consilience.end_models.geodesic import GeodesicRegression
from consilience.end_models.parser_families import DependencyParser
from consilience.end_models.ranking import LambdaRanker, ListwiseRanker
from consilience.end_models.two_steps import FittedEndModel, SoftLabelClassifier, fit_end_model, gradient_boosting

__all__ = [
    "DependencyParser",
    "FittedEndModel",
    "GeodesicRegression",
    "LambdaRanker",
    "ListwiseRanker",
    "SoftLabelClassifier",
    "fit_end_model",
    "gradient_boosting",
    "parser_families",
]
