"""
Vectors: positions on a map
===========================

Four sensors locate 300 objects. One is good from east to west, one from north to south, so each coordinate follows
another sensor. The ellipse is where the label is expected with 95% probability.
"""

import numpy as np
from matplotlib import pyplot
from matplotlib.patches import Ellipse

import consilience as cs

rng = np.random.default_rng(0)
truth = rng.normal(size=(300, 2)) * 5
spread = np.array([[0.4, 3.0], [3.0, 0.4], [1.5, 1.5], [4.0, 4.0]])
sensors = ["radar", "sonar", "camera", "radio"]
votes = cs.Votes.from_array(truth[:, None] + rng.normal(size=(300, 4, 2)) * spread, sources=sensors)
model = cs.LabelModel(cs.Vectors(2)).fit(votes)
belief = model.posterior(votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.compare(model, votes, truth, left)
item = int(np.argmax(np.ptp(votes.labels, axis=1).sum(axis=1)))
for place, name in zip(votes.labels[item], sensors, strict=True):
    right.plot(*place, "o", color="tab:blue")
    right.annotate(name, place, xytext=(6, 4), textcoords="offset points")
values, axes = np.linalg.eigh(belief.details["covariance"][item])
turn = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
width, height = 2 * 2.45 * np.sqrt(values[::-1])
right.add_patch(Ellipse(belief.labels[item], width, height, angle=turn, fill=False, color="tab:orange"))
right.plot(*belief.labels[item], "*", markersize=14, color="tab:orange", label="label")
right.plot(*truth[item], "x", markersize=10, color="black", label="truth")
right.set(aspect="equal", title="the most contested object")
right.legend()
