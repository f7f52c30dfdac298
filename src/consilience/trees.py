"""Measures of dependency trees, and the best tree for given scores of edges."""

from consilience.label_types.trees.measures import las, maximum_arborescence, uas

__all__ = ["las", "maximum_arborescence", "uas"]
