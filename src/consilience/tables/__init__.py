"""Votes from tables and files of any format, labels into them, and which label type a file seems to hold."""

from consilience.tables.coco import CocoVotes, read_coco, write_coco
from consilience.tables.conllu import Treebank, read_conllu, write_conllu
from consilience.tables.judges import JudgeTable, read_judges, read_preferences
from consilience.tables.label_studio import LabelStudioExport, read_label_studio, write_label_studio
from consilience.tables.notation import Guess, guess_space
from consilience.tables.reading import convert_votes, read_votes, wide_table
from consilience.tables.training import RankingGroups, TrainingSet, preference_pairs, ranking_groups, training_set
from consilience.tables.writing import label_frame, label_table, write_labels

__all__ = [
    "CocoVotes",
    "Guess",
    "JudgeTable",
    "LabelStudioExport",
    "RankingGroups",
    "TrainingSet",
    "Treebank",
    "convert_votes",
    "guess_space",
    "label_frame",
    "label_table",
    "preference_pairs",
    "ranking_groups",
    "read_coco",
    "read_conllu",
    "read_judges",
    "read_label_studio",
    "read_preferences",
    "read_votes",
    "training_set",
    "wide_table",
    "write_coco",
    "write_conllu",
    "write_label_studio",
    "write_labels",
]
