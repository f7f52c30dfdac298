"""The program between other programs: tables from the standard input and to the output, packed files, JSON errors."""

from __future__ import annotations

import gzip
import json

import pytest
from click.testing import CliRunner
from tests.cli.running import run

from consilience.cli import main


def piped(data: bytes, *arguments: str):
    return CliRunner().invoke(main, list(arguments), input=data)


def test_labels_are_the_same_whether_files_are_named_or_piped(folder):
    assert run("label", "votes.csv", "-o", "labels.csv").exit_code == 0
    ran = piped((folder / "votes.csv").read_bytes(), "label", "-", "-o", "-")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout_bytes == (folder / "labels.csv").read_bytes()
    assert "ann" in ran.stderr  # who can be trusted is said beside the labels


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv.gz"])
def test_format_of_the_standard_input_is_seen_from_its_start(folder, ending):
    assert run("convert", "votes.csv", f"votes.{ending}").exit_code == 0
    ran = piped((folder / f"votes.{ending}").read_bytes(), "convert", "-", "again.csv")
    assert ran.exit_code == 0, ran.output
    assert (folder / "again.csv").read_bytes() == (folder / "votes.csv").read_bytes()


@pytest.mark.parametrize(
    ("data", "words"), [(b"a,b\n1,2,3\n", "Error: '-', line 2: 3 cells"), (b"", "nothing came from the standard input")]
)
def test_standard_input_that_is_no_table_is_refused(data, words):
    ran = piped(data, "inspect", "-")
    assert ran.exit_code == 2
    assert words in ran.stderr


def test_only_one_result_goes_to_the_standard_output(folder):
    ran = run("label", "votes.csv", "-o", "-", "--json")
    assert ran.exit_code == 2
    assert "would both write to the standard output" in json.loads(ran.stdout)["error"]


def test_packed_text_is_read_and_written_and_the_same_each_time(folder):
    (folder / "votes.csv.gz").write_bytes(gzip.compress((folder / "votes.csv").read_bytes()))
    for name in ("labels.csv", "labels.csv.gz", "again.csv.gz"):
        assert run("label", "votes.csv.gz", "-o", name).exit_code == 0
    assert gzip.decompress((folder / "labels.csv.gz").read_bytes()) == (folder / "labels.csv").read_bytes()
    assert (folder / "again.csv.gz").read_bytes() == (folder / "labels.csv.gz").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("label", "nothing.csv", "-o", "labels.csv", "--json"),
        ("label", "votes.csv", "-o", "labels.csv", "--method", "magic", "--json"),
        ("label", "votes.csv", "--json"),
        ("lable", "--json"),
    ],
)
def test_json_was_asked_for_so_errors_are_json_too(folder, arguments):
    ran = run(*arguments)
    assert ran.exit_code == 2
    document = json.loads(ran.stdout)
    assert document["exit_status"] == 2
    assert f"Error: {document['error']}" in ran.stderr


def test_long_texts_are_cut_in_tables_and_whole_in_json(folder):
    (folder / "long.csv").write_text(f"item,a,b,c\n1,{'x' * 3000},y,y\n2,y,y,y\n")
    assert max(map(len, run("inspect", "long.csv").stdout.splitlines())) < 200
    assert "x" * 3000 in run("inspect", "long.csv", "--json").stdout
