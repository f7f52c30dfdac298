"""The page to label on, in a real browser: a whole round, killed in the middle, for each kind of input."""

import csv
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.review.review_cases import CASES, write_case

import consilience as cs
from consilience.review import GoldFile, Session, serve
from consilience.review.server import listen, new_token
from report_examples import EXAMPLES

START_SECONDS = 120


class Program:
    """The command, running, and the address that it printed."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "consilience", *arguments]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        assert ready, "the program did not start"
        self.address = self.process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", self.address), self.address

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    running: list[Program] = []

    def started(arguments: list[str]) -> Program:
        running.append(Program(tmp_path, arguments))
        return running[-1]

    yield started
    for program in running:
        if program.process.poll() is None:
            program.kill()


def opened(browser: Any, address: str, **options: Any) -> tuple[Any, list[str]]:
    page = browser.new_page(**options)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_function("() => document.querySelector('#answer').children.length > 0")
    return page, complaints


def label(page: Any, name: str, count: int) -> list[str]:
    """Answer so many items, and return their names."""
    names = []
    for _ in range(count):
        item = page.locator("#name").inner_text()
        CASES[name].answer(page)
        page.wait_for_function("(old) => document.querySelector('#name').textContent !== old", arg=item)
        assert "error" not in (page.locator("#message").get_attribute("class") or "")
        names.append(item)
    return names


def width(page: Any) -> float:
    """Return the width of the interval, once everything that was answered has been learned from."""
    page.wait_for_function(
        """() => document.querySelector('#interval')
        && !document.querySelector('#changed').textContent.includes('Learning')"""
    )
    low, high = re.findall(r"([\d.e+-]+|\?)%?(?: to|$)", page.locator("#interval").inner_text())
    return float("inf") if high == "?" else float(high) - float(low)


def answers(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "name", [name if name == "classes" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_round_of_labeling_survives_being_killed(name, browser, start, tmp_path):
    arguments = write_case(name, tmp_path)
    program = start(arguments)
    page, complaints = opened(browser, program.address, viewport={"width": 1440, "height": 900})
    first = label(page, name, 6)
    time.sleep(0.5)
    wide = width(page)
    first += label(page, name, 6)
    page.locator("#undo").click()
    page.wait_for_function("(old) => document.querySelector('#name').textContent === old", arg=first[-1])
    program.kill()  # without a chance to write anything
    gold = tmp_path / "review" / "gold.csv"
    assert [line["item"] for line in answers(gold)] == [*first, first[-1]]
    assert [line["status"] for line in answers(gold)] == ["answered"] * 12 + ["undone"]
    page.close()
    page, complaints = opened(browser, start(arguments).address, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    second = label(page, name, 9)
    assert not set(second) & set(first[:-1])  # nothing is asked twice
    assert first[-1] in second
    page.wait_for_function("() => document.querySelector('#progress').textContent.startsWith('20 of')")
    time.sleep(0.5)
    assert width(page) < wide
    page.get_by_role("button", name="Finish").click()
    page.wait_for_function("() => document.querySelector('#message').textContent.startsWith('Wrote')", timeout=60_000)
    assert complaints == []
    kept = {line["item"]: line for line in answers(gold) if line["status"] == "answered"}
    assert set(kept) == set(first) | set(second)
    assert all(line["label"] for line in kept.values())
    folder = tmp_path / "review"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(answers(folder / "labels.csv")) == 60
    assert answers(folder / "audit.csv")[0]["about"] == "labels"
    page.close()


def test_two_tabs_get_different_items_and_everything_works_by_keyboard_in_the_dark(browser, start, tmp_path):
    program = start(write_case("classes", tmp_path))
    page, complaints = opened(browser, program.address, color_scheme="dark")
    other, _ = opened(browser, program.address)
    names = {one.locator("#name").inner_text() for one in (page, other)}
    assert len(names) == 2
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 30)"
    for key in ("s", "c", "1", "u"):
        before = page.locator("#name").inner_text()
        page.keyboard.press(key)
        page.wait_for_function("(old) => document.querySelector('#name').textContent !== old", arg=before)
    statuses = [line["status"] for line in answers(tmp_path / "review" / "gold.csv")]
    assert statuses == ["skipped", "cannot tell", "answered", "undone"]
    # What can be reached by the tab key has a name that a screen reader can say.
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea')]
        .filter((one) => !one.textContent.trim() && !one.ariaLabel && !(one.labels && one.labels.length)).length"""
    )
    assert unnamed == 0
    assert complaints == []
    page.close()
    other.close()


def check_two_tags(page: Any) -> None:
    for key in "12":
        page.keyboard.press(key)
    page.get_by_role("button", name="Save answer").click()


def start_from_a_proposal(page: Any) -> None:
    page.keyboard.press("1")
    page.get_by_role("button", name="Save answer").click()


def hang_each_word_on_the_one_before(page: Any) -> None:
    words = page.locator(".tokens button")
    for place in range(words.count()):
        words.nth(place).click()
        words.nth(max(place - 1, 0)).click()
    page.get_by_role("button", name="Save answer").click()


def press_one(page: Any) -> None:
    page.keyboard.press("1")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize(
    ("name", "answer", "kept"),
    [
        ("tags", check_two_tags, lambda one, votes: one == '["news", "sport"]'),
        ("texts", start_from_a_proposal, lambda one, votes: one == votes[0]),
        ("trees", hang_each_word_on_the_one_before, lambda one, votes: one == str(list(range(len(votes[0]))))),
        ("taxonomy", press_one, lambda one, votes: one == "goods"),
        ("sequences", press_one, lambda one, votes: one.count('"') == 2 * len(votes[0])),
    ],
)
def test_every_other_input_gives_the_label_that_was_meant(name, answer, kept, browser, tmp_path):
    example = EXAMPLES[name]()
    model = cs.LabelModel(example.space, method="majority").fit(example.votes)
    session = Session(model, example.votes, GoldFile(tmp_path / "gold.csv"), 10)
    place, token = listen(), new_token()
    address = f"http://127.0.0.1:{place.getsockname()[1]}/{token}/"
    serving = {"args": (session, tmp_path, place, token), "kwargs": {"open_browser": False}}
    threading.Thread(target=serve, daemon=True, **serving).start()
    page, complaints = opened(browser, address, viewport={"width": 390, "height": 800})
    for _ in range(3):
        item = page.locator("#name").inner_text()
        answer(page)
        page.wait_for_function("(old) => document.querySelector('#name').textContent !== old", arg=item)
        row = session.rows[item]
        assert kept(session.gold.records()[-1]["label"], example.votes.labels[row][example.votes.observed[row]])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert complaints == []
    page.close()
