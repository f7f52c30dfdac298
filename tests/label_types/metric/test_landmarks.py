"""Coordinates from distances: `consilience.label_types.metric.landmarks`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.metric.landmarks import Landmarks


def squared(left, right):
    return ((left - right) ** 2).sum(axis=-1)


def between(points):
    return squared(points[:, None], points[None])


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_euclidean_distances_are_recovered_exactly_and_always_alike(dimension):
    rng = np.random.default_rng(dimension)
    anchors, points = rng.normal(size=(12, dimension)), rng.normal(size=(30, dimension))
    landmarks = Landmarks.of(squared, anchors, explained=1.0)
    both = np.concatenate([points, anchors])
    assert landmarks(points).shape == (30, dimension)
    np.testing.assert_allclose(between(landmarks(both)), between(both), atol=1e-8)
    turned = Landmarks.of(squared, -anchors, explained=1.0)
    np.testing.assert_allclose(turned(-points), landmarks(points))


@given(st.integers(0, 2**32 - 1))
def test_landmarks_reproduce_what_is_flat_of_any_distances(seed):
    table = np.triu(np.random.default_rng(seed).uniform(0.5, 1.0, (8, 8)), 1)
    table = (table + table.T) ** 2
    landmarks = Landmarks.of(lambda left, right: table[left, right], np.arange(8))
    placed = landmarks(np.arange(8))
    centering = np.eye(8) - 1 / 8
    values, vectors = np.linalg.eigh(-centering @ table @ centering / 2)
    kept = slice(8 - placed.shape[1], 8)
    np.testing.assert_allclose(placed @ placed.T, (vectors * values)[:, kept] @ vectors[:, kept].T, atol=1e-9)


def test_four_points_in_a_square():
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    landmarks = Landmarks.of(squared, corners)
    np.testing.assert_allclose((landmarks(corners) ** 2).sum(axis=1), 2.0)
    np.testing.assert_allclose(landmarks.mean_squared, 4.0)
    np.testing.assert_allclose(landmarks(np.array([[1.0, 1.0]])), 0.0, atol=1e-12)


def test_dimension_is_limited_by_what_is_explained_and_by_the_maximum_and_at_least_one():
    points = np.random.default_rng(0).normal(size=(50, 4)) * np.array([10.0, 5.0, 0.1, 0.1])
    assert Landmarks.of(squared, points)(points).shape[1] == 2
    assert Landmarks.of(squared, points, max_dimension=1)(points).shape[1] == 1
    for count in (1, 4):  # equal points
        np.testing.assert_array_equal(Landmarks.of(squared, np.zeros((count, 2)))(np.ones((3, 2))), np.zeros((3, 1)))
