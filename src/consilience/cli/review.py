"""`review`: a local page to label items on."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from pathlib import Path

import click

from consilience.cli import options
from consilience.cli.commands import Command
from consilience.cli.label import fit_votes
from consilience.cli.loading import load, shown_content, shown_file, without_shown
from consilience.cli.output import Output
from consilience.report.evidence import PICTURES
from consilience.review import GoldFile, Session, serve
from consilience.review.server import HOST, listen, new_token


@click.command(
    cls=Command,
    examples=(
        "consilience review votes.csv",
        "consilience review votes.csv --labels 50 --within 0.05 --gold my-gold.csv",
        "consilience review scores.csv --space scores --show human_rating",
    ),
)
@options.VOTES
@options.reading()
@click.option("--gold", type=options.FILE, help="File that answers are appended to.  [default: gold.csv in the folder]")
@click.option(
    "--show", metavar="COLUMNS_OR_FILE",
    help="What items are about: columns of VOTES (A,B), or a table with item ids and texts or image paths.",
)  # fmt: skip
@click.option("--labels", type=click.IntRange(min=1), default=100, show_default=True, help="How many items to ask for.")
@click.option(
    "--within", type=click.FloatRange(min=0.0, min_open=True), default=0.02, show_default=True, metavar="X",
    help="Precision that you want; the page says how many labels it needs.",
)  # fmt: skip
@click.option("--show-votes", is_flag=True, help="Show the votes before you answer; by default they come afterwards.")
@click.option("--person", default="", metavar="NAME", help="Name of the person who labels; stored with each answer.")
@click.option(
    "-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("review"),
    show_default=True, help="Folder for answers, labels, report and audit.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; any free one by default.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@options.SEED
@options.printing
def review(
    votes: Path,
    reading: options.Reading,
    gold: Path | None,
    show: str | None,
    labels: int,
    within: float,
    show_votes: bool,
    person: str,
    folder: Path,
    port: int,
    no_browser: bool,
    seed: int,
    output: Output,
) -> None:
    """Label items of VOTES by hand on a local page, and see how good the labels are.

    The page asks for items that were drawn at random, which say how good all labels are, and in turn for those that
    teach the model most. Every answer is on disk before the page goes on; stop at any time, and start again to
    continue. Only this machine can open the page, and only with the address that is printed.
    """
    reading = without_shown(votes, reading, show)
    loaded = load(votes, reading, output)
    content = shown_content(show, votes, reading, loaded.votes) or {}
    beside = shown_file(show, votes)[0].parent
    about = {
        str(item): {name: _shown(cells[row], beside) for name, cells in content.items() if cells[row] not in (None, "")}
        for row, item in enumerate(loaded.votes.items.tolist())
    }
    with closing(listen(port)) as place:
        with output.working("learning"):
            model = fit_votes(loaded.space, loaded.votes, pairs=list(loaded.votes.repeated_pairs), seed=seed)
            session = Session(
                model,
                loaded.votes,
                GoldFile(gold or folder / "gold.csv"),
                labels,
                shown=about,
                show_votes=show_votes,
                within=within,
                person=person,
            )
        token = new_token()
        address = f"http://{HOST}:{place.getsockname()[1]}/{token}/"
        found = not no_browser and _has_browser()
        if not found and not no_browser:
            output.note("no browser was found; open the address yourself")
        output.text(f"{address}\nanswers go to {session.gold.path}; Ctrl-C ends the page and loses nothing")
        output.document({"address": address, "gold": str(session.gold.path)})
        serve(session, folder, place, token, open_browser=found)


def _has_browser() -> bool:
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _shown(cell: object, folder: Path) -> str | Path:
    text = str(cell)
    path = folder / text
    return path if Path(text).suffix.lower() in PICTURES and path.is_file() else text
