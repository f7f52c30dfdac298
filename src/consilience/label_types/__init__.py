"""What a label is: one label type per file."""

from consilience.label_types.base import LabelSpace
from consilience.label_types.finite.space import FiniteMetric
from consilience.label_types.registry import register_distance
from consilience.label_types.tags.bio import bio_to_spans, spans_to_bio
from consilience.label_types.tags.space import Sequences, Tags
from consilience.spaces.arborescence import maximum_arborescence
from consilience.spaces.boxes import Boxes
from consilience.spaces.classes import Classes
from consilience.spaces.hyperbolic import Hyperbolic
from consilience.spaces.manifold import Manifold
from consilience.spaces.metric import Metric
from consilience.spaces.preferences import Preferences
from consilience.spaces.product import Product
from consilience.spaces.rankings import Rankings
from consilience.spaces.rotations import SO3
from consilience.spaces.scores import Scores
from consilience.spaces.spans import Spans
from consilience.spaces.spd import SPD
from consilience.spaces.sphere import Sphere
from consilience.spaces.texts import Texts
from consilience.spaces.tree_scores import las, uas
from consilience.spaces.trees import DependencyTrees
from consilience.spaces.vectors import Vectors

__all__ = [
    "Boxes",
    "Classes",
    "DependencyTrees",
    "FiniteMetric",
    "Hyperbolic",
    "LabelSpace",
    "Manifold",
    "Metric",
    "Preferences",
    "Product",
    "Rankings",
    "SO3",
    "SPD",
    "Scores",
    "Sequences",
    "Spans",
    "Sphere",
    "Tags",
    "Texts",
    "Vectors",
    "bio_to_spans",
    "las",
    "maximum_arborescence",
    "register_distance",
    "spans_to_bio",
    "uas",
]
