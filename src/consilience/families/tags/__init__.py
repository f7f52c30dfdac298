"""Tags: several binary labels per item with qualities pooled over the tags, and sequences of tags."""

from consilience.families.tags.codes import ABSENT, UNKNOWN
from consilience.families.tags.family import TagFamily
from consilience.families.tags.parameters import SequenceParameters, TagParameters
from consilience.families.tags.sequences import SequenceFamily

__all__ = ["ABSENT", "UNKNOWN", "SequenceFamily", "SequenceParameters", "TagFamily", "TagParameters"]
