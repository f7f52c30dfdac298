from consilience.label_types.base import LabelSpace as LabelSpace
from consilience.label_types.classes.space import Classes as Classes
from consilience.label_types.elements.space import Boxes as Boxes
from consilience.label_types.elements.space import Spans as Spans
from consilience.label_types.finite.space import FiniteMetric as FiniteMetric
from consilience.label_types.linear.space import Scores as Scores
from consilience.label_types.linear.space import Vectors as Vectors
from consilience.label_types.manifolds.manifold import Manifold as Manifold
from consilience.label_types.manifolds.spaces import SO3 as SO3
from consilience.label_types.manifolds.spaces import SPD as SPD
from consilience.label_types.manifolds.spaces import Hyperbolic as Hyperbolic
from consilience.label_types.manifolds.spaces import Sphere as Sphere
from consilience.label_types.metric.space import Metric as Metric
from consilience.label_types.preferences.space import Preferences as Preferences
from consilience.label_types.product.space import Product as Product
from consilience.label_types.rankings.space import Rankings as Rankings
from consilience.label_types.registry import register_distance as register_distance
from consilience.label_types.tags.bio import bio_to_spans as bio_to_spans
from consilience.label_types.tags.bio import spans_to_bio as spans_to_bio
from consilience.label_types.tags.space import Sequences as Sequences
from consilience.label_types.tags.space import Tags as Tags
from consilience.label_types.texts.space import Texts as Texts
from consilience.label_types.trees.measures import las as las
from consilience.label_types.trees.measures import maximum_arborescence as maximum_arborescence
from consilience.label_types.trees.measures import uas as uas
from consilience.label_types.trees.space import DependencyTrees as DependencyTrees

__all__: list[str]
