"""Runs that write a text when they have read another: two vocabularies, or one for both sides."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from torch import nn

from regard.batching.example import Example
from regard.config.decode import DecodeConfig
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.decoding.stepper import Stepper
from regard.models.catalogue import build_model as build_model
from regard.tasks.generation import build_constraints, build_reranker, build_search
from regard.tasks.loss import Loss
from regard.tasks.translate import SearchFunction, TextPrediction
from regard.text.tokenizer import Tokenizer
from regard.train.run import ProgressCallback, Run, train_tokenizer_on_corpus

SIDES = ("source", "target")


class Seq2SeqRun(Run):
    """A source text into a target text."""

    vocabulary_loaders: ClassVar = dict.fromkeys(SIDES, Tokenizer.load)
    forbidden_ids: ClassVar[tuple[int, ...]] = ()  # ids that are never said, beside the usual ones
    settings: Any

    @abstractmethod
    def build_task_for(self, model: nn.Module) -> Any:
        """What is asked of a model."""

    def build_task(self) -> Any:
        options = self.settings.model.model_dump(exclude={"kind"})
        sizes = {f"{side}_size": self.vocabularies[side].size for side in SIDES}
        return self.build_task_for(build_model(self.settings.model.kind, {**options, **sizes}))

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokenizer]:
        if settings.text.joint:
            tokenizer = train_tokenizer_on_corpus(settings.text, corpus, *SIDES)
            return dict.fromkeys(SIDES, tokenizer)
        return {side: train_tokenizer_on_corpus(settings.text, corpus, side) for side in SIDES}

    def __call__(self, text: str) -> TextPrediction:
        """The best output for one text."""
        return self.predict([text])[0][0]

    def predict(
        self,
        texts: Sequence[str],
        decode: DecodeConfig | None = None,
        on_progress: ProgressCallback | None = None,
        stepper: Stepper[Any, Any] | None = None,
    ) -> list[list[TextPrediction]]:
        """The outputs for each text, best first; `stepper` says the tokens in the model's place."""
        search_settings: DecodeConfig = decode or self.settings.decode
        constraints = build_constraints(
            search_settings,
            int(min(search_settings.max_length, self.max_positions)),
            self.forbidden_ids,
        )
        base_search, rerank = build_search(search_settings), build_reranker(search_settings)
        search: SearchFunction = (
            base_search if stepper is None else lambda _, *rest: base_search(stepper, *rest)
        )
        return self.task.predict(texts, search, constraints, rerank=rerank, on_progress=on_progress)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of the targets, of pairs that are not too long."""
        return self.task.negative_log_likelihood(self.evaluation_examples(records))

    @abstractmethod
    def evaluation_examples(self, records: Iterable[Record]) -> list[Example]:
        """The pairs whose likelihood can be told."""
