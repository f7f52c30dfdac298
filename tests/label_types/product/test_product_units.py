"""The unit in which the fields of a record are compared, and what is not known about it."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs


def test_the_unit_of_a_field_is_the_cost_of_votes_on_different_items():
    # 3,000 items: the standard error of the unit is about 3%. Only ratios to it enter the cost of a record.
    rng = np.random.default_rng(0)
    stars = rng.normal(0.0, 2.0, (3000, 1)) + rng.normal(0.0, 1.0, (3000, 4))
    space = cs.Product(stars=cs.Scores())
    parameters = cs.LabelModel(space).fit(space.records(stars=stars)).source_model_.parameters
    assert parameters.scale[0] > 0.0
    twice = cs.LabelModel(space).fit(space.records(stars=2.0 * stars)).source_model_.parameters
    assert twice.scale[0] == pytest.approx(4.0 * parameters.scale[0], rel=0.2)


def test_every_field_has_its_standard_errors_in_the_table():
    rng = np.random.default_rng(1)
    space = cs.Product(stars=cs.Scores(), topic=cs.Classes(3))
    topic = np.where(rng.random((200, 4)) < 0.7, rng.integers(3, size=(200, 1)), rng.integers(3, size=(200, 4)))
    model = cs.LabelModel(space).fit(
        space.records(stars=rng.normal(size=(200, 1)) + rng.normal(size=(200, 4)), topic=topic)
    )
    for name, part in model.source_model_.summary.parts.items():
        assert model.sources_.columns[f"{name} cost_standard_error"] == part.cost_standard_error.tolist()
        assert model.sources_.columns[f"{name} standard_error"] == part.standard_error.tolist()


def test_the_unit_survives_storage(tmp_path):
    rng = np.random.default_rng(2)
    space = cs.Product(stars=cs.Scores())
    model = cs.LabelModel(space).fit(space.records(stars=rng.normal(size=(90, 1)) + rng.normal(size=(90, 4))))
    model.save(tmp_path / "model.npz")
    loaded = cs.LabelModel.load(tmp_path / "model.npz")
    assert loaded.sources_.columns == model.sources_.columns
