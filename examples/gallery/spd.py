"""
SPD: covariance matrices
========================

Four estimators give a covariance matrix for each of 200 windows of a signal. Thin ellipses are the votes on the most
doubtful window, the thick one the label, the dashed one the truth.
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


figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.compare(model, votes, truth, left)
doubtful = int(np.argmin(model.confidence(votes)))
for matrix in votes.labels[doubtful]:
    draw(matrix, right, color="tab:blue", linewidth=1)
draw(model.predict(votes)[doubtful], right, color="tab:orange", linewidth=3, label="label")
draw(truth[doubtful], right, color="black", linestyle="--", label="truth")
right.set(aspect="equal")
right.legend()
