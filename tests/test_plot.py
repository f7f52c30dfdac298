"""Pictures by matplotlib: what is drawn where, and the message where it is not installed."""

import sys

import numpy as np
import pytest

import consilience as cs
from consilience import plot
from consilience.exceptions import MissingPackageError

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


def test_sources_are_drawn_best_first_at_their_error_rate(model):
    axes = plot.sources(model)
    names = [label.get_text() for label in axes.get_yticklabels()]
    cost = dict(zip(model.source_model_.sources, model.expected_cost_, strict=True))
    assert [name.replace("\\$", "$") for name in names] == sorted(cost, key=cost.get)
    assert axes.lines[0].get_xdata().tolist() == sorted(cost.values())
    axes.figure.canvas.draw()  # a name between dollars is not a formula
    with pytest.warns(cs.exceptions.ConsilienceWarning):
        unknown = cs.LabelModel(cs.Classes(2)).fit([[0, 1], [1, 1]] * 5)
    plot.sources(unknown).figure.canvas.draw()  # of unknown quality: without an interval


def test_agreement_is_symmetric_and_frame_the_dependent_pair(model, votes):
    axes = plot.agreement(model, votes)
    shown = axes.images[0].get_array()
    assert np.ma.allequal(shown, shown.T)
    names = [label.get_text() for label in axes.get_yticklabels()]
    [frame] = axes.patches
    first = round(frame.get_x() + 0.5)
    assert sorted(names[first : first + 2]) == ["ann", "dan"]


def test_axes_that_are_given_are_drawn_on(model, votes):
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, 3)
    assert plot.sources(model, places[0]) is places[0]
    assert plot.confidence(model, votes, places[1], bins=10) is places[1]
    assert [len(places[1].patches), sum(patch.get_height() for patch in places[1].patches)] == [10, 300]
    assert plot.agreement(model, votes, places[2]) is places[2]
    assert pyplot.get_fignums() == [figure.number]


def test_calibration_puts_every_known_item_into_one_dot():
    # 8 items of one confidence, 6 of them right; two are not known and one has no vote.
    model = cs.LabelModel(cs.Classes(2), method="majority", prior="uniform").fit([[0, 0, 1]] * 10 + [[None] * 3])
    axes = plot.calibration(model, [[0, 0, 1]] * 10 + [[None] * 3], [0] * 6 + [1] * 2 + [None] * 2 + [0])
    [dots] = axes.lines[1].get_xydata()
    stated = model.confidence([[0, 0, 1]])[0]
    assert dots.tolist() == pytest.approx([stated, 0.75])
    [[(_, low), (_, high)]] = axes.collections[0].get_segments()
    assert (low, high) == pytest.approx((0.409, 0.929), abs=0.001)  # Wilson's interval of 6 of 8


def test_compare_shows_distances_worked_out_by_hand():
    votes = [[0.0, 2.0, 1.0], [4.0, 8.0, None], [2.0, 2.0, 2.0]] * 10
    model = cs.LabelModel(cs.Scores(), method="majority").fit(votes)
    axes = plot.compare(model, votes, [1.0, 6.0, None] * 10)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["labels of the model", "plain vote", "source_2", "source_0", "source_1"]
    assert axes.lines[0].get_xdata()[2:].tolist() == pytest.approx([0.0, 1.5, 1.5])


@pytest.mark.parametrize("draw", [plot.calibration, plot.compare])
@pytest.mark.parametrize("gold", [None, [None] * 300])
def test_without_known_labels_there_is_nothing_to_compare_with(model, votes, draw, gold):
    with pytest.raises(cs.exceptions.InvalidVotesError, match="None where it is unknown"):
        draw(model, votes, gold)


def test_a_missing_matplotlib_is_named_with_its_install_line(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'consilience\[plot\]'"):
        plot.sources(model)
