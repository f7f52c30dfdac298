"""
Preferences: a leaderboard from duels
=====================================

Three judges compare the answers of six models, two at a time, and have a small bias toward the first answer. The
leaderboard has scores with standard errors. Each judge has a discrimination and a position bias.
"""

import numpy as np
from matplotlib import pyplot

import consilience as cs

rng = np.random.default_rng(0)
strength = dict(zip(["opal", "onyx", "jade", "ruby", "agate", "topaz"], [1.5, 1.0, 0.4, 0.0, -0.9, -2.0], strict=True))
duels = []
for judge, skill in [("ann", 2.0), ("bob", 1.0), ("cleo", 0.1)]:
    for _ in range(250):
        first, second = rng.choice(list(strength), 2, replace=False)
        odds = np.exp(skill * (strength[first] - strength[second]) + 0.5)
        winner = first if rng.random() < odds / (1 + odds) else second
        duels.append({"judge": judge, "model_a": first, "model_b": second, "winner": winner})
votes = cs.tables.read_preferences(duels)
model = cs.LabelModel(cs.Preferences()).fit(votes)
board = cs.preferences.standings(model, votes).to_pandas()

# sphinx_gallery_thumbnail_number = 2
cs.plot.sources(model)

_, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
axes.errorbar(board["score"], board["candidate"], xerr=1.96 * board["standard_error"], fmt="o", capsize=3)
axes.invert_yaxis()
axes.set_xlabel("score")
