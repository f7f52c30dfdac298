"""The page to label on without a browser: who may talk to it, what is on disk, and what is refused."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import refused_by_program, run
from tests.refusals import refused
from tests.review.review_cases import CASES, write_case

import consilience as cs
from consilience.exceptions import ConsilienceError, FileFormatError, InvalidVotesError
from consilience.review import GoldFile, Session, serve
from consilience.review.server import listen, new_token
from report_examples import EXAMPLES

BAD = "</script><script>window.hit = 1</script>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a session about hostile names on a running server, its address and its folder."""
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    labels = np.array(["plain", BAD], dtype=object)[rng.integers(0, 2, (40, 3))]
    votes = cs.Votes.from_array(labels, sources=[BAD, "ann", "bob"], items=[f"{row} {BAD}" for row in range(40)])
    (folder / "secret.txt").write_text("secret")
    (folder / "a.png").write_bytes(b"\x89PNG")
    model = cs.LabelModel(cs.Classes(["plain", BAD]), method="majority").fit(votes)
    shown = {f"0 {BAD}": {"text": BAD, "picture": folder / "a.png"}}
    session = Session(model, votes, GoldFile(folder / "gold.csv"), 20, shown=shown)
    place, token = listen(), new_token()
    port = place.getsockname()[1]
    thread = threading.Thread(
        target=serve, args=(session, folder, place, token), kwargs={"open_browser": False}, daemon=True
    )
    thread.start()
    return session, f"http://127.0.0.1:{port}", token, folder


def ask(served, path="", content=None, *, token=None, **headers):
    """Return status, headers and body of a request."""
    _, host, own, _ = served
    data = None if content is None else json.dumps(content).encode()
    usual = {} if data is None else {"origin": host, "content-type": "application/json"}
    address = f"{host}/{own if token is None else token}/{path}"
    request = urllib.request.Request(address, data=data, headers={**usual, **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, dict(reply.headers), reply.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_only_our_own_page_may_talk_to_the_program(served):
    status, headers, body = ask(served)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in body.replace("<!doctype html>", "")  # nothing is loaded from elsewhere
    assert ask(served, token="x" * 32)[0] == 403
    assert ask(served, host="evil.example")[0] == 403
    for origin in ("http://evil.example", "null", ""):
        assert ask(served, "next", {"tab": "1"}, origin=origin)[0] == 403
    assert ask(served, "state", origin="http://evil.example")[0] == 403
    assert ask(served, "next", {"tab": "1"}, **{"content-type": "text/plain"})[0] == 400
    assert ask(served, "next", {"tab": "1"})[0] == 200
    _, host, _, _ = served
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(host)


@pytest.mark.parametrize(
    "path", ["image/7", "image/-1", "image/..%2fsecret.txt", "../secret.txt", "..%2f..%2fsecret.txt", "secret.txt"]
)
def test_no_file_is_served_but_those_that_were_named(served, path):
    status, _, body = ask(served, path)
    assert status in (403, 404)
    assert "secret" not in body
    assert ask(served, "image/0")[1]["content-type"] == "image/png"


def test_votes_are_escaped_and_answers_are_checked_and_on_disk(served):
    session, _, _, folder = served
    item = json.loads(ask(served, "next", {"tab": "2"})[2])["item"]
    assert item["votes"] is None  # hidden until there is an answer
    status, _, body = ask(served, "answer", {"item": item["item"], "status": "answered", "answer": {"label": 1}})
    assert status == 200
    assert "<script>" not in json.loads(body)["votes"][0]["html"]
    assert session.gold.records()[-1]["label"] == BAD
    for sent, words in (
        ({"item": "nobody", "status": "answered"}, "There is no item 'nobody'"),
        ({"item": item["item"], "status": "answered", "answer": {"label": 7}}, "is not an answer of this page"),
        ({"item": item["item"], "status": "answered", "answer": {"vote": True}}, "is not an answer of this page"),
        ({"item": item["item"], "status": "guessed"}, "'guessed' is not a valid status"),
    ):
        status, _, body = ask(served, "answer", sent)
        assert (status, words in json.loads(body)["error"]) == (400, True), body
    lines = (folder / "gold.csv").read_text(encoding="utf-8").count("\n")
    assert lines == 1 + len(session.gold.records())


def _append(path, person):
    for number in range(50):
        GoldFile(path).append(item=f"{person}{number}", label='x, "y"\nz', status="answered", person=person)


def test_two_programs_append_to_one_file_and_a_line_that_was_cut_off_hurts_nobody(tmp_path):
    gold = GoldFile(tmp_path / "gold.csv")
    gold.prepare()
    workers = [get_context("fork").Process(target=_append, args=(gold.path, person)) for person in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    records = gold.records()
    assert len(records) == 100
    assert {one["label"] for one in records} == {'x, "y"\nz'}
    with gold.path.open("ab") as file:
        file.write(b'c0,"x, half a li')
    gold.prepare()
    gold.append(item="d", label="x", status="answered")
    assert [one["item"] for one in gold.records()[100:]] == ["d"]


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "preferences"])  # whose votes are no labels
def test_an_answer_of_every_label_type_is_read_back_as_it_was_given(name, tmp_path):
    example = EXAMPLES[name]()
    votes = example.votes[:30]
    model = cs.LabelModel(example.space, method="majority").fit(votes)
    session = Session(model, votes, GoldFile(tmp_path / "gold.csv"), 4)
    for tab in ("1", "2"):
        asked = session.next_item(tab)
        session.answer(asked["item"], "answered", {"vote": 0})
        labels, weights = session.known()
        row = session.rows[asked["item"]]
        said = example.space.as_batch(votes[[row]].labels[0][votes.observed[row]][:1])
        assert example.space.distance(example.space.as_batch(labels[[row]]), said)[0] == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(weights).sum() == 1  # one was drawn, one was picked
    while session.state()["busy"]:
        time.sleep(0.05)
    session.close()
    assert (session.state()["trouble"], session.state()["audit"]["known"]) == ("", 1)


GIVEN = {
    "classes": (0, None),
    "scores": (41.5, "x"),
    "rankings": ([4, 3, 2, 1, 0], [0, 0, 1, 2, 3]),
    "preferences": ([3, 2, 1, 0], "tie"),
    "tags": ([0, 5], [9]),
    "spans": ([[3, 9]], [[9, 3]]),
    "boxes": ([[1.5, 2, 10, 20, "car"]], [[1, 2, 10, 20, "plane"]]),
    "texts": ("the cat sat", "  "),
    "trees": (None, ["x"]),
    "hyperbolic": (None, {"label": 1}),
}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("name", GIVEN)
def test_what_inputs_send_becomes_a_label_and_what_they_cannot_send_is_refused(name, tmp_path):
    example = EXAMPLES[name]()
    model = cs.LabelModel(example.space, method="majority").fit(example.votes)
    session = Session(model, example.votes, GoldFile(tmp_path / "gold.csv"), 4)
    asked = session.next_item("1")
    good, bad = GIVEN[name]
    if name == "trees":
        good = [0, *range(1, asked["input"]["tokens"])]
    if name == "hyperbolic":
        assert asked["input"]["kind"] == "pick"
        assert asked["votes"]
    else:
        session.answer(asked["item"], "answered", {"label": good})
        labels, _ = session.known()
        example.space.as_batch(labels[[session.rows[asked["item"]]]])
    with pytest.raises(ConsilienceError):
        session.answer(asked["item"], "answered", {"label": bad})
    session.close()


def test_the_answers_are_known_labels_of_the_other_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_case("classes", tmp_path)
    votes = cs.read_votes("votes.csv")
    space = cs.Classes.of(votes)
    session = Session(cs.LabelModel(space).fit(votes), votes, GoldFile(Path("gold.csv")), 20)
    for turn in range(8):
        session.answer(session.next_item("1")["item"], "answered", {"label": turn % 2})
    last = session.gold.records()[-1]["item"]
    session.answer(last, "undone")
    session.close()
    assert run("label", "votes.csv", "-o", "labels.csv", "--gold", "gold.csv", "--save", "m.npz").exit_code != 2
    found = json.loads(run("audit", "m.npz", "votes.csv", "--gold", "gold.csv", "--json").stdout)
    assert found["rows"][0]["known"] == 4  # every second one of seven was drawn at random
    assert found["cross_fitted"] == 4


def test_what_cannot_be_reviewed_is_refused_in_two_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = write_case("classes", tmp_path)
    (tmp_path / "own.csv").write_text("item,label\nx1,a\n")
    (tmp_path / "other.csv").write_text("item,about\nz1,nothing\n")
    refused_by_program(tmp_path, *arguments, "--gold", "own.csv", words=("was not written by", "a new file"))
    refused_by_program(tmp_path, *arguments, "--show", "texts", words=("neither a file nor a column",))
    refused_by_program(tmp_path, *arguments, "--show", "other.csv", words=("items of the votes", "same ids"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused_by_program(tmp_path, *arguments, "--port", port, words=(f"Port {port} is in use", "--port"))
    gold = GoldFile(tmp_path / "gone.csv")
    gold.prepare()
    gold.append(item="nobody", label="a", status="answered")
    refused_by_program(tmp_path, *arguments, "--gold", "gone.csv", words=("'nobody'", "not among the votes"))
    monkeypatch.setattr("consilience.cli.review.serve", lambda session, *_, **__: session.close())
    monkeypatch.setattr("webbrowser.get", lambda: (_ for _ in ()).throw(webbrowser.Error("none")))
    shown = run(*(one for one in arguments if one != "--no-browser"))
    assert shown.exit_code == 0
    assert "no browser was found; open the address yourself" in shown.stderr
    with refused(FileFormatError, "Cannot write"):
        GoldFile(tmp_path / "votes.csv" / "gold.csv").prepare()
    votes = cs.read_votes("votes.csv")
    session = Session(cs.LabelModel(cs.Classes.of(votes)).fit(votes), votes, GoldFile(tmp_path / "g.csv"), 5)
    with refused(InvalidVotesError, "Nothing has been answered yet"):
        session.finish(tmp_path / "out")
    session.close()
    assert set(CASES) >= {"classes", "scores", "rankings", "preferences", "spans", "boxes"}
