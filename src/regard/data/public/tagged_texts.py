"""Public datasets of tagged sentences by name: downloaded once, checked, kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.tagged_texts import TaggedTextFiles, TaggedTextFormat

GITHUB = "https://raw.githubusercontent.com"
SPLIT_FOLDERS = {"train": "train", "dev": "valid", "test": "test"}


class TagDataset(NamedTuple):
    """A public dataset: for each split one CoNLL file, or the files of a folder by name."""

    description: str
    license: str
    homepage: str
    format: TaggedTextFormat
    files: dict[str, dict[str, RemoteFile]]


def _slot_files(name: str, checksums: dict[str, str]) -> dict[str, dict[str, RemoteFile]]:
    """Return the files of Goo et al. 2018, by split and name."""
    files: dict[str, dict[str, RemoteFile]] = {split: {} for split in SPLITS}
    for key, digest in checksums.items():
        split, file = key.split()
        path = f"{SPLIT_FOLDERS[split]}/{file}"
        url = f"{GITHUB}/MiuLab/SlotGated-SLU/master/data/{name}/{path}"
        files[split][file] = RemoteFile(url, f"nlu/{name}/{path}", digest)
    return files


def _wnut_files(files: dict[str, tuple[str, str]]) -> dict[str, dict[str, RemoteFile]]:
    folder = f"{GITHUB}/leondz/emerging_entities_17/master"
    return {
        split: {file: RemoteFile(f"{folder}/{file}", f"ner/wnut17/{file}", digest)}
        for split, (file, digest) in files.items()
    }


TAG_DATASETS = {
    "wnut17": TagDataset(
        "tweets and comments with new and rare entities of 6 types (Derczynski et al. 2017)",
        "CC BY 4.0",
        "https://github.com/leondz/emerging_entities_17",
        "conll",
        _wnut_files(
            {
                "train": (
                    "wnut17train.conll",
                    "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5",
                ),
                "dev": (
                    "emerging.dev.conll",
                    "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8",
                ),
                "test": (
                    "emerging.test.annotated",
                    "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0",
                ),
            }
        ),
    ),
    "atis": TagDataset(
        "questions about flights, with slots and intents, split by Goo et al. 2018",
        "not stated (the LDC publishes ATIS itself)",
        "https://github.com/MiuLab/SlotGated-SLU",
        "folder",
        _slot_files(
            "atis",
            {
                "train seq.in": "3a670980841b21ab39088b2595efc17d487cdc45769c075a3e5f9458bba28c7f",
                "train seq.out": "14c7131bd66562f797dbd7189bc7358f0cf354c6afb0785a9ab973c35b58f34c",
                "train label": "d0a771547665eecbdf9f96ea015ef07d1f6ee9f063e861020dafabb3c2a04377",
                "dev seq.in": "c7435b96e7948393608c34819628e863c5338f11ca68e8f896d2cc041d8e17f8",
                "dev seq.out": "83ccff3e36f83a993f8e5b5b82adf3256076f234abda4d784051381d7ac76922",
                "dev label": "06957cfe6fdffac84f8280bc3a1f8ca85c85631b363817aa4543aac611f8addf",
                "test seq.in": "4b2119fc59c37f9398c6605db435d4f467505009e6ee3e5af04fed09f39dc397",
                "test seq.out": "a4690d6bceadc06876d1ff99bc401744aa981cb321e598ae12a3859d7be53254",
                "test label": "ce4bfe6590d9498e1078f30b4137d3e8b3e94277b444b26360c0bf2e9e282761",
            },
        ),
    ),
    "snips": TagDataset(
        "requests to a voice assistant, with slots and seven intents (Coucke et al. 2018)",
        "not stated",
        "https://github.com/MiuLab/SlotGated-SLU",
        "folder",
        _slot_files(
            "snips",
            {
                "train seq.in": "04ad1e3f2121d83c6478f9a4b17d2dbdc21d06d6127f73cb7af835ed733f9855",
                "train seq.out": "fd5f2121d8055827e5d6b3d3bac30f3d7e94e82a5d437751960cbdd9e1b4f6d3",
                "train label": "bfd7df6cf9dd76c5da5d8b61bc85f90386197bdd3d7510c1d324c051537b962f",
                "dev seq.in": "64e0f6d8ad8aab3a3828164d7d53731a0993d3ca1aed437ceaca6d3d568d410e",
                "dev seq.out": "712e6d34feb8d52d208b820a5f8bae6e6ff990f08374507dfde22de389088319",
                "dev label": "9c1dd041216f647bcfca838aaf1a48eb5781e4404256d31ff07cd38a5436c52f",
                "test seq.in": "c1e341173fcea2951a8ca371956a6f81c76de87b9583c62eb87edd6158fa3a7c",
                "test seq.out": "58c07c9097d5e1f78889765c2a535a160f6455b90b3142055c8051847afcca47",
                "test label": "37a26da3ad079bb41c42c85a3a8f827eb47efec4c5917ce5d08f4b2736e4f830",
            },
        ),
    ),
}


class PublicTaggedTexts:
    """A public dataset: records {"text", "tags"}, and "label" if it has intents."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, TAG_DATASETS)
        self.name, self.dataset = name, TAG_DATASETS[name]

    def read(self, split: str) -> Iterator[Record]:
        """Read a split; its files are downloaded the first time."""
        check_split(split, self.splits)
        folder = cache_folder() / self.name / split
        files = self.dataset.files[split].items()
        paths: list[Path] = [fetch_file(source, folder / file) for file, source in files]
        data_path = folder if self.dataset.format == "folder" else paths[0]
        return TaggedTextFiles(data_path, format=self.dataset.format, held_out=0.0).read("train")

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
