"""`label`, `predict` and `compare`: labels into a file, and methods against known labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.cli import options
from consilience.cli.commands import Command
from consilience.cli.loading import Loaded, describe, load, opened
from consilience.cli.output import STDOUT, Output, Writer, check_targets, columns_of, write_all
from consilience.exceptions import ConsilienceError, ConsilienceWarning, UnsupportedError, did_you_mean
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.partitions import predict_to
from consilience.partitions.label_folder import check_folder
from consilience.preferences import standings as standings_of
from consilience.report import write_report
from consilience.tables.files import file_format, write_table
from consilience.tables.writing import label_table

#: Words for priors that are not written out.
PRIORS = ("auto", "uniform", "gibbs")
#: Parts into which known labels are cut where a method learns from them.
FOLDS = 5
TIES = click.option(
    "--ties", type=click.FloatRange(0.5, 1.0), metavar="P", help="Rankings: tie neighbors whose order is less sure."
)
AUTO: dict[str, Any] = {"default": "auto", "show_default": True}
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
@options.VOTES
@options.target(LABELS_HELP)
@options.reading(engine="labels")
@options.gold()
@click.option("--depends", multiple=True, metavar="A,B", help="Sources that copy each other or err alike; repeatable.")
@click.option("--prior", **AUTO, metavar="A=P,B=Q,...", help="Classes: how frequent they are; auto learns it.")
@click.option(
    "--method", **AUTO, metavar="NAME", help="How qualities are learned: majority, em, ...; `compare` tries all."
)
@TIES
@click.option("--report", type=options.FILE, metavar="FILE", help="Write a page to look at (.html).")
@click.option("--standings", type=options.FILE, metavar="FILE", help="Preferences: write scores and rank intervals.")
@click.option("--save", type=options.FILE, metavar="FILE", help="Save the model, for `predict`.")
@options.SEED
@options.FORCE
@options.printing
@click.pass_context
def label(
    ctx: click.Context,
    votes: Path,
    target: Path,
    reading: options.Reading,
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
    named = ((report, "the report"), (standings, "the standings"), (save, "the model"))
    extra = [(path, what) for path, what in named if path is not None]
    if reading.engine and (report or standings):
        which = "--report" if report else "--standings"
        raise click.UsageError(f"{which} needs the votes in memory. Leave --engine out, or {which}.")
    output = check_outputs(target, reading, output, force=force, others=[path for path, _ in extra])
    if reading.engine in ("local", "dask"):
        check_folder(target, resume=reading.resume, force=force)
    with opened(votes, reading, output, gold=gold) as loaded:
        pairs = list(getattr(loaded.votes, "repeated_pairs", ()))  # runs of one source
        for group in depends:
            names = [name.strip() for name in group.split(",") if name.strip()]
            if len(names) < 2:
                raise click.BadParameter(f"{group!r} names one source. Write --depends a,b.", param_hint="--depends")
            pairs += combinations(names, 2)
        with output.working("learning"):
            model = fit_votes(loaded.space, loaded.votes, loaded.gold, method, pairs, seed, prior)
        writers: dict[Path, Writer] = {}
        if report is not None:
            writers[report] = lambda path: write_report(path, model, loaded.votes, loaded.gold, title=votes.name)
        if standings is not None:
            ranked = standings_of(model, loaded.votes)
            writers[standings] = lambda path: write_table(path, ranked)
        if save is not None:
            writers[save] = model.save
        with output.working("labeling"):
            written, counts = write_predictions(model, loaded, target, reading, ties, writers, force=force)
    findings = model.diagnostics_
    output.table(model.sources_.columns)
    output.findings(findings)
    output.text(written)
    for path, what in extra:
        output.text(f"wrote {what} to {path}")
    if reading.engine is None:
        counts = {"report": report and str(report), **counts, "known": loaded.n_gold}
    output.document(
        {
            "labels": str(target),
            "model": save and str(save),
            **counts,
            "space": describe(loaded.space),
            "method": model.source_model_.method,
            "sources": model.sources_.to_arrow().to_pylist(),
            "diagnostics": findings,
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
@options.MODEL
@options.VOTES
@options.target(LABELS_HELP)
@options.reading(space=False, engine="labels")
@TIES
@options.FORCE
@options.printing
def predict(
    model: Path, votes: Path, target: Path, reading: options.Reading, ties: float | None, force: bool, output: Output
) -> None:
    """Label VOTES with a MODEL that was learned before.

    The sources of the model are picked by name; other columns are left aside.
    """
    fitted = LabelModel.load(model)
    output = check_outputs(target, reading, output, force=force)
    with opened(votes, reading, output, model=fitted) as loaded, output.working("labeling"):
        written, counts = write_predictions(fitted, loaded, target, reading, ties, {}, force=force)
    output.text(written)
    output.document({"labels": str(target), "model": str(model), **counts})


@click.command(
    cls=Command,
    examples=(
        "consilience compare votes.csv --gold gold.csv",
        "consilience compare scores.csv --gold human_rating --space scores",
    ),
)
@options.VOTES
@options.reading()
@options.gold(required=True)
@options.SEED
@options.printing
def compare(votes: Path, reading: options.Reading, gold: str, seed: int, output: Output) -> None:
    """Compare all methods on the items of VOTES whose label is known.

    No method sees the known label of an item it is scored on: `labelled` learns from four fifths of them and is scored
    on the last fifth, in turn; all others learn from votes alone. Items nobody voted on are left out.
    """
    loaded = load(votes, reading, output, gold)
    rows = []
    for method in loaded.space.law.methods:
        with output.working(f"method {method}"):
            rows.append(_scored(loaded, method, seed))
    rows.sort(key=lambda row: (row["mean_distance"] is None, row["mean_distance"] or 0.0))
    output.table(columns_of(rows))
    output.document({"known": loaded.n_gold, "space": describe(loaded.space), "methods": rows})


def check_outputs(
    target: Path, reading: options.Reading, output: Output, *, force: bool, others: Sequence[Path] = ()
) -> Output:
    """Refuse, before any work, a target that labels cannot go to; return the output that leaves stdout to them."""
    if reading.engine is not None:
        if target == STDOUT:
            raise click.UsageError("With --engine the labels go to a folder. Give -o its name, or leave --engine out.")
        check_targets(others, force=force)
        return output
    if target != STDOUT:
        file_format(target)
    output = output.beside(target)
    check_targets([target, *others], force=force)
    return output


def write_predictions(
    model: LabelModel,
    loaded: Loaded,
    target: Path,
    reading: options.Reading,
    ties: float | None,
    others: dict[Path, Writer],
    *,
    force: bool,
) -> tuple[str, dict[str, Any]]:
    """Write labels, to a folder if an engine makes them, and other files; return what to say and what was counted."""
    if reading.engine is None:
        table, n_items = label_table(model, loaded.votes, ties=ties), len(loaded.votes)
        write_all({target: lambda path: write_table(path, table), **others})
        known = f", {loaded.n_gold} of them known" if loaded.n_gold else ""
        return f"wrote {n_items} labels{known} to {target}", {"items": n_items}
    write_all(others)
    folder = predict_to(model, loaded.votes, target, ties=ties, resume=reading.resume, force=force)
    skipped = f"; {folder.n_skipped} cells were no labels and abstain" if folder.n_skipped else ""
    counts = {"items": folder.n_items, "files": folder.n_files, "skipped": folder.n_skipped, "engine": reading.engine}
    return f"wrote {folder.n_items} labels to {folder.n_files} files in {folder.path}{skipped}", counts


def fit_votes(
    space: LabelSpace,
    votes: Any,
    gold: Any = None,
    method: str = "auto",
    pairs: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    prior: str = "auto",
) -> LabelModel:
    """Return a fitted model; what it would warn of is in its diagnostics."""
    names = space.law.methods
    if method not in names:
        raise UnsupportedError(
            f"There is no method {method!r} for this label type.{did_you_mean(method, names)} "
            f"Use one of {', '.join(names)}."
        )
    settings: dict[str, Any] = {"dependencies": list(pairs)} if pairs else {}
    model = LabelModel(space, method=method, prior=_prior(prior, space), random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return model.fit(votes, gold=gold)


def _prior(text: str, space: LabelSpace) -> Any:
    """Return what `--prior` says: a word, or one number per label such as ``ham=0.9,spam=0.1``."""
    if text in PRIORS:
        return text

    def refused(fault: str) -> click.BadParameter:
        return click.BadParameter(fault, param_hint="--prior")

    if space.n_labels is None:
        raise refused(f"{type(space).__name__} has no list of labels to be frequent.")
    labels = [str(label) for label in space.as_labels(np.arange(space.n_labels), np.dtype(object)).tolist()]
    example = ",".join(f"{label}={1 / len(labels):.2g}" for label in labels[:4]) + ",..." * (len(labels) > 4)
    given: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        name = name.strip()
        if name not in labels:
            raise refused(f"{name or share!r} is no label.{did_you_mean(name, labels)} Write --prior {example}.")
        try:
            given[name] = float(share)
        except ValueError:
            raise refused(f"{share!r} is no number. Write --prior {example}.") from None
    for label in labels:
        if label not in given:
            raise refused(f"{label!r} is missing. Write --prior {example}.")
    total = sum(given.values())
    if not total > 0:
        raise refused("all shares are zero. Give how frequent the labels are.")
    return [given[label] / total for label in labels]


def _scored(loaded: Loaded, method: str, seed: int) -> dict[str, Any]:
    """Return one row of the table of methods: how far its labels are from the known ones."""
    gold = np.array([], dtype=object) if loaded.gold is None else loaded.gold
    known = np.flatnonzero([label is not None for label in gold])
    distance, note = np.zeros(0), ""
    try:
        if method == "labelled" and len(known) < 2 * FOLDS:
            note = f"needs {2 * FOLDS} known labels"
        elif method == "labelled":
            note = f"learns from known labels, {FOLDS} folds"
            rows = np.random.default_rng(seed).permutation(known)
            parts = []
            for fold in range(FOLDS):
                held_out = np.sort(rows[fold::FOLDS])
                told = gold.copy()
                told[held_out] = None
                model = fit_votes(loaded.space, loaded.votes, told, "labelled", seed=seed)
                parts.append(_distances(loaded, model, held_out))
            distance = np.concatenate(parts)
        else:
            model = fit_votes(loaded.space, loaded.votes, method=method, seed=seed)
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


def _distances(loaded: Loaded, model: LabelModel, rows: Any) -> FloatArray:
    """Return how far labels are from the known ones, on those of these items that somebody voted on."""
    voted: BoolArray = loaded.votes.observed[rows].any(axis=1)
    if loaded.gold is None or not voted.any():
        return np.zeros(0)
    chosen, space = rows[voted], loaded.space
    return space.distance(space.as_batch(model.predict(loaded.votes[chosen])), space.as_batch(loaded.gold[chosen]))
