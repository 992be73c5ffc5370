"""A run that answers questions by stretches of their contexts."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from regard.batch.batches import Batches
from regard.config.settings import AnswerSettings
from regard.corpora.corpus import Corpus, Record, place
from regard.encode.lora import add_lora
from regard.metric.answers import SIGNATURE, answered, best_threshold
from regard.tasks.answer import Answer, Answering, Reader
from regard.tasks.answer_inputs import Apart, Joined, Layout, words_of
from regard.text.learn import train_tokeniser
from regard.text.marks import AnyTokeniser, load_tokeniser, marks_of
from regard.text.tokeniser import Tokeniser
from regard.train.headed import HeadedRun
from regard.train.run import LEARNT, Reply, Told, first

NONE = "no answer"


class AnswerRun(HeadedRun):
    """Questions, each with the context that it is asked of."""

    kept: ClassVar = {"text": load_tokeniser}
    counted: ClassVar = "questions"
    scored: ClassVar = "questions"
    marks: ClassVar = 3  # START, and END twice
    settings: AnswerSettings
    task: Answering
    found: float | None = None  # the threshold that dev has shown to be the best

    def asked(self) -> Answering:
        text, head, start = self.vocabularies["text"], self.settings.head, self.settings.start
        encoder, layout = self.encoder(text), layout_of(self.settings, text)
        reader = Reader(
            encoder,
            apart=isinstance(layout, Apart),
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        return Answering(
            reader, layout, longest=head.longest, stride=head.stride, no_answer=head.no_answer
        )

    @classmethod
    def learn(cls, settings: Any, corpus: Corpus) -> dict[str, Any]:
        if settings.start.run is not None:
            return {"text": load_tokeniser(Path(settings.start.run) / "text.json")}
        text = settings.text
        words = text.kind == "words"
        tokeniser = train_tokeniser(
            text.kind,
            (" ".join(words_of(one).parts) if words else one for one in texts_of(corpus)),
            text.size,
            lower=text.lower,
            normalise=text.normalise,
            min_count=text.min_count,
        )
        return {"text": tokeniser}

    @property
    def longest(self) -> int:
        """Tokens of a window: of the question and the context where they share a row."""
        found = super().longest
        if found < 2:
            raise ValueError(f"train.longest: {found} tokens are too few for a question and more")
        return found

    def batches(self, corpus: Corpus) -> Batches:
        """That every question has an answer is seen first, where no answer is not allowed."""
        if not self.settings.head.no_answer:
            for number, record in enumerate(corpus.read("train")):
                if not record["answers"]:
                    where = place(corpus, "train", number)
                    raise ValueError(f"{where}: has no answer; set head.no_answer = true")
        return super().batches(corpus)

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        """On dev, which also shows below which score no answer is better."""
        found = self.predict(records)
        if self.settings.head.no_answer:
            true = true_of(records)
            said = [one.stretches[0].text if one.stretches else "" for one in found]
            scores = [one.stretches[0].score if one.stretches else 0.0 for one in found]
            self.found = best_threshold(scores, said, true, metric)
            self.model.threshold.fill_(self.found)
            found = [again(one, self.found) for one in found]
        return float(compared(records, found)[metric])

    def save_weights(self, folder: Path, weights: dict[str, torch.Tensor]) -> None:
        """With the threshold, which no average of weights may change."""
        if self.found is not None:
            weights = {**weights, "threshold": torch.tensor(self.found)}
        super().save_weights(folder, weights)

    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        return compared(records, self.predict(records, told))

    def predict(self, records: Sequence[Record], told: Told | None = None) -> list[Answer]:
        """Of records with a `question` and a `text`, its context."""
        return self.task.answers(records, self.longest, told)

    def __call__(self, question: str, context: str) -> Answer:
        return self.predict([{"question": question, "text": context}])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """Of lines "question TAB context": the context, and in brackets the answer."""
        records = [record_of(text, place.format(n)) for n, text in enumerate(texts, 1)]
        for number, (_, question, _) in enumerate(self.task.cut(records), 1):
            if len(question.parts) > self.longest // 2:
                limit = f"{len(question.parts)} tokens, more than {self.longest // 2}"
                raise ValueError(f"{place.format(number)}: the question has {limit}: shorten it")
        both = zip(records, self.predict(records), strict=True)
        return [
            Reply(bracketed(record["text"], one), facts_of(one), parts_of(record["text"], one))
            for record, one in both
        ]


def layout_of(settings: AnswerSettings, text: AnyTokeniser) -> Layout:
    """How the encoder of these settings reads a question and a context."""
    model = settings.model
    if model.kind == "bidaf":
        return Apart(text)
    marks, segments = marks_of(text), getattr(model, "segments", 0) > 1
    words = isinstance(text, Tokeniser) and settings.text.kind == "words"
    return Joined(text, marks.start, marks.end, segments=segments, words=words)


def texts_of(corpus: Corpus) -> Iterator[str]:
    """Questions and contexts of train; a context that has several questions, once."""
    before = None
    for record in first(corpus.read("train"), LEARNT):
        yield record["question"]
        if record["text"] != before:
            yield record["text"]
        before = record["text"]


def record_of(text: str, place: str) -> Record:
    question, tab, context = text.partition("\t")
    if not tab:
        raise ValueError(f"{place}: no tab in it; a line is a question, a tab and its context")
    for name, one in (("question", question), ("context", context)):
        if not one.strip():
            raise ValueError(f"{place}: the {name} is empty; a line is a question, a tab and more")
    return {"question": question, "text": context}


def true_of(records: Sequence[Record]) -> list[list[str]]:
    return [[answer["text"] for answer in record["answers"]] for record in records]


def again(answer: Answer, threshold: float) -> Answer:
    """Decided once more, by another threshold."""
    leave = not answer.stretches or answer.stretches[0].score < threshold
    return answer._replace(said=None if leave else answer.stretches[0])


def compared(records: Sequence[Record], found: Sequence[Answer]) -> dict[str, float | str]:
    """EM and F1; of questions with an answer and of those without, if there are such."""
    whole = answered([one.text for one in found], true_of(records))
    told: dict[str, float | str] = {"exact": 100 * whole.exact, "f1": 100 * whole.f1}
    if whole.with_answer is not None and whole.without is not None:
        told["exact_with_answer"] = 100 * whole.with_answer.exact
        told["f1_with_answer"] = 100 * whole.with_answer.f1
    if whole.without is not None:
        told["exact_without"] = 100 * whole.without.exact
    return {**told, "exact_signature": SIGNATURE}


def parts_of(context: str, answer: Answer) -> tuple[tuple[str, str], ...]:
    """The context, cut around the answer."""
    if answer.said is None:
        return ((f"{NONE}:", ""), (context, ""))
    start, end = answer.said.start, answer.said.end
    parts = ((context[:start], ""), (answer.said.text, "answer"), (context[end:], ""))
    return tuple((text.strip(), name) for text, name in parts if text.strip())


def bracketed(context: str, answer: Answer) -> str:
    """On one line, whatever the context has."""
    if answer.said is None:
        return " ".join(f"{NONE}: {context}".split())
    start, end = answer.said.start, answer.said.end
    return " ".join(f"{context[:start]}[{answer.said.text}]{context[end:]}".split())


def facts_of(answer: Answer) -> dict[str, Any]:
    said: Mapping[str, Any] = {} if answer.said is None else answer.said._asdict()
    return {
        "answer": answer.text,
        **{name: said.get(name) for name in ("start", "end", "probability", "score")},
        "no_answer": answer.none,
        "answers": [one._asdict() for one in answer.stretches],
    }
