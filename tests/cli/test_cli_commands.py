"""The commands do what they say: labels, tables, JSON, exit codes, the demo, engines, also between other programs."""

import csv
import filecmp
import gzip
import json
import os
import pty
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.cli.running import files_in, refused_by_program, result_of, run

import consilience as cs
import make_demo_data
import make_demo_tables
import make_tutorial_data
from consilience.cli import demo, main
from consilience.cli.label import fit_votes
from consilience.label_types.rankings.labels import order_of_text
from consilience.tables.files import read_table


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def first_run(tables, tmp_path_factory):
    """Return what ``consilience label votes.csv --save model.npz`` printed, and the files it wrote."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "votes.csv").write_bytes(tables["votes.csv"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ran = run("label", "votes.csv", "-o", "labels.csv", "--save", "model.npz")
    assert ran.exit_code == 0, ran.output
    return ran, files_in(folder)


@pytest.fixture
def labelled(folder, first_run):
    """Return what that command printed; its files are in the folder."""
    for name, content in first_run[1].items():
        (folder / name).write_bytes(content)
    return first_run[0]


def test_labels_are_those_of_the_library_for_wide_and_long_votes(folder, labelled):
    votes = cs.read_votes("votes.csv")
    model = cs.LabelModel(cs.Classes(["cat", "dog", "owl"]), random_state=0).fit(votes)
    rows = rows_of(folder / "labels.csv")
    assert list(rows[0]) == ["item", "label", "confidence", "n_votes", "agreement"]
    assert [row["item"] for row in rows] == votes.items.tolist()
    assert [row["label"] for row in rows] == model.predict(votes).tolist()
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], model.confidence(votes), rtol=1e-5)
    assert run("label", "long.csv", "-o", "long-labels.csv").exit_code == 0
    long = {row["item"]: row["label"] for row in rows_of(folder / "long-labels.csv")}
    wide = {row["item"]: row["label"] for row in rows}
    assert {item: wide[item] for item in long} == long  # an item nobody voted on is in no row of a long table


def test_guess_is_said_on_stderr_and_sources_are_printed_as_aligned_text_into_a_pipe(labelled):
    guess, receipt = labelled.stderr.splitlines()
    assert guess == "Detected label type: classes (3 different words). Use --space to override."
    assert receipt == "Used 894 of 1,000 cells: 106 empty; ids from column 'item'."
    lines = labelled.stdout.splitlines()
    assert lines[0].startswith("Trust ")
    assert lines[1].split()[:5] == ["source", "votes", "coverage", "error_rate", "weight"]
    assert sorted(line.split()[0] for line in lines[2:7]) == ["ann", "bob", "cleo", "dan", "eve"]
    assert any(line.startswith("[info] method") for line in lines)
    assert "Wrote 200 labels to labels.csv" in lines
    assert "\x1b" not in labelled.stdout
    ran = run("label", "votes.csv", "-o", "others.csv", "--space", "classes:cat,dog,owl,emu")
    assert ran.stderr.startswith("Used 894 ")
    assert "No source ever votes for 1 of the 4 labels" in ran.stdout


@pytest.mark.parametrize(
    ("command", "width", "words"),
    [
        ("spaces", 150, ("\u2500",)),
        ("label votes.csv -o labels.csv", 45, ("\u2500", "hidden in this narrow terminal: coverage", "(1-19%)")),
    ],
)
def test_terminal_gets_tables_with_lines_that_fit(folder, command, width, words):
    ours, theirs = pty.openpty()
    source = str(Path(cs.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "TERM": "xterm", "COLUMNS": str(width)}
    command = [sys.executable, "-m", "consilience", *command.split()]
    done = subprocess.run(command, stdout=theirs, cwd=folder, env=environment, check=False)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert done.returncode == 0
    assert all(word in shown.decode() for word in words), shown.decode()


def test_json_is_one_document_with_everything_and_quiet_prints_nothing(folder):
    document = result_of("label", "votes.csv", "-o", "labels.csv", "--save", "model.npz", "--depends", "ann,bob,cleo")
    assert (document["items"], document["labels"], document["model"]) == (200, "labels.csv", "model.npz")
    assert document["space"]["type"] == "classes"
    assert sorted(source["source"] for source in document["sources"]) == ["ann", "bob", "cleo", "dan", "eve"]
    assert document["diagnostics"][0].keys() == {"code", "severity", "sources", "message", "part", "advice"}
    [told] = [finding for finding in document["diagnostics"] if finding["code"] == "dependent-pair"]
    assert set(told["sources"]) == {"ann", "bob", "cleo"}
    quiet = run("predict", "model.npz", "votes.csv", "-o", "again.csv", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    (folder / "two.csv").write_text("item,ann,bob\n" + "".join(f"i{n},cat,dog\n" for n in range(20)))
    unknown = run("label", "two.csv", "-o", "labels2.csv", "--json")
    assert "NaN" not in unknown.stdout
    assert "Infinity" not in unknown.stdout
    json.loads(unknown.stdout)


def test_votes_without_signal_are_labelled_with_exit_code_1(folder):
    rows = np.random.default_rng(0).choice(["cat", "dog"], size=(300, 4))
    text = "".join(f"i{number},{','.join(row)}\n" for number, row in enumerate(rows))
    (folder / "noise.csv").write_text("item,a,b,c,d\n" + text)
    ran = run("label", "noise.csv", "-o", "labels.csv")
    assert ran.exit_code == 1
    assert "[error] no-signal" in ran.stdout
    assert len(rows_of(folder / "labels.csv")) == 300
    quiet = run("label", "noise.csv", "-o", "labels.csv", "--force", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (1, "")
    assert "no-signal" in quiet.stderr


def test_known_labels_may_be_a_column_of_a_long_table_and_number_ids_match_whatever_their_type(folder):
    rows = "".join(f"i{n % 40},w{n // 40},{'cat' if n % 2 else 'dog'},{'cat' if n % 2 else ''}\n" for n in range(160))
    (folder / "l.csv").write_text("item,worker,label,truth\n" + rows)
    assert result_of("label", "l.csv", "-o", "out.csv", "--gold", "truth")["known"] == 20
    (folder / "n.jsonl").write_text("".join(json.dumps({"item": n, "a": "x", "b": "y"}) + "\n" for n in range(5)))
    (folder / "g.csv").write_text("item,gold\n3.0,x\n4.0,y\n")
    assert result_of("inspect", "n.jsonl", "--gold", "g.csv")["sources"][0]["known"] == 2


def test_gold_column_is_no_source_and_sets_the_scale_of_scores(folder):
    # Eleven judges of unlike scales; the labels come out on the scale of the known ratings. Mean distance to the
    # 30 known ratings 6.3 without known labels, below 4 with them (they have noise of 3 themselves).
    document = result_of("label", "scores.csv", "-o", "out.csv", "--space", "scores", "--gold", "human_rating")
    assert document["known"] == 30
    assert {source["source"] for source in document["sources"]} == {f"judge_{number}" for number in range(1, 12)}
    known = [(row["item"], float(row["human_rating"])) for row in rows_of(folder / "scores.csv") if row["human_rating"]]
    labels = {row["item"]: float(row["label"]) for row in rows_of(folder / "out.csv")}
    assert np.mean([abs(labels[item] - rating) for item, rating in known]) < 6.0


def test_compare_scores_every_method_on_labels_it_did_not_see(folder):
    document = result_of("compare", "votes.csv", "--gold", "gold.csv")
    rows = {row["method"]: row for row in document["methods"]}
    assert set(rows) == set(cs.Classes(2).law.methods)
    assert all(row["items"] == 40 for row in rows.values())
    votes = cs.read_votes("votes.csv")
    truth = {row["item"]: row["label"] for row in rows_of(folder / "gold.csv")}
    gold = [truth.get(item) for item in votes.items.tolist()]
    majority = cs.LabelModel(cs.Classes.of(votes), method="majority", random_state=0).fit(votes)
    assert rows["majority"]["right"] == pytest.approx(majority.score(votes, gold))
    assert document["methods"][0]["mean_distance"] == min(row["mean_distance"] for row in rows.values())


def test_rankings_come_out_as_text_with_ties_where_the_order_is_uncertain(folder):
    assert run("label", "rankings.csv", "-o", "strict.csv").exit_code == 0
    assert run("label", "rankings.csv", "-o", "tied.csv", "--ties", "0.7").exit_code == 0
    strict, tied = (rows_of(folder / name) for name in ("strict.csv", "tied.csv"))
    assert all(" = " not in row["label"] for row in strict)
    assert any(" = " in row["label"] for row in tied)
    assert [row["label"].replace(" = ", " > ") for row in tied] == [row["label"] for row in strict]


def test_predict_repeats_the_labels_of_label_for_the_sources_of_the_model(folder, labelled):
    lines = (folder / "votes.csv").read_text().splitlines()
    wider = [f"{line},{'text' if number == 0 else f'message {number}'}" for number, line in enumerate(lines)]
    (folder / "wider.csv").write_text("\n".join(wider) + "\n")
    for name, said in (("votes.csv", ""), ("wider.csv", "Ignored columns (not sources of this model): text")):
        ran = run("predict", "model.npz", name, "-o", "again.csv", "--force")
        assert ran.exit_code == 0
        assert said in ran.stderr
        assert (folder / "again.csv").read_bytes() == (folder / "labels.csv").read_bytes()
    # Who is not in a long table abstains.
    (folder / "new.csv").write_text("item,worker,answer\nn1,ann,cat\nn1,zoe,dog\nn2,ann,owl\nn2,bob,owl\n")
    ran = run("predict", "model.npz", "new.csv", "-o", "out.csv")
    assert ran.exit_code == 0, ran.output
    assert "without a vote here: cleo, dan, eve" in ran.stderr
    assert "Ignored columns (not sources of this model): zoe" in ran.stderr
    assert [row["label"] for row in rows_of(folder / "out.csv")] == ["cat", "owl"]
    refused_by_program(folder, "predict", "model.npz", "votes.csv", "-o", "o.csv", "--drop", "bob", words=("bob",))


def test_explain_says_what_the_library_says(folder, labelled):
    story = cs.LabelModel.load("model.npz").explain(cs.read_votes("votes.csv"), "t7")
    assert run("explain", "model.npz", "votes.csv", "--item", "t7").stdout.rstrip("\n") == str(story)
    document = result_of("explain", "model.npz", "votes.csv", "--item", "t7")
    assert document["label"] == story.label
    assert [voice["source"] for voice in document["voices"]] == [voice.source for voice in story.voices]
    refused_by_program(folder, "explain", "model.npz", "votes.csv", "--item", "t_7", words=("'t_7'", "Did you mean 't"))


def test_inspect_needs_no_label_type_and_counts_pairs_as_by_hand(folder):
    (folder / "stars.csv").write_text("item,a,b,c\n" + "".join(f"i{n},{n % 5},{n % 5},{n % 4}\n" for n in range(40)))
    ran = run("inspect", "stars.csv")
    assert ran.exit_code == 0
    assert "classes, or scores" in ran.stderr
    assert "40 items, 3 sources, 120 votes" in ran.stdout
    assert "copied-source: a, b" in ran.stdout
    (folder / "small.csv").write_text("item,a,b,c\n1,x,x,\n2,x,y,y\n3,y,y,\n4,,,\n5,x,,\n")
    document = result_of("inspect", "small.csv")
    pairs = {(pair["source"], pair["and"]): pair for pair in document["pairs"]}
    assert pairs["a", "b"]["both"] == 3
    assert pairs["a", "b"]["agreement"] == pytest.approx(2 / 3)
    assert pairs["b", "c"]["agreement"] == 1.0
    shown = run("inspect", "stars.csv", "--space", "scores").stdout
    assert "difference" in shown  # root mean square, which is 0 between a and b
    assert "cost" not in shown
    codes = {finding["code"]: finding["message"] for finding in document["diagnostics"]}
    assert codes["items-without-votes"].startswith("1 of 5 items (4)")
    assert codes["items-with-one-vote"].startswith("1 of 5 items (5)")


@pytest.mark.parametrize("end", ["csv", "jsonl", "parquet"])
def test_convert_there_and_back_keeps_the_votes(folder, end):
    assert run("convert", "votes.csv", f"l.{end}", "--to", "long").exit_code == 0
    assert run("convert", f"l.{end}", f"w.{end}", "--to", "wide").exit_code == 0
    first, last = cs.read_votes("votes.csv"), cs.read_votes(f"w.{end}")
    rows = {item: row for row, item in enumerate(last.items.tolist())}
    order = [rows[item] for item in first.items.tolist()]
    assert first.equals(last[order].select(first.sources))
    assert run("convert", "rankings.csv", f"r.{end}").exit_code == 0  # without a layout, only the format changes
    assert read_table(f"r.{end}").to_pylist() == read_table("rankings.csv").to_pylist()


def test_spaces_lists_every_label_type(folder):
    names = [space["name"] for space in result_of("spaces")["spaces"]]
    lines = run("spaces").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == names
    assert {"classes", "scores", "rankings", "trees", "records"} <= set(names)


def test_class_balance_is_that_of_the_option(folder):
    balance = "cat=0.25,dog=0.25,owl=0.5"
    assert run("label", "votes.csv", "-o", "labels.csv", "--prior", balance, "--report", "page.html").exit_code == 0
    votes = cs.read_votes("votes.csv")
    space = cs.Classes(["cat", "dog", "owl"])
    expected = cs.LabelModel(space, prior=[0.25, 0.25, 0.5], random_state=0).fit(votes).confidence(votes)
    found = [float(row["confidence"]) for row in rows_of(folder / "labels.csv")]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not np.allclose(cs.LabelModel(space, random_state=0).fit(votes).confidence(votes), expected)
    assert "cleo" in (folder / "page.html").read_text()
    assert run("label", "votes.csv", "-o", "even.csv", "--prior", "uniform").exit_code == 0


def test_duels_are_ranked_with_standings_and_a_report_or_once_per_prompt(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["judge,prompt,model_a,model_b,winner"]
    for judge in ("ann", "bob", "cleo"):
        for number in range(60):
            one, two = rng.choice(4, 2, replace=False)
            winner = "model_a" if rng.random() < 1 / (1 + np.exp(-2.0 * (two - one))) else "model_b"
            lines.append(f"{judge},{number % 3},m{one},m{two},{winner}")
    duels = tmp_path / "duels.csv"
    duels.write_text("\n".join(lines) + "\n")
    ranking, standings, page, prompts = (tmp_path / name for name in ("r.csv", "s.csv", "page.html", "p.csv"))
    ran = run("label", duels, "-o", ranking, "--standings", standings, "--report", page)
    assert ran.exit_code == 0
    board = [line.split() for line in ran.stdout.splitlines()]
    assert board[1] == ["rank", "candidate", "score", "win", "rate", "comparisons"]
    assert [line[2] for line in board[2:6]] == ["m0", "m1", "m2", "m3"]
    rows = rows_of(ranking)
    assert [(row["rank"], row["candidate"]) for row in rows] == [("1", "m0"), ("2", "m1"), ("3", "m2"), ("4", "m3")]
    assert all(float(row["score_low"]) < float(row["score"]) < float(row["score_high"]) for row in rows)
    assert sum(float(row["wins"]) for row in rows) == 180  # one for each comparison
    assert [row["candidate"] for row in rows_of(standings)] == ["m0", "m1", "m2", "m3"]
    assert "m0" in page.read_text()
    assert run("label", duels, "-o", prompts, "--space", "preferences:prompt").exit_code == 0
    assert len(rows_of(prompts)) == 3


def piped(data: bytes, *arguments: str):
    return CliRunner().invoke(main, list(arguments), input=data)


def test_labels_are_the_same_whether_files_are_named_packed_or_piped(folder):
    votes = (folder / "votes.csv").read_bytes()
    (folder / "votes.csv.gz").write_bytes(gzip.compress(votes))
    for name in ("labels.csv", "labels.csv.gz", "again.csv.gz"):
        assert run("label", "votes.csv.gz", "-o", name).exit_code == 0
    labels = (folder / "labels.csv").read_bytes()
    assert gzip.decompress((folder / "labels.csv.gz").read_bytes()) == labels
    assert (folder / "again.csv.gz").read_bytes() == (folder / "labels.csv.gz").read_bytes()
    ran = piped(votes, "label", "-", "-o", "-")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout_bytes == labels
    assert "ann" in ran.stderr  # who can be trusted is said beside the labels


def test_format_of_the_standard_input_is_seen_from_its_start(folder):
    for ending in ("parquet", "arrow", "jsonl", "csv.gz"):
        assert run("convert", "votes.csv", f"votes.{ending}").exit_code == 0
        ran = piped((folder / f"votes.{ending}").read_bytes(), "convert", "-", "again.csv", "--force")
        assert ran.exit_code == 0, ran.output
        assert (folder / "again.csv").read_bytes() == (folder / "votes.csv").read_bytes()
    for data, words in (
        (b"a,b\n1,2,3\n", "Error: '-', line 2: 3 cells"),
        (b"", "standard input was empty"),
    ):
        ran = piped(data, "inspect", "-")
        assert ran.exit_code == 2
        assert words in ran.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("label nothing.csv -o labels.csv --json", "nothing.csv"),
        ("label votes.csv -o labels.csv --method magic --json", "magic"),
        ("label votes.csv --json", "-o"),
        ("lable --json", "lable"),
        ("label votes.csv -o - --json", "would both write to the standard output"),
    ],
)
def test_json_was_asked_for_so_errors_are_json_too(folder, command, words):
    ran = run(*command.split())
    assert ran.exit_code == 2
    document = json.loads(ran.stdout)
    assert document["exit_status"] == 2
    assert words in document["error"]
    assert f"Error: {document['error']}" in ran.stderr


def test_long_texts_are_cut_in_tables_and_whole_in_json(folder):
    (folder / "long.csv").write_text(f"item,a,b,c\n1,{'x' * 3000},y,y\n2,y,y,y\n")
    assert max(map(len, run("inspect", "long.csv").stdout.splitlines())) < 200
    assert "x" * 3000 in run("inspect", "long.csv", "--json").stdout


def test_the_table_of_sources_is_written_and_the_report_shows_the_items(folder):
    lines = (folder / "votes.csv").read_text().splitlines()
    head, rows = lines[0], lines[1:]
    (folder / "with_text.csv").write_text("\n".join([f"{head},text", *(f"{row},words of {row[:2]}" for row in rows)]))
    ran = run(
        "label",
        "with_text.csv",
        "-o",
        "shown.csv",
        "--show",
        "text",
        "--report",
        "shown.html",
        "--sources-out",
        "w.csv",
    )
    assert ran.exit_code == 0, ran.stderr
    assert "See shown.html#contested." in ran.stdout.splitlines()[0]
    page = (folder / "shown.html").read_text()
    assert "words of " in page
    assert "<code>consilience" in page
    table = rows_of(folder / "w.csv")
    assert list(table[0])[:4] == ["source", "votes", "coverage", "error_rate"]
    assert [float(row["error_rate"]) for row in table] == sorted(float(row["error_rate"]) for row in table)
    (folder / "items.csv").write_text("item,note\n" + "\n".join(f"{row.split(',')[0]},from a table" for row in rows))
    assert run("label", "votes.csv", "-o", "b.csv", "--show", "items.csv", "--report", "b.html").exit_code == 0
    assert "from a table" in (folder / "b.html").read_text()
    refused = run("label", "with_text.csv", "-o", "c.csv", "--show", "txet", "--report", "c.html")
    assert refused.exit_code == 2
    assert "Did you mean 'text'?" in refused.stderr


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return what ``consilience demo`` printed, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("demo") / "labels"
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["demo", "--output", str(folder)]), folder


@cache
def solved(story: demo.Story):
    """Return the table of a story, the fitted model, and the scores by name."""
    example = story.load()
    model = fit_votes(example.space, example.votes)
    found = model.predict(example.votes), model.predict_baseline(example.votes)
    return example, model, {row["labels by"]: row for row in demo.scores(story, example, *found)}


def test_demo_fits_the_terminal_and_shows_sources_diagnostics_and_scores(ran):
    result = ran[0]
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Warning" not in result.output
    assert "\x1b[" not in result.output, "colors in a pipe"
    assert len(result.output.splitlines()) < 150
    for shown in ("expected cost", "true cost", "judge_large", "dependent-pair", "plain vote", "confidence"):
        assert shown in result.output


def test_demo_writes_one_label_per_item_and_the_same_again(ran, tmp_path):
    names = [f"labels-{story.name}.csv" for story in demo.STORIES]
    assert {path.name for path in ran[1].iterdir()} == set(names)
    for story in demo.STORIES:
        example, model, _ = solved(story)
        with (ran[1] / f"labels-{story.name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["item"] for row in rows] == example.votes.items.tolist()
        read = order_of_text if story.name == "guests" else str
        assert [read(row["label"]) for row in rows] == model.predict(example.votes).tolist()
        assert all(0.0 <= float(row["confidence"]) <= 1.0 for row in rows)
    # A terminal that knows ASCII only gets the same labels.
    again = CliRunner(charset="ascii", env={"COLUMNS": "80"})
    assert again.invoke(main, ["demo", "--output", str(tmp_path), "--seed", "0"]).exit_code == 0
    assert filecmp.cmpfiles(ran[1], tmp_path, names, shallow=False)[0] == names


def test_bad_arguments_and_an_output_that_is_a_file_exit_with_status_2(tmp_path):
    for arguments in (["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["demos"]):
        assert run(*arguments).exit_code == 2
    path = tmp_path / "taken"
    path.write_text("", encoding="utf-8")
    for output in (path, path / "below"):
        result = run("demo", "--output", output)
        assert result.exit_code == 2
        assert "taken" in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize("story", demo.STORIES, ids=lambda story: story.name)
def test_labels_are_at_least_as_good_as_the_plain_vote_and_costs_near_the_true_ones(story):
    example, model, rows = solved(story)
    assert rows["consilience"]["right"] == pytest.approx(np.mean(model.predict(example.votes) == example.truth))
    assert rows["consilience"]["right"] >= rows["plain vote"]["right"]
    assert rows["consilience"]["distance"] <= rows["plain vote"]["distance"]
    # An illustration, not a test of the method: four standard errors of what is printed beside it.
    columns = demo.source_columns(example, model)
    gap = np.abs(np.array(columns["expected cost"]) - columns["true cost"])
    assert (gap < 4 * np.array(columns["std. error"])).all()
    if story.dependent:  # acting on the warning pays
        assert any(set(story.dependent[0]) <= set(finding.sources) for finding in model.diagnostics_)
        assert rows["consilience --depends shop_a,shop_b"]["distance"] < rows["consilience"]["distance"] + 0.05


@pytest.mark.parametrize(
    ("generator", "most"), [(make_demo_data, 90_000), (make_demo_tables, 90_000), (make_tutorial_data, 450_000)]
)
def test_generators_make_the_committed_tables(tmp_path, generator, most):
    generator.main(tmp_path)
    names = sorted(path.name for path in generator.FOLDER.iterdir() if path.is_file() and path.suffix != ".py")
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert sum((generator.FOLDER / name).stat().st_size for name in names) < most
    assert filecmp.cmpfiles(generator.FOLDER, tmp_path, names, shallow=False)[0] == names


def test_loading_the_datasets_imports_no_heavy_package_and_python_m_is_the_same_program():
    program = (
        "import sys; from consilience import datasets; datasets.load_tickets(); datasets.load_guests();"
        "print([name for name in ('pandas', 'pyarrow', 'numba', 'scipy', 'rich', 'click') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert completed.stdout.strip() == "[]", completed.stderr
    command = [sys.executable, "-m", "consilience", "--version"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout.split()[0]) == (0, "consilience")


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """Return a folder with votes in several row groups, which is the current one."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, size=600)
    table = {"item": [f"x{row}" for row in range(600)]}
    for source in range(5):
        cells = np.where(rng.random(600) < 0.6 + 0.08 * source, truth, rng.integers(0, 3, size=600))
        table[f"s{source}"] = np.array(["ant", "bee", "cat"])[cells].tolist()
    table["truth"] = [None] * 600
    table["truth"][:40] = np.array(["ant", "bee", "cat"])[truth[:40]].tolist()
    pq.write_table(pa.table(table), tmp_path / "votes.parquet", row_group_size=200)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_labels_in_pieces_are_those_of_the_whole_table(votes):
    options = ("--space", "classes:ant,bee,cat", "--gold", "truth")
    found = result_of("label", "votes.parquet", "-o", "labels", "--engine", "local", "--save", "m.npz", *options)
    assert (found["items"], found["files"], found["skipped"], found["engine"]) == (600, 3, 0, "local")
    assert [found["receipt"][name] for name in ("cells", "used", "empty", "ids")] == [3000, 3000, 0, "item"]
    result_of("label", "votes.parquet", "-o", "whole.parquet", *options)
    pieces, whole = pq.read_table("labels"), pq.read_table("whole.parquet")
    assert pieces.column("label").to_pylist() == whole.column("label").to_pylist()
    assert np.allclose(pieces.column("confidence").to_numpy(), whole.column("confidence").to_numpy(), rtol=1e-10)
    again = result_of("predict", "m.npz", "votes.parquet", "-o", "again", "--engine", "local", "--drop", "truth")
    assert again["items"] == 600
    assert pq.read_table("again").equals(pieces)


def test_a_stopped_run_is_continued_and_a_finished_one_is_kept(votes):
    command = ("label", "votes.parquet", "-o", "labels", "--engine", "local", "--drop", "truth")
    assert run(*command).exit_code == 0
    manifest = votes / "labels" / "_manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:2]))
    (votes / "labels" / "part-000002.parquet").write_bytes(b"half")
    refused_by_program(votes, *command, words=("not empty", "--force"))
    assert run(*command, "--resume").exit_code == 0
    assert pq.read_table("labels").num_rows == 600


def test_wrong_cells_stop_or_abstain(votes):
    table = pq.read_table("votes.parquet").to_pydict()
    table["s2"][333] = "dragonfly"
    pq.write_table(pa.table(table), "votes.parquet", row_group_size=200)
    command = ("label", "votes.parquet", "-o", "labels", "--engine", "local", "--drop", "truth")
    space = ("--space", "classes:ant,bee,cat")
    words = ("votes.parquet", "row group 1", "row 133", "'s2'", "dragonfly")
    refused_by_program(votes, *command, *space, words=words)
    found = result_of(*command, *space, "--on-error", "abstain")
    assert (found["skipped"], found["receipt"]["not_votes"], found["receipt"]["used"]) == (1, {"not a label": 1}, 2999)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--resume",), ("--resume requires --engine (local or dask)",)),
        (("--engine", "local", "--master", "local[2]"), ("--master requires --engine (spark)",)),
        (("--engine", "spark", "--resume"), ("does not work with Spark", "--engine local or dask")),
        (("--engine", "local", "--report", "page.html"), ("needs the votes in memory",)),
        (("--engine", "local", "--layout", "long"), ("one row per item", "convert")),
    ],
)
def test_options_that_do_not_go_together_are_refused(votes, options, words):
    refused_by_program(votes, "label", "votes.parquet", "-o", "labels", "--drop", "truth", *options, words=words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("spark", "pyspark")])
def test_engines_label_like_the_program_itself(votes, engine, package):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install -e '.[{engine}]' to run this test")
    where = {"dask": (), "spark": ("--master", "local[2]")}[engine]
    options = ("--space", "classes:ant,bee,cat", "--gold", "truth")
    found = result_of("label", "votes.parquet", "-o", "labels", "--engine", engine, *where, *options)
    assert found["items"] == 600
    table = pq.read_table("labels").sort_by("item")
    space = cs.Classes(["ant", "bee", "cat"])
    gold = pq.read_table("votes.parquet").column("truth").to_pylist()
    read = cs.read_votes("votes.parquet", space, drop=["truth"])
    expected = cs.tables.label_table(cs.LabelModel(space, random_state=0).fit(read, gold=gold), read).sort_by("item")
    assert table.column("label").to_pylist() == expected.column("label").to_pylist()


def test_votes_are_inspected_in_pieces_with_the_numbers_of_the_whole_table(votes):
    options = ("votes.parquet", "--space", "classes:ant,bee,cat", "--gold", "truth")
    pieces, whole = result_of("inspect", *options, "--engine", "local"), result_of("inspect", *options)
    assert pieces == whole
    assert pieces["items"] == 600
    refused = run("inspect", *options, "--engine", "local", "--resume")
    assert refused.exit_code == 2  # nothing is written that could be continued
