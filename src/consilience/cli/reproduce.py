"""`consilience reproduce`: run the experiments of a clone of the repository."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from consilience.cli import options
from consilience.cli.commands import BadInputError, Command
from consilience.cli.output import Output, columns_of
from consilience.exceptions import did_you_mean

CATALOGUE = Path("experiments") / "catalogue.toml"
ALL = "all"
#: Inputs of experiments: the option, the environment variable, and the contents.
FOLDERS = {
    "data": ("--data", "CONSILIENCE_DATA", "real votes"),
    "cache": ("--cache", "CONSILIENCE_CACHE", "the output of parsers"),
    "snorkel": ("--snorkel", "CONSILIENCE_SNORKEL", "an environment with Snorkel"),
}
#: Optional packages of experiments, and how to install each.
PACKAGES = {
    "torch": "'consilience[torch]'",
    "lightgbm": "'consilience[models]'",
    "sklearn": "'consilience[models]'",
    "pandas": "pandas",
}
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EXAMPLES = (
    "consilience reproduce --list",
    "consilience reproduce theory_rates rankings_paper",
    "consilience reproduce theory_rates --quick --results results",
)


@dataclass(frozen=True)
class Experiment:
    """One line of the catalogue: its claim, which of `FOLDERS` it reads, and how long it takes.

    `full` is how long it takes with --full; None where there is no larger size. `sets` are the folders it reads in that
    of --data, and `packages` those of `PACKAGES` that it imports.
    """

    name: str
    claim: str
    reads: tuple[str, ...]
    takes: str
    full: str | None = None
    sets: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def lacks(self, environment: Mapping[str, str]) -> list[str]:
        """Return what is missing to run it, each as the rest of a sentence about it and the next step."""
        missing = []
        for key in self.reads:
            option, variable, what = FOLDERS[key]
            if not environment.get(variable):
                missing.append(f"reads {what}. Pass {option} FOLDER, or set {variable}; see experiments/README.md.")
        folder = Path(environment.get(FOLDERS["data"][1], ""))
        absent = [name for name in self.sets if not (folder / name).is_dir()]
        if absent and not missing:
            missing.append(f"reads {', '.join(absent)}, not found in {str(folder)!r}. See experiments/README.md.")
        for name in self.packages:
            if importlib.util.find_spec(name) is None:
                missing.append(f"needs {name}, which is not installed. Run: pip install {PACKAGES[name]}.")
        return missing


def find_experiments(start: Path) -> tuple[Path, dict[str, Experiment]]:
    """Return the root of the repository that `start` lies in, and its experiments by name."""
    for root in (start, *start.parents):
        if (root / CATALOGUE).is_file():
            entries = tomllib.loads((root / CATALOGUE).read_text(encoding="utf-8"))["experiment"]
            lists = ("reads", "sets", "packages")
            found = [Experiment(**{**entry, **{key: tuple(entry.get(key, ())) for key in lists}}) for entry in entries]
            return root, {one.name: one for one in found}
    raise BadInputError(
        "There is no folder 'experiments' here or above. The installed package does not contain it; a clone of the "
        "repository and the source archive do (pip download --no-deps --no-binary :all: consilience). "
        "Change into one of them and run the command again."
    )


@click.command(cls=Command, examples=EXAMPLES, examples_in="in a clone of the repository")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="Show what can be run: claim, what it reads, how long it takes.")
@click.option("--quick", is_flag=True, help="Smoke test: a few small settings.")
@click.option("--full", is_flag=True, help="The paper's size, where that is larger than the default.")
@click.option("--seeds", type=click.IntRange(min=1), help="Random repetitions; each experiment has its own default.")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for tables and pictures.  [default: experiments/results]",
)
@click.option("--data", type=FOLDER, help="Folder of real votes.  [default: $CONSILIENCE_DATA]")
@click.option("--cache", type=FOLDER, help="Folder of parses.  [default: $CONSILIENCE_CACHE]")
@click.option("--snorkel", type=FOLDER, help="Environment with Snorkel.  [default: $CONSILIENCE_SNORKEL]")
@options.printing
def reproduce(
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    full: bool,
    seeds: int | None,
    results: Path | None,
    data: Path | None,
    cache: Path | None,
    snorkel: Path | None,
    output: Output,
) -> None:
    """Run experiments of the repository, and write their tables and pictures.

    NAME is an experiment of `consilience reproduce --list`, or all. With all, experiments whose data or packages are
    missing are skipped, and listed with the reason. Exit status 1 if an experiment failed; the others run nevertheless.
    """  # fmt: skip
    root, experiments = find_experiments(Path.cwd())
    if listing:
        if names:
            raise click.UsageError("--list shows every experiment. Leave the names out.")
        rows = [
            {
                "experiment": one.name,
                "claim": one.claim,
                "reads": ", ".join(FOLDERS[key][0] for key in one.reads) or "nothing",
                "takes": one.takes,
                "--full": one.full or "the same",
            }
            for one in experiments.values()
        ]
        output.table(columns_of(rows), "experiments")
        output.document({"experiments": rows})
        return
    if quick and full:
        raise click.UsageError("--quick and --full contradict each other. Choose one.")
    environment = dict(os.environ)
    for key, folder in (("data", data), ("cache", cache), ("snorkel", snorkel)):
        if folder is not None:
            environment[FOLDERS[key][1]] = str(folder.resolve())
    passed = [*(["--quick"] if quick else []), *([] if seeds is None else ["--seeds", str(seeds)])]
    passed += [] if results is None else ["--results", str(results.resolve())]
    chosen, skipped = _chosen(names, experiments, environment, output, full=full)
    where = (results or root / "experiments" / "results").resolve()
    outcomes: list[dict[str, Any]] = []
    for number, one in enumerate(chosen, 1):
        larger = full and one.full is not None
        output.note(f"[{number}/{len(chosen)}] {one.name}: {one.claim} (takes {one.full if larger else one.takes})")
        command = [sys.executable, "-m", f"experiments.{one.name}", *passed, *(["--full"] if larger else [])]
        start = time.perf_counter()
        # In a separate process, which shows its own progress.
        silent = subprocess.DEVNULL if output.silent else None
        status = subprocess.run(command, cwd=root, env=environment, check=False, stdout=silent).returncode
        seconds = round(time.perf_counter() - start, 1)
        outcomes.append({"experiment": one.name, "status": status, "seconds": seconds})
        output.note(f"{one.name}: {'failed' if status else 'done'} after {seconds} s")
    output.document({"results": str(where), "runs": outcomes, "skipped": skipped})
    for run in outcomes:
        if not run["status"]:
            output.text(f"{where / run['experiment']}.md  ({run['seconds']} s)")
    failed = [run["experiment"] for run in outcomes if run["status"]]
    minutes, done = sum(run["seconds"] for run in outcomes) / 60.0, len(outcomes) - len(failed)
    output.note(f"{done} done, {len(failed)} failed, {len(skipped)} skipped, in {minutes:.0f} minutes")
    for name, reasons in skipped.items():
        for reason in reasons:
            output.note(f"skipped: {name} {reason}")
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
        click.get_current_context().exit(1)


def _chosen(
    names: tuple[str, ...],
    experiments: dict[str, Experiment],
    environment: dict[str, str],
    output: Output,
    *,
    full: bool,
) -> tuple[list[Experiment], dict[str, list[str]]]:
    """Return the experiments to run, and why others of all are skipped; or say what is wrong with the choice."""
    if not names:
        raise click.UsageError(f"Name an experiment, or {ALL}. --list shows them.")
    if ALL in names:
        if len(names) > 1:
            raise click.UsageError(f"{ALL} runs every experiment. Leave the other names out.")
        skipped = {one.name: lacks for one in experiments.values() if (lacks := one.lacks(environment))}
        if skipped:
            output.note(f"skipped, see the end: {', '.join(skipped)}")
        chosen = [one for one in experiments.values() if one.name not in skipped]
        if full:
            same = [one.name for one in chosen if one.full is None]
            output.note(f"--full is the default size of: {', '.join(same)}")
        return chosen, skipped
    for name in names:
        if name not in experiments:
            hint = did_you_mean(name, experiments) or " --list shows them."
            raise BadInputError(f"There is no experiment {name!r}.{hint}")
        for reason in experiments[name].lacks(environment):
            raise BadInputError(f"{name} {reason}")
        if full and experiments[name].full is None:
            raise BadInputError(f"{name} has no larger size than its default. Leave --full out.")
    return [experiments[name] for name in dict.fromkeys(names)], {}
