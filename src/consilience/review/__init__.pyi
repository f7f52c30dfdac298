from consilience.review.gold_file import GoldFile as GoldFile
from consilience.review.server import make_app as make_app
from consilience.review.server import serve as serve
from consilience.review.session import Session as Session
