"""What the two objectives of pretraining share: BERT's in task.py, ELMo's in bilm.py."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from regard.data.corpus import Record
from regard.tasks.base import BatchT, ExampleT, Metrics, ModelT, Prediction, ProgressCallback, Task
from regard.tasks.loss import Loss


class PretrainingObjective(Task[ExampleT, BatchT, ModelT]):
    """An encoder that learns from plain text; its score is how likely it finds hidden words."""

    name: ClassVar = "pretrain"
    streamed: bool = False  # a record has no single example: sentences, or pairs of several records

    def metrics(
        self,
        records: Sequence[Record],  # noqa: ARG002
        predictions: Sequence[Prediction],  # noqa: ARG002
    ) -> Metrics:
        """Return nothing: the standard metrics need probabilities, not predictions."""
        return {}

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the metrics of likelihood; nothing is predicted."""
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        metrics = self.likelihood_metrics(records)
        if on_progress is not None:
            on_progress(len(records))
        return metrics

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        metrics = self.likelihood_metrics(records)
        if name not in metrics:
            raise ValueError(f"train.metric = {name!r} is not known for this data and model")
        return float(metrics[name])

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.negative_log_likelihood_of(list(self.examples(records)))

    @abstractmethod
    def negative_log_likelihood_of(self, examples: Sequence[ExampleT]) -> Loss:
        """Return -log p of the targets of these examples."""
