"""
Vectors: positions on a map
===========================

Four sensors locate 300 objects. One is precise from east to west, and one from north to south, so the label follows a
different sensor in each coordinate. The ellipse contains the true position with 95% probability.
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

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
item = int(np.argmax(np.ptp(votes.labels, axis=1).sum(axis=1)))
for place, name in zip(votes.labels[item], sensors, strict=True):
    axes.plot(*place, "o", color="tab:blue")
    axes.annotate(name, place, xytext=(6, 4), textcoords="offset points")
values, directions = np.linalg.eigh(belief.details["covariance"][item])
turn = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
width, height = 2 * 2.45 * np.sqrt(values[::-1])
axes.add_patch(Ellipse(belief.labels[item], width, height, angle=turn, fill=False, color="tab:orange"))
axes.plot(*belief.labels[item], "*", markersize=14, color="tab:orange", label="label")
axes.plot(*truth[item], "x", markersize=10, color="black", label="truth")
axes.set(aspect="equal", title="object with the most disagreement")
axes.legend()
