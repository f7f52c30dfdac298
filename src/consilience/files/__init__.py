"""Votes from files, labels into files, and which label type a file seems to hold."""

from consilience.files.coco import CocoVotes, read_coco, write_coco
from consilience.files.converting import convert_votes, long_table, wide_table
from consilience.files.guessing import Guess, guess_space
from consilience.files.judges import JudgeTable, read_judges
from consilience.files.label_studio import LabelStudioExport, read_label_studio
from consilience.files.label_studio_predictions import write_label_studio
from consilience.files.preferences import read_preferences, standings
from consilience.files.reading import read_votes
from consilience.files.spans import check_spans
from consilience.files.training import RankingGroups, TrainingSet, preference_pairs, ranking_groups, training_set
from consilience.files.writing import label_frame, label_table, write_labels

__all__ = [
    "CocoVotes",
    "Guess",
    "JudgeTable",
    "LabelStudioExport",
    "RankingGroups",
    "TrainingSet",
    "check_spans",
    "convert_votes",
    "guess_space",
    "label_frame",
    "label_table",
    "long_table",
    "preference_pairs",
    "ranking_groups",
    "read_coco",
    "read_judges",
    "read_label_studio",
    "read_preferences",
    "read_votes",
    "standings",
    "training_set",
    "wide_table",
    "write_coco",
    "write_label_studio",
    "write_labels",
]
