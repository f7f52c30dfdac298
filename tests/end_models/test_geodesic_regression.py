"""GeodesicRegression: exact where it can be, optimal elsewhere, and at home among scikit-learn's tools."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import consilience as cs
from consilience.end_models import GeodesicRegression
from consilience.exceptions import (
    ConsilienceWarning,
    InvalidInputError,
    InvalidLabelError,
    NotFittedError,
    UnsupportedError,
)

SPACES = {
    "hyperbolic": cs.Hyperbolic(3),
    "wide hyperbolic": cs.Hyperbolic(5, curvature=-1 / 50),
    "strongly curved": cs.Hyperbolic(2, curvature=-4.0),
    "sphere": cs.Sphere(3),
    "circle": cs.Sphere(1),
}
everywhere = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def curve(space, k=1, noise=0.0, n=60, seed=0, reach=1.0):
    """Return covariates in (-1, 1) and points around a random geodesic (surface), in units of the curvature radius."""
    rng = np.random.default_rng(seed)
    geometry = space.geometry
    unit = geometry.radius / np.sqrt(space.d)
    base = geometry.exp(geometry.origin, geometry.radius * np.append(0.0, rng.normal(size=space.d)) / np.sqrt(space.d))
    velocities = reach * unit * np.stack([geometry.random_tangent(base, rng) for _ in range(k)])
    X = rng.uniform(-1, 1, (n, k))
    y = geometry.exp(base, X @ velocities)
    return X, geometry.exp(y, noise * unit * geometry.random_tangent(y, rng)), base, velocities


def loss(space, X, y, base, velocities):
    return float(np.mean(space.distance(space.geometry.exp(base, X @ velocities), y) ** 2))


@everywhere
@pytest.mark.parametrize("k", [1, 2])
def test_curves_without_noise_are_recovered_exactly(space, k):
    X, y, base, velocities = curve(space, k)
    model = GeodesicRegression(space, center=False).fit(X, y)
    assert float(space.distance(model.intercept_, base)) < 1e-7
    np.testing.assert_allclose(model.coef_, velocities, atol=1e-7)
    assert space.distance(model.predict(X), y).max() < 1e-7
    assert model.score(X, y) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["hyperbolic", "strongly curved", "sphere"])
@pytest.mark.parametrize("k", [1, 2])
def test_a_general_optimiser_finds_nothing_better(name, k):
    space = SPACES[name]
    geometry, d = space.geometry, space.d
    X, y, base, velocities = curve(space, k, noise=0.6, n=12, seed=2)
    model = GeodesicRegression(space, center=False).fit(X, y)

    def cost(numbers):
        flat = np.hstack([np.zeros((k + 1, 1)), numbers.reshape(k + 1, d)])
        point = geometry.exp(geometry.origin, flat[0])
        return loss(space, X, y, point, geometry.transport(geometry.origin, point, flat[1:]))

    def numbers_of(point, tangents):
        back = geometry.transport(point, geometry.origin, tangents)
        return np.vstack([geometry.log(geometry.origin, point)[1:], back[:, 1:]]).ravel()

    rng = np.random.default_rng(3)
    truth = numbers_of(base, velocities)
    starts = [truth, *(truth + 0.3 * geometry.radius * rng.normal(size=(4, truth.size)))]
    found = min(minimize(cost, start, method="BFGS").fun for start in starts)
    assert model.mean_squared_error_ <= found * (1 + 1e-7)


def test_far_from_the_origin_the_fit_keeps_its_digits_and_labels_many_radii_apart_are_fitted():
    space, rng = cs.Hyperbolic(2), np.random.default_rng(0)
    X, y, _, _ = curve(space, noise=0.2)
    far = np.eye(3)
    far[:2, :2] = [[np.cosh(6.0), np.sinh(6.0)], [np.sinh(6.0), np.cosh(6.0)]]
    before, after = GeodesicRegression(space).fit(X, y), GeodesicRegression(space).fit(X, space.project(y @ far.T))
    assert after.mean_squared_error_ == pytest.approx(before.mean_squared_error_, rel=1e-7)
    X, clean, _, _ = curve(space, n=100)
    y = space.geometry.exp(clean, 5.0 * space.geometry.random_tangent(clean, rng))
    model = GeodesicRegression(space).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert 0.0 <= model.score(X, y) < 0.2


def test_the_centre_is_part_of_the_model_with_several_covariates_and_not_with_one():
    space = cs.Sphere(2)
    X, y, _, _ = curve(space, noise=0.2)
    X = X + 0.7
    centred, plain = GeodesicRegression(space).fit(X, y), GeodesicRegression(space, center=False).fit(X, y)
    np.testing.assert_allclose(plain.predict(X), centred.predict(X), atol=1e-12)
    assert plain.center_.tolist() == [0.0]
    np.testing.assert_allclose(plain.intercept_, centred.predict([0.0])[0], atol=1e-12)
    np.testing.assert_allclose(space.geometry.exp(plain.intercept_, X @ plain.coef_), plain.predict(X), atol=1e-9)
    space = cs.Hyperbolic(3)
    X, y, _, _ = curve(space, k=2, reach=1.5)
    X = X + 1.0  # so that the curve starts at (1, 1), where the covariates have about their mean
    centred, plain = GeodesicRegression(space).fit(X, y), GeodesicRegression(space, center=False).fit(X, y)
    assert centred.mean_squared_error_ < 0.1 * plain.mean_squared_error_


@everywhere
def test_a_weight_of_two_is_the_item_twice_and_of_zero_is_none(space):
    X, y, _, _ = curve(space, noise=0.3, n=20)
    weights = np.array([2.0, 0.0, *[1.0] * 18])
    rows = np.array([0, 0, *range(2, 20)])
    weighted = GeodesicRegression(space).fit(X, y, sample_weight=weights)
    repeated = GeodesicRegression(space).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
    assert weighted.score(X, y, sample_weight=weights) == pytest.approx(repeated.score(X[rows], y[rows]))


def test_items_without_a_label_are_left_out():
    space = cs.Sphere(2)
    X, y, _, _ = curve(space, noise=0.2, n=20)
    holes = y.copy()
    holes[[3, 7]] = np.nan
    kept = np.setdiff1d(np.arange(20), [3, 7])
    expected = GeodesicRegression(space).fit(X[kept], y[kept])
    as_list = [None if index in (3, 7) else list(row) for index, row in enumerate(y)]
    for labels in (holes, as_list):
        model = GeodesicRegression(space).fit(X, labels)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.score(X, labels) == expected.score(X[kept], y[kept])


def test_a_clone_has_the_same_settings_and_nothing_learned_and_settings_change_by_name():
    X, y, _, _ = curve(cs.Sphere(2))
    model = GeodesicRegression(cs.Sphere(2), center=False, max_iterations=7, tolerance=1e-6).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert list(copy.get_params()) == ["space", "center", "max_iterations", "tolerance"]
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(copy)
    with pytest.raises(NotFittedError, match=r"Call fit\(X, y\) first"):
        copy.predict([1.0])
    check_is_fitted(model)
    assert is_regressor(model)
    changed = GeodesicRegression(cs.Sphere(2))
    assert changed.set_params(center=False) is changed
    assert repr(changed) == "GeodesicRegression(Sphere(d=2, noise='wrapped'), center=False)"
    with pytest.raises(UnsupportedError, match=r"no setting 'epochs'.*space, center"):
        changed.set_params(epochs=3)


def test_pipelines_and_cross_validation_take_it():
    space = cs.Hyperbolic(3)
    X, y, _, _ = curve(space, k=2, noise=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_pipeline(StandardScaler(), GeodesicRegression(space)).fit(X, y)
        np.testing.assert_allclose(pipeline.predict(X), GeodesicRegression(space).fit(X, y).predict(X), atol=1e-7)
        pipeline.fit(X, y, geodesicregression__sample_weight=np.linspace(1, 2, len(X)))
        scores = cross_val_score(pipeline, X, y, cv=KFold(4, shuffle=True, random_state=0))
        pipeline._repr_html_()
    assert scores.min() > 0.5


@pytest.mark.parametrize(
    ("space", "setting", "message"),
    [
        *(
            (space, {}, r"Hyperbolic\(d\) and Sphere\(d\), not")
            for space in (cs.SPD(2), cs.SO3(), cs.Scores(), "sphere")
        ),
        (cs.Sphere(2), {"max_iterations": 0}, "max_iterations=0"),
        (cs.Sphere(2), {"tolerance": 0.0}, "tolerance=0.0"),
        (cs.Sphere(2), {"tolerance": "a"}, "'a'"),
    ],
)
def test_other_spaces_and_unusable_settings_are_refused(space, setting, message):
    with pytest.raises(UnsupportedError, match=message):
        GeodesicRegression(space, **setting).fit([0.0, 1.0], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


EAST, NORTH = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([0.0, 1.0], [EAST], None, "X has 2 items and y 1 labels"),
        ([0.0, 1.0], [EAST, None], None, "1 items with a label and a weight are too few for 1 covariates"),
        ([0.0, 1.0], [EAST, NORTH], [1.0, 0.0], "too few"),
        ([0.0, 1.0], [None, None], None, "All labels in y are missing"),
        ([3.0, 3.0], [EAST, NORTH], None, "Column 0 of X is 3 for every item"),
        ([[0, 0], [1, 2], [2, 4]], [EAST, NORTH, EAST], None, "2 columns of X depend on each other"),
        ([0.0, np.nan], [EAST, NORTH], None, "X is nan in row 1, column 0"),
        (np.zeros((2, 1, 1)), [EAST, NORTH], None, r"X has shape \(2, 1, 1\)"),
        (["a", "b"], [EAST, NORTH], None, "not numbers"),
        ([0.0, 1.0], [EAST, NORTH], [1.0, -1.0], "sample_weight of row 1 is -1"),
        ([0.0, 1.0], [EAST, NORTH], [1.0], r"sample_weight has shape \(1,\)"),
        ([0.0, 1.0], EAST[0], None, "y no list"),
    ],
)
def test_unusable_data_is_refused_with_the_culprit(X, y, weight, message):
    with pytest.raises(InvalidInputError, match=message):
        GeodesicRegression(cs.Sphere(2)).fit(X, y, sample_weight=weight)


def test_a_label_off_the_manifold_is_refused_with_its_row_and_predictions_that_would_overflow_too():
    with pytest.raises(InvalidLabelError, match=r"row 2: .*length 2.*project") as caught:
        GeodesicRegression(cs.Sphere(2)).fit([0.0, 1.0, 2.0], [EAST, None, [0.0, 2.0, 0.0]])
    assert caught.value.index == 2
    X, y, _, _ = curve(cs.Hyperbolic(2))
    with pytest.raises(InvalidInputError, match=r"Row 1 of X is so far"):
        GeodesicRegression(cs.Hyperbolic(2)).fit(X, y).predict([0.0, 1e6])
    with pytest.raises(InvalidInputError, match="Use center=True"):
        GeodesicRegression(cs.Hyperbolic(2), center=False).fit(X + 1e6, y)


def test_other_columns_are_refused_and_a_failed_fit_leaves_the_model_as_it_was():
    X, y, _, _ = curve(cs.Sphere(2))
    model = GeodesicRegression(cs.Sphere(2)).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError, match="2 covariates, and this model was fitted on 1"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(InvalidInputError):
        model.fit([1.0, 1.0], [EAST, NORTH])
    np.testing.assert_array_equal(model.predict(X), before)


def test_running_out_of_steps_is_a_warning():
    X, y, _, _ = curve(cs.Hyperbolic(3), noise=0.8)
    with pytest.warns(ConsilienceWarning, match="after 1 of 1 steps"):
        GeodesicRegression(cs.Hyperbolic(3), max_iterations=1).fit(X, y)
