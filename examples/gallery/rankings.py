"""
Rankings: five jams in order
============================

Six sources guess how 150 guests rank five jams; one saw some jams only, one names three. The right picture shows how
probable each order of two jams is for the guest of the most doubtful label.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

guests = cs.datasets.load_guests()
model = cs.LabelModel(guests.space).fit(guests.votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.compare(model, guests.votes, guests.truth, left)
belief = model.posterior(guests.votes)
doubtful = int(np.argmin(belief.confidence))
jams = cs.datasets.JAMS
first, second = np.triu_indices(len(jams), 1)
before = np.full((len(jams), len(jams)), np.nan)
before[first, second] = belief.details["pair_probability"][doubtful]
before[second, first] = 1 - before[first, second]
order = [jams.index(name) for name in belief.labels[doubtful]]
image = right.imshow(before[np.ix_(order, order)], cmap="RdBu", vmin=0, vmax=1)
right.set_xticks(range(5), [jams[item] for item in order])
right.set_yticks(range(5), [jams[item] for item in order])
right.set_title("the most doubtful ranking, best first")
figure.colorbar(image, ax=right, label="probability: row before column")
