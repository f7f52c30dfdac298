"""Claim: on unseen seeds, labels are nearly as good as if the source qualities were known.

Every label type; random configurations, schools of sources, cliques near chance, calibration, false accusations.
A rule is developed on the seeds of ``--develop``, and judged on a block of ``--draw``, which is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import consilience as cs

from .label_draws import KINDS, Kind, Panel, Sample
from .tables import QUICK, RESULTS, fit_quietly, in_parallel, markdown_table, verdict, write_results

BLOCKS = RESULTS / "fresh_seeds_blocks.json"
#: Seeds below are for development.
FIRST_FRESH = 10**6
SCHOOLS = ((6, 4), (5, 5), (5, 3), (4, 3, 3), (3, 3, 2, 2))
QUICK_TYPES = ("2 classes", "scores")
ACCUSATIONS = {"dependent-pair", "competing-groups"}
#: A nearly perfect plain vote has nothing to lose: losses are compared to at least this share of chance.
SMALLEST_LOSS = 0.01
ENOUGH, NORMAL_90 = 200, 1.645
WORSE, MUCH_WORSE = 0.02, 0.10
ALL = "**all**"
LABELS = (
    "configurations|gap|median gap|gap before|log(loss / before)|gap if all labels were known|gap of the plain vote|"
    "worse by >2%|surely|oracle worse|>10%|worst"
)
TRUST = "schools|schools before|cliques|independent fits|accused|tenth|tenth, copies|90% intervals cover|seconds|errors"
INTRO = (
    "**gap**: how much more labels cost on fresh items than those of an oracle that knows the sources, in random "
    "configurations (3 to 15 sources, 30 to 3,000 items; 150 to 400 at most for slow types). **gap if all labels were "
    "known**: the same of a fit that is told the true label of every item it learns from; what is left is the price of"
    " learning from so few items. **worse**: share of these that are worse than the plain vote; one that fails counts;"
    " **surely**: by more than 2% and two standard errors of the difference on the fresh items; **oracle worse**: the "
    "same share for the oracle, which is luck. **schools**, **cliques**: mean loss over that of the plain vote, where "
    "every source belongs to a school with its own version of the truth, and where sources near "
    "chance repeat each other. **accused**: share of the fits of independent sources with a finding of dependence. "
    f"**tenth**: stated minus observed in the worst tenth of confidence with at least {ENOUGH} cases. Its standard "
    "error and that of the coverage take each panel of sources as one draw. Confidence is compared with how often the "
    "label is right for finite types, for scores with the coverage of central intervals, elsewhere with the share of "
    "the cost of chance that is avoided or the share of the label that is right, whichever is nearer."
)

Record = dict[str, Any]
Job = tuple[str, str, str, int]


def jobs_of(kind: str, seeds: Sequence[int]) -> list[Job]:
    """Return type, block, setting and seed of every configuration."""
    listed = [(kind, "random", "", seed) for seed in seeds]
    for sizes in SCHOOLS:
        for n in (150, 1000):
            name = f"{'+'.join(map(str, sizes))}, n={n}"
            listed += [(kind, "schools", name, seed) for seed in seeds[: max(1, len(seeds) // 10)]]
    listed += [(kind, "cliques", f"n={(300, 1000)[seed % 2]}", seed) for seed in seeds[: max(1, len(seeds) // 4)]]
    for setting in ("independent, n=300", "independent, n=2000", "copies, n=300", "copies, n=2000"):
        # Confidence comes true over panels, not within each: two or three panels would show their luck.
        listed += [(kind, "calibration", setting, seed) for seed in seeds[: max(1, len(seeds) // 3)]]
    return listed


def configuration(block: str, setting: str, rng: np.random.Generator, most: int) -> tuple[Panel, int]:
    """Draw the sources of a configuration, and the number of items to learn from."""
    n = min(int(setting.rsplit("n=", 1)[-1]), most) if setting else 0
    if block == "random":
        return random_panel(rng), round(float(np.exp(rng.uniform(np.log(30), np.log(most)))))
    if block == "schools":
        sizes = [int(size) for size in setting.split(",", maxsplit=1)[0].split("+")]
        schools = tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())
        return Panel(rng.uniform(0.4, 0.7, len(schools)), np.ones(len(schools)), schools=schools), n
    if block == "cliques":
        return Panel(rng.uniform(0.03, 0.15, 10), np.ones(10), tuple(range(int(rng.integers(3, 5)))), 0.9), n
    copies = ((0, 1, 2), 0.9) if setting.startswith("copies") else ()
    return Panel(rng.uniform(0.1, 0.6, 7), np.ones(7), *copies), n


def random_panel(rng: np.random.Generator) -> Panel:
    """Draw 3 to 15 sources: alike, a band, or a few good ones; some abstain, and some copy the best or the worst."""
    m = int(rng.integers(3, 16))
    shape = rng.random()
    if shape < 0.35:
        quality = np.full(m, rng.uniform(0.2, 0.7))
    elif shape < 0.75:
        center = rng.uniform(0.3, 0.7)
        reach = rng.random() * min(center - 0.05, 0.9 - center)
        quality = rng.uniform(center - reach, center + reach, m)
    else:
        quality = np.where(rng.random(m) < 0.4, rng.uniform(0.5, 0.9, m), rng.uniform(0.03, 0.2, m))
    coverage = np.ones(m) if rng.random() < 0.4 else rng.uniform(0.4, 1.0, m)
    if m < 5 or rng.random() > 0.45:
        return Panel(quality, coverage)
    copied = 0.9 if rng.random() < 0.5 else 0.5
    group = tuple(range(int(rng.integers(2, min(5, m - 3) + 1))))
    return Panel(np.sort(quality)[:: 1 if rng.random() < 0.5 else -1].copy(), coverage, group, copied)


def run(job: Job, limit: float) -> Record:
    """Fit and measure one configuration; what it raises, or that it took too long, is part of the record."""
    record: Record = dict(zip(("type", "block", "setting", "seed"), job, strict=True))

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {limit:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)  # counts the time of the process, not that of a busy machine
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return record | measure(KINDS[job[0]], job)
    except Exception as error:  # a configuration that fails is a result
        return record | {"error": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def measure(kind: Kind, job: Job) -> Record:
    """Fit on some items and measure on fresh ones: the default, the plain vote and the oracle."""
    name, block, setting, seed = job
    rng = np.random.default_rng([seed, crc32(f"{name}/{block}/{setting}".encode())])
    panel, n = configuration(block, setting, rng, kind.items)
    sources = kind.sources(panel, rng)
    learned = kind.sample(sources, panel, n, rng)
    votes = kind.votes(learned)
    sample = kind.sample(sources, panel, kind.fresh, rng)
    fresh = kind.votes(sample)
    start = time.process_time()
    model = fit_quietly(cs.LabelModel(kind.space, random_state=0), votes)
    seconds = time.process_time() - start
    ours, plain = kind.loss(model.predict(fresh), sample), kind.loss(model.predict_baseline(fresh), sample)
    found: Record = {
        **{"m": len(panel.quality), "n": n, "group": len(panel.group), "copied": panel.copied},
        "votes": crc32(np.array2string(votes.labels[:5], precision=5, threshold=10**6).encode()),
        **{"ours": float(ours.mean()), "plain": float(plain.mean())},
        "error_of_difference": float((ours - plain).std() / np.sqrt(len(ours))),
        **{"floor": SMALLEST_LOSS * kind.chance, "seconds": round(seconds, 3)},
        "findings": sorted({item.code for item in model.diagnostics_}),
    }
    if block == "random":
        found["oracle"] = kind.oracle_loss(sources, panel, sample)
        found["known"] = min(known_losses(kind, votes, learned, fresh, sample))
    if block == "calibration" and kind.states is not None:
        found["tenths"] = [tenths(*one) for one in stated_and_observed(kind, model, fresh, sample)]
        found["covered"] = covered(kind, model, sample)
    return found


def known_losses(kind: Kind, votes: cs.Votes, learned: Sample, fresh: cs.Votes, sample: Sample) -> Iterator[float]:
    """Yield the losses of fits that are told the label of every item, first with what votes show of copies."""
    gold = kind.labels(learned.truth), np.ones(len(learned.observed), dtype=bool)
    for method in ("auto", "labelled"):
        told = fit_quietly(cs.LabelModel(kind.space, method=method, random_state=0), votes, gold)
        yield float(kind.loss(told.predict(fresh), sample).mean())


def stated_and_observed(kind: Kind, model: cs.LabelModel, fresh: cs.Votes, sample: Sample) -> list[tuple[Any, Any]]:
    """Return confidence and what came true of it, in each sense that the label type may mean."""
    rows = np.flatnonzero(sample.observed.any(axis=1))
    if kind.states == "interval":
        levels, truth = np.arange(0.1, 0.95, 0.1), sample.truth[rows]
        bounds = [model.predict_distribution(fresh).interval(float(level)) for level in levels]
        held = [(lower[rows] <= truth) & (truth <= upper[rows]) for lower, upper in bounds]
        return [(np.repeat(levels, len(rows)), np.concatenate(held).astype(float))]
    labels, stated = model.predict(fresh), model.confidence(fresh)[rows]
    if model.posterior(fresh[:2]).probabilities is not None:
        return [(stated, (kind.loss(labels, sample) == 0.0).astype(float))]
    return [(stated, observed) for observed in kind.shares(labels, sample)]


def tenths(stated: Any, observed: Any) -> list[list[float]]:
    """Return count, stated sum and observed sum for each tenth of confidence."""
    tenth = np.clip((stated * 10 - 1e-9).astype(int), 0, 9)
    sums = [np.bincount(tenth, each, 10) for each in (np.ones_like(stated), stated, observed)]
    return np.round(np.transpose(sums), 6).tolist()


def covered(kind: Kind, model: cs.LabelModel, sample: Sample) -> list[int]:
    """Return how many 90% intervals of expected costs hold the true cost, as the fresh votes have it."""
    inside, errors = 0, model.cost_standard_error_.tolist()
    for one, error in enumerate(errors):
        rows = np.flatnonzero(sample.observed[:, one])
        cost = kind.cost(kind.labels(sample.said[rows, one]), kind.labels(sample.truth[rows]))
        reach = NORMAL_90 * np.hypot(error, cost.std() / np.sqrt(len(cost)))
        inside += bool(abs(model.expected_cost_[one] - cost.mean()) <= reach)
    return [inside, len(errors)]


def key(record: Record) -> Job:
    return record["type"], record["block"], record["setting"], record["seed"]


def relative(record: Record, to: str = "plain") -> float:
    """Return how much more the labels cost than those of the plain vote or the oracle."""
    return (record["ours"] - record[to]) / max(record[to], record["floor"])


def with_error(record: Record) -> tuple[float, float]:
    """Return the loss over that of the plain vote, and the standard error of the difference."""
    return relative(record), record["error_of_difference"] / max(record["plain"], record["floor"])


def losing(record: Record, by: float) -> bool:
    """Whether a configuration is worse than the plain vote by more than this; one that fails is."""
    return "error" in record or relative(record) > by


def mean(values: Iterable[float]) -> float:
    return float(np.mean([*values] or [0.0]))


def paired(records: Sequence[Record], before: dict[Job, Record]) -> list[tuple[Record, Record]]:
    """Return records with those of the package before on the same votes."""
    both = [(one, before[key(one)]) for one in records if key(one) in before]
    return [(one, other) for one, other in both if "error" not in other and other["votes"] == one["votes"]]


def share_over_panels(part: Any, whole: Any) -> tuple[float, float]:
    """Return a sum over panels as a share of another one, with a standard error that takes each panel as one draw."""
    share, panels = float(part.sum() / whole.sum()), max(len(whole), 2)
    error = np.sqrt(((part - share * whole) ** 2).sum() * panels / (panels - 1)) / whole.sum()
    return share, float(error)


def largest_tenth(records: Sequence[Record]) -> tuple[float, float] | None:
    """Return the largest gap between stated and observed in a tenth, in the nearest sense, and its standard error."""
    senses = []
    for sense in range(min((len(one["tenths"]) for one in records), default=0)):
        found = []
        for setting in {one["setting"] for one in records}:
            sums = np.array([one["tenths"][sense] for one in records if one["setting"] == setting])
            for tenth in range(sums.shape[1]):
                count, stated, observed = sums[:, tenth].T
                if count.sum() >= ENOUGH:
                    found.append(share_over_panels(stated - observed, count))
        senses += [max(found, key=lambda one: abs(one[0]))] if found else []
    return min(senses, key=lambda one: abs(one[0]), default=None)


def summarize(records: Sequence[Record], before: dict[Job, Record]) -> Record:
    """Return the numbers of one label type, or of all, by the headings of the tables."""
    block = {name: [one for one in records if one["block"] == name] for name in ("random", "schools", "cliques")}
    fits, schools, cliques = ([one for one in block[name] if "error" not in one] for name in block)
    calibration = [one for one in records if "tenths" in one]
    independent = [one for one in records if not one.get("group", 1) and one["block"] in ("random", "calibration")]
    then, taught = paired(fits, before), paired(schools, before)

    def gap(name: str) -> list[float]:
        return [relative({**one, "ours": one[name]}, "oracle") for one in fits if name in one]

    ratio = [np.log(max(one["ours"], one["floor"]) / max(other["ours"], one["floor"])) for one, other in then]
    return {
        "configurations": len(block["random"]),
        "gap": mean(gap("ours")),
        "median gap": float(np.median(gap("ours") or [np.inf])),
        "gap before": mean(relative({**one, "ours": other["ours"]}, "oracle") for one, other in then) if then else None,
        "log(loss / before)": (mean(ratio), float(np.std(ratio) / np.sqrt(len(ratio)))) if ratio else None,
        "gap if all labels were known": mean(gap("known")) if gap("known") else None,
        "gap of the plain vote": mean(gap("plain")),
        "worse by >2%": mean(losing(one, WORSE) for one in block["random"]),
        "surely": mean(relative(one) - 2.0 * with_error(one)[1] > WORSE for one in fits),
        "oracle worse": mean(relative({**one, "ours": one["oracle"]}) > WORSE for one in fits),
        ">10%": mean(losing(one, MUCH_WORSE) for one in block["random"]),
        "worst": max(map(with_error, fits), default=None),
        "schools": mean(relative(one) for one in schools),
        "schools before": mean(relative(other) for _, other in taught) if taught else None,
        "cliques": mean(relative(one) for one in cliques),
        "independent fits": len(independent),
        "accused": mean(bool(ACCUSATIONS & set(one["findings"])) for one in independent),
        "tenth": largest_tenth([one for one in calibration if not one["group"]]),
        "tenth, copies": largest_tenth([one for one in calibration if one["group"]]),
        "90% intervals cover": share_over_panels(*np.array([one["covered"] for one in calibration]).T)
        if calibration
        else None,
        "seconds": f"{np.median([one['seconds'] for one in fits] or [0.0]):.2f}",
        "errors": sum("error" in one for one in records),
    }


def cell(value: Any, *, signed: bool = True) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:{'+' * signed}.1%} ± {value[1]:.1%}"
    return "-" if value is None else f"{value:.1%}" if isinstance(value, float) else str(value)


def table(found: dict[str, Record], headings: str, *, compared: bool) -> str:
    shown = [heading for heading in headings.split("|") if compared or "before" not in heading]
    rows = [[name, *(cell(one[each], signed="cover" not in each) for each in shown)] for name, one in found.items()]
    return markdown_table(["label type", *shown], rows)


def targets(found: dict[str, Record]) -> str:
    """Judge every target, first over all types and then type by type."""
    types, total = {name: one for name, one in found.items() if name != ALL}, found[ALL]
    lines = []
    for claim, value, limit in (
        ("mean gap to the oracle over the types at most 6%", mean(one["gap"] for one in types.values()), 0.06),
        ("worse than the plain vote by more than 2% in at most 3%", total["worse by >2%"], 0.03),
        ("worse than the plain vote by more than 10% in at most 0.5%", total[">10%"], 0.005),
        ("worst case at most +25%", (total["worst"] or [np.inf])[0], 0.25),
        ("schools at most +3% over the plain vote", mean(one["schools"] for one in types.values()), 0.03),
        ("independent sources accused in at most 1%", total["accused"], 0.01),
    ):
        lines.append(verdict(claim, value <= limit, f"{value:.1%}"))
    for claim, heading, holds in (
        ("gap at most 10%", "gap", lambda gap: gap <= 0.10),
        (
            "not worse than before by a standard error and a thousandth",
            "log(loss / before)",
            lambda ratio: ratio[0] <= max(ratio[1], 0.001),
        ),
        ("schools at most +10% over the plain vote", "schools", lambda lost: lost <= 0.10),
        ("confidence off by at most 5 points, independent sources", "tenth", lambda gap: abs(gap[0]) <= 0.05),
        ("confidence off by at most 5 points, with copies", "tenth, copies", lambda gap: abs(gap[0]) <= 0.05),
        ("90% intervals of qualities cover 85 to 95%", "90% intervals cover", lambda share: 0.85 <= share[0] <= 0.95),
    ):
        known = {name: one[heading] for name, one in types.items() if one[heading] is not None}
        signed = "cover" not in heading
        missed = [f"{name} {cell(value, signed=signed)}" for name, value in known.items() if not holds(value)]
        if known:
            lines.append(verdict(f"every type: {claim}", not missed, "; ".join(missed) or f"{len(known)} types"))
    return "\n".join(lines)


def losses(records: Sequence[Record]) -> str:
    """List the configurations that lose more than 10% to the plain vote, and those that failed."""
    rows = []
    for one in sorted(records, key=lambda one: -np.inf if "error" in one else -relative(one)):
        if losing(one, MUCH_WORSE):
            copies = f", {one['group']} copied {one['copied']:.0%}" if one.get("group") else ""
            shape = f"{one['m']} x {one['n']}{copies}" if "m" in one else "-"
            lost = cell(None if "error" in one else with_error(one))
            gap = cell(relative(one, "oracle") if "oracle" in one else None)
            told = one.get("error", "").replace("|", "/").replace("\n", " ") or ", ".join(one["findings"])
            rows.append([", ".join(filter(None, key(one)[:3])), str(one["seed"]), shape, lost, gap, told])
    columns = ["configuration", "seed", "sources x items", "over plain", "over oracle", "findings or error"]
    return markdown_table(columns, rows) if rows else "None."


def new_block(path: Path, size: int) -> int:
    """Draw a block of seeds that overlaps no recorded one, and record it."""
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    start = FIRST_FRESH + secrets.randbelow(10**9)
    while any(start < one["start"] + one["seeds"] and one["start"] < start + size for one in recorded):
        start = FIRST_FRESH + secrets.randbelow(10**9)
    described = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    today = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"drawn": today, "start": start, "seeds": size, "commit": described.stdout.strip()}
    path.write_text(json.dumps([*recorded, entry], indent=1) + "\n", encoding="utf-8")
    return start


def find_block(path: Path, start: int | None) -> tuple[int, int]:
    """Return start and size of a recorded block; of the last one if none is named."""
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    fitting = [(one["start"], one["seeds"]) for one in recorded if start in (None, one["start"])]
    if not fitting:
        known = ", ".join(str(one["start"]) for one in recorded) or "none so far"
        raise SystemExit(f"There is no such block of seeds. Recorded: {known}. Take a new one with --draw N.")
    return fitting[-1]


def read_lines(path: Path | None) -> dict[Job, Record]:
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    return {key(one): one for one in map(json.loads, lines)}


def measured(given: argparse.Namespace, wanted: Sequence[Job]) -> list[Record]:
    """Run what is not in the file of lines yet, and return all of it."""
    done = read_lines(given.out)
    os.environ["CONSILIENCE_WORKERS"] = str(given.jobs)
    for record in in_parallel(run, [(job, given.limit) for job in wanted if job not in done], "fresh seeds"):
        done[key(record)] = record
        if given.out is not None:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"package": given.package or cs.__version__, **record}) + "\n")
    return [done[job] for job in wanted]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a block of seeds and write ``fresh_seeds.md``; print the tables of development seeds."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fresh_seeds", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--draw", type=int, metavar="N", help="take a new block of N seeds per type, and record it")
    which.add_argument("--block", type=int, metavar="START", help="repeat a recorded block (default: the last one)")
    which.add_argument("--develop", type=int, metavar="N", help="seeds 0 to N-1, for development; prints the tables")
    which.add_argument("--quick", action="store_true", help="one development seed of a few types: shows that it runs")
    parser.add_argument("--seeds", type=int, help="only so many seeds of the block")
    parser.add_argument("--types", help=f"some label types, separated by commas, of: {', '.join(KINDS)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of CPU time for one configuration")
    parser.add_argument("--package", help="what the lines call the package, if it is not that of this folder; no page")
    parser.add_argument("--out", type=Path, help="file for one JSON line per configuration; goes on where it stopped")
    parser.add_argument("--before", type=Path, help="lines of another package on the same seeds, to compare with")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write the table to")
    given = parser.parse_args(arguments)
    chosen = given.types.split(",") if given.types else QUICK_TYPES if given.quick else list(KINDS)
    if unknown := set(chosen) - set(KINDS):
        parser.error(f"--types names {', '.join(sorted(unknown))}, which is not among {', '.join(KINDS)}.")
    start, size, asked = 0, given.develop or 1, "--seeds 1 --quick" if given.quick else f"--develop {given.develop}"
    if not (given.develop or given.quick):
        start, size = find_block(BLOCKS, new_block(BLOCKS, given.draw) if given.draw else given.block)
        asked = f"--block {start}"
    seeds = range(start, start + min(given.seeds or size, size))
    records = measured(given, [job for name in chosen for job in jobs_of(name, seeds)])
    before = read_lines(given.before)
    for one, other in paired([one for one in records if "oracle" in one], before):
        one["oracle"] = min(one["oracle"], other["oracle"])
    found = {name: summarize([one for one in records if one["type"] == name], before) for name in chosen}
    found[ALL] = {**summarize(records, before), "tenth": None, "tenth, copies": None}
    blocks = [INTRO, *(table(found, headings, compared=bool(before)) for headings in (LABELS, TRUST)), "## Targets"]
    blocks += [QUICK if given.quick else targets(found), "## Losses of more than 10%, and errors", losses(records)]
    if given.develop or given.package:
        print("\n\n".join(blocks))
        return
    asked += f" --seeds {given.seeds}" * bool(given.seeds) + f" --types '{given.types}'" * bool(given.types)
    details = [f"seeds {start} to {seeds[-1]} for each of {len(chosen)} label types"]
    details += sorted({f"before: {one['package']}" for one in before.values()})
    title, command = "Seeds that nobody has looked at", f"python -m experiments.fresh_seeds {asked}"
    write_results(given.results / "fresh_seeds.md", title, command, details, blocks)


if __name__ == "__main__":
    main()
