"""Pictures by matplotlib: what is drawn where, and the message where it is not installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import MissingPackageError
from consilience.report import plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    return cs.simulate(
        cs.Classes(3), rng.integers(3, size=300), [2.0, 1.0, 1.5, 0.5], rng, sources=["ann", "$bob$", "cleo", "dan"]
    )


@pytest.fixture(scope="module")
def model(votes):
    return cs.LabelModel(cs.Classes(3), dependencies=[("ann", "dan")]).fit(votes)


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def test_sources_are_drawn_best_first_at_their_expected_cost(model):
    axes = plots.sources(model)
    names = [label.get_text() for label in axes.get_yticklabels()]
    cost = dict(zip(model.sources_.columns["source"], model.expected_cost_, strict=True))
    assert [name.replace("\\$", "$") for name in names] == sorted(cost, key=cost.get)
    assert axes.lines[0].get_xdata().tolist() == sorted(cost.values())
    axes.figure.canvas.draw()  # a name between dollars is no formula
    with pytest.warns(cs.exceptions.ConsilienceWarning):
        unknown = cs.LabelModel(cs.Classes(2)).fit([[0, 1], [1, 1]] * 5)
    plots.sources(unknown).figure.canvas.draw()  # of unknown quality: without an interval


def test_relations_are_symmetric_and_frame_the_dependent_pair(model, votes):
    axes = plots.relations(model, votes)
    shown = axes.images[0].get_array()
    assert np.ma.allequal(shown, shown.T)
    names = [label.get_text() for label in axes.get_yticklabels()]
    [frame] = axes.patches
    first = round(frame.get_x() + 0.5)
    assert sorted(names[first : first + 2]) == ["ann", "dan"]


def test_axes_that_are_given_are_drawn_on(model, votes):
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, 3)
    assert plots.sources(model, places[0]) is places[0]
    assert plots.confidence(model, votes, places[1], bins=10) is places[1]
    assert [len(places[1].patches), sum(patch.get_height() for patch in places[1].patches)] == [10, 300]
    assert plots.relations(model, votes, places[2]) is places[2]
    assert pyplot.get_fignums() == [figure.number]


def test_a_missing_matplotlib_is_named_with_its_install_line(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'consilience\[plot\]'"):
        plots.sources(model)
