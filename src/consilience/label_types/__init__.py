"""What a label is: one label type per file."""

from consilience.label_types.base import LabelSpace
from consilience.label_types.classes.space import Classes
from consilience.label_types.elements.space import Boxes, Spans
from consilience.label_types.finite.space import FiniteMetric
from consilience.label_types.linear.space import Scores, Vectors
from consilience.label_types.manifolds.manifold import Manifold
from consilience.label_types.manifolds.spaces import SO3, SPD, Hyperbolic, Sphere
from consilience.label_types.metric.space import Metric
from consilience.label_types.preferences.space import Preferences
from consilience.label_types.product.space import Product
from consilience.label_types.rankings.space import Rankings
from consilience.label_types.registry import register_distance
from consilience.label_types.tags.bio import bio_to_spans, spans_to_bio
from consilience.label_types.tags.space import Sequences, Tags
from consilience.label_types.texts.space import Texts
from consilience.label_types.trees.measures import las, maximum_arborescence, uas
from consilience.label_types.trees.space import DependencyTrees

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
