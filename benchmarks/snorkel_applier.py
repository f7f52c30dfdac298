"""Time snorkel's appliers; runs in the environment made by snorkel_environment.sh, started by bench_labeling.py."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    """Read the columns and thresholds, write the votes, and print CPU seconds as JSON."""
    import pandas as pd
    from snorkel.labeling import LabelingFunction, LFApplier, PandasLFApplier

    data = np.load(folder / "data.npz")
    frame = pd.DataFrame({"a": data["a"], "b": data["b"]})

    def votes_at(limit: float) -> LabelingFunction:
        return LabelingFunction(f"above_{limit:.1f}", lambda x: 1 if x.a > limit else (0 if x.b > limit else -1))

    functions = [votes_at(limit) for limit in data["limits"].tolist()]
    seconds = {}
    for name, applier, points in (
        ("PandasLFApplier", PandasLFApplier(functions), frame),
        ("LFApplier, named tuples", LFApplier(functions), list(frame.itertuples(index=False))),
    ):
        start = time.process_time()
        votes = applier.apply(points, progress_bar=False)
        seconds[name] = time.process_time() - start
    np.savez(folder / "votes.npz", votes=votes)
    versions = {name: importlib.metadata.version(name) for name in ("snorkel", "pandas", "numpy")}
    print(json.dumps({"seconds": seconds, "versions": versions, "bytes": votes.dtype.itemsize}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
