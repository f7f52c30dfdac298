"""Universal weak supervision: many noisy opinions in, one good label per item out, for any kind of label.

>>> import consilience as cs
>>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
>>> cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)[:4].tolist()
[0, 1, 0, 1]
"""

# The modules of `tables` stand above and below most others, so its names are gathered first.
from consilience import tables  # isort: skip

from consilience import (
    datasets,
    elements,
    end_models,
    exceptions,
    labeling,
    partitions,
    preferences,
    rankings,
    testing,
    trees,
)
from consilience.label_model import LabelModel
from consilience.label_types import (
    SO3,
    SPD,
    Boxes,
    Classes,
    DependencyTrees,
    FiniteMetric,
    Hyperbolic,
    LabelSpace,
    Manifold,
    Metric,
    Preferences,
    Product,
    Rankings,
    Scores,
    Sequences,
    Spans,
    Sphere,
    Tags,
    Texts,
    Vectors,
)
from consilience.labeling import apply, labeling_function, summarize
from consilience.prediction.simulate import simulate
from consilience.rankings import kemeny
from consilience.report import write_report
from consilience.tables import read_votes, write_labels
from consilience.votes import Votes

__version__ = "0.1.0"

__all__ = [
    "Boxes",
    "Classes",
    "DependencyTrees",
    "FiniteMetric",
    "Hyperbolic",
    "LabelModel",
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
    "Votes",
    "apply",
    "datasets",
    "elements",
    "end_models",
    "exceptions",
    "kemeny",
    "labeling",
    "labeling_function",
    "partitions",
    "preferences",
    "rankings",
    "read_votes",
    "simulate",
    "summarize",
    "tables",
    "testing",
    "trees",
    "write_labels",
    "write_report",
]
