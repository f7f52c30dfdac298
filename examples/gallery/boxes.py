"""
Boxes: objects on images
========================

Five people draw boxes on 100 images. Some miss objects, some draw boxes where nothing is. The picture shows the image
with the most doubtful label: thin boxes are votes, thick ones the label.
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


figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.compare(model, votes, truth, left)
doubtful = int(np.argmin(model.confidence(votes)))
for number, boxes in enumerate(votes.labels[doubtful]):
    draw(boxes, right, color=f"C{number}", linewidth=1, linestyle=":")
draw(labels[doubtful], right, color="tab:orange", linewidth=3)
right.autoscale_view()
right.set(aspect="equal", title="the most doubtful image")
