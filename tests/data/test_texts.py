"""Public sets of texts, from a mirror of a few lines that has their layout; and the real ones."""

import gzip
import os
import re
from hashlib import sha256

import pytest

from regard.data.public import texts as published
from regard.data.public.texts import TEXT_DATASETS, PublicText

LABELLED = [name for name, one in TEXT_DATASETS.items() if one.labels]


def line_of(name, file, n):
    if file.endswith("_labels.txt"):
        return str(n % 4)
    if name == "sst2":
        return f"sentence {n} of {file}\t{n % 2}"
    if name == "imdb_sample":
        return f'{{"id": "{n}", "label": {n % 2}, "text": "film {n}<br /><br />of {file}"}}'
    return f"line {n} of {file}"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Every file that is named, with our lines in it, and their checksums."""
    for name, publication in TEXT_DATASETS.items():
        files = {}
        for split, sources in publication.files.items():
            made = []
            for source in sources:
                rows = [line_of(name, source.mirror_path.rpartition("/")[2], n) for n in range(200)]
                data = "".join(f"{row}\n" for row in rows).encode()
                path = tmp_path / "mirror" / source.mirror_path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
                made.append(source._replace(sha256=sha256(data).hexdigest()))
            files[split] = tuple(made)
        monkeypatch.setitem(published.TEXT_DATASETS, name, publication._replace(files=files))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", LABELLED)
def test_labels_have_names(mirror, name):
    corpus = PublicText(name)
    assert corpus.fields == ("text", "label")
    for split in corpus.splits:
        records = list(corpus.read(split))
        assert {record["label"] for record in records} == set(TEXT_DATASETS[name].labels.values())
        assert set(records[0]) == {"text", "label"}


def test_splits_of_their_own(mirror):
    for name, there in (("sst2", "dev.tsv.gz"), ("tweeteval_emotion", "val_text.txt")):
        records = list(PublicText(name).read("dev"))
        assert len(records) == 200
        assert records[0]["text"] == f"sentence 0 of {there}".replace(
            "sentence", "sentence" if name == "sst2" else "line"
        )
    lines = list(PublicText("wikitext2").read("dev"))
    assert lines[0] == {"text": "line 0 of valid.txt.gz"}
    assert len(lines) == 200


def test_splits_of_ours(mirror):
    """A dev that upstream does not have; the test stays the published one."""
    corpus = PublicText("imdb_sample")
    texts = {split: [record["text"] for record in corpus.read(split)] for split in corpus.splits}
    assert len(texts["train"]) + len(texts["dev"]) == len(texts["test"]) == 200
    assert texts["dev"]
    assert not {*texts["train"]} & {*texts["dev"]}
    assert texts["test"][0] == "film 0\n\nof test.jsonl.gz"
    shakespeare = PublicText("tinyshakespeare")
    assert shakespeare.splits == ("train", "dev")
    [whole] = [record["text"] for record in shakespeare.read("train")]
    [rest] = [record["text"] for record in shakespeare.read("dev")]
    assert (whole + rest).count("\n") == 200
    assert len(rest) == pytest.approx(len(whole + rest) / 10, abs=1)


def test_what_nobody_serves_needs_a_mirror(mirror, monkeypatch):
    monkeypatch.delenv("REGARD_MIRROR")
    with pytest.raises(ValueError, match=r"train.jsonl.gz: no address serves .* REGARD_MIRROR"):
        list(PublicText("imdb_sample").read("train"))


def test_every_entry_is_complete():
    sums = []
    for name, publication in TEXT_DATASETS.items():
        assert publication.license
        assert publication.homepage in PublicText(name).describe()
        assert publication.license in PublicText(name).describe()
        for sources in publication.files.values():
            for source in sources:
                sums.append(source.sha256)
                assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
                assert source.url.startswith("https://") or name == "imdb_sample"
                assert source.mirror_path.startswith(("classification/", "lm/"))
    assert len(set(sums)) == len(sums) == 15
    with pytest.raises(ValueError, match=r"name must be one of .*; did you mean 'sst2'"):
        PublicText("sst")


@pytest.mark.skipif("REGARD_MIRROR" not in os.environ, reason="REGARD_MIRROR is not set: no data")
def test_the_real_ones(tmp_path, monkeypatch):
    """Counts as published; WikiText-2 in words and line ends."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    counts = {
        name: [sum(1 for _ in PublicText(name).read(s)) for s in PublicText(name).splits]
        for name in LABELLED
    }
    assert counts == {
        "sst2": [6920, 872, 1821],
        "imdb_sample": [4540, 460, 5000],
        "tweeteval_emotion": [3257, 374, 1421],
    }
    lines = PublicText("wikitext2").read("test")
    assert sum(len(record["text"].split()) + 1 for record in lines) == 245_569
    shakespeare = PublicText("tinyshakespeare")
    sizes = [len(next(shakespeare.read(split))["text"]) for split in shakespeare.splits]
    assert sizes == [1_003_854, 111_540]
