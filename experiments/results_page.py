"""Write ``docs/explanation/results.md`` from the tables in ``results/``: the claims of the paper beside our results.

``python -m experiments.results_page`` writes the page, and the measured numbers into the README; with ``--check`` it
only says whether both are up to date.
No experiment is run. `claims.py` says which cells of which tables stand beside which number of the paper.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .claim_types import BetterBelow, Claim, Holds
from .claims import AGAINST_PLAIN, BEYOND, CLAIMS
from .readme_numbers import numbers, put_in
from .results_files import ResultsFile, number
from .tables import RESULTS

PAGE = RESULTS.parent.parent / "docs" / "explanation" / "results.md"
README = RESULTS.parent.parent / "README.md"
NOT_RUN = "not run"
INTRODUCTION = (
    "This page compares the tables, figures and theorems of *Universalizing Weak Supervision* with our measurements. "
    "The column *paper* has numbers that are printed in the paper, read off a figure (~), or stored with the code of "
    "its authors (*stored*). *Reference, run again* is that code, run by us on its own random draws. *Measured here* "
    "shows cells of the linked tables; the second line of each table is the command that makes it. "
    "`python -m experiments.results_page` writes this page from the tables, and `consilience reproduce --list` lists "
    "the experiments."
)
IN_PART, AGAINST = "holds in part", "does not hold"
VERDICTS = {
    "holds": "all comparisons came out as claimed",
    "holds better": "the same, and our results are better than those of the reference implementation or the bound",
    IN_PART: "some comparisons came out as claimed and others did not; both are listed",
    AGAINST: "no comparison came out as claimed, or the claim is refuted; the reason is given",
    NOT_RUN: "there is no table in `experiments/results/`; `consilience reproduce` makes it",
}


def judge(claim: Claim, files: Sequence[ResultsFile], ours: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Return the verdict, its reason, and which comparisons hold where some do not.

    They are comparisons of cells, and targets of the files.
    """
    targets = [target for file in files for target in file.targets if re.search(claim.targets, target[0])]
    missed = [f"{words} ({evidence})" for words, holds, evidence in targets if not holds]
    if claim.against:
        refuted = bool(targets) and not missed
        return (AGAINST, claim.reason, []) if refuted else ("holds", f"Not refuted: {'; '.join(missed)}.", [])
    better, held = [], [words for words, holds, _ in targets if holds]
    for test in claim.tests:
        if not {test.ours, test.other if isinstance(test, Holds) else test.ours} <= set(ours):
            continue  # the table is not there
        left = number(ours[test.ours])
        if not isinstance(test, Holds):
            better.append(left < test.reference if isinstance(test, BetterBelow) else left > test.reference)
            continue
        right = number(ours[test.other])
        side = "below" if test.below else "above"
        if left < right if test.below else left > right:
            held.append(f"{test.ours} {side} {test.other}")
        else:
            missed.append(f"{test.ours} {side} {test.other} ({left:g} against {right:g})")
    if missed:
        lines = [*(f"- holds: {words}" for words in held), *(f"- missed: {words}" for words in missed)]
        return (IN_PART if held else AGAINST), claim.reason, lines
    if not held and not better:
        return AGAINST, "The tables judge nothing.", []
    return ("holds better" if better and all(better) else "holds"), claim.reason, []


def also_missed(claim: Claim, files: Sequence[ResultsFile], plain: Mapping[str, Compared]) -> list[str]:
    """Return what goes beyond the claim and was missed: targets, and tables in which the plain vote is ever better."""
    return [
        f"{link(file.name)}: {words} ({evidence})"
        for file in files
        for words, holds, evidence in file.targets
        if not holds and not re.search(claim.targets, words)
    ] + [
        f"{link(file.name)}: the plain vote is never better (it is in {len(plain[file.name].behind)} of "
        f"{len(plain[file.name].settings)} settings, listed at the end)"
        for file in files
        if file.name in plain and plain[file.name].behind
    ]


def link(name: str) -> str:
    return f"[{name}](../../experiments/results/{name}.md)"


def section(number_of: str, claim: Claim, folder: Path, plain: Mapping[str, Compared]) -> tuple[list[str], str]:
    """Return the Markdown of one claim, and its verdict."""
    files = [file for file in (ResultsFile.read(folder, name) for name in claim.files) if file is not None]
    blocks = [f"## {number_of} {claim.title}", f"*{claim.where}.* {claim.says}"]
    if claim.differs:
        blocks.append(f"The text and the code of the paper differ. {claim.differs}")
    if not files:
        needs = f" {claim.needs}" if claim.needs else ""
        blocks += [f"**{NOT_RUN}**: {', '.join(f'`{name}`' for name in claim.files)}.{needs}"]
        return blocks, NOT_RUN
    by_name = {file.name: file for file in files}
    ours, rows = {}, []
    for figure in claim.figures:
        if figure.cell is not None and figure.cell[0] not in by_name:
            continue
        shown = "" if figure.cell is None else by_name[figure.cell[0]].cell(*figure.cell[1:])
        ours[figure.name] = shown
        rows.append(f"| {figure.name} | {figure.paper} | {figure.reference} | {shown} |")
    if rows:
        head = "| | paper | reference, run again | measured here |\n|---|---:|---:|---:|"
        blocks.append("\n".join([head, *rows]))
    verdict, reason, lines = judge(claim, files, ours)
    blocks.append(f"**{verdict}**: {reason}" if reason else f"**{verdict}**.")
    if lines:
        blocks.append("\n".join(lines))
    if not claim.figures and not lines:
        targets = [target for file in files for target in file.targets]
        blocks.append(
            "\n".join(f"- {words}: {'holds' if holds else 'missed'} ({why})" for words, holds, why in targets)
        )
    elif also := also_missed(claim, files, plain):
        blocks.append("Other targets that were missed:")
        blocks.append("\n".join(f"- {words}" for words in also))
    links = ", ".join(link(file.name) for file in files)
    missing = [name for name in claim.files if name not in by_name]
    blocks.append(f"Tables: {links}." + (f" Not run: {', '.join(missing)}." if missing else ""))
    return blocks, verdict


def page(folder: Path = RESULTS) -> str:
    """Return the page."""
    sections, overview, found = [], [], []
    plain = beside_plain(folder)
    for index, claim in enumerate(CLAIMS, 1):
        blocks, verdict = section(f"{index}.", claim, folder, plain)
        sections += blocks
        overview.append(f"| {index} | {claim.title} | {claim.where} | {verdict} | {claim.why} |")
        found.append(verdict)
    counts = [f"{found.count(name)} {_plural(name, found.count(name))}" for name in VERDICTS if name in found]
    sentence, compared = against_plain(plain)
    blocks = [
        "# The paper's claims, measured",
        f"**In short**: of {len(found)} claims, {', '.join(counts[:-1])} and {counts[-1]}; {sentence}.",
        "\n".join(["| | claim | in the paper | verdict | why |", "|---:|---|---|---|---|", *overview]),
        INTRODUCTION,
        "\n".join(f"- **{name}**: {words}." for name, words in VERDICTS.items() if name in found),
        *sections,
        *beyond(folder),
        *compared,
    ]
    return "\n\n".join(blocks) + "\n"


def _plural(verdict: str, count: int) -> str:
    if verdict == NOT_RUN:
        return "was not run" if count == 1 else "were not run"
    return verdict if count == 1 else verdict.replace("holds", "hold").replace("does not", "do not")


def beyond(folder: Path) -> list[str]:
    """Return a verdict for each topic that the paper does not have, and every target that was missed."""
    rows, missed = [], []
    for topic, names, words, pattern in BEYOND:
        files = [file for file in (ResultsFile.read(folder, name) for name in names) if file is not None]
        targets = [(file.name, *one) for file in files for one in file.targets if re.search(pattern, one[0])]
        held = sum(holds for _, _, holds, _ in targets)
        verdict = NOT_RUN if not files else "holds" if held == len(targets) else IN_PART if held else AGAINST
        share = f" ({held} of {len(targets)} targets)" if targets else ""
        links = ", ".join(link(file.name) for file in files)
        rows.append(f"| {topic} | {words} | {verdict}{share} | {links} |")
        missed += [f"- {topic}, {link(name)}: {words} ({why})." for name, words, holds, why in targets if not holds]
    return [
        "## Beyond the paper",
        "What the paper does not have. The targets stand in the linked tables.",
        "\n".join(["| topic | what is measured | verdict | tables |", "|---|---|---|---|", *rows]),
        "Targets that were missed:",
        "\n".join(dict.fromkeys(missed)) or "none.",
    ]


@dataclass(frozen=True)
class Compared:
    """The settings in which a table has the plain vote beside ours, and where the plain vote is better."""

    settings: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def beside_plain(folder: Path) -> dict[str, Compared]:
    """Compare ours with the plain vote wherever a table has both, by the digits shown."""
    found: dict[str, Compared] = {}
    for one in AGAINST_PLAIN:
        file = ResultsFile.read(folder, one.file)
        for setting, ours, plain in [] if file is None else file.beside(one.heading, one.ours, one.plain, one.settings):
            table = found.setdefault(one.file, Compared())
            table.settings.append(setting)
            left, right = number(ours), number(plain)
            if left < right if one.above else left > right:
                table.behind.append(f"{setting} ({left:g} : {right:g})")
    return found


def against_plain(plain: Mapping[str, Compared]) -> tuple[str, list[str]]:
    """Return how often the plain vote is better, in one sentence, and every table with the settings where it is."""
    total, worse = (sum(len(getattr(one, name)) for one in plain.values()) for name in ("settings", "behind"))
    rows = [
        f"| {link(name)} | {len(one.settings)} | {len(one.behind)} | "
        f"{'missed' if one.behind else 'holds'} | {'; '.join(one.behind)} |"
        for name, one in plain.items()
    ]
    sentence = f"the plain vote is better than ours in {worse} of {total} comparisons, listed at the end"
    return sentence, [
        "## Against the plain vote",
        "These tables have both our result and the plain vote (majority, mean, equal weights or best vote). The target "
        "of each table is that the plain vote is never better. The last column lists every setting in which it is, by "
        "the digits shown; our number comes first. "
        f"{link('never_worse')} counts how often ours is worse in random settings.",
        "\n".join(["| table | settings | plain vote better | target | where |", "|---|---:|---:|---|---|", *rows]),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(prog="python -m experiments.results_page", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; stop with an error if the page is out of date"
    )
    given = parser.parse_args(arguments)
    made = {PAGE: page(), README: put_in(README.read_text(encoding="utf-8"), numbers())}
    for path, text in made.items():
        if not given.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{path.name} is out of date. Run: python -m experiments.results_page")


if __name__ == "__main__":
    main()
