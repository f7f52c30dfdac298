"""Votes in files, one per kind of label, for the page to label on."""

import csv
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consilience.tables.cells import spelled_out
from consilience.tables.vote_tables import order_as_text
from report_examples import EXAMPLES

__all__ = ["CASES", "ReviewCase", "write_case"]


@dataclass(frozen=True)
class ReviewCase:
    """How to read the votes of an example, what items show, and how a person answers on the page."""

    example: str
    space: str
    answer: Callable[[Any], None]
    text: bool = False
    picture: bool = False


def _press_one(page: Any) -> None:
    page.keyboard.press("1")


def _type_score(page: Any) -> None:
    page.get_by_label("Score as a number").fill("61.5")
    page.keyboard.press("Enter")


def _move_and_save(page: Any) -> None:
    page.locator(".order li").nth(1).get_by_role("button").first.click()
    page.get_by_role("button", name="Save answer").click()


def _mark_text(page: Any) -> None:
    page.evaluate(
        """() => { const text = document.querySelector('#about .text').firstChild;
        const range = document.createRange(); range.setStart(text, 3); range.setEnd(text, 9);
        getSelection().removeAllRanges(); getSelection().addRange(range); }"""
    )
    page.keyboard.press("m")
    page.get_by_role("button", name="Save answer").click()


def _draw_box(page: Any) -> None:
    page.wait_for_function("() => document.querySelector('.drawing img').naturalWidth > 0")
    place = page.locator(".drawing svg").bounding_box()
    page.mouse.move(place["x"] + 10, place["y"] + 10)
    page.mouse.down()
    page.mouse.move(place["x"] + 60, place["y"] + 40)
    page.mouse.up()
    page.get_by_role("button", name="Save answer").click()


CASES = {
    "classes": ReviewCase("classes", "classes", _press_one),
    "scores": ReviewCase("scores", "scores", _type_score),
    "rankings": ReviewCase("rankings", "rankings", _move_and_save),
    "preferences": ReviewCase("preferences", "preferences", _press_one),
    "spans": ReviewCase("spans", "spans", _mark_text, text=True),
    "boxes": ReviewCase("boxes", "boxes:car,person", _draw_box, picture=True),
}


def png(width: int, height: int) -> bytes:
    """Return a gray picture."""

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([180] * width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", head) + block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")


def _cell(name: str, label: Any) -> Any:
    """Return a label as a CSV file holds it."""
    if name == "rankings":
        return order_as_text(label)
    plain = label.tolist() if isinstance(label, np.ndarray) else label
    return json.dumps(plain) if isinstance(plain, list) else plain


def write_case(name: str, folder: Path) -> list[str]:
    """Write votes, and what items show, and return the arguments of the command."""
    case = CASES[name]
    example = EXAMPLES[case.example]()
    votes = example.votes[:60]
    ids = [f"x{row}" for row in range(len(votes))]
    cells = np.full(votes.observed.shape, None, dtype=object)
    if name == "preferences":  # which of two is better, as a table says it
        orders = np.random.default_rng(0).random(cells.shape) < 0.7
        cells[:] = np.where(orders, "tea > milk", "milk > tea")
    else:
        table = spelled_out(votes.labels, votes.observed, example.space, votes.spelling)
        cells[votes.observed] = [_cell(name, label) for label in table[votes.observed]]
    with (folder / "votes.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["item", *votes.sources], *([item, *row] for item, row in zip(ids, cells, strict=True))]
        )
    arguments = ["review", "votes.csv", "--space", case.space, "--no-browser", "--labels", "30"]
    if case.text or case.picture:
        shown = [f"{item}.png" if case.picture else f"Text <b>of</b> {item} 😀 " + "word " * 400 for item in ids]
        lines = ["item,about", *(",".join(pair) for pair in zip(ids, shown, strict=True))]
        (folder / "items.csv").write_text("\n".join(lines), encoding="utf-8")
        arguments += ["--show", "items.csv"]
    if case.picture:
        for item in ids:
            (folder / f"{item}.png").write_bytes(png(1000, 800))
    return arguments
