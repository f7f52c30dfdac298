"""
Boxes: objects in images
========================

Five people draw boxes in 100 images. Some miss objects, and some draw boxes where there is no object. The second plot
shows the image with the lowest confidence: dotted boxes are votes, and thick boxes are the label.
"""

import numpy as np
from matplotlib import pyplot
from matplotlib.patches import Rectangle

import consilience as cs

space, rng = cs.Boxes(), np.random.default_rng(0)
truth = space.random(100, rng)
votes = cs.simulate(space, truth, [4.0, 2.5, 1.5, 1.0, 0.5], rng, sources=["ann", "bob", "cleo", "dan", "eve"])
model = cs.LabelModel(space).fit(votes)
labels = model.predict(votes)


def draw(boxes, axes, **style):
    for x1, y1, x2, y2 in boxes:
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, **style))


# sphinx_gallery_thumbnail_number = 2
cs.plot.compare(model, votes, truth)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
doubtful = int(np.argmin(model.confidence(votes)))
for number, boxes in enumerate(votes.labels[doubtful]):
    draw(boxes, axes, color=f"C{number}", linewidth=1, linestyle=":")
draw(labels[doubtful], axes, color="tab:orange", linewidth=3)
axes.autoscale_view()
axes.set(aspect="equal", title="image with the lowest confidence")
