"""What the tests of the report share."""

import pytest

from consilience.report import report_html
from report_examples import EXAMPLES, fitted


@pytest.fixture(scope="session")
def pages():
    """Return a function that makes the report of an example, once."""
    made = {}

    def page(name: str) -> str:
        if name not in made:
            example = EXAMPLES[name]()
            made[name] = report_html(fitted(example), example.votes, example.gold, title=f"About {name}")
        return made[name]

    return page
