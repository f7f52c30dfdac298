"""Small tables of classes are counted and believed as large ones are, by other code."""

import numpy as np
import pytest

from consilience.label_types.classes import kernels, small


@pytest.mark.parametrize("k", [2, 3])
def test_the_sums_are_those_of_the_kernels(k: int) -> None:
    rng = np.random.default_rng(k)
    codes, observed = rng.integers(0, k, (50, 4)), rng.random((50, 4)) < 0.7
    assert (small.count_pairs(codes, observed, k) == kernels.count_pairs(codes, observed, k)).all()
    table, offset = rng.normal(size=(4 * (k + 1), k)), rng.normal(size=k)
    for shares in (np.empty((0, 0)), rng.random((50, 4))):
        belief = small.beliefs(codes, observed, table, offset, shares)
        assert belief == pytest.approx(kernels.beliefs(codes, observed, table, offset, shares))
    counts = small.expected_votes(codes, observed, belief)
    assert counts == pytest.approx(kernels.expected_votes(codes, observed, belief, False))
