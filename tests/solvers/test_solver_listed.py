"""What two sources cost each other where all labels are listed."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.label_types.cost_curve import CostCurve
from consilience.solvers.listed import ListedPairs

STEPS = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))


@pytest.mark.parametrize("weights", [(0.0, 2.0), (0.4, 0.4), (1.5, 0.2), (-0.1, 0.8)])
def test_pair_costs_are_those_of_all_pairs_of_votes(weights):
    laws = [np.exp(-weight * STEPS) / np.exp(-weight * STEPS).sum(axis=1, keepdims=True) for weight in weights]
    brute = np.mean([left @ STEPS @ right for left, right in zip(*laws, strict=True)])
    costs = CostCurve.of(STEPS).expected_cost(np.array(weights))
    found = ListedPairs.of(STEPS).cost(costs[:1], costs[1:])
    assert found[0] == pytest.approx(brute, abs=2e-4)


def test_slopes_are_those_of_the_costs():
    pairs, left, right = ListedPairs.of(STEPS), np.array([0.4, 1.2, 1.9]), np.array([1.5, 0.3, 0.8])
    step = (pairs.cost(left + 1e-4, right) - pairs.cost(left - 1e-4, right)) / 2e-4
    np.testing.assert_allclose(pairs.slope(left, right), step, atol=1e-3)


def test_a_source_that_is_never_wrong_leaves_the_cost_of_the_other():
    assert ListedPairs.of(STEPS).cost(np.zeros(1), np.array([1.1]))[0] == pytest.approx(1.1, abs=1e-6)
