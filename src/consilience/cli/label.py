"""`label`, `predict` and `convert`: labels or votes into a file; `compare`: methods against known labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

import consilience.cli.loading as loading
from consilience.arrays import BoolArray, FloatArray
from consilience.cli import options
from consilience.cli.commands import Command, in_options
from consilience.cli.inspect import write_page
from consilience.cli.loading import Loaded, describe, opened
from consilience.cli.output import STDOUT, Output, Writer, check_targets, columns_of, counted, write_all
from consilience.exceptions import ConsilienceError, ConsilienceWarning, did_you_mean
from consilience.label_model import LabelModel
from consilience.label_types import Preferences
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.partitions import predict_to
from consilience.partitions.label_folder import check_folder
from consilience.prediction.verdict import verdict
from consilience.preferences import leader
from consilience.preferences import standings as standings_of
from consilience.tables.files import file_format, write_table
from consilience.tables.reading import wide_table
from consilience.tables.writing import label_table, write_readable

#: Words for priors that are not written out.
PRIORS = ("auto", "uniform", "gibbs")
#: Labels that are at most this far apart count as equal.
SAME = 1e-12
#: Notes about each method. "auto" describes its own fit.
HOW_METHODS_DIFFER = {
    "majority": "all sources count the same",
    "isotropic": "the paper's estimate from mean distances; sources taken as independent",
    "triplets": "the paper's estimate from groups of three; sources taken as independent",
    "quadratic": "the paper's estimate from joint votes; sources taken as independent",
    "em": "EM from equal qualities, without the search for shared errors",
}
#: With many sources, this many of the best and of the worst are printed.
BEST, WORST = 20, 10
#: Folds of the known labels for a method that learns from them.
FOLDS = 5
AUTO: dict[str, Any] = {"default": "auto", "show_default": True}


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv",
        "consilience label votes.csv -o labels.parquet --gold gold.csv --report page.html",
        "consilience label votes.csv -o labels-2.csv --depends ann,bob --save model.npz",
        "consilience label scores.csv -o consensus.csv --space scores:0..100 --gold human_rating",
        "consilience label rankings.csv -o merged.csv --ties 0.6",
    ),
)
@options.VOTES
@options.reading(engine="labels")
@options.writing
@options.gold()
@click.option(
    "--depends",
    multiple=True,
    metavar="A,B",
    help="Sources that share errors; may be repeated. none: all are independent.",
)
@click.option("--prior", **AUTO, metavar="A=P,B=Q,...", help="Class frequencies; auto estimates them.")
@click.option(
    "--method", **AUTO, metavar="NAME", help="How qualities are learned: majority, em, ...; `compare` tries all."
)
@click.option("--report", type=options.FILE, metavar="FILE", callback=options.page_file, help="Write an HTML report.")
@options.SHOW
@click.option("--sources-out", type=options.FILE, metavar="FILE", help="Write the table of sources, best first.")
@click.option("--standings", type=options.FILE, metavar="FILE", help="Preferences: write the leaderboard of every row.")
@click.option("--save", type=options.FILE, metavar="FILE", help="Save the model, for `predict`.")
@options.SEED
@options.printing
@click.pass_context
def label(
    ctx: click.Context,
    votes: Path,
    reading: options.Reading,
    writing: options.Writing,
    gold: str | None,
    depends: tuple[str, ...],
    prior: str,
    method: str,
    report: Path | None,
    show: str | None,
    sources_out: Path | None,
    standings: Path | None,
    save: Path | None,
    seed: int,
    output: Output,
) -> None:
    """Label every item of VOTES, and estimate how reliable each source is.

    VOTES is a table: one row per item and one column per source, or one row per vote (item, source, label); - reads
    it from the standard input. Empty cells abstain.

    Columns of the labels: item; label; for scores standard_error, low and high (95% interval); confidence
    (for classes the probability that the label is right; for tags, trees, boxes and the like the expected share that
    is right; otherwise the expected share of the cost of guessing that is avoided); n_votes; agreement (the share of
    voters who gave the label, or how close they are to it; 1 is best).

    Exit status: 0 on success, 1 if labels were written but a finding is an error, 2 if the input was wrong.
    """
    named = ((report, "the report"), (sources_out, "the sources"), (standings, "the leaderboard"), (save, "the model"))
    extra = [(path, what) for path, what in named if path is not None]
    if show is not None and report is None:
        raise click.UsageError("--show is for the report. Add --report page.html, or leave --show out.")
    if method in ("majority", "em") and depends not in ((), ("none",)):
        raise click.UsageError(f"--method {method} assumes independent sources. Leave --depends out.")
    if reading.engine and (report or standings):
        which = "--report" if report else "--standings"
        raise click.UsageError(f"{which} needs the votes in memory. Leave --engine out, or {which}.")
    output = check_outputs(writing, reading, output, [path for path, _ in extra])
    reading = loading.without_shown(votes, reading, show)
    if reading.engine in ("local", "dask"):
        check_folder(writing.target, resume=reading.resume, force=writing.force)
    with opened(votes, reading, output, gold=gold) as loaded:
        pairs = list(getattr(loaded.votes, "repeated_pairs", ()))  # runs of one source
        for group in () if depends == ("none",) else depends:
            names = [name.strip() for name in group.split(",") if name.strip()]
            if len(names) < 2:
                raise click.BadParameter(f"{group!r} names one source. Write --depends a,b.", param_hint="--depends")
            pairs += combinations(names, 2)
        with output.working("learning"):
            dependencies = "none" if depends == ("none",) else pairs
            model = fit_votes(loaded.space, loaded.votes, loaded.gold, method, dependencies, seed, prior)
        writers: dict[Path, Writer] = {}
        if report is not None:
            content = loading.shown_content(show, votes, reading, loaded.votes)
            writers[report] = lambda path: write_page(path, model, loaded, votes.name, content)
        readable = partial(write_readable, safe_csv=writing.safe_csv)
        if sources_out is not None:
            writers[sources_out] = lambda path: readable(path, model.sources_.to_arrow())
        if standings is not None:
            writers[standings] = lambda path: readable(path, standings_of(model, loaded.votes))
        if save is not None:
            writers[save] = model.save
        with output.working("labeling"):
            written, counts, table = write_predictions(model, loaded, reading, writing, writers)
    findings = model.diagnostics_
    sentence = in_options(verdict(model.source_model_, model.space, None if table is None else _confidence(table)))
    ranked = table is not None and "candidate" in table.column_names
    if table is not None and ranked:
        sentence = f"{leader(table)} {sentence}"
    output.text(sentence + (f" See {report}#contested." if report is not None and not ranked else ""))
    if table is not None and ranked:
        output.table(leaderboard(table))
    unit = model.space.unit(model.source_model_.parameters).name
    shown = model.sources_.shown()
    more = max(len(model.sources_) - BEST - WORST, 0)
    if more:
        shown = {
            name: [*texts[:BEST], "..." if name == "source" else "", *texts[-WORST:]] for name, texts in shown.items()
        }
    output.table(shown, needed=("source", unit, "weight", "advice"))
    if more:
        output.text(f"... {more:,} more sources; --sources-out FILE writes all of them.")
    output.text(model.sources_.note)
    output.findings(findings)
    output.text(written)
    for path, what in extra:
        output.text(f"Wrote {what} to {path}")
    if reading.engine is None:
        counts = {"report": report and str(report), **counts, "known": loaded.n_gold}
    output.document(
        {
            "labels": str(writing.target),
            "model": save and str(save),
            **counts,
            "receipt": loaded.receipt and loaded.receipt.to_json(in_options),
            "space": describe(loaded.space),
            "method": model.source_model_.method,
            "verdict": sentence,
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
@options.reading(space=False, engine="labels")
@options.writing
@options.printing
def predict(model: Path, votes: Path, reading: options.Reading, writing: options.Writing, output: Output) -> None:
    """Label VOTES with a previously fitted MODEL.

    The sources of the model are picked by name; other columns are ignored.
    """
    fitted = LabelModel.load(model)
    output = check_outputs(writing, reading, output)
    with opened(votes, reading, output, model=fitted) as loaded, output.working("labeling"):
        written, counts, _ = write_predictions(fitted, loaded, reading, writing)
    output.text(written)
    output.document({"labels": str(writing.target), "model": str(model), **counts})


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
    """Compare all methods on the items of VOTES whose label is known, and say how each differs from `auto`.

    No method sees the known label of an item it is scored on: `labelled` learns from four fifths of them and is scored
    on the last fifth, in turn; all others learn from votes alone. Items nobody voted on are left out. `other_labels` is
    the share of these items on which a method gives another label than `auto`.
    """
    loaded = loading.load(votes, reading, output, gold)
    rows = []
    auto: Any = None
    for method in loaded.space.law.methods:
        with output.working(f"method {method}"):
            row, labels = _scored(loaded, method, seed)
            auto = labels if method == "auto" else auto
            note = row.pop("note")
            if not loaded.space.continuous:
                both = labels is not None and auto is not None
                row["other_labels"] = float((loaded.space.distance(labels, auto) > SAME).mean()) if both else None
            rows.append({**row, "note": note})
    rows.sort(key=lambda row: (row["mean_distance"] is None, row["mean_distance"] or 0.0))
    output.table(columns_of(rows))
    output.document({"known": loaded.n_gold, "space": describe(loaded.space), "methods": rows})


@click.command(
    cls=Command,
    examples=(
        "consilience convert votes.csv votes.parquet",
        "consilience convert votes.csv votes-long.csv --to long",
        "consilience convert long.csv wide.jsonl --to wide",
        "consilience convert replies.jsonl judged.csv --from judges --to wide",
    ),
)
@click.argument("source_file", type=options.FILE, callback=options.table_file, metavar="IN")
@click.argument("target", type=options.FILE, metavar="OUT")
@click.option("--to", "layout_out", type=click.Choice(("wide", "long")), help="Layout of OUT; that of IN by default.")
@options.reading(space=False)
@options.FORCE
@options.printing
def convert(
    source_file: Path,
    target: Path,
    layout_out: str | None,
    reading: options.Reading,
    force: bool,
    output: Output,
) -> None:
    """Turn votes or labels into another file format or layout.

    The file extensions of IN and OUT set their formats: .csv, .tsv, .jsonl, .parquet, .arrow; text files may also end
    in .gz. - is the standard input or output. Without --to a table keeps its layout; files of other tools become long.
    """
    output = check_outputs(options.Writing(target, force=force), reading, output)
    as_it_is = replace(options.Reading(), delimiter=reading.delimiter, encoding=reading.encoding)
    if (
        layout_out is None
        and loading.origin_of(source_file, reading) == "table"
        and reading in (as_it_is, replace(as_it_is, origin="table"))
    ):
        table = loading.table_of(source_file, reading)
    else:
        votes, space, is_long = loading.read_raw(source_file, reading)
        output.receipt(votes.receipt)
        wide = layout_out == "wide" or (layout_out is None and not is_long)
        table = wide_table(votes, space) if wide else votes.to_long(space)
    write_all({target: lambda path: write_table(path, table)})
    output.text(f"Wrote {counted(table.num_rows, 'row')}, {counted(table.num_columns, 'column')} to {target}")
    output.document({"output": str(target), "rows": table.num_rows, "columns": table.column_names})


def check_outputs(
    writing: options.Writing, reading: options.Reading, output: Output, others: Sequence[Path] = ()
) -> Output:
    """Refuse, before any work, a target that labels cannot go to; return the output that leaves stdout to them."""
    target, force = writing.target, writing.force
    if writing.safe_csv and (reading.engine is not None or (target != STDOUT and file_format(target) != "csv")):
        raise click.UsageError(
            "--safe-csv is for labels in a CSV file. Leave it out, or give -o a name that ends in .csv."
        )
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
    reading: options.Reading,
    writing: options.Writing,
    others: Mapping[Path, Writer] | None = None,
) -> tuple[str, dict[str, Any], pa.Table | None]:
    """Write labels, to a folder if an engine makes them, and other files.

    Returns what to say, what was counted, and the table that was written where it is at hand: that of labels, or the
    leaderboard where all comparisons are about one row.
    """
    target, ties = writing.target, writing.ties
    if reading.engine is None:
        n_items = len(loaded.votes)
        ranks = isinstance(loaded.space, Preferences) and n_items == 1 and ties is None and reading.to is None
        table = standings_of(model, loaded.votes) if ranks else label_table(model, loaded.votes, ties=ties)

        def write(path: Path) -> None:
            if reading.to is None:
                write_readable(path, table, safe_csv=writing.safe_csv)
            else:
                loading.write_back(path, reading.to, model, loaded.votes, loaded.export)

        write_all({target: write, **(others or {})})
        known = f" ({loaded.n_gold} known)" if loaded.n_gold else ""
        what = "the leaderboard" if ranks else f"{counted(n_items, 'label')}{known}"
        return f"Wrote {what} to {target}", {"items": n_items}, table
    write_all(dict(others or {}))
    folder = predict_to(model, loaded.votes, target, ties=ties, resume=reading.resume, force=writing.force)
    skipped = f"; {counted(folder.n_skipped, 'cell')} without a valid label skipped" if folder.n_skipped else ""
    counts = {"items": folder.n_items, "files": folder.n_files, "skipped": folder.n_skipped, "engine": reading.engine}
    files = counted(folder.n_files, "file")
    return f"Wrote {counted(folder.n_items, 'label')} to {files} in {folder.path}{skipped}", counts, None


def _confidence(table: pa.Table) -> FloatArray | None:
    """Return the confidence of the labels of items that have a vote."""
    if "confidence" not in table.column_names:
        return None
    confidence: FloatArray = table.column("confidence").to_numpy()
    return confidence[table.column("n_votes").to_numpy() > 0]


def leaderboard(table: pa.Table) -> dict[str, list[str]]:
    """Return standings as people read them."""
    rows = table.to_pylist()
    return {
        "rank": [f"{row['rank']} ({row['rank_low']}-{row['rank_high']})" for row in rows],
        "candidate": [str(row["candidate"]) for row in rows],
        "score": [f"{row['score']:+.2f} ({row['score_low']:+.2f} to {row['score_high']:+.2f})" for row in rows],
        "win rate": [f"{row['win_rate']:.0%}" for row in rows],
        "comparisons": [f"{row['comparisons']:,}" for row in rows],
    }


def fit_votes(
    space: LabelSpace,
    votes: Any,
    gold: Any = None,
    method: str = "auto",
    pairs: Sequence[tuple[str, str]] | str = (),
    seed: int = 0,
    prior: str = "auto",
) -> LabelModel:
    """Return a fitted model; what it would warn of is in its diagnostics."""
    settings: dict[str, Any] = {"dependencies": pairs if isinstance(pairs, str) else list(pairs)} if pairs else {}
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
        raise refused(
            f"{type(space).__name__} has no list of labels, so its labels have no frequencies. Leave --prior out."
        )
    labels = [str(label) for label in space.as_labels(np.arange(space.n_labels), np.dtype(object)).tolist()]
    example = ",".join(f"{label}={1 / len(labels):.2g}" for label in labels[:4]) + ",..." * (len(labels) > 4)
    given: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        name = name.strip()
        if name not in labels:
            raise refused(f"{name or share!r} is not a label.{did_you_mean(name, labels)} Write --prior {example}.")
        try:
            given[name] = float(share)
        except ValueError:
            raise refused(f"{share!r} is not a number. Write --prior {example}.") from None
    for label in labels:
        if label not in given:
            raise refused(f"{label!r} is missing. Write --prior {example}.")
    total = sum(given.values())
    if abs(total - 1.0) > 0.01:  # shares such as 0.33 are rounded
        raise refused(f"the shares add up to {total:g}, not to 1. Write --prior {example}.")
    return [given[label] / total for label in labels]


def _scored(loaded: Loaded, method: str, seed: int) -> tuple[dict[str, Any], Any]:
    """Return one row of the table of methods, how far its labels are from the known ones, and these labels."""
    gold = np.array([], dtype=object) if loaded.gold is None else loaded.gold
    known = np.flatnonzero([label is not None for label in gold])
    distance, note = np.zeros(0), HOW_METHODS_DIFFER.get(method, "")
    labels: Any = None
    try:
        if method == "labelled" and len(known) < 2 * FOLDS:
            note = f"needs {2 * FOLDS} known labels"
        elif method == "labelled":
            note = f"quality from the known labels alone, {FOLDS} folds"
            rows = np.random.default_rng(seed).permutation(known)
            parts = []
            for fold in range(FOLDS):
                held_out = np.sort(rows[fold::FOLDS])
                kept = gold.copy()
                kept[held_out] = None
                model = fit_votes(loaded.space, loaded.votes, kept, "labelled", seed=seed)
                parts.append(_distances(loaded, model, held_out)[0])
            distance = np.concatenate(parts)
        else:
            model = fit_votes(loaded.space, loaded.votes, method=method, seed=seed)
            distance, labels = _distances(loaded, model, known)
            note = model.source_model_.reason if method == "auto" else note
    except ConsilienceError as error:
        note = str(error).split(". ", 1)[0]
    size = len(distance)
    right = {} if loaded.space.continuous else {"right": float((distance <= SAME).mean()) if size else None}
    row = {
        "method": method,
        "items": size,
        **right,
        "mean_distance": float(distance.mean()) if size else None,
        "standard_error": float(distance.std(ddof=1) / np.sqrt(size)) if size > 1 else None,
        "note": note,
    }
    return row, labels


def _distances(loaded: Loaded, model: LabelModel, rows: Any) -> tuple[FloatArray, Any]:
    """Return how far labels are from the known ones, on those of these items that somebody voted on, and the labels."""
    voted: BoolArray = loaded.votes.observed[rows].any(axis=1)
    if loaded.gold is None or not voted.any():
        return np.zeros(0), None
    chosen, space = rows[voted], loaded.space
    labels = space.as_batch(model.predict(loaded.votes[chosen]))
    return space.distance(labels, space.as_batch(loaded.gold[chosen])), labels
