"""Tables of LLM judges: what is read from replies, what is not and why; runs of one judge, pairs, rankings, arenas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidVotesError
from consilience.tables import read_judges, read_preferences, read_votes


def scores(*rows):
    return [dict(zip(("prompt", "judge", "score"), row, strict=True)) for row in rows]


SCORES = {
    7.0: [7, "7", "Score: 7", "**Score:** 7/10", "seven", "Score: 7. I repeat, score: 7."],
    7.5: [" 7.5. ", "7,5", "Score: 7,5"],
    1000.0: ["1,000"],
    6.5: [6.5, "The text is fluent but dull.\n\nFinal rating: 6.5"],
    3.0: [np.int64(3), {"rating": 3}],
    -1.0: ["-1"],
    8.0: ["8/10", "8 out of 10", "8/10. Correct, but wordy.", "8 out of 10: misses a step", "Fluent, if dull. 8/10."],
    4.0: ["The score is 4", "I would give this a 4.", "I'd rate the answer 4/10 for its style"],
    6.0: ['{"score": 6}', '```json\n{"reason": "fine", "score": "6/10"}\n```'],
    "no reply": [None, "", float("nan"), '{"score": null}'],
    "no answer": ["N/A", "None", '{"reason": "fine"}'],
    "refused": [
        "I cannot rate this text.",
        "I'm sorry, but I can't help with 2 of these.",
        "As an AI, I have no opinion.",
        "As a language model, I have no opinion.",
    ],
    "no clear number": [
        *("between 6 and 8", "6-8", "7,5.1", "Score: 7, or rather score: 8", "Score: 7-8"),
        *("Score: 7 or 8", "Score (1-10): 7", "[7, 8]", float("inf")),
        *("7/10 or 8/10", "6/10 - 8/10", "I would not give this a 9", "I would give this more than 4", "3/10/2024"),
        *("It solves 3/4 of the tasks", "I'd give this a 7 or 8"),
    ],
    "no number": ["very good"],
    "outside the scale": ["85/10"],
    "several answers": ['{"score": 4, "rating": 5}'],
}
WORDS = {
    "good": ["good", "Verdict: good", '{"label": "good"}'],
    "no answer": ["unknown"],
    "not a label": ["I would say that it is rather good"],
    "refused": ["I can't say"],
}
WINNERS = {
    "first": ["A", "A is vivid, B is not. [[A]]", "llama", 1],
    "second": ["model_b", "Response B", "Winner: gpt", '{"winner": "B"}'],
    "tie": ["tie", "[[C]]"],
    "no clear winner": ["[[A]] or [[B]]", "mistral", "both are fine in their own way"],
}
CASES = [
    (kind, value, reply)
    for kind, cases in (("score", SCORES), ("label", WORDS), ("winner", WINNERS))
    for value, replies in cases.items()
    for reply in replies
]


@pytest.mark.parametrize(("kind", "expected", "reply"), CASES)
def test_reply_that_can_be_read_in_one_way_is_read_and_any_other_has_a_reason(kind, expected, reply):
    others = {"score": [5, 5, 5], "label": ["bad", "good", "bad"], "winner": ["A", "B", "tie"]}[kind]
    rows = [{"prompt": row, "judge": "j", kind: cell} for row, cell in enumerate([reply, *others])]
    if kind == "winner":
        rows = [{**row, "model_a": "llama", "model_b": "gpt"} for row in rows]
    table = read_judges(rows)
    assert table.votes.observed[1:].all()
    if table.votes.observed[0]:
        assert table.votes.labels[0, 0] == expected
    else:
        assert table.faults.columns["reason"] == [expected]


@pytest.mark.parametrize(
    ("reply", "value"), [("GOOD", "good"), ("None", "none"), ("fair", None), ("I say good", None), (True, None)]
)
def test_a_list_of_labels_decides_what_a_label_is(reply, value):
    table = read_judges(scores(("p", "j", reply)), labels=["good", "none"])
    assert table.votes.labels.tolist() == [[value]]
    assert table.faults.columns["reason"] == ([] if value else ["not a label"])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("b > a = c", ["b", ("a", "c")]),
        ("[2] > [1] > [3]", ["2", "1", "3"]),
        ('["b", "a"]', ["b", "a"]),
        ([2, 1], ["2", "1"]),
        ('{"ranking": ["b", "a"]}', ["b", "a"]),
        ("a > a", "names one twice"),
        ("a >> b", "no ranking"),
        ("the second", "no ranking"),
        ("I cannot rank", "refused"),
    ],
)
def test_orders_are_read_best_first_or_not_with_a_reason(reply, expected):
    table = read_judges([{"prompt": "p", "judge": "j", "ranking": reply}])
    assert (table.votes.labels[0, 0] or table.faults.columns["reason"][0]) == expected


def test_faults_are_counted_by_judge_and_reason():
    table = read_judges(
        scores(
            ("p1", "big", 7), ("p1", "small", "N/A"), ("p2", "big", "6/10"), ("p2", "small", "I cannot"),
            ("p3", "big", "4/5"), ("p3", "small", "n/a."), ("p4", "big", 5), ("p4", "small", "Score: 3"),
        )
    )  # fmt: skip
    assert table.kind == "pointwise"
    assert isinstance(table.space, cs.Scores)
    assert table.votes.observed.tolist() == [[True, False], [True, False], [False, False], [True, True]]
    assert table.votes.labels[table.votes.observed].tolist() == [7.0, 6.0, 5.0, 3.0]
    found = {key: tuple(values) for key, values in table.faults.columns.items()}
    assert found["source"] == ("big", "small", "small")
    assert (found["reason"], found["cells"]) == (("another scale", "no answer", "refused"), (1, 2, 1))
    assert (found["first_item"], found["example"]) == (("p3", "p1", "p2"), ("4/5", "N/A", "I cannot"))
    assert "4 replies unread" in repr(table)


def test_error_states_and_scores_beyond_the_scale_are_faults():
    frame = pd.DataFrame(
        {"item": [1, 1, 2, 2], "judge": ["a", "b"] * 2, "score": [3, 4, 0, 2], "status": ["ok", "ok", "timeout", "ok"]}
    )
    table = read_judges(frame)
    assert table.votes.observed.tolist() == [[True, True], [False, True]]
    assert (table.faults.columns["reason"], table.faults.columns["example"]) == (["error"], ["timeout"])
    table = read_judges(scores(("p", "a", 7), ("p", "b", 70), ("q", "a", "3/10"), ("q", "b", "3/5")), scale=(1, 10))
    assert table.votes.observed.tolist() == [[True, False], [True, False]]
    assert table.faults.columns["reason"] == ["outside 1-10", "another scale"]
    assert table.space == cs.Scores(range=(1, 10))


def test_words_and_yes_or_no_make_classes():
    table = read_judges(
        scores(("p", "a", "good"), ("p", "b", "Verdict: bad"), ("q", "a", "I won't say"), ("q", "b", "bad"))
    )
    assert table.space.names == ("bad", "good")
    assert table.votes.labels[table.votes.observed].tolist() == ["good", "bad", "bad"]
    numbered = read_judges(scores(("p", "a", "1"), ("p", "b", 0)), labels=[0, 1])
    assert numbered.votes.labels.tolist() == [[1, 0]]
    assert numbered.space == cs.Classes([0, 1])
    answered = read_judges(pd.DataFrame({"item": [1, 1], "judge": ["a", "b"], "label": [True, False]}))
    assert answered.votes.labels.tolist() == [[True, False]]
    assert answered.space == cs.Classes([False, True])


def test_runs_of_a_judge_are_sources_that_are_marked_as_dependent():
    rows = [
        (f"p{item}", judge, run, item + run)
        for item in range(6)
        for judge in ("a", "b", "c")
        for run in range(2 if judge == "a" else 1)
    ]
    frame = pl.DataFrame(rows, schema=["prompt", "judge", "run", "score"], orient="row")
    table = read_judges(frame)
    assert table.votes.sources == ("a #0", "a #1", "b", "c")
    assert table.votes.repeated_pairs == (("a #0", "a #1"),)
    model = cs.LabelModel(table.space, method="majority", dependencies=table.votes.repeated_pairs)
    assert model.fit(table.votes).predict(table.votes).shape == (6,)
    averaged = read_judges(frame, repeats="average").votes
    assert (averaged.sources, averaged.labels[2].tolist()) == (("a", "b", "c"), [2.5, 2.0, 2.0])
    counted = read_judges(scores(("p", "a", 1), ("p", "a", 2), ("p", "b", 2), ("q", "a", 3)))  # without a column
    assert counted.votes.sources == ("a #1", "a #2", "b")
    assert counted.votes.repeated_pairs == (("a #1", "a #2"),)
    again = read_judges([{"prompt": "p", "judge": "a", "run": run, "score": 1} for run in (1, 1, 2)])
    assert again.votes.sources == ("a #1", "a #2")
    assert again.votes.receipt.merged == 1  # the same row twice is no second run
    with refused(InvalidVotesError, "needs labels that are numbers"):
        read_judges(scores(("p", "a", "good"), ("p", "a", "bad")), repeats="average")


def test_criteria_and_models_are_items_of_their_own_or_one_is_picked():
    rows = [
        {"id": 4, "judge": "a", "aspect": aspect, "score": score} for aspect, score in (("fluency", 3), ("meaning", 5))
    ]
    table = read_judges(rows)
    assert table.votes.items.tolist() == ["4 | fluency", "4 | meaning"]
    assert table.keys.to_pylist() == [{"item": 4, "criterion": "fluency"}, {"item": 4, "criterion": "meaning"}]
    one = read_judges(rows, only="meaning")
    assert (one.votes.items.tolist(), one.votes.labels.tolist()) == ([4], [[5.0]])
    with refused(FileFormatError, "no criterion 'style'", "'fluency'"):
        read_judges(rows, only="style")
    judged = read_judges([{"prompt": "p", "model": model, "judge": "j", "score": 1} for model in ("x", "y")])
    assert (judged.votes.sources, judged.votes.items.tolist()) == (("j",), ["p | x", "p | y"])
    assert read_judges([{"prompt": "p", "model": "x", "score": 1}]).votes.sources == ("x",)


def test_comparison_shown_in_both_orders_is_one_item():
    rows = [
        {"prompt": "p", "judge": "j", "model_a": "x", "model_b": "y", "winner": "model_a"},
        {"prompt": "p", "judge": "k", "model_a": "y", "model_b": "x", "winner": "model_a"},
        {"prompt": "p", "judge": "l", "model_a": "y", "model_b": "x", "winner": "x"},
        {"prompt": "p", "judge": "m", "model_a": "x", "model_b": "y", "winner": "tie"},
        {"prompt": "p", "judge": "n", "model_a": "x", "model_b": "y", "winner": None},
    ]
    table = read_judges(rows)
    assert (table.kind, table.space.names) == ("pairwise", ("first", "second", "tie"))
    assert table.votes.labels.tolist() == [["first", "second", "first", "tie", None]]
    assert table.keys.to_pylist() == [{"item": "p", "first": "x", "second": "y"}]
    assert table.faults.columns["reason"] == ["no reply"]


def test_winners_may_be_numbers_or_names_that_are_numbers():
    for winners in ([1, -1, 0], [1, 2, 0]):
        rows = [{"prompt": row, "judge": "j", "winner": winner} for row, winner in enumerate(winners)]
        assert read_judges(rows).votes.labels[:, 0].tolist() == ["first", "second", "tie"]
        assert read_judges(rows[:2]).votes.labels[:, 0].tolist() == ["first", "second"]
    rows = [{"judge": "j", "first": 3, "second": 5, "winner": 5}, {"judge": "k", "first": 5, "second": 3, "winner": 5}]
    table = read_judges(rows)
    assert (table.votes.labels.tolist(), table.votes.items.tolist()) == ([["second", "second"]], ["3 | 5"])


def test_rankings_keep_their_names_and_items_may_have_names_of_their_own():
    def ranked(*rankings):
        return read_judges([dict(zip(("prompt", "judge", "ranking"), row, strict=True)) for row in rankings])

    table = ranked(
        ("p", "j", "b > a = c"), ("p", "k", "a > c > b"), ("q", "j", "all the same"), ("q", "k", "c > b > a")
    )  # fmt: skip
    assert table.kind == "listwise"
    assert table.space == cs.Rankings(["a", "b", "c"])
    assert table.votes.labels[0, 0] == ["b", ("a", "c")]
    assert not table.votes.observed[1, 0]
    assert table.faults.columns["reason"] == ["no ranking"]
    table = ranked(("p", "j", ["b", "a"]), ("p", "k", ["a", "b"]), ("q", "j", ["z", "x", "y"]), ("q", "k", ["x"]))
    assert table.space == cs.Rankings(None)
    assert table.keys["candidates"].to_pylist() == [["a", "b"], ["x", "y", "z"]]
    assert [list(label) for label in table.votes.labels.reshape(-1)] == [["b", "a"], ["a", "b"], ["z", "x", "y"], ["x"]]


def test_files_are_read(tmp_path):
    path = tmp_path / "judges.csv"
    path.write_text('prompt,judge,score\np1,a,7/10\np1,b,"I cannot, sorry"\np2,a,\np2,b,4\n')
    table = read_judges(path)
    assert table.votes.observed.tolist() == [[True, False], [False, True]]
    assert table.faults.columns["reason"] == ["no reply", "refused"]


@pytest.mark.parametrize(
    ("source", "options", "parts"),
    [
        (scores(("p", "a", 1)), {"kind": "triple"}, ["kind='triple'", "pairwise"]),
        (scores(("p", "a", 1)), {"judge": "juge"}, ["no column 'juge'", "Did you mean 'judge'?"]),
        (scores((None, "a", 1)), {}, ["Row 0 has no item", "'prompt'"]),
        (scores(("p", "a", 1)), {"only": "style"}, ["only='style'", "criterion="]),
        ([{"text": "p", "who": "a", "said": 1}], {}, ["item and judge and answer", "'text', 'who', 'said'"]),
        ([{"judge": "a", "winner": "A"}], {}, ["what was compared", "first="]),
        ([], {}, ["one dict per reply"]),
        ({"prompt": [], "judge": [], "score": []}, {}, ["no rows"]),
        (
            [{"prompt": row, "judge": "j", "winner": winner} for row, winner in enumerate([0, 1])],
            {},
            ["0, 1", "several ways", "'first'"],
        ),
        (
            [{"id": one, "judge": "a", "aspect": two, "score": 1} for one, two in (("x | y", "z"), ("x", "y | z"))],
            {},
            ["'x | y | z'"],
        ),
    ],
    ids=["kind", "column", "item", "only", "names", "compared", "empty", "rows", "zero or one", "same name"],
)
def test_tables_that_cannot_be_read_are_refused(source, options, parts):
    with refused(FileFormatError, *parts):
        read_judges(source, **options)


def test_wide_replies_of_any_size_name_the_line_of_a_row_without_an_item(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text(
        "answer_id,gpt,claude,llama\n" + "".join(f"x{n},{n}/10,{n},{n if n > 4 else 'N/A'}\n" for n in range(1, 10))
    )
    table = cs.tables.read_judges(path)
    assert (len(table.votes), table.votes.sources, table.space.range) == (9, ("gpt", "claude", "llama"), (1.0, 10.0))
    path.write_text("answer_id,gpt,claude\nx1,1/10,2\nx1,1/10,2\n,3/10,4\nx3,5/10,6\n")
    with refused(FileFormatError, "Line 4 has no item ('answer_id')"):
        cs.tables.read_judges(path)


def test_a_column_that_ends_in_id_names_the_items_where_no_known_name_does():
    rows = [{"answer_id": item, "judge": judge, "reply": "7/10"} for item in "xyz" for judge in "ab"]
    assert read_judges(rows).votes.items.tolist() == ["x", "y", "z"]
    responses = [{"response_id": row["answer_id"], "judge_id": row["judge"], "score": 7} for row in rows]
    assert read_judges(responses).votes.items.tolist() == ["x", "y", "z"]


SHOWN = [("x", "y", "model_a"), ("y", "z", "model_b"), ("x", "z", "tie"), ("z", "x", "tie (bothbad)")]


def battles(**more):
    columns = dict(zip(("model_a", "model_b", "winner"), map(list, zip(*SHOWN, strict=True)), strict=True))
    return {"question_id": list(range(len(SHOWN))), **columns, **more}


def test_table_without_judges_is_one_judge_and_winners_may_be_marked_in_columns(tmp_path):
    votes = read_preferences(battles())
    assert votes.sources == ("judge",)
    assert repr(votes.labels[0, 0]) == "x > y, y < z, x = z, z = x"
    assert "No column names a judge" in str(votes.receipt)
    marks = {"winner_model_a": [1, 0, 0, 0], "winner_model_b": [0, 1, 0, 0], "winner_tie": [0, 0, 1, 1]}
    table = {name: column for name, column in battles(**marks).items() if name != "winner"}
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    assert read_votes(tmp_path / "v.csv", cs.Preferences()).labels[0, 0] == votes.labels[0, 0]


def test_ties_and_both_bad_are_told_apart():
    assert "1 comparisons end with both bad, which counts as a tie, in addition to 1 ties" in str(
        read_preferences(battles()).receipt
    )
    table = read_judges(battles(judge=["ann", "bob", "ann", "bob"]))
    assert table.space == cs.Classes(["first", "second", "tie", "both bad"])


def test_judges_of_a_few_comparisons_are_pooled_where_judges_are_many():
    rng = np.random.default_rng(0)
    judges = [f"user {number}" for number in range(150)] + ["expert"] * 20
    pairs = [rng.permutation(["x", "y", "z"])[:2].tolist() for _ in judges]
    table = {"judge": judges, "model_a": [one for one, _ in pairs], "model_b": [two for _, two in pairs]}
    table["winner"] = [min(pair) for pair in pairs]
    votes = read_preferences(table)
    assert votes.sources == ("other judges", "expert")
    assert [len(vote) for vote in votes.labels[0]] == [150, 20]
    assert "150 judges with fewer than 5 comparisons are pooled" in str(votes.receipt)
    few = {name: column[100:] for name, column in table.items()}
    assert read_preferences(few).n_sources == pytest.approx(51)


def test_lines_of_a_file_are_named_as_an_editor_counts_them(tmp_path):
    (tmp_path / "v.csv").write_text("judge,model_a,model_b,winner\n\nann,x,y,x\nann,x,y,z\nann,z,x,z\n")
    with refused(FileFormatError, "Line 4, judge 'ann'", "the winner 'z' is neither"):
        read_preferences(tmp_path / "v.csv")
    (tmp_path / "s.csv").write_text("prompt,judge,score\np,ann,3\n,ann,4\n")
    with refused(FileFormatError, "Line 3 has no item"):
        read_judges(tmp_path / "s.csv")
