"""
Sequences: one tag per word
===========================

Five annotators mark the names in 120 sentences with BIO tags. Votes may break the rule that I- follows B-; the label
never does. The picture shows the most doubtful sentence.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
space, rng = cs.Sequences(tags, chain=True), np.random.default_rng(0)
truth = space.as_labels(space.random(120, rng))
people = ["ann", "bob", "cleo", "dan", "eve"]
votes = cs.simulate(space, truth, [4.0, 2.5, 1.5, 1.0, 0.3], rng, sources=people)
model = cs.LabelModel(space).fit(votes)

figure, (left, right) = pyplot.subplots(2, 1, figsize=(9, 7), layout="constrained")
cs.plot.compare(model, votes, truth, left)
doubtful = int(np.argmin(model.confidence(votes)))
rows = [*votes.labels[doubtful], model.predict(votes)[doubtful], truth[doubtful]]
codes = [[tags.index(tag) for tag in row] for row in rows]
image = right.imshow(codes, cmap="Pastel1", vmin=0, vmax=8)
for (row, place), code in np.ndenumerate(np.array(codes)):
    right.text(place, row, tags[code], ha="center", va="center", fontsize=8)
right.set_yticks(range(7), [*people, "label", "truth"])
right.set_xlabel("word")
