"""Language modeling: the likelihood of texts, their continuations, and the next words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from regard.data.corpus import Record
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import InputField, ProgressCallback
from regard.tasks.generation import TextPrediction
from regard.tasks.text_stream import TextStreamTask


@dataclass(frozen=True)
class CompletionPrediction(TextPrediction):
    """The continuations of a prompt, best first; `text` is the prompt with the best."""


class LanguageTask(TextStreamTask):
    """Likelihood and continuation of texts."""

    name: ClassVar = "language"
    input_fields = (InputField("prompt", "Beginning of a text", "lines", is_required=False),)

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[CompletionPrediction]:
        prompts = [self.prompt(record) for record in records]
        prefixes = [self.prefix(record) for record in records]
        outputs = self.complete(prompts, prefixes=prefixes, on_progress=on_progress)
        return [
            CompletionPrediction(self.join_continuation(prompt, best[0]), tuple(best))
            for prompt, best in zip(prompts, outputs, strict=True)
        ]

    def exportable_model(self) -> AnyLanguageModel:
        return self.model
