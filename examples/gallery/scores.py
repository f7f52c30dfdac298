"""
Scores: judges on scales of their own
=====================================

Six judges rate 300 answers. Two are harsh, one squeezes the scale, one is mostly noise. Offset, slope and noise of each
judge are learned, so that a harsh judge is not taken for a bad one.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

rng = np.random.default_rng(0)
quality = rng.normal(60, 15, 300)
noise = rng.normal(size=(300, 6)) * [4, 5, 6, 8, 12, 20]
ratings = quality[:, None] * [1.0, 1.0, 0.5, 1.0, 0.8, 0.8] + [0, -25, 30, -15, 10, 15] + noise
judges = ["steady", "harsh", "narrow", "strict", "loose", "noisy"]
votes = cs.Votes.from_matrix(ratings, abstain=None, sources=judges)
model = cs.LabelModel(cs.Scores(mean=60, variance=225)).fit(votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.sources(model, left)
right.plot(quality, ratings.mean(axis=1), ".", color="lightgrey", label="mean of the ratings")
right.plot(quality, model.predict(votes), ".", label="labels")
right.plot([20, 100], [20, 100], color="grey", linewidth=1)
right.set(xlabel="truth", ylabel="label")
right.legend()
