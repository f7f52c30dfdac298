"""Coordinates from distances: `consilience.label_types.metric.landmarks`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.metric.landmarks import fit_landmarks


def squared(left, right):
    return ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_euclidean_distances_are_recovered_exactly(dimension):
    rng = np.random.default_rng(dimension)
    anchors, points = rng.normal(size=(12, dimension)), rng.normal(size=(30, dimension))
    landmarks = fit_landmarks(squared(anchors, anchors), explained=1.0)
    placed = landmarks.place(squared(points, anchors))
    assert landmarks.coordinates.shape == (12, dimension)
    assert landmarks.explained == pytest.approx(1.0)
    np.testing.assert_allclose(squared(placed, placed), squared(points, points), atol=1e-8)
    np.testing.assert_allclose(squared(placed, landmarks.coordinates), squared(points, anchors), atol=1e-8)


@given(st.integers(0, 2**32 - 1))
def test_landmarks_map_to_themselves_even_if_not_euclidean(seed):
    rng = np.random.default_rng(seed)
    distance = np.triu(rng.uniform(0.5, 1.0, (8, 8)), 1)
    distance = (distance + distance.T) ** 2
    landmarks = fit_landmarks(distance)
    np.testing.assert_allclose(landmarks.place(distance), landmarks.coordinates, atol=1e-9)


def test_four_points_in_a_square():
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    landmarks = fit_landmarks(squared(corners, corners))
    np.testing.assert_allclose((landmarks.coordinates**2).sum(axis=1), 2.0)
    np.testing.assert_allclose(landmarks.mean_squared, 4.0)
    middle = landmarks.place(np.full((1, 4), 2.0))
    np.testing.assert_allclose(middle, 0.0, atol=1e-12)


def test_dimension_is_limited_by_what_is_explained_and_by_the_maximum():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 4)) * np.array([10.0, 5.0, 0.1, 0.1])
    distance = squared(points, points)
    assert fit_landmarks(distance).coordinates.shape[1] == 2
    one = fit_landmarks(distance, max_dimension=1)
    assert one.coordinates.shape[1] == 1
    assert 0.5 < one.explained < 0.95


def test_distances_that_are_not_flat_are_reported():
    star = 4.0 - 3.0 * np.eye(6)
    star[0, :] = star[:, 0] = 1.0
    np.fill_diagonal(star, 0.0)
    assert fit_landmarks(star**2, explained=1.0).explained < 0.99


@pytest.mark.parametrize("count", [1, 4])
def test_equal_points_get_one_zero_coordinate(count):
    landmarks = fit_landmarks(np.zeros((count, count)))
    np.testing.assert_array_equal(landmarks.coordinates, np.zeros((count, 1)))
    np.testing.assert_array_equal(landmarks.place(np.ones((3, count))), np.zeros((3, 1)))


def test_the_same_distances_give_the_same_coordinates():
    points = np.random.default_rng(1).normal(size=(9, 3))
    first = fit_landmarks(squared(points, points), explained=1.0).coordinates
    second = fit_landmarks(squared(-points, -points), explained=1.0).coordinates
    np.testing.assert_allclose(first, second)
