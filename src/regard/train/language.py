"""A run that writes: one vocabulary, one long text, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from jaxtyping import Int
from torch import Tensor

from regard.batching.text_windows import ContiguousWindows, RandomWindows, TextWindow, all_windows
from regard.config.decode import DecodeConfig
from regard.config.settings import LanguageSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.metrics.language import bits_per_character, perplexity
from regard.models.catalogue import build_model as build_model
from regard.tasks.generation import build_constraints, build_search
from regard.tasks.language import CompletionPrediction, LanguageTask
from regard.tasks.loss import Loss
from regard.text.special_ids import load_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.train.run import Prediction, ProgressCallback, Run, train_tokenizer_on_corpus

MAX_EVALUATION_LANES = (
    10  # parts of a text that are measured side by side where states are carried on
)
NEXT_CANDIDATES = 5  # words, and tokens, that could come next, in JSON


class LanguageRun(Run):
    """How likely a text is, and how it goes on."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer}
    settings: LanguageSettings
    task: LanguageTask
    window_source: RandomWindows | ContiguousWindows

    def build_task(self) -> LanguageTask:
        options = self.settings.model.model_dump(exclude={"kind"})
        tokenizer = self.vocabularies["text"]
        return LanguageTask(
            build_model(self.settings.model.kind, {**options, "size": tokenizer.size}), tokenizer
        )

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokenizer]:
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def batches(self, corpus: Corpus) -> RandomWindows | ContiguousWindows:
        """Windows from anywhere; or one after the other, if what was read is carried on."""
        train, ids = self.settings.train, self.task.token_stream(corpus.read("train"))
        rows = train.examples_per_batch or max(
            1, (train.tokens_per_batch or 1) // train.context_length
        )
        if train.carry_state:
            self.window_source = ContiguousWindows(ids, rows=rows, context=train.context_length)
        else:
            self.window_source = RandomWindows(
                ids, rows=rows, context=train.context_length, seed=self.settings.seed
            )
        return self.window_source

    def loss(self, batch: TextWindow, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        carried, state = self.window_source.carried, None
        if carried and not batch.is_start:
            state = replace_tensors(self.model.begin(len(batch.inputs)), iter(carried.values()))
        loss, state = self.task.loss(batch, state, self.settings.train.label_smoothing)
        if self.settings.train.carry_state:
            numbered_tensors = enumerate(state_tensors(self.model.detach(state)))
            self.window_source.carried = {
                f"{index:03}": tensor for index, tensor in numbered_tensors
            }
        return loss

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(self.windows(self.task.token_stream(records)))

    def windows(self, ids: Int[Tensor, " n"]) -> Iterator[TextWindow]:
        """All of a text, in windows as in training."""
        train = self.settings.train
        if not train.carry_state:
            return all_windows(
                ids, rows=max(1, 4096 // train.context_length), context=train.context_length
            )
        return lane_windows(ids, min(MAX_EVALUATION_LANES, len(ids) - 1), train.context_length)

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Perplexity and loss of a token, the ends included; bits of a character of the text."""
        records = list(records)
        loss = self.negative_log_likelihood(records)
        total, characters = loss.total.item(), sum(len(record["text"]) for record in records)
        if on_progress is not None:
            on_progress(len(records))
        return {
            "perplexity": perplexity(total, loss.count),
            "loss": total / loss.count,
            "bits_per_character": bits_per_character(total, characters),
            "tokens": loss.count,
            "characters": characters,
            "documents": len(records),
        }

    def __call__(self, text: str) -> CompletionPrediction:
        """The best way to go on."""
        return self.predict([text])[0][0]

    def predict(
        self,
        texts: Sequence[str],
        decode: DecodeConfig | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[list[CompletionPrediction]]:
        """Ways to go on after each text, best first."""
        decode = decode or self.settings.decode
        constraints = build_constraints(decode, decode.max_length)
        return self.task.predict(texts, build_search(decode), constraints, on_progress=on_progress)

    def predict_lines(
        self,
        lines: Sequence[str],
        location_format: str = "text {}",  # noqa: ARG002
    ) -> list[Prediction]:
        predictions = []
        for text, outputs in zip(lines, self.predict(lines), strict=True):
            hypotheses = [
                {"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs
            ]
            data: dict[str, Any] = {"prompt": text, "outputs": hypotheses}
            predictions.append(Prediction(self.join_continuation(text, outputs[0]), data))
        return predictions

    def details(self, text: str) -> dict[str, Any]:
        words, tokens = (
            self.next_words(text, NEXT_CANDIDATES),
            self.next_tokens(text, NEXT_CANDIDATES),
        )
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

    def join_continuation(self, prompt: str, best: CompletionPrediction) -> str:
        """Prompt and continuation as one text, with the space between words that there would be."""
        ids = [*self.task.text.encode_ids([prompt])[0], *best.ids]
        full_text = self.task.text.decode(ids)
        prompt_text = self.task.text.decode(ids[: len(ids) - len(best.ids)])
        return (
            prompt + full_text[len(prompt_text) :]
            if full_text.startswith(prompt_text)
            else full_text
        )


def lane_windows(ids: Int[Tensor, " n"], rows: int, context: int) -> Iterator[TextWindow]:
    """Every token but the first is wanted once: in lanes, and what is left over by itself."""
    lanes = ContiguousWindows(ids, rows=rows, context=min(context, len(ids) - 1))
    while lanes.position < lanes.inputs.shape[1]:
        yield next(lanes)
    yield from all_windows(ids[lanes.inputs.numel() :], rows=1, context=context)


def state_tensors(state: Any) -> list[Tensor]:
    """All tensors of a state, which is tuples of tuples of them."""
    if isinstance(state, Tensor):
        return [state]
    return (
        [tensor for part in state for tensor in state_tensors(part)]
        if isinstance(state, tuple)
        else []
    )


def replace_tensors(state: Any, tensors: Iterator[Tensor]) -> Any:
    """A state like this one, with other tensors, in the order of `tensors_of`."""
    if isinstance(state, Tensor):
        return next(tensors)
    if not isinstance(state, tuple):
        return state
    parts = [replace_tensors(part, tensors) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
