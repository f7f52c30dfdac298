"""Labels as HTML: one function per label type, found by its class, so that a new label type is one function here.

`label_html` shows one label; where a second one is given, it marks what differs. `item_picture` shows all votes on an
item at once, for label types in which that says more than a list. A label type without either is shown as text.
"""

from consilience.report.labels import discrete, elements, points, records, texts, trees  # they register what they show
from consilience.report.labels.base import chip, item_picture, label_html, plain_text

__all__ = [
    "chip",
    "discrete",
    "elements",
    "item_picture",
    "label_html",
    "plain_text",
    "points",
    "records",
    "texts",
    "trees",
]
