"""
Product: records of stars and a topic
=====================================

Four readers give each of 200 reviews a number of stars and a topic. Each field is fitted separately, so a reader may be
good at one field and poor at the other.
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

# sphinx_gallery_thumbnail_number = 2
_, first = pyplot.subplots(figsize=(6, 4), layout="constrained")
first.plot(table["stars error"], table["topic error_rate"], "o")
for _, row in table.iterrows():
    place = row["stars error"], row["topic error_rate"]
    first.annotate(row["source"], place, xytext=(6, 4), textcoords="offset points")
first.set(xlabel="typical error in stars", ylabel="error rate of the topic", title="readers")
labels = model.predict(votes)

_, second = pyplot.subplots(figsize=(6, 4), layout="constrained")
second.plot(stars, [label["stars"] for label in labels], ".")
second.plot([1, 5], [1, 5], color="grey", linewidth=1)
second.set(xlabel="true stars", ylabel="stars of the label")
