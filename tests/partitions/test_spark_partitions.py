"""Votes in a Spark frame give the numbers that they give in memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.partitions.clusters import needs_spark, pyspark
from tests.partitions.tables import SPACES, assert_same_fit, assert_same_labels, in_memory, votes_of, write_folder

import consilience as cs
from consilience.estimation import passes, pipeline
from consilience.exceptions import InvalidLabelError, MissingPackageError, UnsupportedError
from consilience.partitions import SparkPartitions, predict_frame, predict_to, spark_session
from consilience.tables import label_table, wide_table

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def frame_of(session, name, change=None):
    table = wide_table(votes_of(name), SPACES[name]).to_pandas()
    if change is not None:
        change(table)
    return session.createDataFrame(table).repartition(3)


@needs_spark
@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
def test_two_threads_of_spark_give_the_numbers_of_one_process(name, session):
    parts = SparkPartitions(frame_of(session, name), SPACES[name])
    model = cs.LabelModel(SPACES[name]).fit(parts)
    expected = in_memory(name)
    assert parts.n_items == 240
    assert_same_fit(expected, model)
    labels = predict_frame(model, parts)
    assert type(labels).__module__.startswith("pyspark")
    table = label_table(expected, cs.read_votes(wide_table(votes_of(name), SPACES[name]), SPACES[name]))
    columns = ["item", "label", "confidence", "agreement"]
    found = labels.toPandas().sort_values("item")[columns]
    assert_same_labels(pa.table({name: found[name].tolist() for name in columns}), table.select(columns))
    parts.close()


@needs_spark
def test_em_takes_its_rounds_on_the_executors_which_read_the_votes_once(session, monkeypatch, tmp_path):
    for module in (passes, pipeline):
        monkeypatch.setattr(module, "SAMPLE_ITEMS", 60)
    frame = frame_of(session, "classes")
    folder = str(tmp_path)

    def read(batches):
        for batch in batches:
            with open(f"{folder}/{batch.column(0)[0].as_py()}", "a") as file:
                file.write("once\n")
            yield batch

    parts = SparkPartitions(frame.mapInArrow(read, frame.schema), SPACES["classes"])
    model = cs.LabelModel(SPACES["classes"], method="em").fit(parts)
    assert np.allclose(in_memory("classes", method="em").weight_, model.weight_, rtol=1e-10)
    # however many rounds there are, the votes are read once and cached from then on
    assert {file.read_text() for file in tmp_path.iterdir()} == {"once\n"}


@needs_spark
def test_a_wrong_cell_is_named_with_its_file_if_there_is_one_or_skipped(session, tmp_path):
    def poison(table):
        table.loc[5, "source b"] = "brick"

    frame = frame_of(session, "classes", poison).cache()
    with pytest.raises(InvalidLabelError, match=r"partition \d+, row \d+ .item 'item 0005'.*'source b'.*brick"):
        cs.LabelModel(SPACES["classes"]).fit(SparkPartitions(frame, SPACES["classes"]))
    assert SparkPartitions(frame, SPACES["classes"], on_error="abstain").n_skipped == 1
    folder = write_folder(tmp_path / "some votes", votes_of("classes"), "classes", [100], 50)
    table = pq.read_table(folder / "001.parquet").to_pydict()
    table["source b"][7] = "brick"
    pq.write_table(pa.table(table), folder / "001.parquet")
    parts = SparkPartitions(session.read.parquet(str(folder)), SPACES["classes"])
    with pytest.raises(InvalidLabelError, match=r"some votes/001\.parquet', partition \d+, row \d+ .item 'item 0107'"):
        cs.LabelModel(SPACES["classes"]).fit(parts)


#: A cluster of its own, as only executors that are processes can be killed.
EXECUTOR_KILLED = """
import os, signal, sys
import numpy as np
import consilience as cs
from consilience.partitions import SparkPartitions, predict_frame, spark_session
from tests.partitions.tables import SPACES, assert_same_fit, in_memory
from tests.partitions.test_spark_partitions import frame_of

mark = sys.argv[1]

def parent(process):
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])

def lethal(batches):
    for batch in batches:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield batch
        else:
            os.kill(parent(os.getppid()), signal.SIGKILL)  # the executor behind the daemon of Python

session = spark_session(
    "local-cluster[2,1,700]", spark_executor_memory="700m", spark_ui_enabled="false", spark_sql_shuffle_partitions="2"
)
frame = frame_of(session, "classes")
parts = SparkPartitions(frame.mapInArrow(lethal, frame.schema), SPACES["classes"])
model = cs.LabelModel(SPACES["classes"], method="em").fit(parts)
assert os.path.exists(mark)
assert_same_fit(in_memory("classes", method="em"), model)
assert predict_frame(model, parts).count() == 240
session.stop()
print("whole")
"""


@needs_spark
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc to find the executor in")
def test_an_executor_killed_in_the_middle_of_a_fit_changes_nothing(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTOR_KILLED, str(tmp_path / "mark")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.stdout.endswith("whole\n"), ran.stderr[-3000:]


@needs_spark
def test_spark_writes_labels_to_parquet_and_refuses_what_it_cannot_do(session, tmp_path):
    parts = SparkPartitions(frame_of(session, "codes"), SPACES["codes"])
    model = cs.LabelModel(SPACES["codes"]).fit(parts)
    assert predict_to(model, parts, tmp_path / "labels").n_items == 240
    with pytest.raises(UnsupportedError, match="does not resume"):
        predict_to(model, parts, tmp_path / "labels", resume=True)
    with pytest.raises(UnsupportedError, match="item="):
        SparkPartitions(frame_of(session, "codes").drop("item"))
    with pytest.raises(UnsupportedError, match="not a Spark dataframe"):
        SparkPartitions([1])


@needs_spark
def test_without_java_the_message_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingPackageError, match="needs Java"):
        spark_session("local[1]")


@pytest.mark.skipif(pyspark is not None, reason="Spark is installed, so nothing is missing")
def test_without_spark_the_install_line_is_given():
    with pytest.raises(MissingPackageError, match=r"consilience\[spark\]"):
        SparkPartitions(None)
