"""Classes against the peers on the same votes: snorkel's and flyingsquid's LabelModel, and crowd-kit's Dawid-Skene.

Every one runs in a process of its own, one thread, one after the other in turns; CPU seconds, medians of the turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

import numpy as np
import numpy.typing as npt
from benchmarks.bench_classes import RESULTS, Case, cpu_seconds, fit, one_hot_gram, random_votes, warm_up
from benchmarks.environments.run_peer import megabytes
from experiments.tables import markdown_table, verdict, write_results

import consilience as cs

HERE = Path(__file__).resolve().parent
RUNNER = HERE / "environments" / "run_peer.py"
SNORKEL = HERE.parent / ".venv-snorkel" / "bin" / "python"
CROWDKIT = HERE / "environments" / ".cache" / "crowdkit" / "bin" / "python"
FLYINGSQUID = HERE / "environments" / ".cache" / "flyingsquid" / "bin" / "python"
CASES, QUICK_CASES = (Case(10**6, 50, 2), Case(10**6, 50, 5)), (Case(2000, 10, 2),)
#: For the peers that go over the votes in Python.
CROWD, QUICK_CROWD = Case(10**5, 50, 2), Case(2000, 10, 2)
GRAM_LIMIT, FIT_TARGET, PREDICT_TARGET, MEMORY_TARGET, EM_TARGET = 2.0, 4.0, 5.0, 8.0, 20.0
TURNS = 3


def ours(votes_file: str, k: int) -> dict[str, Any]:
    """Time the Gram, a default fit, predict_proba, and EM of independent sources; with the parameters EM reached."""
    warm_up(k)
    matrix = np.load(votes_file)
    votes = cs.Votes.from_matrix(matrix, abstain=-1, sources=[f"s{column}" for column in range(matrix.shape[1])])
    before = megabytes()[0]
    model = fit(votes, k)
    model.predict_proba(votes)
    extra = megabytes()[1] - before
    # Twice each in turns, the quicker of two: another process may have taken the cache.
    times = [
        [
            cpu_seconds(lambda: one_hot_gram(matrix, k)),
            cpu_seconds(lambda: fit(votes, k)),
            cpu_seconds(lambda: model.predict_proba(votes)),
        ]
        for _ in range(2)
    ]
    gram, fitting, predicting = np.min(times, axis=0)
    correct = float(np.mean(model.predict(votes) == np.load(Path(votes_file).with_name("truth.npy"))))
    return {"gram": gram, "fit": fitting, "predict": predicting, "extra": extra, "accuracy": correct}


def our_em(votes_file: str, k: int) -> dict[str, Any]:
    """Time EM of independent sources, and return the likelihood that it reached."""
    matrix = np.load(votes_file)
    votes = cs.Votes.from_matrix(matrix, abstain=-1, sources=[f"s{column}" for column in range(matrix.shape[1])])
    model = cs.LabelModel(cs.Classes(k), method="em", dependencies="none", random_state=0).fit(votes)
    seconds = min(cpu_seconds(lambda: model.fit(votes)) for _ in range(2))
    learned = model.source_model_.parameters.as_dict()
    return {"fit": seconds, "likelihood": log_likelihood(matrix, learned["table"], learned["prior"])}


def log_likelihood(matrix: npt.NDArray[np.int8], table: Any, prior: Any) -> float:
    """Return the mean log-likelihood of an item under Dawid and Skene, tables as [source, vote, class]."""
    score = np.tile(np.log(np.maximum(prior, 1e-12)), (len(matrix), 1))
    logs = np.log(np.maximum(table, 1e-12))
    for column in range(matrix.shape[1]):
        rows = np.flatnonzero(matrix[:, column] >= 0)
        score[rows] += logs[column, matrix[rows, column]]
    top = score.max(axis=1)
    return float((np.log(np.exp(score - top[:, None]).sum(axis=1)) + top).mean())


def elsewhere(command: Sequence[object]) -> dict[str, Any]:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_votes(case: Case, folder: Path) -> Path:
    for name, array in zip(("votes", "truth"), random_votes(case), strict=True):
        np.save(folder / f"{name}.npy", array)
    return folder / "votes.npy"


def against(peer: str, python: Path, case: Case, turns: int, folder: Path) -> dict[str, Any]:
    """Time a label model against ours, in turns."""
    file, result = write_votes(case, folder), folder / "labels.npz"
    mine, theirs = [], []
    for _ in range(turns):
        mine.append(elsewhere([sys.executable, __file__, "--ours", file, "--classes", case.k]))
        if python.exists():
            target = [result] if peer == "flyingsquid" else []
            theirs.append(elsewhere([python, RUNNER, peer, file, case.k, *target]))
    found = {name: float(np.median([turn[name] for turn in mine])) for name in mine[0]}
    if result.exists():
        found["their accuracy"] = float(np.mean(np.load(result)["labels"] == np.load(folder / "truth.npy")))
        result.unlink()
    if theirs:
        found["version"] = theirs[0]["version"]
        found |= {f"their {name}": float(np.median([turn[name][0] for turn in theirs])) for name in ("fit", "predict")}
        found["their extra"] = float(np.median([turn["extra"] for turn in theirs]))
    return found


def against_crowdkit(case: Case, crowdkit: Path, folder: Path) -> dict[str, Any]:
    file, result = write_votes(case, folder), folder / "learned.npz"
    matrix = np.load(file)
    found = elsewhere([sys.executable, __file__, "--em", file, "--classes", case.k])
    if crowdkit.exists():
        theirs = elsewhere([crowdkit, RUNNER, "crowdkit", file, case.k, result])
        learned = np.load(result)
        found |= {"version": theirs["version"], "their fit": theirs["fit"][0], "rounds": theirs["rounds"]}
        found["their likelihood"] = log_likelihood(matrix, learned["table"], learned["prior"])
    return found


def _rows(measured: dict[Case, dict[str, Any]], peer: str) -> str:
    def cell(one: dict[str, Any], name: str, digits: int = 2) -> str:
        return f"{one[name]:.{digits}f}" if name in one else "-"

    def times(one: dict[str, Any], name: str) -> str:
        return f"{one[f'their {name}'] / one[name]:.1f}" if f"their {name}" in one else "-"

    rows = [
        [
            *(str(case), cell(one, "gram"), cell(one, "fit"), f"{one['fit'] / one['gram']:.2f}"),
            *(cell(one, "their fit"), times(one, "fit")),
            *(cell(one, "predict"), cell(one, "their predict"), times(one, "predict")),
            *(cell(one, "extra", 0), cell(one, "their extra", 0), times(one, "extra")),
        ]
        for case, one in measured.items()
    ]
    columns = ["Gram s", "fit s", "fit / Gram", f"{peer} fit s", "times", "predict_proba s", f"{peer} s", "times"]
    return markdown_table(["votes", *columns, "extra MB", f"{peer} MB", "times"], rows)


def _accuracies(one: dict[str, Any]) -> str:
    theirs = f"; flyingsquid's: {one['their accuracy']:.2%}" if "their accuracy" in one else ""
    return f"Share of labels that are right: {one['accuracy']:.2%}{theirs}."


def _verdicts(measured: dict[Case, dict[str, Any]], crowd: dict[str, Any]) -> str:
    lines = []
    for case, one in measured.items():
        ratio = one["fit"] / one["gram"]
        lines.append(verdict(f"{case}: fit at most {GRAM_LIMIT:g} times the Gram", ratio <= GRAM_LIMIT, f"{ratio:.2f}"))
        wanted = (("fit", FIT_TARGET), ("predict", PREDICT_TARGET), ("extra", MEMORY_TARGET))
        for name, target in wanted if "their fit" in one else ():
            factor = one[f"their {name}"] / one[name]
            faster = f"{name} at least {target:g} times as fast as snorkel"
            what = f"extra memory at most 1/{target:g} of snorkel's" if name == "extra" else faster
            lines.append(verdict(f"{case}: {what}", factor >= target, f"{factor:.1f}"))
    if "their fit" in crowd:
        factor = crowd["their fit"] / crowd["fit"]
        same = crowd["likelihood"] >= crowd["their likelihood"] - 1e-3
        shown = f"{factor:.0f}, log-likelihood {crowd['likelihood']:.4f} and {crowd['their likelihood']:.4f} per item"
        claim = f"EM at least {EM_TARGET:g} times as fast as crowd-kit's to the same likelihood"
        lines.append(verdict(claim, factor >= EM_TARGET and same, shown))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``peers.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument("--turns", type=int, default=TURNS, help="repetitions of everything")
    parser.add_argument("--snorkel", type=Path, default=SNORKEL, help="the Python that has snorkel")
    parser.add_argument("--crowdkit", type=Path, default=CROWDKIT, help="the Python that has crowd-kit")
    parser.add_argument("--flyingsquid", type=Path, default=FLYINGSQUID, help="the Python that has flyingsquid")
    for hidden in ("--ours", "--em", "--classes"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.ours or given.em:
        print(json.dumps(ours(given.ours, int(given.classes)) if given.ours else our_em(given.em, int(given.classes))))
        return
    turns = 1 if given.quick else given.turns
    with tempfile.TemporaryDirectory() as name:
        cases = QUICK_CASES if given.quick else CASES
        measured = {case: against("snorkel", given.snorkel, case, turns, Path(name)) for case in cases}
        case = QUICK_CROWD if given.quick else CROWD
        loops = against("flyingsquid", given.flyingsquid, case, turns, Path(name))
        crowd = against_crowdkit(case, given.crowdkit, Path(name))
    peers = sorted({one["version"] for one in [*measured.values(), loops, crowd] if "version" in one})
    em = [str(case), f"{crowd['fit']:.3f}", f"{crowd['likelihood']:.4f}"]
    if "their fit" in crowd:
        em += [f"{crowd['their fit']:.2f} ({crowd['rounds']} rounds)", f"{crowd['their likelihood']:.4f}"]
    else:
        em += ["-", "-"]
    blocks = [
        "Votes and accuracies as in bench_classes.py. *fit* learns dependencies, as it does by default; *snorkel* runs "
        "at its defaults. *extra*: peak memory beyond the votes. *times*: theirs over ours.",
        _rows(measured, "snorkel"),
        "*flyingsquid* goes over the votes in Python, so it gets fewer of them, and knows two classes only.",
        _rows({case: loops}, "flyingsquid"),
        _accuracies(loops),
        "EM of independent sources (`LabelModel(method='em', dependencies='none')`) and crowd-kit's `DawidSkene` (at "
        "most 100 rounds, tolerance 1e-5); *log-likelihood* per item of what each learned, by the same formula.",
        markdown_table(["votes", "em s", "log-likelihood", "crowd-kit s", "its log-likelihood"], [em]),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else _verdicts(measured, crowd),
    ]
    settings = [
        f"CPU seconds, one thread, medians of {turns} turn{'s' * (turns != 1)}, each in a process of its own",
        ", ".join(peers) or "peers not installed",
    ]
    command = f"python benchmarks/bench_peers.py{' --quick' * given.quick}"
    write_results(given.results / "peers.md", "Classes: against the peers", command, settings, blocks)


if __name__ == "__main__":
    main()
