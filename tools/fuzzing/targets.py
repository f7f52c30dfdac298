"""What is fuzzed: a seed input, how it is changed, and what must hold of whatever comes in.

A good outcome is a result that satisfies the invariants, or an error of the package. Everything else fails.
"""

import io
import json
import os
import random
import tempfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.feather as feather
import pyarrow.parquet as parquet
from click.testing import CliRunner

import consilience as cs
from consilience.cli import main
from consilience.exceptions import ConsilienceError, ModelFormatError
from consilience.label_types.preferences.comparisons import UNPARSABLE
from consilience.tables.cleaning import labels_from_text
from consilience.tables.files import read_table
from fuzzing import cells, mutators

CSV = b"item,ann,bob,cleo\nx1,cat,cat,dog\nx2,dog,,dog\nx3,cat,dog,cat\nx4,-1,1e3,[1]\n"
SCORES = b"task,ann,bob,cleo\n1,3.5,4,2\n2,1,,2\n3,5,5,4.5\n"
LONG = b"item,worker,answer\nq1,ann,a > b > c\nq1,bob,b > a = c\nq2,ann,c > a > b\nq2,cleo,a > c > b\n"
CONLLU = (
    b"# sent_id = 1\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    b"3\tbarks\tbark\tVERB\tVB\t_\t0\troot\t_\t_\n\n# sent_id = 2\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
)
PREFLIB = b"# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n3: 1,2,3\n2: 3,{1,2}\n1: 2,1\n"
JSONL = b"\n".join(
    json.dumps(one).encode()
    for one in (
        {"item": "x", "ann": [1, 2], "bob": [1, 3], "cleo": [2, 2]},
        {"item": "y", "ann": [0, 1], "bob": None, "cleo": [0, 0]},
        {"item": "z", "ann": [5, 6], "bob": [5, 6], "cleo": [4, 6]},
    )
)
RECORDS = b"\n".join(
    json.dumps(one).encode()
    for one in (
        {"item": 1, "ann": {"stars": 4.5, "topic": "food"}, "bob": {"stars": 4, "topic": "food"}},
        {"item": 2, "ann": {"stars": 1.5, "topic": "art"}, "bob": {"stars": 2.5, "topic": None}},
    )
)
JUDGES = b"\n".join(
    json.dumps({"item": f"q{item}", "judge": judge, "reply": reply}).encode()
    for item, judge, reply in (
        (1, "m1", "Score: 7/10"),
        (1, "m2", '{"score": 8}'),
        (2, "m1", "I cannot say"),
        (2, "m2", '```json\n{"score": 3}\n```'),
    )
)
PAIRS = b"\n".join(
    json.dumps({"item": item, "judge": judge, "first": "a", "second": "b", "winner": winner}).encode()
    for item, judge, winner in ((1, "m1", "A"), (1, "m2", "[[B]]"), (2, "m1", "tie"), (2, "m2", "first"))
)
TREC = (
    b"q1 Q0 d7 1 9.5 bm25\nq1 Q0 d2 2 8.1 bm25\nq2 Q0 d1 1 3 bm25\nq1 Q0 d2 1 0.9 dense\nq1 Q0 d7 2 0.9 dense\n"
    b"q2 Q0 d1 1 0.8 dense\nq2 Q0 d3 2 -1e-3 dense\n"
)
LIST = json.dumps([{"item": 1, "ann": "cat", "bob": "dog"}, {"item": 2, "ann": "dog", "bob": "dog"}]).encode()
COCO = json.dumps(
    {
        "images": [{"id": 1, "width": 90, "height": 60}, {"id": 2}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "score": 0.9},
            {"id": 2, "image_id": 2, "category_id": 2, "bbox": [5.5, 2, 3, 4]},
        ],
    }
).encode()


def _answer(who: object, kind: str, value: object) -> dict[str, Any]:
    result = {"from_name": "c", "to_name": "t", "type": kind, "value": value}
    return {"completed_by": who, "result": [result]}


def _studio(kind: str, value: object, other: object) -> bytes:
    tasks = [
        {"id": 1, "data": {}, "annotations": [_answer(1, kind, value), _answer({"email": "b@x"}, kind, other)]},
        {"id": 2, "annotations": [_answer(1, kind, other)], "predictions": [{"model_version": "v", "result": []}]},
    ]
    return json.dumps(tasks).encode()


STUDIO = [
    _studio("choices", {"choices": ["a"]}, {"choices": ["b", "a"]}),
    _studio("rating", {"rating": 4}, {"rating": 2}),
    _studio("taxonomy", {"taxonomy": [["x", "y"]]}, {"taxonomy": [["x", "z"]]}),
    _studio("ranker", {"ranker": {"c": ["b", "a"]}}, {"ranker": {"c": ["a", "b"]}}),
    _studio("labels", {"start": 1, "end": 4, "labels": ["P"]}, {"start": 2, "end": 4, "labels": ["Q"]}),
    _studio("rectanglelabels", {"x": 1, "y": 2, "width": 3, "height": 4}, {"x": 1, "y": 2, "width": 3, "height": 5}),
    _studio("textarea", {"text": ["one"]}, {"text": "two"}),
]


def _lines(*records: Any) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


_SPAN, _BOX = {"start": 0, "end": 4, "label": "PER"}, {"x": 10, "y": 5, "width": 20, "height": 10, "label": "CAR"}
_TASK = {"text": "Anna went", "_input_hash": 1, "_task_hash": 9, "_annotator_id": "ann", "answer": "accept"}
PRODIGY = [
    _lines({**_TASK, "spans": [_SPAN]}, {**_TASK, "_annotator_id": "bob", "spans": [_SPAN, {**_SPAN, "end": 6}]}),
    _lines({**_TASK, "accept": ["A"]}, {**_TASK, "_annotator_id": "bob", "accept": ["B"]}),
    _lines({**_TASK, "spans": [_BOX]}, {**_TASK, "_annotator_id": "bob", "spans": [{**_BOX, "x": 11}]}),
]
DOCCANO = [
    _lines({"id": 1, "text": "Anna", "label": [[0, 4, "PER"]]}, {"id": 2, "text": "Nobody", "label": []}),
    _lines({"id": 7, "text": "x", "annotations": [{"user": 1, "label": 3}, {"user": 2, "label": 4}]}),
    _lines({"id": 7, "annotations": [{"user": 1, "label": 3, "start_offset": 0, "end_offset": 4}]}),
]
ARGILLA = [
    _lines({"id": number, "fields": {"text": "t"}, "responses": {"q": [{"value": one, "user_id": "u1"}]}, **more})
    for number, one, more in (
        (1, "good", {"suggestions": {"q": {"value": "bad", "agent": "bert"}}}),
        (2, [_SPAN], {}),
        (3, [{"value": "a", "rank": 1}, {"value": "b", "rank": 2}], {}),
    )
] + [_lines({"fields": {}, "responses": [{"user_id": "a", "values": {"mood": {"value": 3}}}]})]
GROUND_TRUTH = [
    _lines(
        {
            "source-ref": "s3://b/1.png",
            "day1": 0,
            "day1-metadata": {"class-name": "dog"},
            "day2": 1,
            "day2-metadata": {},
        }
    ),
    _lines(
        {
            "datasetObjectId": "0",
            "annotations": [
                {"workerId": "w1", "annotationData": {"content": json.dumps({"crowd": {"label": "dog"}})}},
                {"workerId": "w2", "annotationData": {"content": {"crowd": {"boundingBoxes": []}}}},
            ],
        }
    ),
]
CVAT = (
    b'<?xml version="1.0"?><annotations>\n<image id="0" name="a.png" width="640" height="480">\n'
    b'<box label="car" xtl="10" ytl="5" xbr="30" ybr="25"/></image>\n'
    b'<image id="1" name="b.png"><tag label="night"/></image></annotations>'
)


@dataclass(frozen=True)
class Target:
    """Seeds, a change, and what is done with the outcome; `judge` raises where something is wrong."""

    seeds: Callable[[], list[bytes]]
    change: Callable[[bytes, random.Random], bytes]
    judge: Callable[[bytes], None]
    milliseconds: float  # that an input takes, roughly: cheap ones are drawn more often


# --- what must hold -------------------------------------------------------------------------------------


def check_labels(space: cs.LabelSpace, votes: Any, data: bytes = b"") -> None:
    """Fit, label and write: one label per row, in order, finite, confidence in [0, 1], none lost.

    What `data` was read from is about reading, so one input of eight is fitted in earnest and the others by the
    cheapest method; the "numbers" are about fitting.
    """
    method = "majority" if zlib.crc32(data) % 8 else "auto"
    check_model(cs.LabelModel(space, method=method).fit(votes), votes)


def check_model(model: cs.LabelModel, votes: Any) -> None:
    """Check the labels of a fitted model as `check_labels` does."""
    table = cs.tables.label_table(model, votes)
    items = getattr(votes, "items", np.arange(len(votes))).tolist()
    assert list(map(str, table.column("item").to_pylist())) == list(map(str, items)), "rows were lost, added or moved"
    confidence = np.array(table.column("confidence").to_pylist(), dtype=float)
    assert ((confidence >= 0) & (confidence <= 1)).all(), f"confidence {confidence.tolist()}"
    cast = np.array(table.column("n_votes").to_pylist())
    for label, number in zip(table.column("label").to_pylist(), cast.tolist(), strict=True):
        assert number == 0 or label is not None, "an item with votes has no label"
        assert not np.isnan(np.array(list(_numbers_in(label)), dtype=float)).any(), f"NaN in label {label}"
    assert np.isfinite(model.weight_).all(), f"weights {model.weight_}"


def _numbers_in(value: Any) -> Any:
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _numbers_in(one)
    elif isinstance(value, dict):
        yield from _numbers_in(list(value.values()))


@cache
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="consilience-fuzz-"))
    (made / "out").mkdir()
    return made


def _file(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def _votes(name: str) -> Callable[[bytes], None]:
    """Return what reads a table of votes, guesses its label type, and labels it."""

    def judge(data: bytes) -> None:
        table = read_table(_file(name, data))
        votes = cs.read_votes(table)
        if votes.n_items * votes.n_sources > 60:
            return
        guess = cs.tables.guess_space(votes)
        votes = labels_from_text(votes, guess.space, name)
        if votes.receipt is not None:
            assert votes.receipt.used == votes.observed.sum(), f"{votes.receipt} The votes are {votes!r}."
        check_labels(guess.space, votes, data)

    return judge


def _coco(data: bytes) -> None:
    path = _file("c.json", data)
    read = cs.tables.read_coco({"ann": path, "bob": json.loads(COCO), "cleo": path})
    check_labels(read.space, read.votes, data)


def _tool(reader: str, name: str, other: bytes | None = None) -> Callable[[bytes], None]:
    """Return what reads the export of an annotation tool and labels it; `other` is what a second annotator said."""

    def judge(data: bytes) -> None:
        path = _file(name, data)
        files = path if other is None else {"ann": path, "bob": _file(f"other-{name}", other)}
        read = getattr(cs.tables, reader)(files)
        assert len(read.data) == read.votes.n_items, "items were lost or added"
        if read.space is not None and read.kind != "ranker":
            check_labels(read.space, read.votes, data)

    return judge


def _conllu(data: bytes) -> None:
    read = cs.tables.read_conllu({"ann": _file("t.conllu", data), "bob": _file("u.conllu", CONLLU)})
    check_labels(SPACES["trees"], read.votes, data)


def _trec(data: bytes) -> None:
    votes = cs.tables.read_trec(_file("r.run", data))
    check_labels(cs.Rankings(None), votes, data)


def _preflib(data: bytes) -> None:
    profile = cs.Rankings.read_preflib(data.decode(errors="replace"))
    assert profile.counts.dtype == np.int64
    assert len(profile.positions) == len(profile.counts)


def _judges(data: bytes) -> None:
    path = _file("j.jsonl", data)
    read = cs.tables.read_judges(path)
    rows, lost = read_table(path).num_rows, sum(read.faults.columns["cells"])
    lost += 0 if read.votes.receipt is None else read.votes.receipt.merged
    assert rows == read.votes.observed.sum() + lost, f"{rows} replies became {read!r}"
    labels = read.votes.labels[read.votes.observed]
    assert labels.dtype.kind != "f" or np.isfinite(labels).all(), "a reply became infinite or NaN"


def _pairs(data: bytes) -> None:
    path = _file("p.jsonl", data)
    votes = cs.tables.read_preferences(path)
    rows, said = read_table(path).num_rows, [sign for one in votes.labels[votes.observed] for sign in one.outcome]
    assert rows == len(said), f"{rows} comparisons became {len(said)}"
    assert votes.receipt.used == sum(sign != UNPARSABLE for sign in said), f"{votes.receipt} The votes are {said}."


# --- model files ----------------------------------------------------------------------------------------

GAP = "fuzz gap"


def _gap(left: Any, right: Any) -> Any:
    return np.abs(left - right)


SPACES: dict[str, cs.LabelSpace] = {
    "classes": cs.Classes(["ham", "spam", "eggs"]),
    "finite": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))),
    "scores": cs.Scores(),
    "vectors": cs.Vectors(2),
    "rankings": cs.Rankings(3),
    "tags": cs.Tags(["a", "b"]),
    "sequences": cs.Sequences(["O", "B-X", "I-X"], chain=True),
    "boxes": cs.Boxes(["car", "dog"]),
    "spans": cs.Spans(),
    "trees": cs.DependencyTrees(),
    "texts": cs.Texts(),
    "preferences": cs.Preferences(["a", "b", "c"]),
    "hyperbolic": cs.Hyperbolic(2),
    "sphere": cs.Sphere(2),
    "rotations": cs.SO3(),
    "spd": cs.SPD(2),
    "records": cs.Product(stars=cs.Scores(), topic=cs.Classes(["x", "y"])),
    "metric": cs.Metric(_gap, vectorized=True),
}


@cache
def sample(kind: str) -> cs.Votes:
    """Return 12 votes of 4 sources of a label type: copies of the truth, some exchanged."""
    rng, space = np.random.default_rng(0), SPACES[kind]
    if kind == "metric":
        return cs.Votes.from_array(rng.normal(size=(12, 1)) + 0.3 * rng.normal(size=(12, 4)))
    if kind == "texts":
        words = ["the cat sat", "a cat sat down", "the dog ran", "a dog ran far"]
        return cs.Votes.from_array(np.array(words, dtype=object)[rng.integers(4, size=(12, 4))])
    truth = space.random(12, rng)
    cells = np.empty((12, 4), dtype=object)
    for source in range(4):
        drawn = space.as_labels(space.sample_around(truth, 3.0, rng), np.dtype(object))
        for item in range(12):
            cells[item, source] = drawn[item]
    cells[0, 1] = None
    return cs.Votes.from_array(cells)


@cache
def model_bytes(kind: str) -> bytes:
    cs.label_types.register_distance(GAP, _gap)
    path = folder() / f"{kind}.model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cs.LabelModel(SPACES[kind]).fit(sample(kind)).save(path)
    return path.read_bytes()


def _model_seeds() -> list[bytes]:
    return [kind.encode() + b"\n" + model_bytes(kind) for kind in SPACES]


@cache
def _arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _change_model(data: bytes, rng: random.Random) -> bytes:
    """Return a model file with a changed header, a changed or exchanged array, or other bytes."""
    kind, content = data.split(b"\n", 1)
    if rng.random() < 0.15:
        return (
            kind + b"\n" + mutators.of_bytes(content, rng) if rng.random() < 0.5 else kind + b"\n" + _flip(content, rng)
        )
    arrays = dict(_arrays(content))
    names = [name for name in arrays if name != "header.json"]
    match rng.randrange(4):
        case 0:
            header = json.loads(arrays["header.json"].tobytes())
            text = json.dumps(mutators.of_document(header, rng))
            arrays["header.json"] = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        case 1:
            name = rng.choice(names)
            arrays[name] = mutators.of_numbers(arrays[name], rng)
        case 2:
            for name in rng.choices(names, k=rng.choice((1, 1, 2, 3))):
                arrays[name] = mutators.within_ranges(arrays[name], rng)
        case _:
            one, two = rng.choice(names), rng.choice(names)
            arrays[one], arrays[two] = arrays[two], arrays[one]
    out = io.BytesIO()
    np.savez(out, **arrays)
    return kind + b"\n" + out.getvalue()


def _flip(content: bytes, rng: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _model(data: bytes) -> None:
    name, content = data.split(b"\n", 1)
    kind = name.decode(errors="replace")
    if kind not in SPACES:
        return
    cs.label_types.register_distance(GAP, _gap)
    model = cs.LabelModel.load(_file("m.model", content))
    votes = sample(kind)
    check_model(model, votes)
    repr(model.sources_)
    model.explain(votes, votes.items[0])
    assert len(model.predict_baseline(votes)) == len(votes)


# --- numbers in votes -----------------------------------------------------------------------------------


def _number_seeds() -> list[bytes]:
    return [cells.dumped(kind, "auto", _objects(kind), None) for kind in SPACES]


def _objects(kind: str) -> np.ndarray:
    votes = sample(kind)
    objects = np.empty(votes.observed.shape, dtype=object)
    for place in zip(*np.nonzero(votes.observed), strict=True):
        objects[place] = votes.labels[place]
    return objects


def _change_numbers(data: bytes, rng: random.Random) -> bytes:
    """Change the votes of a label type: numbers nobody expects, other cells, fewer rows, no votes."""
    kind = cells.loaded(data)[0]
    votes = _objects(kind)
    rows = rng.sample(range(len(votes)), rng.choice((1, 2, 5, 12)))
    objects = votes[rows][:, : rng.choice((1, 2, 3, 4))].copy()
    for _ in range(rng.choice((0, 1, 1, 2, 6))):
        place = rng.randrange(objects.shape[0]), rng.randrange(objects.shape[1])
        cell = objects[place]
        if isinstance(cell, np.ndarray) and cell.dtype.kind in "iuf" and rng.random() < 0.7:
            cell = mutators.of_numbers(cell, rng)
        elif isinstance(cell, (int, float, np.number)) and rng.random() < 0.7:
            cell = rng.choice((1e300, -1e-300, 1e60, -cell, cell * 1e5, 10**30, np.inf, 0, np.nan))
        elif isinstance(cell, (list, dict)) and rng.random() < 0.7:
            cell = cells.reread(mutators.of_document(cells.written(cell), rng))
        else:
            cell = rng.choice((None, None, *mutators.VALUES))
        objects[place] = cell
    space = SPACES[kind]
    if rng.random() < 0.3 and kind in ("scores", "vectors", "metric"):
        scale = rng.choice((1e-200, 1e-80, 1e-9, 1e20, 1e58))
        for place in np.ndindex(objects.shape):
            if isinstance(objects[place], float) or getattr(objects[place], "dtype", np.dtype("U")).kind == "f":
                with np.errstate(all="ignore"):
                    objects[place] = objects[place] * scale
    known = [None if rng.random() < 0.5 else label for label in objects[:, 0]] if rng.random() < 0.3 else None
    method = rng.choice(("auto", "auto", "majority", rng.choice(space.law.methods)))
    return cells.dumped(kind, method, objects, known)


def _numbers(data: bytes) -> None:
    """Fit and label a table of votes of any label type."""
    given = cells.loaded(data)
    if given is None or given[0] not in SPACES:
        return
    kind, method, objects, known = given
    votes = cs.Votes.from_array(objects)
    check_model(cs.LabelModel(SPACES[kind], method=method).fit(votes, known), votes)


# --- command lines --------------------------------------------------------------------------------------

WORDS_OF_COMMANDS = """
label inspect report predict convert demo compare --space --gold -o --json --force classes scores rankings ordinal:-2..9
tags texts records boxes vectors:2 preferences --abstain --drop --sources --item item ann --layout long wide --delimiter
; --to --method em --seed 0 - --quiet --debug --encoding utf-16 é out v.csv v.csv v.csv s.csv l.csv none.csv out/x.csv
out/m out/x.parquet out/x.txt --engine local
"""
WORDS = [*WORDS_OF_COMMANDS.split(), "x" * 300, ""]


def _change_command(data: bytes, rng: random.Random) -> bytes:
    words = data.decode().split("\x1f")
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(words) + 1)
        match rng.randrange(3):
            case 0:
                words.insert(place, rng.choice(WORDS))
            case 1 if place < len(words):
                words[place] = rng.choice(WORDS)
            case _ if place < len(words) > 1:
                del words[place]
    return "\x1f".join(words).encode()


def _contents() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def _command(data: bytes) -> None:
    words = data.decode(errors="replace").split("\x1f")
    if not words or words[0] not in ("label", "inspect", "report", "predict", "convert", "compare"):
        return
    for name, content in (("v.csv", CSV), ("s.csv", SCORES), ("l.csv", LONG)):
        _file(name, content)
    back = os.getcwd()
    os.chdir(folder())
    try:
        before = _contents()
        ran = CliRunner().invoke(main, words)
        assert "This is a bug" not in ran.output, ran.output[-300:]
        assert ran.exception is None or isinstance(ran.exception, SystemExit), repr(ran.exception)
        assert ran.exit_code in (0, 1, 2), ran.exit_code
        after = _contents()
        assert not [path for path in after if path.name.endswith(".tmp")], "a temporary file was left"
        assert ran.exit_code < 2 or after == before, "a run that was refused changed a file"
        assert "--force" in words or before.items() <= after.items(), "a file was replaced without --force"
        assert all(content.endswith(b"\n") for path, content in after.items() if path.suffix == ".csv"), "half a file"
    finally:
        os.chdir(back)


def _binary_seeds(kind: str) -> list[bytes]:
    seeds = []
    for text in (CSV, SCORES):
        table, out = read_table(_file("seed.csv", text)), io.BytesIO()
        if kind == "parquet":
            parquet.write_table(table, out)
        else:
            feather.write_feather(table, out, "uncompressed")
        seeds.append(out.getvalue())
    return seeds


COMMANDS = [
    "label v.csv -o out/x.csv --force",
    "inspect s.csv",
    "convert l.csv out/x.csv --to wide --force",
    "label s.csv --space scores -o -",
    "report v.csv -o out/page.html --force",
]


TARGETS: dict[str, Target] = {
    "csv": Target(lambda: [CSV, SCORES, LONG], mutators.of_text, _votes("v.csv"), 5),
    "jsonl": Target(lambda: [JSONL, RECORDS], mutators.of_json, _votes("v.jsonl"), 1),
    "json": Target(lambda: [LIST], mutators.of_json, _votes("v.json"), 2),
    "parquet": Target(lambda: _binary_seeds("parquet"), mutators.of_bytes, _votes("v.parquet"), 0.4),
    "arrow": Target(lambda: _binary_seeds("arrow"), mutators.of_bytes, _votes("v.arrow"), 0.5),
    "coco": Target(lambda: [COCO], mutators.of_json, _coco, 2),
    "label-studio": Target(lambda: STUDIO, mutators.of_json, _tool("read_label_studio", "s.json"), 1),
    "argilla": Target(lambda: ARGILLA, mutators.of_json, _tool("read_argilla", "a.jsonl"), 1.5),
    "prodigy": Target(lambda: PRODIGY, mutators.of_json, _tool("read_prodigy", "p.jsonl"), 6),
    "doccano": Target(lambda: DOCCANO, mutators.of_json, _tool("read_doccano", "d.jsonl", DOCCANO[0]), 5),
    "ground-truth": Target(lambda: GROUND_TRUTH, mutators.of_json, _tool("read_ground_truth", "g.manifest"), 1.7),
    "cvat": Target(lambda: [CVAT], mutators.of_text, _tool("read_cvat", "c.xml", CVAT), 1.4),
    "conllu": Target(lambda: [CONLLU], mutators.of_text, _conllu, 5),
    "preflib": Target(lambda: [PREFLIB], mutators.of_text, _preflib, 0.1),
    "trec": Target(lambda: [TREC], mutators.of_text, _trec, 6),
    "judges": Target(lambda: [JUDGES, JUDGES.replace(b"reply", b"label")], mutators.of_json, _judges, 0.8),
    "preferences": Target(lambda: [PAIRS], mutators.of_json, _pairs, 0.7),
    "model": Target(_model_seeds, _change_model, _model, 4),
    "numbers": Target(_number_seeds, _change_numbers, _numbers, 18),
    "command": Target(lambda: [one.replace(" ", "\x1f").encode() for one in COMMANDS], _change_command, _command, 2),
}


def judge(name: str, data: bytes) -> None:
    """Raise unless the outcome of an input is good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name].judge(data)
        except ConsilienceError as error:
            if isinstance(error, ModelFormatError) and name not in ("model", "command"):
                raise  # what was fitted here fits together


__all__ = ["SPACES", "TARGETS", "check_labels", "check_model", "judge", "sample"]
