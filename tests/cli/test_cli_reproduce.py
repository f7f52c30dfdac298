"""`consilience reproduce` runs what the catalogue lists, and the catalogue lists what there is."""

import importlib.util
import re
from pathlib import Path

import pytest
from tests.cli.running import result_of, run

from consilience.cli.reproduce import PACKAGES, find_experiments

ROOT = Path(__file__).resolve().parents[2]
#: Modules that argue no claim.
HELPERS = {
    "claim_types", "claims", "film_sets", "label_draws", "parser_families", "parser_settings", "plots", "public_data",
    "preference_draws", "readme_numbers", "results_files", "results_page", "tables", "train_parsers", "__init__",
}  # fmt: skip


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    monkeypatch.delenv("CONSILIENCE_CACHE", raising=False)
    monkeypatch.delenv("CONSILIENCE_SNORKEL", raising=False)
    return ROOT


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with three tiny experiments: one fails, and one needs a package that is not installed."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    script = "import os, sys\nprint(sys.argv[1:], os.environ.get('CONSILIENCE_DATA'))\n"
    (folder / "good.py").write_text(script + "open('ran', 'w').write(' '.join(sys.argv[1:]))\n", encoding="utf-8")
    (folder / "bad.py").write_text("raise SystemExit('no luck')\n", encoding="utf-8")
    (folder / "exotic.py").write_text("import torch\n", encoding="utf-8")
    entry = '[[experiment]]\nname = "{}"\nclaim = "c"\nreads = [{}]\ntakes = "a second"\n'
    text = entry.format("bad", "") + entry.format("good", '"data"') + 'full = "an hour"\nsets = ["votes"]\n'
    text += entry.format("exotic", "") + 'packages = ["torch"]\n'
    (folder / "catalogue.toml").write_text(text, encoding="utf-8")
    (tmp_path / "below").mkdir()
    (tmp_path / "votes").mkdir()
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    return tmp_path


def test_the_catalogue_and_the_readme_list_every_experiment_there_is(clone):
    root, experiments = find_experiments(ROOT / "docs")
    assert root == ROOT
    assert set(experiments) == {path.stem for path in (ROOT / "experiments").glob("*.py")} - HELPERS
    listed = result_of("reproduce", "--list")["experiments"]
    assert [row["experiment"] for row in listed] == list(experiments)
    assert all(row["claim"] and row["takes"] for row in listed)
    text = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    rows = {name: cells for name, *cells in re.findall(r"^\| `(\w+)\.py` \| (.+) \| (.+) \| (.+) \|$", text, re.M)}
    for one in experiments.values():
        claim, reads, takes = rows[one.name]
        assert (claim, takes) == (one.claim, one.takes + (f"; {one.full} with `--full`" if one.full else ""))
        extras = {PACKAGES[name] for name in one.packages if name != "pandas"}
        listed = ",".join(re.findall(r"consilience\[(.+?)\]", reads)).split(",")
        assert extras == {f"'consilience[{name}]'" for name in listed if name}
        assert {key for key in ("data", "cache", "snorkel") if f"CONSILIENCE_{key.upper()}" in reads} == set(one.reads)


def test_all_experiments_together_take_less_than_four_hours(clone):
    minutes = {"seconds": 0.5, "half a minute": 0.5, "a minute": 1.0, "half an hour": 30.0, "an hour": 60.0}
    taken = [one.takes for one in find_experiments(ROOT)[1].values()]
    assert sum(minutes[words] if words in minutes else float(words.removesuffix(" minutes")) for words in taken) < 240


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--list shows them"),
        (("theory_isotropc",), "Did you mean 'theory_isotropic'?"),
        (("scores_real",), "Pass --data FOLDER, or set CONSILIENCE_DATA"),
        (("parsers", "--data", "docs"), "Pass --cache FOLDER, or set CONSILIENCE_CACHE"),
        (("snorkel_rankings", "--data", "docs"), "Pass --snorkel FOLDER, or set CONSILIENCE_SNORKEL"),
        (("theory_rates", "--full"), "no larger size than its default"),
        (("theory_rates", "--quick", "--full"), "contradict"),
        (("all", "theory_rates"), "Leave the other names out"),
        (("theory_rates", "--list"), "Leave the names out"),
        (("theory_rates", "--seeds", "0"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_run_is_refused(clone, arguments, words):
    ran = run("reproduce", *arguments)
    assert ran.exit_code == 2
    assert words in ran.stderr


def test_where_there_are_no_experiments_the_program_says_where_to_get_them(folder):
    ran = run("reproduce", "--list")
    assert ran.exit_code == 2
    assert "clone of the repository" in ran.stderr


def test_options_and_folders_reach_the_experiment(toy):
    ran = run("reproduce", "good", "--full", "--seeds", "3", "--data", toy, "--results", "out")
    assert ran.exit_code == 0
    given = (toy / "ran").read_text(encoding="utf-8").split()
    assert given == ["--seeds", "3", "--results", str(toy / "below" / "out"), "--full"]


def test_a_failure_does_not_stop_the_others_and_what_cannot_run_is_skipped_with_its_reason(toy):
    ran = run("reproduce", "all", "--full")
    assert "skipped: good reads real votes. Pass --data FOLDER, or set CONSILIENCE_DATA" in ran.stderr
    assert "skipped: exotic needs torch, which is not installed. Run: pip install 'consilience[torch]'." in ran.stderr
    assert "0 done, 1 failed, 2 skipped" in ran.stderr
    assert "--full is the default size of: bad" in ran.stderr
    assert not (toy / "ran").exists()
    ran = run("reproduce", "all", "--data", toy, "--json")
    assert ran.exit_code == 1
    assert (toy / "ran").exists()
    assert "(takes a second)" in ran.stderr
    assert "failed: bad" in ran.stderr
    assert "skipped: good" in run("reproduce", "all", "--data", toy / "below").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("exotic",), "exotic needs torch, which is not installed"),
        (("good", "--data", "."), "good reads votes, not found in"),
    ],
)
def test_what_an_experiment_lacks_is_said_before_it_starts(toy, arguments, words):
    ran = run("reproduce", *arguments)
    assert ran.exit_code == 2
    assert words in ran.stderr
