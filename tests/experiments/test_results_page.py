"""The page of results is made from the tables of results, and says what they say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = """# Title

`python -m experiments.toy --seeds 1` · consilience 0 · settings.

## First | section

| sources | **ours** | mean |
| --- | ---: | ---: |
| 3 | 0.321 ± 0.045 | 0.9 |
| *study* | 0.2 |  |

## Targets

- Below the mean: **holds** (0.321; at worst (1) of it)
- Within .01: **missed** (.02)
"""


@pytest.fixture
def results_page() -> ModuleType:
    return importlib.import_module("experiments.results_page")


@pytest.fixture
def types() -> ModuleType:
    return importlib.import_module("experiments.claim_types")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toy.md").write_text(TABLE, encoding="utf-8")
    return tmp_path


def test_the_readme_is_up_to_date_with_the_tables(results_page: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == results_page.put_in(readme, results_page.numbers()), "Run: python -m experiments.results_page"
    with pytest.raises(SystemExit, match="has lost the lines"):
        results_page.put_in("# consilience", "numbers")
    lists = results_page.ResultsFile.read(ROOT / "experiments" / "results", "rankings_partial")
    unseen, last = (
        results_page.number(lists.cell("Top 3 of 7", row, "Kendall error"))
        for row in ("passed as not seen", "tied last")
    )
    assert f"seven items gave {unseen:.0%} of the pairs in the wrong order instead of {last:.0%}" in readme


def test_every_table_and_figure_of_the_paper_has_a_claim(results_page: ModuleType) -> None:
    places = " ".join(claim.where for claim in results_page.CLAIMS)
    # Figure 1 is the pipeline, tables 1 and 4 are a summary and a glossary.
    assert all(re.search(rf"Figures? [^;.]*\b{number}\b", places) for number in range(2, 10))
    assert all(re.search(rf"Tables? [^;.]*\b{number}\b", places) for number in (2, 3, 5, 6, 7))


def test_cells_are_found_by_heading_row_and_column(results_page: ModuleType, folder: Path) -> None:
    file = results_page.ResultsFile.read(folder, "toy")
    assert file.cell("First", "3", "ours") == "0.321 ± 0.045"
    assert file.cell("First", "study", "mean") == ""
    assert results_page.number("-0.321 ± 0.045") == -0.321
    assert file.targets == [("Below the mean", True, "0.321; at worst (1) of it"), ("Within .01", False, ".02")]
    with pytest.raises(SystemExit, match="no cell '4', 'ours'"):
        file.cell("First", "4", "ours")


@pytest.mark.parametrize(
    ("targets", "reference", "verdict"),
    [
        ("Below", 0.4, "holds better"),
        ("Below", 0.3, "holds"),
        (".", 0.4, "does not hold"),
        ("Within", 0.4, "does not hold"),
    ],
)
def test_a_verdict_follows_from_targets_and_reference(
    results_page: ModuleType, types: ModuleType, folder: Path, targets: str, reference: float, verdict: str
) -> None:
    figures = (
        types.Figure("ours", ".1", ".2", ("toy", "First", "3", "ours")),
        types.Figure("mean", "", "", ("toy", "First", "3", "mean")),
    )
    tests = (types.Holds("ours", "mean"), types.BetterBelow("ours", reference))
    claim = types.Claim("A", "Table 1", "Says.", ("toy", "absent"), figures, tests, targets)
    blocks, found = results_page.section("1.", claim, folder)
    text = "\n".join(blocks)
    assert found == verdict
    assert "| ours | .1 | .2 | 0.321 ± 0.045 |" in text
    assert "Not run: absent." in text
    assert "Within .01 (.02)" in text  # as the reason, or as a target beyond the claim


def test_a_claim_does_not_hold_against_our_figures_or_targets_and_is_not_run_without_a_table(
    results_page: ModuleType, types: ModuleType, folder: Path, tmp_path: Path
) -> None:
    figures = tuple(types.Figure(name, "", "", ("toy", "First", "3", name)) for name in ("ours", "mean"))
    claim = types.Claim("A", "Table 1", "Says.", ("toy",), figures, (types.Holds("mean", "ours"),))
    blocks, found = results_page.section("1.", claim, folder)
    assert found == "does not hold"
    assert "mean 0.9 is not below ours 0.321" in "\n".join(blocks)
    for targets, verdict in (("Below", "does not hold"), (".", "holds")):
        claim = types.Claim("A", "Table 1", "Says.", ("toy",), targets=targets, reason="Why.", against=True)
        assert results_page.section("1.", claim, folder)[1] == verdict
    claim = types.Claim("A", "Table 1", "Says.", ("toy",), needs="It reads films.")
    blocks, verdict = results_page.section("1.", claim, tmp_path / "empty")
    assert verdict == "not run"
    assert "`toy`. It reads films." in "\n".join(blocks)


def test_figures_of_a_table_that_is_missing_are_left_out(
    results_page: ModuleType, types: ModuleType, folder: Path
) -> None:
    figures = (
        types.Figure("ours", "", "", ("toy", "First", "3", "ours")),
        types.Figure("other", "", "", ("absent", "First", "3", "ours")),
    )
    tests = (types.Holds("ours", "other"), types.BetterBelow("ours", 0.4))
    claim = types.Claim("A", "Table 1", "Says.", ("toy", "absent"), figures, tests)
    blocks, verdict = results_page.section("1.", claim, folder)
    assert verdict == "holds better"
    assert "| other |" not in "\n".join(blocks)


def test_the_page_is_up_to_date_and_the_check_fails_where_it_is_not(
    results_page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert shown == results_page.page(), "Run: python -m experiments.results_page"
    results_page.main(["--check"])
    monkeypatch.setattr(results_page, "PAGE", tmp_path / "results.md")
    with pytest.raises(SystemExit, match="out of date"):
        results_page.main(["--check"])
    results_page.main([])
    results_page.main(["--check"])
