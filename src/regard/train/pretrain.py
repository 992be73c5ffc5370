"""A run that learns from plain text what others can be built on: BERT, ELMo."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batching.batches import Batches
from regard.batching.example import Example
from regard.config.settings import PretrainSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.models.catalogue import build_model as build_model
from regard.tasks.bilm import BiLmTask
from regard.tasks.loss import Loss
from regard.tasks.pretrain import PretrainTask
from regard.text.special_ids import load_tokenizer, special_ids
from regard.text.tokenizer import Tokenizer
from regard.train.run import Prediction, ProgressCallback, Run, train_tokenizer_on_corpus
from regard.training.examples import build_examples


class PretrainRun(Run):
    """Hidden words and what follows what (BERT), or the words before and behind (ELMo)."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer}
    unit: ClassVar = "pairs"
    settings: PretrainSettings
    task: PretrainTask | BiLmTask

    def build_task(self) -> PretrainTask | BiLmTask:
        mask, tokenizer = self.settings.mask, self.vocabularies["text"]
        kind, options = self.settings.model.kind, self.settings.model.model_dump(exclude={"kind"})
        if kind == "elmo":
            return BiLmTask(build_model(kind, {**options, "size": tokenizer.size}), tokenizer)
        return PretrainTask(
            build_model(kind, {**options, "size": special_ids(tokenizer).size}),
            tokenizer,
            rate=mask.rate,
            whole_words=mask.whole_words,
            next_sentence=mask.next_sentence,
        )

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokenizer]:
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def batches(self, corpus: Corpus) -> Batches:
        """Stretches of text, or pairs of them; which words are hidden is drawn each time."""
        train = self.settings.train
        return Batches(
            build_examples(
                lambda: corpus.read("train"),
                self.training_examples,
                self.task.fields,
                self.settings,
                packed=isinstance(self.task, PretrainTask),  # else there are words, not ids
                stream=False,
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def training_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        return self.task.examples(records, self.max_tokens, self.settings.seed)

    @property
    def max_tokens(self) -> int:
        """Tokens of an example, without the marks."""
        context = getattr(self.settings.model, "max_positions", math.inf)
        return int(min(self.settings.train.max_tokens, context - self.task.special_token_count))

    def loss(self, batch: Any, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(self.evaluation_examples(records))

    def evaluation_examples(self, records: Iterable[Record]) -> list[Example]:
        """What is measured: the same each time."""
        return list(self.task.examples(records, self.max_tokens))

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        records = list(records)
        metrics = self.task.metrics(self.evaluation_examples(records))
        if on_progress is not None:
            on_progress(len(records))
        return metrics

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """What the task has to say of a text: what is hidden in it, or how likely it is."""
        return [
            Prediction(*self.task.predict_line(text, location_format.format(number)))
            for number, text in enumerate(lines, 1)
        ]
