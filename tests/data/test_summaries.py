"""Tests of documents with summaries: files, public datasets, and synthetic headlines."""

import gzip
import json
import os
import re
from hashlib import sha256
from itertools import islice

import pytest

from regard.data.formats import summaries
from regard.data.formats.summaries import SUMMARY_DATASETS, PublicSummaries, SummaryFiles
from regard.data.synthetic.headlines import DAILY_VERBS, NEWS_VERBS, Headlines


def test_tsv_and_json_lines(tmp_path):
    (tmp_path / "a.tsv").write_text("a long text\tshort\nanother\tone\n")
    corpus = SummaryFiles(tmp_path / "a.tsv", held_out=0.0)
    assert list(corpus.read("train")) == [
        {"source": "a long text", "target": "short"},
        {"source": "another", "target": "one"},
    ]
    assert corpus.splits == ("train",)
    assert corpus.location("train", 1) == f"{tmp_path / 'a.tsv'}:2"
    rows = [{"body": "x y", "meta": {"tldr": "x"}}, {"body": "z", "meta": {"tldr": ["u", "v"]}}]
    path = tmp_path / "b.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    corpus = SummaryFiles(path, fields={"document": "body", "summary": "meta.tldr"}, held_out=0.0)
    assert list(corpus.read("train")) == [
        {"source": "x y", "target": "x"},
        {"source": "z", "target": "u", "references": ["u", "v"]},
    ]
    assert "\n" not in corpus.describe()


def test_splits_are_disjoint(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"text {n}\tsum {n}\n" for n in range(200)))
    corpus = SummaryFiles(tmp_path / "a.tsv")
    documents_by_split = {
        split: {r["source"] for r in corpus.read(split)} for split in corpus.splits
    }
    assert (
        sum(map(len, documents_by_split.values()))
        == len(set.union(*documents_by_split.values()))
        == 200
    )
    assert 5 < len(documents_by_split["dev"]) < 40


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "one\ttwo\n\ttwo\n", "a.tsv:2: the document is empty; write one, or remove"),
        ("a.tsv", "one\ttwo\none\t \n", "a.tsv:2: the summary is missing; write one, or remove"),
        ("a.tsv", "one\n", "a.tsv:1: 1 column, but 2 expected (document, summary)"),
        (
            "a.jsonl",
            '{"document": "a"}\n',
            "a.jsonl:1: no field 'summary'; the fields are: document",
        ),
        ("a.jsonl", '{"document": "", "summary": "b"}\n', "a.jsonl:1: the document is empty"),
        ("a.jsonl", '{"document": "a", "summary": []}\n', "a.jsonl:1: the summary is missing"),
        (
            "a.jsonl",
            '{"document": "a", "summary": [1]}\n',
            "a.jsonl:1: a summary must be a text, not int",
        ),
        ("a.jsonl", '{"document": "a", "summary": 3}\n', "'summary' must be str or list, not int"),
        ("a.jsonl", "nothing\n", "a.jsonl:1: not JSON"),
    ],
)
def test_bad_lines(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        list(SummaryFiles(tmp_path / name, held_out=0.0).read("train"))


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        SummaryFiles(tmp_path / "no.tsv")
    with pytest.raises(ValueError, match="give TSV or JSON lines, not parquet"):
        SummaryFiles(tmp_path / "a.parquet")


LINES = {
    "aeslc": [
        {"id": "a", "raw": "Hi Ann,\nsee you.\n\n@subject\nA  Meeting\n\n@ann0\nother\n\n@ann1\nx"},
        {"id": "b", "raw": "\n\n@subject\nempty"},
        {"id": "c", "raw": "No subject.\n\n@subject\n\n"},
        {"id": "d", "raw": "Bye.\n\n@subject\nLast"},
    ],
    "scitldr": [
        {"source": ["One.", "Two."], "target": ["first", "second"], "title": "t"},
        {"source": ["Three."], "target": ["third"], "title": "t"},
    ],
}
EXPECTED = {
    "aeslc": [("Hi Ann,\nsee you.\n", "A Meeting", None), ("Bye.\n", "Last", None)],
    "scitldr": [("One. Two.", "first", ["first", "second"]), ("Three.", "third", None)],
}


@pytest.mark.parametrize("name", SUMMARY_DATASETS)
def test_public_datasets(name, tmp_path, monkeypatch):
    data = "".join(f"{json.dumps(row)}\n" for row in LINES[name]).encode()
    dataset = SUMMARY_DATASETS[name]
    files = {}
    for split, source in dataset.files.items():
        path = tmp_path / "mirror" / source.mirror_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data))
        files[split] = source._replace(sha256=sha256(data).hexdigest())
    monkeypatch.setitem(summaries.SUMMARY_DATASETS, name, dataset._replace(files=files))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    corpus = PublicSummaries(name)
    for split in corpus.splits:
        records = [(r["source"], r["target"], r.get("references")) for r in corpus.read(split)]
        assert records == EXPECTED[name]
    assert "license" in corpus.describe()
    with pytest.raises(ValueError, match="did you mean 'aeslc'"):
        PublicSummaries("aeslcc")


@pytest.mark.skipif("REGARD_MIRROR" not in os.environ, reason="needs the real files")
@pytest.mark.parametrize(("name", "pairs"), [("aeslc", 1906), ("scitldr", 618)])
def test_real_files(name, pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    records = list(PublicSummaries(name).read("test"))
    assert len(records) == pairs
    assert all(record["source"].strip() and record["target"] for record in records)


def test_headlines_repeat_the_news():
    corpus = Headlines(300, held_out=50)
    for record in corpus.read("train"):
        sentences = [
            sentence.split() for sentence in record["source"].removesuffix(" .").split(" . ")
        ]
        assert 3 <= len(sentences) <= 6
        news = [sentence for sentence in sentences if sentence[1] in NEWS_VERBS]
        assert all(sentence[1] in (*NEWS_VERBS, *DAILY_VERBS) for sentence in sentences)
        assert len(news) == 1
        assert " ".join(news[0]).startswith(record["target"])
        assert record["target"].split()[0] == record["name"]


def test_names_of_headlines_are_new():
    corpus = Headlines(200, held_out=40)
    names_by_split = {
        split: [
            word for r in corpus.read(split) for word in r["source"].split() if word[0].isupper()
        ]
        for split in corpus.splits
    }
    assert not set(names_by_split["train"]) & {*names_by_split["dev"], *names_by_split["test"]}
    assert not set(names_by_split["dev"]) & set(names_by_split["test"])
    assert len(set(names_by_split["train"])) > 0.99 * len(names_by_split["train"])
    news_positions = [r["source"].split().index(r["name"]) // 8 for r in corpus.read("train")]
    assert set(news_positions) == set(range(6))  # the news may be at any position
    assert corpus.example("dev", 7) == next(islice(corpus.read("dev"), 7, None))
    assert next(Headlines(seed=1).read("dev")) != next(corpus.read("dev"))
    with pytest.raises(ValueError, match="min_sentences must be from 1 to max_sentences"):
        Headlines(min_sentences=3, max_sentences=2)
