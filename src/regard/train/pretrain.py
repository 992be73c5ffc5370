"""A run that learns from plain text what others can be built on: BERT."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import PretrainSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.metric.language import perplexity
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.tasks.pretrain import MARK, Joined, Pretrain, Told
from regard.text.marks import load_tokeniser, marks_of
from regard.text.tokeniser import Tokeniser
from regard.train.examples import examples
from regard.train.run import Reply, Run, vocabulary
from regard.train.run import Told as Heard

MARKS = 3  # of a pair: START, and END twice


class PretrainRun(Run):
    """Hidden words, and whether one stretch of text follows another."""

    kept: ClassVar = {"text": load_tokeniser}
    counted: ClassVar = "pairs"
    settings: PretrainSettings
    task: Pretrain

    def asked(self) -> Pretrain:
        mask, text = self.settings.mask, self.vocabularies["text"]
        wanted = self.settings.model.model_dump(exclude={"kind"})
        return Pretrain(
            build_model("bert", {**wanted, "size": marks_of(text).size}),
            text,
            rate=mask.rate,
            whole_words=mask.whole_words,
            next_sentence=mask.next_sentence,
        )

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokeniser]:
        return {"text": vocabulary(settings.text, corpus, "text")}

    def batches(self, corpus: Corpus) -> Batches:
        """Pairs of stretches of text, drawn once; which words are hidden is drawn each time."""
        train = self.settings.train
        return Batches(
            examples(
                lambda: corpus.read("train"),
                self.pairs,
                self.task.fields,
                self.settings,
                stream=False,
            ),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def pairs(self, records: Iterable[Record]) -> Iterator[Pair]:
        return self.task.pairs(records, self.longest, self.settings.seed)

    @property
    def longest(self) -> int:
        """Tokens of a pair, without the marks."""
        return min(self.settings.train.longest, self.settings.model.context - MARKS)

    def loss(self, batch: Joined, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of the hidden words."""
        told = self.told(records)
        return Loss(told.words_loss, told.words)

    def told(self, records: Iterable[Record]) -> Told:
        return self.task.measured(list(self.task.pairs(records, self.longest)))

    def score(self, records: Iterable[Record], told: Heard | None = None) -> dict[str, float | str]:
        """How many of the hidden words, and of the pairs, are told right, in percent."""
        records = list(records)
        found = self.told(records)
        if told is not None:
            told(len(records))
        scores: dict[str, float | str] = {
            "accuracy": 100 * found.words_right / found.words,
            "perplexity": perplexity(found.words_loss.item(), found.words),
            "words": found.words,
        }
        if self.settings.mask.next_sentence:
            scores["next_sentence"] = 100 * found.pairs_right / found.pairs
        return {**scores, "pairs": found.pairs}

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """The text with each [MASK] filled in."""
        found = []
        for number, text in enumerate(texts, 1):
            if MARK not in text:
                raise ValueError(f"{place.format(number)}: there is no {MARK} in it to fill in")
            filled, guesses = text, self.task.filled(text)
            for best in guesses:
                filled = filled.replace(MARK, best[0][0], 1)
            told = [[{"word": w, "probability": p} for w, p in best] for best in guesses]
            found.append(Reply(filled, {"text": text, "filled": filled, "masks": told}))
        return found
