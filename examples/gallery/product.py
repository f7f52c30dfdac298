"""
Product: a record of stars and topic
====================================

Four readers give each of 200 reviews a number of stars and a topic. Every field is learned on its own: a reader may be
good at one and poor at the other.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

rng = np.random.default_rng(0)
topics = np.array(["food", "travel", "work"])
stars, topic = rng.uniform(1, 5, 200), rng.integers(3, size=200)
right_topic = rng.random((200, 4)) < [0.95, 0.8, 0.6, 0.4]
space = cs.Product(stars=cs.Scores(range=(1, 5)), topic=cs.Classes(topics.tolist()))
records = space.records(
    stars=np.clip(stars[:, None] + rng.normal(size=(200, 4)) * [1.5, 0.9, 0.6, 0.3], 1, 5),
    topic=topics[np.where(right_topic, topic[:, None], rng.integers(3, size=(200, 4)))],
)
votes = cs.Votes.from_array(records, sources=["ann", "bob", "cleo", "dan"])
model = cs.LabelModel(space).fit(votes)
table = model.sources_.to_pandas()

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(table["stars error"], table["topic error_rate"], "o")
for _, row in table.iterrows():
    place = row["stars error"], row["topic error_rate"]
    left.annotate(row["source"], place, xytext=(6, 4), textcoords="offset points")
left.set(xlabel="typical error in stars", ylabel="share of wrong topics", title="readers")
labels = model.predict(votes)
right.plot(stars, [label["stars"] for label in labels], ".")
right.plot([1, 5], [1, 5], color="grey", linewidth=1)
right.set(xlabel="true stars", ylabel="stars of the label")
