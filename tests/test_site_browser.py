"""The site in a real browser, on a phone and a desk, light and dark: no error, no request elsewhere, ways lead on."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click
import pytest
from tests.report.test_report_browser import browser, png_pixels
from tests.test_docs import ROOT

from consilience.cli import main

__all__ = ["browser"]  # a fixture

SITE = ROOT / "build" / "site"
PAGES = [
    "index.html",  # leads to the front page
    "docs/tutorials/labeling_functions.html",
    "docs/tutorials/check_by_hand.html",
    "docs/gallery/scores.html",
    "docs/explanation/model.html",
    "docs/reference/api/consilience.LabelModel.html",
    "docs/reference/command_line.html",
    "experiments/results/never_worse.html",
]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "docs" / "index.html").exists():
        pytest.skip("SITE NOT TESTED IN A BROWSER: it is not built. Run make docs.")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_open_fit_and_lead_on(address, browser, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert png_pixels(page.screenshot()).std() > 5.0, name
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
        assert (sum(shade) > 600) == (scheme == "light"), name
    page.goto(f"{address}/docs/explanation/model.html")
    assert page.locator("math").count() > 5
    page.goto(f"{address}/docs/reference/command_line.html")
    for name in main.list_commands(click.Context(main)):
        assert page.locator(f"#consilience-{name}").get_by_text("--help").count() > 0, name

    # From the front page to the first tutorial, as a reader goes.
    page.goto(f"{address}/docs/index.html")
    if width < 500:
        page.locator("button.primary-toggle").click()
        page.locator("dialog a.nav-link, .bd-sidebar-primary a.nav-link").filter(has_text="Tutorials").first.click()
    else:
        page.locator("header a.nav-link").filter(has_text="Tutorials").first.click()
    page.wait_for_url("**/tutorials/index.html")
    page.locator("article a", has_text="From labeling functions to a classifier").first.click()
    page.wait_for_url("**/labeling_functions.html")

    page.goto(f"{address}/search.html?q=suggest")
    page.wait_for_selector("#search-results li")
    assert page.locator("#search-results li a").count() >= 2
    assert [one for one in requests if not one.startswith((address, "data:"))] == []
    assert complaints == []
    page.close()


def test_every_thumbnail_of_the_front_page_leads_to_its_example(address, browser):
    page = browser.new_page()
    page.goto(f"{address}/docs/index.html")
    links = page.locator(".sphx-glr-thumbcontainer a").evaluate_all("links => links.map(link => link.href)")
    assert len(set(links)) == 19
    missing = page.evaluate("[...document.images].filter(image => image.complete && !image.naturalWidth).length")
    assert missing == 0
    assert all(page.request.get(link).ok for link in set(links))
    page.close()
