"""Embeddings of label types, the paper's g, and triplets on them."""

import warnings

import numpy as np
import pytest

import consilience as cs

#: Label types with an embedding (the paper's g), weights of five sources that are far apart, and the factor between
#: squared distances of coordinates and counted differences, where there is one.
EMBEDDED = {
    "classes": (cs.Classes(3), [0.5, 1.0, 1.6, 2.4, 3.5], 2.0),
    "path": (
        cs.FiniteMetric(np.abs(np.arange(5.0)[:, None] - np.arange(5.0))),
        [0.2, 0.5, 0.9, 1.5, 2.5],
        1.0,
    ),
    "rankings": (cs.Rankings(5), [0.1, 0.3, 0.6, 1.0, 1.7], 4.0),
    "rankings of any length": (cs.Rankings(None), [0.1, 0.3, 0.6, 1.0, 1.7], 4.0),
    "tags": (cs.Tags(4), [0.5, 1.0, 1.6, 2.4, 3.5], 4.0 * 4),
    "sequences": (cs.Sequences(3), [0.5, 1.0, 1.6, 2.4, 3.5], None),
    "trees": (cs.DependencyTrees(), [1.0, 2.0, 3.0, 4.0, 5.5], None),
    "vectors": (cs.Vectors(2), [0.3, 0.6, 1.2, 2.5, 5.0], 1.0),
    "hyperbolic": (cs.Hyperbolic(2), [0.3, 0.6, 1.2, 2.5, 5.0], None),
    "sphere": (cs.Sphere(2), [0.5, 1.0, 2.0, 4.0, 8.0], None),
    "rotations": (cs.SO3(), [0.5, 1.0, 2.0, 4.0, 8.0], None),
    "covariance matrices": (cs.SPD(2, metric="log-euclidean"), [0.3, 0.6, 1.2, 2.5, 5.0], 1.0),
}


@pytest.mark.parametrize("name", EMBEDDED)
def test_triplets_on_the_embedding_put_sources_of_every_type_into_the_right_order(name: str) -> None:
    # 1,500 items. Over 15 other draws no type had two neighbors in the wrong order.
    space, weights, factor = EMBEDDED[name]
    rng = np.random.default_rng(2)
    truth = space.random(1500, rng)
    votes = cs.simulate(space, truth, weights, rng)
    columns = [space.as_batch(votes.labels[:, source]) for source in range(5)]
    placed = np.stack([space.embed(column) for column in columns])
    if factor is not None:
        squared = ((placed[0] - placed[1]) ** 2).sum(axis=1)
        assert squared == pytest.approx(factor * space.cost(columns[0], columns[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        model = cs.LabelModel(space, method="triplets").fit(votes)
    assert np.argsort(model.expected_cost_).tolist() == [4, 3, 2, 1, 0]
