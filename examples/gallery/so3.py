"""
SO3: rotations
==============

Five trackers estimate the pose of a camera in 200 frames, as unit quaternions. Weighing the trackers halves the angle
between label and truth.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.SO3(), np.random.default_rng(0)
truth = space.random(200, rng)
trackers = ["markers", "lidar", "optical", "inertial", "guess"]
votes = cs.simulate(space, truth, [40.0, 15.0, 5.0, 2.0, 1.0], rng, sources=trackers)
model = cs.LabelModel(space).fit(votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.sources(model, left)
bins = np.linspace(0, 60, 31)
for name, labels in (("plain vote", model.predict_baseline(votes)), ("labels", model.predict(votes))):
    right.hist(np.degrees(space.distance(labels, truth)), bins=bins, alpha=0.6, label=name)
right.set(xlabel="angle to the truth in degrees", ylabel="frames")
right.legend()
