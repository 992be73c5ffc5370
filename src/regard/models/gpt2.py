"""GPT-2: Radford et al. 2019, "Language models are unsupervised multitask learners".

    x      = dropout(E id + P)                                              2.3; Radford et al. 2018
    layers of:  x = x + causal self-attention(LN(x)),  x = x + W2 gelu(W1 LN(x))
    p(y_t | y_<t) = softmax(E LN(x_t))                                      E: the same table

"Layer normalization was moved to the input of each sub-block [...] and an additional layer
normalization was added after the final self-attention block" (2.3). Weights start from N(0, 0.02).
The last weights of a residual branch start from N(0, 0.02 / sqrt(N)), with N = 2 layers branches.
b: batch   t: positions   n: rows of a search   v: size   d: dim
"""

import math
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import causal
from regard.attention.memory import Memory
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.log_probabilities import log_probabilities
from regard.layers.activations import build_activation
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.positions import LearnedPositions
from regard.layers.prepared_stack import prepare_stack
from regard.layers.step_state import StepState, continue_steps
from regard.layers.transformer_block import TransformerBlock, TransformerStack

STD = 0.02
# Table 2 of the paper; heads as in the released models
SIZES = {
    "small": {"dim": 768, "heads": 12, "layers": 12},  # 124,439,808 weights with 50,257 tokens
    "medium": {"dim": 1024, "heads": 16, "layers": 24},  # 354,823,168
    "large": {"dim": 1280, "heads": 20, "layers": 36},  # 774,030,080
    "xl": {"dim": 1600, "heads": 25, "layers": 48},  # 1,557,611,200
}


class Gpt2State(NamedTuple):
    """Keys and values of the tokens read, for each layer; None before the first token."""

    rows: int
    past: tuple[Memory, ...] | None


class Gpt2(nn.Module):
    """The model of the equations above; the defaults are the small model. `SIZES` has all sizes.

    `max_positions` is the maximum number of tokens. `hidden_dim` is the width of the feed-forward
    layer (default: 4 dim). `dropout` acts on the output of each sublayer. `embedding_dropout` acts
    on the sum of word and position, `attention_dropout` on the weights (default: `dropout`).
    """

    cross_attentions = ()  # a language model has no source

    def __init__(
        self,
        size: int,
        *,
        dim: int = 768,
        heads: int = 12,
        layers: int = 12,
        max_positions: int = 1024,
        hidden_dim: int | None = None,
        activation: str = "tanh_gelu",
        norm_eps: float = 1e-5,
        dropout: float = 0.1,
        embedding_dropout: float | None = None,
        attention_dropout: float | None = None,
    ):
        super().__init__()
        check_positive("heads", heads)
        check_positive("layers", layers)
        self.max_positions = max_positions
        self.dropout = dropout if embedding_dropout is None else embedding_dropout
        check_dropout(self.dropout)
        self.words = Embedding(size, dim, init_std=STD)
        # differs: in the authors' code, but not in the paper, positions start from N(0, 0.01)
        self.position = LearnedPositions(max_positions, dim, init_std=STD)
        self.decoder = TransformerStack(
            TransformerBlock(
                *(dim, heads, hidden_dim or 4 * dim),
                norm="pre",
                norm_eps=norm_eps,
                activation=build_activation(activation),
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(layers)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize all weights as in the paper."""
        residual_std = STD / math.sqrt(2 * len(self.decoder.layers))
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                is_residual_output = name.endswith(("self_attention.out", "feed.narrow"))
                nn.init.normal_(module.weight, std=residual_std if is_residual_output else STD)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm | Embedding | LearnedPositions):
                module.reset_parameters()

    def begin(self, rows: int) -> Gpt2State:
        """Return the state before the first token."""
        return Gpt2State(rows, None)

    def read(
        self, state: Gpt2State | StepState, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], Gpt2State]:
        """Continue from `state`; return the state at each token, which predicts the next one."""
        if isinstance(state, StepState):
            state = Gpt2State(state.rows, tuple(state.memories()))
        rows, past = state
        if len(ids) != rows:
            raise InputError(f"ids have {len(ids)} rows, but the state has {rows}")
        start = 0 if past is None else past[0].slots
        self.check_length(start + ids.shape[1])
        words = dropout(self.position(self.words(ids), start), self.dropout, self.training)
        states, past = self.decoder(words, mask=causal, past=past)
        return states, Gpt2State(rows, tuple(past))

    def check_length(self, length: int) -> None:
        if length > self.max_positions:
            raise InputError(
                f"ids reach position {length}, but max_positions is {self.max_positions}; "
                "read fewer tokens, or begin with a new state"
            )

    def teacher_forced(
        self, memory: Gpt2State | None, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        return self.read(self.begin(len(target)) if memory is None else memory, target)[0]

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.words.logits(states)

    def start(self, memory: Gpt2State) -> Gpt2State:
        """Return the state itself: the memory of a language model is the state after the prompt."""
        return memory

    def step(
        self, state: Gpt2State | StepState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Gpt2State | StepState]:
        if isinstance(state, Gpt2State):
            stack = None if state.past is None else prepare_stack(self.decoder)
            if stack is None or state.past is None:
                states, state = self.read(state, tokens[:, None])
                return log_probabilities(self.logits(states[:, 0])), state
            state = continue_steps(stack, state.past)
        self.check_length(state.length + 1)
        words = self.position(self.words(tokens[:, None]), state.length)
        states, state = state.step(words[:, 0])
        return log_probabilities(self.logits(states)), state

    def select(
        self, state: Gpt2State | StepState, rows: Int[Tensor, " m"]
    ) -> Gpt2State | StepState:
        if isinstance(state, StepState):
            return state.select(rows)
        past = state.past
        if past is not None:
            past = tuple(layer.select(rows) for layer in past)
        return Gpt2State(len(rows), past)

    def detach(self, state: Gpt2State | StepState) -> Gpt2State | StepState:
        """Return the state without its gradient."""
        if isinstance(state, StepState) or state.past is None:
            return state
        return Gpt2State(state.rows, tuple(memory.detach() for memory in state.past))

    @property
    def output(self) -> Embedding:
        """The layer before the softmax."""
        return self.words
