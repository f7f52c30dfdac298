"""
Manifold: angles on a circle
============================

A manifold is defined by four functions. Here, labels are bearings, and 359 degrees is next to 1 degree. Each of four
observers has a different error.
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

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained", subplot_kw={"projection": "polar"})
doubtful = int(np.argmin(model.confidence(votes)))
for bearing, name in zip(votes.labels[doubtful, :, 0], votes.sources, strict=True):
    axes.plot([bearing, bearing], [0, 0.8], label=name)
axes.plot(model.predict(votes)[doubtful], [1], "*", markersize=14, color="tab:orange", label="label")
axes.plot(truth[doubtful], [1], "x", color="black", label="truth")
axes.set_yticks([])
axes.legend(loc="center left", bbox_to_anchor=(1.1, 0.5))
