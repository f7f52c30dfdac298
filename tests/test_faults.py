"""Faults of the machine, on real processes: the old file is whole or the new one is, and a second run completes.

A Dask worker or a process of Spark that is killed, and bad rows in partitions: `tests/partitions`.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import run

import consilience as cs

ITEMS = 4000
PROGRAM = [sys.executable, "-m", "consilience"]
#: What is labeled does not matter here, so the method is the one that starts fastest.
PLAIN = ("--method", "majority")


@pytest.fixture
def place(tmp_path):
    """Return a folder with a table of votes, and the labels of an earlier run."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=ITEMS)
    votes = {name: np.where(rng.random(ITEMS) < 0.8, truth, 1 - truth) for name in ("ann", "bob", "cleo")}
    pq.write_table(pa.table({"item": np.arange(ITEMS), **votes}), tmp_path / "votes.parquet", row_group_size=200)
    (tmp_path / "labels.csv").write_text("the labels of yesterday\n")
    return tmp_path


def label(place: Path, *more: str, target: str = "labels.csv", **settings) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "label", "votes.parquet", "-o", target, "--force", "--space", "classes", *PLAIN, *more]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False, **settings)


def whole(path: Path) -> str:
    """Return whose file it is: that of yesterday or a new one; anything else is half a file."""
    text = path.read_text()
    if text == "the labels of yesterday\n":
        return "old"
    assert text.startswith("item,label,confidence,")
    assert text.count("\n") == ITEMS + 1
    return "new"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write to a folder: root may, whatever the permissions, unless it is mounted so."""
    if os.getuid():
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    mount = ["mount", "--bind", folder, folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("root may write to any folder, and none can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder, folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def left_behind(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.endswith(".tmp")]


def ended_while_writing(place: Path, number: signal.Signals) -> tuple[int, str]:
    """Start a run, send it a signal as soon as it writes, and return its exit code and what it said."""
    command = [*PROGRAM, "label", "votes.parquet", "-o", "labels.csv", "--force", "--space", "classes", *PLAIN]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not left_behind(place):
        time.sleep(0.001)
    process.send_signal(number)
    return process.wait(timeout=60), process.communicate()[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_ended_run_leaves_the_old_file_or_the_new_one_and_a_second_run_completes(place, number):
    code, said = ended_while_writing(place, number)
    now = whole(place / "labels.csv")
    if number == signal.SIGINT:
        assert now == "new" if code in (0, 1) else "No partial files were left behind" in said
        assert not left_behind(place)
    assert label(place).returncode in (0, 1)
    assert whole(place / "labels.csv") == "new"


def test_killed_run_over_pieces_is_continued(place):
    command = [*PROGRAM, "label", "votes.parquet", "-o", "out", "--engine", "local", "--space", "classes", *PLAIN]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    manifest = place / "out" / "_manifest.jsonl"
    end = time.monotonic() + 60.0
    while process.poll() is None and time.monotonic() < end:
        if manifest.exists() and manifest.read_text().count("piece") > 4:
            process.kill()
        time.sleep(0.002)
    process.wait(timeout=60)
    again = subprocess.run([*command, "--resume"], cwd=place, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode in (0, 1), again.stderr
    assert pq.read_table(place / "out").num_rows == ITEMS


def test_full_disk_leaves_the_old_file_and_says_so(place):
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    ran = label(place, preexec_fn=small_files)
    assert ran.returncode == 2
    assert "Nothing was changed" in ran.stderr
    assert whole(place / "labels.csv") == "old"
    assert not left_behind(place)


def test_full_file_system_leaves_the_old_file_and_says_so(place):
    small = place / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system needs root to be mounted")
    try:
        (small / "labels.csv").write_text("the labels of yesterday\n")
        ran = label(place, target="small/labels.csv")
        assert ran.returncode == 2
        assert "No space left" in ran.stderr
        assert whole(small / "labels.csv") == "old"
        assert not left_behind(small)
        subprocess.run(["mount", "-o", "remount,size=4m", small], check=True)
        assert label(place, target="small/labels.csv").returncode in (0, 1)
        assert whole(small / "labels.csv") == "new"
    finally:
        subprocess.run(["umount", small], check=True)


def test_folder_that_is_read_only_is_named_and_keeps_its_file(place):
    out = place / "out"
    out.mkdir()
    (out / "labels.csv").write_text("the labels of yesterday\n")
    with read_only(out):
        ran = label(place, target="out/labels.csv")
        assert ran.returncode == 2
        assert "Cannot write to 'out'" in ran.stderr
        assert "Choose another folder" in ran.stderr
        assert whole(out / "labels.csv") == "old"
    assert label(place, target="out/labels.csv").returncode in (0, 1)
    assert whole(out / "labels.csv") == "new"


def test_without_a_home_and_any_folder_for_compiled_code_kernels_are_compiled_all_the_same(tmp_path):
    """Importing a kernel ended in "cannot cache function" here; compiling one takes a few seconds."""
    shut = tmp_path / "shut"
    shutil.copytree(Path(cs.__file__).parent, shut / "consilience", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import os, numpy as np\n"
        "from consilience.label_types.elements.kernels import best_total\n"
        "print(best_total(np.eye(2)), os.environ['NUMBA_CACHE_DIR'])\n"
    )
    gone = {"HOME": str(shut / "home"), "XDG_CACHE_HOME": "", "NUMBA_CACHE_DIR": "", "TMPDIR": str(tmp_path)}
    with read_only(shut):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **gone, "PYTHONPATH": str(shut), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=shut,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"2.0 {tmp_path}")


@pytest.mark.parametrize("days", [-400, 400])
def test_clock_that_goes_back_neither_hides_a_change_nor_stops_a_run_that_is_continued(place, days, monkeypatch):
    """Files of the future and of the past are read like others: what counts is that a time differs."""
    path, moved = place / "votes.parquet", time.time() + days * 86_400.0
    monkeypatch.chdir(place)
    command = ["label", "votes.parquet", "-o", "out", "--engine", "local", "--space", "classes", *PLAIN, "-q"]
    assert run(*command).exit_code in (0, 1)
    manifest = place / "out" / "_manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:5]))
    for file in (path, manifest):
        os.utime(file, (moved, moved))
    assert run(*command, "--resume").exit_code in (0, 1)
    assert pq.read_table(place / "out").num_rows == ITEMS
    parts = cs.partitions.ParquetPartitions(path, cs.Classes(2))
    model = cs.LabelModel(cs.Classes(2), method="majority").fit(parts)
    before = model.predict(parts)
    table = pq.read_table(path)
    votes = {name: 1 - table[name].to_numpy() for name in ("ann", "bob", "cleo")}
    pq.write_table(pa.table({"item": table["item"], **votes}), path, row_group_size=200)
    os.utime(path, (moved - 1.0, moved - 1.0))
    assert (model.predict(parts) == 1 - before).all()


def test_memory_limit_ends_in_a_message(place):
    rng = np.random.default_rng(0)
    votes = {f"s{source}": rng.normal(size=300_000) for source in range(30)}
    pq.write_table(pa.table(votes), place / "votes.parquet")

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (450 << 20, 450 << 20))

    command = [*PROGRAM, "label", "votes.parquet", "-o", "labels.csv", "--force", "--space", "scores"]
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, preexec_fn=little_memory, check=False)
    assert ran.returncode == 2, ran.stderr[-500:]
    assert "not enough memory" in ran.stderr or "malloc" in ran.stderr
    assert whole(place / "labels.csv") == "old"


def test_two_processes_that_write_the_same_file_leave_one_whole_file(place):
    command = [*PROGRAM, "label", "votes.parquet", "-o", "labels.csv", "--force", "--space", "classes", *PLAIN, "-q"]
    both = [subprocess.Popen(command, cwd=place) for _ in range(2)]
    assert {process.wait(timeout=120) for process in both} <= {0, 1}
    assert whole(place / "labels.csv") == "new"
    assert not left_behind(place)


def test_of_two_processes_that_fill_the_same_folder_one_completes_and_the_other_names_the_next_step(place):
    command = [*PROGRAM, "label", "votes.parquet", "-o", "out", "--engine", "local", "--space", "classes", *PLAIN]
    both = [subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process: process.communicate(timeout=120)[1] for process in both}
    assert any(process.returncode in (0, 1) for process in both), said
    for process, words in said.items():
        assert process.returncode in (0, 1) or "Continue it with --resume, or overwrite it with --force." in words
    assert pq.read_table(place / "out").column("item").to_pylist() == list(range(ITEMS))


def test_file_that_changes_while_it_is_read_is_read_anew_or_refused(place):
    parts = cs.partitions.ParquetPartitions(place / "votes.parquet", cs.Classes(2))
    model = cs.LabelModel(cs.Classes(2)).fit(parts)
    table = pq.read_table(place / "votes.parquet")
    (place / "votes.parquet").write_bytes((place / "votes.parquet").read_bytes()[:500])
    with pytest.raises(cs.exceptions.FileFormatError, match="damaged or cut short"):
        model.predict(parts)
    pq.write_table(table, place / "votes.parquet", row_group_size=200)
    assert len(model.predict(parts)) == ITEMS
