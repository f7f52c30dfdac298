"""The experiments on trees run and measure what they say; the script that trains parsers repairs what it reads."""

import gzip
import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import MissingPackageError


def conllu(trees: list[np.ndarray]) -> str:
    sentences = []
    for tree in trees:
        rows = [f"{d}\tw{d}\t_\t_\t_\t_\t{h}\t{'root' if h == 0 else 'dep'}\t_\t_" for d, h in enumerate(tree, start=1)]
        sentences.append("\n".join(rows) + "\n\n")
    return "".join(sentences)


@pytest.fixture
def cached_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gold trees of four small test sets, and the output of three parsers on each."""
    space, rng = cs.DependencyTrees(), np.random.default_rng(0)
    for treebank in ("en_ewt", "en_lines", "en_partut", "cs_pud"):
        folder = tmp_path / "data" / ("ud_czech" if treebank == "cs_pud" else "ud_english")
        folder.mkdir(parents=True, exist_ok=True)
        gold = space.random_trees(rng.integers(4, 15, 60), rng)
        with gzip.open(folder / f"{treebank}-ud-test.conllu.gz", "wt") as file:
            file.write(conllu(list(gold)))
        folder = tmp_path / "cache" / treebank
        folder.mkdir(parents=True)
        for name, rate in (("udpipe-gum", 0.1), ("spacy-gum", 0.2), ("udpipe-atis", 0.3)):
            weight = float(space.law.weight_from_cost(np.array([rate]))[0])
            (folder / f"{name}.conllu").write_text(conllu(list(space.sample_around(gold, weight, rng))))
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path / "data"))
    return tmp_path / "cache"


def test_the_experiment_on_real_parsers_reads_its_cache_and_counts_test_sets(
    cached_parses, tmp_path, monkeypatch, run_experiment
):
    text = run_experiment("parsers", "--cache", str(cached_parses), seeds=2)
    assert "| ParTUT: **30 known sentences** |" in text
    assert "| EWT: udpipe-gum |" in text
    assert str(tmp_path) not in text
    monkeypatch.setenv("CONSILIENCE_CACHE", str(cached_parses))
    importlib.import_module("experiments.parsers").main(["--seeds", "2", "--results", str(tmp_path)])
    text = (tmp_path / "parsers.md").read_text(encoding="utf-8")
    assert "| PUD: udpipe-gum |" in (tmp_path / "parsers_czech.md").read_text(encoding="utf-8")
    assert "on two thirds of the test sets: **holds**" in text  # independent parsers: the consensus beats each of them


def test_a_parse_that_is_no_tree_becomes_the_nearest_one():
    parsers = importlib.import_module("experiments.parsers")
    bank = cs.tables.read_conllu(conllu([np.array([0, 1, 0]), np.array([2, 0]), np.array([2, 3, 2, 0])]))
    checked, changed = parsers.as_trees(bank)
    assert changed == 2
    kept = [int((new == old).sum()) for new, old in zip(checked.trees(), bank.trees(), strict=True)]
    assert kept == [2, 2, 3]


def test_the_experiment_on_real_parsers_says_what_is_missing(tmp_path):
    with pytest.raises(SystemExit, match="fewer than three parsers for some test set of every language"):
        importlib.import_module("experiments.parsers").main(["--quick", "--cache", str(tmp_path)])
    with pytest.raises(SystemExit, match="--cache needs a folder"):
        importlib.import_module("experiments.parsers").main(["--cache"])


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


@pytest.mark.parametrize(("family", "package"), [("udpipe", "ufal.udpipe"), ("spacy", "spacy")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(script, family, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"needs {package}.*pip install 'consilience\[parsers\]'"):
        script.FAMILIES[family].train([script.Sentence(["a"], ["X"], [0], ["root"])], 0)


def test_missing_data_is_named(script, tmp_path, monkeypatch):
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        script.main(["--quick"])
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"en_partut-ud-train\.conllu\.gz is missing"):
        script.main(["--quick", "--cache", str(tmp_path)])


def test_each_language_has_a_table_of_its_own_that_names_the_command(script, tmp_path):
    given = script.read_arguments(["--results", str(tmp_path)])
    row = ["udpipe-cltt", "words", "13,894", "250", "(76.3)", "(71.2)", "68.1", "53.8", "67.5", "57.3", "0"]
    script.write_table(given, "cs", ["cltt", "fictree"], [row])
    text = (tmp_path / "train_parsers_czech.md").read_text(encoding="utf-8")
    assert "--seed 0` ·" in text
    assert "| CLTT UAS | CLTT LAS | FicTree UAS | FicTree LAS | PUD UAS | PUD LAS | repaired |" in text
    script.write_table(given, "en", ["lines"], [row])
    assert "--seed 0 --treebanks lines` ·" in (tmp_path / "train_parsers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("family", "package"), [("udpipe", "ufal.udpipe"), ("spacy", "spacy"), ("spacy-upos", "spacy")]
)
def test_a_real_parser_learns_the_sentences_it_is_shown(script, family, package, tmp_path):
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
