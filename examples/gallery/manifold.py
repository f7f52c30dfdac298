"""
Manifold: angles on a circle
============================

Any manifold is four functions. Here labels are bearings, and 359 degrees is next to 1. Each of four observers has an
error of its own.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs


def wrap(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


circle = cs.Manifold(
    exp=lambda points, tangents: wrap(points + tangents),
    log=lambda points, others: wrap(others - points),
    distance=lambda left, right: np.abs(wrap(left - right))[:, 0],
    random=lambda k, rng: rng.uniform(-np.pi, np.pi, (k, 1)),
)
rng = np.random.default_rng(0)
truth = rng.uniform(-np.pi, np.pi, (150, 1))
errors = rng.normal(size=(150, 4, 1)) * [[0.1], [0.2], [0.4], [0.8]]
votes = cs.Votes.from_array(wrap(truth[:, None] + errors), sources=["radar", "buoy", "pilot", "guess"])
model = cs.LabelModel(circle).fit(votes)

figure = pyplot.figure(figsize=(11, 4), layout="constrained")
cs.plot.compare(model, votes, truth, figure.add_subplot(1, 2, 1))
dial = figure.add_subplot(1, 2, 2, projection="polar")
doubtful = int(np.argmin(model.confidence(votes)))
for bearing, name in zip(votes.labels[doubtful, :, 0], votes.sources, strict=True):
    dial.plot([bearing, bearing], [0, 0.8], label=name)
dial.plot(model.predict(votes)[doubtful], [1], "*", markersize=14, color="tab:orange", label="label")
dial.plot(truth[doubtful], [1], "x", color="black", label="truth")
dial.set_yticks([])
dial.legend(loc="center left", bbox_to_anchor=(1.1, 0.5))
