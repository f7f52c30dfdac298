"""Measures of dependency trees, the best tree for given scores of edges, and treebanks in CoNLL-U files."""

from __future__ import annotations

from consilience.label_types.trees.measures import las, maximum_arborescence, uas
from consilience.treebanks import Treebank, read_conllu, write_conllu

__all__ = ["Treebank", "las", "maximum_arborescence", "read_conllu", "uas", "write_conllu"]
