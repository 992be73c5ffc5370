"""Public sets of conversations by name: fetched once, checked, kept in the cache.

The texts belong to those who wrote them; `licence` is what their publishers state.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from regard.corpora.corpus import SPLITS, Record, check_name, check_split
from regard.corpora.database import ANY, Database
from regard.corpora.dialogues import Wishes, conversation
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.lines import whole

GITHUB = "https://raw.githubusercontent.com"
ASKED = ("food", "area", "pricerange")
UNTOLD = ("location", "type", "id")  # columns of the restaurants that nobody talks about
SPLIT_OF = ("train", "train", "train", "dev", "test")  # 3:1:1, by the number of a conversation


class Publication(NamedTuple):
    """`files` are by split, or for all splits together; `database` beside them."""

    about: str
    licence: str
    home: str
    files: dict[str, Source]
    read: Callable[[Any, str], Iterator[Record]]
    database: Source | None = None


def camrest(found: Any, split: str) -> Iterator[Record]:
    for number, one in enumerate(found):
        if SPLIT_OF[number % len(SPLIT_OF)] != split:
            continue
        turns, wishes = list[str](), list[Wishes]()
        for exchange in one["dial"]:
            turns += [exchange["usr"]["transcript"], exchange["sys"]["sent"]]
            told = [slot for act in exchange["usr"]["slu"] for slot in act["slots"]]
            wishes.append(wished(told))
        if all(turn.strip() for turn in turns):  # a few were broken off
            yield conversation(turns, wishes, wished(one["goal"]["constraints"]))


def woz(found: Any, split: str) -> Iterator[Record]:  # noqa: ARG001 - a file has one split
    """What the system said stands with the turn after it."""
    for one in found:
        turns = list[str]()
        for turn in one["dialogue"]:
            turns += [turn["system_transcript"], turn["transcript"]]
        kept = [turn for turn in turns[1:] if turn.strip()]  # the first is empty
        if len(kept) > 1:
            yield conversation(kept)


def wished(slots: list[list[str]]) -> Wishes:
    """What is asked for, in the order of the columns."""
    given = {name: ANY if value == "dontcare" else value for name, value in slots}
    return {name: given[name] for name in ASKED if name in given}


def _camrest(name: str, digest: str) -> Source:
    # Upstream has lines before the JSON that are none: nobody serves this file.
    return Source("", f"dialogue/camrest676/{name}", digest)


def _woz(split: str, digest: str) -> Source:
    place = f"woz_{split}_en.json"
    url = f"{GITHUB}/nmrksic/neural-belief-tracker/master/data/woz/{place}"
    return Source(url, f"dialogue/woz2.0/{place}.gz", digest)


DIALOGUES = {
    "camrest676": Publication(
        "people who look for a restaurant in Cambridge, with their wishes and 110 restaurants",
        "Apache 2.0",
        "https://www.repository.cam.ac.uk/handle/1810/260970",
        dict.fromkeys(
            SPLITS,
            _camrest(
                "CamRest676.json.gz",
                "8dc220483a84a50095f6ba5a625c4bcdd783282607bc615268740eb643775351",
            ),
        ),
        camrest,
        _camrest(
            "CamRest_db.json", "bdcc3c4c15e3decef6cb06c294c75b0a53832aba7162a1a3abca1ca1793c917f"
        ),
    ),
    "woz2": Publication(
        "more of such conversations, without a table to look up (Wen et al. 2017)",
        "Apache 2.0",
        "https://github.com/nmrksic/neural-belief-tracker",
        {
            "train": _woz(
                "train", "7cd9e971553e5f3e80bb0c93164bf4c619c7f49f45d636a0512474cdeb074485"
            ),
            "dev": _woz(
                "validate", "ae1ea9067fd05c0179d349f140b38de1b2db587d5bfcb4f99ef0d77474ab00ad"
            ),
            "test": _woz(
                "test", "3673e433b21a6b0d74e9144bd059e64b29bc3e1c5dc0e18654a98ec597c0d72c"
            ),
        },
        woz,
    ),
}


class DialogueSet:
    """A public set; see `Dialogues` for what its records are."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, DIALOGUES)
        self.name, self.publication = name, DIALOGUES[name]

    def read(self, split: str) -> Iterator[Record]:
        """The first time, the file of this split is downloaded."""
        check_split(split, self.splits)
        return self.publication.read(self._json(self.publication.files[split]), split)

    @property
    def database(self) -> Database:
        if self.publication.database is None:
            return Database([], [])
        rows = self._json(self.publication.database)
        kept = [{n: v for n, v in row.items() if n not in UNTOLD} for row in rows]
        return Database(kept, ASKED)

    def describe(self) -> str:
        about, licence, home, *_ = self.publication
        return f"{self.name}: {about}; {home}; licence: {licence}"

    def _json(self, source: Source) -> Any:
        path = cache_folder() / self.name / Path(source.mirrored).name.removesuffix(".gz")
        return json.loads(whole(fetched(source, path)))
