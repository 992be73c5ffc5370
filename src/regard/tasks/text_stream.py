"""Shared parts of tasks that train a language model on one stream of texts: `language` and `music`.

Texts stand in one stream with END between them, before the first and after the last, so that each
begins where the one before it ended: END text END text END.
b: rows   t: positions
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

from regard.batching.text_windows import (
    ContiguousWindows,
    RandomWindows,
    TextWindow,
    all_windows,
    lane_windows,
    overlapping_windows,
)
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.language import bits_per_character, perplexity
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import BatchOptions, FieldValue, Metrics, Prediction, ProgressCallback
from regard.tasks.generation import RECORDS_PER_CHUNK, Decoding
from regard.tasks.language_model import LanguageModelTask
from regard.tasks.language_view import language_map, render_language
from regard.tasks.loss import Loss
from regard.text.special_ids import AnyTokenizer
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

FORM_PROMPT = re.compile(r"\s*(?:\S+\s+){0,3}\S*")  # the first words of a text
MAX_EVALUATION_LANES = 10  # parts of a text that are measured side by side with carried states
EVALUATION_TOKENS = 4096  # tokens that are measured side by side without
NEXT_CANDIDATES = 5  # next words, and next tokens, in JSON


class TextStreamTask(LanguageModelTask[TextWindow]):
    """A language model that reads windows of `context_length` tokens of a stream of texts.

    With `carry_state`, windows follow one another and the model keeps its state; without, they
    begin anywhere in the stream. In an evaluation, windows are `evaluation_stride` tokens apart, or
    else side by side. `prompt_field` of a record holds what is to be continued.
    """

    example_unit: ClassVar = "documents"
    prompt_field: ClassVar[str] = "prompt"

    def __init__(
        self,
        model: AnyLanguageModel,
        text: AnyTokenizer,
        *,
        decoding: Decoding,
        context_length: int = 128,
        carry_state: bool = False,
        evaluation_stride: int | None = None,
        label_smoothing: float = 0.0,
    ):
        super().__init__(model, text, decoding=decoding, label_smoothing=label_smoothing)
        self.context_length, self.carry_state = context_length, carry_state
        self.evaluation_stride = evaluation_stride
        self.window_source: ContiguousWindows | RandomWindows | None = None

    # --- training

    def token_stream(self, records: Iterable[Record]) -> Int[Tensor, " n"]:
        """Return all texts as one row of ids."""
        ids, texts = array("i", [self.end]), (record["text"] for record in records)
        while chunk := list(islice(texts, RECORDS_PER_CHUNK)):
            for text_ids in self.text.encode_ids(chunk):
                ids.extend(text_ids)
                ids.append(self.end)
        return torch.frombuffer(ids, dtype=torch.int32)

    def examples(self, records: Iterable[Record]) -> Iterator[TextWindow]:
        """Yield windows of one row, one after the other."""
        return all_windows(self.token_stream(records), rows=1, context=self.context_length)

    def collate(self, examples: Sequence[TextWindow]) -> TextWindow:
        """Return windows as rows of one."""
        width = max(window.inputs.shape[1] for window in examples)

        def joined(tensors: Sequence[Tensor]) -> Tensor:
            return torch.cat([pad(rows, (0, width - rows.shape[1])) for rows in tensors])

        return TextWindow(
            joined([window.inputs for window in examples]),
            joined([window.targets for window in examples]),
            joined([window.valid for window in examples]),
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> ContiguousWindows | RandomWindows:
        """Return windows from anywhere in the stream, or in order if states are carried.

        A budget of tokens is the largest size of a batch: that of a short text is smaller.
        """
        ids, context = self.token_stream(corpus.read("train")), self.context_length
        rows = options.examples_per_batch
        if rows is None:
            context = max(1, min(context, len(ids) - 1))
            budget = min(options.tokens_per_batch or 1, len(ids) - 1)
            rows = max(1, budget // context)
        if self.carry_state:
            self.window_source = ContiguousWindows(ids, rows=rows, context=context)
        else:
            self.window_source = RandomWindows(ids, rows=rows, context=context, seed=options.seed)
        return self.window_source

    def loss(self, batch: TextWindow, step: int) -> Loss:  # noqa: ARG002 - every step is alike
        """Return the loss of a window; `carried` of the batch source takes the state onwards."""
        source, state = self.window_source if self.carry_state else None, None
        if source is not None and source.carried and not batch.is_start:
            new_state = self.model.begin(len(batch.inputs))
            state = replace_tensors(new_state, iter(source.carried.values()))
        loss, state = self.window_loss(batch, state, self.label_smoothing)
        if source is not None:
            tensors = state_tensors(self.model.detach(state))
            source.carried = {f"{index:03}": tensor for index, tensor in enumerate(tensors)}
        return loss

    def evaluation_windows(self, records: Iterable[Record]) -> Iterator[TextWindow]:
        """Return windows as in training, or overlapping; with carried states, in a few lanes."""
        ids, context = self.token_stream(records), self.context_length
        if self.evaluation_stride is not None:
            return overlapping_windows(
                ids,
                rows=max(1, EVALUATION_TOKENS // context),
                context=context,
                stride=self.evaluation_stride,
            )
        if not self.carry_state:
            return all_windows(ids, rows=max(1, EVALUATION_TOKENS // context), context=context)
        return lane_windows(ids, rows=min(MAX_EVALUATION_LANES, len(ids) - 1), context=context)

    # --- inference

    def parse(self, line: str, location: str) -> Record:  # noqa: ARG002 - every line is a prompt
        return {self.prompt_field: line}

    def prompt(self, record: Record) -> str:
        """Return the text to continue: of a record of the data, its whole text."""
        return record[self.prompt_field] if self.prompt_field in record else record["text"]

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        """Return the first words of a text, which a form offers as a prompt."""
        beginning = FORM_PROMPT.match(self.prompt(record))
        return {self.prompt_field: beginning[0].rstrip() if beginning else ""}

    def details(self, record: Record) -> JsonObject:
        """Return the likeliest next words and tokens."""
        prompt = self.prompt(record)
        words = self.next_words(prompt, NEXT_CANDIDATES)
        tokens = self.next_tokens(prompt, NEXT_CANDIDATES)
        return {
            "next": [{"word": word, "probability": p} for word, p in words],
            "next_tokens": [{"token": token, "probability": p} for token, p in tokens],
        }

    def metrics(
        self,
        records: Sequence[Record],  # noqa: ARG002
        predictions: Sequence[Prediction],  # noqa: ARG002
    ) -> Metrics:
        """Return nothing: a continuation is not compared with the text, only its likelihood is."""
        return {}

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return perplexity and loss of a token, ends included, and bits of a character."""
        loss = self.negative_log_likelihood(records)
        total, characters = loss.total.item(), sum(len(record["text"]) for record in records)
        return {
            "perplexity": perplexity(total, loss.count),
            "loss": total / loss.count,
            "bits_per_character": bits_per_character(total, characters),
            "tokens": loss.count,
            "characters": characters,
        }

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the metrics of likelihood; nothing is predicted."""
        if not records:
            raise InputError("records are missing: there is nothing to score")
        metrics = self.likelihood_metrics(records)
        if on_progress is not None:
            on_progress(len(records))
        return {**metrics, self.example_unit: len(records)}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        return float(self.likelihood_metrics(records)[name])

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        """Return the attention of a prompt, or of a prompt and its continuation `target`."""
        prompt, target_ids = self.prompt(record), self.text.encode_ids([target or ""])[0]
        ids = [*self.text_ids(prompt), *target_ids]
        return language_map(self, ids, prompt + (target or ""), len(target_ids))

    def output_map(self, record: Record) -> AttentionMap:
        prompt = self.prompt(record)
        [[best, *_]] = self.complete([prompt], prefixes=[self.prefix(record)])
        ids = [*self.text_ids(prompt), *best.ids]
        return language_map(self, ids, self.join_continuation(prompt, best), len(best.ids))

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        ids = [*self.text_ids(self.prompt(record)), *self.text.encode_ids([target or ""])[0]]
        return render_language(self, ids, surface)


def stream_options(settings: Any) -> Mapping[str, Any]:
    """Return the parameters of a `TextStreamTask` that [train] holds."""
    train = settings.train
    return {
        "context_length": train.context_length,
        "carry_state": train.carry_state,
        "evaluation_stride": train.evaluation_stride,
        "label_smoothing": train.label_smoothing,
    }


def state_tensors(state: object) -> list[Tensor]:
    """Return all tensors of a state, which is nested tuples of them."""
    if isinstance(state, Tensor):
        return [state]
    if not isinstance(state, tuple):
        return []
    return [tensor for part in state for tensor in state_tensors(part)]


def replace_tensors(state: Any, tensors: Iterator[Tensor]) -> Any:
    """Return a state like this one with other tensors, in the order of `state_tensors`."""
    if isinstance(state, Tensor):
        return next(tensors).to(state.device)
    if not isinstance(state, tuple):
        return state
    parts = [replace_tensors(part, tensors) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
