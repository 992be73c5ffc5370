"""Public texts by name, labeled or not: downloaded once, checked, and kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.data.archives import imdb_sample
from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.documents import DocumentFiles, DocumentUnit
from regard.data.formats.labeled_texts import LabeledTextFiles

GITHUB = "https://raw.githubusercontent.com"
SENTIMENT_LABELS = {"0": "negative", "1": "positive"}
EMOTION_LABELS = {"0": "anger", "1": "joy", "2": "optimism", "3": "sadness"}  # their mapping.txt


class TextDataset(NamedTuple):
    """A public dataset: files by split; without a dev file, dev is a share `held_out` of train.

    `labels` maps the class numbers of the files to names; it is empty for running text.
    """

    description: str
    license: str
    homepage: str
    files: dict[str, tuple[RemoteFile, ...]]
    labels: dict[str, str]
    held_out: float = 0.0
    unit: DocumentUnit = "line"


def _sst2_files(split: str, digest: str) -> tuple[RemoteFile, ...]:
    url = f"{GITHUB}/clairett/pytorch-sentiment-classification/master/data/SST2/{split}.tsv"
    return (RemoteFile(url, f"classification/sst2/{split}.tsv.gz", digest),)


def _imdb_files(split: str, digest: str) -> tuple[RemoteFile, ...]:
    url = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"  # 50,000 reviews
    path = f"classification/imdb_sample/{split}.jsonl.gz"
    return (RemoteFile(url, path, digest, recipe=imdb_sample(split)),)


def _emotion_files(split: str, text_digest: str, label_digest: str) -> tuple[RemoteFile, ...]:
    folder = "cardiffnlp/tweeteval/8df207ad6fcdab017000ad5196f797cd21f9a30f/datasets/emotion"
    return tuple(
        RemoteFile(f"{GITHUB}/{folder}/{name}", f"classification/tweeteval_emotion/{name}", digest)
        for name, digest in (
            (f"{split}_text.txt", text_digest),
            (f"{split}_labels.txt", label_digest),
        )
    )


def _wikitext_files(split: str, digest: str) -> tuple[RemoteFile, ...]:
    commit = "pytorch/examples/cf74c81ec00256a9511c054aaf0b3f62cd3aa62d"
    url = f"{GITHUB}/{commit}/word_language_model/data/wikitext-2/{split}.txt"
    return (RemoteFile(url, f"lm/wikitext-2/{split}.txt.gz", digest),)


TEXT_DATASETS = {
    "sst2": TextDataset(
        "sentences of film reviews, negative or positive (Socher et al. 2013)",
        "not stated",
        "https://github.com/clairett/pytorch-sentiment-classification",
        {
            "train": _sst2_files(
                "train", "ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920"
            ),
            "dev": _sst2_files(
                "dev", "eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359"
            ),
            "test": _sst2_files(
                "test", "831169c7e2e429d6026e1bdbb542f33b636e3e596caad9602ebc953c205928b7"
            ),
        },
        SENTIMENT_LABELS,
    ),
    "imdb_sample": TextDataset(
        "film reviews, negative or positive: a fifth of IMDB (Maas et al. 2011)",
        "not stated",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        {
            "train": _imdb_files(
                "train", "114f83c0ac03134ae88192884ef8bc1c825442691043cd5a6b50a01f2ad44b75"
            ),
            "test": _imdb_files(
                "test", "7ab17446094aa11a721c4d4ba0e137ec99bf733f257c23501e2271e762b9928d"
            ),
        },
        SENTIMENT_LABELS,
        held_out=0.1,
    ),
    "tweeteval_emotion": TextDataset(
        "tweets of anger, joy, optimism or sadness (Mohammad et al. 2018; Barbieri et al. 2020)",
        "no restrictions by its publishers; those of the task or of Twitter may apply",
        "https://github.com/cardiffnlp/tweeteval",
        {
            "train": _emotion_files(
                "train",
                "2c62f67aeb3eac1aea0e5a9c3d0f4bc337992581f3f858061786a1fb4d79d95e",
                "987e767d8679e18abdf7de37a6d2bcd0a40a296ddd704e8d515cf0e3033c8d9c",
            ),
            "dev": _emotion_files(
                "val",
                "e2e30c86b8cbb97944d6543aedc06eace3bb275cb2f381aba787b838b4f23ca5",
                "313730630160b7e0a6b4235b800c76683f4aeeb72d094eb69646630cd5cfe338",
            ),
            "test": _emotion_files(
                "test",
                "7e1070f5d3e3fcece5bc73680bff9981e90d8f7b2f1009bfe7a01d059d1c6091",
                "245072348c711961785be6d395997f97cf7fcda3effeae7805664171dc75f913",
            ),
        },
        EMOTION_LABELS,
    ),
    "wikitext2": TextDataset(
        "two million words of Wikipedia, one line a record, rare words as <unk> "
        "(Merity et al. 2016)",
        "CC BY-SA (the text of Wikipedia; the copies state none)",
        "https://github.com/pytorch/examples",
        {
            "train": _wikitext_files(
                "train", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"
            ),
            "dev": _wikitext_files(
                "valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"
            ),
            "test": _wikitext_files(
                "test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"
            ),
        },
        {},
    ),
    "tinyshakespeare": TextDataset(
        "a million characters of Shakespeare; dev is the last tenth, no test",
        "public domain (the text; its publisher states none)",
        "https://github.com/karpathy/char-rnn",
        {
            "train": (
                RemoteFile(
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
LINE_BREAK_TAG = "<br />"  # in IMDB


class PublicText:
    """A public dataset: records {"text", "label"}, or {"text"} if it has no labels."""

    def __init__(self, name: str) -> None:
        check_name("name", name, TEXT_DATASETS)
        self.name, self.dataset = name, TEXT_DATASETS[name]

    @property
    def splits(self) -> tuple[str, ...]:
        held_out_splits = {"dev"} if self.dataset.held_out else set()
        return tuple(split for split in SPLITS if split in {*self.dataset.files, *held_out_splits})

    @property
    def fields(self) -> tuple[str, ...]:
        return ("text", "label") if self.dataset.labels else ("text",)

    def read(self, split: str) -> Iterator[Record]:
        """Read a split; its files are downloaded the first time."""
        check_split(split, self.splits)
        labels = self.dataset.labels
        for record in self._read_records(split):
            if labels:
                record["label"] = labels[record["label"]]
                record["text"] = record["text"].replace(LINE_BREAK_TAG, "\n")
            yield record

    def _read_records(self, split: str) -> Iterator[Record]:
        files, labels, unit = self.dataset.files, self.dataset.labels, self.dataset.unit
        source_split = split if split in files else "train"
        held_out_share = self.dataset.held_out if source_split == "train" else 0.0
        paths = [self.fetch(file) for file in files[source_split]]
        # Only dev is held out of train: the path prevents that test is held out, too.
        placeholder_test = paths if held_out_share else None
        if labels:
            corpus = LabeledTextFiles(paths, test=placeholder_test, held_out=held_out_share)
        else:
            corpus = DocumentFiles(paths, test=placeholder_test, unit=unit, held_out=held_out_share)
        return corpus.read(split if held_out_share else "train")

    def fetch(self, source: RemoteFile) -> Path:
        name = Path(source.mirror_path).name.removesuffix(".gz")
        return fetch_file(source, cache_folder() / self.name / name)

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
