"""
Scores: judges with different scales
====================================

Six judges rate 300 answers. Two are harsh, one uses a narrow part of the scale, and one is mostly noise. The model
estimates the offset, slope and noise of each judge, so a harsh judge is not treated as a bad one.
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

# sphinx_gallery_thumbnail_number = 2
cs.plot.sources(model)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
axes.plot(quality, ratings.mean(axis=1), ".", color="lightgrey", label="mean of the ratings")
axes.plot(quality, model.predict(votes), ".", label="labels")
axes.plot([20, 100], [20, 100], color="grey", linewidth=1)
axes.set(xlabel="truth", ylabel="label")
axes.legend()
