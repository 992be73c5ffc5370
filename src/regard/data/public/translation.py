"""Public translation datasets by name: downloaded once, checked, and kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.text_pairs import read_parallel, read_tsv
from regard.errors import InputError

GITHUB = "https://raw.githubusercontent.com"


class TranslationDataset(NamedTuple):
    """A public dataset: files by split and language ("train en"), or by language pair ("en fr")."""

    description: str
    license: str
    homepage: str
    languages: tuple[str, ...]
    files: dict[str, RemoteFile]


def _multi30k_files(
    folder: str, name: str, upstream: str, checksums: dict[str, str]
) -> dict[str, RemoteFile]:
    """Return the files by split and language; `name` has {} for upstream's split and language."""
    splits = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
    files = {}
    for key, digest in checksums.items():
        split, language = key.split()
        file = name.format(splits[split], language)
        url = f"{GITHUB}/multi30k/dataset/master/data/task1/{upstream.format(file)}"
        files[key] = RemoteFile(url, f"translation/{folder}/{file}.gz", digest)
    return files


TRANSLATION_DATASETS = {
    "multi30k": TranslationDataset(
        "29,000 captions of images in English, German and French; test is test_2016_flickr",
        "not stated (texts; the images are for non-commercial research)",
        "https://github.com/multi30k/dataset",
        ("en", "de", "fr"),
        _multi30k_files(
            "multi30k",
            "{}.{}",
            "raw/{}.gz",
            {
                "train en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
                "train de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
                "train fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
                "dev en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
                "dev de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
                "dev fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
                "test en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
                "test de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
                "test fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
            },
        ),
    ),
    "multi30k_tok": TranslationDataset(
        "Multi30k in lower case, tokenized by its publishers",
        "not stated (texts; the images are for non-commercial research)",
        "https://github.com/multi30k/dataset",
        ("en", "de", "fr"),
        _multi30k_files(
            "multi30k_tok",
            "{}.lc.norm.tok.{}",
            "tok/{}",
            {
                "train en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
                "train de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
                "train fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
                "dev en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
                "dev de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
                "dev fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
                "test en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
                "test de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
                "test fr": "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
            },
        ),
    ),
    "tatoeba": TranslationDataset(
        "sentences for learners with English: 167,130 French, 169,813 German, 43,050 Polish",
        "CC BY 2.0 (tatoeba.org, manythings.org/anki)",
        "http://www.manythings.org/anki/",
        ("en", "de", "fr", "pl"),
        {
            # Upstream replaces its files every few weeks; these are fixed copies.
            "en fr": RemoteFile(
                f"{GITHUB}/modelexlab/data/adddaf33ac35572bcfeb421efec29435e7ea9332/fra-eng.zip",
                "translation/tatoeba/fra-eng.tsv.gz",
                "0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104",
                "fra.txt",
            ),
            "en de": RemoteFile(
                f"{GITHUB}/rioyshky/translation/de48b7027f7318d77010a6e08ed928c10748c23d/deu-eng.zip",
                "translation/tatoeba/deu-eng.tsv.gz",
                "a79c90b3cd3102decffa49cc00fb6f20023974f2ae5c4782515bebe133fcc07b",
                "deu.txt",
            ),
            "en pl": RemoteFile(
                f"{GITHUB}/1p22geo/tensorflow-chat/6ab2f87d3437dc5d433a751b5afa5a25ef98a4b1/pol.txt",
                "translation/tatoeba/pol-eng.tsv.gz",
                "eb18818e005e8a642a2641f05340ba93df8c5bc55f899d939ef4577633e54ba5",
            ),
        },
    ),
}
HELD_OUT_PERCENT = 2  # of the English sentences, in dev and in test each


class PublicTranslation:
    """A public translation dataset, from one of its languages to another."""

    splits = SPLITS

    def __init__(self, name: str, source: str, target: str) -> None:
        check_name("name", name, TRANSLATION_DATASETS)
        self.name, self.source, self.target = name, source, target
        self.dataset = TRANSLATION_DATASETS[name]
        for side, language in (("source", source), ("target", target)):
            check_name(f"{name}: {side}", language, self.dataset.languages)
        if source == target:
            raise InputError(f"{name}: source and target are both {source!r}; choose two languages")
        self.is_split_by_hash = "train en" not in self.dataset.files
        if self.is_split_by_hash and "en" not in (source, target):
            raise InputError(f"{name}: one side must be 'en', not {source!r} and {target!r}")

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        if not self.is_split_by_hash:
            sides = [self.fetch(f"{split} {side}") for side in (self.source, self.target)]
            yield from read_parallel(sides)
            return
        other_language = self.target if self.source == "en" else self.source
        english, foreign = ("source", "target") if self.source == "en" else ("target", "source")
        for record in read_tsv(self.fetch(f"en {other_language}"), (english, foreign)):
            if english_split(record[english]) == split:
                yield record

    def fetch(self, key: str) -> Path:
        """Return the path in the cache; the file is downloaded the first time."""
        source = self.dataset.files[key]
        name = Path(source.mirror_path).name.removesuffix(".gz")
        return fetch_file(source, cache_folder() / self.name / name)

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return (
            f"{self.name} {self.source}-{self.target}: {description}; {homepage}; license: "
            f"{license_name}"
        )


def english_split(sentence: str) -> str:
    """Return the split of an English sentence by a stable hash.

    All translations of a sentence are in one split.
    """
    percentile = int.from_bytes(blake2b(sentence.encode(), digest_size=8).digest()) % 100
    if percentile < HELD_OUT_PERCENT:
        return "dev"
    return "test" if percentile < 2 * HELD_OUT_PERCENT else "train"
