"""The page of results is made from the tables of results, and says what they say."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def results_page() -> ModuleType:
    return importlib.import_module("experiments.results_page")


def test_the_readme_is_up_to_date_with_the_tables(results_page):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == results_page.put_in(readme, results_page.numbers()), "Run: python -m experiments.results_page"
    with pytest.raises(SystemExit, match="has lost the lines"):
        results_page.put_in("# consilience", "numbers")
    lists = results_page.ResultsFile.read(ROOT / "experiments" / "results", "rankings_partial")
    unseen, last = (
        results_page.number(lists.cell("Top 3 of 7", row, "Kendall error"))
        for row in ("passed as not seen", "tied last")
    )
    page = (ROOT / "docs" / "reference" / "label_types.md").read_text(encoding="utf-8")
    assert f"seven items gave {unseen:.0%} of the pairs in the wrong order instead of {last:.0%}" in page


def test_every_table_and_figure_of_the_paper_has_a_claim(results_page):
    places = " ".join(claim.where for claim in results_page.CLAIMS)
    # Figure 1 is the pipeline, tables 1 and 4 are a summary and a glossary.
    assert all(re.search(rf"Figures? [^;.]*\b{number}\b", places) for number in range(2, 10))
    assert all(re.search(rf"Tables? [^;.]*\b{number}\b", places) for number in (2, 3, 5, 6, 7))


def test_every_target_that_was_missed_is_on_the_page(results_page):
    page = (ROOT / "docs" / "explanation" / "results.md").read_text(encoding="utf-8")
    folder = ROOT / "experiments" / "results"
    files = [results_page.ResultsFile.read(folder, path.stem) for path in folder.glob("*.md")]
    missed = [(file.name, words) for file in files for words, holds, _ in file.targets if not holds]
    assert [one for one in missed if one[1] not in page] == []


def test_every_table_with_a_plain_vote_beside_ours_is_compared_with_it(results_page):
    # never_worse lists its worst cases alone, and its own targets count them all
    compared = {one.file for one in results_page.AGAINST_PLAIN} | {"never_worse"}
    folder = ROOT / "experiments" / "results"
    for path in folder.glob("*.md"):
        tables = results_page.ResultsFile.read(folder, path.stem).tables
        names = {name for table in tables for row, cells in table.cells.items() for name in (row, *cells)}
        if any(re.search(r"\bmajority\b|\bplain vote\b|\bequal weights\b|\bunweighted mean\b", name) for name in names):
            assert path.stem in compared, f"{path.name} has a plain vote; add it to AGAINST_PLAIN in claims.py"
    for one in results_page.AGAINST_PLAIN:
        file = results_page.ResultsFile.read(folder, one.file)
        assert file is not None
        assert file.beside(one.heading, one.ours, one.plain, one.settings), f"{one} finds nothing to compare"


def test_rows_and_columns_are_set_beside_those_of_the_plain_vote(results_page):
    text = "## A\n|  | labels: mean | labels: ours | note |\n| --- | ---: | ---: | ---: |\n| 3 | 1.5 | 2.5 |  |\n"
    text += "## B\n|  | error | why |\n| --- | ---: | ---: |\n| films, ours | .2 | x |\n| films, mean | .3 ± 1 | y |\n"
    file = results_page.ResultsFile("some", text)
    assert file.beside("A", "ours", "mean") == [("labels: ours, 3", "2.5", "1.5")]
    assert file.beside("", "ours", "mean", "error") == [("B, films, ours, error", ".2", ".3 ± 1")]


def test_the_page_is_up_to_date_and_the_check_fails_where_it_is_not(results_page, tmp_path, monkeypatch):
    shown = (ROOT / "docs" / "explanation" / "results.md").read_text(encoding="utf-8")
    made = results_page.page()
    assert shown == made, "Run: python -m experiments.results_page"
    assert "not run" not in shown.lower()
    monkeypatch.setattr(results_page, "page", lambda: made)  # it takes long to make
    results_page.main(["--check"])
    monkeypatch.setattr(results_page, "PAGE", tmp_path / "results.md")
    with pytest.raises(SystemExit, match="out of date"):
        results_page.main(["--check"])
    results_page.main([])
    results_page.main(["--check"])
