"""Spaces of points on manifolds: what is refused and why, coordinates in and out, adapters, defined results."""

from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import DistanceError, InvalidLabelError

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def simulated(space, n=120, weights=(40.0, 15.0, 15.0, 8.0, 4.0), seed=0):
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    votes = cs.simulate(space, space.as_labels(truth), weights, rng)
    return np.asarray(votes.labels), truth


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cs.Hyperbolic(0), "d=0 is not a positive whole number"),
        (lambda: cs.Hyperbolic(2, curvature=1.0), "curvature=1 is not negative.*use Sphere for"),
        (lambda: cs.Hyperbolic(2, curvature="flat"), "curvature='flat' is not a number"),
        (lambda: cs.Hyperbolic(2, noise="none"), "noise='none' is unknown. Use 'wrapped' or 'riemannian'"),
        (lambda: cs.Hyperbolic(2, coordinates="disc"), "coordinates='disc' is unknown"),
        (lambda: cs.Sphere(1.5), "d=1.5 is not a positive whole number"),
        (lambda: cs.SPD(2, metric="euclidean"), "metric='euclidean' is unknown"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidLabelError, match=message):
        make()


@pytest.mark.parametrize(
    ("space", "good", "bad", "message"),
    [
        (cs.Hyperbolic(1), [1.0, 0.0], [1.5, 0.0], r"<x, x> = -2\.25 instead of -1.*should be 1\. .*space\.project"),
        (cs.Hyperbolic(1), [1.0, 0.0], [-1.0, 0.0], "first coordinate is -1 and should be 1"),
        (cs.Hyperbolic(1, coordinates="ball"), [0.0], [1.2], "has length 1.2, and the ball has the radius 1"),
        (cs.Sphere(1), [1.0, 0.0], [0.0, 1.5], r"has length 1\.5 instead of 1.*space\.project"),
        (cs.SO3(), [1.0, 0, 0, 0], [0.5, 0, 0, 0], r"has length 0\.5 instead of 1"),
        (cs.SPD(2), np.eye(2), np.diag([1.0, -0.25]), r"smallest eigenvalue is -0\.25"),
        (cs.SPD(2), np.eye(2), [[1.0, 0.5], [0.0, 1.0]], r"not symmetric: two entries.*differ by 0\.5"),
        (cs.Sphere(1), [1.0, 0.0], [np.inf, 0.0], "has a number that is not finite"),
        (cs.Hyperbolic(1), [1.0, 0.0], [1e140, 1e140], "curvature radii from the origin"),
    ],
)
def test_a_label_off_the_manifold_is_named_with_row_and_source(space, good, bad, message):
    votes = np.array([[good, good, good]] * 4, dtype=float)
    votes[2, 1] = bad
    with pytest.raises(InvalidLabelError, match=f"Row 2, source .*: .*{message}"):
        cs.LabelModel(space).fit(votes)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (np.ones((5, 3, 2)), r"Labels of shape \(2,\) are not points of Sphere.* shape \(3,\)"),
        ([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0]]] * 3, r"Row 0, source .*has shape \(2,\).* have \(3,\)"),
        ([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], "up"]] * 3, r"Row 0, source .*'up' is not an array of numbers"),
    ],
)
def test_a_label_of_the_wrong_shape_is_named(votes, message):
    with pytest.raises(InvalidLabelError, match=message):
        cs.LabelModel(cs.Sphere(2)).fit(votes)


def test_projections_put_points_where_they_belong():
    assert cs.Hyperbolic(2, curvature=-0.25).project([0.0, 3.0, 4.0])[0] == pytest.approx(np.sqrt(4.0 + 25.0))
    np.testing.assert_allclose(cs.Sphere(1).project([3.0, 4.0]), [0.6, 0.8])
    np.testing.assert_allclose(cs.SO3().project([-2.0, 0, 0, 0]), [1.0, 0, 0, 0])
    np.testing.assert_allclose(cs.SPD(2).project(np.diag([1, -1]), smallest=0.1), np.diag([1, 0.1]), atol=1e-12)
    with pytest.raises(InvalidLabelError, match="length zero"):
        cs.Sphere(1).project([0.0, 0.0])


@pytest.mark.parametrize("curvature", [-1.0, -0.25, -9.0])
def test_ball_and_hyperboloid_are_two_spellings_of_one_space(curvature):
    space, rng = cs.Hyperbolic(3, curvature=curvature), np.random.default_rng(0)
    points = space.random(20, rng)
    ball = space.to_poincare(points)
    assert (np.linalg.norm(ball, axis=1) < space.radius).all()
    np.testing.assert_allclose(space.from_poincare(ball), points, rtol=1e-9, atol=1e-12)
    # in the ball of radius R a point at Euclidean distance a from the center is 2 R artanh(a / R) away
    center = np.broadcast_to(space.project(np.zeros(4)), points.shape)
    expected = 2 * space.radius * np.arctanh(np.linalg.norm(ball, axis=1) / space.radius)
    np.testing.assert_allclose(space.distance(center, points), expected, rtol=1e-9)
    votes, _ = simulated(space, 40)
    labels = cs.LabelModel(space).fit(votes).predict(votes)
    other, votes = cs.Hyperbolic(3, curvature=curvature, coordinates="ball"), space.to_poincare(votes)
    np.testing.assert_allclose(cs.LabelModel(other).fit(votes).predict(votes), space.to_poincare(labels), atol=1e-7)


def test_rotation_matrices_and_quaternions_are_two_spellings():
    space = cs.SO3()
    quaternions = space.random(50, np.random.default_rng(0))
    matrices = space.to_matrix(quaternions)
    np.testing.assert_allclose(space.from_matrix(matrices), quaternions, atol=1e-12)
    trace = np.trace(matrices[0].T @ matrices[1])
    assert space.distance(quaternions[:1], quaternions[1:2])[0] == pytest.approx(np.arccos((trace - 1) / 2))
    half_turn = space.from_matrix(np.diag([-1.0, 1.0, -1.0]))
    np.testing.assert_allclose(np.abs(half_turn), [0, 0, 1, 0], atol=1e-12)
    with pytest.raises(InvalidLabelError, match="not a rotation"):
        space.from_matrix(np.diag([1.0, 1.0, -1.0]))


@pytest.mark.parametrize(
    "space", [cs.Hyperbolic(2), cs.Sphere(2), cs.SO3(), cs.SPD(2), cs.SPD(2, metric="log-euclidean")], ids=repr
)
def test_the_mean_has_the_least_cost_of_all_points_around_it(space):
    rng = np.random.default_rng(4)
    centers = space.random(20, rng)
    votes = np.stack([space.sample_around(centers, 20.0, rng) for _ in range(5)], axis=1)
    weights = rng.uniform(0.1, 1.0, (20, 5))
    mean = space.weighted_mean(votes, weights)

    def spent(points):
        return sum(weights[:, vote] * space.cost(votes[:, vote], points) for vote in range(5))

    for _ in range(8):
        assert (spent(space.sample_around(mean, 1e6, rng)) > spent(mean)).all()


def test_hyperbolic_distances_are_exact_near_and_far_out_and_means_move_with_isometries():
    lengths = np.array([-7.0, -0.5, 0.0, 1e-9, 2.0, 30.0, 30.001, 36.0, 36.001])
    points = 3.0 * np.stack([np.cosh(lengths / 3.0), np.sinh(lengths / 3.0)], axis=1)
    found = cs.Hyperbolic(1, curvature=-1 / 9).distance(np.repeat(points, 9, axis=0), np.tile(points, (9, 1)))
    np.testing.assert_allclose(found, np.abs(np.subtract.outer(lengths, lengths)).ravel(), rtol=1e-9, atol=1e-15)
    space, rng = cs.Hyperbolic(2), np.random.default_rng(0)
    # Pythagoras: cosh c = cosh a cosh b
    one, two = np.array([[np.cosh(1.2), np.sinh(1.2), 0.0]]), np.array([[np.cosh(0.7), 0.0, np.sinh(0.7)]])
    assert space.distance(one, two)[0] == pytest.approx(np.arccosh(np.cosh(1.2) * np.cosh(0.7)))
    votes = np.stack([space.sample_around(space.random(10, rng), 2.0, rng) for _ in range(4)], axis=1)
    boost = np.eye(3)
    boost[:2, :2] = [[np.cosh(4.0), np.sinh(4.0)], [np.sinh(4.0), np.cosh(4.0)]]
    here = space.weighted_mean(votes, np.ones((10, 4)))
    there = space.weighted_mean(space.project(votes @ boost.T), np.ones((10, 4)))
    # coordinates at this distance carry a rounding error of about exp(distance) units in the last place
    assert space.distance(there, space.project(here @ boost.T)).max() < 1e-8 + 1e-13 * np.exp(8.0)


def test_signs_of_quaternions_and_axes_of_matrices_do_not_matter():
    turns, rng = cs.SO3(), np.random.default_rng(7)
    centers = turns.random(30, rng)
    votes = np.stack([turns.sample_around(centers, 20.0, rng) for _ in range(4)], axis=1)
    flipped = votes * rng.choice([-1.0, 1.0], size=(30, 4, 1))
    one, two = (turns.weighted_mean(each, np.ones((30, 4))) for each in (votes, flipped))
    np.testing.assert_allclose(turns.distance(one, two), 0.0, atol=1e-7)
    space, change = cs.SPD(3), rng.normal(size=(3, 3))
    left, right = space.random(10, rng), space.random(10, rng)
    moved = space.distance(change @ left @ change.T, change @ right @ change.T)
    np.testing.assert_allclose(moved, space.distance(left, right), rtol=1e-8)


def test_opposite_votes_are_flagged_as_without_a_unique_mean():
    votes = np.array([[[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], [[0.0, 0.0, 1.0], [0.0, 0.1, np.sqrt(0.99)]]])
    space = cs.Sphere(2)
    belief = cs.LabelModel(space).fit(votes).posterior(votes)
    assert belief.details["unique"].tolist() == [False, True]
    assert belief.details["converged"].all()
    assert np.isfinite(belief.labels).all()
    assert space.weighted_mean(votes, np.ones((2, 2)))[0, 2] == pytest.approx(0.0, abs=1e-6)  # on the equator between


GLOBE = cs.Sphere(2).geometry


def draw(*shape):
    return GLOBE.project(np.random.normal(size=(*shape, 3)))  # noqa: NPY002  as geomstats and pymanopt do


class FakeSpace:
    """What a geomstats space offers: tangent vectors first, base points second."""

    dim = 2
    metric = SimpleNamespace(
        exp=lambda tangent_vec, base_point: GLOBE.exp(base_point, tangent_vec),
        log=lambda point, base_point: GLOBE.log(base_point, point),
        dist=GLOBE.distance,
        inner_product=lambda one, two, base_point=None: (one * two).sum(axis=-1),
    )
    random_point = staticmethod(lambda n_samples=1: draw() if n_samples == 1 else draw(n_samples))


class FakeManifold:
    """What a pymanopt manifold offers, one point at a time."""

    dim = 2
    exp = staticmethod(lambda point, tangent_vector: GLOBE.exp(point.reshape(3), tangent_vector))
    log = staticmethod(GLOBE.log)
    dist = staticmethod(lambda point_a, point_b: float(GLOBE.distance(point_a, point_b)))
    inner_product = staticmethod(lambda point, one, two: float(one @ two))
    random_point = staticmethod(draw)


@pytest.mark.parametrize(
    "adapt", [lambda: cs.Manifold.from_geomstats(FakeSpace()), lambda: cs.Manifold.from_pymanopt(FakeManifold())]
)
def test_manifolds_of_other_packages_give_the_labels_of_ours_and_follow_the_generator(adapt):
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    adapted = adapt()
    one, two = (adapted.random(5, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert adapted.geometry.dimension == 2
    # near enough together that curvature hardly matters, so that both ways of learning agree
    sphere = cs.Sphere(2, noise="riemannian")
    votes, truth = simulated(sphere, 60, (200.0, 100.0, 50.0, 50.0))
    ours, theirs = (cs.LabelModel(space).fit(votes).predict(votes) for space in (sphere, adapted))
    assert sphere.distance(ours, theirs).mean() < 0.2 * sphere.distance(ours, truth).mean()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_functions_are_checked_and_the_dimension_is_read_off_their_logarithms():
    sphere = cs.Sphere(4).geometry
    functions = {
        "exp": sphere.exp,
        "log": sphere.log,
        "distance": sphere.distance,
        "random": lambda count, rng: sphere.project(rng.normal(size=(count, 5))),
    }
    assert cs.Manifold(**functions).geometry.dimension == 4
    for changed, message in (
        ({"exp": lambda p, v: sphere.exp(p, -v)}, "exp and log of manifold do not fit together"),
        ({"distance": lambda p, q: 2 * sphere.distance(p, q)}, "Pass inner="),
        ({"log": None}, "needs a function for log"),
        ({"random": lambda count, rng: np.zeros(count)}, r"expected 9 points, one per row"),
    ):
        with pytest.raises(DistanceError, match=message):
            cs.Manifold(**(functions | changed))
    with pytest.raises(DistanceError, match="has no 'metric'"):
        cs.Manifold.from_geomstats(object())
