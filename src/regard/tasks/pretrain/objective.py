"""Shared by the two objectives of pretraining: BERT's in task.py, ELMo's in bilm.py."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from regard.batching.example import SizedT
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.tasks.base import (
    BatchOptions,
    BatchT,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    Task,
    batches_by_length,
)
from regard.tasks.encoder_inputs import AnyInputs
from regard.tasks.encoding import EncoderT
from regard.tasks.loss import Loss
from regard.tasks.text_vectors import TextVectorOptions, embed_rows


class PretrainingObjective(Task[SizedT, BatchT, EncoderT]):
    """An encoder that learns from plain text; its metrics are the likelihood of words."""

    name: ClassVar = "pretrain"
    input_fields = (InputField("text", "Text with a [MASK] for each missing word", "lines"),)
    streamed: bool = False  # examples are sentences, or pairs of several records
    inputs: AnyInputs
    vector_options: TextVectorOptions

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return one vector for each text, of its states in the encoder."""
        records = [{"text": text} for text in texts]
        rows = self.inputs.rows(records, self.vector_options.max_tokens) if texts else []
        return embed_rows(self.model, rows, self.inputs.tensors, self.vector_options)

    def metrics(
        self,
        records: Sequence[Record],  # noqa: ARG002
        predictions: Sequence[Prediction],  # noqa: ARG002
    ) -> Metrics:
        """Return no metrics: the standard metrics need probabilities, not predictions."""
        return {}

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the metrics of likelihood, without predictions."""
        if not records:
            raise InputError("records are missing: there is nothing to score")
        metrics = self.likelihood_metrics(records)
        if on_progress is not None:
            on_progress(len(records))
        return metrics

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        metrics = self.likelihood_metrics(records)
        if name not in metrics:
            raise InputError(f"train.metric = {name!r} is not known for this data and model")
        return float(metrics[name])

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[BatchT]:
        return batches_by_length(self, corpus, options)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.negative_log_likelihood_of(list(self.examples(records)))

    @abstractmethod
    def negative_log_likelihood_of(self, examples: Sequence[SizedT]) -> Loss:
        """Return -log p of the targets of these examples."""
