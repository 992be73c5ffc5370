"""Tests of public texts, from a mirror with a few lines in their layout, and from real files."""

import gzip
import os
import re
from hashlib import sha256

import pytest

from regard.data.public import texts as texts_module
from regard.data.public.texts import TEXT_DATASETS, PublicText

LABELED = [name for name, dataset in TEXT_DATASETS.items() if dataset.labels]


def line_text(name, file, n):
    if file.endswith("_labels.txt"):
        return str(n % 4)
    if name == "sst2":
        return f"sentence {n} of {file}\t{n % 2}"
    if name == "imdb_sample":
        return f'{{"id": "{n}", "label": {n % 2}, "text": "film {n}<br /><br />of {file}"}}'
    return f"line {n} of {file}"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Write test lines to all files of all datasets, and set their checksums."""
    for name, dataset in TEXT_DATASETS.items():
        files = {}
        for split, sources in dataset.files.items():
            remote_files = []
            for source in sources:
                rows = [
                    line_text(name, source.mirror_path.rpartition("/")[2], n) for n in range(200)
                ]
                data = "".join(f"{row}\n" for row in rows).encode()
                path = tmp_path / "mirror" / source.mirror_path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
                remote_files.append(source._replace(sha256=sha256(data).hexdigest()))
            files[split] = tuple(remote_files)
        monkeypatch.setitem(texts_module.TEXT_DATASETS, name, dataset._replace(files=files))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", LABELED)
def test_labels_are_names(mirror, name):
    corpus = PublicText(name)
    assert corpus.fields == ("text", "label")
    for split in corpus.splits:
        records = list(corpus.read(split))
        assert {record["label"] for record in records} == set(TEXT_DATASETS[name].labels.values())
        assert set(records[0]) == {"text", "label"}


def test_published_splits(mirror):
    for name, file_name in (("sst2", "dev.tsv.gz"), ("tweeteval_emotion", "val_text.txt")):
        records = list(PublicText(name).read("dev"))
        assert len(records) == 200
        assert records[0]["text"] == f"sentence 0 of {file_name}".replace(
            "sentence", "sentence" if name == "sst2" else "line"
        )
    lines = list(PublicText("wikitext2").read("dev"))
    assert lines[0] == {"text": "line 0 of valid.txt.gz"}
    assert len(lines) == 200


def test_held_out_splits(mirror):
    """A missing dev is held out of train; the test stays the published one."""
    corpus = PublicText("imdb_sample")
    texts = {split: [record["text"] for record in corpus.read(split)] for split in corpus.splits}
    assert len(texts["train"]) + len(texts["dev"]) == len(texts["test"]) == 200
    assert texts["dev"]
    assert not {*texts["train"]} & {*texts["dev"]}
    assert texts["test"][0] == "film 0\n\nof test.jsonl.gz"
    shakespeare = PublicText("tinyshakespeare")
    assert shakespeare.splits == ("train", "dev")
    [train_text] = [record["text"] for record in shakespeare.read("train")]
    [dev_text] = [record["text"] for record in shakespeare.read("dev")]
    assert (train_text + dev_text).count("\n") == 200
    assert len(dev_text) == pytest.approx(len(train_text + dev_text) / 10, abs=1)


def test_datasets_are_complete():
    checksums = []
    for name, dataset in TEXT_DATASETS.items():
        assert dataset.license
        assert dataset.homepage in PublicText(name).describe()
        assert dataset.license in PublicText(name).describe()
        for sources in dataset.files.values():
            for source in sources:
                checksums.append(source.sha256)
                assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
                assert source.url.startswith("https://") or name == "imdb_sample"
                assert source.mirror_path.startswith(("classification/", "lm/"))
    assert len(set(checksums)) == len(checksums) == 15
    with pytest.raises(ValueError, match=r"name must be one of .*; did you mean 'sst2'"):
        PublicText("sst")


@pytest.mark.skipif("REGARD_MIRROR" not in os.environ, reason="REGARD_MIRROR is not set: no data")
def test_real_files(tmp_path, monkeypatch):
    """Compare with published counts; those of WikiText-2 are words and line ends."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    counts = {
        name: [sum(1 for _ in PublicText(name).read(s)) for s in PublicText(name).splits]
        for name in LABELED
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
