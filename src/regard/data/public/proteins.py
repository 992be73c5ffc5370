"""Public proteins with their secondary structure: downloaded once, checked, kept in the cache.

`license` is what their publishers state. The two datasets share proteins: never train on one and
test on the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.labeled_texts import hash_split, read_table
from regard.data.formats.lines import display_name, read_lines
from regard.data.formats.proteins import UNKNOWN_STATE, protein_record
from regard.errors import InputError

GITHUB = "https://raw.githubusercontent.com"
MIN_SHARED_RESIDUES = 8  # proteins that share 8 consecutive residues are kept in one split
STATE_COLUMNS = {3: "dssp3", 8: "dssp8"}
UCI_STATES = {"h": "H", "e": "E", "_": "C"}


class ProteinDataset(NamedTuple):
    """A public dataset: files by name, and the `shares` of train for splits without a file."""

    description: str
    license: str
    homepage: str
    files: dict[str, RemoteFile]
    shares: dict[str, float]
    states: tuple[int, ...]


def _uci_file(name: str, digest: str) -> RemoteFile:
    file = f"protein-secondary-structure.{name}"
    base_url = f"{GITHUB}/fengliu139/Protein-Secondary-Structure-Prediction/master"
    return RemoteFile(f"{base_url}/{file}", f"bio/protein_secondary_structure_uci/{file}", digest)


PROTEIN_DATASETS = {
    "cb513": ProteinDataset(
        "432 chains (511 domains) with DSSP states (Cuff & Barton 1999), split here by "
        "families: 70, 10 and 20 percent",
        "not stated",
        "https://www.kaggle.com/datasets/moklesur/cb513-dataset-for-protein-structure-prediction",
        {
            "all": RemoteFile(
                f"{GITHUB}/shahid-43/protein_secondary_structure_prediction/main/data/CB513.csv",
                "bio/cb513/CB513.csv.gz",
                "35e442debd6faea0aa156551cd65dc9ce1f96b59023eef08bce8522e20f8bb0d",
            )
        },
        {"dev": 0.1, "test": 0.2},
        (3, 8),
    ),
    "uci_structure": ProteinDataset(
        "111 and 17 globular proteins (Qian & Sejnowski 1988); a tenth of train is dev",
        "for non-commercial research",
        "https://archive.ics.uci.edu (Molecular Biology: Protein Secondary Structure)",
        {
            "train": _uci_file(
                "train", "0c7f0b6645d9a9271cd913a1b911e8ab95d1cd1b4017e5871b23a2dcb2f43bfb"
            ),
            "test": _uci_file(
                "test", "2d24a7c9b4ff4e0216b6633ccd1446a0b8aa14d1515beede7ccfbf4887b3dfe6"
            ),
        },
        {"dev": 0.1},
        (3,),
    ),
}


class PublicProteins:
    """A public dataset: records {"text", "states"} with three states (H, E, C) or DSSP's eight."""

    splits = SPLITS

    def __init__(self, name: str, states: int = 3) -> None:
        check_name("name", name, PROTEIN_DATASETS)
        self.name, self.dataset, self.states = name, PROTEIN_DATASETS[name], states
        if states not in self.dataset.states:
            supported = " or ".join(map(str, self.dataset.states))
            raise InputError(f"states: {name} has {supported} states, not {states}")

    @cached_property
    def records(self) -> dict[str, list[Record]]:
        """Return all records by split; the files are downloaded the first time."""
        folder = cache_folder() / self.name
        paths = {
            name: fetch_file(source, folder / Path(source.mirror_path).name.removesuffix(".gz"))
            for name, source in self.dataset.files.items()
        }
        records_by_split: dict[str, list[Record]] = {split: [] for split in self.splits}
        shares = self.dataset.shares
        if self.name == "cb513":
            chains = read_domains(paths["all"], STATE_COLUMNS[self.states])
            family_names = protein_families(chains)
            for text, (states, scored_states) in chains.items():
                split = hash_split(family_names[text], shares)
                records_by_split[split].append(
                    {"text": text, "states": states if split == "train" else scored_states}
                )
            return records_by_split
        for record in read_uci_columns(paths["train"]):
            records_by_split[hash_split(record["text"], shares)].append(record)
        records_by_split["test"] = list(read_uci_columns(paths["test"]))
        return records_by_split

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return iter(self.records[split])

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"


def read_domains(path: Path, column: str) -> dict[str, tuple[str, str]]:
    """Map each chain to its states, and to its scored states, with "?" outside CB513's domains.

    The file repeats a chain for each of its domains, with a mask of the domain.
    """
    states, masks = dict[str, str](), dict[str, list[bool]]()
    fields = {"text": "input", "states": column, "mask": "cb513_mask"}
    for location, row in read_table(path, "csv", fields=fields):
        record = protein_record(row["text"], row["states"], location)
        text, mask = record["text"], [cell != "0.0" for cell in row["mask"].split()]
        previous_mask = masks.get(text, [False] * len(mask))
        states[text] = record["states"]
        masks[text] = [a or b for a, b in zip(previous_mask, mask, strict=True)]

    def masked_states(text: str) -> str:
        pairs = zip(states[text], masks[text], strict=True)
        return "".join(state if is_scored else UNKNOWN_STATE for state, is_scored in pairs)

    return {text: (chain_states, masked_states(text)) for text, chain_states in states.items()}


def protein_families(
    texts: Iterable[str], min_shared: int = MIN_SHARED_RESIDUES
) -> Mapping[str, str]:
    """Map each sequence to the name of its family.

    Sequences that share `min_shared` consecutive residues, directly or through others, are one
    family.
    """
    family_names: dict[str, str] = {}
    first_texts = dict[str, str]()
    members = defaultdict[str, set[str]](set)
    for text in texts:
        family_names[text] = text
        members[text].add(text)
        for start in range(len(text) - min_shared + 1):
            shared_family, current_family = (
                family_names[first_texts.setdefault(text[start : start + min_shared], text)],
                family_names[text],
            )
            if shared_family != current_family:
                merged_family, removed_family = (
                    min(shared_family, current_family),
                    max(shared_family, current_family),
                )
                members[merged_family] |= members.pop(removed_family)
                family_names |= dict.fromkeys(members[merged_family], merged_family)
    return family_names


def read_uci_columns(path: Path) -> Iterator[Record]:
    """Read lines of `residue state`; `<>` begins a protein, `end` or a new `<>` ends it."""
    letters, states, start = list[str](), list[str](), 1

    def finish_protein() -> Iterator[Record]:
        if letters:
            yield protein_record("".join(letters), "".join(states), f"{display_name(path)}:{start}")
        letters.clear()
        states.clear()

    for number, line in enumerate(read_lines(path), 1):
        cells = line.split()
        if len(cells) == 2 and cells[1] in UCI_STATES:
            start = start if letters else number
            letters.append(cells[0])
            states.append(UCI_STATES[cells[1]])
        elif not cells or cells[0] in ("<>", "end", "<end>") or line.startswith("#"):
            yield from finish_protein()
        else:
            raise InputError(
                f"{display_name(path)}:{number}: not a residue and its state ({line[:40]!r})"
            )
    yield from finish_protein()
