"""A run that classifies: a text or two into one of the classes of its data."""

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.batching.batches import Batches
from regard.config.settings import ClassifySettings, Settings
from regard.data.corpus import Corpus, Record, location
from regard.layers.lora import add_lora
from regard.metrics.classification import accuracy, macro_f1
from regard.tasks.classify import ClassifyTask, ClassPrediction, EncoderClassifier
from regard.tasks.inputs import BertInputs, CharacterInputs, PlainInputs, SentenceInputs
from regard.text.labels import Labels
from regard.text.special_ids import load_tokenizer, special_ids
from regard.train.headed import EncoderRun
from regard.train.run import Prediction, ProgressCallback


class ClassifyRun(EncoderRun):
    """Sentiment, topics, pairs of sentences: any label."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer, "labels": Labels.load}
    unit: ClassVar = "texts"
    example_unit: ClassVar = "texts"
    special_token_count: ClassVar = 3  # of two texts: START, and END twice
    settings: ClassifySettings
    task: ClassifyTask

    def build_task(self) -> ClassifyTask:
        tokenizer, labels = self.vocabularies["text"], self.vocabularies["labels"]
        model, head, start = self.settings.model, self.settings.head, self.settings.start
        encoder = self.build_encoder(tokenizer)
        classifier = EncoderClassifier(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora_rank:
            add_lora(encoder, start.lora_rank)
        if model.kind == "bert":
            specials = special_ids(tokenizer)
            bert_inputs = BertInputs(
                tokenizer, specials.start, specials.end, segments=model.segments > 1
            )
            return ClassifyTask(classifier, bert_inputs, labels)
        input_classes = {"han": SentenceInputs, "elmo": CharacterInputs}
        return ClassifyTask(
            classifier, input_classes.get(model.kind, PlainInputs)(tokenizer), labels
        )

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.from_data(record["label"] for record in corpus.read("train"))
        fields = ["text", "pair"] if "pair" in next(corpus.read("train"), {}) else ["text"]
        return {"text": cls.build_tokenizer(settings, corpus, *fields), "labels": labels}

    def batches(self, corpus: Corpus) -> Batches:
        """The labels of dev and test are looked at first."""
        for split in set(corpus.splits) - {"train"}:  # whose labels these are
            for index, record in enumerate(corpus.read(split)):
                if record["label"] not in self.task.labels.indices:
                    self.task.labels.index(record["label"], location(corpus, split, index))
        return super().batches(corpus)

    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Accuracy and macro F1."""
        predicted_labels = [prediction.label for prediction in self.predict(records, on_progress)]
        reference_labels = [record["label"] for record in records]
        return {
            "accuracy": 100 * accuracy(predicted_labels, reference_labels),
            "f1": 100 * macro_f1(predicted_labels, reference_labels),
        }

    def predict(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> list[ClassPrediction]:
        """What each record's text is taken for."""
        return self.task.predict(records, self.max_tokens, on_progress)

    def __call__(self, text: str, pair: str | None = None) -> ClassPrediction:
        """What one text, or two, are taken for."""
        return self.predict([{"text": text} if pair is None else {"text": text, "pair": pair}])[0]

    def predict_lines(
        self,
        lines: Sequence[str],
        location_format: str = "text {}",  # noqa: ARG002
    ) -> list[Prediction]:
        """One label for each."""
        records = parse_records(lines)
        return [
            Prediction(
                prediction.label,
                {**record, "label": prediction.label, "probabilities": prediction.probabilities},
            )
            for record, prediction in zip(records, self.predict(records), strict=True)
        ]


def parse_records(texts: Sequence[str]) -> list[Record]:
    """One text each, or two with a tab between them."""
    return [dict(zip(("text", "pair"), text.split("\t"), strict=False)) for text in texts]
