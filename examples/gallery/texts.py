"""
Texts: transcripts
==================

Five transcribers write down 80 short sentences. The label is the closest transcript, or a new text composed of the
votes that is even closer.
"""

import consilience as cs

sentences = cs.datasets.load_sentences()
space = cs.Texts()
model = cs.LabelModel(space).fit(sentences.votes)
belief = model.posterior(sentences.votes)
anew = int(belief.details["new_text"].nonzero()[0][0])
print("\n".join(["votes:", *map(str, sentences.votes.labels[anew]), "label:", belief.labels[anew]]))

# sphinx_gallery_thumbnail_number = 1
cs.plot.sources(model)
cs.plot.compare(model, sentences.votes, sentences.truth)
