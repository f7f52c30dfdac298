"""Universal weak supervision: many noisy opinions in, one good label per item out, for any kind of label.

>>> import consilience as cs
>>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
>>> cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)[:4].tolist()
[0, 1, 0, 1]
"""

from consilience import datasets, end_models, engines, exceptions, labeling, plot, testing
from consilience.estimation.pipeline import SourceEstimator
from consilience.estimation.protocol import Diagnostic
from consilience.files import (
    CocoVotes,
    JudgeTable,
    LabelStudioExport,
    RankingGroups,
    TrainingSet,
    check_spans,
    convert_votes,
    guess_space,
    label_frame,
    label_table,
    long_table,
    preference_pairs,
    ranking_groups,
    read_coco,
    read_judges,
    read_label_studio,
    read_preferences,
    read_votes,
    standings,
    training_set,
    wide_table,
    write_coco,
    write_label_studio,
    write_labels,
)
from consilience.inference import Distribution
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
    Spans,
    Sphere,
    Tags,
    Texts,
    Vectors,
    bio_to_spans,
    las,
    maximum_arborescence,
    register_distance,
    spans_to_bio,
    uas,
)
from consilience.labeling import LabelingFunction, apply, labeling_function, summarize
from consilience.moments import Moments
from consilience.partitions import InMemoryPartitions, VotePartitions
from consilience.rankings import borda, copeland, kemeny
from consilience.report import report_html, write_report
from consilience.simulation import simulate
from consilience.source_model import SourceModel, SourceTable
from consilience.treebanks import Treebank, read_conllu, write_conllu
from consilience.votes import Votes

__version__ = "0.1.0"

__all__ = [
    "Boxes",
    "Classes",
    "CocoVotes",
    "DependencyTrees",
    "Diagnostic",
    "Distribution",
    "FiniteMetric",
    "Hyperbolic",
    "InMemoryPartitions",
    "JudgeTable",
    "LabelModel",
    "LabelSpace",
    "LabelStudioExport",
    "LabelingFunction",
    "Manifold",
    "Metric",
    "Moments",
    "Preferences",
    "Product",
    "RankingGroups",
    "Rankings",
    "SO3",
    "SPD",
    "Scores",
    "SourceEstimator",
    "SourceModel",
    "SourceTable",
    "Spans",
    "Sphere",
    "Tags",
    "Texts",
    "TrainingSet",
    "Treebank",
    "Vectors",
    "VotePartitions",
    "Votes",
    "apply",
    "bio_to_spans",
    "borda",
    "check_spans",
    "convert_votes",
    "copeland",
    "datasets",
    "end_models",
    "engines",
    "exceptions",
    "guess_space",
    "kemeny",
    "label_frame",
    "label_table",
    "labeling",
    "labeling_function",
    "las",
    "long_table",
    "maximum_arborescence",
    "plot",
    "preference_pairs",
    "ranking_groups",
    "read_coco",
    "read_conllu",
    "read_judges",
    "read_label_studio",
    "read_preferences",
    "read_votes",
    "register_distance",
    "report_html",
    "simulate",
    "spans_to_bio",
    "standings",
    "summarize",
    "testing",
    "training_set",
    "uas",
    "wide_table",
    "write_coco",
    "write_conllu",
    "write_label_studio",
    "write_labels",
    "write_report",
]
