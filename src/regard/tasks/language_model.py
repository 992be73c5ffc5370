"""Shared parts of tasks with a language model: likelihoods, continuations of prompts, next words.

A text is preceded by the END of the one before it: END text END text END.
b: rows   t: positions   n: rows of a search
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.observe import observe
from regard.batching.text_windows import TextWindow
from regard.config.settings import Settings
from regard.data.corpus import Record
from regard.decoding.listen import notify_pause
from regard.decoding.prompts import (
    ID_SHIFT,
    PromptStepper,
    ShiftedPromptStepper,
    TokenCallback,
    prompt_state,
)
from regard.decoding.replicas import map_in_replicas, share_of_tokens
from regard.decoding.stepper import Hypothesis
from regard.engines.ctranslate2_cache import EngineModel
from regard.engines.ctranslate2_model import SpecialTokens, supported_model
from regard.engines.ctranslate2_search import CTranslate2Generator, CTranslate2Layout, EngineSearch
from regard.errors import InputError
from regard.models.catalogue import build_model
from regard.models.gpt2 import Gpt2
from regard.models.protocols import AnyLanguageModel, LanguageModel, require_model
from regard.tasks.base import ExampleT, ProgressCallback, Task
from regard.tasks.building import model_options
from regard.tasks.generation import TOKENS_PER_BATCH, Decoding, TextOutput, sampling_seeds
from regard.tasks.loss import Loss, cross_entropy, sum_losses
from regard.tasks.next_words import (
    MAX_PREFIXES,
    MAX_WORD_TOKENS,
    PREFIXES_PER_BATCH,
    NextWordSearch,
)
from regard.tasks.prefix import NO_PREFIX, OutputPrefix, find_prefix, limit_outputs
from regard.tasks.text_engine import (
    ModelVersion,
    can_use_engine,
    find_engine_search,
    tokens_of,
)
from regard.text.special import END, PAD, START, UNKNOWN
from regard.text.special_ids import AnyTokenizer
from regard.text.token_bytes import TokenBytes
from regard.text.tokenizer import Tokenizer


class LanguageModelTask(Task[ExampleT, TextWindow, AnyLanguageModel]):
    """A language model, its vocabulary, and how continuations are found."""

    accepts_target: ClassVar = True
    accepts_prefix: ClassVar = True
    decodes_in_replicas: ClassVar = True
    engine: CTranslate2Generator | None = None
    version: ModelVersion | None = None

    def __init__(
        self,
        model: AnyLanguageModel,
        text: AnyTokenizer,
        *,
        decoding: Decoding,
        label_smoothing: float = 0.0,
    ):
        self.model, self.text = model, text
        self.decoding, self.label_smoothing = decoding, label_smoothing
        self.max_positions = float(getattr(model, "max_positions", math.inf))
        self.end = end_id(text)

    # --- likelihood

    def window_loss(
        self, window: TextWindow, state: Any = None, smoothing: float = 0.0
    ) -> tuple[Loss, Any]:
        """Return the loss of a window that is read after `state`, and the state at its end."""
        state_before = self.model.begin(len(window.inputs)) if state is None else state
        states, state_after = self.model.read(state_before, window.inputs)
        loss = cross_entropy(
            self.model.output, states, window.targets, window.valid, smoothing=smoothing
        )
        return loss, state_after

    @abstractmethod
    def evaluation_windows(self, records: Iterable[Record]) -> Iterator[TextWindow]:
        """Return windows in which each token of the records is a target once."""

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.negative_log_likelihood_of(self.evaluation_windows(records))

    @torch.no_grad()
    def negative_log_likelihood_of(self, windows: Iterable[TextWindow]) -> Loss:
        """Return -log p of all targets; a window without `is_start` continues the one before it."""
        self.model.eval()
        losses, state = list[Loss](), None
        for window in map(self.to_device, windows):
            loss, state = self.window_loss(window, None if window.is_start else state)
            losses.append(loss)
        return sum_losses(losses)

    # --- continuations

    def complete(
        self,
        prompts: Sequence[str],
        *,
        prefixes: Sequence[OutputPrefix] = (),
        decoding: Decoding | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[list[TextOutput]]:
        """Return the n best continuations of each prompt.

        Prompts of equal length are read together: no padding, and no output depends on the others.
        A long prompt loses its beginning. If an output fits in half of the context, the prompt is
        cut so that both fit; else as much is read as fits alone (see `PromptStepper`).
        """
        prompt_ids = [self.text_ids(prompt) for prompt in prompts]
        return self.complete_ids(
            prompt_ids, prefixes=prefixes, decoding=decoding, on_progress=on_progress
        )

    @torch.no_grad()
    def complete_ids(
        self,
        prompt_ids: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[OutputPrefix] = (),
        decoding: Decoding | None = None,
        on_progress: ProgressCallback | None = None,
        on_tokens: TokenCallback | None = None,
    ) -> list[list[TextOutput]]:
        """Return the n best continuations of rows of ids; `on_tokens` gets those of each step."""
        self.model.eval()
        decoding = decoding or self.decoding
        max_length = decoding.max_length
        prefixes = prefixes or [NO_PREFIX] * len(prompt_ids)
        kept_slice = self.prompt_slice(max_length if max_length <= self.max_positions / 2 else 0)
        seeds, outputs = sampling_seeds(prompt_ids), [list[TextOutput]() for _ in prompt_ids]
        prompts = [ids[kept_slice] for ids in prompt_ids]
        pending: Sequence[int] = range(len(prompts))
        if on_tokens is None and not any(prefix.ids or prefix.is_complete for prefix in prefixes):
            pending = self.complete_by_engine(prompts, decoding, outputs, on_progress)
        replicas = self.replica_count()
        tokens = share_of_tokens(list(map(len, prompts)), TOKENS_PER_BATCH, replicas)

        def complete_batch(indices: list[int]) -> list[list[TextOutput]]:
            search = decoding.search([seeds[index] for index in indices])
            hypotheses = search(
                self.build_stepper(on_tokens),
                prompt_state(self.to_device(torch.tensor([prompts[index] for index in indices]))),
                constraints=limit_outputs(
                    decoding.constraints,
                    [max_length] * len(indices),
                    [prefixes[index] for index in indices],
                ),
            )
            return [[self.to_output(hypothesis) for hypothesis in best] for best in hypotheses]

        groups = equal_length_batches([prompts[index] for index in pending], tokens)
        batches = [[pending[number] for number in group] for group in groups]
        completed = map_in_replicas(complete_batch, batches, replicas)
        for indices, best in zip(batches, completed, strict=True):
            for index, texts in zip(indices, best, strict=True):
                outputs[index] = texts
            if on_progress is not None:
                on_progress(len(indices))
        return outputs

    def complete_by_engine(
        self,
        prompts: Sequence[Sequence[int]],
        decoding: Decoding,
        outputs: list[list[TextOutput]],
        on_progress: ProgressCallback | None,
    ) -> Sequence[int]:
        """Fill in the outputs that the engine finds; return the indices of the others."""
        engine = self.engine
        if engine is None or decoding is not self.decoding or not can_use_engine(self.version):
            return range(len(prompts))
        notify_pause()
        hypotheses, pending = engine.search(prompts, decoding.max_length), list[int]()
        never_written = (PAD, START) if isinstance(self.text, Tokenizer) else ()
        for index, hypothesis in enumerate(hypotheses):
            if hypothesis is None or any(n in hypothesis.ids for n in never_written):
                pending.append(index)
            else:
                text = self.text.decode(hypothesis.ids)
                outputs[index] = [
                    TextOutput(text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)
                ]
        if on_progress is not None:
            on_progress(len(prompts) - len(pending))
        return pending

    def engine_model(self) -> EngineModel:
        model = supported_model(self.model)
        tokens, text = tokens_of(self.text), self.text
        unknown = UNKNOWN if isinstance(text, Tokenizer) else text.special.unknown
        special = SpecialTokens(
            tokens[self.end], tokens[self.end], tokens[self.end if unknown is None else unknown]
        )
        return EngineModel(model, [tokens], special)

    def engine_search(self, decoding: Decoding) -> EngineSearch:
        search = find_engine_search(decoding, self.text.size)
        if search != EngineSearch():
            raise InputError("it does not support decode.kind = 'beam' of a language model")
        return search

    def set_engine(self, layout: CTranslate2Layout | None) -> None:
        self.engine = self.version = None
        if layout is not None and isinstance(self.model, Gpt2):
            [tokens] = self.engine_model().vocabularies
            self.engine = CTranslate2Generator(
                layout, tokens, end=self.end, max_positions=self.model.max_positions
            )
            self.version = ModelVersion(self.model)

    def build_stepper(self, on_tokens: TokenCallback | None = None) -> PromptStepper:
        """Return a stepper whose special ids are ours, whatever those of the vocabulary are."""
        if isinstance(self.text, Tokenizer):
            return PromptStepper(self.model, self.max_positions, on_tokens)
        return ShiftedPromptStepper(self.model, self.max_positions, self.end, on_tokens)

    def to_output(self, hypothesis: Hypothesis) -> TextOutput:
        ids = self.vocabulary_ids(hypothesis.ids)
        return TextOutput(self.text.decode(ids), hypothesis.score, hypothesis.log_prob, ids)

    def partial_text(self, record: Record, ids: Sequence[int]) -> str | None:  # noqa: ARG002
        search_ids = [token_id for token_id in ids if token_id != END]
        return self.text.decode(self.vocabulary_ids(search_ids)).rstrip("\ufffd")

    def vocabulary_ids(self, search_ids: list[int]) -> list[int]:
        """Convert the ids of a search to those of the vocabulary."""
        is_ours = isinstance(self.text, Tokenizer)
        return search_ids if is_ours else [token_id - ID_SHIFT for token_id in search_ids]

    def prefix(self, record: Record) -> OutputPrefix:
        """Return the beginning of the output that a record prescribes, as ids of a search."""
        prefix = find_prefix(
            record,
            lambda text: self.text.encode_ids([text])[0],
            self.text.token_id,
            self.end,
        )
        shift = 0 if isinstance(self.text, Tokenizer) else ID_SHIFT
        return prefix._replace(ids=[token_id + shift for token_id in prefix.ids])

    def join_continuation(self, prompt: str, output: TextOutput) -> str:
        """Return prompt and continuation as one text, with the space that belongs between them."""
        ids = [*self.text.encode_ids([prompt])[0], *output.ids]
        full_text = self.text.decode(ids)
        prompt_text = self.text.decode(ids[: len(ids) - len(output.ids)])
        if not full_text.startswith(prompt_text):
            return full_text
        return prompt + full_text[len(prompt_text) :]

    # --- next words and tokens

    @torch.no_grad()
    def next_words(
        self,
        text: str,
        count: int = 10,
        *,
        max_prefixes: int = MAX_PREFIXES,
        max_tokens: int = MAX_WORD_TOKENS,
    ) -> list[tuple[str, float]]:
        """Return the likeliest next words with their probabilities; see `tasks/next_words.py`.

        After white space it is a new word, else one that begins with the last word of the text. At
        most `max_prefixes` beginnings are read, and `max_tokens` tokens after what was typed.
        """
        if count < 1:
            raise InputError(f"count must be 1 or more, not {count}")
        self.model.eval()
        typed = self.token_bytes.resume_point(text)
        max_tokens = int(min(max_tokens + len(typed.tail), self.max_positions / 2))
        prompt_ids = [self.end, *typed.ids][self.prompt_slice(max_tokens)]
        search = NextWordSearch(self.token_bytes, self.end, typed, count, max_prefixes, max_tokens)
        return search.search(
            self.model,
            prompt_ids,
            min(PREFIXES_PER_BATCH, max(1, TOKENS_PER_BATCH // len(prompt_ids))),
        )

    @cached_property
    def token_bytes(self) -> TokenBytes:
        return TokenBytes(self.text)

    def next_tokens(self, text: str, count: int = 10) -> list[tuple[str, float]]:
        """Return the likeliest next tokens with their probabilities; "</s>" is the end."""
        return self.next_tokens_of_ids(self.text_ids(text), count)

    @torch.no_grad()
    def next_tokens_of_ids(self, row: Sequence[int], count: int = 10) -> list[tuple[str, float]]:
        """Return the likeliest tokens after a row of ids."""
        self.model.eval()
        ids = torch.tensor([row[self.prompt_slice(0)]], device=self.device)
        log_probs, _ = PromptStepper(self.model, self.max_positions).step(
            prompt_state(ids), ids[:, -1]
        )
        best = log_probs[0].exp().topk(min(count, log_probs.shape[1]))
        ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self.text.token(token_id), p) for token_id, p in ranked]

    # --- inspection

    @torch.no_grad()
    def ids_attention(self, ids: Sequence[int]) -> tuple[list[str], Float[Tensor, "t t"]]:
        """Return the tokens of a row of ids, and the attention of each to those before it.

        It is the last attention of the model, averaged over its heads. Of a long row, the end is
        taken that the model can read.
        """
        ids = ids[self.prompt_slice(0)]
        with observe(self.model.eval()) as recorded:
            self.model.teacher_forced(None, torch.tensor([ids], device=self.device))
        last_weights = list(recorded.joined().values())[-1][0]
        weights = last_weights.mean(0) if last_weights.ndim == 3 else last_weights
        # A model that attends to earlier tokens, and not to the same, has one slot less.
        return [self.text.token(n) for n in ids], F.pad(weights, (0, len(ids) - weights.shape[1]))

    def text_ids(self, text: str) -> list[int]:
        """Return END and the ids of a text."""
        return [self.end, *self.text.encode_ids([text])[0]]

    def prompt_slice(self, new_tokens: int) -> slice:
        """Return the end of a prompt that fits in the context beside `new_tokens` tokens."""
        if math.isinf(self.max_positions):
            return slice(None)
        return slice(new_tokens - int(self.max_positions), None)

    def separator_ids(self) -> frozenset[int]:
        return frozenset({self.end})


def equal_length_batches(
    prompts: Sequence[Sequence[int]], tokens_per_batch: int
) -> list[list[int]]:
    """Return the indices of prompts of equal length, in batches, the shortest first."""
    ordered = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    batches = list[list[int]]()
    for length, group in groupby(ordered, key=lambda index: len(prompts[index])):
        while indices := list(islice(group, max(1, tokens_per_batch // length))):
            batches.append(indices)
    return batches


def end_id(text: AnyTokenizer) -> int:
    """Return the id between documents."""
    if isinstance(text, Tokenizer):
        return END
    if text.special.end is None:
        raise InputError("the vocabulary has no token for the end of a text")
    return text.special.end


def build_language_model(settings: Settings, text: AnyTokenizer) -> AnyLanguageModel:
    """Return a language model with random weights, with the size of the vocabulary."""
    options = {**model_options(settings.model), "size": text.size}
    return require_model(build_model(settings.model.kind, options), LanguageModel)
