"""Public question datasets by name: downloaded once, checked, and kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.questions import QuestionFiles

GITHUB = "https://raw.githubusercontent.com"
SQUAD_DEV_FILE = RemoteFile(
    f"{GITHUB}/rajpurkar/SQuAD-explorer/master/dataset/dev-v1.1.json",
    "qa/squad_v1.1/dev-v1.1.json.gz",
    "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
)


class QuestionDataset(NamedTuple):
    """A public dataset: files by split; missing splits are held out of train by context."""

    description: str
    license: str
    homepage: str
    files: dict[str, tuple[RemoteFile, ...]]
    held_out: float


def _squadshifts_file(name: str, digest: str) -> RemoteFile:
    file = f"{name}_v1.0.json"
    url = f"{GITHUB}/modestyachts/squadshifts-website/master/datasets/{file}"
    return RemoteFile(url, f"qa/squadshifts/{file}.gz", digest)


QUESTION_DATASETS = {
    "squadshifts": QuestionDataset(
        "questions on Wikipedia, Reddit and Amazon reviews (Miller et al. 2020: SQuADShifts, "
        "published as test data); its test is the dev set of SQuAD 1.1",
        "not stated (SQuADShifts); CC BY-SA 4.0 (SQuAD)",
        "https://github.com/modestyachts/squadshifts-website",
        {
            "train": (
                _squadshifts_file(
                    "new_wiki", "1d50a0ca4cdab88d038b52ea8a2d0510af6038d7f41a0a256b9659237769d0ee"
                ),
                _squadshifts_file(
                    "reddit", "b4ac346dbf1816fdec80fdcf91d06a4b754fa51e47960fa8614a94f37ea42a4b"
                ),
                _squadshifts_file(
                    "amazon_reviews",
                    "9db7bdee84a91f0fb80b9e74f365042fbbb217cb8e0a7e73bb071245472589b6",
                ),
            ),
            "test": (SQUAD_DEV_FILE,),
        },
        0.05,
    ),
    "squad_dev": QuestionDataset(
        "questions on Wikipedia: the dev set of SQuAD 1.1 (Rajpurkar et al. 2016), split here",
        "CC BY-SA 4.0",
        "https://rajpurkar.github.io/SQuAD-explorer",
        {"train": (SQUAD_DEV_FILE,)},
        0.1,
    ),
}


class PublicQuestions:
    """A public dataset of questions; its records are those of `QuestionFiles`."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, QUESTION_DATASETS)
        self.name, self.dataset = name, QUESTION_DATASETS[name]

    def read(self, split: str) -> Iterator[Record]:
        """Read a split; its files are downloaded the first time."""
        check_split(split, self.splits)
        files = self.dataset.files
        if split in files and split != "train":
            return QuestionFiles(self.fetch(split), format="squad", held_out=0.0).read("train")
        paths = self.fetch("train")
        # A test with its own files must not be held out of train: the path only prevents that.
        placeholder_test = paths if "test" in files else None
        held_out_share = self.dataset.held_out
        return QuestionFiles(
            paths, test=placeholder_test, format="squad", held_out=held_out_share
        ).read(split)

    def fetch(self, split: str) -> tuple[Path, ...]:
        folder = cache_folder() / self.name
        return tuple(
            fetch_file(source, folder / Path(source.mirror_path).name.removesuffix(".gz"))
            for source in self.dataset.files[split]
        )

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
