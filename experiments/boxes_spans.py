"""Claim: sets of boxes and spans are better than the best vote and every source, and copies count once.

Simulated images and documents, and with CONSILIENCE_DATA the folder ``crowd_boxes``: boxes of 196 crowd workers on 200
images, and those of an expert.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy.optimize import linear_sum_assignment

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

#: Loss (one minus matched overlap, or one minus F1 of characters) to be met within the margin.
MARGIN = 0.015
COPY_LIMIT = 0.22
REAL_LOSS, REAL_F1 = 0.305, 0.82


@dataclass(frozen=True)
class Case:
    """A simulated crowd: how visible objects differ, sources per item, copies of a bad source."""

    name: str
    target: float
    visibility: float = 0.0
    per_item: int = 6
    copies: int = 0
    jitter: float = 0.0
    noise: tuple[float, float] = (2.0, 25.0)
    split: float = 0.15


BOX_CASES = (
    Case("boxes, equally visible", 0.138),
    Case("boxes, visibility 1.5", 0.184, 1.5),
    Case("boxes, visibility 1.5, 3 per item", 0.305, 1.5, 3),
    Case("boxes, 3 copies of a bad source", 0.186, 1.0, copies=3),
    Case("boxes, 3 copies moved by 3%", 0.187, 1.0, copies=3, jitter=0.03),
)
SPAN_CASES = (
    Case("spans", 0.172, 1.0),
    Case("spans, ragged", 0.396, 1.0, noise=(10.0, 60.0), split=0.3),
    Case("spans, 3 per document", 0.372, 1.0, 3),
    Case("spans, 3 copies of a bad source", 0.336, 1.0, copies=3),
)

Crowd = tuple[cs.Votes, list[Any]]


def as_crowd(labels: list[dict[int, Any]], truth: list[Any], m: int) -> Crowd:
    cells = np.full((len(labels), m), None, dtype=object)
    for row, said in enumerate(labels):
        for source, label in said.items():
            cells[row, source] = label
    observed = np.array([[cell is not None for cell in row] for row in cells])
    return cs.Votes.from_array(cells, observed=observed, sources=[f"s{source}" for source in range(m)]), truth


def ordered(boxes: FloatArray) -> FloatArray:
    return np.hstack([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])])


def box_crowd(case: Case, seed: int, n: int) -> Crowd:
    """Draw 12 sources that mark .45 to .95 of the objects, add .05 to 1.2 boxes and move corners by 2 to 12%."""
    rng, m = np.random.default_rng(seed), 12
    marking, false, noise = rng.uniform(0.45, 0.95, m), rng.uniform(0.05, 1.2, m), rng.uniform(0.02, 0.12, m)
    if case.copies:
        marking[0], false[0], noise[0] = 0.5, 1.5, 0.12
    logit = np.log(marking / (1 - marking))

    def boxes(count: int) -> FloatArray:
        middle, sides = rng.uniform(0, 1000, (count, 2)), np.exp(rng.normal(4.2, 0.4, (count, 2)))
        return np.hstack([middle - sides / 2, middle + sides / 2])

    def moved(given: FloatArray, share: float) -> FloatArray:
        side = (given[:, 2:] - given[:, :2]).mean(axis=1, keepdims=True)
        return given + rng.normal(0, share, given.shape) * side

    def marked(real: FloatArray, visible: FloatArray, source: int) -> FloatArray:
        seen = real[rng.random(len(real)) < 1 / (1 + np.exp(-(logit[source] + visible)))]
        return np.vstack([moved(seen, noise[source]), boxes(rng.poisson(false[source]))])

    labels, truth = [], []
    for _ in range(n):
        real = boxes(rng.poisson(5))
        visible = rng.normal(0, case.visibility, len(real))
        present = rng.choice(np.arange(1, m), case.per_item - bool(case.copies), replace=False)
        said = {int(source): marked(real, visible, source) for source in present}
        if case.copies:
            said[0] = marked(real, visible, 0)
            said |= {m + k: moved(said[0], case.jitter) if case.jitter else said[0] for k in range(case.copies)}
        labels.append({source: ordered(label) for source, label in said.items()})
        truth.append(real)
    return as_crowd(labels, truth, m + case.copies)


def span_crowd(case: Case, seed: int, n: int) -> Crowd:
    """Draw 20 sources that mark .4 to .95 of the spans, add .05 to 1.5, move their ends and split some."""
    rng, m = np.random.default_rng(seed), 20
    marking, false = rng.uniform(0.4, 0.95, m), rng.uniform(0.05, 1.5, m)
    noise = np.exp(rng.uniform(*np.log(case.noise), m))
    if case.copies:
        marking[0], false[0], noise[0] = 0.5, 2.0, 25.0
    logit = np.log(marking / (1 - marking))
    space = cs.Spans()

    def tidy(spans: Any) -> FloatArray:
        whole = np.maximum(np.round(np.array(spans, dtype=float).reshape(-1, 2)), 0)
        return space.as_batch([whole[whole[:, 1] > whole[:, 0]]])[0]

    def spans(count: int) -> FloatArray:
        length, start = np.exp(rng.normal(3.9, 0.6, count)), rng.uniform(0, 1500, count)
        return tidy(np.stack([start, start + length], axis=1))

    def marked(real: FloatArray, visible: FloatArray, source: int) -> FloatArray:
        pieces: list[Any] = []
        for span in real[rng.random(len(real)) < 1 / (1 + np.exp(-(logit[source] + visible)))]:
            ends = np.sort(span + rng.laplace(0, noise[source], 2))
            if rng.random() < case.split:
                cut = rng.uniform(*ends)
                pieces += [[ends[0], cut - 5], [cut + 5, ends[1]]] if rng.random() < 0.5 else [[ends[0], cut]]
            else:
                pieces.append(ends)
        return tidy([*pieces, *spans(rng.poisson(false[source]))])

    labels, truth = [], []
    for _ in range(n):
        real = spans(1 + rng.poisson(1.5))
        visible = rng.normal(0, case.visibility, len(real))
        present = rng.choice(np.arange(1, m), case.per_item - bool(case.copies), replace=False)
        said = {int(source): marked(real, visible, source) for source in present}
        if case.copies:
            said[0] = marked(real, visible, 0)
            said |= {m + k: said[0] for k in range(case.copies)}
        labels.append(said)
        truth.append(real)
    return as_crowd(labels, truth, m + case.copies)


def f1_at_half(label: FloatArray, truth: FloatArray) -> float:
    """Return F1 of boxes matched one to one from an intersection over union of .5 on."""
    if len(label) + len(truth) == 0:
        return 1.0
    low = np.maximum(label[:, None, :2], truth[None, :, :2])
    high = np.minimum(label[:, None, 2:], truth[None, :, 2:])
    inside = np.clip(high - low, 0, None).prod(axis=2)
    one, two = ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (label, truth))
    share = inside / np.maximum(one[:, None] + two[None] - inside, 1e-9)
    hit = (share >= 0.5).astype(float)
    rows, columns = linear_sum_assignment(-hit - 1e-3 * share)
    return float(2 * hit[rows, columns].sum() / (len(label) + len(truth)))


def losses(space: cs.LabelSpace, crowd: Crowd) -> tuple[dict[str, FloatArray], cs.LabelModel, list[Any]]:
    """Return the loss of every item: of the default, of sources taken as alike, and of the best vote."""
    votes, truth = crowd
    gold = space.as_batch(truth)
    model = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    labels = model.predict(votes)
    cells = votes.labels.copy()
    cells[votes.observed] = space.as_batch(votes.labels[votes.observed])
    found = {
        "default": space.distance(space.as_batch(labels), gold),
        "alike": space.distance(space.as_batch(model.predict_baseline(votes)), gold),
        "best vote": space.distance(space.weighted_mean(cells, votes.observed.astype(float)), gold),
    }
    return found, model, list(labels)


def read_crowd_boxes() -> Crowd | None:
    """Return the boxes of crowd workers, or None without the data."""
    name = os.environ.get("CONSILIENCE_DATA")
    folder = Path(name) / "crowd_boxes" if name else None
    if folder is None or not folder.is_dir():
        return None
    import pyarrow.parquet as pq

    seen, drawn, gold = (pq.read_table(folder / f"{one}.parquet") for one in ("annotations", "boxes", "gold"))
    items, workers = (sorted(set(seen[column].to_pylist())) for column in ("item", "worker"))
    corners = ("x1", "y1", "x2", "y2")
    lists: dict[tuple[Any, Any], list[Any]] = {
        (row["item"], row["worker"]): [] for row in seen.select(["item", "worker"]).to_pylist()
    }
    for row in drawn.to_pylist():
        lists[row["item"], row["worker"]].append([row[name] for name in corners])
    truth: dict[Any, list[Any]] = {item: [] for item in items}
    for row in gold.to_pylist():
        truth[row["item"]].append([row[name] for name in corners])
    place = {worker: k for k, worker in enumerate(workers)}
    labels: dict[Any, dict[int, Any]] = {item: {} for item in items}
    for (item, worker), boxes in lists.items():
        labels[item][place[worker]] = np.array(boxes, dtype=float).reshape(-1, 4)
    expert = [np.array(truth[item], dtype=float).reshape(-1, 4) for item in items]
    return as_crowd([labels[item] for item in items], expert, len(workers))


def mean_error(values: FloatArray) -> str:
    return f"{values.mean():.3f} ± {values.std() / np.sqrt(len(values)):.3f}"


def simulated(case: Case, boxes: bool, seeds: int, n: int) -> tuple[list[str], float, float]:
    space: cs.LabelSpace = cs.Boxes() if boxes else cs.Spans()
    draw = box_crowd if boxes else span_crowd
    found: dict[str, list[FloatArray]] = {}
    confidence, flagged, half = [], 0, []
    for seed in range(seeds):
        crowd = draw(case, seed, n)
        loss, model, labels = losses(space, crowd)
        for name, values in loss.items():
            found.setdefault(name, []).append(values)
        confidence.append(float(model.confidence(crowd[0]).mean()))
        flagged += len(model.source_model_.dependencies)
        half += [f1_at_half(label, truth) for label, truth in zip(labels, crowd[1], strict=True)] if boxes else []
    shown = [mean_error(np.concatenate(found[name])) for name in ("best vote", "alike", "default")]
    pairs = f"{flagged / seeds:.1f} of {case.copies * (case.copies + 1) // 2}"
    at_half = f"{np.mean(half):.3f}" if half else "-"
    row = [case.name, *shown, f"{case.target:.3f}", at_half, f"{np.mean(confidence):.3f}", pairs]
    return row, float(np.concatenate(found["default"]).mean()), float(np.mean(half)) if half else 0.0


def real_block(crowd: Crowd) -> tuple[str, list[str]]:
    space = cs.Boxes()
    loss, model, labels = losses(space, crowd)
    votes, truth = crowd
    cells = space.weighted_mean(np.where(votes.observed, votes.labels, None), votes.observed.astype(float))
    half = np.array([f1_at_half(label, gold) for label, gold in zip(labels, truth, strict=True)])
    medoid = np.array([f1_at_half(label, gold) for label, gold in zip(cells, truth, strict=True)])
    alike = model.predict_baseline(votes)
    equal = np.array([f1_at_half(label, gold) for label, gold in zip(alike, truth, strict=True)])
    gain = loss["default"] - loss["best vote"]
    rows = [
        ["best vote", mean_error(loss["best vote"]), mean_error(medoid)],
        ["sources alike", mean_error(loss["alike"]), mean_error(equal)],
        ["default", mean_error(loss["default"]), mean_error(half)],
        ["default - best vote", mean_error(gain), mean_error(half - medoid)],
    ]
    table = markdown_table(["crowd_boxes", "1 - matched overlap", "F1 at .5"], rows)
    note = (
        f"Mean confidence {model.confidence(votes).mean():.3f}; {len(model.source_model_.dependencies)} pairs of "
        "workers were taken for copies. The confidence counts inexact corners, but takes false boxes that several "
        "workers share to be rare, and there are many here."
    )
    own = float(loss["default"].mean())
    verdicts = [
        verdict(f"crowd_boxes: loss at most {REAL_LOSS}", own <= REAL_LOSS, f"{own:.3f}"),
        verdict(f"crowd_boxes: F1 at .5 at least {REAL_F1}", half.mean() >= REAL_F1, f"{half.mean():.3f}"),
    ]
    return f"{table}\n\n{note}", verdicts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``boxes_spans.md``."""
    settings = read_settings("experiments.boxes_spans", __doc__, 4, 1, arguments)
    rows, verdicts = [], []
    cases = [(case, True) for case in BOX_CASES] + [(case, False) for case in SPAN_CASES]
    if settings.quick:
        cases = [cases[1], cases[5]]
    for case, boxes in track(cases, description="boxes and spans"):
        n = 20 if settings.quick else (60 if boxes else 100)
        row, loss, _ = simulated(case, boxes, settings.seeds if boxes else max(settings.seeds // 2, 1), n)
        rows.append(row)
        limit = case.target + MARGIN
        verdicts.append(verdict(f"{case.name}: loss at most {limit:.3f}", loss <= limit, f"{loss:.3f}"))
        if boxes and case.copies:
            verdicts.append(verdict(f"{case.name}: loss at most {COPY_LIMIT}", loss <= COPY_LIMIT, f"{loss:.3f}"))
    blocks = [
        "Loss is one minus matched overlap for boxes and one minus the F1 of characters for spans, mean ± standard "
        "error over items. *best vote*: the vote nearest to all others. *alike*: the model with the same rates for all "
        "sources. *bar*: the loss to be met within .015; *copies*: pairs found, of those that there are.",
        markdown_table(["case", "best vote", "alike", "default", "bar", "F1 at .5", "confidence", "copies"], rows),
    ]
    crowd = None if settings.quick else read_crowd_boxes()
    if crowd is not None:
        table, more = real_block(crowd)
        blocks += ["## Crowd workers", table]
        verdicts += more
    blocks += ["## Targets", QUICK if settings.quick else "\n".join(verdicts)]
    described = [
        "60 images by 6 (or 3) of 12 sources, 100 documents by 6 (or 3) of 20",
        f"seeds 0..{settings.seeds - 1} for boxes, half as many for spans",
    ]
    write_results(settings.results / "boxes_spans.md", "Boxes and spans", settings.command, described, blocks)


if __name__ == "__main__":
    main()
