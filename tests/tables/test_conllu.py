"""CoNLL-U in and out: several parsers of the same sentences, ranges and empty nodes kept, errors with their line."""

import gzip

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidVotesError, UnknownSourceError

GOLD = """\
# newdoc
# sent_id = a-1
# text = I can't go
1\tI\tI\tPRON\tPRP\tCase=Nom\t4\tnsubj\t4:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tever\tever\tADV\t_\t_\t_\t_\t4:advmod\t_
4\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = a-2
1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

"""
OTHER = GOLD.replace("\t4\tadvmod\t_", "\t2\tneg\t_")


def test_heads_are_those_of_the_words_alone_and_their_consensus_is_written(tmp_path):
    bank = cs.tables.read_conllu({"gold": GOLD, "other": OTHER})
    assert (bank.sources, bank.votes.items.tolist()) == (("gold", "other"), ["a-1", "a-2"])
    assert [tree.tolist() for tree in bank.trees("other")] == [[4, 4, 2, 0], [0]]
    assert bank.relations == ("advmod", "aux", "neg", "nsubj", "root")
    assert bank.votes_with_relations.labels[0, 1].tolist() == [[4, 3], [4, 1], [2, 2], [0, 4]]
    assert bank.sentences[0].forms == ("I", "ca", "n't", "go")
    assert repr(bank) == "Treebank(2 sentences, 5 words, parsers: gold, other)"
    assert len(bank) == 2
    third = GOLD.replace("\t4\taux", "\t1\taux")
    bank = cs.tables.read_conllu({"one": GOLD, "two": OTHER, "three": third})
    model = cs.LabelModel(cs.DependencyTrees(), method="majority").fit(bank.votes)
    cs.tables.write_conllu(tmp_path / "consensus.conllu", bank, model.predict(bank.votes))
    assert (tmp_path / "consensus.conllu").read_text() == GOLD


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz"])
def test_what_is_written_keeps_all_but_the_tree(tmp_path, name):
    bank = cs.tables.read_conllu(GOLD)
    cs.tables.write_conllu(tmp_path / name, bank, bank.trees())
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data).decode() == GOLD
    cs.tables.write_conllu(tmp_path / name, bank.sentences, [[4, 4, 2, 0], [0]])
    again = cs.tables.read_conllu(tmp_path / name)
    assert (again.sources, again.trees()[0].tolist()) == (("out",), [4, 4, 2, 0])
    assert again.sentences[0].lines[4] == bank.sentences[0].lines[4]  # the range
    assert again.sentences[0].relations == bank.sentences[0].relations
    assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing temporary is left


def test_relations_are_written_by_name_and_a_missing_tree_as_an_abstention(tmp_path):
    bank = cs.tables.read_conllu({"gold": GOLD, "other": OTHER})
    labels = bank.trees("other", with_relations=True)
    path = tmp_path / "out.conllu"
    cs.tables.write_conllu(path, bank, labels, relations=bank.relations)
    assert path.read_text() == OTHER
    cs.tables.write_conllu(path, bank, cs.DependencyTrees(bank.relations).named(labels))
    assert path.read_text() == OTHER
    cs.tables.write_conllu(path, bank, [None, [0]])
    both = cs.tables.read_conllu({"gold": GOLD, "silent": path})
    assert both.votes.observed.tolist() == [[True, False], [True, True]]
    assert both.trees("silent")[0] is None


def test_line_ends_a_missing_last_line_and_missing_ids_do_no_harm(tmp_path):
    (tmp_path / "dos.conllu").write_bytes(b"\xef\xbb\xbf" + GOLD.rstrip("\n").replace("\n", "\r\n").encode())
    assert [tree.tolist() for tree in cs.tables.read_conllu(tmp_path / "dos.conllu").trees()] == [[4, 4, 4, 0], [0]]
    bank = cs.tables.read_conllu("\n".join(line for line in GOLD.split("\n") if "sent_id" not in line))
    assert bank.votes.items.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tSpaceAfter=No", "", "bad, line 5 has 9 columns; CoNLL-U has 10, separated by tabs"),
        ("3\tn't", "5\tn't", "bad, line 7: word 5 follows word 2"),
        ("3.1\tever", "x\tever", "bad, line 8 has id 'x'"),
        ("\t4\tadvmod\t_", "\t9\tadvmod\t_", "bad, line 7 has head '9'; expected 0 (the root) to 4"),
        ("\t4\tadvmod\t_", "\t_\tadvmod\t_", "bad, line 7 has head '_'"),
        ("go\tgo", "come\tgo", "'bad' parses other words than 'gold': sentence 0 (a-1), word 4 is 'come' instead of"),
        ("1\tYes", "1\tOh\t_\t_\t_\t_\t2\tx\t_\t_\n2\tYes", "sentence 1 (a-2), word 1 is 'Oh' instead of 'Yes'"),
        ("1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n", "", "'bad' has 1 sentences, 'gold' has 2: sentence 1 is only in"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_place(old, new, message):
    assert old in GOLD
    with pytest.raises(InvalidVotesError) as caught:
        cs.tables.read_conllu({"gold": GOLD, "bad": GOLD.replace(old, new)})
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(FileFormatError, match="There is no file"):
        cs.tables.read_conllu(tmp_path / "none.conllu")
    with pytest.raises(FileFormatError, match="is a folder"):
        cs.tables.read_conllu(tmp_path)
    (tmp_path / "latin.conllu").write_bytes(GOLD.replace("Yes", "Où").encode("latin-1"))
    with pytest.raises(FileFormatError, match="is not utf-8"):
        cs.tables.read_conllu(tmp_path / "latin.conllu")
    (tmp_path / "broken.conllu.gz").write_bytes(gzip.compress(GOLD.encode())[:40])
    with pytest.raises(FileFormatError, match="cannot be unpacked"):
        cs.tables.read_conllu(tmp_path / "broken.conllu.gz")
    with pytest.raises(InvalidVotesError, match="contains no sentence"):
        cs.tables.read_conllu("# nothing\n\n")
    with pytest.raises(InvalidVotesError, match="no files to read"):
        cs.tables.read_conllu({})


def test_trees_that_do_not_fit_the_sentences_are_refused(tmp_path):
    bank = cs.tables.read_conllu(GOLD)
    target = tmp_path / "out.conllu"
    with pytest.raises(InvalidVotesError, match="1 trees for 2 sentences"):
        cs.tables.write_conllu(target, bank, [[0]])
    with pytest.raises(InvalidVotesError, match="Sentence 0: the tree has 2 tokens, the sentence 4 words"):
        cs.tables.write_conllu(target, bank, [[0, 1], [0]])
    with pytest.raises(InvalidVotesError, match="relation with code 3, which has no name"):
        cs.tables.write_conllu(target, bank, [np.array([[4, 3], [4, 1], [2, 2], [0, 4]]), None])
    with pytest.raises(FileFormatError, match="no folder"):
        cs.tables.write_conllu(tmp_path / "none" / "out.conllu", bank, bank.trees())
    with pytest.raises(FileFormatError, match="is a folder"):
        cs.tables.write_conllu(tmp_path, bank, bank.trees())
    with pytest.raises(UnknownSourceError, match="'nobody' is not a parser"):
        bank.trees("nobody")
    assert not target.exists()


@pytest.mark.data
@pytest.mark.parametrize("name", ["en_ewt", "en_lines", "en_partut"])
def test_real_treebanks_come_back_byte_by_byte(data_directory, tmp_path, name):
    path = data_directory / "ud_english" / f"{name}-ud-test.conllu.gz"
    bank = cs.tables.read_conllu(path)
    cs.tables.write_conllu(tmp_path / "out.conllu", bank, bank.trees())
    assert (tmp_path / "out.conllu").read_bytes() == gzip.decompress(path.read_bytes())
    cs.DependencyTrees().as_batch(bank.trees())
