"""Artificial news with unseen names: tests whether a model can copy.

A document has a sentence for each of several people. One sentence is news, and the summary repeats
its subject and what they did. All words but the names are few and frequent. A name is usually in
one document only, and never in two splits, so that a model cannot memorize it.
"""

from hashlib import blake2b
from random import Random

from regard.data.corpus import Record
from regard.data.synthetic.base import SyntheticCorpus
from regard.data.synthetic.planted import random_between
from regard.data.synthetic.reorder import CONSONANTS, VOWELS, random_below, shuffled
from regard.errors import InputError

NEWS_VERBS = ("won", "stole", "sold", "found", "broke", "bought", "lost", "burned")
DAILY_VERBS = ("saw", "liked", "cleaned", "watched", "painted", "moved", "used", "drew")
THINGS = ("boat", "house", "horse", "piano", "bridge", "garden", "clock", "statue")
PLACES = ("market", "harbour", "station", "museum", "river", "school", "castle", "park")
NAME_SYLLABLES = 4


class Headlines(SyntheticCorpus):
    """A corpus of `size` training documents and `held_out` each in dev and test.

    Records are {"source", "target", "name"}: a document, its summary, and the name in the summary.
    A record depends on the settings and its index alone.
    """

    def __init__(
        self,
        size: int = 10_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        min_sentences: int = 3,
        max_sentences: int = 6,
    ) -> None:
        super().__init__(size, seed, held_out)
        if not 1 <= min_sentences <= max_sentences:
            raise InputError(
                f"min_sentences must be from 1 to max_sentences ({max_sentences}), "
                f"not {min_sentences}"
            )
        self.min_sentences, self.max_sentences = min_sentences, max_sentences

    def example(self, split: str, index: int) -> Record:
        """Return document `index` of a split, without drawing those before it."""
        rng = Random(f"regard headlines {self.seed} {split} {index}")
        sentences, summary, subject = list[str](), "", ""
        for sentence_index in range(random_between(rng, self.min_sentences, self.max_sentences)):
            name = draw_name(rng, split)
            verb, thing, place = (
                choices[random_below(rng, len(choices))]
                for choices in (DAILY_VERBS if sentence_index else NEWS_VERBS, THINGS, PLACES)
            )
            sentences.append(f"{name} {verb} the {thing} at the {place} .")
            if not sentence_index:
                summary, subject = f"{name} {verb} the {thing}", name
        text = " ".join(shuffled(sentences, rng))
        return {"source": text, "target": summary, "name": subject}

    def describe(self) -> str:
        return (
            f"headlines: {self.size:,} documents of {self.min_sentences} to "
            f"{self.max_sentences} sentences about people with new names, one of them news; "
            "synthetic"
        )


def draw_name(rng: Random, split: str) -> str:
    """Draw one of 24 million names until its hash falls into this split."""
    while True:
        name = "".join(
            letters[random_below(rng, len(letters))]
            for _ in range(NAME_SYLLABLES)
            for letters in (CONSONANTS, VOWELS)
        )
        bucket = blake2b(name.encode(), digest_size=1).digest()[0] % 10
        if {0: "dev", 1: "test"}.get(bucket, "train") == split:
            return name.capitalize()
