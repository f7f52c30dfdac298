"""Claim: Snorkel, with each permutation as a class, ranks worse than a model of rankings.

The Snorkel curves of the paper's figure of end models, on films and board games. Reads ``movies`` and ``bgg`` from the
folder that CONSILIENCE_DATA names. Snorkel runs in the environment that CONSILIENCE_SNORKEL names, which
``benchmarks/snorkel_environment.sh`` creates.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
from rich.progress import track

import consilience as cs

from . import public_data
from .film_sets import SET_SIZE, draw_sets, end_model_errors
from .movies_rankings import STORED as STORED_FILMS
from .movies_rankings import TEST, TEXT, TRAIN
from .rankings_paper import draw_weights
from .tables import (
    QUICK,
    IntArray,
    Settings,
    data_folder,
    fit_quietly,
    markdown_table,
    mean_spread,
    read_settings,
    verdict,
    write_results,
)

#: Numbers of sources. Snorkel's time grows with their square, so that most of them are run on films alone.
SOURCES = {"films": (3, 9, 18), "board games": (3, 9)}
EPOCHS = 500
#: End models of Snorkel, stored with the paper's code; its sources all have weights U(0, 1).
STORED = {
    "films": {m: snorkel for m, (_, snorkel) in STORED_FILMS.items()},
    "board games": {3: 0.17735, 9: 0.16155},
}
PROGRAM = """
import sys
import numpy as np
from snorkel.labeling.model import LabelModel
given = np.load(sys.argv[1])
model = LabelModel(cardinality=int(given["k"]), verbose=False)
model.fit(given["L"], n_epochs=int(given["epochs"]), seed=int(given["seed"]), progress_bar=False, log_freq=10**9)
np.save(sys.argv[2], model.predict(given["L"], tie_break_policy="random"))
"""

#: Errors by things, number of sources and method.
Cells = dict[tuple[str, int, str], list[float]]


def snorkel_python() -> Path:
    """Return the interpreter of Snorkel's environment."""
    named = os.environ.get("CONSILIENCE_SNORKEL")
    if not named:
        raise SystemExit("CONSILIENCE_SNORKEL is not set. Let it name the folder of an environment with Snorkel.")
    path = Path(named) / "bin" / "python"
    if not path.exists():
        raise SystemExit(f"CONSILIENCE_SNORKEL names {named!r}, which has no bin/python. Name an environment.")
    return path


def as_classes(positions: IntArray) -> tuple[IntArray, IntArray]:
    """Return votes ``(n, m, r)`` as numbers of permutations, and the list of permutations."""
    orders = np.array(list(permutations(range(positions.shape[2]))))
    place = positions.shape[2] ** np.arange(positions.shape[2])
    codes = np.argsort(orders @ place)
    return codes[np.searchsorted((orders @ place)[codes], positions @ place)], orders


def snorkel_labels(python: Path, positions: IntArray, seed: int, epochs: int) -> IntArray:
    """Return the rankings that Snorkel finds for votes ``(n, m, r)``."""
    classes, orders = as_classes(positions)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, L=classes, k=len(orders), epochs=epochs, seed=seed)
        subprocess.run([str(python), "-c", PROGRAM, str(given), str(found)], check=True, capture_output=True)
        return orders[np.load(found)]


def run(settings: Settings, sizes: tuple[int, int]) -> tuple[Cells, Cells]:
    """Return the errors of labels and of end models."""
    python = snorkel_python()
    epochs = 5 if settings.quick else EPOCHS
    films, games = public_data.load_movies(data_folder("movies", "bgg")), public_data.load_board_games()
    things = {"films": (films.features, films.rating), "board games": (games.features, -games.rank)}
    space = cs.Rankings(SET_SIZE)
    labels: Cells = defaultdict(list)
    models: Cells = defaultdict(list)
    runs = [
        (seed, name, m)
        for seed in range(settings.seeds)
        for name, counts in SOURCES.items()
        for m in counts[: 1 if settings.quick else None]
    ]
    for seed, name, m in track(runs, description="rankings"):
        train, test = draw_sets(*things[name], *sizes, np.random.default_rng(seed))
        rng = np.random.default_rng([seed, m, list(things).index(name)])
        votes = cs.simulate(space, train.strict, draw_weights(TEXT, m, rng), rng)
        found = {
            rule: fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes).predict(votes)
            for rule, method in (("majority", "majority"), ("ours", "auto"))
        }
        found["Snorkel"] = snorkel_labels(python, votes.labels, seed, epochs)
        for rule, positions in found.items():
            labels[name, m, rule].append(space.kendall_error(positions, train.strict))
            models[name, m, rule].append(end_model_errors(train, test, positions, seed, model="code").counted)
    return labels, models


def error_table(labels: Cells, models: Cells) -> str:
    rules = ("majority", "ours", "Snorkel")
    rows = [
        [
            f"{name}, {m} sources",
            *(mean_spread(cells[name, m, each]) for cells in (labels, models) for each in rules),
            f"{STORED[name][m]:.4f}",
        ]
        for name, m, rule in labels
        if rule == "ours"
    ]
    columns = [f"{what}: {rule}" for what in ("labels", "model") for rule in rules]
    return markdown_table(["", *columns, "stored: Snorkel"], rows)


def verdicts(labels: Cells, models: Cells) -> str:
    lines = []
    for name in STORED:
        for what, cells in (("labels", labels), ("end model", models)):
            counts = [m for thing, m, rule in cells if thing == name and rule == "ours"]
            gaps = {m: float(np.mean(cells[name, m, "Snorkel"]) - np.mean(cells[name, m, "ours"])) for m in counts}
            shown = ", ".join(f"{gap:+.4f} with {m}" for m, gap in gaps.items())
            words = f"{name}, {what}: Snorkel with permutations as classes is always worse than ours"
            lines.append(verdict(words, min(gaps.values()) > 0, shown))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run films and board games and write ``snorkel_rankings.md``."""
    settings = read_settings("experiments.snorkel_rankings", __doc__, 1, 1, arguments)
    sizes = (150, 60) if settings.quick else (TRAIN, TEST)
    labels, models = run(settings, sizes)
    blocks = [
        "Share of pairs in the wrong order, ties counted. *labels* are rankings of the training sets of five against "
        "what sources were drawn around; *model* is the network of the paper's code trained on them. *Snorkel*: its "
        f"label model, with the 120 permutations as classes and {EPOCHS} epochs, as in the paper's code. "
        f"Sources have weights {TEXT}, as in the paper's text; *stored* is kept with its code, where all are U(0, 1), "
        "on other tables of films and games.",
        "## Errors",
        error_table(labels, models),
        "## Targets",
        QUICK if settings.quick else verdicts(labels, models),
    ]
    described = [f"{sizes[0]:,} training and {sizes[1]:,} test sets", f"seeds 0..{settings.seeds - 1}"]
    path = settings.results / "snorkel_rankings.md"
    write_results(path, "Permutations as classes: Snorkel on rankings", settings.command, described, blocks)


if __name__ == "__main__":
    main()
