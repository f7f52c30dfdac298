"""Votes from tables and files of any format, labels into them, and which label type a file seems to hold."""

from typing import TYPE_CHECKING

from consilience.lazy import on_first_use

if TYPE_CHECKING:
    from consilience.tables.annotation_tools import read_argilla as read_argilla
    from consilience.tables.annotation_tools import read_cvat as read_cvat
    from consilience.tables.annotation_tools import read_doccano as read_doccano
    from consilience.tables.annotation_tools import read_ground_truth as read_ground_truth
    from consilience.tables.annotation_tools import read_prodigy as read_prodigy
    from consilience.tables.annotation_tools import write_argilla as write_argilla
    from consilience.tables.annotation_tools import write_doccano as write_doccano
    from consilience.tables.annotation_tools import write_prodigy as write_prodigy
    from consilience.tables.annotations import Annotations as Annotations
    from consilience.tables.coco import read_coco as read_coco
    from consilience.tables.coco import write_coco as write_coco
    from consilience.tables.conllu import Treebank as Treebank
    from consilience.tables.conllu import read_conllu as read_conllu
    from consilience.tables.conllu import write_conllu as write_conllu
    from consilience.tables.judges import JudgeTable as JudgeTable
    from consilience.tables.judges import read_judges as read_judges
    from consilience.tables.judges import read_preferences as read_preferences
    from consilience.tables.label_studio import read_label_studio as read_label_studio
    from consilience.tables.label_studio import write_label_studio as write_label_studio
    from consilience.tables.notation import Guess as Guess
    from consilience.tables.notation import guess_space as guess_space
    from consilience.tables.reading import convert_votes as convert_votes
    from consilience.tables.reading import read_votes as read_votes
    from consilience.tables.reading import wide_table as wide_table
    from consilience.tables.receipt import Receipt as Receipt
    from consilience.tables.training import RankingGroups as RankingGroups
    from consilience.tables.training import TrainingSet as TrainingSet
    from consilience.tables.training import preference_pairs as preference_pairs
    from consilience.tables.training import ranking_groups as ranking_groups
    from consilience.tables.training import training_set as training_set
    from consilience.tables.trec import read_trec as read_trec
    from consilience.tables.writing import label_frame as label_frame
    from consilience.tables.writing import label_table as label_table
    from consilience.tables.writing import write_labels as write_labels

__getattr__, __dir__, __all__ = on_first_use(
    __name__,
    {
        "annotation_tools": "read_argilla read_cvat read_doccano read_ground_truth read_prodigy write_argilla "
        "write_doccano write_prodigy",
        "annotations": "Annotations",
        "coco": "read_coco write_coco",
        "conllu": "Treebank read_conllu write_conllu",
        "judges": "JudgeTable read_judges read_preferences",
        "label_studio": "read_label_studio write_label_studio",
        "notation": "Guess guess_space",
        "reading": "convert_votes read_votes wide_table",
        "receipt": "Receipt",
        "training": "RankingGroups TrainingSet preference_pairs ranking_groups training_set",
        "trec": "read_trec",
        "writing": "label_frame label_table write_labels",
    },
)
