"""Artificial facts, and questions about one of them: tests whether a model finds the right one.

A context states some traits of some things ("the drink of tamo is kilu vo ."). A question asks for
one trait of one thing. Each thing has several traits and each trait occurs with several things, so
the model has to match both. The words of an answer are random: only their position gives the
answer.
"""

from itertools import product
from random import Random

from regard.data.corpus import Record
from regard.data.synthetic.base import SyntheticCorpus
from regard.data.synthetic.planted import draw_words, random_between, text_split
from regard.data.synthetic.reorder import CONSONANTS, VOWELS, random_below, shuffled
from regard.errors import InputError

TRAITS = ("colour", "home", "drink", "song", "tool", "game", "friend", "food")
NAME_COUNT = 30  # things that occur in many contexts
SENTENCE_FORMS = (  # 0: the thing, 1: the trait
    ("the", 1, "of", 0, "is"),
    ("of", 0, "the", 1, "is"),
)


class Facts(SyntheticCorpus):
    """A corpus of `size` training questions and `held_out` each in dev and test.

    Records are {"id", "question", "text", "answers"} and depend on the settings and their index
    alone. In a share `new_names` of the contexts, things have random names of three syllables that
    no other context has; a model can distinguish them by their letters only.
    """

    def __init__(
        self,
        size: int = 20_000,
        *,
        held_out: int = 500,
        seed: int = 0,
        entities: int = 3,
        attributes: int = 2,
        vocabulary_size: int = 60,
        max_answer_words: int = 3,
        new_names: float = 0.2,
        unanswerable: float = 0.0,
    ) -> None:
        super().__init__(size, seed, held_out)
        counts = {"entities": entities, "attributes": attributes}
        for name, value in {
            **counts,
            "vocabulary_size": vocabulary_size,
            "max_answer_words": max_answer_words,
        }.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        for name, limit, value in (
            ("entities", NAME_COUNT, entities),
            ("attributes", len(TRAITS), attributes),
        ):
            if value > limit:
                raise InputError(f"{name} must be at most {limit}, not {value}")
        if entities * attributes < 2:
            raise InputError(
                "entities and attributes are both 1, so all questions would be equal; raise one"
            )
        for name, share in (("new_names", new_names), ("unanswerable", unanswerable)):
            if not 0 <= share <= 1:
                raise InputError(f"{name} must be from 0 to 1, not {share}")
        self.things, self.traits, self.max_answer_words = entities, attributes, max_answer_words
        self.new_names, self.unanswerable = new_names, unanswerable
        vocabulary = draw_words(NAME_COUNT + vocabulary_size, Random(f"regard facts words {seed}"))
        self.names, self.words = vocabulary[:NAME_COUNT], vocabulary[NAME_COUNT:]

    def example(self, split: str, index: int) -> Record:
        """Return question `index` of a split, without drawing those before it."""
        rng = Random(f"regard facts {self.seed} {split} {index}")
        record = self.draw_record(rng)
        while text_split(record["text"]) != split:
            record = self.draw_record(rng)
        return {"id": f"{split}-{index}", **record}

    def draw_record(self, rng: Random) -> Record:
        pairs = shuffled(
            list(product(self.draw_names(rng), shuffled(list(TRAITS), rng)[: self.traits])),
            rng,
        )
        query_index = random_below(rng, len(pairs))
        is_unanswerable = rng.random() < self.unanswerable
        text, answers = "", list[Record]()
        for index, pair in enumerate(pairs):
            if is_unanswerable and index == query_index:
                continue
            form = SENTENCE_FORMS[random_below(rng, len(SENTENCE_FORMS))]
            clause = " ".join(pair[part] if isinstance(part, int) else part for part in form)
            word_count = random_between(rng, 1, self.max_answer_words)
            value = " ".join(
                self.words[random_below(rng, len(self.words))] for _ in range(word_count)
            )
            if index == query_index:
                answers = [{"text": value, "start": len(text) + len(clause) + 1}]
            text += f"{clause} {value} . "
        thing, trait = pairs[query_index]
        question = f"what is the {trait} of {thing} ?"
        return {"question": question, "text": text.rstrip(), "answers": answers}

    def draw_names(self, rng: Random) -> list[str]:
        if rng.random() >= self.new_names:
            return shuffled(list(self.names), rng)[: self.things]
        names = set[str]()
        while len(names) < self.things:
            alphabets = [(CONSONANTS, VOWELS)[n % 2] for n in range(6)]
            names.add("".join(alphabet[random_below(rng, len(alphabet))] for alphabet in alphabets))
        return shuffled(sorted(names), rng)

    def describe(self) -> str:
        return (
            f"facts: {self.size:,} questions, each about {self.things} artificial things with "
            f"{self.traits} traits; synthetic"
        )
