"""Made-up news with names that nobody has read before: for seeing whether a model copies.

A document tells what some people did, a sentence for each. One of them did something that is news,
and the summary says who, and what. All words but the names are few and common; a name is in one
document only, as a rule, and never in two splits, so that it cannot be known.
"""

from hashlib import blake2b
from random import Random

from regard.corpora.corpus import Record
from regard.corpora.made import Made
from regard.corpora.planted import between
from regard.corpora.reorder import CONSONANTS, VOWELS, below, shuffled

NEWS = ("won", "stole", "sold", "found", "broke", "bought", "lost", "burned")
DAILY = ("saw", "liked", "cleaned", "watched", "painted", "moved", "used", "drew")
THINGS = ("boat", "house", "horse", "piano", "bridge", "garden", "clock", "statue")
PLACES = ("market", "harbour", "station", "museum", "river", "school", "castle", "park")
SYLLABLES = 4


class Headlines(Made):
    """A corpus of `size` documents to train on and `held_out` each in dev and test.

    Records are {"source", "target", "name"}: a document, its summary, and whose name is in it. The
    n-th document of a split depends on the settings and n alone.
    """

    def __init__(
        self,
        size: int = 10_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        fewest: int = 3,
        most: int = 6,
    ) -> None:
        super().__init__(size, seed, held_out)
        if not 1 <= fewest <= most:
            raise ValueError(f"fewest must be from 1 to most ({most}), not {fewest}")
        self.fewest, self.most = fewest, most

    def example(self, split: str, number: int) -> Record:
        """The n-th document, without those before it."""
        chance = Random(f"regard headlines {self.seed} {split} {number}")
        sentences, summary, who = list[str](), "", ""
        for other in range(between(chance, self.fewest, self.most)):
            name = drawn_name(chance, split)
            verb, thing, place = (
                some[below(chance, len(some))]
                for some in (DAILY if other else NEWS, THINGS, PLACES)
            )
            sentences.append(f"{name} {verb} the {thing} at the {place} .")
            if not other:
                summary, who = f"{name} {verb} the {thing}", name
        text = " ".join(shuffled(sentences, chance))
        return {"source": text, "target": summary, "name": who}

    def describe(self) -> str:
        return (
            f"headlines: {self.size:,} documents of {self.fewest} to {self.most} sentences, each "
            "about somebody with a new name, one of them news; made here"
        )


def drawn_name(chance: Random, split: str) -> str:
    """One of 24 million, of those that are for this split."""
    while True:
        name = "".join(
            letters[below(chance, len(letters))]
            for _ in range(SYLLABLES)
            for letters in (CONSONANTS, VOWELS)
        )
        tenth = blake2b(name.encode(), digest_size=1).digest()[0] % 10
        if {0: "dev", 1: "test"}.get(tenth, "train") == split:
            return name.capitalize()
