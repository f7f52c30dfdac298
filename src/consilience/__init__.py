"""Universal weak supervision: many noisy opinions in, one good label per item out, for any kind of label.

>>> import consilience as cs
>>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
>>> cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)[:4].tolist()
[0, 1, 0, 1]
"""

from consilience import exceptions, testing
from consilience.estimation import SourceEstimator
from consilience.families.base import Diagnostic
from consilience.label_model import LabelModel
from consilience.moments import Moments
from consilience.partitions import InMemoryPartitions, VotePartitions
from consilience.rank_aggregation import borda, copeland, kemeny
from consilience.simulation import simulate
from consilience.source_model import SourceModel, SourceTable
from consilience.spaces import (
    SO3,
    SPD,
    Classes,
    FiniteMetric,
    Hyperbolic,
    LabelSpace,
    Manifold,
    Metric,
    Rankings,
    Scores,
    Sphere,
    register_distance,
)
from consilience.votes import Votes

__version__ = "0.1.0"

__all__ = [
    "SO3",
    "SPD",
    "Classes",
    "Diagnostic",
    "FiniteMetric",
    "Hyperbolic",
    "InMemoryPartitions",
    "LabelModel",
    "LabelSpace",
    "Manifold",
    "Metric",
    "Moments",
    "Rankings",
    "Scores",
    "SourceEstimator",
    "SourceModel",
    "SourceTable",
    "Sphere",
    "VotePartitions",
    "Votes",
    "borda",
    "copeland",
    "exceptions",
    "kemeny",
    "register_distance",
    "simulate",
    "testing",
]
