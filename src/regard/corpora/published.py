"""Public sets of texts by name, with labels or without: fetched once, checked, kept in the cache.

The texts belong to those who wrote them; `licence` is what their publishers state.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.corpora.corpus import SPLITS, Record, check_name, check_split
from regard.corpora.documents import Documents, Unit
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.labelled import Labelled

GITHUB = "https://raw.githubusercontent.com"
SENTIMENT = {"0": "negative", "1": "positive"}
EMOTIONS = {"0": "anger", "1": "joy", "2": "optimism", "3": "sadness"}  # their mapping.txt


class Publication(NamedTuple):
    """`files` are by split, and `held_out` of train is for dev if there is none.

    `labels` are the names of the classes that the files have numbers for; none: running text.
    """

    about: str
    licence: str
    home: str
    files: dict[str, tuple[Source, ...]]
    labels: dict[str, str]
    held_out: float = 0.0
    unit: Unit = "line"


def _sst2(split: str, digest: str) -> tuple[Source, ...]:
    url = f"{GITHUB}/clairett/pytorch-sentiment-classification/master/data/SST2/{split}.tsv"
    return (Source(url, f"classification/sst2/{split}.tsv.gz", digest),)


def _imdb(split: str, digest: str) -> tuple[Source, ...]:
    # Upstream is an archive of one file for each of 50,000 reviews: nobody serves this file.
    return (Source("", f"classification/imdb_sample/{split}.jsonl.gz", digest),)


def _emotion(split: str, text: str, labels: str) -> tuple[Source, ...]:
    folder = "cardiffnlp/tweeteval/8df207ad6fcdab017000ad5196f797cd21f9a30f/datasets/emotion"
    return tuple(
        Source(f"{GITHUB}/{folder}/{name}", f"classification/tweeteval_emotion/{name}", digest)
        for name, digest in ((f"{split}_text.txt", text), (f"{split}_labels.txt", labels))
    )


def _wikitext(split: str, digest: str) -> tuple[Source, ...]:
    commit = "pytorch/examples/cf74c81ec00256a9511c054aaf0b3f62cd3aa62d"
    url = f"{GITHUB}/{commit}/word_language_model/data/wikitext-2/{split}.txt"
    return (Source(url, f"lm/wikitext-2/{split}.txt.gz", digest),)


PUBLISHED = {
    "sst2": Publication(
        "sentences of film reviews, negative or positive (Socher et al. 2013)",
        "not stated",
        "https://github.com/clairett/pytorch-sentiment-classification",
        {
            "train": _sst2(
                "train", "ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920"
            ),
            "dev": _sst2("dev", "eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359"),
            "test": _sst2(
                "test", "831169c7e2e429d6026e1bdbb542f33b636e3e596caad9602ebc953c205928b7"
            ),
        },
        SENTIMENT,
    ),
    "imdb_sample": Publication(
        "film reviews, negative or positive: every fifth of IMDB (Maas et al. 2011)",
        "not stated",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        {
            "train": _imdb(
                "train", "114f83c0ac03134ae88192884ef8bc1c825442691043cd5a6b50a01f2ad44b75"
            ),
            "test": _imdb(
                "test", "7ab17446094aa11a721c4d4ba0e137ec99bf733f257c23501e2271e762b9928d"
            ),
        },
        SENTIMENT,
        held_out=0.1,
    ),
    "tweeteval_emotion": Publication(
        "tweets of anger, joy, optimism or sadness (Mohammad et al. 2018; Barbieri et al. 2020)",
        "no restrictions by its publishers; those of the task or of Twitter may apply",
        "https://github.com/cardiffnlp/tweeteval",
        {
            "train": _emotion(
                "train",
                "2c62f67aeb3eac1aea0e5a9c3d0f4bc337992581f3f858061786a1fb4d79d95e",
                "987e767d8679e18abdf7de37a6d2bcd0a40a296ddd704e8d515cf0e3033c8d9c",
            ),
            "dev": _emotion(
                "val",
                "e2e30c86b8cbb97944d6543aedc06eace3bb275cb2f381aba787b838b4f23ca5",
                "313730630160b7e0a6b4235b800c76683f4aeeb72d094eb69646630cd5cfe338",
            ),
            "test": _emotion(
                "test",
                "7e1070f5d3e3fcece5bc73680bff9981e90d8f7b2f1009bfe7a01d059d1c6091",
                "245072348c711961785be6d395997f97cf7fcda3effeae7805664171dc75f913",
            ),
        },
        EMOTIONS,
    ),
    "wikitext2": Publication(
        "two million words of Wikipedia, rare ones <unk>; a record is a line (Merity et al. 2016)",
        "CC BY-SA (the text of Wikipedia; the copies state none)",
        "https://github.com/pytorch/examples",
        {
            "train": _wikitext(
                "train", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"
            ),
            "dev": _wikitext(
                "valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"
            ),
            "test": _wikitext(
                "test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"
            ),
        },
        {},
    ),
    "tinyshakespeare": Publication(
        "a million characters of Shakespeare; dev is the last tenth, and there is no test",
        "public domain (the text; its publisher states none)",
        "https://github.com/karpathy/char-rnn",
        {
            "train": (
                Source(
                    f"{GITHUB}/karpathy/char-rnn/d1d7aa34fdb3626174bce1d753e6cc6845ce7087"
                    "/data/tinyshakespeare/input.txt",
                    "lm/tinyshakespeare/input.txt.gz",
                    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                ),
            ),
        },
        {},
        held_out=0.1,
        unit="file",
    ),
}
BREAK = "<br />"  # of IMDB's pages: the end of a line


class Published:
    """A public set: records {"text", "label"}, or {"text"} where there are no labels."""

    def __init__(self, name: str) -> None:
        check_name("name", name, PUBLISHED)
        self.name, self.publication = name, PUBLISHED[name]

    @property
    def splits(self) -> tuple[str, ...]:
        held = {"dev"} if self.publication.held_out else set()
        return tuple(split for split in SPLITS if split in {*self.publication.files, *held})

    @property
    def fields(self) -> tuple[str, ...]:
        return ("text", "label") if self.publication.labels else ("text",)

    def read(self, split: str) -> Iterator[Record]:
        """The first time, the files of this split are downloaded."""
        check_split(split, self.splits)
        labels = self.publication.labels
        for record in self._found(split):
            if labels:
                record["label"] = labels[record["label"]]
                record["text"] = record["text"].replace(BREAK, "\n")
            yield record

    def _found(self, split: str) -> Iterator[Record]:
        files, labels, unit = self.publication.files, self.publication.labels, self.publication.unit
        source = split if split in files else "train"
        held = self.publication.held_out if source == "train" else 0.0
        paths = [self.fetch(one) for one in files[source]]
        other = paths if held else None  # in the place of a test, which is not split off
        if labels:
            corpus = Labelled(paths, test=other, held_out=held)
        else:
            corpus = Documents(paths, test=other, unit=unit, held_out=held)
        return corpus.read(split if held else "train")

    def fetch(self, source: Source) -> Path:
        name = Path(source.mirrored).name.removesuffix(".gz")
        return fetched(source, cache_folder() / self.name / name)

    def describe(self) -> str:
        about, licence, home, *_ = self.publication
        return f"{self.name}: {about}; {home}; licence: {licence}"
