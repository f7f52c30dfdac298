"""
Classes: the topic of a ticket
==============================

Six sources of very different quality name the topic of 300 support tickets. What the model learns from agreement alone
is close to how often each source is really wrong.
"""

from matplotlib import pyplot

import consilience as cs

tickets = cs.datasets.load_tickets()
model = cs.LabelModel(tickets.space).fit(tickets.votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.sources(model, left)
cs.plot.compare(model, tickets.votes, tickets.truth, right)
