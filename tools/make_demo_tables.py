"""Make the small tables that `consilience demo --tables` writes, the same bytes every time.

Run as ``python tools/make_demo_tables.py [FOLDER]``; the default folder is that of the package. The help texts and the
recipes name these files.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

__all__ = ["main"]

FOLDER = Path(__file__).resolve().parents[1] / "src" / "consilience" / "cli" / "tables"

#: How often each crowd worker is right, beside lucky guesses.
WORKERS = {"ann": 0.9, "bob": 0.75, "cleo": 0.65, "dan": 0.4, "eve": 0.85}
CLASSES = ("cat", "dog", "owl")
#: Slope, offset and noise of the scores that eleven judges give, on a scale of 0 to 100.
JUDGES = (
    (0.9, 10, 8), (0.7, 30, 10), (0.5, 35, 12), (1.0, 0, 15), (0.3, 60, 8), (0.8, -5, 10),
    (0.2, 70, 12), (0.6, 20, 20), (0.9, 5, 25), (0.1, 80, 10), (0.4, 50, 15),
)  # fmt: skip
PAGES = ("docs", "forum", "blog", "wiki", "video")
#: How much each search engine errs, and whether it leaves neighbors tied.
ENGINES = {"alta": (0.3, False), "blink": (0.8, True), "crawl": (1.5, False)}
WORDS = ("the", "old", "cat", "sees", "a", "small", "bird", "today")
#: How often each parser attaches a word wrongly.
PARSERS = {"parser_a": 0.05, "parser_b": 0.15, "parser_c": 0.3}


def main(folder: Path = FOLDER) -> None:
    """Write all of them into a folder."""
    draw = random.Random(0)
    texts = {**_classes(draw), **_scores(draw), **_rankings(draw), **_parses(draw), **_replies(draw)}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())


def _classes(draw: random.Random) -> dict[str, str]:
    wide, long, gold = [], [], []
    for number in range(200):
        item, truth = f"t{number}", draw.choice(CLASSES)
        said = {
            worker: (truth if draw.random() < skill else draw.choice(CLASSES)) if draw.random() < 0.9 else ""
            for worker, skill in WORKERS.items()
        }
        wide.append([item, *said.values()])
        long += [[item, worker, label] for worker, label in said.items() if label]
        if number < 40:
            gold.append([item, truth])
    return {
        "votes.csv": _csv(["item", *WORKERS], wide),
        "long.csv": _csv(["task", "worker", "answer"], long),
        "gold.csv": _csv(["item", "label"], gold),
    }


def _scores(draw: random.Random) -> dict[str, str]:
    rows = []
    for number in range(300):
        truth = draw.uniform(10, 95)
        scores = [_clip(slope * truth + offset + draw.gauss(0, noise)) for slope, offset, noise in JUDGES]
        human = f"{_clip(truth + draw.gauss(0, 3)):.0f}" if number % 10 == 0 else ""
        rows.append([f"s{number}", human, *(f"{score:.0f}" for score in scores)])
    names = [f"judge_{number}" for number in range(1, len(JUDGES) + 1)]
    return {"scores.csv": _csv(["item", "human_rating", *names], rows)}


def _rankings(draw: random.Random) -> dict[str, str]:
    rows = []
    for number in range(60):
        worth = {page: draw.gauss(0, 1.5) for page in PAGES}
        cells = []
        for noise, ties in ENGINES.values():
            seen = {page: value + draw.gauss(0, noise) for page, value in worth.items()}
            order = sorted(PAGES, key=lambda page: -seen[page])
            tied = " = ".join(order[1:3]) if ties else " > ".join(order[1:3])
            cells.append(" > ".join([order[0], tied, *order[3:]]))
        rows.append([f"q{number}", *cells])
    return {"rankings.csv": _csv(["query", *ENGINES], rows)}


def _parses(draw: random.Random) -> dict[str, str]:
    sentences = []
    for _ in range(60):
        size = draw.randint(3, len(WORDS))
        root = draw.randint(1, size)
        sentences.append([0 if word == root else root for word in range(1, size + 1)])
    files = {}
    for name, error in PARSERS.items():
        lines = []
        for number, heads in enumerate(sentences):
            root = heads.index(0) + 1
            lines.append(f"# sent_id = s{number}")
            for word, head in enumerate(heads, start=1):
                wrong = head and word > 1 and word - 1 != root and draw.random() < error
                chosen = word - 1 if wrong else head
                columns = [word, WORDS[word - 1], *"____", chosen, "root" if chosen == 0 else "dep", "_", "_"]
                lines.append("\t".join(map(str, columns)))
            lines.append("")
        files[f"{name}.conllu"] = "\n".join(lines) + "\n"
    return files


def _replies(draw: random.Random) -> dict[str, str]:
    lines = []
    for number in range(40):
        truth = draw.uniform(1, 9)
        for judge, noise in {"large": 0.6, "medium": 1.2, "small": 2.0}.items():
            score = round(min(10.0, max(0.0, truth + draw.gauss(0, noise))))
            reply = draw.choice([f"{score}", f"Score: {score}", f"{score}/10"])
            if judge == "small" and draw.random() < 0.1:
                reply = "I cannot rate this."
            lines.append(json.dumps({"prompt": f"p{number}", "judge": judge, "score": reply}))
    return {"replies.jsonl": "\n".join(lines) + "\n"}


def _clip(score: float) -> float:
    return min(100.0, max(0.0, score))


def _csv(header: list[str], rows: list[list[str]]) -> str:
    return "".join(f"{','.join(row)}\n" for row in [header, *rows])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
