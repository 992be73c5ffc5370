"""Proteins from files: every format, the public sets, and what is wrong where."""

import gzip
import json
import random

import pytest

from regard.config.data.proteins import ProteinsDataConfig, PublicProteinsDataConfig
from regard.data.build import build_corpus
from regard.data.formats.proteins import ProteinFiles, parse_sequences
from regard.data.public.proteins import PROTEIN_DATASETS, PublicProteins, protein_families

WANT = [{"text": "MKVX", "states": "CHH?"}, {"text": "GG GA G-", "states": "EE"}]


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(path, **settings):
    return list(ProteinFiles(path, held_out=0.0, **settings).read("train"))


def said(path, **settings):
    with pytest.raises(ValueError) as caught:
        read(path, **settings)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(path), "FILE")


def test_every_format_says_the_same(tmp_path):
    fasta = put(tmp_path / "a.fasta", ">one\nmkvX\nCHH?\n\n> two\nGG\nGA\nG.\nEE\n")
    lines = put(
        tmp_path / "a.jsonl",
        '{"sequence": "MKVX", "states": "CHH?"}\n'
        '{"sequence": "GG", "states": "EE", "alignment": ["GA", "G-"]}\n',
    )
    table = put(tmp_path / "a.csv", "id,seq,ss\n1,MKVX,CHH?\n2,GG GA G-,EE\n")
    tabs = put(tmp_path / "a.tsv", "states\tsequence\nCHH?\tMKVX\nEE\tGG GA G-\n")
    packed = tmp_path / "b.fa.gz"
    packed.write_bytes(gzip.compress(fasta.read_bytes()))
    for path in (fasta, lines, tabs, packed):
        assert read(path) == WANT
    assert read(table, fields={"sequence": "seq", "states": "ss"}) == WANT


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        ("a.fasta", "MKV\nCHH\n", "FILE:1: this is before the first >; a protein is >name, a line"),
        ("a.fasta", ">a\nMKV\n>b\nMK\nCC\n", "FILE:1: 1 lines below it; a protein is >name"),
        ("a.fasta", ">a\nMKV\nCC\n", "FILE:1: 2 states for 3 residues; give one for each"),
        ("a.fasta", ">a\nMKV\nMK\nCCC\n", "FILE:1: an aligned sequence has 2 places, the first"),
        ("a.fasta", ">a\nMK1\nCCC\n", "FILE:1: residue 3 is '1'; give letters"),
        ("a.fasta", ">a\nM-V\nCCC\n", "FILE:1: the first sequence has a gap at 2; take the col"),
        ("a.jsonl", "[1]\n", "FILE:1: expected an object with sequence, states"),
        ("a.jsonl", '{"sequence": "MK"}\n', "FILE:1: 'states' must be there, and a text"),
        (
            "a.jsonl",
            '{"sequence": "MK", "states": "C C", "alignment": "MK"}\n',
            "FILE:1: 'alignment' must be a list of texts",
        ),
        ("a.jsonl", '{"sequence": "MKV", "states": "C C"}\n', "FILE:1: a state is a space; write"),
        ("a.csv", "sequence,states\nMK,CC\nMKV,CC\n", "FILE:3: 2 states for 3 residues"),
        ("a.csv", "seq,states\nMK,CC\n", "FILE:1: the header must name 'sequence' once"),
        ("a.pdb", "x", "FILE: .pdb tells no format"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, name, text, want):
    assert said(put(tmp_path / name, text)).startswith(want)


def test_what_cannot_be_is_told_before_the_work(tmp_path):
    path = put(tmp_path / "a.csv", "sequence,states\nMK,CC\n")
    assert said(path, fields={"letters": "x"}).startswith("fields must name sequence and states")
    with pytest.raises(ValueError, match="there is no such file"):
        ProteinFiles(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="TEXT: no residues; give letters such as MKVLA"):
        parse_sequences("  ", "TEXT")


def test_what_is_held_out_hangs_on_the_sequence_alone(tmp_path):
    draw = random.Random(0)
    texts = ["".join(draw.choices("ACDE", k=12)) for _ in range(60)]
    path = put(tmp_path / "a.fa", "".join(f">x\n{text}\n{'C' * 12}\n" for text in texts))
    corpus = build_corpus(ProteinsDataConfig(train=str(path), held_out=0.2))
    found = {s: [r["text"] for r in corpus.read(s)] for s in ("train", "dev", "test")}
    assert sorted(text for some in found.values() for text in some) == sorted(texts)
    assert all(len(some) > 3 for some in found.values())
    assert "proteins (fasta)" in corpus.describe()


def test_relatives_are_one_family():
    a, b, c = "MKVLAAGDEFF", "QQQVLAAGDEF", "AGDEFGHIKLM"
    found = protein_families([a, b, c, "WWWWWWWWWW"], min_shared=6)
    assert found[a] == found[b] == min(a, b)
    assert found[c] == c
    linked = protein_families([a, c, "DEFFCCDEFGHI"], min_shared=4)  # the third is like both
    assert len(set(linked.values())) == 1


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.delenv("REGARD_MIRROR", raising=False)
    return tmp_path


def test_chains_of_several_domains_are_there_once(cache):
    """Trained on is all of a chain, scored are its domains."""
    draw = random.Random(1)
    rows, chains = ["input,dssp3,dssp8,disorder,cb513_mask"], []
    for _ in range(60):
        chain = "".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=10))
        chains.append(chain)
        rows += [
            f"{chain},CCHHHHEECC,CTHHGGEEBS,{'1.0 ' * 10},{mask.strip()}"
            for mask in ("1.0 " * 4 + "0.0 " * 6, "0.0 " * 8 + "1.0 " * 2)
        ]
    put(cache / "cb513" / "CB513.csv", "\n".join(rows) + "\n")
    corpus = build_corpus(PublicProteinsDataConfig())
    found = {split: list(corpus.read(split)) for split in corpus.splits}
    assert sorted(r["text"] for some in found.values() for r in some) == sorted(chains)
    assert {r["states"] for r in found["train"]} == {"CCHHHHEECC"}
    assert {r["states"] for r in [*found["dev"], *found["test"]]} == {"CCHH????CC"}
    assert len(found["train"]) > len(found["test"]) > 0
    eight = PublicProteins("cb513", 8)
    assert next(eight.read("train"))["states"] == "CTHHGGEEBS"


def test_columns_of_uci_are_proteins(cache):
    folder = cache / "uci_structure"
    some = "".join(
        f"<>\n{a} _\n{b} h\n{a} e\n{end}"
        for a, b, end in [("G", "V", "end\n"), ("K", "L", ""), ("A", "A", "<end>\n")]
    )
    put(folder / "protein-secondary-structure.train", f"# a comment\n\n{some * 1}")
    put(folder / "protein-secondary-structure.test", "<>\nM h\n<end>\n")
    corpus = PublicProteins("uci_structure")
    assert list(corpus.read("test")) == [{"text": "M", "states": "H"}]
    trained = [*corpus.read("train"), *corpus.read("dev")]
    assert sorted(r["text"] for r in trained) == ["AAA", "GVG", "KLK"]
    assert {r["states"] for r in trained} == {"CHE"}
    put(folder / "protein-secondary-structure.test", "<>\nM h\nMM\n")
    with pytest.raises(ValueError, match=r"test:3: 'MM' is not a residue and its state"):
        list(PublicProteins("uci_structure").read("test"))


def test_names_and_states_are_checked():
    with pytest.raises(ValueError, match="name must be one of cb513, uci_structure, not 'cb514'"):
        PublicProteins("cb514")
    with pytest.raises(ValueError, match="states: uci_structure has 3 of them, not 8"):
        PublicProteins("uci_structure", 8)
    assert all(json.dumps(one.description) for one in PROTEIN_DATASETS.values())
