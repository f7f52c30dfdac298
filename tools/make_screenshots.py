"""Make the pictures of docs/how_to/report.md: open the report of every label type in a browser, keep one card of each.

Run without arguments from anywhere; needs playwright and a browser of the Chromium family.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import consilience as cs
from report_examples import EXAMPLES, fitted

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
TITLES = {"taxonomy": "Where products belong in a shop"}
#: Of this label type the page itself is shown, too.
WHOLE = "taxonomy"
WIDTH = 1060


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
        browser.close()


def _card(browser: Any, report: Path, target: Path) -> None:
    """Keep the picture of one contested item: of the first ten that with the most votes."""
    page = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme="light")
    page.goto(report.as_uri())
    rows = [card.locator(".votes > tbody > tr").count() for card in page.locator("article").all()[:10]]
    page.locator("article").nth(rows.index(max(rows))).screenshot(path=target)
    page.close()


def _top(browser: Any, report: Path, scheme: str, target: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, device_scale_factor=0.75)
    page.goto(report.as_uri())
    end = page.locator("#items").bounding_box()["y"] - 10
    page.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": end})
    page.close()


if __name__ == "__main__":
    main()
