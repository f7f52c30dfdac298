"""Changes to inputs: of bytes, of JSON, of arrays and of tables of votes. All draw from one generator."""

import copy
import json
import random
from typing import Any

import numpy as np

#: What breaks readers: ends of ranges, signs of other formats, words that mean something elsewhere.
TOKENS = [
    *("", " ", ",", ";", "\t", "\n", "\r\n", '"', "'", "\\", "\0", "\x1e", "\ufeff", "é", "\U0001f600"),
    *("{", "}", "[", "]", "[[" * 600, "9" * 25, "9" * 400, '"\\ud800"', "a > b = c", "1,2,{3", "Score: 7/5", "[2]>[1]"),
    *[
        "0",
        "-1",
        "-2",
        "1e300",
        "-1e308",
        "1e-320",
        "inf",
        "-inf",
        "nan",
        "NaN",
        "None",
        "null",
        "true",
        "NA",
        "=1+1",
        "<script>",
        "../x",
        "[[A]]",
    ],
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, -2, 1, 3.5, 1e300, -1e-300, float("inf"), float("nan"), 2**63, 10**30),
    *("", "a", "nan", "\ud800", "x" * 300, [], {}, [1], [[]], [None], ["a", "b"], [[1, 2], [3]]),
    *({"a": None}, {"id": []}, {"__array__": "x"}, {"__tuple__": 3}),
]


def of_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four changes: flipped, cut, doubled, moved, or a token put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(out) + 1)
        length = rng.choice((1, 1, 2, 4, 16, 64))
        match rng.randrange(6):
            case 0:
                out[place : place + length] = b""
            case 1:
                out[place:place] = rng.choice(TOKENS).encode("utf-8", "surrogatepass")
            case 2:
                out[place : place + length] = bytes(rng.randrange(256) for _ in range(length))
            case 3:
                out[place:place] = out[place : place + length] * rng.choice((1, 2, 30))
            case 4:
                del out[place:]
            case _ if out:
                out[place % len(out)] ^= 1 << rng.randrange(8)
    return bytes(out[:20_000])


def of_text(data: bytes, rng: random.Random) -> bytes:
    """Return text with cells exchanged for tokens, lines moved, or bytes changed."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        match rng.randrange(4):
            case 0:
                row = rng.randrange(len(lines))
                sign = next((one for one in (b",", b"\t", b";") if one in lines[row]), b" ")
                cells = lines[row].split(sign)
                cells[rng.randrange(len(cells))] = rng.choice(TOKENS).encode("utf-8", "surrogatepass")
                lines[row] = sign.join(cells)
            case 1:
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            case 2:
                del lines[rng.randrange(len(lines))]
                lines = lines or [b""]
            case _:
                return of_bytes(b"\n".join(lines), rng)
    return b"\n".join(lines)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        found += _places(entry, (*path, key))
    return found


def of_document(document: Any, rng: random.Random) -> Any:
    """Return a JSON value with one or two places exchanged, removed, doubled or renamed; the original is left alone."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.randint(1, 2)):
        places = _places(document)
        path = rng.choice(places)
        if not path:
            if rng.random() < 0.9:
                continue
            return copy.deepcopy(rng.choice(VALUES))
        owner = document
        for key in path[:-1]:
            owner = owner[key]
        last = path[-1]
        match rng.randrange(5):
            case 0:
                del owner[last]
            case 1 if isinstance(owner, list):
                owner.insert(last, owner[last])
            case 1 | 2:
                other = document
                for key in rng.choice(places):
                    other = other[key]
                owner[last] = json.loads(json.dumps(other))
            case _ if isinstance(owner[last], (int, float)) and rng.random() < 0.5:
                close = (-owner[last], owner[last] * 1e200, owner[last] + 1, 0, str(owner[last]), 10**7, any_size(rng))
                owner[last] = rng.choice(close)
            case _:
                owner[last] = copy.deepcopy(rng.choice(VALUES))
    return document


def of_json(data: bytes, rng: random.Random) -> bytes:
    """Return JSON, or JSON Lines, with a value changed; sometimes bytes."""
    if rng.random() < 0.2:
        return of_bytes(data, rng)
    try:
        lines = [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return of_bytes(data, rng)
    lines[rng.randrange(len(lines))] = of_document(rng.choice(lines), rng)
    return "\n".join(json.dumps(line) for line in lines).encode()


def any_size(rng: random.Random) -> float:
    """Return a number that is likely to be allowed by itself: an end of a range, or one of any magnitude."""
    if rng.random() < 0.4:
        return rng.choice((0.0, 1.0, -1.0, 2.0, 0.5, 1e-12, 1.0 - 1e-12, 1e-300, 5e-324, 1e-75, 1e61, 1e130, 700.0))
    return rng.choice((1, 1, -1)) * 10.0 ** rng.uniform(*rng.choice(((-2, 2), (-20, 20), (-130, 130))))


def within_ranges(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return an array of the same type and shape with other numbers; square ones are mostly kept symmetric."""
    out = np.array(array)
    flat = out.reshape(-1)
    if not out.size or out.dtype.kind not in "fiu":
        return out
    if out.dtype.kind != "f":
        flat[rng.randrange(out.size)] = rng.choice((0, 1, 7, 2**31, 2**62))
        return out
    with np.errstate(all="ignore"):
        match rng.randrange(4):
            case 0:
                flat[:] = any_size(rng)
            case 1:
                flat[:] = [any_size(rng) for _ in range(out.size)]
            case 2:
                flat *= any_size(rng)
            case _:
                for _ in range(rng.choice((1, 1, 2, 4))):
                    flat[rng.randrange(out.size)] = any_size(rng)
        if out.ndim > 1 and out.shape[-1] == out.shape[-2] and rng.random() < 0.7:
            out = (out + np.swapaxes(out, -1, -2)) / 2.0
    return out


def of_numbers(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return an array with numbers nobody expects, another type, or another shape."""
    out = np.array(array)
    match rng.randrange(7):
        case 0 if out.size:
            out = out.astype(np.float64) if rng.random() < 0.7 else out
            with np.errstate(all="ignore"):
                numbers = (0, -1, 1e300, -1e-300, np.inf, np.nan, 1e18, 0.5)
                out.reshape(-1)[rng.randrange(out.size)] = np.array(rng.choice(numbers)).astype(out.dtype)
        case 1:
            with np.errstate(all="ignore"):
                out = out.astype(rng.choice(("float32", "int64", "uint8", "bool", "U8", "complex64", "float64")))
        case 2 if out.ndim:
            out = np.concatenate([out, out[:1]], axis=0)
        case 3 if out.ndim:
            out = out[: rng.randrange(len(out) + 1)]
        case 4:
            out = out.reshape(-1) if rng.random() < 0.5 else out[None]
        case 5:
            with np.errstate(all="ignore"):
                out = (out * rng.choice((-1.0, 1e200, 1e-200, 1e5, 0.0))).astype(np.float64)
        case _ if out.ndim > 1:
            out = np.swapaxes(out, 0, 1)
    return out
