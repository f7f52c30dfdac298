"""Measures of dependency trees, and the best tree for given scores."""

from consilience.label_types.trees.arborescence import maximum_arborescence
from consilience.label_types.trees.scores import las, uas

__all__ = ["las", "maximum_arborescence", "uas"]
