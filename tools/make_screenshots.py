"""Make the pictures of the pages about the report and about the page to label on, in a browser.

Of the report of every label type one card is kept. Run without arguments from anywhere; needs playwright and a browser
of the Chromium family.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import consilience as cs
from consilience.review import GoldFile, Session, serve
from consilience.review.server import listen, new_token
from report_examples import EXAMPLES, fitted

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
TITLES = {"classes": "Topics of support tickets"}
#: Of this label type the page itself is shown, too.
WHOLE = "classes"
WIDTH = 1240
TICKETS = {
    "account": "I cannot change the e-mail address of my account.",
    "billing": "I was charged twice for March. Please send one of the two payments back.",
    "delivery": "My parcel was due on Monday and has not arrived.",
    "technical": "The app closes itself as soon as I open a picture.",
}


def main() -> None:
    """Write all pictures."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CONSILIENCE_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        sys.exit("No chromium was found. Install it, or set CONSILIENCE_BROWSER to its path.")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-lcd-text"])
        for name, make in EXAMPLES.items():
            example = make()
            report = Path(folder) / f"{name}.html"
            title = TITLES.get(name, name.replace("_", " ").capitalize())
            cs.write_report(report, fitted(example), example.votes, example.gold, title=title)
            _card(browser, report, IMAGES / f"report_{name}.png")
            if name == WHOLE:
                _top(browser, report, "light", IMAGES / "report.png")
                _top(browser, report, "dark", IMAGES / "report_dark.png")
        tickets = cs.datasets.load_tickets()
        truth = dict(zip(tickets.votes.items.tolist(), tickets.truth.tolist(), strict=True))
        shown = {item: {"text": TICKETS[topic]} for item, topic in truth.items()}
        _review(
            browser, Path(folder) / "tickets", tickets.space, tickets.votes, shown, "light", 1100, "review.png",
            lambda page, item: page.keyboard.press(str(list(TICKETS).index(truth[item]) + 1)),
        )  # fmt: skip
        jams = cs.datasets.load_guests()
        _review(
            browser, Path(folder) / "jams", jams.space, jams.votes, {}, "dark", 390, "review_phone.png",
            lambda page, item: page.get_by_role("button", name="Save answer").click(),
        )  # fmt: skip
        browser.close()


def _card(browser: Any, report: Path, target: Path) -> None:
    """Keep the picture of one contested item: of the first ten that with the most votes."""
    page = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme="light")
    page.goto(report.as_uri())
    page.evaluate("document.querySelector('header').style.position = 'static'")  # or it lies on a tall card
    rows = [card.locator(".votes > tbody > tr").count() for card in page.locator("article").all()[:10]]
    page.locator("article").nth(rows.index(max(rows))).screenshot(path=target)
    page.close()


def _top(browser: Any, report: Path, scheme: str, target: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, device_scale_factor=1)
    page.goto(report.as_uri())
    end = page.locator("#sources h3, #confidence").first.bounding_box()["y"] - 10
    page.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": end})
    page.close()


def _review(
    browser: Any,
    folder: Path,
    space: cs.LabelSpace,
    votes: cs.Votes,
    shown: Mapping[str, Mapping[str, str]],
    scheme: str,
    width: int,
    target: str,
    answer: Callable[[Any, str], None],
) -> None:
    """Answer 24 items on the page to label on, and keep its picture."""
    model = cs.LabelModel(space, random_state=0).fit(votes)
    session = Session(model, votes, GoldFile(folder / "gold.csv"), 100, shown=shown)
    place, token = listen(), new_token()
    address = f"http://127.0.0.1:{place.getsockname()[1]}/{token}/"
    serving = {"target": serve, "args": (session, folder, place, token), "kwargs": {"open_browser": False}}
    threading.Thread(**serving, daemon=True).start()
    page = browser.new_page(viewport={"width": width, "height": 780}, color_scheme=scheme)
    page.goto(address)
    for _ in range(24):
        page.wait_for_function("() => document.querySelector('#answer').children.length > 0")
        item = page.locator("#name").inner_text()
        answer(page, item)
        page.wait_for_function("(old) => document.querySelector('#name').textContent !== old", arg=item)
    page.wait_for_function(
        "() => document.querySelector('#interval')"
        " && !document.querySelector('#changed').textContent.includes('Learning')",
        timeout=120_000,
    )
    page.screenshot(path=IMAGES / target, full_page=True)
    page.close()


if __name__ == "__main__":
    main()
