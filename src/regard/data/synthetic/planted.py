"""Artificial documents with one keyword that decides the label: tests whether attention finds it.

A document is sentences of filler words, one a line. One word of one sentence is a keyword of the
label. Lengths, positions and filler are drawn independently, so nothing else depends on the label.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import product
from random import Random

from regard.data.corpus import Record
from regard.data.synthetic.base import SyntheticCorpus
from regard.data.synthetic.reorder import CONSONANTS, VOWELS, random_below, shuffled
from regard.errors import InputError

MAX_WORDS, MIN_DOCUMENTS = 4000, 10_000


class PlantedWords(SyntheticCorpus):
    """A corpus of `size` training documents and `held_out` each in dev and test.

    Records are {"text", "label", "sentence", "word"}; the last two are the position of the keyword:
    its line, and its word in the line, from 0. A record depends on the settings and its index
    alone, and no document is in two splits. The default has many classes, because a model can
    recognize one class by the absence of all other keywords. With two classes, it could ignore the
    keyword in half of the documents.
    """

    def __init__(
        self,
        size: int = 4000,
        *,
        seed: int = 0,
        held_out: int = 500,
        classes: int = 10,
        keywords_per_class: int = 3,
        filler_words: int = 500,
        min_sentences: int = 18,
        max_sentences: int = 22,
        min_words: int = 5,
        max_words: int = 12,
    ) -> None:
        super().__init__(size, seed, held_out)
        counts = {"classes": classes, "keywords_per_class": keywords_per_class}
        for name, value in {**counts, "filler_words": filler_words}.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if not 1 <= min_sentences <= max_sentences:
            raise InputError(
                f"min_sentences must be from 1 to max_sentences ({max_sentences}), "
                f"not {min_sentences}"
            )
        if not 1 <= min_words <= max_words:
            raise InputError(
                f"min_words must be from 1 to max_words ({max_words}), not {min_words}"
            )
        if filler_words + classes * keywords_per_class > MAX_WORDS:
            total = f"{filler_words} filler_words and {classes} times {keywords_per_class} keywords"
            raise InputError(f"{total} are too many; there are {MAX_WORDS} different words")
        if (
            filler_words ** (min_sentences * min_words - 1) * classes * keywords_per_class
            < MIN_DOCUMENTS
        ):
            raise InputError(
                "too few documents for three splits; raise filler_words, min_sentences or min_words"
            )
        self.min_sentences, self.max_sentences, self.min_words, self.max_words = (
            min_sentences,
            max_sentences,
            min_words,
            max_words,
        )
        vocabulary = draw_words(
            filler_words + classes * keywords_per_class, Random(f"regard planted words {seed}")
        )
        self.filler = vocabulary[classes * keywords_per_class :]
        self.keys = {
            f"class{n}": vocabulary[n * keywords_per_class : (n + 1) * keywords_per_class]
            for n in range(classes)
        }

    def example(self, split: str, index: int) -> Record:
        """Return document `index` of a split, without drawing those before it."""
        rng = Random(f"regard planted {self.seed} {split} {index}")
        record = self.draw_record(rng)
        while text_split(record["text"]) != split:
            record = self.draw_record(rng)
        return record

    def draw_record(self, rng: Random) -> Record:
        sentences = self.draw_sentences(rng)
        label = [*self.keys][random_below(rng, len(self.keys))]
        sentence = random_below(rng, len(sentences))
        word = random_below(rng, len(sentences[sentence]))
        sentences[sentence][word] = self.keys[label][random_below(rng, len(self.keys[label]))]
        text = "\n".join(" ".join(tokens) for tokens in sentences)
        return {"text": text, "label": label, "sentence": sentence, "word": word}

    def draw_sentences(self, rng: Random) -> list[list[str]]:
        """Draw sentences of filler words."""
        return [
            [self.filler[random_below(rng, len(self.filler))] for _ in range(length)]
            for length in (
                random_between(rng, self.min_words, self.max_words)
                for _ in range(random_between(rng, self.min_sentences, self.max_sentences))
            )
        ]

    def describe(self) -> str:
        return (
            f"planted: {self.size:,} documents of {self.min_sentences} to "
            f"{self.max_sentences} artificial sentences, "
            f"one word of which decides the class (of {len(self.keys)}); synthetic"
        )


def draw_words(count: int, rng: Random) -> Sequence[str]:
    """Draw different words like "tamo"."""
    syllables = [first + second for first, second in product(CONSONANTS, VOWELS)]
    return shuffled([left + right for left, right in product(syllables, syllables)], rng)[:count]


def random_between(rng: Random, low: int, high: int) -> int:
    return low + random_below(rng, high - low + 1)


def text_split(text: str) -> str:
    """Return the split of a text: by a stable hash, 80 % train, 10 % dev, 10 % test."""
    bucket = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) % 10
    return {0: "dev", 1: "test"}.get(bucket, "train")
