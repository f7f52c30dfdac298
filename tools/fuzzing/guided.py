"""Changed inputs that follow the branches they reach, by atheris: one target at a time, until the time is up.

``python -m fuzzing.guided csv --minutes 10`` starts from the seeds and keeps under ``build/fuzz`` what led somewhere
new. Inputs are changed and judged as by `fuzzing.run`; the first that fails ends the run, and is saved.
"""

import argparse
import hashlib
import random
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["consilience"]):
    from fuzzing import run, targets

KEPT = Path(__file__).resolve().parents[2] / "build" / "fuzz"


def main() -> None:
    """Run until the time is up or an input fails; atheris ends the process."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("target", choices=list(targets.TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--corpus", type=Path, default=run.CORPUS)
    chosen = parser.parse_args()
    target, kept = targets.TARGETS[chosen.target], KEPT / chosen.target
    kept.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (kept / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)

    def judge(data: bytes) -> None:
        failure = run.signature(chosen.target, data)
        if failure is not None:
            raise RuntimeError(f"{failure}; saved as {run.saved(chosen.corpus, chosen.target, data)}")

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, most)
        return target.change(data or rng.choice(target.seeds()), rng)[:most]

    settings = [f"-max_total_time={int(60 * chosen.minutes)}", f"-rss_limit_mb={run.MEMORY >> 20}", "-max_len=100000"]
    atheris.Setup([sys.argv[0], *settings, f"-timeout={run.HANGS}", str(kept)], judge, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
