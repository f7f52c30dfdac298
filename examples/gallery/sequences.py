"""
Sequences: one tag per word
===========================

Five annotators mark the names in 120 sentences with BIO tags. Votes may break the rule that I- follows B- or I-, but
labels do not. The second plot shows the sentence with the lowest confidence.
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

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = int(np.argmin(model.confidence(votes)))
rows = [*votes.labels[doubtful], model.predict(votes)[doubtful], truth[doubtful]]
codes = [[tags.index(tag) for tag in row] for row in rows]
image = axes.imshow(codes, cmap="Pastel1", vmin=0, vmax=8, aspect="auto")
for (row, place), code in np.ndenumerate(np.array(codes)):
    axes.text(place, row, tags[code], ha="center", va="center", fontsize=8)
axes.set_yticks(range(7), [*people, "label", "truth"])
axes.set_xlabel("word")
