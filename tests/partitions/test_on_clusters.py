"""What holds on every engine: frames of labels with their ids, summaries from sums, ids that differ."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.partitions.clusters import needs_dask, needs_spark
from tests.partitions.tables import SPACES, votes_of
from tests.partitions.test_summarize_partitions import same

import consilience as cs
from consilience.exceptions import InvalidVotesError, NotFittedError, UnsupportedError
from consilience.partitions import DaskPartitions, SparkPartitions, predict_frame

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def on_dask(client, table, space, **options):
    bounds = np.linspace(0, len(table), 4).astype(int)
    frames = [table.slice(start, end - start) for start, end in pairwise(bounds)]
    return DaskPartitions(frames, space, client=client, **options)


def on_spark(session, table, space, **options):
    return SparkPartitions(session.createDataFrame(table.to_pandas()).repartition(3), space, **options)


@pytest.fixture(
    params=[
        pytest.param((on_dask, "client"), marks=needs_dask.marks, id="dask"),
        pytest.param((on_spark, "session"), marks=needs_spark.marks, id="spark"),
    ]
)
def engine(request):
    make, fixture = request.param
    running = request.getfixturevalue(fixture)
    return lambda table, space, **options: make(running, table, space, **options)


def rows(frame):
    """Return the rows of a Dask or Spark frame by item."""
    found = frame.compute() if hasattr(frame, "compute") else frame.toPandas()
    return found.sort_values("item").reset_index(drop=True)


@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
def test_predictions_stay_on_the_engine_with_the_ids_of_the_items(name, engine):
    table = cs.tables.wide_table(votes_of(name), SPACES[name])
    parts = engine(table, SPACES[name])
    model = cs.LabelModel(SPACES[name]).fit(parts)
    assert parts.remote
    votes = cs.read_votes(table, SPACES[name])
    labels = predict_frame(model, parts, "predict")
    assert type(labels).__module__.startswith(("dask", "pyspark"))
    expected = cs.tables.label_table(model, votes).column("label").to_pylist()
    for found, wanted in ((labels, expected), (predict_frame(model, parts, "predict_baseline"), None)):
        found = rows(found)
        assert found.columns.tolist() == ["item", "label"]
        assert found["item"].tolist() == votes.items.tolist()
        if wanted is not None and isinstance(wanted[0], float):
            assert np.allclose(found["label"].to_numpy(dtype=float), np.array(wanted, float), equal_nan=True, rtol=1e-9)
        elif wanted is not None:
            assert found["label"].tolist() == wanted
    sure = rows(predict_frame(model, parts, "confidence"))["confidence"].to_numpy(dtype=float)
    assert np.allclose(sure, model.confidence(votes), rtol=1e-10)
    if name == "classes":
        chances = np.array([list(row) for row in rows(predict_frame(model, parts, "predict_proba"))["probabilities"]])
        assert np.allclose(chances, model.predict_proba(votes), rtol=1e-10)
        filled = rows(predict_frame(model, parts, "predict", fill="prior"))["label"].tolist()
        assert filled == model.predict(votes, fill="prior").tolist()


def test_what_would_be_collected_is_refused(engine):
    parts = engine(cs.tables.wide_table(votes_of("classes"), SPACES["classes"]), SPACES["classes"])
    model = cs.LabelModel(SPACES["classes"])
    with pytest.raises(NotFittedError):
        model.predict(parts)
    model.fit(parts)
    with pytest.raises(UnsupportedError, match="predict_frame"):
        model.predict(parts)
    with pytest.raises(UnsupportedError, match="stay where they are"):
        model.posterior(parts)
    with pytest.raises(UnsupportedError, match="stay where they are"):
        model.score(parts, [0])


@pytest.mark.parametrize("name", ["classes", "scores"])
def test_a_summary_needs_sums_only(name, engine):
    table = cs.tables.wide_table(votes_of(name), SPACES[name])
    expected = cs.summarize(cs.read_votes(table, SPACES[name]), SPACES[name], max_items=100)
    same(expected, cs.summarize(engine(table, SPACES[name]), SPACES[name], max_items=100))


def test_an_id_in_two_partitions_is_named(engine):
    table = cs.tables.wide_table(votes_of("classes"), SPACES["classes"]).to_pandas()
    table.loc[200, "item"] = "item 0003"
    arrow = cs.tables.wide_table(cs.Votes.from_frame(table, item=None, sources=list(table.columns[1:])))
    arrow = arrow.set_column(0, "item", [table["item"].tolist()])
    with pytest.raises(InvalidVotesError, match=r"Item id 'item 0003' occurs twice.*partition \d"):
        cs.LabelModel(SPACES["classes"]).fit(engine(arrow, SPACES["classes"]))
    assert engine(arrow, SPACES["classes"], check_ids=False).n_skipped == 0
