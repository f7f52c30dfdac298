"""Categorical votes: Dawid-Skene for sources that vote every class, the event form for those that do not."""

from consilience.families.confusion.family import ConfusionFamily
from consilience.families.confusion.parameters import ConfusionParameters

__all__ = ["ConfusionFamily", "ConfusionParameters"]
