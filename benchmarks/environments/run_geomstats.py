"""Times geomstats' FrechetMean on the votes of a file, in an environment of its own; see geomstats.sh.

Usage: ``python run_geomstats.py votes.npz means.npz``. The first file holds ``votes (n, m, d + 1)``, ``weights (m,)``
and ``max_items``; the second gets the means of the default settings and of tight ones, and the CPU seconds of both.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings

os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
from geomstats.geometry.hyperboloid import Hyperboloid
from geomstats.learning.frechet_mean import FrechetMean


def main(source: str, target: str) -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    data = np.load(source)
    votes, weights = data["votes"][: int(data["max_items"])], data["weights"]
    results = {}
    for name, settings in {"default": {}, "tight": {"max_iter": 2000, "epsilon": 1e-20}}.items():
        mean = FrechetMean(Hyperboloid(votes.shape[2] - 1))
        if settings:
            mean.set(**settings)
        mean.fit(votes[0], weights=weights)
        points = []
        start = time.process_time()
        for item in votes:
            mean.fit(item, weights=weights)
            points.append(np.array(mean.estimate_))
        results[f"{name}_seconds"] = time.process_time() - start
        results[name] = np.array(points)
    np.savez(target, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
