"""Make the tables that the tutorials read, the same bytes every time.

Run as ``python tools/make_tutorial_data.py [FOLDER]``; the default folder is that of the package. The tables look like
those people have: text messages, replies of language models, answers of a crowd, battles of an arena, run files of
search engines, COCO files, a sleep diary. They are drawn by rules, so that the truth is known and nobody's data is
used. No number was chosen by what the label model makes of it. These are illustrations; measurements are in
`experiments/`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["main"]

FOLDER = Path(__file__).resolve().parents[1] / "src" / "consilience" / "datasets" / "files"

_WORDS = """
name: Anna|Ben|Carla|Dev|Ella|Femi|Grace|Hugo|Ines|Jo|Kofi|Lena|Mum|Dad|Noor|Omar
day: today|tomorrow|tonight|monday|friday|saturday|sunday
time: 6|7.30|8|9|half nine|noon|18:45|5pm|11am
place: the station|the pub|yours|the office|the gym|town|the library|gate 4|the usual place
food: pizza|milk|bread|some rice|a cake|coffee|the leftovers|curry
thing: the keys|my charger|the report|your jacket|the tickets|that book|the car seat|your notes
amount: 500|1000|2000|250|5000|150
prize: a city break|a new phone|a TV|a gift card|concert tickets|a tablet
"""
#: What may stand in the places of a pattern.
SLOTS = {line.partition(": ")[0]: line.partition(": ")[2].split("|") for line in _WORDS.strip().splitlines()}
HAM = """
are you free {day}?
i'm running late, start without me
can you pick up {food} on the way home?
see you at {time} by {place}
did you find {thing}?
thanks for last night, it was lovely
the meeting moved to {time}, same room
happy birthday {name}! hope you have a great day
sorry, i was asleep. call me when you are up
ok see you there
on my way, 10 min
haha no way
do we need {food}?
train is stuck again, be there at {time}
i left {thing} at {place}, could you bring it?
{name} says hi and wants to know about {day}
don't forget the dentist at {time} {day}
love you too x
what time does the film start?
let me know when you land
i can't talk now, will call you later
lunch at {place}? i can be there at {time}
just won the quiz at {place}, can you believe it
the plumber comes at {time}, can you let him in?
kids are in bed, everything fine here
did you feed the cat?
my phone died, use the landline 0161 {digits4}
can you text me the address of {place}
shall we get {food} {day}?
how was the interview?
i will be in town {day}, want to meet?
mum is asking whether you got {thing}
your verification code is {digits6}
your parcel is out for delivery today. track it: http://track.example/{digits4}
reminder: your appointment is on {day} at {time}. reply YES to confirm
your taxi is here: grey estate, plate {digits4}
we owe {name} 20 for the tickets, can you send it?
i transferred the cash for {food}, check your account
URGENT can you call me, i locked myself out
""".strip().splitlines()
SPAM = """
you have won {prize}! call {digits11} to claim
WINNER!! your number was drawn for a {amount} cash prize. claim code {digits4}
free entry in our weekly draw to win {prize}. text WIN to {digits5}
your mobile is due a free upgrade. call {digits11} now
we tried to reach you about your {amount} bonus. reply YES to claim
limited offer: half price on all plans until {day}. see http://deal.example/{digits4}
need money {day}? loans up to {amount}, no checks. apply at www.loans.example
your account is on hold. confirm your details at http://secure.example/{digits6}
hi, is this still your number? i have an offer you will like, text me back on {digits5}
get 50 free spins {day} only at www.spins.example
you were selected for a survey. complete it and get {prize}
last chance to claim your reward points worth {amount}. visit http://points.example
someone who likes you wants to meet. find out who: text MEET to {digits5}
cheap flights from 19. book before {day} at www.fly.example
lose weight fast without dieting, ask us how. call {digits11}
your package could not be delivered. pay the fee here: http://post.example/{digits6}
congratulations {name}! you qualify for a {amount} payout
new ringtones every week, send TONE to {digits5}
work from home and earn {amount} a week, no experience needed
URGENT! your subscription ends {day}. renew at www.renew.example
hello dear, i have a business proposal that will change your life
hot deals on watches and bags, all brands, fast shipping
""".strip().splitlines()
AFTER = {
    "ham": ["", "", "", "x", "thanks", "let me know", "see you", "lol", "no rush"],
    "spam": ["", "", "T&Cs apply", "reply STOP to opt out", "18+ only", "STOP to end", "call now", "offer ends soon"],
}

#: Slope, offset, noise, share of refusals and wording of six judges on a scale of 0 to 10.
JUDGES: dict[str, tuple[float, float, float, float, list[str]]] = {
    "atlas-large": (1.0, 0.0, 0.8, 0.0, ["Score: {}", "Score: {}/10"]),
    "brick-70b": (1.0, -2.5, 0.9, 0.01, ["{}/10", "{}/10. Correct, but wordy.", "{}/10. Misses the main point."]),
    "cedar-pro": (0.4, 6.0, 0.6, 0.0, ["{}", "{}.0"]),
    "dune-8b": (1.0, 0.3, 2.0, 0.02, ['{{"score": {}}}', "{}"]),
    "dune-8b-v2": (1.0, 0.3, 2.0, 0.02, ['{{"score": {}}}', "{}"]),
    "ember-1b": (0.5, 2.5, 3.0, 0.1, ["I would give this a {}.", "Rating: {}", "{} out of 10"]),
}
REFUSALS = ["I cannot rate this answer.", "As a language model, I do not have opinions.", ""]
QUESTIONS = """
How do I remove red wine from a carpet?
What is the difference between TCP and UDP?
Can I freeze cooked rice?
Why is the sky blue?
How long should I steep green tea?
What does HTTP status 409 mean?
How do vaccines work?
Is it safe to charge a phone overnight?
What is compound interest?
How do I sharpen a kitchen knife?
Why do cats purr?
What causes the tides?
How do I undo the last git commit?
What is a healthy resting heart rate?
How do noise-canceling headphones work?
When should I prune roses?
What is the capital of Australia?
How do I read a nutrition label?
Why does bread go stale?
What is the difference between a list and a tuple?
How do I cite a website?
Can plants grow without soil?
What is inflation?
How do I fix a slow laptop?
Why do leaves change color?
""".strip().splitlines()

ANIMALS = ("deer", "fox", "boar", "empty")
#: What animals are taken for at night: a boar for a deer, a fox for nothing.
MISTAKEN = {
    "deer": ["boar", "boar", "fox", "empty"],
    "fox": ["empty", "empty", "deer", "boar"],
    "boar": ["deer", "deer", "fox", "empty"],
    "empty": ["fox", "deer", "boar"],
}

STRENGTH = {"opal": 1.4, "onyx": 1.1, "jade": 0.6, "ruby": 0.1, "agate": -0.4, "topaz": -1.0, "quartz": -1.8}
#: How well each judge tells good answers from bad ones, and how much it likes the one that is shown first.
ARENA = {
    "expert panel": (1.8, 0.0),
    "atlas-large": (1.5, 0.3),
    "brick-70b": (0.9, 0.9),
    "crowd": (0.5, 0.0),
    "ember-1b": (0.0, 1.5),
}

QUERIES = """
reset router password
cancel subscription
printer offline after update
export invoices as csv
two factor code not arriving
change billing address
app crashes on startup
share a folder with a guest
delete my account
keyboard shortcuts list
import contacts from phone
refund for double payment
dark mode
storage almost full
login loop in safari
add a second user
download all photos
calendar not syncing
vat number on invoice
slow upload speed
restore deleted file
change language
student discount
api rate limit
notifications too loud
merge two accounts
video has no sound
update card details
offline mode
blocked by firewall
recover old version
set up email forwarding
transfer ownership
license for five seats
error code 1603
schedule a report
print double sided
scan to email
battery drains fast
screen sharing black screen
""".strip().splitlines()
ENGINES = {"bm25": 0.8, "dense": 0.6, "clicks": 1.2, "titles": 3.0}
FOUND = 10

#: How often an annotator misses an object, how far the corners are off in pixels, and false boxes per image.
ANNOTATORS = {"ann": (0.05, 1.5, 0.0), "bob": (0.3, 2.0, 0.05), "cleo": (0.1, 8.0, 0.1), "dan": (0.15, 3.0, 0.8)}
KINDS = ("car", "bus")
WIDTH, HEIGHT = 640, 480

#: Standard deviation, in hours, of what each source says about the time somebody fell asleep.
SLEEP = {"diary": 1.2, "watch": 0.8, "phone": 2.2, "partner": 3.5}


def messages(draw: Random, train: int = 1000, test: int = 300) -> list[list[Any]]:
    """Return text messages, about a third of them spam; the last ones are for the test."""
    rows: list[list[Any]] = []
    for number in range(train + test):
        kind = "spam" if draw.random() < 0.35 else "ham"
        parts = draw.sample(HAM if kind == "ham" else SPAM, draw.choice([1, 1, 2]))
        sentences = [_filled(part, draw) for part in [*parts, draw.choice(AFTER[kind])] if part]
        text = " ".join(one if one[-1] in "?!x" else f"{one}." for one in sentences[:-1]) + f" {sentences[-1]}"
        text = text.strip()
        style = draw.random()
        if style < (0.12 if kind == "spam" else 0.02):
            text = text.upper()
        elif style < 0.5:
            text = text[0].upper() + text[1:]
        elif style > 0.9:
            text = text.replace("you", "u").replace("are", "r").replace("tomorrow", "2moro")
        rows.append([f"m{number:04d}", text, kind, "train" if number < train else "test"])
    return [["id", "text", "truth", "split"], *rows]


def replies(draw: Random, answers: int = 200) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return what six judges reply about answers of eight assistants, and what people think of the answers."""
    said, rated = [], []
    for number in range(answers):
        answer, quality = f"a{number:03d}", min(10.0, max(0.0, draw.gauss(5.5, 1.8)))
        rated.append([answer, QUESTIONS[number % len(QUESTIONS)], round(quality, 1)])
        shared = draw.gauss(0, 1)  # the second version of a model errs where the first one does
        for judge, (slope, offset, noise, refuses, wording) in JUDGES.items():
            error = 0.98 * shared + 0.2 * draw.gauss(0, 1) if judge.startswith("dune") else draw.gauss(0, 1)
            score = min(10, max(0, round(slope * quality + offset + noise * error)))
            reply = draw.choice(wording).format(score)
            said.append([answer, judge, draw.choice(REFUSALS) if draw.random() < refuses else reply])
    return [["answer_id", "judge", "reply"], *said], [["answer_id", "question", "human"], *rated]


def crowd(draw: Random, images: int = 400) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return what a crowd sees on pictures of a camera trap, and what experts see."""
    truth = [draw.choices(ANIMALS, weights=[35, 25, 15, 25])[0] for _ in range(images)]
    rows: list[list[Any]] = []

    def tell(worker: str, image: int, label: str, pace: float) -> None:
        rows.append([f"trap_{image:04d}.jpg", worker, label, max(1, round(draw.lognormvariate(math.log(pace), 0.4)))])

    def seen(image: int, right: float) -> str:
        return truth[image] if draw.random() < right else draw.choice(MISTAKEN[truth[image]])

    for number in range(22):
        worker, right = f"W{101 + 7 * number}", draw.uniform(0.6, 0.97)
        for image in draw.sample(range(images), 75):
            tell(worker, image, seen(image, right), 8)
    for worker in ("W266", "W274", "W281", "W299"):  # click at random
        for image in draw.sample(range(images), 75):
            tell(worker, image, draw.choice(ANIMALS), 2)
    for image in draw.sample(range(images), 75):  # always says the same
        tell("W303", image, "empty", 1.5)
    shared = {image: seen(image, 0.45) for image in draw.sample(range(images), 130)}
    for worker in ("W311", "W312", "W313"):  # one person with three accounts
        for image, label in shared.items():
            if draw.random() < 0.9:
                tell(worker, image, label, 3)
    draw.shuffle(rows)
    gold = [[f"trap_{image:04d}.jpg", label] for image, label in enumerate(truth)]
    return [["image", "worker", "label", "seconds"], *rows], [["image", "label"], *gold]


def battles(draw: Random, each: int = 200) -> list[list[Any]]:
    """Return comparisons of the answers of two models, by five judges."""
    rows: list[list[Any]] = []
    for judge, (discrimination, bias) in ARENA.items():
        for _ in range(each):
            first, second = draw.sample(list(STRENGTH), 2)
            logit = discrimination * (STRENGTH[first] - STRENGTH[second]) + bias
            odds = [math.exp(logit / 2), math.exp(-logit / 2), 0.4]
            winner = draw.choices(["model_a", "model_b", "tie"], weights=odds)[0]
            rows.append([f"p{draw.randrange(90):02d}", judge, first, second, winner])
    draw.shuffle(rows)
    return [["prompt", "judge", "model_a", "model_b", "winner"], *rows]


def searches(draw: Random) -> tuple[str, list[list[Any]]]:
    """Return a TREC run file with the ten best of 25 pages by each engine, and how relevant the pages really are."""
    lines, judged = [], []
    for number, query in enumerate(QUERIES, start=1):
        pages = [f"help-{page:04d}" for page in sorted(draw.sample(range(10_000), 25))]
        relevance = {page: draw.gauss(0, 1) for page in pages}
        judged += [
            [f"q{number:02d}", query, page, grade]
            for page, value in relevance.items()
            if (grade := sum(value > cut for cut in (0.3, 0.9, 1.5)))
        ]
        for engine, noise in ENGINES.items():
            scores = {page: value + draw.gauss(0, noise) for page, value in relevance.items()}
            lines += _run(number, engine, scores)
            if engine == "bm25":  # the same index with another stemmer
                lines += _run(number, "bm25-stem", {page: x + draw.gauss(0, 0.25) for page, x in scores.items()})
    return "".join(lines), [["query", "text", "page", "grade"], *judged]


def boxes(draw: Random, images: int = 60) -> dict[str, Any]:
    """Return one COCO file per annotator, and one with what is really there: cars and buses at a crossing."""
    truth = [[_object(draw) for _ in range(draw.randint(1, 4))] for _ in range(images)]
    drawn: dict[str, list[list[tuple[list[float], int]]]] = {"truth": truth}
    for name, (misses, noise, false) in ANNOTATORS.items():
        drawn[name] = [_annotated(objects, misses, noise, false, draw) for objects in truth]
    return {f"{name}.json": _coco(per_image) for name, per_image in drawn.items()}


def sleep(draw: Random, nights: int = 200) -> list[list[Any]]:
    """Return the hour in which somebody fell asleep as four sources have it, and as measured in a laboratory."""
    rows: list[list[Any]] = []
    for number in range(1, nights + 1):
        true = draw.gauss(23.5, 1.6)
        said = [round(true + draw.gauss(0, error)) % 24 for error in SLEEP.values()]
        rows.append([f"night {number}", *said, round(true) % 24])
    return [["night", *SLEEP, "laboratory"], *rows]


def main(folder: Path = FOLDER) -> None:
    """Write all of them into a folder."""
    said, rated = replies(Random(1))
    answers, experts = crowd(Random(2))
    runs, relevance = searches(Random(4))
    tables = {
        "messages.csv": messages(Random(0)),
        "judge_replies.csv": said,
        "human_ratings.csv": rated,
        "crowd.csv": answers,
        "crowd_experts.csv": experts,
        "battles.csv": battles(Random(3)),
        "relevance.csv": relevance,
        "sleep.csv": sleep(Random(6)),
    }
    texts = {name: _csv(rows) for name, rows in tables.items()} | {"searches.run": runs}
    texts |= {f"crossing_{name}": json.dumps(file, separators=(",", ":")) for name, file in boxes(Random(5)).items()}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())


def _filled(pattern: str, draw: Random) -> str:
    """Put words and digits into a pattern such as "call {digits11} {day}"."""
    words = {name: draw.choice(choices) for name, choices in SLOTS.items()}
    digits = {
        f"digits{n}": "0" * (n == 11) + str(draw.randrange(10 ** (n - 1), 10**n))[n == 11 :] for n in (4, 5, 6, 11)
    }
    return pattern.format(**words, **digits)


def _run(query: int, engine: str, scores: Mapping[str, float]) -> list[str]:
    best = sorted(scores.items(), key=lambda entry: -entry[1])[:FOUND]
    return [
        f"q{query:02d} Q0 {page} {rank} {10 + value:.3f} {engine}\n" for rank, (page, value) in enumerate(best, start=1)
    ]


def _object(draw: Random) -> tuple[list[float], int]:
    width, height = draw.uniform(25, 110), draw.uniform(25, 90)
    left, top = draw.uniform(0, WIDTH - width), draw.uniform(0, HEIGHT - height)
    return [left, top, left + width, top + height], draw.randrange(2)


def _annotated(
    objects: Iterable[tuple[list[float], int]], misses: float, noise: float, false: float, draw: Random
) -> list[tuple[list[float], int]]:
    found = []
    for (left, top, right, bottom), kind in objects:
        small = (right - left) * (bottom - top) < 3000
        if draw.random() >= misses * (2 if small else 0.5):
            ends = [end + draw.gauss(0, noise) for end in (left, top, right, bottom)]
            found.append((ends, kind if draw.random() < 0.95 else 1 - kind))
    if draw.random() < false:
        found.append(_object(draw))
    return found


def _coco(per_image: Sequence[Sequence[tuple[list[float], int]]]) -> dict[str, Any]:
    marks = []
    for number, found in enumerate(per_image, start=1):
        for (left, top, right, bottom), kind in found:
            left, right = sorted(round(min(WIDTH, max(0.0, x))) for x in (left, right))
            top, bottom = sorted(round(min(HEIGHT, max(0.0, y))) for y in (top, bottom))
            box = [left, top, max(1, right - left), max(1, bottom - top)]
            marks.append({"id": len(marks) + 1, "image_id": number, "category_id": kind + 1, "bbox": box})
    images = [
        {"id": number, "file_name": f"crossing_{number:02d}.jpg", "width": WIDTH, "height": HEIGHT}
        for number in range(1, len(per_image) + 1)
    ]
    categories = [{"id": number, "name": kind} for number, kind in enumerate(KINDS, start=1)]
    return {"images": images, "categories": categories, "annotations": marks}


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
