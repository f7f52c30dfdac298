"""Geometries: distances in closed form, maps that undo each other, means that are minima, laws of distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.exceptions import DistanceError
from consilience.label_types.manifolds.curved import HyperbolicGeometry, RotationGeometry, SphereGeometry
from consilience.label_types.manifolds.geometry import LogEuclideanGeometry, SPDGeometry
from consilience.label_types.manifolds.manifold import GivenGeometry

CIRCLE = SphereGeometry(1)


def draw(n, rng):
    return CIRCLE.project(rng.normal(size=(n, 2)))


CURVED = {
    "hyperbolic line": HyperbolicGeometry(1),
    "hyperbolic space of radius 2": HyperbolicGeometry(3, 2.0),
    "circle": CIRCLE,
    "sphere": SphereGeometry(2),
    "rotations": RotationGeometry(),
}
GEOMETRIES = CURVED | {
    "matrices": SPDGeometry(2),
    "matrices, log-Euclidean": LogEuclideanGeometry(3),
    "given": GivenGeometry(CIRCLE.exp, CIRCLE.log, CIRCLE.distance, draw),
}
EACH = pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)


def scattered(geometry, n, rng, scale=0.4):
    start = np.broadcast_to(geometry.origin, (n, *geometry.point_shape))
    return geometry.exp(start, scale * geometry.random_tangent(start, rng))


def around(geometry, points, m, rng, scale=0.3):
    return np.stack([geometry.exp(points, scale * geometry.random_tangent(points, rng)) for _ in range(m)], axis=1)


@EACH
def test_exp_and_log_undo_each_other_and_tangents_are_as_long_as_they_should_be(geometry):
    rng = np.random.default_rng(0)
    points = scattered(geometry, 4000, rng)
    tangents = 0.3 * geometry.random_tangent(points, rng)
    others = geometry.exp(points, tangents)
    square = geometry.inner(points, tangents, tangents)
    np.testing.assert_allclose(geometry.log(points, others)[:50], tangents[:50], atol=1e-12)
    np.testing.assert_allclose(geometry.distance(points, others)[:50], np.sqrt(square)[:50], atol=1e-12)
    # standard normal tangents, n = 4000 squared lengths with chi-square law: five standard errors, one alarm in 10^6
    d = geometry.dimension
    assert square.mean() / 0.09 == pytest.approx(d, abs=5 * np.sqrt(2 * d / 4000))


@pytest.mark.parametrize("geometry", CURVED.values(), ids=CURVED)
def test_transport_keeps_lengths_and_carries_a_geodesic_along_itself(geometry):
    rng = np.random.default_rng(2)
    points, others = scattered(geometry, 30, rng), scattered(geometry, 30, rng)
    tangents = geometry.random_tangent(points, rng)
    carried = geometry.transport(points, others, tangents)
    before, after = geometry.inner(points, tangents, tangents), geometry.inner(others, carried, carried)
    np.testing.assert_allclose(after, before, rtol=1e-9)
    back = geometry.log(others, points)
    if isinstance(geometry, RotationGeometry):  # the tangent vectors belong to q or to -q
        back = back * np.sign((points * others).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(geometry.transport(points, others, geometry.log(points, others)), -back, atol=1e-9)


@EACH
def test_mean_is_where_weighted_logarithms_cancel_and_of_two_points_the_midpoint(geometry):
    rng = np.random.default_rng(4)
    votes = around(geometry, scattered(geometry, 20, rng), 5, rng)
    weights = rng.uniform(0.1, 1.0, (20, 5)) * (rng.random((20, 5)) < 0.8)
    weights[:, 0] = 1.0
    found = geometry.means(votes, weights)
    slope = (geometry.widen(weights) * geometry.log(found.points[:, None], votes)).sum(axis=1)
    assert np.sqrt(np.maximum(geometry.inner(found.points, slope, slope), 0.0)).max() < 1e-7
    two = geometry.means(votes[:, :2], np.ones((20, 2)))
    middle = geometry.exp(votes[:, 0], geometry.log(votes[:, 0], votes[:, 1]) / 2)
    np.testing.assert_allclose(geometry.distance(two.points, middle), 0.0, atol=1e-7)
    nobody = geometry.means(votes, np.zeros((20, 5)))
    assert np.isfinite(nobody.points).all()
    assert two.converged.all() and nobody.converged.all()  # noqa: PT018


def test_hyperbolic_distances_are_exact_near_and_far_out():
    lengths = np.array([-7.0, -0.5, 0.0, 1e-9, 2.0, 30.0, 30.001, 36.0, 36.001])
    points = 3.0 * np.stack([np.cosh(lengths / 3.0), np.sinh(lengths / 3.0)], axis=1)
    found = HyperbolicGeometry(1, 3.0).distance(points[:, None], points[None])
    np.testing.assert_allclose(found, np.abs(np.subtract.outer(lengths, lengths)), rtol=1e-9, atol=1e-15)
    # Pythagoras: cosh c = cosh a cosh b
    one, two = np.array([np.cosh(1.2), np.sinh(1.2), 0.0]), np.array([np.cosh(0.7), 0.0, np.sinh(0.7)])
    assert HyperbolicGeometry(2).distance(one, two) == pytest.approx(np.arccosh(np.cosh(1.2) * np.cosh(0.7)))


@given(st.integers(0, 10_000), st.floats(0.0, 8.0))
@settings(max_examples=25, deadline=None)
def test_hyperbolic_means_move_with_isometries(seed, shift):
    rng = np.random.default_rng(seed)
    space = HyperbolicGeometry(2)
    votes = around(space, scattered(space, 1, rng), 4, rng)
    boost = np.eye(3)
    boost[:2, :2] = [[np.cosh(shift), np.sinh(shift)], [np.sinh(shift), np.cosh(shift)]]
    for pull in (None, np.ones((1, 4))):
        here = space.means(votes, np.ones((1, 4)), pull)
        there = space.means(space.project(votes @ boost.T), np.ones((1, 4)), pull)
        assert (here.converged & there.converged).all()
        # coordinates at this distance carry a rounding error of about exp(distance) units in the last place
        assert space.distance(there.points, space.project(here.points @ boost.T))[0] < 1e-8 + 1e-14 * np.exp(2 * shift)


def test_votes_a_hundred_radii_away_have_a_finite_mean():
    space, rng = HyperbolicGeometry(2), np.random.default_rng(0)
    start = np.broadcast_to(space.origin, (200, 6, 3))
    votes = space.exp(start, 30.0 * space.random_tangent(start, rng))
    found = space.means(votes, np.full((200, 6), 0.5 / 900.0), np.ones((200, 6)))
    assert found.converged.all()
    # the likelihood knows the truth far better than any vote does
    assert np.mean(space.distance(found.points, space.origin) ** 2) < 0.05 * np.mean(space.distance(votes, start) ** 2)


def test_wrapped_weights_solve_the_likelihood_equation():
    # minus log density: r^2 / (2 s^2) + (d - 1) log(sinh r / r); its gradient vanishes at the mean
    d, rng = 4, np.random.default_rng(6)
    space = HyperbolicGeometry(d)
    votes = around(space, scattered(space, 10, rng), 5, rng, scale=1.0)
    scale = np.array([0.3, 0.5, 1.0, 1.5, 2.0])
    found = space.means(votes, np.broadcast_to(0.5 / scale**2, (10, 5)), np.ones((10, 5)))

    def minus_log_density(points):
        r = space.distance(points[:, None], votes)
        return (r**2 / (2 * scale**2) + (d - 1) * np.log(np.sinh(r) / r)).sum(axis=1)

    for _ in range(8):
        moved = space.exp(found.points, 1e-4 * space.random_tangent(found.points, rng))
        assert (minus_log_density(moved) > minus_log_density(found.points)).all()


def test_mean_of_rotations_does_not_depend_on_the_signs_of_quaternions():
    turns, rng = RotationGeometry(), np.random.default_rng(7)
    votes = around(turns, scattered(turns, 30, rng), 4, rng)
    flipped = votes * rng.choice([-1.0, 1.0], size=(30, 4, 1))
    one, two = (turns.means(each, np.ones((30, 4))).points for each in (votes, flipped))
    np.testing.assert_allclose(turns.distance(one, two), 0.0, atol=1e-7)


def test_affine_invariant_distance_survives_a_change_of_axes():
    space, rng = SPDGeometry(3), np.random.default_rng(8)
    left, right = scattered(space, 10, rng, 1.0), scattered(space, 10, rng, 1.0)
    change = rng.normal(size=(3, 3))
    moved = space.distance(change @ left @ change.T, change @ right @ change.T)
    np.testing.assert_allclose(moved, space.distance(left, right), rtol=1e-8)


def test_scales_and_costs_undo_each_other():
    scale = np.array([1e-3, 0.1, 0.4, 0.6])
    for noise in ("wrapped", "riemannian"):
        for space in (HyperbolicGeometry(3, noise=noise), SphereGeometry(3, noise), RotationGeometry(noise)):
            np.testing.assert_allclose(space.scale_of_cost(space.cost_of_scale(scale)), scale, rtol=1e-6)
    assert HyperbolicGeometry(2).cost_of_scale(0.5) == pytest.approx(2 * 0.25)
    assert SphereGeometry(2).cost_of_scale(1.0) < 2.0  # long ways lead back


@pytest.mark.parametrize(
    ("geometry", "scales"),
    [(HyperbolicGeometry(3), (0.5, 1.5)), (SPDGeometry(2), (0.4, 0.8)), (LogEuclideanGeometry(2), (0.4, 0.8))],
    ids=["hyperbolic", "matrices", "flat matrices"],
)
def test_two_votes_cost_each_other_as_simulated(geometry, scales):
    # 20,000 pairs: 1% each; the factor itself rests on 300 pairs in opposite directions, known to 3%
    rng = np.random.default_rng(9)
    start = np.broadcast_to(geometry.origin, (20_000, *geometry.point_shape))
    one, two = (geometry.noisy(start, scale, rng) for scale in scales)
    costs = geometry.cost_of_scale(np.array(scales))
    expected = costs.sum() * geometry.stretch(np.array(scales[:1]), np.array(scales[1:]))[0, 0]
    assert np.mean(geometry.distance(one, two) ** 2) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("geometry", [SphereGeometry(2), RotationGeometry(), SphereGeometry(1)], ids=repr)
def test_closeness_is_a_product_on_closed_spaces(geometry):
    # 40,000 pairs: a mean cosine has a standard error of at most .004; four of them
    rng = np.random.default_rng(9)
    start = np.broadcast_to(geometry.origin, (40_000, *geometry.point_shape))
    one, two = geometry.noisy(start, 0.5, rng), geometry.noisy(start, 0.9, rng)
    each = [geometry.closeness(geometry.distance(start, votes)).mean() for votes in (one, two)]
    assert geometry.closeness(geometry.distance(one, two)).mean() == pytest.approx(each[0] * each[1], abs=0.016)
    assert geometry.scale_of_closeness(np.array(each)) == pytest.approx([0.5, 0.9], rel=0.05)


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("distance", lambda left, right: np.zeros(1), r"returned shape \(1,\); expected \(2,\)"),
        ("log", lambda left, right: left * np.nan, "returned NaN or infinity"),
        ("exp", lambda left, right: {}["x"], "raised KeyError"),
    ],
)
def test_functions_that_return_the_wrong_shape_or_no_number_are_named(name, function, message):
    functions = {"exp": CIRCLE.exp, "log": CIRCLE.log, "distance": CIRCLE.distance} | {name: function}
    given, points = GivenGeometry(*functions.values(), draw), np.eye(2)
    with pytest.raises(DistanceError, match=f"'{name}' of the manifold {message}"):
        getattr(given, name)(points, points)
