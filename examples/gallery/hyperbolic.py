"""
Hyperbolic: positions in a hierarchy
====================================

Four embeddings place 200 concepts in the hyperbolic plane. The second plot shows the most contested concept in the
Poincaré disk. Dots are votes, with a size that shows the weight of the source, and the star is the label.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.Hyperbolic(2), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(space, truth, [8.0, 3.0, 1.0, 0.5], rng, sources=["wordnet", "wiki", "news", "random"])
model = cs.LabelModel(space).fit(votes)
belief = model.posterior(votes)

# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
contested = int(np.argmax(np.ptp(space.to_poincare(votes.labels), axis=1).sum(axis=1)))
axes.add_patch(pyplot.Circle((0, 0), 1, fill=False, color="grey"))
axes.plot(*space.to_poincare(belief.labels).T, ".", color="lightgrey", markersize=3)
places = space.to_poincare(votes.labels[contested])
axes.scatter(*places.T, s=300 * model.weight_ / model.weight_.max() + 15, zorder=3)
axes.plot(*space.to_poincare(belief.labels[[contested]]).T, "*", markersize=16, color="tab:orange", label="label")
axes.plot(*space.to_poincare(truth[[contested]]).T, "x", markersize=10, color="black", label="truth")
axes.set(aspect="equal", xticks=[], yticks=[])
axes.legend()
