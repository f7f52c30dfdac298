"""`consilience reproduce`: run the experiments of a clone of the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from consilience.cli.commands import BadInputError, Command, did_you_mean
from consilience.cli.options import printing_options
from consilience.cli.output import Output

__all__ = ["Experiment", "find_experiments", "reproduce"]


CATALOGUE = Path("experiments") / "catalogue.toml"
ALL = "all"
#: What an experiment may read beside its own draws: the option, the variable, and what lies there.
FOLDERS = {
    "data": ("--data", "CONSILIENCE_DATA", "real votes"),
    "cache": ("--cache", "CONSILIENCE_CACHE", "the output of parsers"),
}
EXAMPLES = (
    "consilience reproduce --list",
    "consilience reproduce theory_rates rankings_paper",
    "consilience reproduce theory_rates --quick --results results",
)


@dataclass(frozen=True)
class Experiment:
    """One line of the catalogue.

    Parameters
    ----------
    claim
        What it argues, in one line.
    reads
        Keys of `FOLDERS`.
    takes
        How long, at default size.
    full
        How long with --full; None where there is no larger size.
    """

    name: str
    claim: str
    reads: tuple[str, ...]
    takes: str
    full: str | None = None


def find_experiments(start: Path) -> tuple[Path, dict[str, Experiment]]:
    """Return the root of the repository that `start` lies in, and its experiments by name."""
    for root in (start, *start.parents):
        if (root / CATALOGUE).is_file():
            entries = tomllib.loads((root / CATALOGUE).read_text(encoding="utf-8"))["experiment"]
            found = [Experiment(**{**entry, "reads": tuple(entry["reads"])}) for entry in entries]
            return root, {one.name: one for one in found}
    raise BadInputError(
        "There is no folder 'experiments' here or above. The installed package does not contain it; a clone of the "
        "repository and the source archive do (pip download --no-deps --no-binary :all: consilience). "
        "Change into one of them and run the command again."
    )


@click.command(cls=Command, examples=EXAMPLES, examples_in="in a clone of the repository")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="Show what can be run: claim, what it reads, how long it takes.")
@click.option("--quick", is_flag=True, help="A few small settings: shows that it runs, proves nothing.")
@click.option("--full", is_flag=True, help="The paper's size, where that is larger than the default.")
@click.option("--seeds", type=click.IntRange(min=1), help="Random repetitions; each experiment has its own default.")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for tables and pictures.  [default: experiments/results]",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of real votes.  [default: $CONSILIENCE_DATA]",
)
@click.option(
    "--cache",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of parses.  [default: $CONSILIENCE_CACHE]",
)
@printing_options
def reproduce(
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    full: bool,
    seeds: int | None,
    results: Path | None,
    data: Path | None,
    cache: Path | None,
    output: Output,
) -> None:
    """Run experiments of the repository, and write their tables and pictures.

    NAME is an experiment of `consilience reproduce --list`, or all. Those that read folders which are not given are
    left out of all, and said so. Exit status 1 if an experiment failed; the others are run nevertheless.
    """  # fmt: skip
    root, experiments = find_experiments(Path.cwd())
    if listing:
        if names:
            raise click.UsageError("--list shows every experiment. Leave the names out.")
        _list(experiments, output)
        return
    if quick and full:
        raise click.UsageError("--quick and --full contradict each other. Choose one.")
    folders = {"data": data, "cache": cache}
    chosen = _chosen(names, experiments, folders, output, full=full)
    options = [*(["--quick"] if quick else []), *([] if seeds is None else ["--seeds", str(seeds)])]
    options += [] if results is None else ["--results", str(results.resolve())]
    outcomes = []
    for number, one in enumerate(chosen, 1):
        output.note(f"[{number}/{len(chosen)}] {one.name}: {one.claim}")
        larger = ["--full"] if full and one.full is not None else []
        outcomes.append(_run(one, root, [*options, *larger], folders, output))
    where = (results or root / "experiments" / "results").resolve()
    _close(outcomes, where, output)


def _list(experiments: dict[str, Experiment], output: Output) -> None:
    shown = list(experiments.values())
    columns: dict[str, list[Any]] = {
        "experiment": [one.name for one in shown],
        "claim": [one.claim for one in shown],
        "reads": [", ".join(FOLDERS[key][0] for key in one.reads) or "nothing" for one in shown],
        "takes": [one.takes for one in shown],
        "--full": [one.full or "the same" for one in shown],
    }
    output.table(columns, "experiments")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    output.document({"experiments": rows})


def _chosen(
    names: tuple[str, ...],
    experiments: dict[str, Experiment],
    folders: dict[str, Path | None],
    output: Output,
    *,
    full: bool,
) -> list[Experiment]:
    """Return the experiments to run, or say what is wrong with the choice."""
    if not names:
        raise click.UsageError(f"Name an experiment, or {ALL}. --list shows them.")
    lacking = {one.name: [key for key in one.reads if not _given(key, folders)] for one in experiments.values()}
    if ALL in names:
        if len(names) > 1:
            raise click.UsageError(f"{ALL} is every experiment. Leave the other names out.")
        left_out = [name for name, keys in lacking.items() if keys]
        if left_out:
            options = sorted({FOLDERS[key][0] for name in left_out for key in lacking[name]})
            output.note(f"left out, as {' and '.join(options)} are not given: {', '.join(left_out)}")
        if full:
            same = [one.name for one in experiments.values() if one.full is None and one.name not in left_out]
            output.note(f"--full is the default size of: {', '.join(same)}")
        return [one for one in experiments.values() if one.name not in left_out]
    for name in names:
        if name not in experiments:
            hint = did_you_mean(name, experiments).rstrip() or "--list shows them."
            raise BadInputError(f"There is no experiment {name!r}. {hint}")
        for key in lacking[name]:
            option, variable, what = FOLDERS[key]
            raise BadInputError(f"{name} reads {what}. Pass {option} FOLDER, or set {variable}.")
        if full and experiments[name].full is None:
            raise BadInputError(f"{name} has no larger size than its default. Leave --full out.")
    return [experiments[name] for name in dict.fromkeys(names)]


def _given(key: str, folders: dict[str, Path | None]) -> bool:
    return folders[key] is not None or bool(os.environ.get(FOLDERS[key][1]))


def _run(
    experiment: Experiment, root: Path, options: list[str], folders: dict[str, Path | None], output: Output
) -> dict[str, Any]:
    """Run one experiment in a process of its own, which shows its own progress."""
    environment = dict(os.environ)
    for key, folder in folders.items():
        if folder is not None:
            environment[FOLDERS[key][1]] = str(folder.resolve())
    silent = subprocess.DEVNULL if output.quiet or output.as_json else None
    command = [sys.executable, "-m", f"experiments.{experiment.name}", *options]
    start = time.perf_counter()
    status = subprocess.run(command, cwd=root, env=environment, check=False, stdout=silent).returncode
    return {"experiment": experiment.name, "status": status, "seconds": round(time.perf_counter() - start, 1)}


def _close(outcomes: list[dict[str, Any]], where: Path, output: Output) -> None:
    failed = [one["experiment"] for one in outcomes if one["status"]]
    output.document({"results": str(where), "runs": outcomes})
    for one in outcomes:
        if not one["status"]:
            output.text(f"{where / one['experiment']}.md  ({one['seconds']} s)")
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
        click.get_current_context().exit(1)
