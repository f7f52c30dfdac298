"""Finite metric spaces: a label is one of K nodes with given distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.estimation.protocol import Law
from consilience.exceptions import DistanceError
from consilience.label_types.base import CodedSpace
from consilience.label_types.codes import first_few, read_names
from consilience.label_types.cost_curve import conditional
from consilience.label_types.finite.law import FiniteLaw
from consilience.label_types.landmarks import Landmarks


@dataclass(frozen=True, init=False, eq=False)
class FiniteMetric(CodedSpace):
    """One of K nodes; the cost is given by a matrix, or by shortest paths in a graph.

    Use it for ordinal classes, taxonomies, or any finite set with a distance.

    Parameters
    ----------
    matrix_or_graph
        A ``(K, K)`` matrix of distances, a networkx graph (with the edge attribute ``weight``, by default 1), or a
        list of edges ``(u, v)`` or ``(u, v, length)``.
    names
        Names of the nodes of a matrix. The nodes of a graph have names.

    Examples
    --------
    >>> space = FiniteMetric([("animal", "cat"), ("animal", "dog")])
    >>> space.names
    ('animal', 'cat', 'dog')
    >>> space.distance(space.as_batch(["cat"]), space.as_batch(["dog"])).tolist()
    [2.0]
    """

    noun: ClassVar[str] = "node"
    naming: ClassVar[str] = "FiniteMetric(..., names=[...])"

    matrix: FloatArray
    names: tuple[Any, ...] | None
    k: int

    def __init__(self, matrix_or_graph: Any, names: Sequence[Any] | None = None) -> None:
        given, nodes = matrix_or_graph, None
        if hasattr(given, "adjacency") and hasattr(given, "edges"):
            nodes = list(given.nodes)
            matrix = _shortest_paths(nodes, [(u, v, data.get("weight", 1.0)) for u, v, data in given.edges(data=True)])
        elif isinstance(given, (list, tuple, set)) and given and all(map(_is_edge, given)):
            nodes = list(dict.fromkeys(node for edge in given for node in edge[:2]))
            if all(isinstance(node, (int, np.integer)) for node in nodes):
                nodes = sorted(nodes)
            matrix = _shortest_paths(nodes, [(*edge, 1.0)[:3] for edge in given])
        else:
            try:
                matrix = np.array(given, dtype=np.float64)
            except (TypeError, ValueError):
                raise DistanceError(
                    f"{given!r:.60} is neither a matrix of numbers nor a graph. Give a (K, K) matrix, a networkx "
                    "graph, or a list of edges written as tuples (u, v)."
                ) from None
        _check_matrix(matrix)
        if names is None and nodes != list(range(len(matrix))):
            names = nodes
        if names is not None:
            names, count = read_names(list(names), "node", f"names={names!r}")
            if count != len(matrix):
                raise DistanceError(f"{count} names were given for {len(matrix)} nodes. Give one per node.")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "k", len(matrix))

    def __repr__(self) -> str:
        shown = "" if self.names is None else f": {first_few(self.names)}"
        return f"FiniteMetric({self.k} labels{shown})"

    @cached_property
    def law(self) -> Law:
        return FiniteLaw(self.matrix)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return np.asarray(self.matrix[np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)])

    @cached_property
    def _landmarks(self) -> Landmarks:
        return Landmarks.of(self.cost, np.arange(self.k))

    def embed(self, batch: Batch) -> FloatArray:
        """Return coordinates by multidimensional scaling of the table."""
        return self._landmarks(np.asarray(batch, dtype=np.int64))

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        codes = np.where(weights > 0, votes, 0).astype(np.int64)
        each = (weight[:, None] * self.matrix[code] for weight, code in zip(weights.T, codes.T, strict=True))
        return sum(each, start=np.zeros((len(weights), self.k))).argmin(axis=1)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        law = np.cumsum(conditional(self.matrix, weight).probability, axis=1)
        drawn = (rng.random(len(centers))[:, None] > law[centers.astype(np.int64)]).sum(axis=1)
        return np.asarray(np.minimum(drawn, self.k - 1))

    def spec(self) -> dict[str, Any]:
        return {"matrix_or_graph": self.matrix, "names": None if self.names is None else list(self.names)}


def _is_edge(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (2, 3)


def _shortest_paths(nodes: list[Any], edges: list[tuple[Any, Any, float]]) -> FloatArray:
    position = {node: index for index, node in enumerate(nodes)}
    graph = np.full((len(nodes), len(nodes)), np.inf)
    for u, v, length in edges:
        if not (isinstance(length, (int, float, np.number)) and np.isfinite(length) and length > 0):
            raise DistanceError(f"Edge {u!r} - {v!r} has length {length!r}. Lengths are positive numbers.")
        pair = position[u], position[v]
        graph[pair] = min(graph[pair], length)  # the shortest of parallel edges counts
    matrix = np.minimum(graph, graph.T)
    np.fill_diagonal(matrix, 0.0)
    for middle in range(len(nodes)):  # Floyd-Warshall: paths through one more node
        np.minimum(matrix, matrix[:, middle, None] + matrix[middle], out=matrix)
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DistanceError(
            f"There is no path between {nodes[row]!r} and {nodes[column]!r}. "
            "Connect the graph, or pass a matrix with the distances between its parts."
        )
    return matrix


def _check_matrix(matrix: FloatArray) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DistanceError(f"A distance matrix is square; got shape {matrix.shape}. Give a (K, K) matrix.")
    if len(matrix) < 2:
        raise DistanceError(f"FiniteMetric needs at least 2 labels, got {len(matrix)}.")
    bad = ~np.isfinite(matrix) | (matrix < 0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DistanceError(
            f"The distance from {row} to {column} is {matrix[row, column]}. Distances are finite and never negative."
        )
    if np.diag(matrix).any():
        node = int(np.flatnonzero(np.diag(matrix))[0])
        raise DistanceError(
            f"The distance from {node} to itself is {matrix[node, node]}; it must be 0. Set the diagonal to 0."
        )
    if not np.allclose(matrix, matrix.T):
        row, column = np.argwhere(~np.isclose(matrix, matrix.T))[0]
        raise DistanceError(
            f"The distance from {row} to {column} is {matrix[row, column]}, but {matrix[column, row]} back. "
            "Symmetrize the matrix, for instance (matrix + matrix.T) / 2."
        )
    if not matrix.any():
        raise DistanceError("All distances are 0, so all labels are the same label.")
