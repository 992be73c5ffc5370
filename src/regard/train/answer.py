"""A run that answers questions by stretches of their contexts."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from regard.batching.batches import Batches
from regard.config.settings import AnswerSettings
from regard.data.corpus import Corpus, Record, location
from regard.layers.lora import add_lora
from regard.metrics.answers import ANSWER_SIGNATURE, answer_scores, best_threshold
from regard.tasks.answer import AnswerPrediction, AnswerTask, SpanReader
from regard.tasks.answer_inputs import JoinedLayout, Layout, SeparateLayout, split_words
from regard.text.special_ids import AnyTokenizer, load_tokenizer, special_ids
from regard.text.tokenizer import Tokenizer
from regard.text.train import train_tokenizer
from regard.train.headed import EncoderRun
from regard.train.run import MAX_VOCABULARY_RECORDS, Prediction, ProgressCallback, take

NO_ANSWER = "no answer"


class AnswerRun(EncoderRun):
    """Questions, each with the context that it is asked of."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer}
    unit: ClassVar = "questions"
    example_unit: ClassVar = "questions"
    special_token_count: ClassVar = 3  # START, and END twice
    settings: AnswerSettings
    task: AnswerTask
    dev_threshold: float | None = None  # the threshold that dev has shown to be the best

    def build_task(self) -> AnswerTask:
        tokenizer, head, start = self.vocabularies["text"], self.settings.head, self.settings.start
        encoder, layout = self.build_encoder(tokenizer), build_layout(self.settings, tokenizer)
        reader = SpanReader(
            encoder,
            separate_context=isinstance(layout, SeparateLayout),
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora_rank:
            add_lora(encoder, start.lora_rank)
        return AnswerTask(
            reader,
            layout,
            max_answer_tokens=head.max_answer_tokens,
            stride=head.stride,
            no_answer=head.allow_no_answer,
        )

    @classmethod
    def build_vocabularies(cls, settings: Any, corpus: Corpus) -> dict[str, Any]:
        if settings.start.run is not None:
            return {"text": load_tokenizer(Path(settings.start.run) / "text.json")}
        config = settings.text
        is_word_level = config.kind == "words"
        tokenizer = train_tokenizer(
            config.kind,
            (
                " ".join(split_words(passage).tokens) if is_word_level else passage
                for passage in training_texts(corpus)
            ),
            config.size,
            lower=config.lower,
            normalize=config.normalize,
            min_count=config.min_count,
        )
        return {"text": tokenizer}

    @property
    def max_tokens(self) -> int:
        """Tokens of a window: of the question and the context where they share a row."""
        max_tokens = super().max_tokens
        if max_tokens < 2:
            raise ValueError(
                f"train.max_tokens: {max_tokens} tokens are too few for a question and more"
            )
        return max_tokens

    def batches(self, corpus: Corpus) -> Batches:
        """That every question has an answer is seen first, where no answer is not allowed."""
        if not self.settings.head.allow_no_answer:
            for index, record in enumerate(corpus.read("train")):
                if not record["answers"]:
                    record_location = location(corpus, "train", index)
                    raise ValueError(
                        f"{record_location}: has no answer; set head.allow_no_answer = true"
                    )
        return super().batches(corpus)

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:
        """On dev, which also shows below which score no answer is better."""
        predictions = self.predict(records)
        if self.settings.head.allow_no_answer:
            references = reference_answers(records)
            answers = [
                prediction.candidates[0].text if prediction.candidates else ""
                for prediction in predictions
            ]
            scores = [
                prediction.candidates[0].score if prediction.candidates else 0.0
                for prediction in predictions
            ]
            self.dev_threshold = best_threshold(scores, answers, references, metric)
            self.model.threshold.fill_(self.dev_threshold)
            predictions = [
                with_threshold(prediction, self.dev_threshold) for prediction in predictions
            ]
        return float(prediction_metrics(records, predictions)[metric])

    def save_weights(self, folder: Path, weights: dict[str, torch.Tensor]) -> None:
        """With the threshold, which no average of weights may change."""
        if self.dev_threshold is not None:
            weights = {**weights, "threshold": torch.tensor(self.dev_threshold)}
        super().save_weights(folder, weights)

    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        return prediction_metrics(records, self.predict(records, on_progress))

    def predict(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> list[AnswerPrediction]:
        """Of records with a `question` and a `text`, its context."""
        return self.task.predict(records, self.max_tokens, on_progress)

    def __call__(self, question: str, context: str) -> AnswerPrediction:
        return self.predict([{"question": question, "text": context}])[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """Of lines "question TAB context": the context, and in brackets the answer."""
        records = [parse_record(text, location_format.format(n)) for n, text in enumerate(lines, 1)]
        for number, (_, question, _) in enumerate(self.task.tokenize(records), 1):
            if len(question.tokens) > self.max_tokens // 2:
                excess = f"{len(question.tokens)} tokens, more than {self.max_tokens // 2}"
                raise ValueError(
                    f"{location_format.format(number)}: the question has {excess}: shorten it"
                )
        pairs = zip(records, self.predict(records), strict=True)
        return [
            Prediction(
                bracketed(record["text"], prediction),
                prediction_data(prediction),
                prediction_spans(record["text"], prediction),
            )
            for record, prediction in pairs
        ]


def build_layout(settings: AnswerSettings, tokenizer: AnyTokenizer) -> Layout:
    """How the encoder of these settings reads a question and a context."""
    model = settings.model
    if model.kind == "bidaf":
        return SeparateLayout(tokenizer)
    specials, has_segments = special_ids(tokenizer), getattr(model, "segments", 0) > 1
    is_word_level = isinstance(tokenizer, Tokenizer) and settings.text.kind == "words"
    return JoinedLayout(
        tokenizer, specials.start, specials.end, segments=has_segments, is_word_level=is_word_level
    )


def training_texts(corpus: Corpus) -> Iterator[str]:
    """Questions and contexts of train; a context that has several questions, once."""
    previous_context = None
    for record in take(corpus.read("train"), MAX_VOCABULARY_RECORDS):
        yield record["question"]
        if record["text"] != previous_context:
            yield record["text"]
        previous_context = record["text"]


def parse_record(text: str, location: str) -> Record:
    question, separator, context = text.partition("\t")
    if not separator:
        raise ValueError(f"{location}: no tab in it; a line is a question, a tab and its context")
    for name, value in (("question", question), ("context", context)):
        if not value.strip():
            raise ValueError(
                f"{location}: the {name} is empty; a line is a question, a tab and more"
            )
    return {"question": question, "text": context}


def reference_answers(records: Sequence[Record]) -> list[list[str]]:
    return [[answer["text"] for answer in record["answers"]] for record in records]


def with_threshold(answer: AnswerPrediction, threshold: float) -> AnswerPrediction:
    """Decided once more, by another threshold."""
    is_unanswered = not answer.candidates or answer.candidates[0].score < threshold
    return answer._replace(span=None if is_unanswered else answer.candidates[0])


def prediction_metrics(
    records: Sequence[Record], predictions: Sequence[AnswerPrediction]
) -> dict[str, float | str]:
    """EM and F1; of questions with an answer and of those without, if there are such."""
    scores = answer_scores(
        [prediction.text for prediction in predictions], reference_answers(records)
    )
    metrics: dict[str, float | str] = {"exact": 100 * scores.exact, "f1": 100 * scores.f1}
    if scores.with_answer is not None and scores.without_answer is not None:
        metrics["exact_with_answer"] = 100 * scores.with_answer.exact
        metrics["f1_with_answer"] = 100 * scores.with_answer.f1
    if scores.without_answer is not None:
        metrics["exact_without"] = 100 * scores.without_answer.exact
    return {**metrics, "exact_signature": ANSWER_SIGNATURE}


def prediction_spans(context: str, answer: AnswerPrediction) -> tuple[tuple[str, str], ...]:
    """The context, cut around the answer."""
    if answer.span is None:
        return ((f"{NO_ANSWER}:", ""), (context, ""))
    start, end = answer.span.start, answer.span.end
    spans = ((context[:start], ""), (answer.span.text, "answer"), (context[end:], ""))
    return tuple((text.strip(), name) for text, name in spans if text.strip())


def bracketed(context: str, answer: AnswerPrediction) -> str:
    """On one line, whatever the context has."""
    if answer.span is None:
        return " ".join(f"{NO_ANSWER}: {context}".split())
    start, end = answer.span.start, answer.span.end
    return " ".join(f"{context[:start]}[{answer.span.text}]{context[end:]}".split())


def prediction_data(answer: AnswerPrediction) -> dict[str, Any]:
    span: Mapping[str, Any] = {} if answer.span is None else answer.span._asdict()
    return {
        "answer": answer.text,
        **{name: span.get(name) for name in ("start", "end", "probability", "score")},
        "no_answer": answer.no_answer_probability,
        "answers": [candidate._asdict() for candidate in answer.candidates],
    }
