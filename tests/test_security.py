"""The promises of SECURITY.md, one by one."""

import ast
import csv
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.running import files_in, run
from tests.refusals import refused

import consilience as cs
from consilience import storage
from consilience.exceptions import ConsilienceError, FileFormatError, ModelFormatError
from fuzzing import targets

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


@pytest.fixture
def model(tmp_path):
    """Return the path of a saved model."""
    cs.LabelModel(cs.Classes(["ham", "spam"])).fit([["ham", "spam", "spam"]] * 9).save(tmp_path / "model")
    return tmp_path / "model"


def archive(path: Path, entries: dict[str, bytes], packed: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


def array_bytes(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=True)
    return out.getvalue()


class Poison:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_poisoned_model_files_are_refused_and_execute_nothing(tmp_path):
    mark = tmp_path / "mark"
    header = array_bytes(np.frombuffer(b'{"format": 1, "document": {}}', dtype=np.uint8))
    objects = array_bytes(np.array([Poison(mark)], dtype=object))
    deep = array_bytes(np.frombuffer(b"[" * 100_000, dtype=np.uint8))
    bomb = array_bytes(np.zeros(1 << 22))
    huge = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(127)
        + b"\n"
    )
    for name, entries, packed in (
        ("objects", {"header.json.npy": header, "x.npy": objects}, zipfile.ZIP_STORED),
        ("object header", {"header.json.npy": objects}, zipfile.ZIP_STORED),
        ("traversal", {"header.json.npy": header, "../../mark.npy": array_bytes(np.zeros(1))}, zipfile.ZIP_STORED),
        ("deep", {"header.json.npy": deep}, zipfile.ZIP_STORED),
        ("bomb", {"header.json.npy": header, "x.npy": bomb}, zipfile.ZIP_DEFLATED),
        ("huge", {"header.json.npy": header, "x.npy": huge}, zipfile.ZIP_STORED),
    ):
        path = archive(tmp_path / name, entries, packed)
        with pytest.raises(ModelFormatError):
            cs.LabelModel.load(path)
    assert not mark.exists()
    assert sorted(path.name for path in tmp_path.parent.glob("mark*")) == []


def test_every_field_of_a_model_file_is_checked_and_named(model):
    with np.load(model, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    fields = {name: array for name, array in arrays.items() if array.dtype == np.float64 and name != "header.json"}
    for name, array in fields.items():
        for changed in (array[:-1], array.astype(np.float32), np.full_like(array, np.nan), array[None]):
            with open(model, "wb") as file:
                np.savez(file, **{**arrays, name: changed})
            with refused(ModelFormatError, name.split(".")[-1], "expected", "fit and save again"):
                cs.LabelModel.load(model)


def test_model_file_that_names_another_space_or_setting_is_refused(model):
    document = storage.read_document(model)
    for change, part in (
        ({"space": "os.system"}, "not part of consilience"),
        ({"space_arguments": {"names_or_k": 10**12}}, "2 labels"),
        ({"space_arguments": {"names_or_k": {"x": 1}}}, "space_arguments"),
        ({"settings": {**document["settings"], "decode": "rm"}}, "settings.decode"),
        ({"settings": {**document["settings"], "more": 1}}, "settings.more"),
        ({"model": {**document["model"], "sources": ("a", "a", "b")}}, "sources"),
        ({"model": {**document["model"], "n_items": -1}}, "n_items"),
    ):
        storage.write_document(model, {**document, **change})
        with refused(ModelFormatError, part):
            cs.LabelModel.load(model)


def changed(kind: str, path: Path, change: dict[str, Any]) -> Path:
    """Write the model of a label type with other values at some places of its document."""
    path.write_bytes(targets.model_bytes(kind))
    document = storage.read_document(path)
    for place, value in change.items():
        *owners, last = place.split(".")
        owner = document
        for name in owners:
            owner = owner[int(name) if name.isdigit() else name]
        owner[last] = np.full_like(owner[last], value) if isinstance(owner[last], np.ndarray) else value
    storage.write_document(path, document)
    return path


@pytest.mark.parametrize(("kind", "name"), [("vectors", "d"), ("hyperbolic", "d"), ("sphere", "d"), ("spd", "n")])
@pytest.mark.parametrize("size", [10**5, 10**12, 2**62])
def test_size_that_a_file_names_reserves_no_memory(kind, name, size, tmp_path):
    path = changed(kind, tmp_path / "model", {f"space_arguments.{name}": size})
    tracemalloc.start()
    with pytest.raises(ConsilienceError):
        cs.LabelModel.load(path).predict(targets.sample(kind))
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


def test_numbers_that_are_impossible_together_are_refused(tmp_path):
    """Each is a number that the field may hold; judges this sharp leave nothing to invert."""
    path = changed("preferences", tmp_path / "model", {"model.mixture.0.1.slope": 1e100})
    model = cs.LabelModel.load(path)
    with refused(ModelFormatError, "do not fit together", "fit and save again"):
        model.predict(targets.sample("preferences"))


@pytest.mark.parametrize("kind", targets.SPACES)
def test_model_files_whose_arrays_are_exchanged_are_refused_or_used(kind):
    """Each array in the place of the next one: another shape, type, range, or a number that is allowed there."""
    arrays = targets._arrays(targets.model_bytes(kind))
    names = [name for name in arrays if name != "header.json"]
    for one, two in pairwise([*names, names[0]]):
        out = io.BytesIO()
        np.savez(out, **{**arrays, one: arrays[two], two: arrays[one]})
        targets.judge("model", kind.encode() + b"\n" + out.getvalue())


def test_formulas_are_quoted_in_csv_on_request_only(tmp_path):
    cells = ["=1+1", "@sum", "+2", "-x", "plain"]
    rows = "\n".join(f"{name},{name},{name}" for name in cells)
    (tmp_path / "v.csv").write_text(f"item,a,=b\n{rows}\n")
    for options, expected in (((), cells), (("--safe-csv",), ["'=1+1", "'@sum", "'+2", "'-x", "plain"])):
        ran = run("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv", "--force", "--space", "classes", *options)
        assert ran.exit_code in (0, 1), ran.output
        with open(tmp_path / "l.csv", newline="") as file:
            found = list(csv.DictReader(file))
        assert [row["item"] for row in found] == expected
        assert [row["label"] for row in found] == expected
    ran = run("label", tmp_path / "v.csv", "-o", tmp_path / "l.parquet", "--safe-csv")
    assert ran.exit_code == 2
    assert "--safe-csv is for labels in a CSV file" in ran.stderr


#: Says what a run of the program opens, makes, moves, removes, starts and connects to.
WATCHED = """
import sys
events = []
def watch(event, given):
    if event.startswith(("open", "os.", "socket.", "subprocess.", "pty.", "urllib.")):
        events.append((event, [str(one) for one in given[:2] if isinstance(one, (str, bytes))]))
sys.addaudithook(watch)
from consilience.cli import main
try:
    main()
finally:
    seen = list(events)
    with open("events.txt", "w") as file:
        print(*seen, sep="\\n", file=file)
"""


def test_only_named_files_are_touched_nothing_is_started_and_there_is_no_network(tmp_path):
    (tmp_path / "v.csv").write_text("item,a,b,c\n1,x,x,y\n2,y,y,y\n3,x,x,x\n")
    (tmp_path / "other.csv").write_text("a secret\n")
    words = ["label", "v.csv", "-o", "l.csv", "--report", "p.html", "--save", "m"]
    ran = subprocess.run([sys.executable, "-c", WATCHED, *words], cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    assert set(files_in(tmp_path)) == {"events.txt", "v.csv", "other.csv", "l.csv", "p.html", "m"}
    events = [ast.literal_eval(line) for line in (tmp_path / "events.txt").read_text().splitlines()]
    assert any(event == "open" and paths[0] == "v.csv" for event, paths in events)
    started = ("socket.", "subprocess.", "pty.", "urllib.", "os.system", "os.exec", "os.posix_spawn", "os.fork")
    assert not [event for event, _ in events if event.startswith(started)]
    # Python, its packages and this one may be anywhere; the system says what machine and what time it is.
    code = (sys.prefix, sys.base_prefix, str(Path(cs.__file__).parents[2]), *filter(None, sys.path))
    code += tuple(filter(None, [os.environ.get("NUMBA_CACHE_DIR")]))
    elsewhere = (*code, "/proc/", "/sys/", "/usr/share/zoneinfo/", "/etc/", "/dev/")
    named, quiet = ("v.csv", "l.csv", "p.html", "m"), ("os.listdir", "os.putenv", "os.unsetenv")
    touched = {
        os.path.normpath(paths[0].removeprefix(f"{tmp_path}{os.sep}"))
        for event, paths in events
        if paths and event not in quiet
    }
    assert not [
        path
        for path in touched
        if path not in named and not path.startswith((*elsewhere, *(f".{name}." for name in named)))
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "Score: " + "1" * 40_000,
        "*" * 40_000,
        "[[" * 20_000,
        "a " * 20_000 + ">",
        "verdict: " * 8_000,
        " " * 40_000 + "x",
    ],
    ids=["digits", "stars", "brackets", "words", "verdicts", "blanks"],
)
def test_replies_are_read_in_time_that_grows_with_their_length(reply, tmp_path):
    def seconds(text: str) -> float:
        path = tmp_path / "j.jsonl"
        path.write_text("\n".join(json.dumps({"item": item, "judge": "m", "reply": text}) for item in range(2)))
        start = time.perf_counter()
        cs.tables.read_judges(path)
        return time.perf_counter() - start

    seconds("warm up")
    short, long = seconds(reply[: len(reply) // 8]), seconds(reply)
    assert long < 2.0 + 24.0 * short  # 8 times the text; 64 times the seconds would be a square


def test_xml_that_grows_or_names_other_files_is_refused(tmp_path):
    (tmp_path / "secret.txt").write_text("the secret")
    grows = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    for entities, used in (
        (f'<!ENTITY e0 "lol">{grows}', "&e11;"),
        (f'<!ENTITY file SYSTEM "{(tmp_path / "secret.txt").as_uri()}">', "&file;"),
    ):
        (tmp_path / "ann.xml").write_text(
            f"<!DOCTYPE a [{entities}]><annotations><image name='x'><tag label='y'/>{used}</image></annotations>"
        )
        with refused(FileFormatError, "ann.xml", "not XML"):
            cs.tables.read_cvat({"ann": tmp_path / "ann.xml"})
