"""Times snorkel's or flyingsquid's LabelModel or crowd-kit's Dawid-Skene on a matrix of votes, each in its environment.

Usage: ``python run_peer.py snorkel|flyingsquid|crowdkit votes.npy CLASSES [result.npz]``. Prints CPU and wall seconds
and the peak of memory beyond the votes as JSON. The second file gets crowd-kit's confusions ``(m, k, k)`` as
[source, vote, class], or flyingsquid's labels.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread, unless the caller lets the peer have more.
os.environ |= {
    name: os.environ.get("PEER_THREADS", "1") for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
}

import numpy as np


def megabytes() -> tuple[float, float]:
    """Return the resident memory and its peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    resident, peak = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return resident, peak


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def snorkel(matrix: Any, k: int) -> dict[str, Any]:
    import torch
    from snorkel.labeling.model import LabelModel

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    LabelModel(cardinality=k, verbose=False).fit(matrix[:2000], progress_bar=False)
    before = megabytes()[0]
    model = LabelModel(cardinality=k, verbose=False)
    fit = seconds(lambda: model.fit(matrix, progress_bar=False))
    predict = seconds(lambda: model.predict_proba(matrix))
    version = importlib.metadata.version("snorkel")
    return {"fit": fit, "predict": predict, "extra": megabytes()[1] - before, "version": f"snorkel {version}"}


def flyingsquid(matrix: Any, k: int, target: str) -> dict[str, Any]:
    from flyingsquid.label_model import LabelModel

    if k != 2:
        raise SystemExit("flyingsquid knows two classes.")
    signs = np.where(matrix < 0, 0, 2 * matrix - 1)  # its way to write votes: -1 and 1, and 0 for none
    before = megabytes()[0]
    model = LabelModel(matrix.shape[1])
    fit = seconds(lambda: model.fit(signs))
    found = []
    predict = seconds(lambda: found.append(model.predict_proba(signs)))
    np.savez(target, labels=np.argmax(found[0], axis=1))
    version = importlib.metadata.version("flyingsquid")
    return {"fit": fit, "predict": predict, "extra": megabytes()[1] - before, "version": f"flyingsquid {version}"}


def crowdkit(matrix: Any, k: int, target: str) -> dict[str, Any]:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    rows, columns = np.nonzero(matrix >= 0)
    frame = pd.DataFrame({"task": rows, "worker": columns, "label": matrix[rows, columns]})
    before = megabytes()[0]
    model = DawidSkene(n_iter=100, tol=1e-5)
    fit = seconds(lambda: model.fit(frame))
    extra = megabytes()[1] - before
    errors = model.errors_.reindex(columns=range(k)).fillna(0.0)  # columns come in order of first appearance
    table = np.zeros((matrix.shape[1], k, k))
    for (worker, label), row in zip(errors.index, errors.to_numpy(), strict=True):
        table[worker, label] = row
    prior = np.asarray(model.priors_.reindex(range(k)).fillna(0.0))
    np.savez(target, table=table, prior=prior)
    rounds = len(model.loss_history_)
    version = importlib.metadata.version("crowd-kit")
    return {"fit": fit, "extra": extra, "rounds": rounds, "version": f"crowd-kit {version}"}


def main(peer: str, votes: str, classes: str, *target: str) -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    matrix, k = np.load(votes), int(classes)
    peers: dict[str, Callable[..., dict[str, Any]]] = {
        "snorkel": snorkel,
        "flyingsquid": flyingsquid,
        "crowdkit": crowdkit,
    }
    print(json.dumps(peers[peer](matrix, k, *target)))


if __name__ == "__main__":
    main(*sys.argv[1:])
