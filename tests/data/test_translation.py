"""Tests of public translation datasets, from a mirror with a few lines in their layout."""

import gzip
import re
from hashlib import sha256

import pytest

from regard.data.catalogue import CORPORA
from regard.data.public import translation as translation_module
from regard.data.public.translation import TRANSLATION_DATASETS, PublicTranslation, english_split

SENTENCES = [f"Sentence number {n} ." for n in range(400)]


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Write test lines to all files of all datasets, and set their checksums."""
    for name, dataset in TRANSLATION_DATASETS.items():
        files = {}
        for key, source in dataset.files.items():
            if key.startswith("en "):  # each English sentence twice
                rows = [f"{text}\t{key[-2:]} {n}" for text in SENTENCES for n in (1, 2)]
            else:
                rows = [f"{key} {n}" for n in range(len(key))]
            data = "".join(f"{row}\n" for row in rows).encode()
            path = tmp_path / "mirror" / source.mirror_path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(data))
            files[key] = source._replace(sha256=sha256(data).hexdigest())
        monkeypatch.setitem(
            translation_module.TRANSLATION_DATASETS, name, dataset._replace(files=files)
        )
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", ["multi30k", "multi30k_tok"])
def test_multi30k(mirror, name):
    corpus = PublicTranslation(name, "en", "de")
    for split in corpus.splits:
        records = list(corpus.read(split))
        assert records[0] == {"source": f"{split} en 0", "target": f"{split} de 0"}
        assert len(records) == len(f"{split} en")
    back = next(PublicTranslation(name, "fr", "en").read("dev"))
    assert back == {"source": "dev fr 0", "target": "dev en 0"}


@pytest.mark.parametrize("other", ["de", "fr", "pl"])
def test_tatoeba(mirror, other):
    forward, backward = (
        PublicTranslation("tatoeba", "en", other),
        PublicTranslation("tatoeba", other, "en"),
    )
    splits = {split: list(forward.read(split)) for split in forward.splits}
    assert sum(map(len, splits.values())) == 2 * len(SENTENCES)
    english = {split: {record["source"] for record in records} for split, records in splits.items()}
    assert english["train"].isdisjoint(english["dev"] | english["test"])
    assert english["dev"].isdisjoint(english["test"])
    assert english["dev"]
    assert english["test"]
    assert all(len(records) == 2 * len(english[split]) for split, records in splits.items())
    for split, records in splits.items():
        swapped = [{"source": r["target"], "target": r["source"]} for r in records]
        assert list(backward.read(split)) == swapped


def test_english_split_is_stable():
    """Dev and test are 2 % each; published results depend on these splits."""
    splits = [english_split(f"Sentence {n}") for n in range(10_000)]
    assert 150 < splits.count("dev") < 250
    assert 150 < splits.count("test") < 250
    assert {n for n in range(200) if splits[n] == "test"} == {72, 18, 26}
    assert {n for n in range(200) if splits[n] == "dev"} == {128, 84}


def test_only_needed_files_are_downloaded(mirror):
    list(PublicTranslation("multi30k", "en", "fr").read("dev"))
    file_names = {path.name for path in (mirror / "cache" / "multi30k").iterdir()} - {".lock"}
    assert file_names == {"val.en", "val.fr"}


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("name must be one of .*, not 'multi30'; did you mean 'multi30k'", ("multi30", "en", "de")),
        ("multi30k: source must be one of en, de, fr, not 'pl'", ("multi30k", "pl", "de")),
        ("multi30k: source and target are both 'en'", ("multi30k", "en", "en")),
        ("tatoeba: one side must be 'en', not 'de' and 'fr'", ("tatoeba", "de", "fr")),
    ],
)
def test_bad_arguments(message, arguments):
    with pytest.raises(ValueError, match=message):
        PublicTranslation(*arguments)


def test_datasets_are_complete():
    for name, dataset in TRANSLATION_DATASETS.items():
        assert name in CORPORA
        assert dataset.license
        for key, source in dataset.files.items():
            assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
            assert source.url.startswith("https://")
            assert source.mirror_path.startswith(f"translation/{name}/")
            assert source.mirror_path.endswith(".gz")
            assert set(key.split()) <= {*dataset.languages, "train", "dev", "test"}
            assert bool(source.member) == source.url.endswith(".zip")
        description = PublicTranslation(name, "en", "de").describe()
        assert dataset.homepage in description
        assert dataset.license in description
    checksums = [
        source.sha256 for p in TRANSLATION_DATASETS.values() for source in p.files.values()
    ]
    assert len(set(checksums)) == len(checksums) == 21
