"""Labeling functions: sources of votes written in Python, or built from models, columns and annotations."""

from consilience.labeling.applying import Answers, Applied, Fault, apply, apply_to_chunk, apply_with_faults
from consilience.labeling.functions import LabelingFunction, Preprocessor, labeling_function, once, preprocessor
from consilience.labeling.ready_made import from_annotations, from_column, from_model, keywords, regex, threshold
from consilience.labeling.summary import buckets, summarize

__all__ = [
    "Answers",
    "Applied",
    "Fault",
    "LabelingFunction",
    "Preprocessor",
    "apply",
    "apply_to_chunk",
    "apply_with_faults",
    "buckets",
    "from_annotations",
    "from_column",
    "from_model",
    "keywords",
    "labeling_function",
    "once",
    "preprocessor",
    "regex",
    "summarize",
    "threshold",
]
