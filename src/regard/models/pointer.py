"""Pointer-generator with coverage: See, Liu, Manning 2017, "Get to the point: summarization with
pointer-generator networks" (1704.04368).

    h_i     = [forward LSTM; backward LSTM] over E w
    s_0     = relu(W [last forward; last backward]), for h and c                       their code
    x_t     = W_x [E y_{t-1}; h*_{t-1}] + b                                            their code
    s_t     = LSTM(x_t, s_{t-1})
    c^t     = sum of a^{t'} over t' < t                          coverage              eq. 10
    e_i     = v . tanh(W_h h_i + W_s s_t + w_c c_i + b)                                eq. 11
    a^t     = softmax(e),   h*_t = sum_i a_i h_i                                       eq. 2-3
    P_vocab = softmax(V' (V [s_t; h*_t] + b) + b')                                     eq. 4
    p_gen   = sigmoid(w_h . h*_t + w_s . s_t + w_x . x_t + b)                          eq. 8
    P(w)    = p_gen P_vocab(w) + (1 - p_gen) sum of a_i over i with w_i = w            eq. 9
    covloss = sum_i min(a_i, c_i)                                                      eq. 12

Ids from `target_size` on are the unknown words of one document. The model can only copy them, and
reads them as UNKNOWN. The end token of a source is an ordinary token: attention to it copies the
end. Without `copying`, P is P_vocab, and such ids are not allowed. Coverage is one more term of the
keys, so that the additive score needs no change.

b: batch   s: source   t: target   n: rows of a search   r: real positions   h: hidden_dim
v: target_size   x: v plus the maximum number of unknown words in a document of the batch
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Additive
from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear, linear
from regard.kernels.shared import step_product
from regard.layers.cells import LSTM, RecurrentState
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.recurrent import Recurrent

UNKNOWN = 3  # the id whose vector all words outside the vocabulary have
MIN_PROBABILITY = 1e-30  # lower bound of a copy probability, so that its logarithm is finite


class PointerMemory(NamedTuple):
    """States and ids of the document, and the initial state of the decoder."""

    memory: Memory
    first: RecurrentState
    source: Int[Tensor, "b s"]


class PointerOutput(NamedTuple):
    """Inputs of the output layer, log-odds of p_gen (None without copying), attention weights."""

    states: Float[Tensor, "b t d"]
    gates: Float[Tensor, "b t"] | None
    weights: Float[Tensor, "b t s"]


class PointerState(NamedTuple):
    """The state of a search; `extra_ids` is the number of ids outside the vocabulary."""

    state: RecurrentState
    context: Float[Tensor, "n 2h"]
    coverage: Float[Tensor, "n s"]
    memory: Memory
    source: Int[Tensor, "n s"]
    extra_ids: int
    origin: Int[Tensor, " n"]


class Pointer(nn.Module):
    """The model of the equations above.

    Widths: `dim` of word vectors (one table for both sides), `hidden_dim` of each LSTM, `align_dim`
    inside the score; in the paper 128, 256, 512. `dropout` acts on word vectors, h_i and V [s_t;
    h*_t]. Coverage can start late in training: w_c starts at 0, and stays there while
    `decode_with_attention` is called with use_coverage=False.
    """

    cross_attentions = ("attention",)

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 128,
        hidden_dim: int = 256,
        align_dim: int | None = None,
        copying: bool = True,
        coverage: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if source_size != target_size:
            sizes = f"{source_size} and {target_size} entries"
            raise InputError(f"pointer needs one vocabulary for both sides, not two of {sizes}")
        self.dim, self.size, self.dropout = dim, target_size, dropout
        self.copying, self.coverage = copying, coverage
        align_dim = align_dim or hidden_dim
        self.words = Embedding(target_size, dim)
        self.encoder = Recurrent(LSTM, dim, hidden_dim, bidirectional=True)
        self.of_last = nn.ModuleList(Linear(2 * hidden_dim, hidden_dim) for _ in range(2))
        self.attention = Attention(Additive(hidden_dim, 2 * hidden_dim, align_dim, bias=True))
        self.of_coverage = nn.Parameter(torch.zeros(align_dim)) if coverage else None
        self.merge = Linear(dim + 2 * hidden_dim, dim)
        self.cell = LSTM(dim, hidden_dim)
        self.gate = Linear(2 * hidden_dim + hidden_dim + dim, 1) if copying else None
        self.combine = Linear(hidden_dim + 2 * hidden_dim, hidden_dim)
        self.output = Linear(hidden_dim, target_size)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> PointerMemory:
        states, last = self.encoder(self.drop(self.word_vectors(source)), valid)
        ends = (torch.cat([*part], -1) for part in last)  # h and c of both directions
        first = tuple(of(end).relu() for of, end in zip(self.of_last, ends, strict=True))
        return PointerMemory(self.attention.remember(self.drop(states), valid), first, source)

    def decode_with_attention(
        self, memory: PointerMemory, target: Int[Tensor, "b t"], use_coverage: bool = True
    ) -> PointerOutput:
        """Run all positions of a summary; `use_coverage=False` ignores coverage."""
        initial = self.start(memory)
        state, context, coverage = initial.state, initial.context, initial.coverage
        advance = self.advance(memory.memory, use_coverage)
        outputs, contexts, inputs, weights_by_step = [], [], [], []
        for word in self.project_words(self.drop(self.word_vectors(target))).unbind(1):
            x, state, weights, context = advance(word, state, context, coverage)
            coverage = coverage + weights
            for steps, value in (
                (outputs, state[0]),
                (contexts, context),
                (inputs, x),
                (weights_by_step, weights),
            ):
                steps.append(value)
        parts = (torch.stack(steps, 1) for steps in (outputs, contexts, inputs))
        states, gates = self.output_states_and_gates(*parts)
        return PointerOutput(states, gates, torch.stack(weights_by_step, 1))

    def teacher_forced(
        self, memory: PointerMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """Return V [s_t; h*_t] + b for each position."""
        return self.decode_with_attention(memory, target).states

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        """Return the logits of P_vocab."""
        return self.output(states)

    def log_likelihood(
        self,
        output: PointerOutput,
        source: Int[Tensor, "b s"],
        target: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b t"],
    ) -> Float[Tensor, " r"]:
        """Return log P of the real words of a target, also of ids outside the vocabulary."""
        row, labels = valid.nonzero()[:, 0], target[valid]
        logits = at_least_float32(self.output(output.states[valid]))
        inside = labels.clamp(max=self.size - 1)[:, None]
        generated = logits.gather(1, inside)[:, 0] - logits.logsumexp(1)
        if output.gates is None:
            return generated
        gates, weights = (
            at_least_float32(output.gates[valid]),
            at_least_float32(output.weights[valid]),
        )
        share = (weights * (source[row] == labels[:, None])).sum(1)
        copied = F.logsigmoid(-gates) + share.clamp(min=MIN_PROBABILITY).log()
        generated = F.logsigmoid(gates) + generated
        return torch.where(labels < self.size, torch.logaddexp(generated, copied), copied)

    def distribution(
        self,
        states: Float[Tensor, "*b d"],
        gates: Float[Tensor, "*b"] | None,
        weights: Float[Tensor, "*b s"],
        source: Int[Tensor, "*#b s"],
        extra_ids: int,
    ) -> Float[Tensor, "*b x"]:
        """Return P over the vocabulary and `extra_ids`; the weights of a repeated word add up."""
        p = self.output(states).softmax(-1)
        if gates is None:
            return p
        p_gen = gates.sigmoid()[..., None]
        p = F.pad(p_gen * p, (0, extra_ids))
        return p.scatter_add(-1, source.expand_as(weights), (1 - p_gen) * weights)

    def start(self, memory: PointerMemory) -> PointerState:
        values, source = memory.memory.values, memory.source
        extra_ids = max(0, int(source.max()) + 1 - self.size) if self.copying else 0
        origin = torch.arange(len(values), device=values.device)
        coverage = values.new_zeros(source.shape)
        context = values.new_zeros(len(values), values.shape[-1])
        return PointerState(
            memory.first, context, coverage, memory.memory, source, extra_ids, origin
        )

    def step(
        self, state: PointerState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n x"], PointerState]:
        word = self.project_words(self.drop(self.word_vectors(tokens)))
        advance = self.advance(state.memory)
        x, inner, weights, context = advance(word, state.state, state.context, state.coverage)
        states, gates = self.output_states_and_gates(inner[0], context, x)
        if gates is None:
            log_probs = self.output(states).log_softmax(-1)
        else:
            distribution = self.distribution(states, gates, weights, state.source, state.extra_ids)
            log_probs = distribution.log()
        coverage = state.coverage + weights
        return log_probs, state._replace(state=inner, context=context, coverage=coverage)

    def select(self, state: PointerState, rows: Int[Tensor, " m"]) -> PointerState:
        def select_rows(part: Tensor) -> Tensor:
            return part.index_select(0, rows)

        origin = select_rows(state.origin)
        moved = not torch.equal(origin, state.origin)  # else each row still has the same document
        return PointerState(
            tuple(select_rows(part) for part in state.state),
            select_rows(state.context),
            select_rows(state.coverage),
            state.memory.select(rows) if moved else state.memory,
            select_rows(state.source) if moved else state.source,
            state.extra_ids,
            origin,
        )

    def advance(
        self, memory: Memory, use_coverage: bool = True
    ) -> Callable[
        [Tensor, RecurrentState, Tensor, Tensor], tuple[Tensor, RecurrentState, Tensor, Tensor]
    ]:
        """Return a function (word projection, s_{t-1}, h*_{t-1}, c^t) -> x_t, s_t, a^t, h*_t."""
        recurrence = self.cell.recurrence()
        add_context = step_product(self.merge.weight[:, self.dim :])
        of_coverage = self.of_coverage if use_coverage else None

        def step(
            word: Tensor, state: RecurrentState, context: Tensor, coverage: Tensor
        ) -> tuple[Tensor, RecurrentState, Tensor, Tensor]:
            x = add_context(word, context)
            state = recurrence(self.cell.project(x), state)
            covered_memory = memory
            if of_coverage is not None:
                keys = torch.addcmul(memory.keys, coverage[..., None], of_coverage)
                covered_memory = replace(memory, keys=keys)
            weights = self.attention.weigh(state[0][:, None], covered_memory)
            return x, state, weights[:, 0], self.attention.read(weights, memory)[:, 0]

        return step

    def output_states_and_gates(
        self, state: Float[Tensor, "*b h"], context: Float[Tensor, "*b c"], x: Float[Tensor, "*b e"]
    ) -> tuple[Float[Tensor, "*b d"], Float[Tensor, "*b"] | None]:
        """Return V [s_t; h*_t] + b, and the log-odds of p_gen."""
        states = self.drop(self.combine(torch.cat([state, context], -1)))
        if self.gate is None:
            return states, None
        return states, self.gate(torch.cat([context, state, x], -1))[..., 0]

    def project_words(self, words: Float[Tensor, "*b e"]) -> Float[Tensor, "*b e"]:
        """Return the words' part of x_t, for any number of steps."""
        return linear(words, self.merge.weight[:, : self.dim], self.merge.bias)

    def word_vectors(self, ids: Int[Tensor, "*b"]) -> Float[Tensor, "*b e"]:
        """Return the vectors of words; all words outside the vocabulary share one."""
        return self.words(ids.masked_fill(ids >= self.size, UNKNOWN))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def at_least_float32(x: Tensor) -> Tensor:
    """Convert half precision to float32, because it is too coarse for a loss."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def coverage_loss(weights: Float[Tensor, "b t s"], valid: Bool[Tensor, "b t"]) -> Float[Tensor, ""]:
    """sum_t sum_i min(a_i^t, c_i^t) over the real words: repeated attention."""
    before = weights.cumsum(1) - weights
    return (torch.minimum(weights, before).sum(-1) * valid).sum()
