"""How the label model behaves, for every kind of label; and that the checks notice models that misbehave."""

from __future__ import annotations

import numpy as np
import pytest
from test_every_space import SPACES as EVERY

import consilience as cs
from consilience.testing import LABEL_MODEL_CHECKS, LabelModelCheckError, check_label_model

SPACES = {
    name: EVERY[name]
    for name in (
        "two classes",
        "named classes",
        "ordinal",
        "rankings",
        "scores",
        "vectors",
        "tags",
        "chains",
        "trees",
        "sphere",
        "hyperbolic plane",
        "records of a score and a class",
        "own space",
    )
} | {"metric": cs.Metric(lambda a, b: np.abs(a - b), candidates=np.arange(6.0), vectorized=True)}

QUICK = {"two classes", "rankings", "scores"}
LONG = {"more_items_give_better_qualities", "intervals_of_qualities_cover", "an_expert_outweighs_the_others"}

CASES = [
    pytest.param(
        name,
        check,
        id=f"{name}-{check.__name__}",
        marks=[] if name in QUICK and check.__name__ not in LONG else [pytest.mark.slow],
    )
    for name in SPACES
    for check in LABEL_MODEL_CHECKS
]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_the_label_model_behaves(name, check):
    check(cs.LabelModel, SPACES[name], np.random.default_rng(0))


class FirstSource:
    """Believes whoever stands in the first column."""

    def __init__(self, space):
        self.space = space

    def fit(self, votes):
        return self

    def predict(self, votes):
        return votes.labels[:, 0]


def test_a_model_that_follows_one_source_is_found_out_without_further_methods():
    with pytest.raises(LabelModelCheckError) as caught:
        check_label_model(FirstSource, cs.Classes(2))
    for check in ("alike_sources_are_not_told_apart", "spam_is_ignored", "order_and_names_do_not_matter"):
        assert check in str(caught.value)
