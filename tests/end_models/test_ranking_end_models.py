"""Models that rank learn from full, tied, partial and weighted rankings; the torch one where torch is installed."""

import importlib.util
import sys

import numpy as np
import pytest
from sklearn.base import clone

import consilience as cs
from consilience.end_models import LambdaRanker, ListwiseRanker, fit_end_model
from consilience.exceptions import InvalidInputError, MissingPackageError, NotFittedError, UnsupportedError

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed, so ListwiseRanker is NOT tested; pip install 'consilience[torch]'",
)
needs_lightgbm = pytest.mark.skipif(
    importlib.util.find_spec("lightgbm") is None,
    reason="lightgbm is not installed, so LambdaRanker is NOT tested; pip install 'consilience[models]'",
)
MODELS = [
    pytest.param(lambda: LambdaRanker(n_estimators=30, min_child_samples=5), id="lambda", marks=needs_lightgbm),
    pytest.param(lambda: ListwiseRanker(epochs=8), id="listwise", marks=needs_torch),
]
every_model = pytest.mark.parametrize("make", MODELS)


def ranked_sets(n=300, items=5, seed=0):
    """Return features and positions; the first feature decides, the others are noise."""
    X = np.random.default_rng(seed).normal(size=(n, items, 4))
    return X, (-X[:, :, 0]).argsort(axis=1).argsort(axis=1)


@every_model
def test_a_ranker_learns_what_decides_and_the_same_from_the_same_seed(make):
    with pytest.raises(NotFittedError):
        make().predict(np.zeros((1, 2, 2)))
    X, y = ranked_sets()
    model = make().fit(X, y)
    new, truth = ranked_sets(seed=1)
    assert model.score(new, truth) > 0.93
    assert model.predict(new).shape == truth.shape
    assert cs.Rankings(5).kendall_error(model.predict(new), truth) == pytest.approx(1 - model.score(new, truth))
    np.testing.assert_array_equal(make().fit(X, y).score_items(X), model.score_items(X))
    assert repr(clone(make())) == repr(make())


@every_model
def test_sets_of_different_sizes_give_one_array_each(make):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 3)) for size in rng.integers(2, 7, 200)]
    y = [(-part[:, 1]).argsort().argsort() for part in X]
    model = make().fit(X, y)
    assert [len(part) for part in model.predict(X)] == [len(part) for part in X]
    assert model.score(X, y) > 0.9


@every_model
def test_items_and_sets_without_a_ranking_or_a_weight_are_left_out(make):
    X, y = ranked_sets(200)
    partial = y.copy()
    partial[:, 4] = -1  # the last item is never ranked; its features are nonsense that must not matter
    spoiled = X.copy()
    spoiled[:, 4] = 1e3
    spoiled[150:] = 7e4
    partial[150:] = -1
    model = make().fit(spoiled, partial)
    expected = make().fit(X[:150, :4], y[:150, :4].argsort().argsort()).score_items(X)
    np.testing.assert_array_equal(model.score_items(X), expected)
    new, truth = ranked_sets(seed=3)
    assert model.score(new, truth) > 0.9
    turned = y.copy()
    turned[100:] = 4 - y[100:]
    weighted = make().fit(X, turned, sample_weight=np.repeat([2.0, 0.0], 100))
    np.testing.assert_array_equal(weighted.score_items(X), make().fit(X[:100], y[:100]).score_items(X))


@every_model
def test_votes_on_rankings_become_a_ranker_in_one_call(make):
    X, y = ranked_sets(300)
    votes = cs.simulate(cs.Rankings(5), y, [1.0, 0.7, 0.2, 0.1], np.random.default_rng(1))
    fitted = fit_end_model(make(), X, votes, space=cs.Rankings(5))
    new, truth = ranked_sets(seed=2)
    assert fitted.end_model.score(new, truth) > 0.85


@every_model
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((3, 2, 2)), [[0, 1]] * 2, "3 sets and y 2 rankings"),
        (np.zeros((2, 2, 2)), [[0, 1], [0, 1, 2]], "Row 1 of y"),
        (np.zeros((2, 2, 2)), [[0, 0.5], [0, 1]], "Row 0 of y"),
        (np.zeros((2, 2, 2)), [[-1, -1], [-1, -1]], "All positions in y are missing"),
        (np.zeros((2, 2, 2)), [[0, -1], None], "two ranked items"),
        (np.zeros((2, 2)), [[0, 1]] * 2, "Set 0 of X has shape"),
        (np.full((2, 2, 2), np.nan), [[0, 1]] * 2, "X is nan in set 0, item 0, feature 0"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], [[0, 1]] * 2, "Set 1 of X has shape"),
        (["ab"], [[0, 1]], "not numbers"),
        ([], [], "X is empty"),
    ],
)
def test_sets_that_are_none_are_refused(make, X, y, message):
    with pytest.raises(InvalidInputError, match=message):
        make().fit(X, y)


@needs_torch
def test_the_network_has_the_layers_of_the_paper_and_leaves_the_seed_of_others_alone():
    import torch

    X, y = ranked_sets(40)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    network = ListwiseRanker(epochs=1).fit(X, y).network_
    assert torch.equal(torch.rand(3), expected)
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    assert [layer.out_features for layer in linear] == [30, 30, 30, 1]
    norms = [layer for layer in network if isinstance(layer, torch.nn.BatchNorm1d)]
    assert len(norms) == 3
    assert all(layer.track_running_stats for layer in norms)
    with pytest.raises(InvalidInputError, match="Lower"):
        ListwiseRanker(learning_rate=1e30, epochs=5).fit(X, y)


@needs_torch
def test_running_statistics_make_scores_independent_of_what_is_predicted_together():
    X, y = ranked_sets(60)
    kept = ListwiseRanker(epochs=2).fit(X, y)
    np.testing.assert_allclose(kept.score_items(X)[:1], kept.score_items(X[:1]), rtol=1e-4, atol=1e-5)
    not_kept = ListwiseRanker(epochs=2, running_statistics=False).fit(X, y)
    assert np.abs(not_kept.score_items(X)[:1] - not_kept.score_items(X[:1])).max() > 1e-3


@needs_torch
@pytest.mark.parametrize(
    "settings", [{"epochs": 0}, {"batch_size": 1.5}, {"learning_rate": 0}, {"dropout": 1.0}, {"hidden": (0,)}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UnsupportedError, match=next(iter(settings))):
        ListwiseRanker(**settings).fit(*ranked_sets(5))


@pytest.mark.parametrize(
    ("model", "package", "extra"),
    [(LambdaRanker(), "lightgbm", "models"), (ListwiseRanker(), "torch", "torch")],
)
def test_a_missing_package_is_named_with_its_extra(model, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"needs {package}.*consilience\[{extra}\]"):
        model.fit(*ranked_sets(5))
