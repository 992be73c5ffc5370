"""Public music datasets by name: downloaded once, checked, and kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.abc_files import AbcFiles
from regard.data.formats.piano_rolls import PianoRollFiles

GITHUB = "https://raw.githubusercontent.com"


class MusicDataset(NamedTuple):
    """A public dataset: one file of piano rolls with all splits, or several files of tunes."""

    description: str
    license: str
    homepage: str
    files: tuple[RemoteFile, ...]


def _nottingham_files(checksums: dict[str, str]) -> tuple[RemoteFile, ...]:
    folder = f"{GITHUB}/jukedeck/nottingham-dataset/master/ABC_cleaned"
    return tuple(
        RemoteFile(f"{folder}/{name}.abc", f"music/nottingham_abc/{name}.abc", digest)
        for name, digest in checksums.items()
    )


MUSIC_DATASETS = {
    "jsb_chorales": MusicDataset(
        "chorales by J. S. Bach in quarter notes, split by Boulanger-Lewandowski et al. 2012",
        "not stated (the music is in the public domain)",
        "https://github.com/czhuang/JSB-Chorales-dataset",
        (
            RemoteFile(
                f"{GITHUB}/czhuang/JSB-Chorales-dataset/master/jsb-chorales-quarter.json",
                "music/jsb_chorales/jsb-chorales-quarter.json.gz",
                "2db9329f1881a1d3f49703ec556bf1d6f84b4f6c1d702c156536e93cf31e1c91",
            ),
        ),
    ),
    "nottingham": MusicDataset(
        "1,034 folk tunes with chords; dev and test are a tenth each, by a hash of the tune",
        "GPL-3.0",
        "https://github.com/jukedeck/nottingham-dataset",
        _nottingham_files(
            {
                "ashover": "6586eea8dca53866b42721050d11fc1408bdb2cf31a902b41c5c13504139b164",
                "hpps": "6d035c6972ac0c204ba79d8128e2d71978ece2214a29ffceeb3e053e27f17db5",
                "jigs": "5bb6f621e443bde552540810e3ea53e53531fd22258736e338d795e7a5bdcaf5",
                "morris": "cbf60b212c87748dea226c76b72a15db5b4f606bb35a580763e9cd8f7294e7da",
                "playford": "070877bc37176e0dedbcd038268d6669399201cd7b58d88b4ab36127528f9c76",
                "reelsa-c": "f92ed0e66024e0a5bb7d21fe3172cd50c3fb4cb7f642b4ec7cd5aa8ad0396da8",
                "reelsd-g": "33f535569116ec8cfb530c112f4cdc3bfb7fc042c271e0317cf6458bad30dfae",
                "reelsh-l": "cb701d4ffe6839cb7a5655bc21785ecb71a72ab63d8560f7be3856f6aedaf7e5",
                "reelsm-q": "a99f2967cf47460bba70bae40cd355a220b537a87180131c6d9433750bc446a1",
                "reelsr-t": "f80a2c0f37a49b9b0c748e922924d59c40d82758abc5b0f7fc9245d7fd563be0",
                "reelsu-z": "d104d7d1bb83eb1ca18f6b944dc22cf9f7bfe5f955d07cd573615985f69c2c1f",
                "slip": "da686b3a0de20aab38e64f8c8ec57edace980bab6450a6c388d79a2866e5b16a",
                "waltzes": "ffa773d012756be17784ab4a84e0e4618f316be5c6f244f9d60c06b23cd812c6",
                "xmas": "05ebc4b856c8c5186bb828641e8f88f723c109d47ba7e3f1e5048b536e091249",
            }
        ),
    ),
}


class PublicMusic:
    """A public dataset of music; its records are those of `PianoRollFiles` or `AbcFiles`."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, MUSIC_DATASETS)
        self.name, self.dataset = name, MUSIC_DATASETS[name]

    @cached_property
    def corpus(self) -> PianoRollFiles | AbcFiles:
        """Return the files as a corpus; they are downloaded the first time."""
        folder = cache_folder() / self.name
        paths: list[Path] = [
            fetch_file(file, folder / Path(file.mirror_path).name.removesuffix(".gz"))
            for file in self.dataset.files
        ]
        return AbcFiles(paths) if paths[0].suffix == ".abc" else PianoRollFiles(paths)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return self.corpus.read(split)

    def location(self, split: str, index: int) -> str:
        return self.corpus.location(split, index)

    def describe(self) -> str:
        description, license_name, homepage, _ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
