"""Tests of proteins from files and public datasets: formats, splits, error messages."""

import gzip
import json
import random

import pytest

from regard.config.data.proteins import ProteinsDataConfig, PublicProteinsDataConfig
from regard.data import download
from regard.data.build import build_corpus
from regard.data.formats.proteins import ProteinFiles, parse_sequences
from regard.data.public.proteins import PROTEIN_DATASETS, PublicProteins, protein_families

RECORDS = [{"text": "MKVX", "states": "CHH?"}, {"text": "GG GA G-", "states": "EE"}]


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_all(path, **settings):
    return list(ProteinFiles(path, held_out=0.0, **settings).read("train"))


def error_message(path, **settings):
    with pytest.raises(ValueError) as caught:
        read_all(path, **settings)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(path), "FILE")


def test_all_formats_agree(tmp_path):
    fasta = write_file(tmp_path / "a.fasta", ">one\nmkvX\nCHH?\n\n> two\nGG\nGA\nG.\nEE\n")
    lines = write_file(
        tmp_path / "a.jsonl",
        '{"sequence": "MKVX", "states": "CHH?"}\n'
        '{"sequence": "GG", "states": "EE", "alignment": ["GA", "G-"]}\n',
    )
    table = write_file(tmp_path / "a.csv", "id,seq,ss\n1,MKVX,CHH?\n2,GG GA G-,EE\n")
    tabs = write_file(tmp_path / "a.tsv", "states\tsequence\nCHH?\tMKVX\nEE\tGG GA G-\n")
    packed = tmp_path / "b.fa.gz"
    packed.write_bytes(gzip.compress(fasta.read_bytes()))
    for path in (fasta, lines, tabs, packed):
        assert read_all(path) == RECORDS
    assert read_all(table, fields={"sequence": "seq", "states": "ss"}) == RECORDS


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.fasta", "MKV\nCHH\n", "FILE:1: text before the first >; a protein is >name, a line"),
        ("a.fasta", ">a\nMKV\n>b\nMK\nCC\n", "FILE:1: 1 lines below it; a protein is >name"),
        ("a.fasta", ">a\nMKV\nCC\n", "FILE:1: 2 states for 3 residues; give one for each"),
        ("a.fasta", ">a\nMKV\nMK\nCCC\n", "FILE:1: an aligned sequence has 2 positions, but"),
        ("a.fasta", ">a\nMK1\nCCC\n", "FILE:1: residue 3 is '1'; give letters"),
        ("a.fasta", ">a\nM-V\nCCC\n", "FILE:1: the first sequence has a gap at 2; remove the"),
        ("a.jsonl", "[1]\n", "FILE:1: expected an object with sequence, states"),
        ("a.jsonl", '{"sequence": "MK"}\n', "FILE:1: 'states' must be a text; add it"),
        (
            "a.jsonl",
            '{"sequence": "MK", "states": "C C", "alignment": "MK"}\n',
            "FILE:1: 'alignment' must be a list of texts",
        ),
        ("a.jsonl", '{"sequence": "MKV", "states": "C C"}\n', "FILE:1: a state is a space; write"),
        ("a.csv", "sequence,states\nMK,CC\nMKV,CC\n", "FILE:3: 2 states for 3 residues"),
        ("a.csv", "seq,states\nMK,CC\n", "FILE:1: the header must have 'sequence' once"),
        ("a.pdb", "x", "FILE: cannot infer the format from .pdb"),
    ],
)
def test_error_messages_name_the_location(tmp_path, name, text, message):
    assert error_message(write_file(tmp_path / name, text)).startswith(message)


def test_bad_settings(tmp_path):
    path = write_file(tmp_path / "a.csv", "sequence,states\nMK,CC\n")
    assert error_message(path, fields={"letters": "x"}).startswith(
        "fields must name sequence and states"
    )
    with pytest.raises(ValueError, match="there is no such file"):
        ProteinFiles(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="TEXT: no residues; give letters such as MKVLA"):
        parse_sequences("  ", "TEXT")


def test_held_out_splits(tmp_path):
    rng = random.Random(0)
    texts = ["".join(rng.choices("ACDE", k=12)) for _ in range(60)]
    path = write_file(tmp_path / "a.fa", "".join(f">x\n{text}\n{'C' * 12}\n" for text in texts))
    corpus = build_corpus(ProteinsDataConfig(train=str(path), held_out=0.2))
    texts_by_split = {s: [r["text"] for r in corpus.read(s)] for s in ("train", "dev", "test")}
    assert sorted(
        text for split_texts in texts_by_split.values() for text in split_texts
    ) == sorted(texts)
    assert all(len(split_texts) > 3 for split_texts in texts_by_split.values())
    assert "proteins (fasta)" in corpus.describe()


def test_protein_families():
    a, b, c = "MKVLAAGDEFF", "QQQVLAAGDEF", "AGDEFGHIKLM"
    families = protein_families([a, b, c, "WWWWWWWWWW"], min_shared=6)
    assert families[a] == families[b] == min(a, b)
    assert families[c] == c
    linked_families = protein_families(
        [a, c, "DEFFCCDEFGHI"], min_shared=4
    )  # the third links the others
    assert len(set(linked_families.values())) == 1


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(download, "is_verified", lambda path, _: path.is_file())
    monkeypatch.delenv("REGARD_MIRROR", raising=False)
    return tmp_path


def test_chains_of_several_domains_occur_once(cache):
    """Training uses complete chains; dev and test score only their domains."""
    rng = random.Random(1)
    rows, chains = ["input,dssp3,dssp8,disorder,cb513_mask"], []
    for _ in range(60):
        chain = "".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=10))
        chains.append(chain)
        rows += [
            f"{chain},CCHHHHEECC,CTHHGGEEBS,{'1.0 ' * 10},{mask.strip()}"
            for mask in ("1.0 " * 4 + "0.0 " * 6, "0.0 " * 8 + "1.0 " * 2)
        ]
    write_file(cache / "cb513" / "CB513.csv", "\n".join(rows) + "\n")
    corpus = build_corpus(PublicProteinsDataConfig())
    records_by_split = {split: list(corpus.read(split)) for split in corpus.splits}
    assert sorted(r["text"] for records in records_by_split.values() for r in records) == sorted(
        chains
    )
    assert {r["states"] for r in records_by_split["train"]} == {"CCHHHHEECC"}
    assert {r["states"] for r in [*records_by_split["dev"], *records_by_split["test"]]} == {
        "CCHH????CC"
    }
    assert len(records_by_split["train"]) > len(records_by_split["test"]) > 0
    eight = PublicProteins("cb513", 8)
    assert next(eight.read("train"))["states"] == "CTHHGGEEBS"


def test_uci_columns(cache):
    folder = cache / "uci_structure"
    blocks = "".join(
        f"<>\n{a} _\n{b} h\n{a} e\n{end}"
        for a, b, end in [("G", "V", "end\n"), ("K", "L", ""), ("A", "A", "<end>\n")]
    )
    write_file(folder / "protein-secondary-structure.train", f"# a comment\n\n{blocks * 1}")
    write_file(folder / "protein-secondary-structure.test", "<>\nM h\n<end>\n")
    corpus = PublicProteins("uci_structure")
    assert list(corpus.read("test")) == [{"text": "M", "states": "H"}]
    training_records = [*corpus.read("train"), *corpus.read("dev")]
    assert sorted(r["text"] for r in training_records) == ["AAA", "GVG", "KLK"]
    assert {r["states"] for r in training_records} == {"CHE"}
    write_file(folder / "protein-secondary-structure.test", "<>\nM h\nMM\n")
    with pytest.raises(ValueError, match=r"test:3: not a residue and its state \('MM'\)"):
        list(PublicProteins("uci_structure").read("test"))


def test_names_and_states_are_checked():
    with pytest.raises(ValueError, match="name must be one of cb513, uci_structure, not 'cb514'"):
        PublicProteins("cb514")
    with pytest.raises(ValueError, match="states: uci_structure has 3 states, not 8"):
        PublicProteins("uci_structure", 8)
    assert all(json.dumps(dataset.description) for dataset in PROTEIN_DATASETS.values())
