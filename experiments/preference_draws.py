"""Simulated judges of pairwise comparisons, with the settings and the random numbers of an earlier study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .tables import FloatArray, IntArray

Draw = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Comparisons:
    """A table of comparisons, and the scores behind it: one row per group of items."""

    table: dict[str, list[Any]]
    truth: FloatArray
    by: str | None = None


def draw_arena(
    seed: int, scenario: str, per_item: int, judges: int = 5, items: int = 30, *, same: bool = False
) -> Comparisons:
    """Return an arena in which all judges differ, or not, as the scenario says; with `same`, of the same pairs."""
    rng = np.random.default_rng(1000 * seed + judges * 7 + items)
    skill, bias, tie = _judges(rng, scenario, judges)
    return _arena(rng, skill, bias, tie, items, max(per_item * items // judges, 1), same=same)


def draw_coverage(seed: int, per_item: int, judges: int = 5, items: int = 30) -> Comparisons:
    """Return an arena of judges who differ in everything."""
    rng = np.random.default_rng(seed)
    skill = np.exp(rng.normal(np.log(1.2), 0.5, judges))
    bias = rng.normal(0.3, 0.5, judges)
    return _arena(rng, skill, bias, np.full(judges, 0.7), items, per_item * items // judges)


def draw_prompts(seed: int, scenario: str, prompts: int, size: int, judges: int, share: float) -> Comparisons:
    """Return prompts with a few candidates each, of whose pairs every judge sees a share."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=prompts * size)
    kind = scenario.split("-", maxsplit=1)[0]
    skill = {
        "het": np.exp(rng.normal(np.log(1.2), 0.8, judges)),
        "hom": np.full(judges, 1.5),
        "noise": np.where(np.arange(judges) < judges // 2, 0.1, 2.0),
    }[kind]
    bias = rng.normal(0.8, 0.6, judges) if "pos" in scenario else np.zeros(judges)
    tie = np.exp(rng.normal(0.0, 0.8, judges)) if "tie" in scenario else np.zeros(judges)
    pairs = np.array([(one, two) for one in range(size) for two in range(one + 1, size)])
    parts = []
    for judge in range(judges):
        prompt, pair = (grid.ravel() for grid in np.meshgrid(np.arange(prompts), np.arange(len(pairs)), indexing="ij"))
        kept = rng.random(len(prompt)) < share
        prompt, pair = prompt[kept], pair[kept]
        forward = rng.random(len(prompt)) < 0.5
        one = np.where(forward, pairs[pair, 0], pairs[pair, 1])
        two = np.where(forward, pairs[pair, 1], pairs[pair, 0])
        gap = truth[prompt * size + one] - truth[prompt * size + two]
        parts.append((judge, one, two, _outcomes(rng, skill[judge] * gap + bias[judge], tie[judge]), prompt))
    return Comparisons(_table(parts), truth.reshape(prompts, size), by="prompt")


def draw_copies(seed: int, kind: str, copies: int, per_judge: int, repeated: float, items: int = 30) -> Comparisons:
    """Return three good judges and copies of a biased or a random one, all of whom see the same comparisons.

    With "none" there are `copies` independent judges instead.
    """
    rng = np.random.default_rng(seed)
    if kind == "none":
        skill = np.exp(rng.normal(np.log(1.3), 0.6, copies))
        return _arena(rng, skill, np.zeros(copies), np.zeros(copies), items, per_judge, same=True)
    truth = rng.normal(size=items)
    taste = 0.2 * truth + 0.98 * rng.normal(size=items)
    one, two = _pairs(rng, items, per_judge)
    said = [_outcomes(rng, skill * (truth[one] - truth[two]), 0.0) for skill in (1.2, 1.5, 1.8)]
    eta = 2.0 * (taste[one] - taste[two]) if kind == "biased" else np.zeros(per_judge)
    original = _outcomes(rng, eta, 0.0)
    for _ in range(copies):
        own = _outcomes(rng, eta, 0.0)
        said.append(np.where(rng.random(per_judge) < repeated, original, own))
    return Comparisons(_table([(judge, one, two, outcome, None) for judge, outcome in enumerate(said)]), truth[None])


def draw_runs(seed: int, repeats: int, *, uneven: bool, judges: int = 5, items: int = 30) -> Comparisons:
    """Return judges who are asked several times and hold on to their errors."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=items)
    skill = np.exp(rng.normal(np.log(1.3), 0.5, judges))
    if uneven:
        skill[0] = 0.3
    parts, questions, runs = [], [], []
    for judge in range(judges):
        one, two = _pairs(rng, items, 60)
        lasting = rng.normal(0.0, 2.0, 60)
        for run in range(repeats if not uneven or judge == 0 else 1):
            parts.append(
                (judge, one, two, _outcomes(rng, skill[judge] * (truth[one] - truth[two]) + lasting, 0.0), None)
            )
            questions += [f"{judge}:{number}" for number in range(60)]
            runs += [run] * 60
    return Comparisons({**_table(parts), "question": questions, "run": runs}, truth[None])


def _judges(rng: np.random.Generator, scenario: str, judges: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    kinds: dict[str, Callable[[], FloatArray]] = {
        "hom": lambda: np.full(judges, 1.5),
        "het": lambda: np.exp(rng.normal(np.log(1.2), 0.8, judges)),
        "noise": lambda: np.where(np.arange(judges) < judges // 2, 0.05, 2.0),
        "adv": lambda: np.r_[-1.5, np.exp(rng.normal(np.log(1.5), 0.5, judges))[1:]],
    }
    skill = kinds[scenario.split("-", maxsplit=1)[0]]()
    bias = rng.normal(0.8, 0.6, judges) if "pos" in scenario else np.zeros(judges)
    tie = np.exp(rng.normal(0.0, 0.8, judges)) if "tie" in scenario else np.zeros(judges)
    return skill, bias, tie


def _arena(
    rng: np.random.Generator,
    skill: FloatArray,
    bias: FloatArray,
    tie: FloatArray,
    items: int,
    per_judge: int,
    *,
    same: bool = False,
) -> Comparisons:
    truth = rng.normal(size=items)
    common = _pairs(rng, items, per_judge)  # drawn in any case, as the study did
    parts = []
    for judge in range(len(skill)):
        one, two = common if same else _pairs(rng, items, per_judge)
        eta = skill[judge] * (truth[one] - truth[two]) + bias[judge]
        parts.append((judge, one, two, _outcomes(rng, eta, tie[judge]), None))
    return Comparisons(_table(parts), truth[None])


def _pairs(rng: np.random.Generator, items: int, count: int) -> Draw:
    one = rng.integers(items, size=count)
    return one, (one + rng.integers(1, items, size=count)) % items


def _outcomes(rng: np.random.Generator, eta: FloatArray, tie: float) -> IntArray:
    first, second = np.exp(eta / 2.0), np.exp(-eta / 2.0)
    drawn = rng.random(len(eta)) * (first + second + tie)
    return np.where(drawn < first, 1, np.where(drawn < first + second, -1, 0))


def _table(parts: list[tuple[int, IntArray, IntArray, IntArray, IntArray | None]]) -> dict[str, list[Any]]:
    words = {1: "first", -1: "second", 0: "tie"}
    table: dict[str, list[Any]] = {"judge": [], "first": [], "second": [], "outcome": []}
    for judge, one, two, outcome, prompt in parts:
        table["judge"] += [f"judge {judge}"] * len(one)
        table["first"] += [str(name) for name in one.tolist()]
        table["second"] += [str(name) for name in two.tolist()]
        table["outcome"] += [words[value] for value in outcome.tolist()]
        if prompt is not None:
            table.setdefault("prompt", []).extend(prompt.tolist())
    return table
