"""Models that learn from labels: what the labels of a `LabelModel` are made for."""

from consilience.end_models.geodesic import GeodesicRegression

__all__ = ["GeodesicRegression"]
