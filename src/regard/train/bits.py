"""A run that remembers sequences of bits: it copies them, or recalls what followed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batching.batches import Batches
from regard.batching.example import Example
from regard.config.settings import CopySettings, RecallSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.bits import BitFormat, CopyFormat, RecallFormat
from regard.metrics.bits import BITS_SIGNATURE, bits_per_sequence, wrong_bits
from regard.models.catalogue import build_model as build_model
from regard.tasks.bits import BitCopyBatch, BitCopyPrediction, BitCopyTask
from regard.tasks.loss import Loss
from regard.train.run import Prediction, ProgressCallback, Run
from regard.training.examples import build_examples


class BitsRun(Run):
    """How many bits of a sequence are not known at its end, whatever its length."""

    vocabulary_loaders: ClassVar = {}
    unit: ClassVar = "sequences"
    settings: CopySettings | RecallSettings
    task: BitCopyTask

    def build_task(self) -> BitCopyTask:
        bit_format = build_format(self.settings)
        options = self.settings.model.model_dump(exclude={"kind"})
        sizes = {
            "source_size": bit_format.width + len(bit_format.markers),
            "target_size": bit_format.width,
        }
        return BitCopyTask(build_model(self.settings.model.kind, {**options, **sizes}), bit_format)

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Bits are bits, whatever the data."""
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            return self.task.examples(records, self.max_tokens)

        return Batches(
            build_examples(lambda: corpus.read("train"), to_examples, ["source"], self.settings),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def loss(self, batch: BitCopyBatch, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """In bits, of whole sequences."""
        return self.task.negative_log_likelihood(list(self.task.examples(records)))

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Bits of a sequence, and bits wrong: of all, and of each size that is tested."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        examples = list(self.task.examples(records))
        rows = list(zip(records, examples, self.task.predict(examples, on_progress), strict=True))
        metrics: dict[str, float | str] = {**mean_metrics("", rows)}
        for size in self.settings.data.test_sizes:
            if matching_rows := [row for row in rows if row[0]["size"] == size]:
                metrics |= mean_metrics(f"_{size}", matching_rows)
        return {**metrics, "sequences": len(records)}

    def predict(
        self, texts: Sequence[str], location_format: str = "text {}"
    ) -> list[BitCopyPrediction]:
        """What is told of each sequence."""
        return self.task.predict(self.parse_examples(texts, location_format))

    def parse_examples(self, texts: Sequence[str], location_format: str) -> list[Example]:
        return [
            self.task.build_example(text, location_format.format(n))
            for n, text in enumerate(texts, 1)
        ]

    def __call__(self, text: str) -> BitCopyPrediction:
        return self.predict([text])[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """The vectors that are told, beside those that should be."""
        examples, predictions = self.parse_examples(lines, location_format), list[Prediction]()
        for text, example, answer in zip(lines, examples, self.task.predict(examples), strict=True):
            output = self.task.form.format_vectors(answer.vectors)
            data = {
                "source": text,
                "said": output,
                "wanted": self.task.form.format_vectors(example.target),
                "wrong": wrong_bits(answer.vectors, example.target),
                "bits": bits_per_sequence(answer.loss, 1),
                "sure": answer.confidence,
            }
            predictions.append(Prediction(output, data))
        return predictions


def build_format(settings: CopySettings | RecallSettings) -> BitFormat:
    data = settings.data
    if data.kind == "copy":
        return CopyFormat(data.width)
    return RecallFormat(data.width, data.vectors_per_item)


def mean_metrics(
    suffix: str, rows: Sequence[tuple[Record, Example, BitCopyPrediction]]
) -> dict[str, float | str]:
    """Over these sequences."""
    wrong_count = sum(wrong_bits(answer.vectors, example.target) for _, example, answer in rows)
    return {
        f"bits{suffix}": bits_per_sequence(sum(answer.loss for *_, answer in rows), len(rows)),
        f"bits{suffix}_signature": BITS_SIGNATURE,
        f"wrong{suffix}": wrong_count / len(rows),
    }
