"""The measured numbers of the README, from the tables in ``results/`` of experiments and benchmarks.

`results_page` writes them between the two marks of the README, so that no number is copied by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .results_files import ResultsFile, number, split_row
from .tables import RESULTS

ROOT = RESULTS.parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SETS = ("youtube", "sms", "trec", "semeval", "hausa")
VOTERS = {
    "majority vote, random ties (range)": "majority, random ties",
    'majority vote, ties to the more frequent class (`method="majority"`)': 'method="majority"',
    "**consilience**": "auto",
    "consilience, true class balance given": "auto, true balance told",
    "snorkel *": "snorkel, 100 epochs",
    "hyperlm *": "hyperlm",
}
RANKERS = {
    "equal weights (exact Kemeny)": "majority, map",
    "the paper's isotropic weights": "isotropic, map",
    "**consilience**": "auto, bayes",
    "oracle that knows the weights": "oracle, bayes",
}
SIZES = (6, 9, 12, 18)
KINDS = ("hard", "easy")
MILLION, SMALLER = "n=1e6, m=50, k=2", "n=1e5, m=50, k=2"


def numbers(experiments: Path = RESULTS, benchmarks: Path = BENCHMARKS) -> str:
    """Return what stands between the marks."""
    return "\n".join([*_classes(experiments, benchmarks), "", *_rankings(experiments, benchmarks)])


def put_in(readme: str, text: str) -> str:
    """Return the README with the numbers in their place."""
    before, mark, rest = readme.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"\n{END}")
    if not mark or not end:
        raise SystemExit(f"README.md has lost the lines {BEGIN!r} and {END!r}. Put them around the measured numbers.")
    return f"{before}{mark}{text}{end}{after}"


def _classes(experiments: Path, benchmarks: Path) -> Iterable[str]:
    real = _file(experiments, "classes_real")
    yield (
        "Accuracy of the labels in percent, on the labeling functions of WRENCH (train splits, items with a vote, no "
        "labels used; random ties: 50 draws):"
    )
    yield ""
    yield f"| | {' | '.join(SETS)} |"
    yield f"|---|{'---:|' * len(SETS)}"
    for name, row in VOTERS.items():
        yield f"| {name} | {' | '.join(real.cell('Classes', row, one).split(' / ')[0] for one in SETS)} |"
    yield ""
    yield "\\* From an earlier survey, on slightly different copies of youtube and trec."
    yield ""
    made = _file(experiments, "classes_synthetic")
    gaps = [
        number(made.cell("Classes", "oracle", one)) - number(made.cell("Classes", "auto", one))
        for one in ("hetero", "imbal", "k5")
    ]
    graphs = _file(experiments, "finite_spaces").tables[0].cells
    behind = [-number(row["ours - oracle"]) for name, row in graphs.items() if not name.endswith("m=3")]
    yield (
        f"On simulated votes, the labels are at most {max(gaps):.1f} points of accuracy behind an oracle that knows "
        "the sources (classes, three settings with ten independent sources), and at most "
        f"{100 * max(behind):.1f} points on graphs of 30 and 100 nodes with six or more sources."
    )
    yield ""
    yield "Speed and memory with 50 sources and two classes on one core; peers as a multiple of consilience:"
    yield ""
    yield "| | items | fit | predict | memory beyond the votes |"
    yield "|---|---:|---:|---:|---:|"
    file = _file(benchmarks, "peers")
    for items, row, peer in (("1,000,000", MILLION, "snorkel"), ("100,000", SMALLER, "flyingsquid")):
        ours, theirs = _costs(file, row)
        yield f"| **consilience** | {items} | {ours[0]} s | {ours[1]} s | {ours[2]} MB |"
        yield f"| {peer} | {items} | {' | '.join(f'{times:,.0f}x' for times in map(number, theirs))} |"
    yield f'| crowd-kit, Dawid-Skene | 100,000 | {_dawid_skene(file):.0f}x (`method="em"`) | | |'


def _costs(file: ResultsFile, row: str) -> tuple[list[str], list[str]]:
    """Return what we take to fit, to predict and of memory, and how many times that a peer takes."""
    [cells] = [
        split_row(line)
        for line in file.text.splitlines()
        if line.startswith(f"| {row} |") and len(split_row(line)) == 12
    ]
    return [cells[place] for place in (2, 6, 9)], [cells[place] for place in (5, 8, 11)]


def _dawid_skene(file: ResultsFile) -> float:
    theirs, ours = (number(file.cell("Classes", SMALLER, column)) for column in ("crowd-kit s", "em s"))
    return theirs / ours


def _rankings(experiments: Path, benchmarks: Path) -> Iterable[str]:
    file = _file(experiments, "rankings")
    yield "Share of pairs in the wrong order (5,000 rankings of five items, a third of the sources are informed):"
    yield ""
    yield f"| sources | {' | '.join(map(str, SIZES))} |"
    yield f"|---|{'---:|' * len(SIZES)}"
    for name, row in RANKERS.items():
        shares = (number(file.cell("Rankings", row, f"m={size}")) for size in SIZES)
        yield f"| {name} | {' | '.join(f'{share:.3f}'.removeprefix('0') for share in shares)} |"
    yield ""
    speed = _file(benchmarks, "rankings")
    rates = {
        items: [number(speed.cell("Rankings", f"{kind}, {items} items", "kemeny").replace(",", "")) for kind in KINDS]
        for items in (5, 15)
    }
    yield (
        f"One core computes {_thousands(rates[5])} exact Kemeny rankings of five items per second, and "
        f"{_thousands(rates[15])} of fifteen items (18 sources, from positions to a proven optimum)."
    )


def _file(folder: Path, name: str) -> ResultsFile:
    file = ResultsFile.read(folder, name)
    if file is None:
        raise SystemExit(f"There is no table {name}.md in {folder}. Make it first.")
    return file


def _thousands(values: list[float]) -> str:
    return f"{1000 * round(min(values) / 1000):,} to {1000 * round(max(values) / 1000):,}"
