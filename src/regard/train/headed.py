"""Runs of an encoder with a head, whatever the head is for."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from regard.batching.batches import Batches
from regard.batching.example import Example
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.models.catalogue import build_model as build_model
from regard.tasks.loss import Loss
from regard.text.special_ids import AnyTokenizer, load_tokenizer, special_ids
from regard.train.run import ProgressCallback, Run, train_tokenizer_on_corpus
from regard.training.examples import build_examples
from regard.training.pretrained import (
    layer_decay_groups,
    load_encoder_weights,
    with_pretrained_settings,
)


class EncoderRun(Run):
    """An encoder with a head: trained on texts of about equal length together."""

    special_token_count: ClassVar[int]  # positions that marks take
    example_unit: ClassVar[str]  # what a score has the number of
    settings: Any

    def build_encoder(self, tokenizer: AnyTokenizer) -> Any:
        """As the settings say."""
        kind = self.settings.model.kind
        options = self.settings.model.model_dump(exclude={"kind"})
        if kind == "elmo":  # which reads letters
            return build_model(kind, options)
        size = special_ids(tokenizer).size if kind == "bert" else tokenizer.size
        return build_model(kind, {**options, "size": size})

    @classmethod
    def resolve_settings(cls, settings: Settings) -> Settings:
        return with_pretrained_settings(settings)

    @classmethod
    def build_tokenizer(cls, settings: Any, corpus: Corpus, *fields: str) -> AnyTokenizer:
        """Of the run that it starts from, or learnt from these fields."""
        if settings.start.run is not None:
            return load_tokenizer(Path(settings.start.run) / "text.json")
        return train_tokenizer_on_corpus(settings.text, corpus, *fields)

    def load_pretrained(self) -> None:
        """The encoder of the run that it starts from; that one's heads are left behind."""
        if self.settings.start.run is not None:
            load_encoder_weights(self.task.model.encoder, Path(self.settings.start.run))

    def base_parameter_groups(self) -> list[dict[str, Any]]:
        return layer_decay_groups(self.model, self.settings) or super().base_parameter_groups()

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            return self.task.examples(records, self.max_tokens)

        def read_train() -> Iterator[Record]:
            return corpus.read("train")

        return Batches(
            build_examples(
                read_train, to_examples, ["text"], self.settings, packed=self.task.can_pack
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def max_tokens(self) -> int:
        """Tokens of text, at most; the marks need places, too."""
        context = getattr(self.settings.model, "max_positions", math.inf)
        return int(min(self.settings.train.max_tokens, context - self.special_token_count))

    def loss(self, batch: Any, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(list(self.task.examples(records, self.max_tokens)))

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:
        return float(self.metrics(records)[metric])

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """The metrics of the task, in percent, with the loss of one of what is counted."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        loss = self.negative_log_likelihood(records)
        metrics = self.metrics(records, on_progress)
        return {**metrics, "loss": loss.total.item() / loss.count, self.example_unit: len(records)}

    @abstractmethod
    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """The metrics of the task, in percent."""
