"""A local page to label items on: it asks for the items that matter, and shows live how good the labels are."""

from typing import TYPE_CHECKING

from consilience.lazy import on_first_use

if TYPE_CHECKING:
    from consilience.review.gold_file import GoldFile as GoldFile
    from consilience.review.server import make_app as make_app
    from consilience.review.server import serve as serve
    from consilience.review.session import Session as Session

__getattr__, __dir__, __all__ = on_first_use(
    __name__, {"gold_file": "GoldFile", "server": "make_app serve", "session": "Session"}
)
