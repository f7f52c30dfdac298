"""
Rankings: five jams in order
============================

Six sources rank five jams for each of 150 guests. One source saw only some jams, and one names its top three. The
second plot shows the probability of each pair order for the guest with the lowest confidence.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

guests = cs.datasets.load_guests()
model = cs.LabelModel(guests.space).fit(guests.votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, guests.votes, guests.truth)

figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
belief = model.posterior(guests.votes)
doubtful = int(np.argmin(belief.confidence))
jams = cs.datasets.JAMS
first, second = np.triu_indices(len(jams), 1)
before = np.full((len(jams), len(jams)), np.nan)
before[first, second] = belief.details["pair_probability"][doubtful]
before[second, first] = 1 - before[first, second]
order = [jams.index(name) for name in belief.labels[doubtful]]
image = axes.imshow(before[np.ix_(order, order)], cmap="RdBu", vmin=0, vmax=1)
axes.set_xticks(range(5), [jams[item] for item in order])
axes.set_yticks(range(5), [jams[item] for item in order])
axes.set_title("ranking with the lowest confidence, best first")
figure.colorbar(image, ax=axes, label="probability: row before column")
