"""
Texts: what was said
====================

Five transcribers write down 80 short sentences. The label is the closest transcript, or a new text composed from all of
them that is closer still.
"""

from matplotlib import pyplot

import consilience as cs

sentences = cs.datasets.load_sentences()
space = cs.Texts()
model = cs.LabelModel(space).fit(sentences.votes)
belief = model.posterior(sentences.votes)
anew = int(belief.details["written_anew"].nonzero()[0][0])
print("\n".join(["votes:", *map(str, sentences.votes.labels[anew]), "label:", belief.labels[anew]]))

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.sources(model, left)
cs.plot.compare(model, sentences.votes, sentences.truth, right)
