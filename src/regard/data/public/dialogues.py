"""Public dialogue datasets by name: downloaded once, checked, and kept in the cache.

`license` is what their publishers state.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from regard.data.archives import without_header
from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.database import ANY_VALUE, Database, is_list_of
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.dialogues import SlotValues, dialogue_record
from regard.data.formats.lines import read_text
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import parse_json

GITHUB = "https://raw.githubusercontent.com"
SLOT_COLUMNS = ("food", "area", "pricerange")
HIDDEN_COLUMNS = ("location", "type", "id")  # of the restaurants; dialogues never mention them
SPLIT_CYCLE = ("train", "train", "train", "dev", "test")  # 3:1:1, by the index of a dialogue


class DialogueDataset(NamedTuple):
    """A public dataset: files by split (one file may serve all), and optionally a database."""

    description: str
    license: str
    homepage: str
    files: dict[str, RemoteFile]
    read_records: Callable[[list[JsonObject], str], Iterator[Record]]
    database: RemoteFile | None = None


def camrest_records(dialogues: list[JsonObject], split: str) -> Iterator[Record]:
    for number, dialogue in enumerate(dialogues):
        if SPLIT_CYCLE[number % len(SPLIT_CYCLE)] != split:
            continue
        turns, beliefs = list[str](), list[SlotValues]()
        for exchange in dialogue["dial"]:
            turns += [exchange["usr"]["transcript"], exchange["sys"]["sent"]]
            slot_pairs = [slot for act in exchange["usr"]["slu"] for slot in act["slots"]]
            beliefs.append(to_slot_values(slot_pairs))
        if all(turn.strip() for turn in turns):  # a few dialogues are incomplete
            yield dialogue_record(turns, beliefs, to_slot_values(dialogue["goal"]["constraints"]))


def woz_records(dialogues: list[JsonObject], split: str) -> Iterator[Record]:  # noqa: ARG001 - a file has one split
    """Yield dialogues; the file stores each reply of the system with the next turn."""
    for dialogue in dialogues:
        turns = list[str]()
        for turn in dialogue["dialogue"]:
            turns += [turn["system_transcript"], turn["transcript"]]
        spoken_turns = [turn for turn in turns[1:] if turn.strip()]  # the first is empty
        if len(spoken_turns) > 1:
            yield dialogue_record(spoken_turns)


def to_slot_values(slot_pairs: list[list[str]]) -> SlotValues:
    """Return the values of the slot columns, in the order of the columns."""
    values = {name: ANY_VALUE if value == "dontcare" else value for name, value in slot_pairs}
    return {name: values[name] for name in SLOT_COLUMNS if name in values}


def _camrest_file(source: str, name: str, digest: str) -> RemoteFile:
    url = f"{GITHUB}/shawnwun/NNDIAL/baacc57e04991b3078dcbeee602324bdbeb70b78/{source}"
    return RemoteFile(url, f"dialogue/camrest676/{name}", digest, recipe=without_header)


def _woz_file(split: str, digest: str) -> RemoteFile:
    file = f"woz_{split}_en.json"
    url = f"{GITHUB}/nmrksic/neural-belief-tracker/master/data/woz/{file}"
    return RemoteFile(url, f"dialogue/woz2.0/{file}.gz", digest)


DIALOGUE_DATASETS = {
    "camrest676": DialogueDataset(
        "dialogues about restaurants in Cambridge, with belief states and 110 restaurants",
        "Apache 2.0",
        "https://www.repository.cam.ac.uk/handle/1810/260970",
        dict.fromkeys(
            SPLITS,
            _camrest_file(
                "data/CamRest676.json",
                "CamRest676.json.gz",
                "8dc220483a84a50095f6ba5a625c4bcdd783282607bc615268740eb643775351",
            ),
        ),
        camrest_records,
        _camrest_file(
            "db/CamRest.json",
            "CamRest_db.json",
            "bdcc3c4c15e3decef6cb06c294c75b0a53832aba7162a1a3abca1ca1793c917f",
        ),
    ),
    "woz2": DialogueDataset(
        "more dialogues about restaurants, without a database (Wen et al. 2017)",
        "Apache 2.0",
        "https://github.com/nmrksic/neural-belief-tracker",
        {
            "train": _woz_file(
                "train", "7cd9e971553e5f3e80bb0c93164bf4c619c7f49f45d636a0512474cdeb074485"
            ),
            "dev": _woz_file(
                "validate", "ae1ea9067fd05c0179d349f140b38de1b2db587d5bfcb4f99ef0d77474ab00ad"
            ),
            "test": _woz_file(
                "test", "3673e433b21a6b0d74e9144bd059e64b29bc3e1c5dc0e18654a98ec597c0d72c"
            ),
        },
        woz_records,
    ),
}


class PublicDialogues:
    """A public dataset of dialogues; its records are those of `DialogueFiles`."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, DIALOGUE_DATASETS)
        self.name, self.dataset = name, DIALOGUE_DATASETS[name]

    def read(self, split: str) -> Iterator[Record]:
        """Read a split; its file is downloaded the first time."""
        check_split(split, self.splits)
        return self.dataset.read_records(self._load_json(self.dataset.files[split]), split)

    @property
    def database(self) -> Database:
        if self.dataset.database is None:
            return Database([], [])
        rows = self._load_json(self.dataset.database)
        visible_rows = [{n: v for n, v in row.items() if n not in HIDDEN_COLUMNS} for row in rows]
        return Database(visible_rows, SLOT_COLUMNS)

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"

    def _load_json(self, source: RemoteFile) -> list[JsonObject]:
        path = cache_folder() / self.name / Path(source.mirror_path).name.removesuffix(".gz")
        dialogues = parse_json(read_text(fetch_file(source, path)), str(path))
        if not is_list_of(dialogues, dict):
            raise InputError(f"{path}: must be a list of objects; remove it to download it again")
        return dialogues
