"""Claim: the default is rarely worse than the plain vote, and then by little.

Random configurations: label type, number of sources and items, qualities, abstentions, copies, adversaries. Each model
is fitted without labels and scored on fresh items, so that the comparison does not depend on luck with the items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

FRESH = 4000
#: A plain vote that is nearly perfect has nothing to lose: losses are compared to at least this share of chance.
SMALLEST_LOSS = 0.01
WORSE, SHARE_LIMIT, WORST_LIMIT = 0.02, 0.03, 0.10
SHOWN = 12
#: First seed of the configurations that no rule was ever looked at with.
UNSEEN = 900_000
STEPS = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))

#: Label types, and what a source says that means the opposite.
TYPES: dict[str, tuple[cs.LabelSpace, Callable[[Any], Any]]] = {
    "2 classes": (cs.Classes(2), lambda labels: 1 - labels),
    "4 classes": (cs.Classes(4), lambda labels: 3 - labels),
    "steps": (cs.FiniteMetric(STEPS), lambda labels: 5 - labels),
    "rankings": (cs.Rankings(5), lambda labels: labels.shape[-1] - 1 - labels),
    "scores": (cs.Scores(), np.negative),
    "vectors": (cs.Vectors(3), np.negative),
    "tags": (cs.Tags(4), lambda labels: 1 - labels),
    "metric": (
        cs.Metric(lambda left, right: np.abs(left - right), candidates=np.arange(6.0), vectorized=True),
        lambda labels: 5.0 - labels,
    ),
    "sphere": (cs.Sphere(2), np.negative),
}


@dataclass(frozen=True)
class Configuration:
    """One setting, drawn from its seed.

    `quality` is the share of the cost of chance that each source has; copies repeat another source on most items.
    """

    seed: int
    kind: str
    n: int
    quality: FloatArray
    coverage: FloatArray
    copied_from: dict[int, int]
    adversaries: tuple[int, ...]

    @classmethod
    def draw(cls, seed: int) -> Configuration:
        rng = np.random.default_rng(seed)
        kind = list(TYPES)[seed % len(TYPES)]
        m = int(rng.integers(2, 21))
        n = round(float(np.exp(rng.uniform(np.log(30), np.log(5000)))))
        quality = cls._qualities(m, rng)
        coverage = [np.ones(m), np.full(m, rng.uniform(0.3, 0.9)), rng.uniform(0.1, 1.0, m)][int(rng.integers(3))]
        order = rng.permutation(m)
        copies = int(rng.integers(1, max(2, m // 3 + 1))) if m >= 4 and rng.random() < 0.35 else 0
        others = order[copies + 1 :]
        hostile = int(rng.integers(1, max(2, m // 5 + 1))) if m >= 5 and rng.random() < 0.25 else 0
        adversaries = tuple(int(one) for one in others[:hostile])
        return cls(
            seed, kind, n, quality, coverage, {int(one): int(order[0]) for one in order[1 : copies + 1]}, adversaries
        )

    @staticmethod
    def _qualities(m: int, rng: np.random.Generator) -> FloatArray:
        """Draw alike sources, or a band of any width (narrow ones are where weights can lose), or a few good ones."""
        shape = rng.random()
        if shape < 0.25:
            return np.full(m, rng.uniform(0.2, 0.9))
        if shape < 0.75:
            center = rng.uniform(0.2, 0.9)
            reach = rng.random() * min(center - 0.1, 0.98 - center)
            return rng.uniform(center - reach, center + reach, m)
        good = rng.random(m) < 1 / 3
        return np.where(good, rng.uniform(0.1, 0.5, m), rng.uniform(0.8, 0.98, m))

    @property
    def space(self) -> cs.LabelSpace:
        return TYPES[self.kind][0]

    def votes(self, n: int, rng: np.random.Generator) -> tuple[cs.Votes, Any]:
        """Draw votes on `n` items, and the truth."""
        space, opposite = TYPES[self.kind]
        chance = float(space.law.expected_cost(np.zeros(1))[0])
        weight = space.law.weight_from_cost(chance * self.quality)
        truth = space.as_labels(space.random(n, rng))
        labels = cs.simulate(space, truth, weight, rng).labels.copy()
        for adversary in self.adversaries:
            labels[:, adversary] = opposite(labels[:, adversary])
        for copy, original in self.copied_from.items():
            same = rng.random(n) < 0.9
            labels[same, copy] = labels[same, original]
        observed = rng.random(labels.shape[:2]) < self.coverage
        names = [f"s{column}" for column in range(labels.shape[1])]
        return cs.Votes.from_array(labels, observed=observed, sources=names), truth

    def shown(self) -> str:
        parts = [f"{self.kind}, m={len(self.quality)}, n={self.n}", f"votes {self.coverage.mean():.0%}"]
        if self.copied_from:
            parts.append(f"{len(self.copied_from)} copies")
        if self.adversaries:
            parts.append(f"{len(self.adversaries)} adversaries")
        return ", ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """Mean cost of the labels on fresh items, and how the default came to its own."""

    configuration: Configuration
    plain: float
    default: float
    floor: float
    method: str
    findings: tuple[str, ...]

    @property
    def relative(self) -> float:
        """How much more the default costs than the plain vote."""
        return (self.default - self.plain) / max(self.plain, self.floor)


def run(seed: int, decode: str = "auto") -> Outcome:
    """Draw, fit and score one configuration."""
    setting = Configuration.draw(seed)
    rng, space = np.random.default_rng([seed, 1]), setting.space
    votes, _ = setting.votes(setting.n, rng)
    fresh, truth = setting.votes(FRESH, rng)
    model = fit_quietly(cs.LabelModel(space, decode=decode, random_state=0), votes)
    rows = np.flatnonzero(fresh.observed.any(axis=1))
    known = space.as_batch(truth)[rows]

    def loss(labels: Any) -> float:
        return float(space.cost(space.as_batch(labels[rows]), known).mean())

    chance = float(space.law.expected_cost(np.zeros(1))[0])
    found = tuple(sorted({item.code for item in model.diagnostics_ if item.severity != "info"}))
    return Outcome(
        setting,
        loss(model.predict_baseline(fresh)),
        loss(model.predict(fresh)),
        SMALLEST_LOSS * chance,
        model.source_model_.method,
        found,
    )


def by_type(outcomes: Sequence[Outcome]) -> str:
    rows = []
    groups = {kind: [one for one in outcomes if one.configuration.kind == kind] for kind in TYPES}
    groups["without copies"] = [one for one in outcomes if not one.configuration.copied_from]
    groups["with copies"] = [one for one in outcomes if one.configuration.copied_from]
    for kind, chosen in {**groups, "all": list(outcomes)}.items():
        relative = np.array([one.relative for one in chosen])
        if len(relative):
            rows.append(
                [
                    f"**{kind}**" if kind == "all" else kind,
                    str(len(relative)),
                    f"{np.median(relative):+.1%}",
                    f"{np.mean(relative < -WORSE):.1%}",
                    f"{np.mean(relative > WORSE):.1%}",
                    f"{relative.max():+.1%}",
                ]
            )
    columns = ["label type", "configurations", "median", "better by more than 2%", "worse by more than 2%", "worst"]
    return markdown_table(columns, rows)


def nearest(outcomes: Sequence[Outcome]) -> str:
    """Score finite spaces again with the most probable label; the plain vote stays as it was."""
    steps = [one for one in outcomes if one.configuration.kind == "steps"]
    rows = []
    for name, again in {
        "least expected cost": steps,
        "most probable": [replace(run(one.configuration.seed, "map"), plain=one.plain) for one in steps],
    }.items():
        relative = np.array([one.relative for one in again])
        rows.append([name, f"{np.median(relative):+.1%}", f"{np.mean(relative > WORSE):.1%}", f"{relative.max():+.1%}"])
    return markdown_table(["label", "median", "worse by more than 2%", "worst"], rows)


def targets(outcomes: Sequence[Outcome], named: str = "") -> list[str]:
    """Return what was aimed at, and whether it holds."""
    relative = np.array([one.relative for one in outcomes])
    share, largest = float(np.mean(relative > WORSE)), float(relative.max())
    return [
        verdict(
            f"{named}worse by more than {WORSE:.0%} in at most {SHARE_LIMIT:.0%}", share <= SHARE_LIMIT, f"{share:.1%}"
        ),
        verdict(f"{named}at most {WORST_LIMIT:.0%} worse anywhere", largest <= WORST_LIMIT, f"{largest:+.1%}"),
    ]


def worst(outcomes: Sequence[Outcome]) -> str:
    ordered = sorted(outcomes, key=lambda one: -one.relative)[:SHOWN]
    rows = [
        [
            str(one.configuration.seed),
            one.configuration.shown(),
            f"{one.plain:.4g}",
            f"{one.default:.4g}",
            f"{one.relative:+.1%}",
            one.method,
            ", ".join(one.findings),
        ]
        for one in ordered
    ]
    return markdown_table(["seed", "configuration", "plain vote", "default", "change", "learned by", "findings"], rows)


def plot(outcomes: Sequence[Outcome], path: Path) -> str:
    """Draw the distribution; return how to show it, or why it is not there."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return "The plot needs `pip install 'consilience[plot]'`."
    relative = 100.0 * np.sort([one.relative for one in outcomes])
    figure, axes = pyplot.subplots(figsize=(7, 3.5))
    axes.plot(relative, np.arange(1, len(relative) + 1) / len(relative), drawstyle="steps-post")
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.axvline(100.0 * WORSE, color="red", linewidth=0.8, linestyle="--")
    axes.set_xlabel("change of the mean cost against the plain vote, in percent")
    axes.set_ylabel("share of configurations")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
    return f"![Share of configurations by change of the mean cost]({path.name})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all configurations; write ``never_worse.md`` and the plot."""
    settings = read_settings("experiments.never_worse", __doc__, 252, 9, arguments)
    started = perf_counter()
    outcomes = [run(seed) for seed in track(range(settings.seeds), description="never worse")]
    unseen = range(UNSEEN, UNSEEN + settings.seeds)
    others = [run(seed) for seed in track(unseen, description="other seeds")]
    lines = [*targets(outcomes), *targets(others, "other seeds: ")]
    blocks = [
        "Mean cost of `predict` against that of `predict_baseline`, the plain vote of the same model, on "
        f"{FRESH:,} fresh items; negative is better. Where the plain vote costs less than {SMALLEST_LOSS:.0%} of "
        "chance, the change is taken relative to that.",
        by_type(outcomes),
        "## Targets",
        QUICK if settings.quick else "\n".join(lines),
        "## Other seeds",
        "Some of the configurations above were looked at while the rules that guard against losses were written. These "
        "were not.",
        by_type(others),
        worst(others),
        "## Steps by the most probable label",
        "The default label of a finite space is the one of least expected cost. "
        'The most probable one (`decode="map"`) hits the truth more often, but is further from it where it does not:',
        nearest(outcomes),
        "## Distribution",
        plot(outcomes, settings.results / "never_worse.png"),
        "## The worst",
        "`experiments.never_worse.run(seed)` returns one of them again.",
        worst(outcomes),
    ]
    described = [
        f"seeds 0..{settings.seeds - 1} and {unseen[0]}..{unseen[-1]}",
        "m 2-20, n 30-5000 (log-uniform), qualities 10-98% of the cost of chance",
        f"{perf_counter() - started:.0f} s",
    ]
    write_results(
        settings.results / "never_worse.md", "Never worse than the plain vote", settings.command, described, blocks
    )


if __name__ == "__main__":
    main()
