"""
Tags: several tags per article
==============================

Five readers tag 200 articles. The picture shows the fifteen most doubtful articles: how probable each tag is, and which
tags are right.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

names = ["news", "sport", "music", "science", "weather", "law"]
space, rng = cs.Tags(names), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(space, truth, [2.5, 1.5, 1.0, 0.7, 0.3], rng, sources=["ann", "bob", "cleo", "dan", "eve"])
model = cs.LabelModel(space).fit(votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.sources(model, left)
doubtful = np.argsort(model.confidence(votes))[:15]
image = right.imshow(
    model.posterior(votes).details["tag_probability"][doubtful], cmap="Blues", vmin=0, vmax=1, aspect="auto"
)
row, tag = np.nonzero(truth[doubtful])
right.plot(tag, row, "o", color="tab:orange", label="right")
right.set_xticks(range(len(names)), names, rotation=45)
right.set_yticks([])
right.set_ylabel("articles, most doubtful first")
right.legend(loc="lower right")
figure.colorbar(image, ax=right, label="probability")
