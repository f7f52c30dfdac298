"""Claim: on real votes, confidence is what happens once thirty labels are known.

Sources of real votes share errors that no agreement between them shows, so that without known labels confidence is too
high. Classes: the label. Rankings: the order of each pair of items. Trees: the share of right heads in a sentence.
Scores: 95% intervals. Reads the folder that CONSILIENCE_DATA names, and parses in that of CONSILIENCE_CACHE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

import consilience as cs

from . import public_data
from .parsers import TREEBANKS, as_trees, find_parses, split_cache
from .rankings_real import GOOD, POOR
from .real_data import read_affect, read_all_dots, read_classes, read_films
from .scores_real import RATINGS, TO_TEN
from .tables import (
    CALIBRATION_BINS,
    QUICK,
    FloatArray,
    calibration_gap,
    data_folder,
    fit_quietly,
    markdown_table,
    mean_spread,
    read_settings,
    verdict,
    write_results,
)

KNOWN, LEVEL = 30, 0.95
LARGEST_ERROR, COVERED = 0.05, (0.90, 0.98)
#: Without known labels, the same measures of the first edition of the package (commit 73b6f8a) on the same votes.
BEFORE = {
    "youtube": 0.173,
    "sms": 0.014,
    "trec": 0.261,
    "semeval": 0.097,
    "hausa": 0.076,
    "preflib_dots, pairs": 0.028,
    "movies, 3 good, pairs": 0.064,
    "movies, 3 good + 3 poor, pairs": 0.103,
}
#: What was stated, and what was observed.
Pairs = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Case:
    """Votes and truth of one set, and how to compare stated confidence on some rows of it with what is true."""

    space: cs.LabelSpace
    votes: cs.Votes
    truth: Any
    compare: Callable[[cs.LabelModel, cs.Votes, Any], Pairs]


def of_labels(model: cs.LabelModel, votes: cs.Votes, truth: Any) -> Pairs:
    probabilities = model.predict_proba(votes)
    return probabilities.max(axis=1), (probabilities.argmax(axis=1) == truth).astype(float)


def of_pairs(model: cs.LabelModel, votes: cs.Votes, truth: FloatArray, *, best_last: bool) -> Pairs:
    """Compare every pair that the gold tells apart; gold are positions, or ratings, of which the best are largest."""
    left, right = np.triu_indices(truth.shape[1], 1)
    stated = model.posterior(votes).details["pair_probability"]
    ahead = np.sign(truth[:, right] - truth[:, left]) * (-1 if best_last else 1)
    told = ahead != 0
    right_order = ((ahead > 0) == (stated >= 0.5)).astype(float)
    return np.maximum(stated, 1.0 - stated)[told], right_order[told]


def of_heads(model: cs.LabelModel, votes: cs.Votes, truth: Any) -> Pairs:
    labels = model.predict(votes)
    right = [float(np.mean(np.asarray(one) == np.asarray(other))) for one, other in zip(labels, truth, strict=True)]
    return model.confidence(votes), np.array(right)


def of_intervals(model: cs.LabelModel, votes: cs.Votes, truth: FloatArray) -> Pairs:
    lower, upper = model.predict_distribution(votes).interval(LEVEL)
    return np.full(len(truth), LEVEL), ((lower <= truth) & (truth <= upper)).astype(float)


def cases(folder: Path, cache: Path, quick: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Yield the name of every set and how to read it."""
    for name in public_data.WRENCH[:1] if quick else public_data.WRENCH:
        yield name, partial(of_classes, folder, name)
    if quick:
        return
    yield "preflib_dots, pairs", partial(of_rankings, partial(read_all_dots, folder), best_last=False)
    for name, sources in (("3 good", GOOD), ("3 good + 3 poor", (*GOOD, *POOR))):
        yield f"movies, {name}, pairs", partial(of_rankings, partial(read_films, folder, list(sources)), best_last=True)
    for language, banks in TREEBANKS.items():
        for name, bank in banks.items():
            gold = folder / f"ud_{language}" / f"{bank}-ud-test.conllu.gz"
            if len(files := find_parses(cache, bank)) >= 3:
                yield f"{name}, heads", partial(of_trees, {"gold": gold, **files})
    yield "movies, intervals", partial(of_films, folder)
    yield "asset_judges, intervals", partial(of_judges, folder)
    yield "crowd_affect, intervals", partial(of_affect, folder)


def of_classes(folder: Path, name: str) -> Case:
    read = read_classes(folder, name)
    return Case(read.space, read.votes, read.truth, of_labels)


def of_rankings(read: Callable[[], Any], *, best_last: bool) -> Case:
    found = read()
    return Case(found.space, found.votes, found.truth, partial(of_pairs, best_last=best_last))


def of_trees(files: dict[str, Path]) -> Case:
    bank = cs.tables.read_conllu(files)
    checked, _ = as_trees(bank)
    votes = checked.votes.select([name for name in bank.sources if name != "gold"])
    return Case(cs.DependencyTrees(), votes, bank.trees("gold"), of_heads)


def of_films(folder: Path) -> Case:
    films = public_data.load_movies(folder)
    matrix = np.column_stack([films.good[name] for name in RATINGS]) / TO_TEN
    return Case(cs.Scores(), cs.Votes.from_array(matrix, sources=list(RATINGS)), films.rating, of_intervals)


def of_judges(folder: Path) -> Case:
    data = public_data.load_asset_judges(folder)
    return Case(cs.Scores(), data.votes, data.truth, of_intervals)


def of_affect(folder: Path) -> Case:
    read = read_affect(folder)
    return Case(read.space, read.votes, read.truth, of_intervals)


def known_some(case: Case, rng: np.random.Generator) -> Any:
    """Return gold of the rows of `KNOWN` items with a vote: for rankings by ratings, the order that they are in."""
    rows = np.flatnonzero(case.votes.observed.any(axis=1))
    told = np.isin(np.arange(len(case.votes)), rng.permutation(rows)[:KNOWN])
    gold = case.truth
    if isinstance(case.space, cs.Rankings) and np.issubdtype(np.asarray(gold).dtype, np.floating):
        gold = cs.Rankings.positions_from_scores(gold)
    return (gold, told)


def score(case: Case, gap: Callable[[Pairs], float], gold: Any = None) -> float:
    """Fit, and compare stated and observed on the items with a vote that are not known."""
    model = fit_quietly(cs.LabelModel(case.space, random_state=0), case.votes, gold=gold)
    told = np.zeros(len(case.votes), dtype=bool) if gold is None else gold[1]
    rows = np.flatnonzero(case.votes.observed.any(axis=1) & ~told)
    return gap(case.compare(model, case.votes[rows], case.truth[rows]))


def measure(case: Case, draws: int) -> tuple[float, FloatArray]:
    """Return what is measured without known labels, and for each draw of them."""
    intervals = case.compare is of_intervals

    def gap(pairs: Pairs) -> float:
        return float(pairs[1].mean()) if intervals else calibration_gap(*pairs)

    return score(case, gap), np.array(
        [score(case, gap, known_some(case, np.random.default_rng(one))) for one in range(draws)]
    )


def judged(name: str, without: float, known: FloatArray) -> list[str]:
    """Return the verdicts on one set."""
    reached, first = float(known.mean()), BEFORE.get(name)
    if name.endswith("intervals"):
        least, most = COVERED
        claim = f"{name}, {KNOWN} known: {LEVEL:.0%} intervals cover {least:.0%} to {most:.0%}"
        return [verdict(claim, least <= reached <= most, f"{reached:.3f}")]
    lines = [
        verdict(f"{name}, {KNOWN} known: off by at most {LARGEST_ERROR}", reached <= LARGEST_ERROR, f"{reached:.3f}")
    ]
    if first is not None:
        claim = f"{name}, nothing known: at most half of what the first edition was off by"
        lines.append(verdict(claim, without <= first / 2.0, f"{without:.3f}, first edition {first:.3f}"))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all sets and write ``calibration_real.md``."""
    cache, left = split_cache(arguments)
    settings = read_settings("experiments.calibration_real", __doc__, 10, 1, left)
    rows, lines = [], []
    for name, read in track(
        [*cases(data_folder("wrench", "movies", "preflib_dots"), cache, settings.quick)], description="sets"
    ):
        case = read()
        without, known = measure(case, settings.seeds)
        items = int(case.votes.observed.any(axis=1).sum())
        first = BEFORE.get(name)
        rows.append(
            [name, str(items), "-" if first is None else f"{first:.3f}", f"{without:.3f}", mean_spread(known, 3)]
        )
        lines += judged(name, without, known)
    blocks = [
        "Classes, pairs of rankings and heads of trees: expected calibration error, the mean distance of stated and "
        f"observed over {CALIBRATION_BINS} bins of confidence. Intervals: share of the truths inside the central "
        f"{LEVEL:.0%} interval. Measured on items with a vote that are not known. The known ones are drawn at random; "
        "the spread over draws is beside the mean. *first edition*: nothing known, commit 73b6f8a.",
        markdown_table(["data", "items", "first edition", "nothing known", f"{KNOWN} known"], rows),
        "## Targets",
        QUICK if settings.quick else "\n".join(lines),
    ]
    title, described = "Calibration on real votes", [f"{settings.seeds} draws of {KNOWN} known labels"]
    write_results(settings.results / "calibration_real.md", title, settings.command, described, blocks)


if __name__ == "__main__":
    main()
