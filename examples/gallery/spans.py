"""
Spans: marked passages of a text
================================

Five readers mark passages in 100 texts. In the second plot, each row is a reader, and the last two rows are the label
and the truth.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.Spans(), np.random.default_rng(0)
truth = space.random(100, rng)
people = ["ann", "bob", "cleo", "dan", "eve"]
votes = cs.simulate(space, truth, [4.0, 2.5, 1.5, 1.0, 0.5], rng, sources=people)
model = cs.LabelModel(space).fit(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = int(np.argmin(model.confidence(votes)))
rows = [*votes.labels[doubtful], model.predict(votes)[doubtful], truth[doubtful]]
for place, spans in enumerate(rows):
    color = "tab:blue" if place < 5 else "tab:orange"
    axes.broken_barh([(span[0], span[1] - span[0]) for span in spans], (place - 0.35, 0.7), color=color)
axes.set_yticks(range(7), [*people, "label", "truth"])
axes.invert_yaxis()
axes.set(xlabel="character", title="text with the lowest confidence")
