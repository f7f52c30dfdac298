"""Scales of sources on manifolds: recovered where flat formulas fail, with errors that cover."""

import numpy as np
import pytest
from spaces import TORUS

import consilience as cs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def noisy(space, n, scales, seed=0):
    """Return votes of sources of these scales, and the truth."""
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    return np.stack([space.geometry.noisy(truth, scale, rng) for scale in scales], axis=1), truth


def learned(space, votes):
    model = cs.LabelModel(space).fit(votes)
    return model, np.sqrt(0.5 / model.weight_)


@pytest.mark.parametrize(
    ("space", "scales", "seen"),
    [
        (cs.Hyperbolic(5), [0.3, 0.8, 1.5, 2.0], 1.0),
        (cs.Hyperbolic(3, curvature=-0.25), [0.5, 1.5, 3.0, 4.0], 1.0),
        (cs.Sphere(2), [0.1, 0.3, 0.5, 0.7], 1.0),
        (cs.SO3(), [0.1, 0.3, 0.5, 0.7], 1.0),
        (cs.SPD(2), [0.2, 0.4, 0.8, 1.0], 1.0),
        (cs.SPD(2, metric="log-euclidean"), [0.2, 0.4, 0.8, 1.0], 1.0),
        (cs.Hyperbolic(3), [0.3, 0.5, 0.8, 1.2, 0.6], 0.4),
    ],
    ids=repr,
)
def test_scales_are_recovered(space, scales, seen):
    # n = 3000: relative standard errors are below 3%; 12% leaves room for the 1000 draws behind the law, and for what
    # is left of curvature where scales are learned from the labels. Where each source votes on 40% of 4000 items pairs
    # meet on 640: relative errors below 6%, tolerance 25%
    votes, _ = noisy(space, 3000 if seen == 1 else 4000, scales)
    votes[np.random.default_rng(2).random(votes.shape[:2]) > seen] = np.nan
    np.testing.assert_allclose(learned(space, votes)[1], scales, rtol=0.12 if seen == 1 else 0.25)


def test_riemannian_noise_is_learned_by_its_own_law():
    # density exp(-r^2 / (2 s^2)) with respect to volume; n = 3000, tolerance as above
    space = cs.Hyperbolic(3, noise="riemannian")
    rng = np.random.default_rng(0)
    truth = space.random(3000, rng)
    scales = np.array([0.2, 0.3, 0.4, 0.5, 0.6])
    weights = 0.5 / scales**2 - 0.5 / space.geometry.scale_of_cost(np.array([space.chance])) ** 2
    _, found = learned(space, cs.simulate(space, truth, weights, rng))
    np.testing.assert_allclose(found, scales, rtol=0.12)


@pytest.mark.slow
def test_standard_errors_cover():
    # 60 tables of 300 items and 4 sources: intervals of two standard errors cover 95% of 240; below 88% would be a
    # false alarm in 10^4 if tables were independent
    space, scales = cs.Hyperbolic(3), np.array([0.3, 0.5, 0.8, 1.2])
    inside = []
    for seed in range(60):
        votes, _ = noisy(space, 300, scales, seed)
        model, _ = learned(space, votes)
        error = model.source_model_.summary.cost_standard_error
        inside.append(np.abs(model.expected_cost_ - 3 * scales**2) < 2 * error)
    assert 0.88 <= np.mean(inside) <= 1.0


def test_standard_deviation_is_the_root_mean_squared_distance_to_the_truth():
    # n = 2000 with 3 directions: the mean of (distance / deviation)^2 has a standard error of about 0.02
    for space, scales in ((cs.Hyperbolic(3), [0.5, 0.7, 1.0]), (cs.Sphere(2), [0.2, 0.3, 0.4])):
        votes, truth = noisy(space, 2000, scales)
        belief = cs.LabelModel(space).fit(votes).posterior(votes)
        ratio = space.cost(belief.labels, truth) / belief.details["standard_deviation"] ** 2
        assert ratio.mean() == pytest.approx(1.0, abs=0.25)


def test_known_labels_decide_where_votes_cannot():
    space = cs.Sphere(2)
    votes, truth = noisy(space, 200, [0.1, 0.4])
    known = [point if row < 40 else None for row, point in enumerate(truth)]
    model = cs.LabelModel(space).fit(votes, gold=known)
    # 40 labels: relative standard error of a squared scale is 16%, and the better source is drawn to the other
    assert model.expected_cost_[0] < 3 * 2 * 0.01
    assert model.expected_cost_[1] == pytest.approx(2 * 0.16, rel=0.6)


def test_confidence_in_rotations_is_the_share_of_the_squared_angle_that_is_avoided():
    # Over 15 other draws they differ by .007 +- .006.
    space, rng = cs.SO3(), np.random.default_rng(41)
    truth = space.random(600, rng)
    votes = cs.simulate(space, space.as_labels(truth), [0.3] * 7, rng)
    model = cs.LabelModel(space, random_state=0).fit(votes)
    chance = space.cost(truth, truth[rng.permutation(600)]).mean()
    avoided = 1.0 - space.cost(space.as_batch(model.predict(votes)), truth).mean() / chance
    assert abs(model.confidence(votes).mean() - avoided) < 0.035


@pytest.mark.parametrize(
    ("space", "scales"),
    [
        (cs.Sphere(2), [0.7, 0.9, 1.0, 1.1, 1.1, 0.9, 0.8]),
        (cs.Sphere(2, noise="riemannian"), [0.7, 0.9, 1.0, 1.1, 1.1, 0.9, 0.8]),
        (cs.SO3(), [0.7, 0.9, 1.0, 1.1, 1.1, 0.9, 0.8]),
        (TORUS, [0.7, 0.9, 1.0, 1.1, 1.1, 0.9, 0.8]),
        (cs.Hyperbolic(2), [0.5, 0.7, 0.8, 0.9, 0.9, 0.6, 0.7]),
    ],
    ids=repr,
)
def test_confidence_is_the_share_of_chance_that_labels_remove(space, scales):
    # Noise so wide that votes lie on the far side of the space now and then. The share is known to .02 from 800 items.
    votes, truth = noisy(space, 800, scales)
    model = cs.LabelModel(space, random_state=0).fit(votes)
    stated = model.confidence(votes)
    chance = space.cost(truth, np.roll(truth, 1, axis=0)).mean()
    removed = 1.0 - space.cost(model.predict(votes), truth) / chance
    assert abs(stated.mean() - removed.mean()) < 0.06
    doubtful = stated <= np.quantile(stated, 0.25)
    assert abs(stated[doubtful].mean() - removed[doubtful].mean()) < 0.12


def test_costs_of_a_closed_space_have_a_limit():
    # Two points anywhere on the torus are 2 pi^2 / 3 apart in the mean of squares, and no noise is wider than that.
    cost = TORUS.geometry.cost_of_scale(np.array([0.01, 50.0]))
    assert cost == pytest.approx([2e-4, 2.0 * np.pi**2 / 3.0], rel=0.1)
    assert TORUS.geometry.scale_of_cost(cost[:1]) == pytest.approx([0.01], rel=0.01)
