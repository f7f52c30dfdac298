"""
Preferences: a leaderboard from duels
=====================================

Three judges compare answers of six models, two at a time, and like the answer shown first. The leaderboard has scores
with standard errors, and every judge a discrimination and a position bias.
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

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.sources(model, left)
right.errorbar(board["score"], board["candidate"], xerr=1.96 * board["standard_error"], fmt="o", capsize=3)
right.invert_yaxis()
right.set_xlabel("score")
