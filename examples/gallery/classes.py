"""
Classes: topics of support tickets
==================================

Six sources of different quality assign a topic to 300 support tickets. The plots show the estimated error rate of each
source, the accuracy of the labels and of each source, and the calibration of the confidence.
"""

import consilience as cs

tickets = cs.datasets.load_tickets()
model = cs.LabelModel(tickets.space).fit(tickets.votes)

# sphinx_gallery_thumbnail_number = 3
cs.plot.sources(model)
cs.plot.compare(model, tickets.votes, tickets.truth)
cs.plot.calibration(model, tickets.votes, tickets.truth, bins=5)
