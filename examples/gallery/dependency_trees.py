"""
DependencyTrees: the parse of a sentence
========================================

Five parsers give every word its head. The label is the best tree with one root, found exactly. Arcs above the words are
the label, those below the truth; orange ones differ.
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

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.compare(model, votes, truth, left)
doubtful = int(np.argmin(model.confidence(votes)))
words = np.arange(1, len(truth[doubtful]) + 1)
for heads, above in ((labels[doubtful], True), (truth[doubtful], False)):
    for word, head, other in zip(words, heads, truth[doubtful], strict=True):
        color = "tab:blue" if head == other else "tab:orange"
        if head:
            span = abs(word - head)
            angles = (0, 180) if above else (180, 360)
            right.add_patch(Arc(((word + head) / 2, 0), span, span, theta1=angles[0], theta2=angles[1], color=color))
right.plot(words, np.zeros(len(words)), "o", color="black")
right.set(xlim=(0, len(words) + 1), ylim=(-5, 5), yticks=[], xlabel="word", title="the most doubtful sentence")
