"""The page to label on is tried in the browser of the report, or skipped as loudly."""

from tests.report.test_report_browser import browser

__all__ = ["browser"]
