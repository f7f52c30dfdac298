"""Small tables of scores are computed by NumPy, large ones by a compiled loop, with the same numbers."""

import numpy as np
import pytest

from consilience.label_types.linear import kernels, small


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
@pytest.mark.parametrize("same_shares", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numpy_and_the_compiled_loop_agree(seed: int, same_shares: bool, degrees: float) -> None:
    rng = np.random.default_rng(seed)
    n, m = 60, 5
    labels, observed = rng.normal(size=(n, m)), rng.random((n, m)) < 0.7
    observed[0] = False
    share = rng.uniform(0.2, 1.0, (1 if same_shares else n, m))
    expected, slope, noise = rng.normal(size=m), rng.uniform(-0.5, 1.5, m), rng.uniform(0.2, 2.0, m)
    found = []
    for believe in (small.believe_scores, kernels.believe_scores):
        sums = np.zeros((7, m))
        found.append((*believe(labels, observed, share, expected, slope, noise, 0.8, 1.25, degrees, 20, sums), sums))
    for one, two in zip(*found, strict=True):
        assert np.allclose(one, two, rtol=1e-7, atol=1e-9)
