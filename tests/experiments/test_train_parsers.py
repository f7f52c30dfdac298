"""The script that trains parsers reads and rewrites CoNLL-U, repairs roots, and says what it lacks."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.end_models.parser_families import root_of
from consilience.exceptions import MissingPackageError

ROOT = Path(__file__).resolve().parents[2]

SENTENCES = """\
# sent_id = 1
# text = I can't swim
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t4:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t4:aux\tA=1
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t4:advmod\t_
4\tswim\tswim\tVERB\tVB\t_\t0\troot\t0:root\tSpaceAfter=No
4.1\tswim\tswim\tVERB\tVB\t_\t_\t_\t1:conj\t_

# sent_id = 2
1\tGo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_

"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("experiments.train_parsers")
    finally:
        sys.path.remove(str(ROOT))


def test_ranges_and_empty_nodes_are_no_words(script: ModuleType) -> None:
    first, second = (block.sentence for block in script.read_blocks(SENTENCES.splitlines(), "x"))
    assert first.words == ["I", "ca", "n't", "swim"]
    assert first.tags == ["PRON", "AUX", "PART", "VERB"]
    assert first.heads == [4, 4, 4, 0]
    assert first.relations == ["nsubj", "aux", "advmod", "root"]
    assert second.words == ["Go"]
    assert len(script.read_blocks(SENTENCES.rstrip().splitlines(), "x")) == 2  # without a blank line at the end
    with pytest.raises(SystemExit, match=r"some\.conllu, line 2: 3 columns, not 10"):
        script.read_blocks(["# text = a", "1\ta\tb"], "some.conllu")


def test_a_new_tree_changes_heads_and_relations_only(script: ModuleType) -> None:
    blocks = script.read_blocks(SENTENCES.splitlines(), "x")
    same = "".join(block.with_tree((block.sentence.heads, block.sentence.relations)) for block in blocks)
    assert same == SENTENCES
    changed = blocks[0].with_tree(([2, 0, 2, 2], ["dep", "root", "a", "b"])).splitlines()
    before = SENTENCES.splitlines()
    assert changed[2] == "1\tI\tI\tPRON\tPRP\t_\t2\tdep\t4:nsubj\t_"
    assert changed[4] == "2\tca\tcan\tAUX\tMD\t_\t0\troot\t4:aux\tA=1"
    assert [changed[index] for index in (0, 1, 3, 7)] == [before[index] for index in (0, 1, 3, 7)]
    with pytest.raises(ValueError, match="shorter"):
        blocks[0].with_tree(([0], ["root"]))


def test_second_roots_are_attached_to_the_largest(script: ModuleType) -> None:
    # 2 has one word below it, 4 has two: 4 stays, 2 moves; 6 is alone and moves
    heads, relations = script.single_root([2, 0, 4, 0, 4, 0], ["a", "root", "b", "root", "c", "root"])
    assert heads == [2, 4, 4, 0, 4, 4]
    assert relations == ["a", "dep", "b", "root", "c", "dep"]
    assert script.single_root([0, 0], ["x", "y"]) == ([0, 1], ["root", "dep"])  # the first of equals
    assert script.single_root([2, 0, 2], ["a", "ROOT", "b"]) == ([2, 0, 2], ["a", "root", "b"])  # but for its name


@given(st.data())
def test_a_repaired_forest_is_a_tree_that_keeps_all_other_heads(script: ModuleType, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    # heads that point to an earlier word of a random order make a forest
    order = data.draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for place, word in enumerate(order):
        heads[word - 1] = data.draw(st.sampled_from([0, *order[:place]]))
    repaired, relations = script.single_root(heads, ["x"] * n)
    assert repaired.count(0) == 1
    root = repaired.index(0) + 1
    assert {root_of(word, repaired) for word in range(1, n + 1)} == {root}
    assert all(new == old for new, old in zip(repaired, heads, strict=True) if old)
    assert relations.count("root") == 1


def test_cycles_and_heads_out_of_range_are_errors(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="cycle"):
        script.single_root([0, 3, 2], ["a", "b", "c"])
    with pytest.raises(ValueError, match="Word 2 has the head 7 in a sentence of 2 words"):
        script.single_root([0, 7], ["a", "b"])


def test_scores_count_words_not_sentences(script: ModuleType) -> None:
    gold = [block.sentence for block in script.read_blocks(SENTENCES.splitlines(), "x")]
    trees = [([4, 4, 2, 0], ["nsubj", "cop", "advmod", "root"]), ([0], ["root"])]
    parsed = [script.Sentence(one.words, one.tags, *tree) for one, tree in zip(gold, trees, strict=True)]
    assert script.attachment_scores(gold, parsed) == (4 / 5, 3 / 5)


def test_training_sentences_are_drawn_up_to_a_number_of_words(script: ModuleType) -> None:
    sentences = [script.Sentence([str(index)] * (1 + index % 4), [], [], []) for index in range(100)]
    chosen = script.drawn(sentences, 60, seed=1)
    assert 57 <= sum(len(sentence.words) for sentence in chosen) <= 60  # stops where no sentence of at most 4 fits
    assert chosen == script.drawn(sentences, 60, seed=1)
    assert chosen != script.drawn(sentences, 60, seed=2)
    assert len(script.drawn(sentences, 10**6, seed=1)) == 100


def test_a_file_is_written_whole(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    script.write_whole(path, b"one")
    script.write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


class RightBranching:
    """A parser that learns nothing and counts how often it is asked to."""

    reads = "words"

    def __init__(self) -> None:
        self.trained = itertools.count()
        self.parsed = itertools.count()

    def seeing(self, n_words: int) -> RightBranching:
        return self

    def settings(self, n_words: int) -> dict[str, int]:
        return {"of": n_words}

    def train(self, sentences: object, seed: int) -> bytes:
        next(self.trained)
        return b"model"

    def parse(self, model: Path, sentences: list) -> list:  # type: ignore[type-arg]
        next(self.parsed)
        lengths = [len(sentence.words) for sentence in sentences]
        return [([*range(2, length + 1), 0], ["dep"] * length) for length in lengths]


@pytest.mark.data
def test_finished_work_is_not_done_again(
    script: ModuleType, data_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = RightBranching()
    monkeypatch.setitem(script.FAMILIES, "udpipe", parser)
    arguments = ["--quick", "--cache", str(tmp_path / "c"), "--results", str(tmp_path), "--families", "udpipe"]
    script.main(arguments)
    first = (tmp_path / "train_parsers.md").read_text(encoding="utf-8")
    script.main(arguments)
    assert (tmp_path / "train_parsers.md").read_text(encoding="utf-8") == first
    assert (next(parser.trained), next(parser.parsed)) == (3, 9)
    assert "python -m experiments.train_parsers --families udpipe --seed 0 --quick" in first
    assert str(data_directory) not in first
    cache = tmp_path / "c" / "quick"
    found = {str(path.relative_to(cache)) for path in cache.glob("*/*.conllu")}
    names = ("partut", "lines", "ewt")
    assert found == {f"{test}/udpipe-{train}.conllu" for test in names for train in names if test != train}
    # another seed draws other sentences: everything that hangs on it is made again
    script.main([*arguments, "--seed", "1"])
    assert (next(parser.trained), next(parser.parsed)) == (7, 19)
    record = json.loads((cache / "models" / "udpipe-ewt.json").read_text(encoding="utf-8"))
    assert record["settings"]["seed"] == 1


@pytest.mark.parametrize(("family", "package"), [("udpipe", "ufal.udpipe"), ("spacy", "spacy")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    script: ModuleType, family: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"needs {package}.*pip install 'consilience\[parsers\]'"):
        script.FAMILIES[family].train([script.Sentence(["a"], ["X"], [0], ["root"])], 0)


def test_missing_data_is_named(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        script.main(["--quick"])
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"en_partut-ud-train\.conllu\.gz is missing"):
        script.main(["--quick", "--cache", str(tmp_path)])


def test_passes_come_closest_to_the_words_to_be_seen() -> None:
    families = importlib.import_module("experiments.parser_settings")
    assert [families.passes_over(words, 400) for words in (100, 43, 150, 3000)] == [4, 9, 3, 1]


@pytest.mark.parametrize(
    ("family", "package"), [("udpipe", "ufal.udpipe"), ("spacy", "spacy"), ("spacy-upos", "spacy")]
)
def test_a_real_parser_learns_the_sentences_it_is_shown(
    script: ModuleType, family: str, package: str, tmp_path: Path
) -> None:
    pytest.importorskip(package)
    sentences = [block.sentence for block in script.read_blocks(SENTENCES.splitlines(), "x")]
    sentences.append(
        script.Sentence(["See", "it", "now"], ["VERB", "PRON", "ADV"], [0, 1, 1], ["root", "obj", "advmod"])
    )
    chosen = script.FAMILIES[family].seeing(8000)
    (tmp_path / "model").write_bytes(chosen.train(sentences * 40, seed=0))
    trees = chosen.parse(tmp_path / "model", sentences)
    assert [heads for heads, _ in trees] == [[4, 4, 4, 0], [0], [0, 1, 1]]
    assert trees[0][1] == ["nsubj", "aux", "advmod", "root"]
