"""The experiments on the theory of the paper run, and their formulas agree with simulation."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import consilience as cs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.parametrize(
    ("name", "seeds"),
    [("theory_rates", 2), ("theory_isotropic", 1), ("theory_distortion", 1), ("metric_spaces_paper", 1)],
)
def test_an_experiment_writes_table_and_picture(name: str, seeds: int, tmp_path: Path) -> None:
    importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(tmp_path)])
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"`python -m experiments.{name} --seeds {seeds} --quick` · consilience {cs.__version__}" in text
    assert not re.search(r"\bnan\b", text)
    assert "targets are not judged" in text
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_the_law_of_distances_is_that_of_simulated_votes() -> None:
    law_of = importlib.import_module("experiments.theory_distortion").Law
    space = cs.FiniteMetric([(0, 1), (1, 2), (2, 3), (1, 4)])
    law, rng = law_of(space.matrix), np.random.default_rng(0)
    truth = rng.integers(5, size=40_000)
    votes = cs.simulate(space, truth, [0.8], rng).labels[:, 0]
    mean, variance = law.moments(0.8)
    # n = 40,000: five standard errors are 0.025, a false alarm in a million
    assert space.distance(votes, truth).mean() == pytest.approx(mean, abs=0.025)
    assert law.weight_of(mean) == pytest.approx(0.8)
    # the mean falls with the weight by the variance
    assert (law.moments(0.8 + 1e-5)[0] - mean) / 1e-5 == pytest.approx(-variance, rel=1e-3)


def test_scaling_makes_no_distance_longer_and_keeps_those_of_a_line() -> None:
    scaled = importlib.import_module("experiments.theory_distortion").scaled
    line = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    np.testing.assert_allclose(scaled(line, 1), line, atol=1e-9)
    star = cs.FiniteMetric([(0, 1), (0, 2), (0, 3)]).matrix
    short = scaled(star, 2)
    assert (short <= star + 1e-12).all()
    assert np.isclose(short, star)[~np.eye(4, dtype=bool)].any()


def test_slopes_are_powers_of_the_number_of_items() -> None:
    fitted_slope = importlib.import_module("experiments.plots").fitted_slope
    assert fitted_slope([100, 400, 1600], [0.3, 0.15, 0.075]) == pytest.approx(-0.5)


def test_heterogeneous_weights_are_those_of_the_reference_implementation() -> None:
    settings_of = importlib.import_module("experiments.metric_spaces_paper").settings_of
    assert [round(float(weight.mean()), 3) for weight in settings_of("het")] == [
        0.05,
        0.3,
        0.7,
        1.2,
        1.8,
        2.5,
        3.3,
        4.2,
    ]
    np.testing.assert_allclose(settings_of("het")[2][:4], [0.2, 1.2, 0.2, 1.2])
