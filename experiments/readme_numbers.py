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
    'majority vote, ties to the class with more votes (`method="majority"`)': 'method="majority"',
    "**consilience**": "auto",
    "consilience, true class balance told": "auto, true balance told",
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
        "Accuracy in percent on the labeling functions of WRENCH (train splits, items with a vote, no labels used; "
        "random ties: 50 draws):"
    )
    yield ""
    yield f"| | {' | '.join(SETS)} |"
    yield f"|---|{'---:|' * len(SETS)}"
    for name, row in VOTERS.items():
        yield f"| {name} | {' | '.join(real.cell('Classes', row, one).split(' / ')[0] for one in SETS)} |"
    yield ""
    yield "\\* from an earlier survey, on copies of youtube and trec that differ a little."
    yield ""
    made = _file(experiments, "classes_synthetic")
    gaps = [
        number(made.cell("Classes", "oracle", one)) - number(made.cell("Classes", "auto", one))
        for one in ("hetero", "imbal", "k5")
    ]
    graphs = _file(experiments, "finite_spaces").tables[0].cells
    behind = [-number(row["ours - oracle"]) for name, row in graphs.items() if not name.endswith("m=3")]
    yield (
        f"Simulated votes: the gap to an oracle that knows the sources is at most {max(gaps):.1f} points of accuracy "
        "for classes (three settings of ten independent sources), and at most "
        f"{100 * max(behind):.1f} points for graphs of 30 and 100 nodes from six sources on."
    )
    files = [_file(benchmarks, name) for name in ("peers", "classes")]
    times = [number(file.cell("Classes", MILLION, "fit / Gram")) for file in files]
    seconds = [number(file.cell("Classes", MILLION, "fit s")) for file in files]
    memory = [
        number(files[0].cell("Classes", MILLION, "extra MB")),
        number(files[1].cell("Classes", MILLION, "fit MB")),
    ]
    yield (
        f"A million items with 50 sources and two classes are fitted in {_span(seconds)} seconds of one core "
        f"({_span(times)} times the product of the one-hot votes with themselves), in at most {max(memory):.0f} MB "
        "beyond the votes. "
        f"There snorkel takes {_times(files[0], MILLION, 0)} times as long to fit, {_times(files[0], MILLION, 1)} "
        f"times as long to predict, and {_times(files[0], MILLION, 2)} times the memory. On 100,000 items "
        f"flyingsquid takes {_times(files[0], SMALLER, 0)} times as long to fit, and crowd-kit's "
        f'Dawid-Skene {_dawid_skene(files[0]):.0f} times as long as `method="em"`.'
    )


def _times(file: ResultsFile, row: str, which: int) -> str:
    """Return how many times what a peer takes is ours: to fit, to predict, of memory."""
    [line] = [one for one in file.text.splitlines() if one.startswith(f"| {row} |") and len(split_row(one)) == 12]
    return split_row(line)[(5, 8, 11)[which]]


def _dawid_skene(file: ResultsFile) -> float:
    theirs, ours = (number(file.cell("Classes", SMALLER, column)) for column in ("crowd-kit s", "em s"))
    return theirs / ours


def _rankings(experiments: Path, benchmarks: Path) -> Iterable[str]:
    file = _file(experiments, "rankings")
    yield "Share of pairs of items in the wrong order, 5,000 rankings of five items, a third of the sources informed:"
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
        f"Exact Kemeny rankings of five items come at {_thousands(rates[5])} a second, of fifteen at "
        f"{_thousands(rates[15])} (one core, 18 sources, from positions to a proven optimum)."
    )


def _file(folder: Path, name: str) -> ResultsFile:
    file = ResultsFile.read(folder, name)
    if file is None:
        raise SystemExit(f"There is no table {name}.md in {folder}. Make it first.")
    return file


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _thousands(values: list[float]) -> str:
    return f"{1000 * round(min(values) / 1000):,} to {1000 * round(max(values) / 1000):,}"
