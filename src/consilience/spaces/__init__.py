"""What a label is: one label type per file."""

from consilience.spaces.base import LabelSpace
from consilience.spaces.classes import Classes
from consilience.spaces.finite import FiniteMetric
from consilience.spaces.metric import Metric
from consilience.spaces.rankings import Rankings
from consilience.spaces.registry import register_distance
from consilience.spaces.scores import Scores
from consilience.spaces.vectors import Vectors

__all__ = ["Classes", "FiniteMetric", "LabelSpace", "Metric", "Rankings", "Scores", "Vectors", "register_distance"]
