"""
SO3: rotations
==============

Five trackers estimate the pose of a camera in 200 frames, as unit quaternions. The second plot compares the angle
between label and truth with that of an unweighted mean.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.SO3(), np.random.default_rng(0)
truth = space.random(200, rng)
trackers = ["markers", "lidar", "optical", "inertial", "guess"]
votes = cs.simulate(space, truth, [40.0, 15.0, 5.0, 2.0, 1.0], rng, sources=trackers)
model = cs.LabelModel(space).fit(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.sources(model)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
bins = np.linspace(0, 60, 31)
for name, labels in (("plain vote", model.predict_baseline(votes)), ("labels", model.predict(votes))):
    axes.hist(np.degrees(space.distance(labels, truth)), bins=bins, alpha=0.6, label=name)
axes.set(xlabel="angle to the truth in degrees", ylabel="frames")
axes.legend()
