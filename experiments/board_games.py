"""Claim: simulated sources and simple heuristics rank and rate board games as the paper reports.

Reads ``bgg`` (an earlier and smaller table of the site) or the paper's ``board_games/games_detailed_info.csv`` from the
folder that CONSILIENCE_DATA names, or the file given with ``--table``.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

import consilience as cs

from . import public_data
from .film_sets import SET_SIZE, RankedSets, draw_sets, end_model_errors, supervised_errors
from .plots import Panel, draw
from .rankings_paper import draw_weights
from .regression_synthetic import NOISE, draw_votes
from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    fit_quietly,
    markdown_table,
    mean_spread,
    read_settings,
    verdict,
    write_results,
)

TRAIN, TEST = 5000, 1000
SOURCES = (3, 6, 9, 12, 15, 18)
LAW = "1/3 U(.2, 1)"
RANKING_SHARES, RATING_SHARES = (0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.1, 0.25, 0.5, 1.0)
#: Kendall errors that are stored with the paper's code, by simulated sources, and of single rows: printed for the
#: heuristics and up to 10% of the gold, stored for more.
STORED = {3: 0.16803, 6: 0.16348, 9: 0.15947, 12: 0.15975, 15: 0.15824, 18: 0.15781}
PAPER_RANKING = {
    "supervised, 5%": 0.1921,
    "supervised, 10%": 0.1829,
    "supervised, 20%": 0.1720,
    "supervised, 50%": 0.1626,
    "supervised, 100%": 0.1555,
    "heuristics, ours": 0.1915,
}
#: Mean squared errors by simulated sources, and of single rows: printed in the table, or by the paper's code.
PRINTED = {3: 0.3005, 6: 0.2881, 9: 0.2832, 12: 0.2834, 15: 0.2806, 18: 0.2828}
PAPER_RATING = {
    "supervised, 1%": 0.4605,
    "supervised, 10%": 0.3186,
    "supervised, 50%": 0.2871,
    "supervised, 100%": 0.2836,
    "bad subset, 10%": 0.8043,
    "bad subset, 25%": 0.4628,
    "heuristics, ours": 0.8824,
}
BAD_SHARES = (0.1, 0.25)

Cells = dict[str, list[float]]


def heuristics(games: public_data.BoardGames, rows: FloatArray) -> FloatArray:
    """Return sources of ratings: logarithms of counts on the scale of ratings, cut at three standard deviations."""
    logs = np.column_stack([np.log1p(np.maximum(values, 0.0)) for values in games.sources.values()])
    spread = logs[rows].std(axis=0)
    standard = np.clip((logs - logs[rows].mean(axis=0)) / np.where(spread > 0, spread, 1.0), -3.0, 3.0)
    known = games.rating[rows]
    return float(known.mean()) + float(known.std()) * standard


def run_rankings(games: public_data.BoardGames, seeds: int, counts: Sequence[int], sizes: tuple[int, int]) -> Cells:
    """Return Kendall errors of end models by row."""
    found: Cells = defaultdict(list)
    space = cs.Rankings(SET_SIZE)
    for seed in track(range(seeds), description="rankings"):
        train, test = draw_sets(games.features, -games.rank, *sizes, np.random.default_rng(seed))
        for share in RANKING_SHARES:
            found[f"supervised, {share:.0%}"].append(supervised_errors(train, test, share, seed).skipped)
        for m in counts:
            rng = np.random.default_rng([seed, m])
            votes = cs.simulate(space, train.strict, draw_weights(LAW, m, rng), rng)
            label_and_train(found, f"{m} simulated", votes, train, test, seed)
        label_and_train(found, "heuristics", train.votes_by(dict(games.sources)), train, test, seed)
    return found


def label_and_train(found: Cells, name: str, votes: cs.Votes, train: RankedSets, test: RankedSets, seed: int) -> None:
    """Add the errors of the labels and of a network trained on them, by the plain vote and by ours."""
    for rule, method in (("majority", "majority"), ("ours", "auto")):
        model = fit_quietly(cs.LabelModel(cs.Rankings(SET_SIZE), method=method, random_state=0), votes)
        labels = model.predict(votes)
        found[f"{name}, {rule}: labels"].append(train.errors(labels).skipped)
        found[f"{name}, {rule}"].append(end_model_errors(train, test, labels, seed).skipped)


def run_ratings(games: public_data.BoardGames, seeds: int, counts: Sequence[int], trees: int) -> Cells:
    """Return mean squared errors of end models by row."""
    found: Cells = defaultdict(list)
    for seed in track(range(seeds), description="ratings "):
        order = np.random.default_rng(seed).permutation(len(games))
        cut = int(0.75 * len(order))
        train, test = order[:cut], order[cut:]
        truth = games.rating
        told = cs.Scores(mean=float(truth[train].mean()), variance=float(truth[train].var()))

        for share in RATING_SHARES:
            rows = train[: max(2, round(share * len(train)))]
            found[f"supervised, {share:.0%}"].append(rating_error(games, truth[rows], rows, test, trees))
        for share, rows in bad_subsets(games.features[train], truth[train]).items():
            chosen = train[rows]
            found[f"bad subset, {share:.0%}"].append(rating_error(games, truth[chosen], chosen, test, trees))
        panels = {f"{m} simulated": draw_simulated(truth[train], m, seed) for m in counts}
        panels["heuristics"] = heuristics(games, train)[train]
        for name, matrix in panels.items():
            votes = cs.Votes.from_array(matrix)
            labels = fit_quietly(cs.LabelModel(told, random_state=0), votes).predict(votes)
            for rule, given in (("ours", labels), ("mean", matrix.mean(axis=1))):
                found[f"{name}, {rule}: labels"].append(float(np.mean((given - truth[train]) ** 2)))
                found[f"{name}, {rule}"].append(rating_error(games, given, train, test, trees))
    return found


def bad_subsets(features: FloatArray, rating: FloatArray) -> dict[float, IntArray]:
    """Return the shares of the games that a linear regression fits worst: the paper's "bad" subsets."""
    design = np.column_stack([np.ones(len(rating)), (features - features.mean(axis=0)) / features.std(axis=0)])
    residual = np.abs(rating - design @ np.linalg.lstsq(design, rating)[0])
    worst = np.argsort(-residual, kind="stable")
    return {share: worst[: round(share * len(rating))] for share in BAD_SHARES}


def rating_error(
    games: public_data.BoardGames, labels: FloatArray, rows: FloatArray, test: FloatArray, trees: int
) -> float:
    model = cs.end_models.gradient_boosting(n_estimators=trees, random_state=0).fit(games.features[rows], labels)
    return float(np.mean((model.predict(games.features[test]) - games.rating[test]) ** 2))


def draw_simulated(truth: FloatArray, m: int, seed: int) -> FloatArray:
    center = float(truth.mean())
    return center + draw_votes(truth - center, np.full(m, NOISE), np.random.default_rng([seed, m]))


def table_of(found: Cells, curve: dict[int, float], printed: dict[str, float]) -> str:
    theirs = {f"{m} simulated, ours": value for m, value in curve.items()} | printed
    rows = [
        [
            name,
            mean_spread(found[f"{name}: labels"]) if f"{name}: labels" in found else "",
            mean_spread(values),
            f"{theirs[name]:.4f}" if name in theirs else "",
        ]
        for name, values in found.items()
        if not name.endswith(": labels")
    ]
    return markdown_table(["", "labels", "end model", "paper"], rows)


def panel(title: str, found: Cells, counts: Sequence[int], baseline: str, curve: dict[int, float]) -> Panel:
    curves = {
        name: (counts, [float(np.mean(found[f"{m} simulated, {name}"])) for m in counts]) for name in (baseline, "ours")
    }
    known = [m for m in counts if m in curve]
    curves["reference"] = (known, [curve[m] for m in known])
    levels = {f"{share} of the gold": float(np.mean(found[f"supervised, {share}"])) for share in ("10%", "100%")}
    return Panel(title, "simulated sources", "error of the end model", curves, levels)


def verdicts(rankings: Cells, ratings: Cells, counts: Sequence[int]) -> str:
    ranked, rated = ({name: float(np.mean(values)) for name, values in cells.items()} for cells in (rankings, ratings))
    lines = []
    for what, found, other in (("rankings", ranked, "majority"), ("ratings", rated, "mean")):
        for part in ("", ": labels"):
            gaps = {m: found[f"{m} simulated, ours{part}"] - found[f"{m} simulated, {other}{part}"] for m in counts}
            worst = max(gaps, key=lambda m: gaps[m])
            claim = f"{what}, simulated sources{part}: not above the plain vote (to .002) at any number"
            lines.append(verdict(claim, gaps[worst] <= 0.002, f"at worst {gaps[worst]:+.4f}, with {worst}"))
            ours, plain = found[f"heuristics, ours{part}"], found[f"heuristics, {other}{part}"]
            claim = f"{what}, heuristics{part}: not above the plain vote (to .002)"
            lines.append(verdict(claim, ours <= plain + 0.002, f"{ours:.4f} against {plain:.4f}"))
        few, many = (found[f"{m} simulated, ours"] for m in (counts[0], counts[-1]))
        claim = f"{what}, paper: more sources train a better model"
        lines.append(verdict(claim, many < few, f"{few:.4f} with {counts[0]}, {many:.4f} with {counts[-1]}"))
    gold, twelve = ranked["supervised, 20%"], min(ranked[f"{m} simulated, ours"] for m in counts if m <= 12)
    claim = "rankings, paper: twelve sources beat 20% of the gold"
    lines.append(verdict(claim, twelve < gold, f"{twelve:.4f} against {gold:.4f}"))
    ours, gold = ranked["heuristics, ours"], ranked["supervised, 5%"]
    claim = "rankings, paper: heuristics are as good as 5% of the gold"
    lines.append(verdict(claim, ours <= gold, f"{ours:.4f} against {gold:.4f}"))
    ours, bad = rated["heuristics, ours"], rated["bad subset, 10%"]
    claim = "ratings, paper: heuristics are comparable to a bad subset of 10% (within a tenth)"
    lines.append(verdict(claim, ours <= 1.1 * bad, f"{ours:.4f} against {bad:.4f}"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run rankings and ratings where the table is there, and write ``board_games.md``."""
    parser = argparse.ArgumentParser(prog="python -m experiments.board_games", add_help=False)
    parser.add_argument("--table", type=Path)
    given, rest = parser.parse_known_args(arguments)
    settings = read_settings("experiments.board_games", f"{__doc__}\n--table: the file", 3, 1, rest, full_seeds=10)
    try:
        games = public_data.load_board_games(given.table)
    except public_data.MissingDataError as error:
        raise SystemExit(str(error)) from None
    counts = (3, 9) if settings.quick else SOURCES
    sizes, trees = ((100, 40), 20) if settings.quick else ((TRAIN, TEST), 250)
    rankings = run_rankings(games, settings.seeds, counts, sizes)
    ratings = run_ratings(games, settings.seeds, counts, trees)
    panels = [
        panel("rankings", rankings, counts, "majority", STORED),
        panel("ratings", ratings, counts, "mean", PRINTED),
    ]
    blocks = [
        f"{len(games):,} games that have a rank, a quarter of them for testing. Rankings: the paper's network on sets "
        f"of five, Kendall error against the site's own rank; simulated sources have weights {LAW}, as in the text. "
        "Ratings: gradient boosting, mean squared error, mean and variance of the ratings known; simulated sources say "
        "0.6 y plus noise of variance 0.2. *heuristics*: how many own, trade, want, wish and comment; for ratings "
        "their logarithms, on the scale of the ratings. *bad subset*: the gold of the games that a linear regression "
        "fits worst. The paper has the table of 2021 with about 19,200 games.",
        "## Targets",
        QUICK if settings.quick else verdicts(rankings, ratings, counts),
        *draw(settings.results / "board_games.png", panels),
        "## Rankings",
        table_of(rankings, STORED, PAPER_RANKING),
        "## Ratings",
        table_of(ratings, PRINTED, PAPER_RATING),
    ]
    described = [f"splits and models with seeds 0..{settings.seeds - 1}"]
    write_results(settings.results / "board_games.md", "Board games", settings.command, described, blocks)


if __name__ == "__main__":
    main()
