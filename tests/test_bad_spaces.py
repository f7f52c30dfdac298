"""Label spaces that are none: names, matrices, graphs and distance functions that cannot be used."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from refusals import gap, refused, table

import consilience as cs
from consilience.exceptions import DistanceError, InvalidLabelError, ModelFormatError, UnsupportedError

nan = float("nan")


# --- Classes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (1, ["at least 2 classes", "got 1"]),
        (-3, ["at least 2 classes", "got -3"]),
        (["cat"], ["at least 2 classes", "got 1"]),
        (["cat", "dog", "cat"], ["Class 'cat' is named twice", "once"]),
        (["cat", None], ["None or NaN", "abstains"]),
        (["cat", nan], ["None or NaN", "abstains"]),
        ([["cat"], ["dog"]], ["['cat']", "text or numbers"]),
        ([("cat", 1), ("dog", 2)], ["('cat', 1)", "text or numbers"]),
        ("cat", ["'cat'", "list of names"]),
        (2.0, ["2.0", "whole number"]),
        (True, ["True", "whole number"]),
        (None, ["None", "whole number"]),
    ],
)
def test_classes_that_are_none_are_refused(names, parts):
    with refused(InvalidLabelError, *parts):
        cs.Classes(names)


def test_more_classes_than_occur_are_reported():
    fitted = cs.LabelModel(cs.Classes(4)).fit(table())
    assert (fitted.predict_proba(table())[:, 2:] < 0.2).all()
    [finding] = [item for item in fitted.diagnostics_ if item.code == "unused-labels"]
    assert "2 of the 4 labels (code 2, 3)" in finding.message
    assert "leave them out" in finding.message


# --- FiniteMetric ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "parts"),
    [
        (np.zeros((2, 3)), ["square", "(2, 3)"]),
        ([[0, 1], [2, 0]], ["from 0 to 1 is 1.0", "2.0 back", "(matrix + matrix.T) / 2"]),
        ([[0, -1], [-1, 0]], ["from 0 to 1 is -1.0", "never negative"]),
        ([[0, nan], [nan, 0]], ["from 0 to 1 is nan", "finite"]),
        ([[0, 1], [1, 3]], ["from 1 to itself is 3.0", "0"]),
        (np.zeros((3, 3)), ["All distances are 0"]),
        ([[0]], ["at least 2 labels", "got 1"]),
        ([["a", "b"], ["c", "d"]], ["neither a matrix of numbers nor a graph", "(u, v)"]),
        ([[0, 1], [1]], ["neither a matrix of numbers nor a graph"]),
    ],
)
def test_matrix_that_holds_no_distances_is_refused(matrix, parts):
    with refused(DistanceError, *parts):
        cs.FiniteMetric(matrix)


@pytest.mark.parametrize(
    "graph", [[("a", "b"), ("c", "d")], nx.Graph([("a", "b"), ("c", "d")])], ids=["edges", "graph"]
)
def test_graph_in_pieces_is_refused(graph):
    with refused(DistanceError, "no path between 'a' and 'c'", "Connect the graph"):
        cs.FiniteMetric(graph)


@pytest.mark.parametrize("length", [-1, 0, nan, "long"])
def test_edge_without_a_length_is_refused(length):
    with refused(DistanceError, "Edge 'a' - 'b'", f"{length!r}", "positive"):
        cs.FiniteMetric([("a", "b", length)])


def test_of_parallel_edges_the_shortest_counts():
    # 0 - 1 twice (3 and 1), 1 - 2 once (2), given in both directions.
    space = cs.FiniteMetric([(0, 1, 3.0), (0, 1, 1.0), (1, 0, 5.0), (1, 2, 2.0)])
    assert space.matrix.tolist() == [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]


def test_names_of_the_wrong_number_are_refused():
    with refused(DistanceError, "2 names", "3 nodes", "one per node"):
        cs.FiniteMetric(1 - np.eye(3), names=["a", "b"])


def test_names_that_occur_twice_are_refused():
    with refused(InvalidLabelError, "Node 'a' is named twice"):
        cs.FiniteMetric(1 - np.eye(2), names=["a", "a"])


# --- Metric ----------------------------------------------------------------------------------------


def scores() -> np.ndarray:
    """Return votes of 5 sources that are 0.5 or 1.5."""
    return table(float) + 0.5


def raises(left, right):
    raise KeyError("boom")


def raises_on_batches(left, right):
    raise KeyError("boom")


def raises_sometimes(left, right):
    if left != right:
        raise ZeroDivisionError("nothing to divide by")
    return 0.0


@pytest.mark.parametrize(
    ("distance", "vectorized", "parts"),
    [
        (lambda left, right: nan, None, ["returned nan", "(pair 0)", "finite and never negative"]),
        (lambda left, right: 0.0 if left == right else nan, None, ["returned nan", "0.5", "1.5", "(pair "]),
        (lambda left, right: left - right, None, ["returned -1.0 between 0.5 and 1.5", "never negative"]),
        (lambda left, right: float("inf"), None, ["returned inf", "finite"]),
        (lambda left, right: np.zeros((2, 2)), None, ["shape (2, 2)", "one number per pair"]),
        (lambda left, right: np.zeros(3), True, ["shape (3,)", "one number per pair"]),
        (lambda left, right: 0.0, True, ["shape ()", "one number per pair"]),
        (lambda left, right: np.abs(left - right) * nan, True, ["returned nan", "(pair 0)"]),
        (lambda left, right: "far", None, ["returned str", "number"]),
        (lambda left, right: "far", True, ["returned str", "number"]),
        (lambda left, right: None, None, ["returned None between", "expected one number"]),
        (raises, None, ["raised KeyError: 'boom'", "(pair 0)", "Correct it"]),
        (raises_on_batches, True, ["raised KeyError: 'boom'", "two batches", "Correct it"]),
        (raises_sometimes, False, ["raised ZeroDivisionError: nothing to divide by", "0.5", "1.5", "(pair "]),
        (lambda left: 0.0, None, ["raised TypeError", "2 were given"]),
    ],
)
def test_distance_that_is_none_is_refused(distance, vectorized, parts):
    with refused(DistanceError, *parts):
        cs.LabelModel(cs.Metric(distance, vectorized=vectorized)).fit(scores())


def test_error_of_a_distance_function_keeps_its_cause():
    with pytest.raises(DistanceError) as caught:
        cs.LabelModel(cs.Metric(raises)).fit(scores())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("distance", [np.zeros((2, 2)), 3, None], ids=["matrix", "number", "none"])
def test_distance_that_cannot_be_called_is_refused(distance):
    with refused(DistanceError, "function of two labels", type(distance).__name__):
        cs.Metric(distance)


def test_distance_by_an_unknown_name_says_how_to_register_it():
    with refused(ModelFormatError, "'never-heard-of'", "register_distance"):
        cs.Metric("never-heard-of")


def test_empty_candidates_are_refused():
    with refused(InvalidLabelError, "candidates is empty", "at least one"):
        cs.Metric(gap, candidates=[])


def test_unknown_embedding_is_refused():
    with refused(UnsupportedError, "embed='pca'", "'mds'"):
        cs.Metric(gap, embed="pca")


@pytest.mark.parametrize(
    "embed", [lambda batch: batch, lambda batch: np.full((len(batch), 2), nan)], ids=["shape", "nan"]
)
def test_embedding_without_coordinates_is_refused(embed):
    with refused(DistanceError, "embed returned shape", "finite numbers"):
        cs.LabelModel(cs.Metric(gap, embed=embed)).fit(scores())


def test_metric_without_candidates_cannot_make_up_labels():
    with refused(UnsupportedError, "distance alone", "candidates="):
        cs.Metric(gap).random(3, np.random.default_rng(0))
