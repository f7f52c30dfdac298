"""Put together ``docs/results.md`` from the tables in ``results/``: what the paper says, and what was measured.

``python -m experiments.results_page`` writes the page, and the measured numbers into the README; with ``--check`` it
only says whether both are up to date.
Nothing is run. `claims.py` says which cells of which tables stand beside which number of the paper.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .claim_types import BetterBelow, Claim, Holds
from .claims import BEYOND, CLAIMS
from .readme_numbers import numbers, put_in
from .results_files import ResultsFile, number
from .tables import RESULTS

PAGE = RESULTS.parent.parent / "docs" / "results.md"
README = RESULTS.parent.parent / "README.md"
NOT_RUN = "not run"
INTRODUCTION = (
    "What *Universalizing Weak Supervision* says in its tables, figures and theorems, and what comes out here. *paper* "
    "is printed there, or read off a picture (~); *reference, run again* is the code of its authors, run by us on "
    "draws of its own; *measured here* are cells of the tables that are linked, made by the commands in their second "
    "lines. This page is put together from those tables by `python -m experiments.results_page`; "
    "`consilience reproduce --list` shows how to make the tables."
)
VERDICTS = {
    "holds": "the claim is true of our runs",
    "holds better": "it is, and ours is better than the reference implementation or the bound",
    "does not hold": "it is not, or a target that was set for it was missed; the reason is given",
    NOT_RUN: "there is no table in `experiments/results/`; `consilience reproduce` makes it",
}


def judge(claim: Claim, files: Sequence[ResultsFile], ours: Mapping[str, str]) -> tuple[str, str]:
    """Return the verdict and its reason, from the cells and from the targets of the files."""
    targets = [target for file in files for target in file.targets if re.search(claim.targets, target[0])]
    missed = [f"{words} ({evidence})" for words, holds, evidence in targets if not holds]
    if claim.against:
        refuted = bool(targets) and not missed
        return ("does not hold", claim.reason) if refuted else ("holds", f"Not refuted: {'; '.join(missed)}.")
    better, reached = [], len(targets) - len(missed)
    for test in claim.tests:
        if not {test.ours, test.other if isinstance(test, Holds) else test.ours} <= set(ours):
            continue  # the table is not there
        left = number(ours[test.ours])
        if not isinstance(test, Holds):
            better.append(left < test.reference if isinstance(test, BetterBelow) else left > test.reference)
            continue
        right = number(ours[test.other])
        if (left < right) == test.below:
            reached += 1
        else:
            missed.append(f"{test.ours} {left:g} is not {'below' if test.below else 'above'} {test.other} {right:g}")
    if missed:
        return "does not hold", f"{claim.reason} Missed: {'; '.join(missed)}.".strip()
    if not reached and not better:
        return "does not hold", "The tables judge nothing."
    return ("holds better" if better and all(better) else "holds"), claim.reason


def also_missed(claim: Claim, files: Sequence[ResultsFile]) -> list[str]:
    """Return targets that go beyond the claim and were missed."""
    return [
        f"{words} ({evidence})"
        for file in files
        for words, holds, evidence in file.targets
        if not holds and not re.search(claim.targets, words)
    ]


def section(number_of: str, claim: Claim, folder: Path) -> tuple[list[str], str]:
    """Return the Markdown of one claim, and its verdict."""
    files = [file for file in (ResultsFile.read(folder, name) for name in claim.files) if file is not None]
    blocks = [f"## {number_of} {claim.title}", f"*{claim.where}.* {claim.says}"]
    if claim.differs:
        blocks.append(f"Text and code of the paper differ: {claim.differs}")
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
    verdict, reason = judge(claim, files, ours)
    blocks.append(f"**{verdict}**: {reason}" if reason else f"**{verdict}**.")
    if not claim.figures:
        targets = [target for file in files for target in file.targets]
        blocks.append(
            "\n".join(f"- {words}: {'holds' if holds else 'missed'} ({why})" for words, holds, why in targets)
        )
    elif also_missed(claim, files):
        blocks.append(f"Beyond the claim, a target was missed: {'; '.join(also_missed(claim, files))}.")
    links = ", ".join(f"[{file.name}.md](../experiments/results/{file.name}.md)" for file in files)
    missing = [name for name in claim.files if name not in by_name]
    blocks.append(f"Tables: {links}." + (f" Not run: {', '.join(missing)}." if missing else ""))
    return blocks, verdict


def page(folder: Path = RESULTS) -> str:
    """Return the page."""
    sections, overview = [], []
    for index, claim in enumerate(CLAIMS, 1):
        blocks, verdict = section(f"{index}.", claim, folder)
        sections += blocks
        overview.append(f"| {index} | {claim.title} | {claim.where} | {verdict} |")
    beyond = []
    for topic, names, words in BEYOND:
        there = [name for name in names if (folder / f"{name}.md").is_file()]
        links = ", ".join(f"[{name}](../experiments/results/{name}.md)" for name in there) or NOT_RUN
        beyond.append(f"| {topic} | {words} | {links} |")
    blocks = [
        "# The paper's claims, measured",
        INTRODUCTION,
        "\n".join(f"- **{name}**: {words}." for name, words in VERDICTS.items()),
        "\n".join(["| | claim | in the paper | verdict |", "|---:|---|---|---|", *overview]),
        *sections,
        "## Beyond the paper",
        "\n".join(["| | | tables |", "|---|---|---|", *beyond]),
    ]
    return "\n\n".join(blocks) + "\n"


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
