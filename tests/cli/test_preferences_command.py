"""`consilience label` on a table of pairwise comparisons."""

from __future__ import annotations

import csv

import numpy as np
from click.testing import CliRunner

from consilience.cli.program import main


def write_duels(path):
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["judge", "prompt", "model_a", "model_b", "winner"])
        for judge in ("ann", "bob", "cleo"):
            for number in range(60):
                one, two = rng.choice(4, 2, replace=False)
                wins = rng.random() < 1 / (1 + np.exp(-2.0 * (two - one)))
                writer.writerow([judge, number % 3, f"m{one}", f"m{two}", "model_a" if wins else "model_b"])


def test_duels_are_ranked_with_standings_and_a_report(tmp_path):
    duels = tmp_path / "duels.csv"
    write_duels(duels)
    targets = {name: tmp_path / name for name in ("ranking.csv", "standings.csv", "page.html")}
    options = ["--standings", str(targets["standings.csv"]), "--report", str(targets["page.html"])]
    result = CliRunner().invoke(main, ["label", str(duels), "-o", str(targets["ranking.csv"]), *options])
    assert result.exit_code == 0, result.output
    assert "m0 > m1 > m2 > m3" in targets["ranking.csv"].read_text()
    rows = list(csv.DictReader(targets["standings.csv"].read_text().splitlines()))
    assert [row["candidate"] for row in rows] == ["m0", "m1", "m2", "m3"]
    assert "m0" in targets["page.html"].read_text()


def test_a_column_makes_one_ranking_per_prompt(tmp_path):
    duels, target = tmp_path / "duels.csv", tmp_path / "ranking.csv"
    write_duels(duels)
    result = CliRunner().invoke(main, ["label", str(duels), "-o", str(target), "--space", "preferences:prompt"])
    assert result.exit_code == 0, result.output
    assert len(list(csv.DictReader(target.read_text().splitlines()))) == 3
