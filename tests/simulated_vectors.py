"""Simulated votes in R^d that several test files share, and quiet fits of them."""

from __future__ import annotations

import warnings

import numpy as np
from consilience.spaces.vectors import Vectors

import consilience as cs
from consilience.exceptions import ConsilienceWarning


def design(n=1000, m=6, d=3, seed=0, missing=0.0, spread=1.0):
    """Return votes, truth, noise covariances and the covariance of y."""
    rng = np.random.default_rng(seed)
    turned = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(m + 1)]
    law = (turned[m] * rng.uniform(0.3, 2.0, d)) @ turned[m].T
    sizes = [np.exp(rng.uniform(-spread, spread, d)) * (0.3 if a % 3 == 0 else 1.5) for a in range(m)]
    noise = np.stack([(turned[a] * sizes[a]) @ turned[a].T for a in range(m)])
    truth = rng.multivariate_normal(np.zeros(d), law, n)
    votes = np.stack([truth + rng.multivariate_normal(np.zeros(d), noise[a], n) for a in range(m)], axis=1)
    votes[rng.random((n, m)) < missing] = np.nan
    return votes, truth, noise, law


def fit(votes, gold=None, space=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space or Vectors(votes.shape[2]), **settings).fit(votes, gold)


def codes(model):
    return {item.code for item in model.diagnostics_}


def error(found, truth):
    return float(((found - truth) ** 2).sum(axis=1).mean())
