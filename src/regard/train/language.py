"""A run that writes: one vocabulary, one long text, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from jaxtyping import Int
from torch import Tensor

from regard.batch.windows import Crops, Lanes, Window, whole
from regard.config.decode import Decode
from regard.config.settings import LanguageSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.metric.language import bits_per_character, perplexity
from regard.models.catalogue import build as build_model
from regard.tasks.language import Completion, Language
from regard.tasks.loss import Loss
from regard.text.marks import load_tokeniser
from regard.text.tokeniser import Tokeniser
from regard.train.run import Reply, Run, Told, vocabulary
from regard.train.search import rules_of, search_of

LANES = 10  # parts of a text that are measured side by side where states are carried on
NEXT = 5  # words, and tokens, that could come next, in JSON


class LanguageRun(Run):
    """How likely a text is, and how it goes on."""

    kept: ClassVar = {"text": load_tokeniser}
    settings: LanguageSettings
    task: Language
    source: Crops | Lanes

    def asked(self) -> Language:
        wanted = self.settings.model.model_dump(exclude={"kind"})
        text = self.vocabularies["text"]
        return Language(build_model(self.settings.model.kind, {**wanted, "size": text.size}), text)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokeniser]:
        return {"text": vocabulary(settings.text, corpus, "text")}

    def batches(self, corpus: Corpus) -> Crops | Lanes:
        """Windows from anywhere; or one after the other, if what was read is carried on."""
        train, ids = self.settings.train, self.task.stream(corpus.read("train"))
        rows = train.sentences_per_batch or max(1, (train.tokens_per_batch or 1) // train.context)
        if train.carry:
            self.source = Lanes(ids, rows=rows, context=train.context)
        else:
            self.source = Crops(ids, rows=rows, context=train.context, seed=self.settings.seed)
        return self.source

    def loss(self, batch: Window, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        carried, state = self.source.carried, None
        if carried and not batch.fresh:
            state = refilled(self.model.begin(len(batch.given)), iter(carried.values()))
        loss, state = self.task.loss(batch, state, self.settings.train.label_smoothing)
        if self.settings.train.carry:
            parts = enumerate(tensors_of(self.model.detach(state)))
            self.source.carried = {f"{number:03}": part for number, part in parts}
        return loss

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(self.windows(self.task.stream(records)))

    def windows(self, ids: Int[Tensor, " n"]) -> Iterator[Window]:
        """All of a text, in windows as in training."""
        train = self.settings.train
        if not train.carry:
            return whole(ids, rows=max(1, 4096 // train.context), context=train.context)
        return side_by_side(ids, min(LANES, len(ids) - 1), train.context)

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Perplexity and loss of a token, the ends included; bits of a character of the text."""
        records = list(records)
        loss = self.likelihood(records)
        total, characters = loss.total.item(), sum(len(record["text"]) for record in records)
        if told is not None:
            told(len(records))
        return {
            "perplexity": perplexity(total, loss.tokens),
            "loss": total / loss.tokens,
            "bits_per_character": bits_per_character(total, characters),
            "tokens": loss.tokens,
            "characters": characters,
            "documents": len(records),
        }

    def __call__(self, text: str) -> Completion:
        """The best way to go on."""
        return self.predict([text])[0][0]

    def predict(
        self, texts: Sequence[str], decode: Decode | None = None, told: Told | None = None
    ) -> list[list[Completion]]:
        """Ways to go on after each text, best first."""
        decode = decode or self.settings.decode
        rules = rules_of(decode, decode.max_length)
        return self.task.complete(texts, search_of(decode), rules, told=told)

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:  # noqa: ARG002
        found = []
        for text, outputs in zip(texts, self.predict(texts), strict=True):
            told = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            facts: dict[str, Any] = {"prompt": text, "outputs": told}
            found.append(Reply(self.joined(text, outputs[0]), facts))
        return found

    def further(self, text: str) -> dict[str, Any]:
        words, tokens = self.next_words(text, NEXT), self.next_tokens(text, NEXT)
        return {
            "next": [{"word": word, "probability": p} for word, p in words],
            "next_tokens": [{"token": token, "probability": p} for token, p in tokens],
        }

    def next_words(self, text: str, count: int = 10) -> list[tuple[str, float]]:
        """The likeliest next words, or whole words for one that was begun: (word, probability)."""
        return self.task.next_words(text, count)

    def next_tokens(self, text: str, count: int = 10) -> list[tuple[str, float]]:
        """The likeliest next tokens: (token, probability); "</s>" is the end."""
        return self.task.next_tokens(text, count)

    def joined(self, prompt: str, best: Completion) -> str:
        """Prompt and continuation as one text, with the space between words that there would be."""
        ids = [*self.task.text.ids([prompt])[0], *best.ids]
        written = self.task.text.decode(ids)
        before = self.task.text.decode(ids[: len(ids) - len(best.ids)])
        return prompt + written[len(before) :] if written.startswith(before) else written


def side_by_side(ids: Int[Tensor, " n"], rows: int, context: int) -> Iterator[Window]:
    """Every token but the first is wanted once: in lanes, and what is left over by itself."""
    lanes = Lanes(ids, rows=rows, context=min(context, len(ids) - 1))
    while lanes.place < lanes.lanes.shape[1]:
        yield next(lanes)
    yield from whole(ids[lanes.lanes.numel() :], rows=1, context=context)


def tensors_of(state: Any) -> list[Tensor]:
    """All tensors of a state, which is tuples of tuples of them."""
    if isinstance(state, Tensor):
        return [state]
    return [one for part in state for one in tensors_of(part)] if isinstance(state, tuple) else []


def refilled(state: Any, tensors: Iterator[Tensor]) -> Any:
    """A state like this one, with other tensors, in the order of `tensors_of`."""
    if isinstance(state, Tensor):
        return next(tensors)
    if not isinstance(state, tuple):
        return state
    parts = [refilled(part, tensors) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
