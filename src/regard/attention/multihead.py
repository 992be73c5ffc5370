"""Multi-head attention, and pooling by a learned query."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.masks import Mask
from regard.attention.memory import Memory
from regard.attention.validation import check_finite, check_positive, check_width
from regard.errors import InputError
from regard.kernels.linear import Linear, joint_linear

# (states [*b t d], first position) -> rotated states
RotaryFunction = Callable[[Tensor, int], Tensor]
# (queries, slots, first query) -> bias [h q k]
RelativeBiasFunction = Callable[[int, int, int], Tensor]


class MultiHead(nn.Module):
    """head_i = attention(W_q q, W_k h, W_v h),  output = W_o [head_1; …], over any attention.

    Vaswani et al. 2017, 3.2.2. The `heads` query heads share `groups` key/value heads. Fewer groups
    make the cache smaller (Ainslie et al. 2023); one group is multi-query attention (Shazeer 2019).

    >>> import torch
    >>> from regard.attention.core import Attention
    >>> from regard.attention.scores import ScaledDot
    >>> multihead = MultiHead(Attention(ScaledDot()), dim=8, heads=2)
    >>> output, past = multihead.self_attend(torch.randn(3, 5, 8))
    >>> output.shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        attention: Attention,
        dim: int,
        heads: int,
        *,
        memory_dim: int | None = None,
        groups: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        rotary: RotaryFunction | None = None,
        relative: RelativeBiasFunction | None = None,
    ):
        super().__init__()
        check_positive("heads", heads)
        groups = heads if groups is None else groups
        if head_dim is None and dim % heads:
            raise InputError(f"dim {dim} is not a multiple of heads {heads}")
        if groups < 1 or heads % groups:
            raise InputError(f"heads {heads} is not a multiple of groups {groups}")
        self.dim, self.memory_dim = dim, memory_dim or dim
        self.head_dim = head_dim or dim // heads
        self.attention, self.heads, self.groups = attention, heads, groups
        self.rotary, self.relative, self.has_bias = rotary, relative, bias
        self.to_query = Linear(dim, heads * self.head_dim, bias)
        self.to_key = Linear(self.memory_dim, groups * self.head_dim, bias)
        self.to_value = Linear(self.memory_dim, groups * self.head_dim, bias)
        self.out = Linear(heads * self.head_dim, dim, bias)

    def remember(
        self,
        states: Float[Tensor, "b k ds"],
        valid: Bool[Tensor, "b k"] | None = None,
        start: int = 0,
    ) -> Memory:
        """Return keys and values of each head; `start` is the position of the first state."""
        check_width("states", states, self.memory_dim)
        check_finite("states", states)
        keys, values = (
            self.split_heads(self.to_key(states)),
            self.split_heads(self.to_value(states)),
        )
        return self.remember_projected(keys, values, valid, start)

    def remember_projected(
        self,
        keys: Float[Tensor, "b h k dh"],
        values: Float[Tensor, "b h k dh"],
        valid: Bool[Tensor, "b k"] | None,
        start: int,
    ) -> Memory:
        if self.rotary is not None:
            keys = self.rotary(keys, start)
        return self.attention._remember(keys, None if valid is None else valid[:, None], values)

    def forward(
        self,
        query: Float[Tensor, "b q d"],
        memory: Memory,
        mask: Mask | None = None,
        bias: Float[Tensor, "*#b #q k"] | None = None,
        start: int | None = None,
    ) -> Float[Tensor, "b q d"]:
        """Return the output for each query.

        `start` is the position of the first query. None: the queries are at the last positions of
        the memory.
        """
        check_width("query", query, self.dim)
        query, bias = self.add_positions(
            self.split_heads(self.to_query(query)), memory, bias, start
        )
        return self.merge_heads(self.attention(query, memory, mask, bias, start))

    def self_attend(
        self,
        states: Float[Tensor, "b t d"],
        valid: Bool[Tensor, "b t"] | None = None,
        mask: Mask | None = None,
        past: Memory | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Memory]:
        """Let states attend to themselves and `past`; return the outputs and the new past."""
        check_width("states", states, self.dim)
        check_finite("states", states)
        start = 0 if past is None else past.slots
        query, keys, values = (self.split_heads(x) for x in self.project(states))
        slots = self.remember_projected(keys, values, valid, start)
        if past is not None:
            slots = past.append(slots)
        query, bias = self.add_positions(query, slots, None, start)
        return self.merge_heads(self.attention(query, slots, mask, bias, start)), slots

    def project(self, states: Float[Tensor, "b t d"]) -> Sequence[Float[Tensor, "b t _"]]:
        """Return query, key and value of each state."""
        return joint_linear(states, (self.to_query, self.to_key, self.to_value))

    def add_positions(
        self,
        query: Float[Tensor, "b h q dh"],
        memory: Memory,
        bias: Float[Tensor, "*#b #q k"] | None,
        start: int | None,
    ) -> tuple[Float[Tensor, "b h q dh"], Float[Tensor, "*#b #q k"] | None]:
        """Return the rotated query, and the bias with that of relative positions."""
        queries = query.shape[2]
        first = memory.slots - queries if start is None else start
        if self.rotary is not None:
            query = self.rotary(query, first)
        if self.relative is not None:
            relative = self.relative(queries, memory.slots, first)
            bias = relative if bias is None else bias + relative
        return query, bias

    def split_heads(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b h t dh"]:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def merge_heads(self, context: Float[Tensor, "b h t dh"]) -> Float[Tensor, "b t d"]:
        """Return W_o [head_1; … ; head_h]."""
        return self.out(context.transpose(1, 2).flatten(2))


class AttentionPooling(nn.Module):
    """Pool a memory into one vector for each learned query (Yang et al. 2016, eq. 5-7)."""

    def __init__(self, attention: Attention, query_dim: int, queries: int = 1):
        super().__init__()
        check_positive("query_dim", query_dim)
        check_positive("queries", queries)
        self.attention = attention
        self.query = nn.Parameter(torch.randn(queries, query_dim) / query_dim**0.5)

    def forward(
        self, states: Float[Tensor, "b k d"], valid: Bool[Tensor, "b k"] | None = None
    ) -> Float[Tensor, "b _"]:
        query = self.query.to(states.dtype).expand(states.shape[0], -1, -1)
        return self.attention(query, self.attention.remember(states, valid)).flatten(1)
