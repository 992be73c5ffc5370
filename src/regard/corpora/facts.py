"""Made-up facts, and questions that name one of them: for seeing whether a model finds it.

A context says what some traits of some things are ("the drink of tamo is kilu vo ."); a question
asks for one trait of one thing. Each thing has several traits and each trait is told of several
things, so an answer needs both, and the place where they meet. The words of an answer are drawn
by themselves: nothing but the place tells them.
"""

from itertools import product
from random import Random

from regard.corpora.corpus import Record
from regard.corpora.made import Made
from regard.corpora.planted import between, lexicon, split_of
from regard.corpora.reorder import CONSONANTS, VOWELS, below, shuffled

TRAITS = ("colour", "home", "drink", "song", "tool", "game", "friend", "food")
NAMES = 30  # of things that come again and again
FORMS = (("the", 1, "of", 0, "is"), ("of", 0, "the", 1, "is"))  # 0: the thing, 1: the trait


class Facts(Made):
    """A corpus of `size` questions to train on and `held_out` each in dev and test.

    Records are {"id", "question", "text", "answers"}. In a share `new_names` of the contexts the
    things have names of three syllables that no other context has: they can be told apart by their
    letters alone. The n-th question of a split depends on the settings and n alone.
    """

    def __init__(
        self,
        size: int = 20_000,
        *,
        held_out: int = 500,
        seed: int = 0,
        things: int = 3,
        traits: int = 2,
        words: int = 60,
        longest: int = 3,
        new_names: float = 0.2,
        unanswerable: float = 0.0,
    ) -> None:
        super().__init__(size, seed, held_out)
        counts = {"things": things, "traits": traits}
        for name, number in {**counts, "words": words, "longest": longest}.items():
            if number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")
        for name, most, number in (("things", NAMES, things), ("traits", len(TRAITS), traits)):
            if number > most:
                raise ValueError(f"{name} must be at most {most}, not {number}")
        if things * traits < 2:
            raise ValueError("things and traits are both 1: every question would be the same")
        for name, share in (("new_names", new_names), ("unanswerable", unanswerable)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {share}")
        self.things, self.traits, self.longest = things, traits, longest
        self.new_names, self.unanswerable = new_names, unanswerable
        known = lexicon(NAMES + words, Random(f"regard facts words {seed}"))
        self.names, self.words = known[:NAMES], known[NAMES:]

    def example(self, split: str, number: int) -> Record:
        """The n-th question, without those before it."""
        chance = Random(f"regard facts {self.seed} {split} {number}")
        record = self.drawn(chance)
        while split_of(record["text"]) != split:
            record = self.drawn(chance)
        return {"id": f"{split}-{number}", **record}

    def drawn(self, chance: Random) -> Record:
        pairs = shuffled(
            list(product(self.some_names(chance), shuffled(list(TRAITS), chance)[: self.traits])),
            chance,
        )
        asked = below(chance, len(pairs))
        missing = chance.random() < self.unanswerable
        text, answers = "", list[Record]()
        for number, pair in enumerate(pairs):
            if missing and number == asked:
                continue
            form = FORMS[below(chance, len(FORMS))]
            said = " ".join(pair[part] if isinstance(part, int) else part for part in form)
            many = between(chance, 1, self.longest)
            value = " ".join(self.words[below(chance, len(self.words))] for _ in range(many))
            if number == asked:
                answers = [{"text": value, "start": len(text) + len(said) + 1}]
            text += f"{said} {value} . "
        thing, trait = pairs[asked]
        question = f"what is the {trait} of {thing} ?"
        return {"question": question, "text": text.rstrip(), "answers": answers}

    def some_names(self, chance: Random) -> list[str]:
        if chance.random() >= self.new_names:
            return shuffled(list(self.names), chance)[: self.things]
        names = set[str]()
        while len(names) < self.things:
            letters = [(CONSONANTS, VOWELS)[n % 2] for n in range(6)]
            names.add("".join(some[below(chance, len(some))] for some in letters))
        return shuffled(sorted(names), chance)

    def describe(self) -> str:
        return (
            f"facts: {self.size:,} questions, each on {self.things} made-up things with "
            f"{self.traits} traits; made here"
        )
