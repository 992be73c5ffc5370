"""Made-up documents with one word that tells the label: for seeing whether attention finds it.

A document is sentences of filler, one a line. In one sentence one word is a key word of the label;
no other word tells anything. Length, place and filler are drawn by themselves, so the label cannot
be guessed from them.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import product
from random import Random

from regard.corpora.corpus import Record
from regard.corpora.made import Made
from regard.corpora.reorder import CONSONANTS, VOWELS, below, shuffled

MOST_WORDS, LEAST_DOCUMENTS = 4000, 10_000


class Planted(Made):
    """A corpus of `size` documents to train on and `held_out` each in dev and test.

    Records are {"text", "label", "sentence", "word"}; the last two say where the key word stands,
    by lines and spaces, from 0. The n-th document of a split depends on the settings and n alone,
    and no document is in two splits. Classes are many because one of them can be told by finding no
    key word of the others: with two, a model may look at nothing in half of the documents.
    """

    def __init__(
        self,
        size: int = 4000,
        *,
        seed: int = 0,
        held_out: int = 500,
        classes: int = 10,
        keys: int = 3,
        words: int = 500,
        fewest: int = 18,
        most: int = 22,
        shortest: int = 5,
        longest: int = 12,
    ) -> None:
        super().__init__(size, seed, held_out)
        counts = {"classes": classes, "keys": keys}
        for name, number in {**counts, "words": words}.items():
            if number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")
        if not 1 <= fewest <= most:
            raise ValueError(f"fewest must be from 1 to most ({most}), not {fewest}")
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest must be from 1 to longest ({longest}), not {shortest}")
        if words + classes * keys > MOST_WORDS:
            total = f"words {words} and {classes} times {keys} keys"
            raise ValueError(f"{total} are too many: {MOST_WORDS} different words can be made")
        if words ** (fewest * shortest - 1) * classes * keys < LEAST_DOCUMENTS:
            raise ValueError("too few documents for three splits: raise words, fewest or shortest")
        self.fewest, self.most, self.shortest, self.longest = fewest, most, shortest, longest
        known = lexicon(words + classes * keys, Random(f"regard planted words {seed}"))
        self.filler = known[classes * keys :]
        self.keys = {f"class{n}": known[n * keys : (n + 1) * keys] for n in range(classes)}

    def example(self, split: str, number: int) -> Record:
        """The n-th document, without those before it."""
        chance = Random(f"regard planted {self.seed} {split} {number}")
        record = self.drawn(chance)
        while split_of(record["text"]) != split:
            record = self.drawn(chance)
        return record

    def drawn(self, chance: Random) -> Record:
        sentences = self.sentences(chance)
        label = [*self.keys][below(chance, len(self.keys))]
        sentence = below(chance, len(sentences))
        word = below(chance, len(sentences[sentence]))
        sentences[sentence][word] = self.keys[label][below(chance, len(self.keys[label]))]
        text = "\n".join(" ".join(one) for one in sentences)
        return {"text": text, "label": label, "sentence": sentence, "word": word}

    def sentences(self, chance: Random) -> list[list[str]]:
        """Filler alone."""
        return [
            [self.filler[below(chance, len(self.filler))] for _ in range(length)]
            for length in (
                between(chance, self.shortest, self.longest)
                for _ in range(between(chance, self.fewest, self.most))
            )
        ]

    def describe(self) -> str:
        return (
            f"planted: {self.size:,} documents of {self.fewest} to {self.most} made-up sentences, "
            f"one word of which tells the class (of {len(self.keys)}); made here"
        )


def lexicon(words: int, chance: Random) -> Sequence[str]:
    """Different words like "tamo"."""
    syllables = [first + second for first, second in product(CONSONANTS, VOWELS)]
    return shuffled([one + other for one, other in product(syllables, syllables)], chance)[:words]


def between(chance: Random, low: int, high: int) -> int:
    return low + below(chance, high - low + 1)


def split_of(text: str) -> str:
    """Eight of ten are for training, one for dev, one for the test; by a stable hash."""
    tenth = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) % 10
    return {0: "dev", 1: "test"}.get(tenth, "train")
