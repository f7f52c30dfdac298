"""`label` and `predict`: labels into a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from consilience.cli.commands import Command
from consilience.cli.fitting import dependent_pairs, fit, fit_votes
from consilience.cli.options import (
    Reading,
    force_option,
    gold_option,
    output_option,
    printing_options,
    reading_options,
)
from consilience.cli.output import Output, diagnostic_rows
from consilience.cli.scaling import Engine, engine_options, guessed_space, opened, write_to_folder
from consilience.cli.streams import table_file
from consilience.cli.targets import STDOUT

if TYPE_CHECKING:
    from consilience.cli.loading import Loaded
    from consilience.label_model import LabelModel

__all__ = ["MODEL", "VOTES", "label", "predict"]

VOTES = click.argument("votes", type=click.Path(path_type=Path), callback=table_file, metavar="VOTES")
MODEL = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
TIES = click.option(
    "--ties", type=click.FloatRange(0.5, 1.0), metavar="P", help="Rankings: tie neighbours whose order is less sure."
)
LABELS_HELP = "Where the labels go: .csv, .tsv, .jsonl, .parquet or .arrow; - prints them as CSV."


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv",
        "consilience label votes.csv -o labels.parquet --gold gold.csv --report page.html",
        "consilience label votes.csv -o labels-em.csv --method em --depends ann,bob --save model.npz",
        "consilience label scores.csv -o consensus.csv --space scores:0..100 --gold human_rating",
        "consilience label rankings.csv -o merged.csv --ties 0.6",
    ),
)
@VOTES
@output_option(LABELS_HELP)
@reading_options()
@gold_option()
@click.option("--depends", multiple=True, metavar="A,B", help="Sources that copy each other or err alike; repeatable.")
@click.option(
    "--prior",
    default="auto",
    show_default=True,
    metavar="A=P,B=Q,...",
    help="Classes: how frequent they are; auto learns it.",
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="How qualities are learned: majority, em, ...; `compare` tries all.",
)
@TIES
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a page to look at (.html).")
@click.option(
    "--standings", type=click.Path(path_type=Path), metavar="FILE", help="Preferences: write scores and rank intervals."
)
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Save the model, for `predict`.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same bits.")
@engine_options
@force_option
@printing_options
@click.pass_context
def label(
    ctx: click.Context,
    votes: Path,
    target: Path,
    reading: Reading,
    engine: Engine | None,
    gold: str | None,
    depends: tuple[str, ...],
    prior: str,
    method: str,
    ties: float | None,
    report: Path | None,
    standings: Path | None,
    save: Path | None,
    seed: int,
    force: bool,
    output: Output,
) -> None:
    """Label every item of VOTES, and say how far each source can be trusted.

    VOTES is a table: one row per item and one column per source, or one row per vote (item, source, label); - reads
    it from the standard input. Empty cells abstain. Each label comes with its confidence, the number of votes and the
    agreement among them.

    Exit status: 0 if all went well, 1 if labels were written but a diagnostic is an error, 2 if the input was wrong.
    """
    from consilience.cli.loading import describe, load
    from consilience.cli.targets import check_table_name, check_targets, write_all
    from consilience.tables.files import write_table
    from consilience.tables.writing import label_table

    if engine is not None:
        _check_folder_name(target)
        if report is not None or standings is not None:
            which = "--report" if report is not None else "--standings"
            raise click.UsageError(f"{which} needs the votes in memory. Leave --engine out, or {which}.")
        ctx.exit(
            _label_in_pieces(
                votes, target, reading, engine, gold, depends, prior, method, ties, save, seed, force, output
            )
        )
    check_table_name(target)
    output = output.beside(target)
    check_targets([path for path in (target, report, standings, save) if path is not None], force=force)
    loaded = load(votes, reading, output, gold)
    with output.working(f"learning from {len(loaded.votes)} items"):
        model = fit(loaded, method, dependent_pairs(depends, loaded.votes.repeated_pairs), seed, prior=prior)
        table = label_table(model, loaded.votes, ties=ties)
    writers: dict[Path, Any] = {target: lambda path: write_table(path, table)}
    if report is not None:
        writers[report] = lambda path: _write_report(path, model, loaded, votes.name)
    if standings is not None:
        from consilience.preferences import standings as standings_of

        ranked = standings_of(model, loaded.votes)
        writers[standings] = lambda path: write_table(path, ranked)
    if save is not None:
        writers[save] = model.save
    with output.working("writing"):
        write_all(writers)
    findings = model.diagnostics_
    output.table(model.sources_.columns)
    output.findings(findings)
    known = f", {loaded.n_gold} of them known" if loaded.n_gold else ""
    output.text(f"wrote {len(loaded.votes)} labels{known} to {target}")
    for path, what in ((report, "the report"), (standings, "the standings"), (save, "the model")):
        if path is not None:
            output.text(f"wrote {what} to {path}")
    output.document(
        {
            "labels": str(target),
            "report": None if report is None else str(report),
            "model": None if save is None else str(save),
            "items": len(loaded.votes),
            "known": loaded.n_gold,
            "space": describe(loaded.space),
            "method": model.source_model_.method,
            "sources": model.sources_.to_arrow().to_pylist(),
            "diagnostics": diagnostic_rows(findings),
        }
    )
    ctx.exit(1 if any(finding.severity == "error" for finding in findings) else 0)


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience predict model.npz votes.csv -o again.csv",
    ),
)
@MODEL
@VOTES
@output_option(LABELS_HELP)
@reading_options(with_space=False)
@TIES
@engine_options
@force_option
@printing_options
def predict(
    model: Path,
    votes: Path,
    target: Path,
    reading: Reading,
    ties: float | None,
    engine: Engine | None,
    force: bool,
    output: Output,
) -> None:
    """Label VOTES with a MODEL that was learned before.

    The sources of the model are picked by name; other columns are left aside.
    """
    from consilience.cli.loading import load_for_model, read_model
    from consilience.cli.targets import check_table_name, check_targets, write_all
    from consilience.tables.files import write_table
    from consilience.tables.writing import label_table

    if engine is not None:
        _check_folder_name(target)
        fitted = read_model(model)
        wide = reading if reading.sources is not None else replace(reading, sources=fitted.source_model_.sources)
        with output.working("labelling"), opened(engine, votes, fitted.space, wide) as partitions:
            counts = write_to_folder(fitted, partitions, target, engine, ties, force=force)
        output.text(_written(counts, target))
        output.document({"labels": str(target), "model": str(model), **counts})
        return
    check_table_name(target)
    output = output.beside(target)
    check_targets([target], force=force)
    fitted = read_model(model)
    loaded = load_for_model(votes, fitted, reading, output)
    with output.working(f"labelling {len(loaded.votes)} items"):
        table = label_table(fitted, loaded.votes, ties=ties)
        write_all({target: lambda path: write_table(path, table)})
    output.text(f"wrote {len(loaded.votes)} labels to {target}")
    output.document({"labels": str(target), "items": len(loaded.votes), "model": str(model)})


def _label_in_pieces(
    votes: Path,
    target: Path,
    reading: Reading,
    engine: Engine,
    gold: str | None,
    depends: tuple[str, ...],
    prior: str,
    method: str,
    ties: float | None,
    save: Path | None,
    seed: int,
    force: bool,
    output: Output,
) -> int:
    """Label votes that an engine reads, and return the exit status."""
    from consilience.cli.loading import describe
    from consilience.cli.targets import check_targets, write_all
    from consilience.partitions.label_folder import check_folder

    check_targets([] if save is None else [save], force=force)
    if engine.name != "spark":
        check_folder(target, resume=engine.resume, force=force)
    space = guessed_space(votes, reading, gold, output)
    with opened(engine, votes, space, reading, gold) as partitions:
        with output.working("learning"):
            model = fit_votes(space, partitions, None, method, dependent_pairs(depends), seed, prior)
        if save is not None:
            write_all({save: model.save})
        with output.working("labelling"):
            counts = write_to_folder(model, partitions, target, engine, ties, force=force)
    findings = model.diagnostics_
    output.table(model.sources_.columns)
    output.findings(findings)
    output.text(_written(counts, target))
    if save is not None:
        output.text(f"wrote the model to {save}")
    output.document(
        {
            "labels": str(target),
            "model": None if save is None else str(save),
            **counts,
            "engine": engine.name,
            "space": describe(space),
            "method": model.source_model_.method,
            "sources": model.sources_.to_arrow().to_pylist(),
            "diagnostics": diagnostic_rows(findings),
        }
    )
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _check_folder_name(target: Path) -> None:
    if target == STDOUT:
        raise click.UsageError("With --engine the labels go to a folder. Give -o its name, or leave --engine out.")


def _written(counts: dict[str, int], target: Path) -> str:
    skipped = f"; {counts['skipped']} cells were no labels and abstain" if counts["skipped"] else ""
    return f"wrote {counts['items']} labels to {counts['files']} files in {target}{skipped}"


def _write_report(path: Path, model: LabelModel, loaded: Loaded, name: str) -> None:
    from consilience.report import write_report

    write_report(path, model, loaded.votes, loaded.gold, title=name)
