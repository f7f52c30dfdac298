"""Claim: the consensus of real parsers trained on other treebanks, with thirty known sentences, matches the best one.

Reads gold trees from the folder that CONSILIENCE_DATA names, and the output of parsers from a cache folder:
``<cache>/<treebank>/<parser>.conllu`` (or ``.conllu.gz``), the gold tokens with the parser's HEAD and DEPREL. The
folder comes from ``--cache``, or the variable CONSILIENCE_CACHE, or is ``experiments/cache``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    Settings,
    fit_quietly,
    markdown_table,
    read_settings,
    verdict,
    write_results,
)
from .trees import data_folder

CACHE = Path(__file__).resolve().parent / "cache"
#: Test sets by language, whose tables are ``parsers.md`` and ``parsers_czech.md``. Of the Czech ones PUD alone has
#: parsers of two other treebanks.
TREEBANKS = {
    "english": {"EWT": "en_ewt", "LinES": "en_lines", "ParTUT": "en_partut"},
    "czech": {"PUD": "cs_pud"},
}
KNOWN = 30


@dataclass(frozen=True)
class Measured:
    """UAS and LAS of each parser and of each way to combine them; one entry per draw of known sentences."""

    sentences: int
    changed: int
    parsers: dict[str, tuple[float, float]]
    combined: dict[str, tuple[FloatArray, FloatArray]]
    error: dict[str, FloatArray]
    gain: FloatArray  # of known sentences over the best parser, on the sentences that are not known

    @property
    def best(self) -> float:
        """UAS of the best single parser."""
        return max(uas for uas, _ in self.parsers.values())


def find_parses(cache: Path, treebank: str) -> dict[str, Path]:
    """Return the files of one test set by the name of the parser."""
    name = treebank.split("_")[1]
    folders = [folder for folder in sorted(cache.glob("*")) if folder.is_dir() and name in folder.name.lower()]
    paths = [path for folder in folders[:1] for path in sorted(folder.glob("*.conllu*"))]
    return {path.name.removesuffix(".gz").removesuffix(".conllu"): path for path in paths}


def nearest_tree(heads: IntArray) -> IntArray:
    """Return the tree with the most of these heads; parsers may return several roots, or a cycle."""
    score = np.zeros((len(heads) + 1, len(heads) + 1))
    score[heads, np.arange(1, len(heads) + 1)] = 1.0
    return cs.trees.maximum_arborescence(score)


def as_trees(bank: cs.tables.Treebank) -> tuple[cs.tables.Treebank, int]:
    """Return the parses with those that are no trees put right, and how many these are."""
    space, changed = cs.DependencyTrees(), 0
    parsers = {}
    for name, sentences in bank.parsers.items():
        kept = []
        for sentence in sentences:
            right = sentence.heads is None or space.contains(sentence.heads)
            changed += not right
            kept.append(sentence if right else sentence.with_tree(nearest_tree(sentence.heads)))
        parsers[name] = tuple(kept)
    return cs.tables.Treebank(parsers), changed


def combine(bank: cs.tables.Treebank, gold: str, draws: int) -> Measured:
    """Score the parsers of a treebank, and what is made of them together."""
    names = [name for name in bank.sources if name != gold]
    space = cs.DependencyTrees(bank.relations)
    checked, changed = as_trees(bank)
    votes = checked.votes_with_relations.select(names)
    truth = bank.trees(gold, with_relations=True)
    single = {}
    for name in names:
        trees = bank.trees(name, with_relations=True)
        single[name] = (cs.trees.uas(trees, truth), cs.trees.las(trees, truth))
    combined: dict[str, tuple[FloatArray, FloatArray]] = {}
    error = {"true": np.array([1.0 - single[name][0] for name in names])}
    for title, method in (("equal weights", "majority"), ("unsupervised", "auto")):
        model = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes)
        labels = model.predict(votes)
        combined[title] = (np.array([cs.trees.uas(labels, truth)]), np.array([cs.trees.las(labels, truth)]))
        if method == "auto":
            error[title] = model.expected_cost_
    scores, rates, gain = [], [], []
    best = bank.trees(max(single, key=lambda name: single[name][0]))
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        told = np.isin(np.arange(len(truth)), rng.permutation(len(truth))[:KNOWN])
        model = fit_quietly(cs.LabelModel(space, random_state=0), votes, gold=(truth, told))
        labels, rest = model.predict(votes), np.flatnonzero(~told)
        chosen = rest if len(rest) else np.arange(len(truth))  # known sentences are not scored
        scores.append((cs.trees.uas(labels[chosen], truth[chosen]), cs.trees.las(labels[chosen], truth[chosen])))
        gain.append(scores[-1][0] - cs.trees.uas(best[chosen], truth[chosen]))
        rates.append(model.expected_cost_)
    known = f"{KNOWN} known sentences"
    combined[known] = (np.array([uas for uas, _ in scores]), np.array([las for _, las in scores]))
    error[known] = np.mean(rates, axis=0)
    return Measured(len(truth), changed, single, combined, error, np.array(gain))


def score_table(measured: dict[str, Measured]) -> str:
    rows = []
    for treebank, one in measured.items():
        for name, (uas, las) in sorted(one.parsers.items(), key=lambda item: -item[1][0]):
            rows.append([f"{treebank}: {name}", f"{uas:.4f}", "", f"{las:.4f}", ""])
        for title, (uas_draws, las_draws) in one.combined.items():
            spread = [f"{values.std(ddof=1):.4f}" if len(values) > 1 else "" for values in (uas_draws, las_draws)]
            rows.append(
                [f"{treebank}: **{title}**", f"{uas_draws.mean():.4f}", spread[0], f"{las_draws.mean():.4f}", spread[1]]
            )
    return markdown_table(["test set: source", "UAS", "sd", "LAS", "sd"], rows)


def error_table(measured: dict[str, Measured]) -> str:
    rows = []
    for treebank, one in measured.items():
        for place, name in enumerate(one.parsers):
            rows.append([f"{treebank}: {name}", *(f"{values[place]:.3f}" for values in one.error.values())])
    return markdown_table(["share of wrong heads", *next(iter(measured.values())).error], rows)


def verdicts(measured: dict[str, Measured]) -> str:
    known = f"{KNOWN} known sentences"
    gains = {name: float(one.gain.mean()) for name, one in measured.items()}
    as_good = [name for name, gain in gains.items() if gain >= 0]
    lines = [
        verdict(
            f"With {KNOWN} known sentences at least as good as the best single parser on two thirds of the test sets",
            3 * len(as_good) >= 2 * len(measured),
            "; ".join(f"{name} {gain:+.4f}" for name, gain in gains.items()),
        )
    ]
    for name, one in measured.items():
        plain, equal = (float(one.combined[rule][0].mean()) for rule in ("unsupervised", "equal weights"))
        lines.append(
            verdict(f"{name}: not below equal weights", plain >= equal, f"{plain:.4f}, equal weights {equal:.4f}")
        )
        lines.append(
            f"- {name}: best parser {one.best:.4f}, equal weights {one.combined['equal weights'][0].mean():.4f}, "
            f"unsupervised {plain:.4f} ({plain - one.best:+.4f}), {known} {one.combined[known][0].mean():.4f} "
            f"({one.gain.mean():+.4f} on the same sentences)."
        )
    return "\n".join(lines)


def split_cache(arguments: Sequence[str] | None) -> tuple[Path, list[str]]:
    """Return the cache folder, and the arguments that are left."""
    left = list(sys.argv[1:] if arguments is None else arguments)
    if "--cache" in left:
        place = left.index("--cache")
        if place + 1 == len(left):
            raise SystemExit("--cache needs a folder. Give the one that holds the output of the parsers.")
        return Path(left[place + 1]), left[:place] + left[place + 2 :]
    named = os.environ.get("CONSILIENCE_CACHE")
    return (Path(named) if named else CACHE), left


def main(arguments: Sequence[str] | None = None) -> None:
    """Score all test sets and write ``parsers.md`` and ``parsers_czech.md``."""
    cache, left = split_cache(arguments)
    settings = read_settings("experiments.parsers", __doc__, seeds=20, quick_seeds=2, arguments=left)
    parses = {
        language: {name: find_parses(cache, folder) for name, folder in banks.items()}
        for language, banks in TREEBANKS.items()
    }
    ready = [language for language, found in parses.items() if min(map(len, found.values())) >= 3]
    if not ready:
        raise SystemExit(
            "The cache of parses has fewer than three parsers for some test set of every language. Expected files such "
            f"as {Path('<cache>') / 'en_ewt' / '<parser>.conllu'}; name the folder by --cache or CONSILIENCE_CACHE, "
            "and fill it with `python -m experiments.train_parsers`."
        )
    for language in ready:
        write_table(settings, language, parses[language])
    for language in parses.keys() - ready:
        print(f"{language}: left out, as the cache has fewer than three parsers for some test set.")


def write_table(settings: Settings, language: str, parses: dict[str, dict[str, Path]]) -> None:
    """Score the test sets of a language."""
    folder, measured = data_folder().parent / f"ud_{language}", {}
    for name, files in track(parses.items(), description=language):
        gold = folder / f"{TREEBANKS[language][name]}-ud-test.conllu.gz"
        bank = cs.tables.read_conllu({"gold": gold, **files})
        measured[name] = combine(bank, "gold", settings.seeds)
    blocks = [
        "Parsers were trained on other treebanks than the one they are tested on, and see its gold tokens. Equal "
        "weights and unsupervised are scored on all sentences; known sentences, which are drawn at random, are left "
        "out of the score of their row, and the spread over draws is beside it. The targets compare with the best "
        "parser on the same sentences.",
        score_table(measured),
        "How far each parser can be trusted (known sentences: mean over draws):",
        error_table(measured),
        "## Targets",
        QUICK if settings.quick else verdicts(measured),
    ]
    described = [
        f"{sum(one.sentences for one in measured.values()):,} test sentences",
        f"{settings.seeds} draws of {KNOWN} known sentences",
        f"{sum(one.changed for one in measured.values())} parses were no trees and became the nearest ones",
    ]
    title = f"Dependency trees: real parsers across treebanks, {language.capitalize()}"
    path = settings.results / ("parsers.md" if language == "english" else f"parsers_{language}.md")
    write_results(path, title, settings.command, described, blocks)


if __name__ == "__main__":
    main()
