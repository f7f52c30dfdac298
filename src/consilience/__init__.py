"""Universal weak supervision: many noisy opinions in, one good label per item out, for any kind of label.

>>> import consilience as cs
>>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
>>> cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)[:4].tolist()
[0, 1, 0, 1]
"""

from typing import TYPE_CHECKING

from consilience.kernel_cache import provide_cache_folder
from consilience.lazy import on_first_use

if TYPE_CHECKING:
    from consilience import datasets as datasets
    from consilience import elements as elements
    from consilience import end_models as end_models
    from consilience import exceptions as exceptions
    from consilience import labeling as labeling
    from consilience import partitions as partitions
    from consilience import plot as plot
    from consilience import preferences as preferences
    from consilience import rankings as rankings
    from consilience import tables as tables
    from consilience import testing as testing
    from consilience import trees as trees
    from consilience.label_model import LabelModel as LabelModel
    from consilience.label_types import SO3 as SO3
    from consilience.label_types import SPD as SPD
    from consilience.label_types import Boxes as Boxes
    from consilience.label_types import Classes as Classes
    from consilience.label_types import DependencyTrees as DependencyTrees
    from consilience.label_types import FiniteMetric as FiniteMetric
    from consilience.label_types import Hyperbolic as Hyperbolic
    from consilience.label_types import LabelSpace as LabelSpace
    from consilience.label_types import Manifold as Manifold
    from consilience.label_types import Metric as Metric
    from consilience.label_types import Preferences as Preferences
    from consilience.label_types import Product as Product
    from consilience.label_types import Rankings as Rankings
    from consilience.label_types import Scores as Scores
    from consilience.label_types import Sequences as Sequences
    from consilience.label_types import Spans as Spans
    from consilience.label_types import Sphere as Sphere
    from consilience.label_types import Tags as Tags
    from consilience.label_types import Texts as Texts
    from consilience.label_types import Vectors as Vectors
    from consilience.labeling import apply as apply
    from consilience.labeling import labeling_function as labeling_function
    from consilience.labeling import summarize as summarize
    from consilience.prediction.simulate import simulate as simulate
    from consilience.rankings import kemeny as kemeny
    from consilience.report import write_report as write_report
    from consilience.tables import read_votes as read_votes
    from consilience.tables import write_labels as write_labels
    from consilience.votes import Votes as Votes

provide_cache_folder()  # kernels are imported later, where they are used

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = on_first_use(
    __name__,
    {
        "": "datasets elements end_models exceptions labeling partitions plot preferences rankings tables "
        "testing trees",
        "label_model": "LabelModel",
        "label_types": "Boxes Classes DependencyTrees FiniteMetric Hyperbolic LabelSpace Manifold Metric Preferences "
        "Product Rankings SO3 SPD Scores Sequences Spans Sphere Tags Texts Vectors",
        "labeling": "apply labeling_function summarize",
        "prediction.simulate": "simulate",
        "rankings": "kemeny",
        "report": "write_report",
        "tables": "read_votes write_labels",
        "votes": "Votes",
    },
)
