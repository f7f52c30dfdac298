"""The names at the top level are those of the documentation, and no others."""

from __future__ import annotations

import consilience as cs

CORE = {"LabelModel", "Votes", "LabelSpace"}
LABEL_TYPES = {
    "Boxes",
    "Classes",
    "DependencyTrees",
    "FiniteMetric",
    "Hyperbolic",
    "Manifold",
    "Metric",
    "Preferences",
    "Product",
    "Rankings",
    "SO3",
    "SPD",
    "Scores",
    "Sequences",
    "Spans",
    "Sphere",
    "Tags",
    "Texts",
    "Vectors",
}
FUNCTIONS = {
    "apply",
    "kemeny",
    "labeling_function",
    "read_votes",
    "simulate",
    "summarize",
    "write_labels",
    "write_report",
}
MODULES = {
    "datasets",
    "elements",
    "end_models",
    "exceptions",
    "labeling",
    "partitions",
    "preferences",
    "rankings",
    "tables",
    "testing",
    "trees",
}


def test_the_top_level_has_these_names_and_no_others():
    assert len(cs.__all__) == len(set(cs.__all__))
    assert set(cs.__all__) == CORE | LABEL_TYPES | FUNCTIONS | MODULES


def test_every_public_name_of_a_public_module_exists():
    for name in sorted(MODULES):
        module = getattr(cs, name)
        assert {public for public in module.__all__ if not hasattr(module, public)} == set(), name
