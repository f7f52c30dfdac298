"""`label`, `predict` and `compare`: labels into a file, and methods against known labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

from consilience.arrays import BoolArray, FloatArray, as_object_array
from consilience.cli.commands import Command, did_you_mean
from consilience.cli.loading import Loaded, describe, load, load_for_model
from consilience.cli.options import (
    Engine,
    Reading,
    engine_options,
    force_option,
    gold_option,
    guessed_space,
    opened,
    output_option,
    printing_options,
    reading_options,
    table_file,
)
from consilience.cli.output import STDOUT, Output, Writer, check_targets, diagnostic_rows, write_all
from consilience.exceptions import ConsilienceError, ConsilienceWarning, UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.partitions import LabelFolder, predict_to
from consilience.partitions.label_folder import check_folder
from consilience.preferences import standings as standings_of
from consilience.report import write_report
from consilience.tables.files import file_format, write_table
from consilience.tables.writing import label_table

#: Words for priors that are not written out.
PRIORS = ("auto", "uniform", "gibbs")
#: Parts into which known labels are cut where a method learns from them.
FOLDS = 5

VOTES = click.argument("votes", type=click.Path(path_type=Path), callback=table_file, metavar="VOTES")
MODEL = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
TIES = click.option(
    "--ties", type=click.FloatRange(0.5, 1.0), metavar="P", help="Rankings: tie neighbors whose order is less sure."
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
@engine_options()
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
    if engine is None:
        check_table(target)
        output = output.beside(target)
        check_targets([path for path in (target, report, standings, save) if path is not None], force=force)
        loaded = load(votes, reading, output, gold)
        space, n_items, known = loaded.space, len(loaded.votes), loaded.n_gold
        with output.working(f"learning from {n_items} items"):
            pairs = dependent_pairs(depends, loaded.votes.repeated_pairs)
            model = fit_votes(space, loaded.votes, loaded.gold, method, pairs, seed, prior)
            table = label_table(model, loaded.votes, ties=ties)
        writers: dict[Path, Writer] = {target: lambda path: write_table(path, table)}
        if report is not None:
            writers[report] = lambda path: write_report(path, model, loaded.votes, loaded.gold, title=votes.name)
        if standings is not None:
            ranked = standings_of(model, loaded.votes)
            writers[standings] = lambda path: write_table(path, ranked)
        if save is not None:
            writers[save] = model.save
        with output.working("writing"):
            write_all(writers)
        written = f"wrote {n_items} labels{f', {known} of them known' if known else ''} to {target}"
        counts: dict[str, Any] = {"report": _text(report), "items": n_items, "known": known}
    else:
        _check_folder_name(target)
        if report is not None or standings is not None:
            which = "--report" if report is not None else "--standings"
            raise click.UsageError(f"{which} needs the votes in memory. Leave --engine out, or {which}.")
        check_targets([] if save is None else [save], force=force)
        if engine.name != "spark":
            check_folder(target, resume=engine.resume, force=force)
        space = guessed_space(votes, reading, gold, output)
        with opened(engine, votes, space, reading, gold) as partitions:
            with output.working("learning"):
                model = fit_votes(space, partitions, None, method, dependent_pairs(depends), seed, prior)
            if save is not None:
                write_all({save: model.save})
            with output.working("labeling"):
                folder = predict_to(model, partitions, target, ties=ties, resume=engine.resume, force=force)
        written, counts = _written(folder), {**_counts(folder), "engine": engine.name}
    findings = model.diagnostics_
    output.table(model.sources_.columns)
    output.findings(findings)
    output.text(written)
    for path, what in ((report, "the report"), (standings, "the standings"), (save, "the model")):
        if path is not None:
            output.text(f"wrote {what} to {path}")
    output.document(
        {
            "labels": str(target),
            "model": _text(save),
            **counts,
            "space": describe(space),
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
@engine_options()
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
    fitted = LabelModel.load(model)
    if engine is None:
        check_table(target)
        output = output.beside(target)
        check_targets([target], force=force)
        loaded = load_for_model(votes, fitted, reading, output)
        with output.working(f"labeling {len(loaded.votes)} items"):
            table = label_table(fitted, loaded.votes, ties=ties)
            write_all({target: lambda path: write_table(path, table)})
        written, counts = f"wrote {len(loaded.votes)} labels to {target}", {"items": len(loaded.votes)}
    else:
        _check_folder_name(target)
        wide = reading if reading.sources is not None else replace(reading, sources=fitted.source_model_.sources)
        with output.working("labeling"), opened(engine, votes, fitted.space, wide) as partitions:
            folder = predict_to(fitted, partitions, target, ties=ties, resume=engine.resume, force=force)
        written, counts = _written(folder), _counts(folder)
    output.text(written)
    output.document({"labels": str(target), "model": str(model), **counts})


@click.command(
    cls=Command,
    examples=(
        "consilience compare votes.csv --gold gold.csv",
        "consilience compare scores.csv --gold human_rating --space scores",
    ),
)
@VOTES
@reading_options()
@gold_option(required=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same bits.")
@printing_options
def compare(votes: Path, reading: Reading, gold: str, seed: int, output: Output) -> None:
    """Compare all methods on the items of VOTES whose label is known.

    No method sees the known label of an item it is scored on: `labelled` learns from four fifths of them and is scored
    on the last fifth, in turn; all others learn from votes alone. Items nobody voted on are left out.
    """
    loaded = load(votes, reading, output, gold)
    rows = []
    for method in loaded.space.law.methods:
        with output.working(f"method {method}"):
            rows.append(_scored(loaded, method, seed))
    order = sorted(rows, key=lambda row: (row["mean_distance"] is None, row["mean_distance"] or 0.0))
    output.table({name: [row[name] for row in order] for name in order[0]})
    output.document({"known": loaded.n_gold, "space": describe(loaded.space), "methods": order})


def fit_votes(
    space: LabelSpace,
    votes: Any,
    gold: Any,
    method: str,
    pairs: list[tuple[str, str]],
    seed: int,
    prior: str = "auto",
) -> LabelModel:
    """Return a fitted model; what it would warn of is in its diagnostics."""
    names = space.law.methods
    if method not in names:
        raise UnsupportedError(
            f"There is no method {method!r} for this label type. {did_you_mean(method, names)}"
            f"Use one of {', '.join(names)}."
        )
    settings: dict[str, Any] = {"dependencies": pairs} if pairs else {}
    model = LabelModel(space, method=method, prior=prior_of_text(prior, space), random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return model.fit(votes, gold=gold)


def dependent_pairs(depends: tuple[str, ...], repeated: tuple[tuple[str, str], ...] = ()) -> list[tuple[str, str]]:
    """Return the pairs of sources that `--depends` names, and those that are runs of one source."""
    pairs = list(repeated)
    for group in depends:
        names = [name.strip() for name in group.split(",") if name.strip()]
        if len(names) < 2:
            raise click.BadParameter(f"{group!r} names one source. Write --depends a,b.", param_hint="--depends")
        pairs += combinations(names, 2)
    return pairs


def prior_of_text(text: str, space: LabelSpace) -> Any:
    """Return what `--prior` says: a word, or one number per label such as ``ham=0.9,spam=0.1``."""
    if text in PRIORS:
        return text
    if space.n_labels is None:
        raise click.BadParameter(f"{type(space).__name__} has no list of labels to be frequent.", param_hint="--prior")
    labels = [str(label) for label in space.as_labels(np.arange(space.n_labels), np.dtype(object)).tolist()]
    parts = [part.rpartition("=") for part in text.split(",")]
    given: dict[str, float] = {}
    for name, _, share in parts:
        if name.strip() not in labels:
            hint = did_you_mean(name.strip(), labels)
            raise click.BadParameter(
                f"{name.strip() or share!r} is no label. {hint}Write {_example(labels)}.",
                param_hint="--prior",
            )
        try:
            given[name.strip()] = float(share)
        except ValueError:
            raise click.BadParameter(
                f"{share!r} is no number. Write {_example(labels)}.", param_hint="--prior"
            ) from None
    missing = [label for label in labels if label not in given]
    if missing:
        raise click.BadParameter(f"{missing[0]!r} is missing. Write {_example(labels)}.", param_hint="--prior")
    total = sum(given.values())
    if not total > 0:
        raise click.BadParameter("all shares are zero. Give how frequent the labels are.", param_hint="--prior")
    return [given[label] / total for label in labels]


def _example(labels: list[str]) -> str:
    """Return how a prior over these labels is written."""
    shown = ",".join(f"{label}={1 / len(labels):.2g}" for label in labels[:4])
    return f"--prior {shown}{',...' if len(labels) > 4 else ''}"


def check_table(target: Path) -> None:
    """Refuse a name that says nothing about the format of a table."""
    if target != STDOUT:
        file_format(target)


def _check_folder_name(target: Path) -> None:
    if target == STDOUT:
        raise click.UsageError("With --engine the labels go to a folder. Give -o its name, or leave --engine out.")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _counts(folder: LabelFolder) -> dict[str, Any]:
    return {"items": folder.n_items, "files": folder.n_files, "skipped": folder.n_skipped}


def _written(folder: LabelFolder) -> str:
    skipped = f"; {folder.n_skipped} cells were no labels and abstain" if folder.n_skipped else ""
    return f"wrote {folder.n_items} labels to {folder.n_files} files in {folder.path}{skipped}"


def _scored(loaded: Loaded, method: str, seed: int) -> dict[str, Any]:
    """Return one row of the table of methods: how far its labels are from the known ones."""
    known = np.array([label is not None for label in (() if loaded.gold is None else loaded.gold)], dtype=bool)
    distance = np.zeros(0)
    try:
        if method == "labelled" and known.sum() < 2 * FOLDS:
            note = f"needs {2 * FOLDS} known labels"
        elif method == "labelled":
            distance = _out_of_fold(loaded, known, seed)
            note = f"learns from known labels, {FOLDS} folds"
        else:
            model = fit_votes(loaded.space, loaded.votes, None, method, [], seed)
            distance = _distances(loaded, model, known)
            used = model.source_model_.method
            note = "" if used == method else f"uses {used}"
    except ConsilienceError as error:
        note = str(error).split(". ", 1)[0]
    size = len(distance)
    right = {} if loaded.space.continuous else {"right": float((distance <= 1e-12).mean()) if size else None}
    return {
        "method": method,
        "items": size,
        **right,
        "mean_distance": float(distance.mean()) if size else None,
        "standard_error": float(distance.std(ddof=1) / np.sqrt(size)) if size > 1 else None,
        "note": note,
    }


def _out_of_fold(loaded: Loaded, known: BoolArray, seed: int) -> FloatArray:
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    parts = []
    for fold in range(FOLDS):
        held_out = np.zeros(len(known), dtype=bool)
        held_out[rows[fold::FOLDS]] = True
        gold = as_object_array([None] * len(known) if loaded.gold is None else loaded.gold)
        gold[held_out] = None
        model = fit_votes(loaded.space, loaded.votes, gold, "labelled", [], seed)
        parts.append(_distances(loaded, model, held_out))
    return np.concatenate(parts)


def _distances(loaded: Loaded, model: LabelModel, chosen: BoolArray) -> FloatArray:
    """Return how far labels are from the known ones, on chosen items that somebody voted on."""
    rows = np.flatnonzero(chosen & loaded.votes.observed.any(axis=1))
    if len(rows) == 0 or loaded.gold is None:
        return np.zeros(0)
    labels = model.predict(loaded.votes[rows])
    return loaded.space.distance(loaded.space.as_batch(labels), loaded.space.as_batch(loaded.gold[rows]))
