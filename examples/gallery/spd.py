"""
SPD: covariance matrices
========================

Four estimators compute a covariance matrix for each of 200 windows of a signal. The second plot shows the window with
the lowest confidence: thin ellipses are votes, the thick one is the label, and the dashed one is the truth.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.SPD(2), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(space, truth, [8.0, 4.0, 2.0, 0.5], rng, sources=["long", "robust", "short", "raw"])
model = cs.LabelModel(space).fit(votes)


def draw(matrix, axes, **style):
    turn = np.linspace(0, 2 * np.pi, 100)
    axes.plot(*(np.linalg.cholesky(matrix) @ [np.cos(turn), np.sin(turn)]), **style)


# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = int(np.argmin(model.confidence(votes)))
for matrix in votes.labels[doubtful]:
    draw(matrix, axes, color="tab:blue", linewidth=1)
draw(model.predict(votes)[doubtful], axes, color="tab:orange", linewidth=3, label="label")
draw(truth[doubtful], axes, color="black", linestyle="--", label="truth")
axes.set(aspect="equal")
axes.legend()
