"""The backward mapping of finite spaces: `consilience.label_types.cost_curve`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.exceptions import DistanceError
from consilience.label_types.cost_curve import CostCurve, conditional

PATH = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])


def random_cost(seed, count):
    points = np.random.default_rng(seed).normal(size=(count, 2))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def test_path_of_three_worked_by_hand():
    # theta = log 2: the ends have weights 1, 1/2, 1/4; the middle 1/2, 1, 1/2.
    law = conditional(PATH, np.log(2.0))
    np.testing.assert_allclose(law.probability[0], [4 / 7, 2 / 7, 1 / 7])
    np.testing.assert_allclose(law.probability[1], [1 / 4, 1 / 2, 1 / 4])
    np.testing.assert_allclose(np.exp(law.log_normalizer), [7 / 4, 2.0, 7 / 4])
    np.testing.assert_allclose(law.mean_cost, [4 / 7, 1 / 2, 4 / 7])
    np.testing.assert_allclose(law.variance, [6 / 7 - 16 / 49, 1 / 4, 6 / 7 - 16 / 49])

    curve = CostCurve.of(PATH)
    assert curve.expected_cost(np.log(2.0)) == pytest.approx((2 * 4 / 7 + 1 / 2) / 3)
    assert curve.accuracy(np.log(2.0)) == pytest.approx((2 * 4 / 7 + 1 / 2) / 3)
    assert curve.slope(np.log(2.0)) == pytest.approx(-(2 * (6 / 7 - 16 / 49) + 1 / 4) / 3)
    assert CostCurve.of(PATH).cost.shape == (2, 3)  # both ends are truths of one kind
    assert CostCurve.of(1.0 - np.eye(50)).cost.shape == (1, 2)


@pytest.mark.parametrize("theta", [0.0, 1e-300, -1e-9, 5.0, -5.0, 1e4, -1e4, 1e308, -1e308, np.inf])
def test_conditional_is_a_law_at_any_weight(theta):
    law = conditional(random_cost(0, 6), theta)
    np.testing.assert_allclose(law.probability.sum(axis=1), 1.0)
    assert not np.isnan(law.log_normalizer).any()
    assert (law.variance >= 0).all()
    assert np.isfinite(law.mean_cost).all()


def test_a_huge_weight_leaves_only_the_cheapest_or_the_dearest_label():
    np.testing.assert_array_equal(conditional(PATH, 1e308).probability, np.eye(3))
    dearest = [[0, 0, 1], [0.5, 0, 0.5], [1, 0, 0]]
    np.testing.assert_array_equal(conditional(PATH, -1e308).probability, dearest)


@given(st.integers(0, 1000), st.integers(2, 7), st.floats(-4.0, 4.0))
def test_curve_agrees_with_the_plain_formula_and_with_conditional(seed, count, theta):
    cost = random_cost(seed, count)
    curve, law = CostCurve.of(cost), conditional(cost, theta)
    weights = np.exp(-theta * cost)
    assert curve.expected_cost(theta) == pytest.approx(((weights * cost).sum(axis=1) / weights.sum(axis=1)).mean())
    assert curve.expected_cost(theta) == pytest.approx(law.mean_cost.mean())
    assert curve.slope(theta) == pytest.approx(-law.variance.mean())
    assert curve.accuracy(theta) == pytest.approx(law.probability.diagonal().mean())


def test_slope_is_the_derivative():
    curve = CostCurve.of(random_cost(1, 5))
    theta = np.linspace(-3, 3, 13)
    step = 1e-5
    numeric = (curve.expected_cost(theta + step) - curve.expected_cost(theta - step)) / (2 * step)
    np.testing.assert_allclose(curve.slope(theta), numeric, rtol=1e-7)


@given(st.integers(0, 1000), st.integers(2, 6), st.floats(-0.9, 0.9))
def test_weight_survives_the_round_trip(seed, count, part):
    curve = CostCurve.of(random_cost(seed, count))
    theta = part * curve.limit
    value = curve.expected_cost(theta)
    # A rounding error of the cost, divided by the slope, is all that can be asked for.
    unavoidable = 1e-14 * value / np.abs(curve.slope(theta)) + 1e-12 * abs(theta)
    found = curve.weight_from_cost(value)
    if unavoidable < 0.01 * curve.limit:
        assert found == pytest.approx(theta, abs=unavoidable + 1e-15)
    assert curve.expected_cost(found) == pytest.approx(value, rel=1e-12)


@given(st.integers(0, 1000), st.floats(-3.0, 3.0))
def test_weight_from_accuracy_survives_the_round_trip(seed, theta):
    curve = CostCurve.of(random_cost(seed, 4) + 0.3 * (1 - np.eye(4)))
    assert curve.weight_from_accuracy(curve.accuracy(theta)) == pytest.approx(theta, abs=1e-10)


def test_two_classes_have_logit_weights():
    curve = CostCurve.of(1.0 - np.eye(2))
    error = np.array([[1e-6, 0.1], [0.5, 0.9]])
    expected = np.log((1 - error) / error)
    np.testing.assert_allclose(curve.weight_from_cost(error), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(curve.weight_from_accuracy(1 - error), expected, rtol=1e-9, atol=1e-14)


def test_costs_out_of_reach_give_the_limits_and_unknown_ones_no_weight():
    curve = CostCurve.of(PATH)
    assert curve.limit == pytest.approx(np.log(1e9))
    cost = np.array([-1.0, 0.0, curve.expected_cost(curve.limit), 1e9, np.inf, -np.inf, np.nan])
    expected = curve.limit * np.array([1, 1, 1, -1, -1, 1, 0])
    np.testing.assert_array_equal(curve.weight_from_cost(cost), expected)
    np.testing.assert_array_equal(curve.weight_from_accuracy([0.0, 1.0]), [-curve.limit, curve.limit])
    for same in (np.zeros((1, 1)), np.zeros((3, 3)), np.full((3, 3), 2.0)):
        np.testing.assert_array_equal(CostCurve.of(same).weight_from_cost([0.0, 1.0, 3.0]), 0.0)


def test_near_zero_the_curve_is_smooth():
    curve = CostCurve.of(PATH)
    tiny = np.array([-1e-8, -1e-12, 0.0, 1e-12, 1e-8])
    np.testing.assert_allclose(curve.expected_cost(tiny), 8 / 9, rtol=1e-7)
    np.testing.assert_allclose(curve.weight_from_cost(curve.expected_cost(tiny)), tiny, atol=1e-15)


@given(st.lists(st.floats(-1.0, 3.0), min_size=2, max_size=20))
def test_a_lower_cost_never_means_a_lower_weight(costs):
    weights = CostCurve.of(PATH).weight_from_cost(np.sort(costs))
    assert np.isfinite(weights).all()
    assert (np.diff(weights) <= 0).all()


def test_costs_of_very_different_size_are_inverted():
    cost = np.array([[0.0, 1e-6, 1.0], [1e-6, 0.0, 1.0], [1.0, 1.0, 0.0]])
    curve = CostCurve.of(cost)
    theta = np.array([0.1, 1.0, 10.0, 1e5, 1e6, 1e7])
    np.testing.assert_allclose(curve.weight_from_cost(curve.expected_cost(theta)), theta, rtol=1e-6)


def test_shapes_follow_the_input():
    curve = CostCurve.of(PATH)
    for shape in [(), (0,), (2, 3)]:
        for method in (curve.expected_cost, curve.weight_from_cost, curve.slope, curve.accuracy):
            assert method(np.full(shape, 0.5)).shape == shape


@pytest.mark.parametrize("cost", [np.zeros((2, 3)), np.array([[0.0, np.nan], [1.0, 0.0]])])
def test_costs_that_are_no_table_are_refused(cost):
    with pytest.raises(DistanceError, match="square table"):
        CostCurve.of(cost)
