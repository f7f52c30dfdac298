"""Votes on a Dask cluster of two processes give the numbers that they give in memory, also if a worker dies."""

import os
import pickle
import signal
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.partitions.clusters import distributed, needs_dask
from tests.partitions.tables import SPACES, assert_same_fit, in_memory, poisoned, votes_of, write_folder

import consilience as cs
from consilience.estimation import passes, pipeline
from consilience.exceptions import InvalidLabelError, MissingPackageError, UnsupportedError
from consilience.partitions import DaskPartitions, predict_to

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def frames(name, pieces=5):
    table = cs.tables.wide_table(votes_of(name), SPACES[name])
    bounds = np.linspace(0, len(table), pieces + 1).astype(int)
    return [table.slice(start, end - start) for start, end in pairwise(bounds)]


@needs_dask
@pytest.mark.parametrize("name", list(SPACES))
def test_two_processes_give_the_numbers_of_one(name, client, tmp_path):
    parts = DaskPartitions(write_folder(tmp_path, votes_of(name), name, [90], 40), SPACES[name], client=client)
    model = cs.LabelModel(SPACES[name]).fit(parts)
    assert_same_fit(in_memory(name), model)


@pytest.fixture
def few_sampled(monkeypatch):
    """Let EM take its last rounds over all items, as it does where there are more than it samples."""
    for module in (passes, pipeline):
        monkeypatch.setattr(module, "SAMPLE_ITEMS", 60)


class Counting(DaskPartitions):
    """Partitions that count their rounds, and may do something before one of them."""

    def watch(self, rounds, at=None, act=None):
        self.__class__ = Counting
        self.rounds, self.at, self.act = rounds, at, act
        return self

    def reduce(self, function):
        if len(self.rounds) == self.at:
            self.act()
        self.rounds.append(len(pickle.dumps(result := super().reduce(function))))
        return result

    def transform(self, function):
        return Counting.watch(super().transform(function), self.rounds, self.at, self.act)


@needs_dask
def test_every_round_over_all_items_runs_on_the_cluster_and_brings_kilobytes(client, few_sampled):
    rounds = []
    parts = DaskPartitions(frames("classes"), SPACES["classes"], client=client)
    model = cs.LabelModel(SPACES["classes"], method="em").fit(Counting.watch(parts, rounds))
    assert len(rounds) > 3
    assert max(rounds[1:]) < 20_000
    assert np.allclose(in_memory("classes", method="em").weight_, model.weight_, rtol=1e-10)


@needs_dask
def test_a_method_of_sums_takes_one_pass_and_votes_are_read_once_in_any_case(client, few_sampled, tmp_path):
    import dask

    def read(frame, index):
        with (tmp_path / f"read {index}").open("a") as file:
            file.write("once\n")
        return frame

    loading = [dask.delayed(read)(frame, index) for index, frame in enumerate(frames("classes"))]
    rounds = []
    parts = Counting.watch(DaskPartitions(loading, SPACES["classes"], client=client), rounds)
    cs.LabelModel(SPACES["classes"], method="triplets").fit(parts)
    assert len(rounds) == 1
    cs.LabelModel(SPACES["classes"], method="em").fit(parts)
    assert len(rounds) > 4
    assert [len(file.read_text().splitlines()) for file in sorted(tmp_path.iterdir())] == [1] * 5


@needs_dask
def test_workers_write_the_labels_and_a_stopped_run_is_continued(client, tmp_path):
    votes = write_folder(tmp_path / "votes", votes_of("scores"), "scores", [], 60)
    parts = DaskPartitions(votes, SPACES["scores"], client=client)
    model = cs.LabelModel(SPACES["scores"]).fit(parts)
    folder = tmp_path / "labels"
    predict_to(model, parts, folder)
    manifest = folder / "_manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:3]))
    written = predict_to(model, parts, folder, resume=True)
    assert (written.n_resumed, written.n_files, written.n_items) == (2, 4, 240)
    expected = cs.tables.label_table(model, cs.read_votes(votes, SPACES["scores"]))
    assert np.allclose(
        pq.read_table(folder).column("agreement").to_numpy(), expected.column("agreement").to_numpy(), rtol=1e-10
    )


@needs_dask
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, few_sampled):
    parts = DaskPartitions(frames("classes", pieces=8), SPACES["classes"], client=client)
    expected = in_memory("classes", method="em")
    workers = client.run(os.getpid)
    rounds = []

    def kill():
        os.kill(next(iter(workers.values())), signal.SIGKILL)

    model = cs.LabelModel(SPACES["classes"], method="em").fit(Counting.watch(parts, rounds, 2, kill))
    assert len(rounds) > 3
    assert_same_fit(expected, model)
    assert set(client.run(os.getpid).values()) != set(workers.values())


@needs_dask
def test_a_wrong_cell_is_named_by_its_place_and_source(client, tmp_path):
    path = poisoned(tmp_path, ("source b", 137, "brick"))
    with pytest.raises(InvalidLabelError, match=r"votes\.parquet', row group 2, row 37 .*'source b'.*brick"):
        cs.LabelModel(SPACES["classes"]).fit(DaskPartitions(path, SPACES["classes"], client=client))
    pieces = [frame.to_pandas() for frame in frames("classes")]
    pieces[2].loc[5, "source b"] = "brick"
    with pytest.raises(InvalidLabelError, match=r"partition 2, row 5 .*'source b'.*brick"):
        cs.LabelModel(SPACES["classes"]).fit(DaskPartitions(pieces, SPACES["classes"], client=client))
    parts = DaskPartitions(pieces, SPACES["classes"], client=client, on_error="abstain")
    assert parts.n_skipped == 1


@needs_dask
def test_rows_without_ids_are_numbered_addresses_work_and_other_things_are_refused(client):
    pieces = [frame.drop_columns(["item"]) for frame in frames("codes", pieces=3)]
    parts = DaskPartitions(pieces, client=client.scheduler.address)
    assert [part.votes.items[0] for part in parts.map(lambda part: part)] == [0, 80, 160]
    parts.client.close()
    with pytest.raises(UnsupportedError, match="Pass a path, a Dask dataframe"):
        DaskPartitions(3, client=client)
    with pytest.raises(UnsupportedError, match="address of a scheduler"):
        DaskPartitions(frames("codes"), client=3)


@pytest.mark.skipif(distributed is not None, reason="Dask is installed, so nothing is missing")
def test_without_dask_the_install_line_is_given():
    with pytest.raises(MissingPackageError, match=r"consilience\[dask\]"):
        DaskPartitions([])
