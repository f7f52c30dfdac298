"""Claim: tags are as good as if the error rates of the sources were known, for frequent and rare tags.

One tag: settings and seeds of an earlier simulation study, whose numbers are shown next to ours. Several tags: votes on
one tag help to judge a source on another. Sequences: neighboring positions help each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

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

#: Items, sources, share of items with the tag, share of votes cast.
ONE_TAG = {
    "n=2000, m=10, p=.15": (2000, 10, 0.15, 1.0),
    "n=2000, m=10, p=.15, 40% of votes": (2000, 10, 0.15, 0.4),
    "n=10000, m=10, p=.05": (10_000, 10, 0.05, 1.0),
    "n=500, m=20, p=.3, 30% of votes": (500, 20, 0.3, 0.3),
}
METHODS = ("majority", "isotropic", "triplets", "quadratic", "em", "auto")
#: F1, negative log-likelihood and error of the rates in the study: "EM from rank-1, p estimated", and its oracle.
STUDY = {
    "n=2000, m=10, p=.15": ((0.943, 0.048, 0.020), (0.943, 0.047)),
    "n=2000, m=10, p=.15, 40% of votes": ((0.722, 0.198, 0.040), (0.720, 0.189)),
    "n=10000, m=10, p=.05": ((0.896, 0.028, 0.016), (0.897, 0.028)),
    "n=500, m=20, p=.3, 30% of votes": ((0.833, 0.239, 0.066), (0.840, 0.214)),
}
TOLERANCE = 0.01
BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]

Measured = dict[str, list[tuple[float, ...]]]


def one_tag(n: int, m: int, p: float, coverage: float, seed: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Draw votes with NaN for abstaining, the truth, and the sensitivities and specificities."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < p).astype(int)
    good = np.arange(m) % 3 == 0
    accuracy = np.where(good, rng.uniform(0.8, 0.92, m), rng.uniform(0.55, 0.7, m))
    lean = rng.uniform(-0.12, 0.12, m)
    rates = np.clip([accuracy + lean, accuracy - lean], 0.35, 0.98)
    said = np.where(truth[:, None] == 1, rng.random((n, m)) < rates[0], rng.random((n, m)) > rates[1]).astype(float)
    said[rng.random((n, m)) > coverage] = np.nan
    voted = ~np.isnan(said).all(axis=1)
    return said[voted], truth[voted], rates


def binary_measures(probability: FloatArray, truth: IntArray) -> tuple[float, float]:
    """Return F1 and the mean negative log-likelihood."""
    claimed = probability > 0.5
    found = 2.0 * np.sum(claimed & (truth == 1)) / max(int(claimed.sum() + truth.sum()), 1)
    likelihood = np.where(truth == 1, probability, 1.0 - probability)
    return float(found), float(-np.log(np.clip(likelihood, 1e-6, 1.0)).mean())


def known_rates(votes: FloatArray, rates: FloatArray, p: float) -> FloatArray:
    """Return the probabilities of the tag by Bayes' rule when everything is known."""
    seen, one = ~np.isnan(votes), votes == 1
    ratio = np.where(one, np.log(rates[0] / (1 - rates[1])), np.log((1 - rates[0]) / rates[1]))
    odds = np.log(p / (1 - p)) + np.where(seen, ratio, 0.0).sum(axis=1)
    probability: FloatArray = 1.0 / (1.0 + np.exp(-odds))
    return probability


def compare_one_tag(settings: Settings) -> dict[str, Measured]:
    """Fit every method on every setting."""
    found: dict[str, Measured] = {}
    for name, (n, m, p, coverage) in ONE_TAG.items():
        if settings.quick and n > 500:
            continue
        found[name] = defaultdict(list)
        for seed in track(range(settings.seeds), description=name):
            matrix, truth, rates = one_tag(n, m, p, coverage, seed)
            votes = cs.Votes.from_array(matrix[:, :, None])
            for method in METHODS:
                model = fit_quietly(cs.LabelModel(cs.Tags(1), method=method), votes)
                gap = model.expected_cost_ - (p * (1.0 - rates[0]) + (1.0 - p) * (1.0 - rates[1]))
                probability = model.posterior(votes).details["tag_probability"][:, 0]
                error = float("inf") if method == "majority" else float(np.sqrt((gap**2).mean()))
                found[name][method].append((*binary_measures(probability, truth), error))
            found[name]["oracle"].append((*binary_measures(known_rates(matrix, rates, p), truth), 0.0))
    return found


def many_tags(n: int, d: int, m: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw votes on d tags of very different frequency; a source has a quality, and a little of its own on each tag."""
    prior = rng.uniform(0.05, 0.4, d)
    truth = (rng.random((n, d)) < prior).astype(int)
    base = np.stack([np.linspace(0.5, 0.9, m), np.linspace(0.7, 0.97, m)])
    rates = np.clip(base[:, :, None] + rng.normal(0.0, 0.05, (2, m, d)), 0.3, 0.99)
    said = np.where(truth[:, None] == 1, rng.random((n, m, d)) < rates[0], rng.random((n, m, d)) > rates[1])
    return said.astype(np.int8), truth


def f1(predicted: IntArray, truth: IntArray) -> float:
    """Return the harmonic mean of precision and recall over all tags of all items."""
    return float(2.0 * np.sum((predicted == 1) & (truth == 1)) / max(int((predicted == 1).sum() + truth.sum()), 1))


def compare_many_tags(settings: Settings) -> dict[str, Measured]:
    """Compare labels with pooling, without it (one model per tag), and without qualities."""
    found: dict[str, Measured] = {}
    for n, d in [(50, 20), (100, 20), (300, 20), (300, 5)][: 1 if settings.quick else None]:
        name = f"n={n}, d={d}"
        found[name] = defaultdict(list)
        for seed in track(range(settings.seeds), description=name):
            votes, truth = many_tags(n, d, 6, np.random.default_rng(seed))
            pooled = fit_quietly(cs.LabelModel(cs.Tags(d), method="em"), votes).predict(votes)
            single = np.empty_like(truth)
            for tag in range(d):
                alone = votes[:, :, tag : tag + 1]
                single[:, tag] = fit_quietly(cs.LabelModel(cs.Tags(1), method="em"), alone).predict(alone)[:, 0]
            plain = fit_quietly(cs.LabelModel(cs.Tags(d), method="majority"), votes).predict(votes)
            for label, predicted in (("majority", plain), ("one model per tag", single), ("pooled", pooled)):
                found[name][label].append((float((predicted != truth).mean()), f1(predicted, truth)))
    return found


def sentences(n: int, m: int, rng: np.random.Generator) -> tuple[cs.Votes, list[list[str]]]:
    """Draw sentences with names of persons and places, and taggers that err token by token."""
    steps = np.array(
        [
            [0.86, 0.08, 0.0, 0.06, 0.0],
            [0.35, 0.02, 0.60, 0.03, 0.0],
            [0.65, 0.02, 0.30, 0.03, 0.0],
            [0.60, 0.03, 0.0, 0.02, 0.35],
            [0.75, 0.03, 0.0, 0.02, 0.20],
        ]
    )
    skill = np.linspace(0.55, 0.85, m)
    cells, truth = np.empty((n, m), dtype=object), []
    for item in range(n):
        length = int(rng.integers(5, 25))
        tags = [0]
        for _ in range(length - 1):
            tags.append(int(rng.choice(5, p=steps[tags[-1]])))
        for source in range(m):
            noise = rng.choice(5, size=length, p=[0.6, 0.1, 0.1, 0.1, 0.1])
            said = np.where(rng.random(length) < skill[source], tags, noise)
            cells[item, source] = [BIO[code] for code in said]
        truth.append([BIO[code] for code in tags])
    return cs.Votes.from_array(cells), truth


def sequence_measures(predicted: Sequence[list[str]], truth: list[list[str]]) -> tuple[float, float]:
    """Return the share of wrong tags, and F1 of whole spans."""
    pairs = list(zip(predicted, truth, strict=True))
    wrong = sum(one != two for left, right in pairs for one, two in zip(left, right, strict=True))
    spans = [(set(cs.elements.bio_to_spans(left)), set(cs.elements.bio_to_spans(right))) for left, right in pairs]
    hits, total = sum(len(left & right) for left, right in spans), sum(len(left) + len(right) for left, right in spans)
    return wrong / sum(map(len, truth)), 2.0 * hits / total


def compare_sequences(settings: Settings) -> dict[str, Measured]:
    """Compare chained positions, independent ones, and the plain vote."""
    found: dict[str, Measured] = {}
    for n in [200, 1000][: 1 if settings.quick else None]:
        name = f"{n} sentences, m=5"
        found[name] = defaultdict(list)
        for seed in track(range(settings.seeds), description=name):
            votes, truth = sentences(n, 5, np.random.default_rng(seed))
            alone = cs.Sequences(BIO)
            chain = cs.Sequences(BIO, chain=True)
            models = {
                "majority": cs.LabelModel(alone, method="majority"),
                "positions alone": cs.LabelModel(alone),
                "chain, least expected cost": cs.LabelModel(chain, decode="bayes"),
                "chain, most probable": cs.LabelModel(chain, decode="map"),
            }
            for label, model in models.items():
                predicted = fit_quietly(model, votes).predict(votes)
                found[name][label].append(sequence_measures(predicted, truth))
    return found


def table(found: dict[str, Measured], digits: int = 3) -> str:
    """Return one row per method; a cell holds the means over the seeds."""
    rows = []
    for label in next(iter(found.values())):
        cells = []
        for measured in found.values():
            means = np.mean(measured[label], axis=0)
            cells.append(" / ".join("-" if np.isinf(mean) else f"{mean:.{digits}f}" for mean in means))
        rows.append([label, *cells])
    return markdown_table(["", *found], rows)


def study_table(found: dict[str, Measured]) -> str:
    """Return the numbers of the study, in the columns of ours."""
    rows = [["EM from rank one, p estimated"], ["oracle"]]
    for name in found:
        fitted, oracle = STUDY[name]
        rows[0].append(" / ".join(f"{value:.3f}" for value in fitted))
        rows[1].append(" / ".join(f"{value:.3f}" for value in (*oracle, 0.0)))
    return markdown_table(["", *found], rows)


def judge(single: dict[str, Measured], many: dict[str, Measured], sequences: dict[str, Measured]) -> str:
    """Return whether the targets are reached."""
    worst_f1 = max(STUDY[name][0][0] - np.mean(one["auto"], axis=0)[0] for name, one in single.items())
    worst_nll = max(np.mean(one["auto"], axis=0)[1] - STUDY[name][0][1] for name, one in single.items())
    crowded = many["n=50, d=20"]
    gain = np.mean(crowded["one model per tag"], axis=0)[0] - np.mean(crowded["pooled"], axis=0)[0]
    chained = [
        np.mean(one["positions alone"], axis=0)[0] - np.mean(one["chain, least expected cost"], axis=0)[0]
        for one in sequences.values()
    ]
    lines = [
        verdict("F1 within 0.01 of the study", worst_f1 <= TOLERANCE, f"largest shortfall {worst_f1:.4f}"),
        verdict("NLL within 0.01 of the study", worst_nll <= TOLERANCE, f"largest excess {worst_nll:.4f}"),
        verdict("pooling helps with many tags and few items", gain > 0, f"wrong tags fewer by {gain:.4f}"),
        verdict("a chain helps", min(chained) > 0, f"wrong positions fewer by at least {min(chained):.4f}"),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison and write its table."""
    settings = read_settings("experiments.tags", __doc__, seeds=10, quick_seeds=1, arguments=arguments)
    single, many, sequences = compare_one_tag(settings), compare_many_tags(settings), compare_sequences(settings)
    blocks = [
        "## One tag\n\nF1 / negative log-likelihood / root mean squared error of sensitivities and specificities. "
        "A third of the sources have an accuracy between .8 and .92, the others between .55 and .7; how frequent the "
        "tag is must be learned. Oracle: rates and frequency known.",
        table(single),
        "The same in the study:",
        study_table(single),
        "## Many tags\n\nShare of wrong tags / F1 over all tags; 6 sources that differ in quality, and on each tag a "
        "little (standard deviation .05) from their own mean; tags on 5 to 40% of the items.",
        table(many),
        "## Sequences\n\nShare of wrong positions / F1 of whole spans; sentences of 5 to 24 tokens with persons and "
        "places; five taggers that keep between 55 and 85% of the tags and draw the others at random.",
        table(sequences),
        QUICK if settings.quick else judge(single, many, sequences),
    ]
    write_results(settings.results / "tags.md", "Tags", settings.command, [f"{settings.seeds} seeds"], blocks)


if __name__ == "__main__":
    main()
