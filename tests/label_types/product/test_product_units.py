"""The unit in which the fields of a record are compared, and what is not known about it."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs


@pytest.mark.parametrize("kind", ["scores", "vectors", "sphere"])
def test_the_unit_of_a_field_is_that_of_the_true_labels_whoever_votes(kind):
    # 3000 items: the standard error of the unit is about 3%, so that 15% are five of them. Votes alone are half as far
    # again from each other as the true labels, because of their noise; not so on a sphere, where there is no further.
    space = {"scores": cs.Scores(), "vectors": cs.Vectors(2), "sphere": cs.Sphere(3)}[kind]
    rng = np.random.default_rng(100_001)
    truth = space.random(3000, rng)
    apart = float(space.cost(truth, truth[::-1]).mean())
    weight = space.law.weight_from_cost(space.law.unrelated_cost * np.array([0.1, 0.2, 0.3, 0.5, 0.6]))
    votes = np.stack([space.sample_around(truth, float(one), rng) for one in weight], axis=1)
    record = cs.Product(one=space)
    parameters = cs.LabelModel(record).fit(record.records(one=votes)).source_model_.parameters
    assert parameters.scale[0] == pytest.approx(apart, rel=0.15)
    assert 0.0 < parameters.scale_error[0] < 0.1 * apart


def test_a_declared_spread_is_the_unit_of_its_field():
    rng = np.random.default_rng(0)
    stars = rng.normal(0.0, 2.0, (300, 1)) + rng.normal(0.0, 1.0, (300, 4))
    space = cs.Product(stars=cs.Scores(mean=0.0, variance=7.0))
    parameters = cs.LabelModel(space).fit(space.records(stars=stars)).source_model_.parameters
    assert parameters.scale == pytest.approx([14.0])
    assert parameters.scale_error.tolist() == [0.0]
    assert space.law.adapt(None, 0, 0).scale == pytest.approx([14.0])


def test_the_error_of_the_unit_is_how_much_it_varies_between_sets_of_items():
    # 60 fits of 150 items: the spread of the units is itself known to 9% (one standard error), and the mean of the
    # stated errors to less; 35% are almost four of them. True scores are uniform, so that a normal law would say 1.7
    # times too much.
    space, rng = cs.Product(one=cs.Scores(), two=cs.Vectors(2)), np.random.default_rng(100_002)
    units, errors = [], []
    for _ in range(60):
        truth = rng.uniform(-1.0, 1.0, (150, 1, 3))
        noise = rng.normal(0.0, 1.0, (150, 5, 3)) * np.array([0.1, 0.15, 0.2, 0.25, 0.3])[:, None]
        votes = truth + noise
        model = cs.LabelModel(space, method="moments", dependencies="none").fit(
            space.records(one=votes[:, :, 0], two=votes[:, :, 1:])
        )
        units.append(model.source_model_.parameters.scale)
        errors.append(model.source_model_.parameters.scale_error)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(units, axis=0), rel=0.35)


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
