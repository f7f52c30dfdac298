"""Bad votes, gold, settings and label types: every kind has its own error, which names the place and the next step."""

import warnings

import networkx as nx
import numpy as np
import pytest
from refusals import NAMES, gap, model, named, names, refused, table, with_cell

import consilience as cs
from consilience.exceptions import (
    ConsilienceError,
    ConsilienceWarning,
    DistanceError,
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    ModelFormatError,
    NotFittedError,
    PriorError,
    SourceMismatchError,
    TransposedVotesError,
    UnknownSourceError,
    UnsupportedError,
)


def test_float_codes_and_lists_give_the_same_labels_as_integers_and_nan_abstains():
    codes = model().fit(table()).predict(table())
    for same in (table(float), table().tolist()):
        assert np.array_equal(model().fit(same).predict(same), codes)
    hole = with_cell(np.nan, float)
    fitted = model().fit(hole)
    assert fitted.source_model_.votes.tolist() == [200, 200, 200, 199, 200]
    masked = cs.Votes.from_matrix(with_cell(-1))
    assert np.array_equal(fitted.predict_proba(hole), model().fit(masked).predict_proba(masked))


@pytest.mark.parametrize(
    ("value", "dtype", "step"),
    [
        (7, int, "name the value that means 'abstains'"),
        (7, float, "name the value that means 'abstains'"),
        (-5, int, "name the value that means 'abstains'"),
        (0.5, float, "Round it"),
        (np.inf, float, "Round it"),
        (1e30, float, "label 1e+30"),
        (10**30, object, "label 1000000000000000000000000000000"),
    ],
)
def test_label_out_of_range_is_refused_with_its_place(value, dtype, step):
    with refused(InvalidLabelError, "Row 17", "'source_3'", f"label {value}", "0 .. 1", step):
        model().fit(with_cell(value, dtype))


def test_wrong_label_is_placed_at_predict_behind_abstentions_and_by_item_id():
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(table()).predict(with_cell(7))
    votes = table()
    votes[:17] = -1
    votes[17, :3] = -1
    votes[17, 3] = 7
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 7"):
        model().fit(votes)
    named_items = cs.Votes.from_matrix(with_cell(7), sources=NAMES, items=np.arange(200) + 1000)
    with refused(InvalidLabelError, "Row 17 (item 1017), source 'delta': label 7"):
        model().fit(named_items)


def test_names_come_back_as_names_and_wrong_ones_are_refused_with_their_place():
    text, space = names(table()), cs.Classes(["ham", "spam"])
    assert set(cs.LabelModel(space).fit(text).predict(text)) == {"ham", "spam"}
    with refused(InvalidLabelError, "Row 0", "'source_0'", "label 'spam'", "Classes([...])"):
        model().fit(text)
    with refused(InvalidLabelError, "Row 17", "'source_3'", "label 'spam'"):
        model().fit(with_cell("spam", object))
    text[4, 2] = "spma"
    with refused(InvalidLabelError, "Row 4", "'source_2'", "'spma'", "'ham', 'spam'", "Correct the spelling"):
        cs.LabelModel(space).fit(text)
    graph = cs.FiniteMetric([("cat", "animal"), ("animal", "dog")])
    with refused(InvalidLabelError, "Row 0", "'source_1'", "'bird'", "known node"):
        cs.LabelModel(graph).fit([["cat", "bird", "dog"]] * 20)


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ([0.7, 0.7], ["[0.7, 0.7]", "2 probabilities that add up to 1", "Normalize"]),
        ([1.5, -0.5], ["[1.5, -0.5]", "2 probabilities"]),
        ([0.2, 0.3, 0.5], ["3 numbers", "2 classes", "Give 2 probabilities"]),
        (["ham", "spam"], ["['ham', 'spam']", "as a set"]),
        (set(), ["empty set", "None to abstain"]),
        ({0, 5}, ["label 5", "0 .. 1"]),
        ({1: 0.5}, ["dict"]),
    ],
)
def test_soft_or_set_vote_that_is_none_is_refused_with_its_place(cell, parts):
    with refused(InvalidLabelError, "Row 17", "'source_3'", *parts):
        model().fit(with_cell(cell, object))


@pytest.mark.parametrize("abstain", [0, 1])
def test_abstain_value_that_is_a_label_is_refused(abstain):
    with refused(InvalidVotesError, f"abstain={abstain}", "also a label", "Recode"):
        model().fit(cs.Votes.from_matrix(table(), abstain=abstain))


def test_minus_one_is_a_label_where_the_space_has_it():
    signs = 2 * table() - 1
    space = cs.Classes([-1, 1])
    with refused(InvalidVotesError, "abstain=-1", "abstain=None"):
        cs.LabelModel(space).fit(cs.Votes.from_matrix(signs, abstain=-1))
    assert set(cs.LabelModel(space).fit(signs).predict(signs)) == {-1, 1}


def test_empty_votes_are_refused_at_fit_and_give_no_labels_at_predict():
    with refused(InvalidVotesError, "no items to learn from", "at least one row"):
        model().fit(named()[:0])
    assert model().fit(named()).predict(named()[:0]).shape == (0,)
    with refused(InvalidVotesError, "one-dimensional", "(200,)", "reshape(-1, 1)", "from_long"):
        model().fit(table()[:, 0])


def test_transposed_matrix_is_refused_at_fit_unless_its_sources_have_names():
    with refused(TransposedVotesError, "5 items by 200 unnamed sources", "matrix.T", "sources=[...]"):
        model().fit(table().T)
    votes = cs.Votes.from_matrix(table().T[:, :40], sources=[f"worker {index}" for index in range(40)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # five items say little about anybody
        assert model().fit(votes).weight_.shape == (40,)


def test_other_sources_than_those_of_the_fit_are_refused():
    fitted = model().fit(table())
    with refused(SourceMismatchError, "200 sources", "fitted on 5", "looks transposed"):
        fitted.predict(table().T)
    with refused(SourceMismatchError, "3 sources", "fitted on 5", "one column per fitted source"):
        fitted.predict(table()[:, :3])
    other = cs.Votes.from_matrix(table(), sources=[*NAMES[:4], "zeta"])
    for call in ("predict", "partial_fit"):
        with refused(SourceMismatchError, "'epsilon' is missing", "'zeta' is unknown"):
            getattr(model().fit(named()), call)(other)
    with refused(SourceMismatchError, "select"):
        model().fit(named()).predict(other)


def test_unfitted_model_says_to_fit_and_has_no_learned_attribute():
    for use in ("predict", "predict_proba", "confidence"):
        with refused(NotFittedError, "not been fitted", "fit(votes)"):
            getattr(model(), use)(table())
    for name in ("weight_", "expected_cost_", "standard_error_", "sources_", "diagnostics_"):
        assert not hasattr(model(), name)


@pytest.mark.parametrize("space", [cs.Classes(2), cs.FiniteMetric(1 - np.eye(2)), cs.Metric(gap)], ids=repr)
@pytest.mark.parametrize("gold", [None, [None] * 200])
def test_labelled_without_gold_is_refused(space, gold):
    with refused(InvalidVotesError, "method='labelled'", "gold="):
        cs.LabelModel(space, method="labelled").fit(table(), gold)


@pytest.mark.parametrize(
    ("gold", "error", "parts"),
    [
        ([0] * 10, InvalidVotesError, ["10 labels", "200 items", "None where it is unknown"]),
        (([0] * 200, [True] * 10), InvalidVotesError, ["10 items", "200", "True or False per item"]),
        (3, InvalidVotesError, ["gold=3", "one per item"]),
        ([*[None] * 7, 5, *[None] * 192], InvalidLabelError, ["Row 7", "'gold'", "label 5"]),
        (["spam", *[None] * 199], InvalidLabelError, ["Row 0", "'gold'", "'spam'"]),
    ],
)
def test_wrong_gold_is_refused(gold, error, parts):
    with refused(error, *parts):
        model().fit(table(), gold)


def test_score_without_gold_and_gold_beside_partitions_are_refused():
    with refused(InvalidVotesError, "known labels", "one label per item"):
        model().fit(table()).score(table(), [None] * 200)
    with refused(InvalidVotesError, "Partitions", "gold="):
        model().fit(cs.partitions.InMemoryPartitions.of(named()), gold=[0] * 200)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_failing_fit_leaves_the_model_as_it_was(call):
    fitted, fresh = model().fit(table()), model()
    before = fitted.source_model_
    for bad in (with_cell(7), table().T, table()[:0]):
        with pytest.raises(ConsilienceError):
            getattr(fitted, call)(bad)
        with pytest.raises(ConsilienceError):
            getattr(fresh, call)(bad)
    fitted.dependencies = [("source_0", "nobody")]
    with pytest.raises(UnknownSourceError):
        getattr(fitted, call)(table())
    fitted.dependencies = None
    assert not hasattr(fresh, "source_model_")
    assert fitted.source_model_ is before
    assert fitted.partial_fit(table()).source_model_.n_items == 400


@pytest.mark.parametrize("dtype", [int, float, object])
def test_masked_cell_abstains(dtype):
    hidden = np.zeros(table().shape, dtype=bool)
    hidden[17, 3] = True
    masked = np.ma.array(with_cell(99, dtype), mask=hidden)
    votes = cs.Votes.from_matrix(masked, abstain=None)
    assert np.array_equal(votes.observed, ~hidden)
    assert model().fit(masked).source_model_.votes.tolist() == [200, 200, 200, 199, 200]


def test_masked_gold_is_unknown():
    known = np.ma.array(np.full(200, 7), mask=True)
    known[:5] = table()[:5, 0]
    assert "5 known labels" in str(model(method="labelled").fit(table(), gold=known).diagnostics_)


def test_mask_over_part_of_a_label_is_refused_with_its_place():
    masked = np.ma.array(np.zeros((4, 3, 2)))
    masked[2, 1, 0] = np.ma.masked
    with refused(InvalidVotesError, "Row 2", "'source_1'", "only part of the label"):
        cs.Votes.from_array(masked)
    whole = np.ma.array(np.zeros((4, 3, 2)))
    whole[2, 1] = np.ma.masked
    assert not cs.Votes.from_array(whole).observed[2, 1]


@pytest.mark.parametrize(
    ("dependencies", "error", "parts"),
    [
        ([("alpha", "gama")], UnknownSourceError, ["'gama'", "Did you mean 'gamma'?"]),
        ([("alpha", "zzz")], UnknownSourceError, ["'zzz'", "'alpha', 'beta', 'gamma'"]),
        ([(0, 9)], UnknownSourceError, ["9", "not a source"]),
        ([("beta", "beta")], UnsupportedError, ["'beta', 'beta'", "same source twice"]),
        (["ab"], UnsupportedError, ["'ab'", "not a pair", "('a', 'b')"]),
        ([("alpha", "beta", "gamma")], UnsupportedError, ["not a pair"]),
        ("all", UnsupportedError, ["dependencies='all'", "[('a', 'b')]"]),
        (3, UnsupportedError, ["dependencies=3", "[('a', 'b')]"]),
    ],
)
def test_wrong_dependencies_are_refused(dependencies, error, parts):
    with refused(error, *parts):
        model(dependencies=dependencies).fit(named())


def test_dependency_given_both_ways_counts_once():
    fitted = model(dependencies=[("alpha", "beta"), ("beta", "alpha"), (0, 1)]).fit(named())
    assert fitted.source_model_.dependencies == (("alpha", "beta"),)


@pytest.mark.parametrize(
    ("prior", "parts"),
    [
        ([0.5, 0.6], ["adds up to 1.1", "Divide it by its sum"]),
        ([-0.1, 1.1], ["prior[0] is -0.1", "between 0 and 1"]),
        ([np.nan, 1.0], ["prior[0] is nan"]),
        ([0.2, 0.3, 0.5], ["(3,)", "2 labels"]),
        (["a", "b"], ["['a', 'b']", "2 numbers"]),
        ({"ham": 1.0}, ["{'ham': 1.0}", "2 numbers"]),
        ("learned", ["'learned'", "auto, uniform, gibbs"]),
    ],
)
def test_prior_that_is_none_is_refused(prior, parts):
    with refused(PriorError, *parts):
        model(prior=prior).fit(table())


@pytest.mark.parametrize("prior", [[0.5, 0.5], "uniform"])
def test_prior_over_an_infinite_space_is_refused(prior):
    with refused(PriorError, "Metric is not finite", "Leave it at 'auto'"):
        cs.LabelModel(cs.Metric(gap), prior=prior).fit(table(float))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"decode": "mode"}, ["decode='mode'", "auto, map, bayes"]),
        ({"method": "magic"}, ["method='magic'", "triplets", "em"]),
        ({"method": 3}, ["method=3", "estimate(moments, space, dependencies)"]),
        ({"random_state": "x"}, ["random_state='x'", "whole number"]),
        ({"random_state": -1}, ["random_state=-1", "whole number"]),
        ({"space": 2}, ["space=2 is not a label type", "Classes("]),
        ({"space": None}, ["has no label type", "Classes("]),
        ({"space": cs.Metric(gap), "method": "em"}, ["method='em'", "isotropic", "triplets", "labelled"]),
        ({"space": cs.Metric(gap), "method": "quadratic"}, ["method='quadratic'", "isotropic", "triplets", "labelled"]),
    ],
)
def test_unknown_setting_is_refused_with_the_known_ones(settings, parts):
    with refused(UnsupportedError, *parts):
        cs.LabelModel(**({"space": cs.Classes(2)} | settings)).fit(table(float))


def test_probabilities_and_guesses_over_an_infinite_space_are_refused():
    with refused(UnsupportedError, "fill='mean'", "'prior'", "None"):
        model().fit(table()).predict(table(), fill="mean")
    fitted = cs.LabelModel(cs.Metric(gap)).fit(table(float))
    with refused(UnsupportedError, "Metric", "confidence(votes)", "FiniteMetric"):
        fitted.predict_proba(table(float))
    with refused(UnsupportedError, "Metric", "prior", "None"):
        fitted.predict(table(float), fill="prior")


def test_every_error_is_also_one_that_generic_handlers_know():
    errors = [error for error in vars(cs.exceptions).values() if isinstance(error, type)]
    kinds = [error for error in errors if issubclass(error, ConsilienceError) and error is not ConsilienceError]
    assert kinds
    assert all(issubclass(kind, (ValueError, TypeError, ImportError, OSError)) for kind in kinds)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rng": 0}, ("rng=0", "np.random.default_rng(seed)")),
        ({"weights": 1.0}, ("weights=1.0", "one finite number per source")),
        ({"weights": []}, ("weights=[]", "one finite number per source")),
        ({"weights": [1.0, float("nan")]}, ("nan", "one finite number per source")),
        ({"weights": ["loud", "low"]}, ("loud", "one finite number per source")),
        ({"coverage": 1.5}, ("coverage=1.5", "one probability")),
        ({"coverage": [0.5] * 3}, ("coverage=[0.5, 0.5, 0.5]", "each of the 2 sources")),
    ],
)
def test_simulation_is_refused_with_what_was_expected(settings, words):
    given = {"weights": [1.0, 2.0], "rng": np.random.default_rng(0)} | settings
    with refused(UnsupportedError, *words):
        cs.simulate(cs.Classes(2), [0, 1, 1], **given)


def test_labels_of_different_lengths_are_simulated_from_lists():
    votes = cs.simulate(cs.DependencyTrees(), [[2, 0], [2, 0, 2]], [50.0, 50.0], np.random.default_rng(0))
    assert [list(label) for label in votes.labels[:, 0]] == [[2, 0], [2, 0, 2]]


def test_moments_of_another_label_type_and_methods_that_need_votes_are_refused():
    moments = cs.partitions.Moments.of(table(), cs.Classes(2))
    with refused(UnsupportedError, "another label type than Scores", "Moments.of(votes, space)"):
        cs.LabelModel(cs.Scores()).fit_moments(moments)
    with refused(UnsupportedError, "int is not Moments"):
        model().fit_moments(3)
    with pytest.raises(TypeError, match="unsupported operand"):
        moments + 3
    with refused(UnsupportedError, "method='em'", "fit(votes)", "moments"):
        model(method="em").fit_moments(moments)


def test_distance_without_a_name_or_a_function_is_refused():
    with refused(DistanceError, "register_distance(3, 4)", "a name and a function"):
        cs.label_types.register_distance(3, 4)


@pytest.mark.parametrize("path", [None, 5])
def test_file_that_is_no_name_is_refused(path):
    with refused(FileFormatError, type(path).__name__, "neither a frame nor a file name"):
        cs.read_votes(path)


nan = float("nan")


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (1, ["at least 2 classes", "got 1"]),
        (-3, ["at least 2 classes", "got -3"]),
        (["cat"], ["at least 2 classes", "got 1"]),
        (["cat", "dog", "cat"], ["Class 'cat' is named twice", "once"]),
        (["cat", None], ["None or NaN", "abstains"]),
        (["cat", nan], ["None or NaN", "abstains"]),
        ([["cat"], ["dog"]], ["['cat']", "text or numbers"]),
        ([("cat", 1), ("dog", 2)], ["('cat', 1)", "text or numbers"]),
        ("cat", ["'cat'", "list of names"]),
        (2.0, ["2.0", "whole number"]),
        (True, ["True", "whole number"]),
        (None, ["None", "whole number"]),
    ],
)
def test_classes_that_are_none_are_refused(names, parts):
    with refused(InvalidLabelError, *parts):
        cs.Classes(names)


def test_more_classes_than_occur_are_reported():
    fitted = cs.LabelModel(cs.Classes(4)).fit(table())
    assert (fitted.predict_proba(table())[:, 2:] < 0.2).all()
    [finding] = [item for item in fitted.diagnostics_ if item.code == "unused-labels"]
    assert "2 of the 4 labels (code 2, 3)" in finding.message
    assert "leave them out" in finding.message


@pytest.mark.parametrize(
    ("matrix", "parts"),
    [
        (np.zeros((2, 3)), ["square", "(2, 3)"]),
        ([[0, 1], [2, 0]], ["from 0 to 1 is 1.0", "2.0 back", "(matrix + matrix.T) / 2"]),
        ([[0, -1], [-1, 0]], ["from 0 to 1 is -1.0", "never negative"]),
        ([[0, nan], [nan, 0]], ["from 0 to 1 is nan", "finite"]),
        ([[0, 1], [1, 3]], ["from 1 to itself is 3.0", "0"]),
        (np.zeros((3, 3)), ["All distances are 0"]),
        ([[0]], ["at least 2 labels", "got 1"]),
        ([["a", "b"], ["c", "d"]], ["neither a matrix of numbers nor a graph", "(u, v)"]),
        ([[0, 1], [1]], ["neither a matrix of numbers nor a graph"]),
    ],
)
def test_matrix_that_holds_no_distances_is_refused(matrix, parts):
    with refused(DistanceError, *parts):
        cs.FiniteMetric(matrix)


@pytest.mark.parametrize(
    "graph", [[("a", "b"), ("c", "d")], nx.Graph([("a", "b"), ("c", "d")])], ids=["edges", "graph"]
)
def test_graph_in_pieces_is_refused(graph):
    with refused(DistanceError, "no path between 'a' and 'c'", "Connect the graph"):
        cs.FiniteMetric(graph)


@pytest.mark.parametrize("length", [-1, 0, nan, "long"])
def test_edge_without_a_length_is_refused(length):
    with refused(DistanceError, "Edge 'a' - 'b'", f"{length!r}", "positive"):
        cs.FiniteMetric([("a", "b", length)])


def test_of_parallel_edges_the_shortest_counts():
    # 0 - 1 twice (3 and 1), 1 - 2 once (2), given in both directions.
    space = cs.FiniteMetric([(0, 1, 3.0), (0, 1, 1.0), (1, 0, 5.0), (1, 2, 2.0)])
    assert space.matrix.tolist() == [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]


def test_names_of_the_wrong_number_or_twice_are_refused():
    with refused(DistanceError, "2 names", "3 nodes", "one per node"):
        cs.FiniteMetric(1 - np.eye(3), names=["a", "b"])
    with refused(InvalidLabelError, "Node 'a' is named twice"):
        cs.FiniteMetric(1 - np.eye(2), names=["a", "a"])


def scores() -> np.ndarray:
    """Return votes of 5 sources that are 0.5 or 1.5."""
    return table(float) + 0.5


def raises(left, right):
    raise KeyError("boom")


def raises_sometimes(left, right):
    if left != right:
        raise ZeroDivisionError("nothing to divide by")
    return 0.0


@pytest.mark.parametrize(
    ("distance", "vectorized", "parts"),
    [
        (lambda left, right: nan, None, ["returned nan", "(pair 0)", "finite and never negative"]),
        (lambda left, right: 0.0 if left == right else nan, None, ["returned nan", "0.5", "1.5", "(pair "]),
        (lambda left, right: left - right, None, ["returned -1.0 between 0.5 and 1.5", "never negative"]),
        (lambda left, right: float("inf"), None, ["returned inf", "finite"]),
        (lambda left, right: np.zeros((2, 2)), None, ["shape (2, 2)", "one number per pair"]),
        (lambda left, right: np.zeros(3), True, ["shape (3,)", "one number per pair"]),
        (lambda left, right: 0.0, True, ["shape ()", "one number per pair"]),
        (lambda left, right: np.abs(left - right) * nan, True, ["returned nan", "(pair 0)"]),
        (lambda left, right: "far", None, ["returned str", "number"]),
        (lambda left, right: "far", True, ["returned str", "number"]),
        (lambda left, right: None, None, ["returned None between", "expected one number"]),
        (raises, None, ["raised KeyError: 'boom'", "(pair 0)", "Correct it"]),
        (raises, True, ["raised KeyError: 'boom'", "two batches", "Correct it"]),
        (raises_sometimes, False, ["raised ZeroDivisionError: nothing to divide by", "0.5", "1.5", "(pair "]),
        (lambda left: 0.0, None, ["raised TypeError", "2 were given"]),
    ],
)
def test_distance_that_is_none_is_refused(distance, vectorized, parts):
    with refused(DistanceError, *parts):
        cs.LabelModel(cs.Metric(distance, vectorized=vectorized)).fit(scores())


def test_error_of_a_distance_function_keeps_its_cause():
    with pytest.raises(DistanceError) as caught:
        cs.LabelModel(cs.Metric(raises)).fit(scores())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("distance", [np.zeros((2, 2)), 3, None], ids=["matrix", "number", "none"])
def test_distance_that_cannot_be_called_is_refused(distance):
    with refused(DistanceError, "function of two labels", type(distance).__name__):
        cs.Metric(distance)


@pytest.mark.parametrize(
    ("use", "error", "parts"),
    [
        (lambda: cs.Metric("never-heard-of"), ModelFormatError, ["'never-heard-of'", "register_distance"]),
        (lambda: cs.Metric(gap, candidates=[]), InvalidLabelError, ["candidates is empty", "at least one"]),
        (lambda: cs.Metric(gap, embed="pca"), UnsupportedError, ["embed='pca'", "'mds'"]),
        (
            lambda: cs.Metric(gap).random(3, np.random.default_rng(0)),
            UnsupportedError,
            ["distance alone", "candidates="],
        ),
    ],
)
def test_metric_without_a_distance_candidates_or_coordinates_is_refused(use, error, parts):
    with refused(error, *parts):
        use()


@pytest.mark.parametrize(
    "embed", [lambda batch: batch, lambda batch: np.full((len(batch), 2), nan)], ids=["shape", "nan"]
)
def test_embedding_without_coordinates_is_refused(embed):
    with refused(DistanceError, "embed returned shape", "finite numbers"):
        cs.LabelModel(cs.Metric(gap, embed=embed)).fit(scores())
