"""What is fuzzed: a seed input, how it is changed, and what must hold of whatever comes in.

A good outcome is a result that satisfies the invariants, or an error of the package. Everything else fails.
"""

import io
import json
import os
import random
import tempfile
import warnings
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
from consilience.exceptions import ConsilienceError
from consilience.tables.files import read_table
from consilience.tables.reading import as_the_space_reads
from fuzzing import mutators

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


@dataclass(frozen=True)
class Target:
    """Seeds, a change, and what is done with the outcome; `judge` raises where something is wrong."""

    seeds: Callable[[], list[bytes]]
    change: Callable[[bytes, random.Random], bytes]
    judge: Callable[[bytes], None]
    weight: int = 1


# --- what must hold -------------------------------------------------------------------------------------


def check_labels(space: cs.LabelSpace, votes: Any) -> None:
    """Fit, label and write: one label per row, in order, finite, confidence in [0, 1], none lost."""
    model = cs.LabelModel(space).fit(votes)
    check_model(model, votes)


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
        votes = as_the_space_reads(votes, guess.space, name)
        check_labels(guess.space, votes)

    return judge


def _coco(data: bytes) -> None:
    path = _file("c.json", data)
    read = cs.tables.read_coco({"ann": path, "bob": json.loads(COCO), "cleo": path})
    check_labels(read.space, read.votes)


def _label_studio(data: bytes) -> None:
    export = cs.tables.read_label_studio(_file("s.json", data))
    if export.space is not None and export.kind != "ranker":
        check_labels(export.space, export.votes)


def _conllu(data: bytes) -> None:
    path = _file("t.conllu", data)
    cs.tables.read_conllu({"ann": path, "bob": _file("u.conllu", CONLLU)})


def _preflib(data: bytes) -> None:
    profile = cs.Rankings.read_preflib(data.decode(errors="replace"))
    assert profile.counts.dtype == np.int64
    assert len(profile.positions) == len(profile.counts)


def _judges(data: bytes) -> None:
    read = cs.tables.read_judges(_file("j.jsonl", data))
    labels = read.votes.labels[read.votes.observed]
    assert labels.dtype.kind != "f" or np.isfinite(labels).all(), "a reply became infinite or NaN"


def _pairs(data: bytes) -> None:
    votes = cs.tables.read_preferences(_file("p.jsonl", data))
    assert votes.observed.any() or votes.n_items >= 0


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


def _change_model(data: bytes, rng: random.Random) -> bytes:
    """Return a model file with a changed header, a changed or exchanged array, or other bytes."""
    kind, content = data.split(b"\n", 1)
    if rng.random() < 0.15:
        return (
            kind + b"\n" + mutators.of_bytes(content, rng) if rng.random() < 0.5 else kind + b"\n" + _flip(content, rng)
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    names = [name for name in arrays if name != "header.json"]
    match rng.randrange(3):
        case 0:
            header = json.loads(arrays["header.json"].tobytes())
            text = json.dumps(mutators.of_document(header, rng))
            arrays["header.json"] = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        case 1:
            name = rng.choice(names)
            arrays[name] = mutators.of_numbers(arrays[name], rng)
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
    belief = model.predict(votes)
    assert len(belief) == len(votes)
    confidence = model.confidence(votes)
    assert ((confidence >= 0) & (confidence <= 1)).all(), f"confidence {confidence.tolist()}"
    repr(model.sources_)


# --- numbers in votes -----------------------------------------------------------------------------------


def _number_seeds() -> list[bytes]:
    return [json.dumps({"kind": kind, "seed": 0}).encode() for kind in SPACES]


def _change_numbers(data: bytes, rng: random.Random) -> bytes:
    return json.dumps({**json.loads(data), "seed": rng.randrange(2**40)}).encode()


def _numbers(data: bytes) -> None:
    """Change the votes of a label type: numbers nobody expects, other cells, fewer rows, no votes."""
    try:
        wanted = json.loads(data)
        kind, rng = wanted["kind"], random.Random(wanted["seed"])
        votes = sample(kind)
    except (ValueError, KeyError, TypeError):
        return
    rows = rng.sample(range(len(votes)), rng.choice((1, 2, 5, 12)))
    cells = votes.labels[rows][:, : rng.choice((1, 2, 3, 4))].copy()
    seen = votes.observed[rows][:, : cells.shape[1]]
    objects = np.empty(cells.shape[:2], dtype=object)
    for place in np.ndindex(objects.shape):
        objects[place] = cells[place] if seen[place] else None
    for _ in range(rng.choice((0, 1, 1, 2, 6))):
        place = rng.randrange(objects.shape[0]), rng.randrange(objects.shape[1])
        cell = objects[place]
        if isinstance(cell, np.ndarray) and cell.dtype.kind in "iuf" and rng.random() < 0.7:
            cell = mutators.of_numbers(cell, rng)
        elif isinstance(cell, (int, float, np.number)) and rng.random() < 0.7:
            cell = rng.choice((1e300, -1e-300, 1e60, -cell, cell * 1e5, 10**30, np.inf, 0, np.nan))
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
    gold = (
        [None if rng.random() < 0.5 else objects[row, 0] for row in range(len(objects))] if rng.random() < 0.3 else None
    )
    table = cs.Votes.from_array(objects)
    method = rng.choice(("auto", "auto", "majority", rng.choice(space.law.methods)))
    check_model(cs.LabelModel(space, method=method).fit(table, gold), table)


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


def _command(data: bytes) -> None:
    words = data.decode(errors="replace").split("\x1f")
    if not words or words[0] not in ("label", "inspect", "report", "predict", "convert", "compare"):
        return
    for name, content in (("v.csv", CSV), ("s.csv", SCORES), ("l.csv", LONG)):
        _file(name, content)
    back = os.getcwd()
    os.chdir(folder())
    try:
        before = {path: path.read_bytes() for path in Path().glob("*.csv")}
        ran = CliRunner().invoke(main, words)
        assert "This is a bug" not in ran.output, ran.output[-300:]
        assert ran.exception is None or isinstance(ran.exception, SystemExit), repr(ran.exception)
        assert ran.exit_code in (0, 1, 2), ran.exit_code
        assert "--force" in words or all(path.read_bytes() == content for path, content in before.items())
        assert not list(Path().rglob(".*.tmp")), "a temporary file was left"
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
    "csv": Target(lambda: [CSV, SCORES, LONG], mutators.of_text, _votes("v.csv"), 4),
    "jsonl": Target(lambda: [JSONL, RECORDS], mutators.of_json, _votes("v.jsonl"), 4),
    "parquet": Target(lambda: _binary_seeds("parquet"), mutators.of_bytes, _votes("v.parquet"), 2),
    "arrow": Target(lambda: _binary_seeds("arrow"), mutators.of_bytes, _votes("v.arrow"), 2),
    "coco": Target(lambda: [COCO], mutators.of_json, _coco, 3),
    "label-studio": Target(lambda: STUDIO, mutators.of_json, _label_studio, 3),
    "conllu": Target(lambda: [CONLLU], mutators.of_text, _conllu, 4),
    "preflib": Target(lambda: [PREFLIB], mutators.of_text, _preflib, 4),
    "judges": Target(lambda: [JUDGES, JUDGES.replace(b"reply", b"label")], mutators.of_json, _judges, 3),
    "preferences": Target(lambda: [PAIRS], mutators.of_json, _pairs, 3),
    "model": Target(_model_seeds, _change_model, _model, 8),
    "numbers": Target(_number_seeds, _change_numbers, _numbers, 4),
    "command": Target(lambda: [one.replace(" ", "\x1f").encode() for one in COMMANDS], _change_command, _command),
}


def judge(name: str, data: bytes) -> None:
    """Raise unless the outcome of an input is good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name].judge(data)
        except ConsilienceError:
            return


__all__ = ["SPACES", "TARGETS", "check_labels", "check_model", "judge", "sample"]
