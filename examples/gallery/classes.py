"""
Classes: the topic of a ticket
==============================

Six sources of very different quality name the topic of 300 support tickets. What the model learns from agreement alone
is close to how often each source is really wrong, and the stated confidence is close to the share of right labels.
"""

from matplotlib import pyplot

import consilience as cs

tickets = cs.datasets.load_tickets()
model = cs.LabelModel(tickets.space).fit(tickets.votes)

figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(15, 4), layout="constrained")
cs.plot.sources(model, left)
cs.plot.compare(model, tickets.votes, tickets.truth, middle)
cs.plot.calibration(model, tickets.votes, tickets.truth, right, bins=5)
