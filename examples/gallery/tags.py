"""
Tags: several tags per article
==============================

Five readers tag 200 articles. The second plot shows the fifteen articles with the lowest confidence: the probability of
each tag, and the true tags.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

names = ["news", "sport", "music", "science", "weather", "law"]
space, rng = cs.Tags(names), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(space, truth, [2.5, 1.5, 1.0, 0.7, 0.3], rng, sources=["ann", "bob", "cleo", "dan", "eve"])
model = cs.LabelModel(space).fit(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.sources(model)

figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = np.argsort(model.confidence(votes))[:15]
image = axes.imshow(
    model.posterior(votes).details["tag_probability"][doubtful], cmap="Blues", vmin=0, vmax=1, aspect="auto"
)
row, tag = np.nonzero(truth[doubtful])
axes.plot(tag, row, "o", color="tab:orange", label="true tag")
axes.set_xticks(range(len(names)), names, rotation=45)
axes.set_yticks([])
axes.set_ylabel("articles, lowest confidence first")
axes.legend(loc="lower right", bbox_to_anchor=(1, 1))
figure.colorbar(image, ax=axes, label="probability")
