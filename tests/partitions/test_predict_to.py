"""Labels written piece by piece are those of the whole table, also after a run that was stopped."""

import json

import pyarrow.parquet as pq
import pytest
from tests.partitions.tables import SPACES, assert_same_labels, poisoned, votes_of, write_folder

import consilience as cs
from consilience.exceptions import FileFormatError, UnsupportedError
from consilience.partitions import ParquetPartitions, label_folder, predict_frame, predict_to

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def fitted(name, folder, size=50):
    parts = ParquetPartitions(write_folder(folder, votes_of(name), name, [130], size), SPACES[name])
    return cs.LabelModel(SPACES[name]).fit(parts), parts


@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
def test_a_folder_of_labels_reads_as_the_table_of_labels(name, tmp_path):
    model, parts = fitted(name, tmp_path / "votes")
    written = predict_to(model, parts, tmp_path / "labels")
    whole = cs.tables.label_table(model, cs.read_votes(tmp_path / "votes", SPACES[name]))
    assert_same_labels(pq.read_table(tmp_path / "labels"), whole)
    assert (written.n_items, written.n_files, written.n_skipped) == (240, 6, 0)
    lines = [json.loads(line) for line in (tmp_path / "labels" / "_manifest.jsonl").read_text().splitlines()]
    assert [line["rows"] for line in lines[1:-1]] == [50, 50, 30, 50, 50, 10]
    assert lines[-1] == {"complete": True, "rows": 240, "files": 6, "skipped": 0}


def stop_after(monkeypatch, files):
    """Let the process die in the middle of a file once so many are complete."""
    original = label_folder.Labeler.table
    seen = []

    def table(self, part):
        if self.schema is not None:  # the first items only show the types
            if len(seen) == files:
                raise KeyboardInterrupt
            seen.append(part)
        return original(self, part)

    monkeypatch.setattr(label_folder.Labeler, "table", table)
    return seen


def test_a_stopped_run_leaves_whole_files_only_and_is_continued(tmp_path, monkeypatch):
    model, parts = fitted("scores", tmp_path / "votes")
    folder = tmp_path / "labels"
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            predict_to(model, parts, folder)
    assert pq.read_table(folder).num_rows == 100
    assert "complete" not in (folder / "_manifest.jsonl").read_text()
    with monkeypatch.context() as patch:
        labelled = stop_after(patch, 99)
        written = predict_to(model, parts, folder, resume=True)
    assert [len(part) for part in labelled] == [30, 50, 50, 10]
    assert (written.n_resumed, written.n_items) == (2, 240)
    whole = cs.tables.label_table(model, cs.read_votes(tmp_path / "votes", SPACES["scores"]))
    assert_same_labels(pq.read_table(folder), whole)


def test_a_finished_folder_is_kept_and_what_its_manifest_does_not_list_is_written_again(tmp_path, monkeypatch):
    model, parts = fitted("classes", tmp_path / "votes")
    folder = tmp_path / "labels"
    predict_to(model, parts, folder)
    with monkeypatch.context() as patch:
        stop_after(patch, 0)
        assert predict_to(model, parts, folder, resume=True).n_items == 240
    with pytest.raises(FileFormatError, match=r"not empty.*resume=True.*force=True"):
        predict_to(model, parts, folder)
    assert predict_to(model, parts, folder, force=True).n_resumed == 0
    manifest = folder / "_manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(lines[:3]) + lines[3][:10])  # killed while the third file was being listed
    for name in ("part-000002.parquet", "part-000005.parquet"):
        (folder / name).write_bytes(b"PAR1 half a file")
    written = predict_to(model, parts, folder, resume=True)
    assert (written.n_resumed, written.n_items) == (2, 240)
    assert pq.read_table(folder).num_rows == 240


def test_labels_of_another_model_or_other_votes_are_not_continued_and_other_files_never_touched(tmp_path):
    model, parts = fitted("classes", tmp_path / "votes")
    predict_to(model, parts, tmp_path / "labels")
    other = cs.LabelModel(SPACES["classes"], method="majority").fit(parts)
    with pytest.raises(FileFormatError, match=r"another model .model differ."):
        predict_to(other, parts, tmp_path / "labels", resume=True)
    others = fitted("classes", tmp_path / "others", size=60)[1]
    with pytest.raises(FileFormatError, match="votes, pieces differ"):
        predict_to(model, others, tmp_path / "labels", resume=True)
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(FileFormatError):
            predict_to(model, parts, tmp_path / "votes", **options)
    assert parts.n_items == 240
    with pytest.raises(FileFormatError, match="is a file"):
        predict_to(model, parts, tmp_path / "votes" / "000.parquet")


def test_skipped_cells_are_counted_silent_pieces_have_null_labels_and_votes_may_be_in_memory(tmp_path):
    silent = [(f"source {letter}", row, None) for letter in "abcde" for row in range(100, 150)]
    path = poisoned(tmp_path, ("source b", 7, "brick"), *silent)
    parts = ParquetPartitions(path, SPACES["classes"], on_error="abstain")
    model = cs.LabelModel(SPACES["classes"]).fit(parts)
    assert predict_to(model, parts, tmp_path / "silent").n_skipped == 1
    labels = pq.read_table(tmp_path / "silent").column("label")
    assert labels.slice(100, 50).null_count == labels.null_count == 50
    votes = votes_of("scores")
    model = cs.LabelModel(SPACES["scores"]).fit(votes)
    predict_to(model, cs.partitions.InMemoryPartitions.of(votes, rows=70), tmp_path / "labels")
    assert_same_labels(pq.read_table(tmp_path / "labels"), cs.tables.label_table(model, votes))
    with pytest.raises(UnsupportedError, match=r"not on Dask or Spark.*predict_to"):
        predict_frame(model, cs.partitions.InMemoryPartitions.of(votes))
    with pytest.raises(UnsupportedError, match="does not work with predict_to"):
        predict_to(model, votes, tmp_path / "more")
