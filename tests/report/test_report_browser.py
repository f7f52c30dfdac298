"""The report in a real browser: it opens from disk without a request or an error, sorts, filters and prints."""

import os
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consilience as cs
from report_examples import EXAMPLES

#: Tables, pictures, arcs and records; the other label types have the same parts, and are looked at by `make test-all`.
QUICK = ("classes", "scores", "trees", "records")
BAD = "</script><script>window.hit = 1</script>"
IMAGE = "<img src=x onerror='window.hit = 2'>"


def browser_path() -> str | None:
    """Return a browser of the Chromium family that is installed here."""
    named = os.environ.get("CONSILIENCE_BROWSER")
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return named or next(filter(None, found), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = browser_path()
    if path is None:
        pytest.skip("NOT TESTED IN A BROWSER: no chromium found. apt-get install chromium, or set CONSILIENCE_BROWSER.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("NOT TESTED IN A BROWSER: playwright is missing. pip install playwright.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


class Visit:
    """A page that was opened from disk, with all that it said and asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state("load")

    def column(self, table: str, number: int) -> list[str]:
        """Return the texts of a column of a table, of the rows that can be seen."""
        rows = self.page.locator(f"{table} tbody tr:visible")
        return [row.locator("td").nth(number).inner_text().strip() for row in rows.all()]

    def close(self, complaints: int = 0) -> None:
        """Close the page, which has not complained."""
        assert len(self.complaints) == complaints, self.complaints
        self.page.close()


def png_pixels(data: bytes) -> Any:
    """Return the filtered bytes of the pixels of a PNG file, one row per line: enough to tell blank from drawn."""
    width, height = struct.unpack(">II", data[16:24])
    body, place = b"", 8
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place : place + 8])
        body += data[place + 8 : place + 8 + size] if kind == b"IDAT" else b""
        place += size + 12
    raw = np.frombuffer(zlib.decompress(body), dtype=np.uint8).reshape(height, -1)
    assert raw.shape[1] > width
    return raw[:, 1:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def write(folder, pages):
    """Return a function that writes the report of an example."""

    def written(name: str) -> Path:
        path = folder / f"{name}.html"
        path.write_text(pages(name), encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES]
)
def test_a_report_opens_without_an_error_or_a_request_and_is_not_blank(browser, write, name):
    path = write(name)
    visit = Visit(browser, path, viewport={"width": 1000, "height": 1200})
    assert visit.requests == [path.as_uri()]
    assert visit.page.title() == f"About {name}"
    assert png_pixels(visit.page.screenshot()).std() > 5.0
    card = visit.page.locator("article").first
    assert card.is_visible()
    assert png_pixels(card.screenshot()).std() > 5.0
    # Verdict and findings are seen at once, and nothing sticks out to the right, on a screen as on a telephone.
    for width, height in ((1440, 900), (390, 844)):
        visit.page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.evaluate("scrollTo(0, 0)")
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
            assert visit.page.locator("#verdict").bounding_box()["y"] < height / 3
            findings = visit.page.locator("#findings h2").bounding_box()
            assert findings["y"] + findings["height"] < height
            assert png_pixels(visit.page.screenshot()).std() > 5.0
    assert visit.requests == [path.as_uri()]
    visit.close()


def test_the_slider_the_links_and_the_folded_items_work_by_keyboard(browser, write):
    visit = Visit(browser, write("classes"))
    page, kept = visit.page, visit.page.locator("#kept")
    assert re.match(r"0.80: keeps [\d.]+% of the items \(\d+\) at an expected accuracy of [\d.]+%", kept.inner_text())
    page.locator("#threshold").focus()
    page.keyboard.press("Home")
    assert "0.00: keeps 100% of the items (300)" in kept.inner_text()
    assert page.locator("article:visible").count() == 10
    page.locator("details.more summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("article:visible").count() == page.locator("article").count() > 10
    page.keyboard.press("Enter")
    last = page.locator("article").last.get_attribute("id")
    page.evaluate("name => { location.hash = name }", last)
    assert page.locator("article").last.is_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download sources.csv").click()
    assert Path(download.value.path()).read_text().startswith("source,votes,coverage,error_rate,")
    visit.close()


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_it_round(browser, write):
    visit = Visit(browser, write("classes"))
    table = "#sources-table"
    names = visit.column(table, 0)
    visit.page.get_by_role("button", name="source", exact=True).click()
    assert visit.column(table, 0) == sorted(names) != names
    visit.page.get_by_role("button", name="source", exact=True).click()
    assert visit.column(table, 0) == sorted(names, reverse=True)
    visit.page.locator(f"{table} th", has_text="votes").get_by_role("button").click()
    counts = [int(text.replace(",", "")) for text in visit.column(table, 4)]
    assert counts == sorted(counts)
    assert visit.page.locator(f"{table} th[aria-sort=ascending]").inner_text().startswith("votes")
    visit.page.locator(f"{table} th", has_text="error rate").get_by_role("button").click()
    assert visit.column(table, 0)[0] == "keywords"
    visit.close()


def test_sources_and_items_can_be_filtered(browser, write):
    visit = Visit(browser, write("taxonomy"))
    everyone = visit.column("#sources-table", 0)
    box = visit.page.locator("#sources input[type=search]")
    box.fill("SHOP")
    assert sorted(visit.column("#sources-table", 0)) == ["shop_a", "shop_b"]
    assert visit.page.locator("#sources output").inner_text() == "2 of 7"
    box.fill("")
    visit.page.get_by_label("with findings only").check()
    assert sorted(visit.column("#sources-table", 0)) == ["shop_a", "shop_b"]
    visit.page.get_by_label("with findings only").uncheck()
    assert visit.column("#sources-table", 0) == everyone
    cards = visit.page.locator("article:visible")
    before = cards.count()
    name = cards.nth(3).locator("h4").inner_text()
    visit.page.locator("#items input[type=search]").fill(name)
    assert cards.count() < before
    assert name in cards.first.inner_text()
    visit.close()


def test_script_in_user_text_is_shown_and_not_run(browser, folder):
    rows = [["plain", IMAGE, IMAGE], [IMAGE, IMAGE, BAD], [BAD, BAD, BAD]] * 8
    votes = cs.Votes.from_array(
        np.array(rows, dtype=object), sources=[BAD, IMAGE, "ann"], items=[f"{index} {BAD}" for index in range(24)]
    )
    path = folder / "hostile.html"
    model = cs.LabelModel(cs.Classes(["plain", IMAGE, BAD]), method="majority").fit(votes)
    cs.write_report(path, model, votes, ["plain"] * 24, title=BAD)
    visit = Visit(browser, path)
    assert visit.page.evaluate("window.hit") is None
    assert visit.requests == [path.as_uri()]
    assert visit.page.locator("h1").inner_text() == BAD
    assert sorted(visit.column("#sources-table", 0)) == sorted([BAD, IMAGE, "ann"])
    card = visit.page.locator("article").first
    assert card.locator("h4").inner_text().endswith(BAD)
    assert IMAGE in card.inner_text()
    visit.page.get_by_role("button", name="source", exact=True).click()
    visit.page.locator("#items input[type=search]").fill(BAD)
    assert visit.page.evaluate("window.hit") is None
    visit.close()  # had something got through, the browser would have refused to run it, and said so


def test_a_script_that_is_not_ours_would_be_refused(browser, write, folder):
    page = write("classes").read_text(encoding="utf-8")
    path = folder / "broken_into.html"
    path.write_text(page.replace("</main>", "<script>window.hit = 1</script></main>"), encoding="utf-8")
    visit = Visit(browser, path)
    assert visit.page.evaluate("window.hit") is None
    assert "Content Security Policy" in visit.complaints[0]
    visit.close(complaints=1)


def test_dark_is_dark_and_paper_is_white(browser, write):
    background = "getComputedStyle(document.body).backgroundColor"
    shades = {}
    for scheme in ("light", "dark"):
        visit = Visit(browser, write("scores"), color_scheme=scheme, viewport={"width": 1000, "height": 800})
        shades[scheme] = visit.page.evaluate(background)
        assert png_pixels(visit.page.screenshot()).std() > 5.0
        if scheme == "dark":
            visit.page.emulate_media(media="print", color_scheme="dark")
            shades["paper"] = visit.page.evaluate(background)
            assert not visit.page.locator("nav").is_visible()
            assert not visit.page.locator("#sources input").first.is_visible()
            assert visit.page.locator("#sources-table").is_visible()
            assert visit.page.pdf().startswith(b"%PDF")
        visit.close()
    assert shades == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)", "paper": "rgb(255, 255, 255)"}
