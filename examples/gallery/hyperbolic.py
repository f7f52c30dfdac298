"""
Hyperbolic: places in a hierarchy
=================================

Four embeddings place 200 concepts in the hyperbolic plane. The Poincaré disk shows the most contested one: votes as
dots, larger where a source counts more, and the label as a star.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

space, rng = cs.Hyperbolic(2), np.random.default_rng(0)
truth = space.random(200, rng)
votes = cs.simulate(space, truth, [8.0, 3.0, 1.0, 0.5], rng, sources=["wordnet", "wiki", "news", "random"])
model = cs.LabelModel(space).fit(votes)
belief = model.posterior(votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.compare(model, votes, truth, left)
contested = int(np.argmax(np.ptp(space.to_poincare(votes.labels), axis=1).sum(axis=1)))
right.add_patch(pyplot.Circle((0, 0), 1, fill=False, color="grey"))
right.plot(*space.to_poincare(belief.labels).T, ".", color="lightgrey", markersize=3)
places = space.to_poincare(votes.labels[contested])
right.scatter(*places.T, s=300 * model.weight_ / model.weight_.max() + 15, zorder=3)
right.plot(*space.to_poincare(belief.labels[[contested]]).T, "*", markersize=16, color="tab:orange", label="label")
right.plot(*space.to_poincare(truth[[contested]]).T, "x", markersize=10, color="black", label="truth")
right.set(aspect="equal", xticks=[], yticks=[])
right.legend()
