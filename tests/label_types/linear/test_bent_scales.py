"""Scores on bent scales: normal scores, the quantile gauge, and when it is taken."""

import numpy as np
import pytest
from simulated import codes

import consilience as cs
from consilience.exceptions import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def panel(seed=0, n=400, bend=None):
    """Six sources of one truth; `bend` makes their scales of it."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    votes = truth[:, None] + rng.normal(size=(n, 6)) * [0.3, 0.5, 0.7, 0.9, 1.2, 1.5]
    return truth, votes if bend is None else bend(votes)


def fit(votes, gold=None, **options):
    return cs.LabelModel(cs.Scores(**options)).fit(votes, gold=gold)


def test_straight_scales_are_taken_as_they_are_and_labels_are_about_the_same_in_both_gauges():
    _, votes = panel()
    model = fit(votes)
    assert "bent-scales" not in codes(model)
    linear, quantile = (fit(votes, gauge=gauge).predict(votes) for gauge in ("linear", "quantile"))
    assert np.array_equal(model.predict(votes), linear)
    assert np.corrcoef(linear, quantile)[0, 1] > 0.99
    assert np.abs(linear - quantile).mean() < 0.2


def test_bent_scales_are_found_and_labels_are_better_for_it():
    # 400 items, scales that rise like exp(1.5 y): over eight seeds the mean squared error of the logarithm was 0.5% to
    # 87% of that of linear labels; for this seed 5%.
    truth, votes = panel(3, bend=lambda straight: np.exp(1.5 * straight))
    bent, linear = fit(votes), fit(votes, gauge="linear")
    assert "bent-scales" in codes(bent)
    error = [np.mean((np.log(np.maximum(model.predict(votes), 1e-3)) / 1.5 - truth) ** 2) for model in (bent, linear)]
    assert error[0] < 0.7 * error[1]
    assert bent.predict(votes).min() >= votes.min()
    assert bent.predict(votes).max() <= votes.max()


def with_known(seed, level, unit):
    """Return a model of 400 items of which 30 are known, one of the votes alone, the votes, and all true labels."""
    truth, votes = panel(seed, bend=np.exp)
    right = level + unit * np.exp(truth)
    return fit(votes, gold=np.where(np.arange(400) < 30, right, np.nan)), fit(votes), votes, right


@pytest.mark.parametrize("seed", range(4))
def test_known_labels_do_not_hurt_on_bent_scales(seed):
    # Over 24 seeds the mean squared error was .19 to .97 times that without known labels. With lines of the votes as
    # they are it was .22 to 2.9 times.
    known, alone, votes, right = with_known(seed, 0.0, 1.0)
    assert "bent-scales" in codes(known)
    error = [np.mean((model.predict(votes) - right)[30:] ** 2) for model in (known, alone)]
    assert error[0] < error[1]


def test_known_labels_set_level_and_unit_of_bent_scales():
    # The mean label was wrong by at most 1.0 over 24 seeds, where votes are 100 below.
    known, alone, votes, right = with_known(8, 100.0, 3.0)
    assert abs(known.predict(votes).mean() - right.mean()) < 1.5
    # Over the same seeds the error was 1.0 to 5.2 times that of the best line of all true labels; here 1.0 times.
    best = np.polyval(np.polyfit(alone.predict(votes), right, 1), alone.predict(votes))
    assert np.mean((known.predict(votes) - right)[30:] ** 2) < 1.5 * np.mean((best - right)[30:] ** 2)


def test_new_votes_are_mapped_through_the_learned_scales():
    _, votes = panel(bend=np.exp)
    model = fit(votes)
    assert model.predict(votes[:5]) == pytest.approx(model.predict(votes)[:5])
    spread = model.predict_distribution(votes).standard_deviation
    assert (np.isfinite(spread) & (spread > 0)).all()


def test_abstentions_a_constant_source_and_too_few_votes_are_borne():
    _, votes = panel(bend=np.exp)
    votes[:, 5] = 3.0
    votes[::7, 0] = np.nan
    assert np.isfinite(fit(votes, gauge="quantile").predict(votes)).all()
    model = fit(votes[:10], gauge="quantile")
    assert "bent-scales" in codes(model)
    assert np.isfinite(model.predict(votes[:10])).all()


def test_moments_alone_do_not_know_quantiles():
    space = cs.Scores(gauge="quantile")
    with pytest.raises(UnsupportedError, match="needs the votes"):
        cs.LabelModel(space).fit_moments(cs.partitions.Moments.of(panel()[1], space))


@pytest.mark.data
def test_judges_of_simplifications_are_combined_better_by_quantiles(data_directory):
    import pandas as pd

    table = pd.read_parquet(data_directory / "asset_judges" / "ratings.parquet")
    columns = [name for name in table if name.startswith("judge__")]
    items = (table["example_index"].astype(str) + "/" + table["aspect"].astype(str)).to_numpy(dtype=str)
    votes = cs.Votes.from_array(table[columns].to_numpy(dtype=float), sources=columns, items=items)
    labels = fit(votes).predict(votes)
    assert np.abs(labels - table["human_rating"].to_numpy()).mean() <= 29.1
