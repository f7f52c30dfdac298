"""
Metric: any object with a distance
==================================

Six sources tag 200 photographs. A label is a Python set, and the distance is the number of tags that differ. The model
needs only this distance.
"""

import numpy as np

import consilience as cs

rng = np.random.default_rng(0)
tags = np.array(["beach", "boat", "bridge", "child", "cloud", "dog", "forest", "house", "night", "river"])
present = rng.random((200, 10)) < 0.3
rates = {"editor": 0.05, "librarian": 0.15, "app": 0.2, "intern": 0.25, "crowd_1": 0.3, "crowd_2": 0.35}
flipped = rng.random((200, 6, 10)) < np.array(list(rates.values()))[:, None]
truth = [frozenset(tags[row]) for row in present]
sets = [
    [frozenset(tags[row ^ errors]) for errors in by_source] for row, by_source in zip(present, flipped, strict=True)
]
votes = cs.Votes.from_array(sets, sources=list(rates))
model = cs.LabelModel(cs.Metric(lambda left, right: len(left ^ right))).fit(votes)

# sphinx_gallery_thumbnail_number = 1
cs.plot.agreement(model, votes)
cs.plot.compare(model, votes, truth)
