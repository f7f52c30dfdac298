"""
DependencyTrees: parses of sentences
====================================

Five parsers assign a head to every word. The label is the best tree with a single root, and the search is exact. In the
second plot, arcs above the words are the label, and arcs below are the truth. Wrong arcs are orange.
"""

import numpy as np
from matplotlib import pyplot
from matplotlib.patches import Arc

import consilience as cs

space, rng = cs.DependencyTrees(), np.random.default_rng(0)
truth = space.random_trees(rng.integers(8, 13, size=100), rng)
parsers = ["udpipe", "spacy", "stanza", "rules", "random"]
votes = cs.simulate(space, truth, [4.0, 2.5, 1.5, 1.0, 0.3], rng, sources=parsers)
model = cs.LabelModel(space).fit(votes)
labels = model.predict(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = int(np.argmin(model.confidence(votes)))
words = np.arange(1, len(truth[doubtful]) + 1)
for heads, above in ((labels[doubtful], True), (truth[doubtful], False)):
    for word, head, other in zip(words, heads, truth[doubtful], strict=True):
        color = "tab:blue" if head == other else "tab:orange"
        if head:
            span = abs(word - head)
            angles = (0, 180) if above else (180, 360)
            axes.add_patch(Arc(((word + head) / 2, 0), span, span, theta1=angles[0], theta2=angles[1], color=color))
axes.plot(words, np.zeros(len(words)), "o", color="black")
axes.set(xlim=(0, len(words) + 1), ylim=(-5, 5), yticks=[], xlabel="word", title="sentence with the lowest confidence")
