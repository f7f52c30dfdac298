"""
Sphere: directions
==================

Four instruments measure 200 directions. The label is the point of largest likelihood on the sphere, with a standard
deviation. The second plot compares this expected error with the true error.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.Sphere(2), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(
    space, truth, [30.0, 12.0, 6.0, 2.0], rng, coverage=0.7, sources=["gyro", "stars", "sun", "compass"]
)
model = cs.LabelModel(space).fit(votes)
belief = model.posterior(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
voted = votes.observed.any(axis=1)
error = np.degrees(space.distance(belief.labels[voted], truth[voted]))
expected = np.degrees(belief.details["standard_deviation"][voted])
axes.plot(expected, error, ".")
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
axes.set(xlabel="expected error in degrees", ylabel="true error in degrees")
