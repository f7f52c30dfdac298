"""Shared code of the experiments: arguments, quiet fits, measures, and Markdown tables of results."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import track

import consilience as cs

from . import public_data

RESULTS = Path(__file__).resolve().parent / "results"
CALIBRATION_BINS = 15
#: Stands where a full run judges its targets.
QUICK = "A quick run on small settings: targets are not judged."

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What an experiment was asked to do, and the command that asks for the same again."""

    seeds: int
    quick: bool
    results: Path
    command: str
    full: bool = False


def read_settings(
    module: str,
    description: str | None,
    seeds: int,
    quick_seeds: int,
    arguments: Sequence[str] | None = None,
    full_seeds: int | None = None,
) -> Settings:
    """Read ``--seeds``, ``--quick``, ``--full`` and ``--results``; without `full_seeds`, ``--full`` is refused."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--seeds", type=int, help=f"random repetitions ({seeds}, or {quick_seeds} with --quick)")
    parser.add_argument("--quick", action="store_true", help="a few small settings: shows that it runs, proves nothing")
    larger = "refused: no larger size" if full_seeds is None else f"the size of the paper: {full_seeds} repetitions"
    parser.add_argument("--full", action="store_true", help=larger)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write the table to")
    given = parser.parse_args(arguments)
    if given.full and full_seeds is None:
        parser.error("this experiment has no larger size than its default. Leave --full out.")
    if given.full and given.quick:
        parser.error("--quick and --full contradict each other. Choose one.")
    if given.seeds is not None and given.seeds < 1:
        parser.error(f"--seeds is {given.seeds}. At least one repetition is needed.")
    count = given.seeds or (quick_seeds if given.quick else full_seeds if given.full and full_seeds else seeds)
    command = f"python -m {module} --seeds {count}{' --quick' * given.quick}{' --full' * given.full}"
    return Settings(count, given.quick, given.results, command, given.full)


def data_folder(*needed: str) -> Path:
    """Return the folder of data sets, or stop and say how to name it."""
    try:
        folder = public_data.data_folder()
    except public_data.MissingDataError as error:
        raise SystemExit(str(error)) from None
    for name in needed:
        if not (folder / name).is_dir():
            raise SystemExit(f"CONSILIENCE_DATA names {str(folder)!r}, which has no folder {name!r}. Correct it.")
    return folder


def mean_spread(values: Sequence[float], digits: int = 4) -> str:
    """Return mean and standard deviation, or the number where there is one."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def in_parallel(function: Callable[..., Any], runs: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
    """Yield what the function returns for each run, in order; as many at a time as CONSILIENCE_WORKERS says, or two."""
    workers = int(os.environ.get("CONSILIENCE_WORKERS", "2"))
    if len(runs) == 1 or workers < 2:
        yield from (function(*run) for run in track(runs, description=what))
        return
    # started afresh, as threads of torch and OpenMP do not survive a fork
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(function, *run) for run in runs]
        for one in track(waiting, description=what):
            yield one.result()


def fit_quietly(model: cs.LabelModel, votes: cs.Votes, gold: Any = None) -> cs.LabelModel:
    """Fit a model whose findings are reported in a table instead of as warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return model.fit(votes, gold=gold)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose other columns are numbers."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [columns, rule, *rows])


def write_results(path: Path, title: str, command: str, settings: Sequence[str], blocks: Sequence[str]) -> None:
    """Write a title, one line of provenance, and blocks of Markdown."""
    provenance = f"`{command}` · consilience {cs.__version__} · {'; '.join(settings)}."
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join([f"# {title}", provenance, *blocks]) + "\n", encoding="utf-8")


def verdict(claim: str, holds: bool, evidence: str) -> str:
    """Return one line that says whether a target was reached, and the number that decides it."""
    return f"- {claim}: **{'holds' if holds else 'missed'}** ({evidence})"


def signed(value: float, digits: int) -> str:
    """Return a difference with its sign, and no sign on what rounds to zero."""
    rounded = round(value, digits) + 0.0
    return f"{rounded:+.{digits}f}" if rounded else f"{0:.{digits}f}"


def macro_f1(truth: IntArray, predicted: IntArray, n_classes: int) -> float:
    """Return the mean over the classes that occur of the harmonic mean of precision and recall."""
    scores = []
    for label in range(n_classes):
        actual, claimed = truth == label, predicted == label
        if actual.any():
            scores.append(2.0 * np.sum(actual & claimed) / (actual.sum() + claimed.sum()))
    return float(np.mean(scores))


def calibration_error(truth: IntArray, probabilities: FloatArray) -> float:
    """Return the expected calibration error of the top probability."""
    return calibration_gap(probabilities.max(axis=1), (probabilities.argmax(axis=1) == truth).astype(np.float64))


def calibration_gap(stated: FloatArray, observed: FloatArray) -> float:
    """Return the expected calibration error: how far stated is from observed, bin by bin."""
    bins = np.minimum((stated * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gap = np.bincount(bins, weights=stated - observed, minlength=CALIBRATION_BINS)
    return float(np.abs(gap).sum() / len(stated))


def vote_counts(matrix: IntArray, n_classes: int) -> FloatArray:
    """Return ``(n, k)`` votes for each class; a negative number abstains."""
    return np.stack([(matrix == label).sum(axis=1) for label in range(n_classes)], axis=1).astype(float)


def majority_draws(matrix: IntArray, n_classes: int, draws: int) -> Iterator[IntArray]:
    """Yield majority votes whose ties are broken at random, by one generator with seed 0."""
    rng = np.random.default_rng(0)
    counts = vote_counts(matrix, n_classes)
    for _ in range(draws):
        yield (counts + 1e-3 * rng.random(counts.shape)).argmax(axis=1)
