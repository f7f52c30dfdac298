"""Claim: a judge that is wrong systematically is as useful as one that is right.

Four judges sort reviews into "praise", "question" and "complaint". The instructions of the fourth judge had two names
swapped, so it is usually wrong, and it hurts a majority vote. The model estimates its confusion matrix from agreement
alone, and uses its votes correctly.
"""

from __future__ import annotations

import warnings

import numpy as np

import consilience as cs

NAMES = ["praise", "question", "complaint"]
SWAPPED = {"praise": "complaint", "question": "question", "complaint": "praise"}


def make_votes(n_items: int, rng: np.random.Generator) -> tuple[cs.Votes, np.ndarray]:
    """Return the votes of four judges and the truth."""
    truth = rng.choice(NAMES, size=n_items, p=[0.4, 0.25, 0.35]).astype(object)

    def judge(accuracy: float) -> np.ndarray:
        return np.where(rng.random(n_items) < accuracy, truth, rng.choice(NAMES, size=n_items))

    swapped = np.array([SWAPPED[name] for name in judge(0.85)], dtype=object)
    columns = {"large": judge(0.7), "medium": judge(0.6), "small": judge(0.45), "swapped": swapped}
    return cs.Votes.from_frame(columns), truth


def compare(n_items: int = 1000, seed: int = 0) -> dict[str, float]:
    """Return the accuracy of the labels, with and without the swapped judge."""
    votes, truth = make_votes(n_items, np.random.default_rng(seed))
    space = cs.Classes(NAMES)
    others = votes.select(["large", "medium", "small"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)  # says that one judge is worse than chance
        return {
            "majority vote": cs.LabelModel(space, method="majority").fit(votes).score(votes, truth),
            "majority vote, without it": cs.LabelModel(space, method="majority").fit(others).score(others, truth),
            "consilience, without it": cs.LabelModel(space).fit(others).score(others, truth),
            "consilience": cs.LabelModel(space).fit(votes).score(votes, truth),
        }


if __name__ == "__main__":
    print(f"{'labels by':28}accuracy")
    for name, accuracy in compare().items():
        print(f"{name:28}{accuracy:.1%}")
