"""Public corpora, from a mirror of a few lines that has their layout."""

import gzip
import re
from hashlib import sha256

import pytest

from regard.data.catalogue import CORPORA
from regard.data.public import translation as named
from regard.data.public.translation import TRANSLATION_DATASETS, PublicTranslation, english_split

SENTENCES = [f"Sentence number {n} ." for n in range(400)]


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Every file that the catalogue names, with our lines in it, and their checksums."""
    for name, publication in TRANSLATION_DATASETS.items():
        files = {}
        for key, source in publication.files.items():
            if key.startswith("en "):  # each English sentence twice
                rows = [f"{text}\t{key[-2:]} {n}" for text in SENTENCES for n in (1, 2)]
            else:
                rows = [f"{key} {n}" for n in range(len(key))]
            data = "".join(f"{row}\n" for row in rows).encode()
            place = tmp_path / "mirror" / source.mirror_path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(gzip.compress(data))
            files[key] = source._replace(sha256=sha256(data).hexdigest())
        monkeypatch.setitem(named.TRANSLATION_DATASETS, name, publication._replace(files=files))
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
    there, back = (
        PublicTranslation("tatoeba", "en", other),
        PublicTranslation("tatoeba", other, "en"),
    )
    splits = {split: list(there.read(split)) for split in there.splits}
    assert sum(map(len, splits.values())) == 2 * len(SENTENCES)
    english = {split: {record["source"] for record in found} for split, found in splits.items()}
    assert english["train"].isdisjoint(english["dev"] | english["test"])
    assert english["dev"].isdisjoint(english["test"])
    assert english["dev"]
    assert english["test"]
    assert all(len(found) == 2 * len(english[split]) for split, found in splits.items())
    for split, found in splits.items():
        turned = [{"source": r["target"], "target": r["source"]} for r in found]
        assert list(back.read(split)) == turned


def test_the_split_never_moves():
    """Two of a hundred each; these places are what results were measured on."""
    splits = [english_split(f"Sentence {n}") for n in range(10_000)]
    assert 150 < splits.count("dev") < 250
    assert 150 < splits.count("test") < 250
    assert {n for n in range(200) if splits[n] == "test"} == {72, 18, 26}
    assert {n for n in range(200) if splits[n] == "dev"} == {128, 84}


def test_only_what_is_needed_is_fetched(mirror):
    list(PublicTranslation("multi30k", "en", "fr").read("dev"))
    found = {path.name for path in (mirror / "cache" / "multi30k").iterdir()} - {".lock"}
    assert found == {"val.en", "val.fr"}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("name must be one of .*, not 'multi30'; did you mean 'multi30k'", ("multi30", "en", "de")),
        ("multi30k: source must be one of en, de, fr, not 'pl'", ("multi30k", "pl", "de")),
        ("multi30k: source and target are both 'en'", ("multi30k", "en", "en")),
        ("tatoeba: one side must be 'en', not 'de' and 'fr'", ("tatoeba", "de", "fr")),
    ],
)
def test_wrong_arguments(words, arguments):
    with pytest.raises(ValueError, match=words):
        PublicTranslation(*arguments)


def test_every_entry_is_complete():
    for name, publication in TRANSLATION_DATASETS.items():
        assert name in CORPORA
        assert publication.license
        for key, source in publication.files.items():
            assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
            assert source.url.startswith("https://")
            assert source.mirror_path.startswith(f"translation/{name}/")
            assert source.mirror_path.endswith(".gz")
            assert set(key.split()) <= {*publication.languages, "train", "dev", "test"}
            assert bool(source.member) == source.url.endswith(".zip")
        whole = PublicTranslation(name, "en", "de").describe()
        assert publication.homepage in whole
        assert publication.license in whole
    sums = [source.sha256 for p in TRANSLATION_DATASETS.values() for source in p.files.values()]
    assert len(set(sums)) == len(sums) == 21
