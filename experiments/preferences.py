"""Claim: weighting judges of pairwise comparisons helps if they differ, and costs nothing if they do not.

One arena of thirty items, and many prompts with two to eight candidates. Judges differ in skill, in their bias toward
the first answer and in how often they declare a tie. Also copies of a biased judge, repeated runs, and intervals.
Settings and seeds are those of an earlier simulation study. Its numbers are shown next to ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .preference_draws import Comparisons, draw_arena, draw_copies, draw_coverage, draw_prompts, draw_runs
from .tables import (
    QUICK,
    FloatArray,
    Settings,
    fit_quietly,
    markdown_table,
    read_settings,
    signed,
    verdict,
    write_results,
)

DENSITIES = (2, 5, 20, 80)
#: Kendall's tau of the study's default in an arena, by scenario, for DENSITIES comparisons per item.
NOTE_ARENA = {
    "hom": (0.525, 0.714, 0.836, 0.922),
    "het": (0.442, 0.624, 0.839, 0.914),
    "noise": (0.387, 0.635, 0.836, 0.922),
    "adv": (0.420, 0.685, 0.857, 0.919),
    "hom-pos": (0.508, 0.661, 0.858, 0.909),
    "het-pos": (0.451, 0.607, 0.811, 0.908),
    "het-tie": (0.408, 0.565, 0.805, 0.913),
    "het-pos-tie": (0.361, 0.565, 0.795, 0.912),
}
#: Scenario, prompts, candidates, judges, share of pairs judged; tau of the study's default and of equal judges.
NOTE_PROMPTS = {
    ("hom", 300, 2, 5, 1.0): (0.732, 0.732),
    ("hom", 200, 4, 5, 0.5): (0.699, 0.703),
    ("het", 300, 2, 5, 1.0): (0.823, 0.744),
    ("het", 200, 4, 5, 0.5): (0.699, 0.652),
    ("noise", 300, 2, 5, 1.0): (0.762, 0.688),
    ("noise", 200, 4, 5, 0.5): (0.672, 0.576),
    ("het-pos-tie", 300, 2, 5, 1.0): (0.726, 0.652),
    ("het-pos-tie", 200, 4, 5, 0.5): (0.647, 0.607),
    ("hom", 20, 2, 5, 1.0): (0.588, 0.663),
    ("het", 20, 2, 5, 1.0): (0.550, 0.588),
    ("hom", 20, 4, 5, 1.0): (0.806, 0.819),
    ("het", 20, 4, 5, 1.0): (0.779, 0.744),
    ("hom", 50, 2, 5, 1.0): (0.730, 0.720),
    ("het", 50, 2, 5, 1.0): (0.735, 0.715),
    ("hom", 50, 4, 5, 1.0): (0.800, 0.802),
    ("het", 50, 4, 5, 1.0): (0.818, 0.775),
    ("het", 60, 8, 5, 0.3): (0.711, 0.675),
    ("het", 300, 2, 3, 1.0): (0.642, 0.643),
    ("het", 300, 2, 10, 1.0): (0.836, 0.768),
}
#: Kind of the copied judge, copies, comparisons per judge, share repeated; tau of the study's default.
NOTE_COPIES = {
    ("biased", 2, 300, 0.9): 0.857,
    ("biased", 3, 300, 0.9): 0.855,
    ("biased", 5, 300, 0.9): 0.852,
    ("biased", 3, 80, 0.9): 0.677,
    ("biased", 3, 300, 0.5): 0.511,
    ("noise", 3, 300, 0.9): 0.868,
    ("none", 5, 300, 0.0): 0.880,
}
#: Equal judges are drawn so many times per seed, from other seeds, as single draws scatter by three hundredths.
EQUAL_KINDS, EQUAL_DRAWS, EQUAL_SEED = ("hom", "hom-pos"), 6, 10_000
TAU_LIMIT, COPY_LIMIT, COVERAGE = 0.01, 0.03, (0.92, 0.98)
NORMAL = 1.959964


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    settings = read_settings("experiments.preferences", __doc__, 10, 1, arguments)
    arena, arena_claims = arenas(settings)
    alike, alike_claims = equals(settings)
    prompts, prompt_claims = many_prompts(settings)
    copied, copy_claims = copies(settings)
    covered, coverage_claims = coverage(settings)
    claims = [*arena_claims, *alike_claims, *prompt_claims, *copy_claims, *coverage_claims]
    write_results(
        settings.results / "preferences.md",
        "Preferences",
        settings.command,
        [f"{settings.seeds} seeds for arenas and copies, {max(settings.seeds - 2, 1)} for prompts"],
        [
            QUICK if settings.quick else "\n".join(claims),
            "Kendall's tau with the true ranking. *equal*: every judge counts the same, no position bias "
            "(`predict_baseline`). *study*: the default of the earlier study on the same draws.",
            "## One arena: 5 judges, 30 items",
            arena,
            "## Judges of one quality: many more arenas",
            alike,
            "## Many prompts: tau within the prompt",
            prompts,
            "## Copies: 3 good judges and copies of another one; 30 items",
            copied,
            "## Intervals of 95%, and repeated runs",
            covered,
        ],
    )


def arenas(settings: Settings) -> tuple[str, list[str]]:
    """Compare the ranking of an arena with the truth, by scenario and number of comparisons."""
    names = ["hom", "adv"] if settings.quick else list(NOTE_ARENA)
    densities = DENSITIES[:2] if settings.quick else DENSITIES
    rows, gaps = [], []
    for name in track(names, description="arenas", transient=True):
        for place, per_item in enumerate(densities):
            taus = np.array([_arena_taus(draw_arena(seed, name, per_item)) for seed in range(settings.seeds)])
            own = taus[:, 0].mean()
            note = NOTE_ARENA[name][place]
            gaps.append((own - note, f"{name} at {per_item}"))
            rows.append(
                [f"{name}, {per_item} per item", _with_spread(taus[:, 0]), _with_spread(taus[:, 1]), f"{note:.3f}"]
            )
    worst = min(gaps)
    return markdown_table(["setting", "default", "equal", "study"], rows), [
        verdict(
            f"an arena is ranked as well as in the study, to {TAU_LIMIT}",
            worst[0] >= -TAU_LIMIT,
            f"largest gap {signed(worst[0], 3)}, {worst[1]}",
        )
    ]


def equals(settings: Settings) -> tuple[str, list[str]]:
    """Weigh judges of one quality, with and without position bias, in so many arenas that a hundredth can be seen."""
    rows, lost = [], []
    cases = [("hom", 2)] if settings.quick else [(name, per_item) for name in EQUAL_KINDS for per_item in DENSITIES[:3]]
    for name, per_item in track(cases, description="equal judges", transient=True):
        draws = range(EQUAL_SEED, EQUAL_SEED + EQUAL_DRAWS * settings.seeds)
        taus = np.array([_arena_taus(draw_arena(seed, name, per_item)) for seed in draws])
        loss = taus[:, 1] - taus[:, 0]
        lost.append((float(loss.mean()), f"{name} at {per_item}"))
        error = loss.std() / np.sqrt(len(loss))
        rows.append(
            [
                f"{name}, {per_item} per item",
                *(f"{mean:.3f}" for mean in taus.mean(axis=0)),
                f"{signed(float(loss.mean()), 4)} ± {error:.4f}",
            ]
        )
    worst = max(lost)
    return markdown_table(["setting", "default", "equal", "lost by weighing"], rows), [
        verdict(
            f"equal judges lose at most {TAU_LIMIT} by being weighed, with and without position bias",
            worst[0] <= TAU_LIMIT,
            f"largest loss {worst[0]:.4f}, {worst[1]}",
        )
    ]


def many_prompts(settings: Settings) -> tuple[str, list[str]]:
    """Compare the rankings of small groups of candidates with the truth."""
    cases = list(NOTE_PROMPTS)[4:5] if settings.quick else list(NOTE_PROMPTS)
    rows, gaps, lost = [], [], []
    for case in track(cases, description="prompts", transient=True):
        name, n_prompts, size, judges, share = case
        taus = np.array(
            [
                _prompt_taus(draw_prompts(seed, name, n_prompts, size, judges, share))
                for seed in range(max(settings.seeds - 2, 1))
            ]
        )
        own, equal = taus.mean(axis=0)
        note, _ = NOTE_PROMPTS[case]
        gaps.append((own - note, f"{name} {n_prompts} x {size}, {judges} judges"))
        if name == "hom":
            lost.append((float(equal - own), f"{n_prompts} x {size}"))
        title = f"{name}, {n_prompts} x {size}, {judges} judges, {share:g} of the pairs"
        rows.append([title, _with_spread(taus[:, 0]), _with_spread(taus[:, 1]), f"{note:.3f}"])
    worst = min(gaps)
    claims = [
        verdict(
            f"prompts are ranked as well as in the study, to {TAU_LIMIT}",
            worst[0] >= -TAU_LIMIT,
            f"largest gap {signed(worst[0], 3)}, {worst[1]}",
        )
    ]
    if lost:
        loss = max(lost)
        claims.append(
            verdict(
                f"equal judges of prompts lose at most {TAU_LIMIT} by being weighed",
                loss[0] <= TAU_LIMIT,
                f"largest loss {loss[0]:.3f}, {loss[1]}",
            )
        )
    return markdown_table(["setting", "default", "equal", "study"], rows), claims


def copies(settings: Settings) -> tuple[str, list[str]]:
    """Let copies of one judge outnumber three good ones."""
    cases = list(NOTE_COPIES)[1:2] if settings.quick else list(NOTE_COPIES)
    rows, claims = [], []
    for case in track(cases, description="copies", transient=True):
        kind, number, per_judge, repeated = case
        taus, worth = [], []
        for seed in range(settings.seeds):
            drawn = draw_copies(seed, kind, number, per_judge, repeated)
            votes, model = _fitted(drawn)
            independent = cs.LabelModel(cs.Preferences(), dependencies="none")
            alone = _tau(fit_quietly(independent, votes), votes, drawn)
            taus.append([_tau(model, votes, drawn), alone, _baseline_tau(model, votes, drawn)])
            worth.append(model.source_model_.summary.effective_range)
        own = np.array(taus)
        note = NOTE_COPIES[case]
        low, high = np.mean(worth, axis=0)
        title = f"{kind} x{number}, {per_judge} per judge" + (f", {repeated:.0%} repeated" if repeated else "")
        rows.append([title, *[_with_spread(column) for column in own.T], f"{note:.3f}", f"{low:.1f} to {high:.1f}"])
        if case == ("biased", 3, 300, 0.9):
            claims.append(
                verdict(
                    f"copies of a biased judge do no harm: within {COPY_LIMIT} of {note}",
                    abs(own[:, 0].mean() - note) <= COPY_LIMIT or own[:, 0].mean() > note,
                    f"{own[:, 0].mean():.3f}",
                )
            )
        if case == ("biased", 3, 300, 0.5):
            claims.append(
                verdict(
                    "a group that repeats half of its answers does not win: not below equal judges",
                    own[:, 0].mean() >= own[:, 2].mean(),
                    f"{own[:, 0].mean():.3f}, equal judges {own[:, 2].mean():.3f}",
                )
            )
    columns = ["copied judge", "default", "copies taken as independent", "equal", "study", "judges they are worth"]
    return markdown_table(columns, rows), claims


def coverage(settings: Settings) -> tuple[str, list[str]]:
    """Count how often intervals of scores and rank intervals hold the truth."""
    rows, reached = [], []
    for per_item in (5,) if settings.quick else (5, 20, 60):
        held = [_held(draw_coverage(seed, per_item)) for seed in range(3 * settings.seeds)]
        scores, ranks = np.mean(held, axis=0)
        reached.append((float(scores), f"{per_item} per item"))
        rows.append([f"{per_item} comparisons per item", f"{scores:.1%}", f"{ranks:.1%}", ""])
    for title, repeats, uneven in (("5 judges x 5 runs", 5, False), ("worst judge 10 runs, others 1", 10, True)):
        found: dict[str, list[float]] = defaultdict(list)
        for seed in range(settings.seeds):
            drawn = draw_runs(seed, repeats, uneven=uneven)
            votes, model = _fitted(drawn)
            found["tau"].append(_tau(model, votes, drawn))
            found["scores"].append(_held(drawn)[0])
            found["ranks"].append(_held(drawn)[1])
        mean = {name: float(np.mean(values)) for name, values in found.items()}
        rows.append([title, f"{mean['scores']:.1%}", f"{mean['ranks']:.1%}", f"{mean['tau']:.3f}"])
    low, high = min(reached), max(reached)
    return markdown_table(["setting", "scores", "ranks", "tau"], rows), [
        verdict(
            f"95% intervals of scores hold the truth in {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%} of the cases",
            COVERAGE[0] <= low[0] and high[0] <= COVERAGE[1],
            f"{low[0]:.1%} ({low[1]}) to {high[0]:.1%} ({high[1]})",
        )
    ]


def _fitted(drawn: Comparisons) -> tuple[cs.Votes, cs.LabelModel]:
    votes = cs.tables.read_preferences(drawn.table, by=drawn.by)
    return votes, fit_quietly(cs.LabelModel(cs.Preferences(by=drawn.by)), votes)


def _arena_taus(drawn: Comparisons) -> tuple[float, float]:
    votes, model = _fitted(drawn)
    return _tau(model, votes, drawn), _baseline_tau(model, votes, drawn)


_prompt_taus = _arena_taus


def _tau(model: cs.LabelModel, votes: cs.Votes, drawn: Comparisons) -> float:
    return _tau_of(model.predict(votes), votes, drawn)


def _baseline_tau(model: cs.LabelModel, votes: cs.Votes, drawn: Comparisons) -> float:
    return _tau_of(model.predict_baseline(votes), votes, drawn)


def _tau_of(rankings: Sequence[list[str]], votes: cs.Votes, drawn: Comparisons) -> float:
    """Return Kendall's tau, pooled over groups of the same size; items that nobody compared are tied in the middle."""
    truth = drawn.truth
    reached = np.zeros(truth.shape)
    for row, item in enumerate(votes.items.tolist()):
        group = 0 if drawn.by is None else int(item)
        for place, entry in enumerate(rankings[row]):
            for name in entry if isinstance(entry, tuple) else (entry,):
                reached[group, int(name)] = len(truth[0]) / 2.0 - place
    one, two = np.triu_indices(truth.shape[1], 1)
    agree = np.sign(reached[:, one] - reached[:, two]) * np.sign(truth[:, one] - truth[:, two])
    return float(agree.mean())


def _held(drawn: Comparisons) -> tuple[float, float]:
    """Return how often intervals of differences of scores hold the truth, and how often rank intervals do."""
    votes, model = _fitted(drawn)
    table = cs.preferences.standings(model, votes).to_pydict()
    place = np.array([int(name) for name in table["candidate"]])
    truth = drawn.truth[0][place]
    truth = (truth - truth.mean()) / np.sqrt(np.mean((truth - truth.mean()) ** 2))
    inside = np.abs(np.array(table["score"]) - truth) <= NORMAL * np.array(table["standard_error"])
    rank = 1 + (truth[None, :] > truth[:, None]).sum(axis=1)
    ranked = (rank >= np.array(table["rank_low"])) & (rank <= np.array(table["rank_high"]))
    return float(inside.mean()), float(ranked.mean())


def _with_spread(values: FloatArray) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}"


if __name__ == "__main__":
    main()
