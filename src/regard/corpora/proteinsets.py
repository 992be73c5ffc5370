"""Public proteins with their secondary structure: fetched once, checked, kept in the cache.

`licence` is what their publishers state. The two sets share proteins: never train on one and test
on the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from regard.corpora.corpus import SPLITS, Record, check_name, check_split
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.labelled import part_of, table
from regard.corpora.lines import lines, shown
from regard.corpora.proteins import UNTOLD, protein

GITHUB = "https://raw.githubusercontent.com"
ALIKE = 8  # residues in a row that two proteins share, if they are kept in one split
COLUMNS = {3: "dssp3", 8: "dssp8"}
LETTERS = {"h": "H", "e": "E", "_": "C"}  # of the UCI files


class Publication(NamedTuple):
    """`files` are by name; `shares` of its train are dev and test, where they have no file."""

    about: str
    licence: str
    home: str
    files: dict[str, Source]
    shares: dict[str, float]
    states: tuple[int, ...]


def _uci(name: str, digest: str) -> Source:
    file = f"protein-secondary-structure.{name}"
    home = f"{GITHUB}/fengliu139/Protein-Secondary-Structure-Prediction/master"
    return Source(f"{home}/{file}", f"bio/protein_secondary_structure_uci/{file}", digest)


PROTEINSETS = {
    "cb513": Publication(
        "432 chains (of 511 domains) with DSSP's states (Cuff & Barton 1999), split by us by "
        "families: 70, 10 and 20 percent",
        "not stated",
        "https://www.kaggle.com/datasets/moklesur/cb513-dataset-for-protein-structure-prediction",
        {
            "all": Source(
                f"{GITHUB}/shahid-43/protein_secondary_structure_prediction/main/data/CB513.csv",
                "bio/cb513/CB513.csv.gz",
                "35e442debd6faea0aa156551cd65dc9ce1f96b59023eef08bce8522e20f8bb0d",
            )
        },
        {"dev": 0.1, "test": 0.2},
        (3, 8),
    ),
    "uci_structure": Publication(
        "111 and 17 globular proteins (Qian & Sejnowski 1988); a tenth of train is dev",
        "for non-commercial research",
        "https://archive.ics.uci.edu (Molecular Biology: Protein Secondary Structure)",
        {
            "train": _uci(
                "train", "0c7f0b6645d9a9271cd913a1b911e8ab95d1cd1b4017e5871b23a2dcb2f43bfb"
            ),
            "test": _uci(
                "test", "2d24a7c9b4ff4e0216b6633ccd1446a0b8aa14d1515beede7ccfbf4887b3dfe6"
            ),
        },
        {"dev": 0.1},
        (3,),
    ),
}


class ProteinSet:
    """A public set: records {"text", "states"} with three states (H, E, C) or DSSP's eight."""

    splits = SPLITS

    def __init__(self, name: str, states: int = 3) -> None:
        check_name("name", name, PROTEINSETS)
        self.name, self.publication, self.states = name, PROTEINSETS[name], states
        if states not in self.publication.states:
            known = " or ".join(map(str, self.publication.states))
            raise ValueError(f"states: {name} has {known} of them, not {states}")

    @cached_property
    def records(self) -> dict[str, list[Record]]:
        """All of them, by split. The first time, the files are downloaded."""
        folder = cache_folder() / self.name
        paths = {
            name: fetched(source, folder / Path(source.mirrored).name.removesuffix(".gz"))
            for name, source in self.publication.files.items()
        }
        found: dict[str, list[Record]] = {split: [] for split in self.splits}
        shares = self.publication.shares
        if self.name == "cb513":
            chains = domains(paths["all"], COLUMNS[self.states])
            alike = families(chains)
            for text, (states, scored) in chains.items():
                split = part_of(alike[text], shares)
                found[split].append(
                    {"text": text, "states": states if split == "train" else scored}
                )
            return found
        for record in columns(paths["train"]):
            found[part_of(record["text"], shares)].append(record)
        found["test"] = list(columns(paths["test"]))
        return found

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return iter(self.records[split])

    def describe(self) -> str:
        about, licence, home, *_ = self.publication
        return f"{self.name}: {about}; {home}; licence: {licence}"


def domains(path: Path, column: str) -> dict[str, tuple[str, str]]:
    """Each chain once: its states, and those that are scored, of the domains that CB513 is of.

    A chain stands in the file once for each of its domains, with a mask of it.
    """
    states, masks = dict[str, str](), dict[str, list[bool]]()
    fields = {"text": "input", "states": column, "mask": "cb513_mask"}
    for place, row in table(path, "csv", fields=fields):
        record = protein(row["text"], row["states"], place)
        text, mask = record["text"], [cell != "0.0" for cell in row["mask"].split()]
        before = masks.get(text, [False] * len(mask))
        states[text] = record["states"]
        masks[text] = [a or b for a, b in zip(before, mask, strict=True)]

    def scored(text: str) -> str:
        both = zip(states[text], masks[text], strict=True)
        return "".join(state if counts else UNTOLD for state, counts in both)

    return {text: (whole, scored(text)) for text, whole in states.items()}


def families(texts: Iterable[str], alike: int = ALIKE) -> Mapping[str, str]:
    """One name for all that share so many residues in a row, directly or by others."""
    name: dict[str, str] = {}
    first = dict[str, str]()
    members = defaultdict[str, set[str]](set)
    for text in texts:
        name[text] = text
        members[text].add(text)
        for start in range(len(text) - alike + 1):
            one, other = name[first.setdefault(text[start : start + alike], text)], name[text]
            if one != other:
                kept, gone = min(one, other), max(one, other)
                members[kept] |= members.pop(gone)
                name |= dict.fromkeys(members[kept], kept)
    return name


def columns(path: Path) -> Iterator[Record]:
    """`residue state` on each line, `<>` before a protein, `end` or nothing behind it."""
    letters, states, start = list[str](), list[str](), 1

    def closed() -> Iterator[Record]:
        if letters:
            yield protein("".join(letters), "".join(states), f"{shown(path)}:{start}")
        letters.clear()
        states.clear()

    for number, line in enumerate(lines(path), 1):
        cells = line.split()
        if len(cells) == 2 and cells[1] in LETTERS:
            start = start if letters else number
            letters.append(cells[0])
            states.append(LETTERS[cells[1]])
        elif not cells or cells[0] in ("<>", "end", "<end>") or line.startswith("#"):
            yield from closed()
        else:
            raise ValueError(
                f"{shown(path)}:{number}: {line[:40]!r} is not a residue and its state"
            )
    yield from closed()
