"""Language modelling: how likely a text is, what comes next, and how it could go on.

Documents stand in one stream with the mark of the end between them, before the first and after the
last, so that each begins where the one before ended: END d1 END d2 END.
b: rows   t: positions   n: rows of a search   v: vocabulary
"""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.batching.example import Example
from regard.batching.text_windows import TextWindow
from regard.decoding.constraints import UNCONSTRAINED, Constraints
from regard.decoding.stepper import Hypothesis
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import (
    RECORDS_PER_CHUNK,
    TOKENS_PER_BATCH,
    SearchFunction,
    sampling_seeds,
)
from regard.tasks.words import MAX_PREFIXES, MAX_WORD_TOKENS, PREFIXES_PER_BATCH, NextWordSearch
from regard.text.special import END, PAD, START
from regard.text.special_ids import AnyTokenizer
from regard.text.token_bytes import TokenBytes
from regard.text.tokenizer import Tokenizer

SHIFT = 1 + max(PAD, START, END)


class CompletionPrediction(NamedTuple):
    """What was written after a prompt."""

    text: str
    score: float  # by which it was ranked
    log_prob: float
    ids: list[int]


class LanguageTask:
    """A language model and its vocabulary."""

    fields = ("text",)

    def __init__(self, model: nn.Module, text: AnyTokenizer):
        # any model with begin, read, output, logits and the steps of a search
        self.model: Any = model
        self.text = text
        self.max_positions = float(getattr(model, "max_positions", math.inf))  # that it can read
        self.end = end_id(text)

    def token_stream(self, records: Iterable[Mapping[str, str]]) -> Int[Tensor, " n"]:
        """All documents as one row of ids."""
        ids, texts = array("i", [self.end]), (record["text"] for record in records)
        while chunk := list(islice(texts, RECORDS_PER_CHUNK)):
            for document_ids in self.text.encode_ids(chunk):
                ids.extend(document_ids)
                ids.append(self.end)
        return torch.frombuffer(ids, dtype=torch.int32)

    def loss(
        self, window: TextWindow, state: Any = None, smoothing: float = 0.0
    ) -> tuple[Loss, Any]:
        """Of a window, read after `state`; and the state at its end."""
        state_before = self.model.begin(len(window.inputs)) if state is None else state
        states, state_after = self.model.read(state_before, window.inputs)
        loss = cross_entropy(
            self.model.output, states, window.targets, window.valid, smoothing=smoothing
        )
        return loss, state_after

    @torch.no_grad()
    def negative_log_likelihood(self, windows: Iterable[TextWindow]) -> Loss:
        """-log p of all that is wanted; a window that is not fresh goes on after the last one."""
        self.model.eval()
        losses, state = list[Loss](), None
        for window in windows:
            loss, state = self.loss(window, None if window.is_start else state)
            losses.append(loss)
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    def predict(
        self,
        prompts: Sequence[str],
        search: SearchFunction,
        rules: Constraints = UNCONSTRAINED,
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[CompletionPrediction]]:
        """The n best ways to go on after each prompt, in their order.

        Prompts of equal length are read together: no padding, and no output depends on the others.
        Of a prompt the last tokens count, so many that an answer of at most half the context has
        room beside them, and else all that the model can read; see `Continued` for what follows.
        """
        prompt_ids = [[self.end, *ids] for ids in self.text.encode_ids(list(prompts))]
        return self.predict_from_ids(prompt_ids, search, rules, on_progress=on_progress)

    @torch.no_grad()
    def predict_from_ids(
        self,
        prompt_ids: Sequence[Sequence[int]],
        search: SearchFunction,
        rules: Constraints = UNCONSTRAINED,
        *,
        on_progress: Callable[[int], None] | None = None,
        on_tokens: Callable[[Int[Tensor, " n"]], None] | None = None,
    ) -> list[list[CompletionPrediction]]:
        """The same after rows of ids; `heard` is given the tokens of each step, as they come."""
        self.model.eval()
        max_length = (
            rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        )
        kept_slice = self.prompt_slice(max_length if max_length <= self.max_positions / 2 else 0)
        examples = [Example(index, ids, []) for index, ids in enumerate(prompt_ids)]
        seeds, results = sampling_seeds(examples), [list[CompletionPrediction]() for _ in examples]
        examples = [example._replace(source=example.source[kept_slice]) for example in examples]
        ordered = sorted(examples, key=lambda example: len(example.source))
        for length, group in groupby(ordered, key=lambda example: len(example.source)):
            while chunk := list(islice(group, max(1, TOKENS_PER_BATCH // length))):
                memory = prompt_state(torch.tensor([example.source for example in chunk]))
                limited_rules = replace(rules, max_length=max_length)
                chunk_seeds = [seeds[example.index] for example in chunk]
                hypotheses = search(
                    self.build_stepper(on_tokens), memory, chunk_seeds, limited_rules
                )
                for example, best in zip(chunk, hypotheses, strict=True):
                    results[example.index] = [self.to_prediction(hypothesis) for hypothesis in best]
                if on_progress is not None:
                    on_progress(len(chunk))
        return results

    def build_stepper(self, on_tokens: Callable[[Tensor], None] | None = None) -> "PromptStepper":
        """For a search, whose special ids are ours, whatever those of the vocabulary are."""
        if isinstance(self.text, Tokenizer):
            return PromptStepper(self.model, self.max_positions, on_tokens)
        return ShiftedPromptStepper(self.model, self.max_positions, self.end, on_tokens)

    def to_prediction(self, hypothesis: Hypothesis) -> CompletionPrediction:
        ids = self.vocabulary_ids(hypothesis.ids)
        return CompletionPrediction(
            self.text.decode(ids), hypothesis.score, hypothesis.log_prob, ids
        )

    def vocabulary_ids(self, search_ids: list[int]) -> list[int]:
        """Of the vocabulary, for those that a search has."""
        return search_ids if isinstance(self.text, Tokenizer) else [n - SHIFT for n in search_ids]

    @torch.no_grad()
    def next_words(
        self,
        text: str,
        count: int = 10,
        *,
        max_prefixes: int = MAX_PREFIXES,
        max_tokens: int = MAX_WORD_TOKENS,
    ) -> list[tuple[str, float]]:
        """The likeliest next words with their probabilities; see `words`.

        After white space it is a new word, else one that begins with the last word of the text. At
        most `most` beginnings are read, and `longest` tokens after what was typed.
        """
        if count < 1:
            raise ValueError(f"count must be 1 or more, not {count}")
        self.model.eval()
        typed = self.pieces.resume_point(text)
        max_tokens = int(min(max_tokens + len(typed.tail), self.max_positions / 2))
        prompt_ids = [self.end, *typed.ids][self.prompt_slice(max_tokens)]
        search = NextWordSearch(self.pieces, self.end, typed, count, max_prefixes, max_tokens)
        return search.search(
            self.model,
            prompt_ids,
            min(PREFIXES_PER_BATCH, max(1, TOKENS_PER_BATCH // len(prompt_ids))),
        )

    @cached_property
    def pieces(self) -> TokenBytes:
        return TokenBytes(self.text)

    @torch.no_grad()
    def next_tokens(self, prompt: str, count: int = 10) -> list[tuple[str, float]]:
        """The likeliest next tokens with their probabilities; "</s>" is the end."""
        self.model.eval()
        ids = torch.tensor([[self.end, *self.text.encode_ids([prompt])[0]][self.prompt_slice(0)]])
        log_probs, _ = PromptStepper(self.model, self.max_positions).step(
            prompt_state(ids), ids[:, -1]
        )
        best = log_probs[0].exp().topk(min(count, log_probs.shape[1]))
        ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self.text.token(token_id), p) for token_id, p in ranked]

    def text_attention(self, text: str) -> tuple[list[str], Float[Tensor, "t t"]]:
        """The tokens of a text, the mark before it first, and what each looked at, of those before.

        It is the last attention of the model, in the mean of its heads.
        """
        return self.ids_attention([self.end, *self.text.encode_ids([text])[0]])

    @torch.no_grad()
    def ids_attention(self, ids: Sequence[int]) -> tuple[list[str], Float[Tensor, "t t"]]:
        """The same for a row of ids, or for as much of its end as the model reads."""
        ids = ids[self.prompt_slice(0)]
        with observe(self.model.eval()) as recorded:
            self.model.teacher_forced(None, torch.tensor([ids]))
        last_weights = list(recorded.joined().values())[-1][0]
        weights = last_weights.mean(0) if last_weights.ndim == 3 else last_weights
        # a model that looks at what was before, and not at itself, has one slot less
        return [self.text.token(n) for n in ids], F.pad(weights, (0, len(ids) - weights.shape[1]))

    def prompt_slice(self, new_tokens: int) -> slice:
        """The end of a prompt for which there is room beside so many tokens."""
        return (
            slice(None)
            if math.isinf(self.max_positions)
            else slice(new_tokens - int(self.max_positions), None)
        )


class PromptState(NamedTuple):
    """Where each row of a search stands.

    `ids` are the last tokens of each row: those that `state` has read, if they may be needed again;
    without a state, those that are to be read before the next one. `last` is to be read next,
    whatever the search says.
    """

    state: Any
    ids: Int[Tensor, "n t"]
    last: Int[Tensor, " n"] | None


def prompt_state(ids: Int[Tensor, "b t"]) -> PromptState:
    """Before anything is read: a search begins by reading all of the prompts."""
    return PromptState(None, ids[:, :-1], ids[:, -1])


class PromptStepper:
    """A language model for a search, which begins with START: here it begins after a prompt.

    A model that reads `reach` tokens and no more goes on, when it has read so many, from the last
    half of them: it reads those anew, as if nothing had been before.
    """

    def __init__(
        self, model: Any, max_positions: float, on_tokens: Callable[[Tensor], None] | None = None
    ):
        self.model, self.max_positions, self.on_tokens = model, max_positions, on_tokens

    def start(self, memory: PromptState) -> PromptState:
        return memory

    def step(
        self, state: PromptState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], PromptState]:
        token = tokens if state.last is None else state.last
        if self.on_tokens is not None and state.last is None:
            self.on_tokens(tokens)
        ids = torch.cat([state.ids, token[:, None]], 1)
        if state.state is None:
            states, next_state = self.model.read(self.model.begin(len(ids)), ids)
            log_probs = self.model.logits(states[:, -1]).log_softmax(-1)
        else:
            log_probs, next_state = self.model.step(state.state, token)
        length = ids.shape[1]
        if math.isinf(self.max_positions):
            return log_probs, PromptState(next_state, ids[:, length:], None)
        if length < self.max_positions:
            return log_probs, PromptState(next_state, ids, None)
        # full: nothing of the cache is of use now, and `select` need not move it
        return log_probs, PromptState(None, ids[:, length - length // 2 :], None)

    def select(self, state: PromptState, rows: Int[Tensor, " m"]) -> PromptState:
        last = None if state.last is None else state.last[rows]
        selected = None if state.state is None else self.model.select(state.state, rows)
        return PromptState(selected, state.ids[rows], last)


class ShiftedPromptStepper(PromptStepper):
    """The same over a vocabulary whose ids are not ours: a search sees them `SHIFT` higher.

    Below them are PAD and START, which are never said, and END, in the place of the vocabulary's.
    """

    def __init__(
        self,
        model: Any,
        max_positions: float,
        end: int,
        on_tokens: Callable[[Tensor], None] | None = None,
    ):
        super().__init__(model, max_positions, on_tokens)
        self.end = end

    def step(
        self, state: PromptState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], PromptState]:
        log_probs, next_state = super().step(state, tokens - SHIFT)
        special_log_probs = log_probs.new_full((len(log_probs), SHIFT), -torch.inf)
        special_log_probs[:, END] = log_probs[:, self.end]
        log_probs[:, self.end] = -torch.inf
        return torch.cat([special_log_probs, log_probs], 1), next_state


def end_id(text: AnyTokenizer) -> int:
    """The id between documents."""
    if isinstance(text, Tokenizer):
        return END
    if text.special.end is None:
        raise ValueError("the vocabulary has no token for the end of a text")
    return text.special.end
