"""What a label is: one label type per file."""

from consilience.spaces.base import LabelSpace
from consilience.spaces.classes import Classes
from consilience.spaces.finite import FiniteMetric
from consilience.spaces.hyperbolic import Hyperbolic
from consilience.spaces.manifold import Manifold
from consilience.spaces.metric import Metric
from consilience.spaces.rankings import Rankings
from consilience.spaces.registry import register_distance
from consilience.spaces.rotations import SO3
from consilience.spaces.scores import Scores
from consilience.spaces.spd import SPD
from consilience.spaces.sphere import Sphere

__all__ = [
    "SO3",
    "SPD",
    "Classes",
    "FiniteMetric",
    "Hyperbolic",
    "LabelSpace",
    "Manifold",
    "Metric",
    "Rankings",
    "Scores",
    "Sphere",
    "register_distance",
]
