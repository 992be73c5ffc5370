"""The one attention: score the keys, normalise, read the values."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.masks import Mask, causal
from regard.attention.matmul import matmul_shared_heads
from regard.attention.memory import Memory, check_leading
from regard.attention.normalizers import softmax
from regard.attention.scores import Dot, Score
from regard.attention.validation import (
    check_broadcasts_to,
    check_dropout,
    check_finite,
    check_sequence,
    check_width,
)


@dataclass
class AttentionHook:
    """What one thread records of an attention, and how it edits the weights."""

    recorded: list[Tensor] | None = None
    detach: bool = True  # recorded weights have no gradient
    edit: Callable[[Tensor], Tensor] | None = None

    def record(self, weights: Tensor) -> None:
        if self.recorded is not None:
            self.recorded.append(weights.detach() if self.detach else weights)


class Attention(nn.Module):
    """context = normalise(score(query, keys)) @ values.

    Fused (`F.scaled_dot_product_attention`) exactly when the score is of the dot family, the
    normaliser is softmax, there is no window and nobody intervenes; looking changes nothing.
    """

    def __init__(
        self,
        score: Score,
        normalize: Callable[[Tensor], Tensor] = softmax,
        window: nn.Module | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        self.score, self.normalize, self.window, self.dropout = score, normalize, window, dropout
        # Set by `observe` and `intervene`, by thread, never by a model: a thread that observes
        # changes nothing in another. A dictionary, because torch.compile can guard on an empty one.
        self.hooks: dict[int, AttentionHook] = {}

    @property
    def hook(self) -> "AttentionHook | None":
        """The observer and the edit of this thread, if there are any.

        A compiled model cannot ask for its thread: it is observed by one thread at a time.
        """
        if not self.hooks:
            return None
        if torch.compiler.is_compiling():
            return next(iter(self.hooks.values()))
        return self.hooks.get(get_ident())

    def remember(
        self,
        states: Float[Tensor, "*b k ds"],
        valid: Bool[Tensor, "*#b k"] | None = None,
        values: Float[Tensor, "*b k dv"] | None = None,
    ) -> Memory:
        """Prepare states to be attended to, once. Read are the values, by default the states."""
        check_sequence("states", states)
        if self.score.memory_dim is not None:
            check_width("states", states, self.score.memory_dim)
        check_finite("states", states)
        if values is not None:
            check_sequence("values", values)
            check_finite("values", values)
        return self._remember(states, valid, values)

    def _remember(self, states: Tensor, valid: Tensor | None, values: Tensor | None) -> Memory:
        return Memory(self.score.prepare(states), states if values is None else values, valid)

    def forward(
        self,
        query: Float[Tensor, "*b q dq"],
        memory: Memory,
        mask: Mask | None = None,
        bias: Float[Tensor, "*#b #q k"] | None = None,
        start: int | None = None,
    ) -> Float[Tensor, "*b q dv"]:
        """What each query reads.

        `mask` is a predicate on positions; `start` is the position of the first query, by default
        such that the queries are the last ones of the memory. `bias` is added to the energies.
        """
        self.check(query, memory, bias)
        dot = self.fused_score
        hook = self.hook
        if dot is None or (hook is not None and hook.edit is not None):
            return self.read(self._weigh(query, memory, mask, bias, start), memory)
        if hook is not None and hook.recorded is not None:  # a second pass, which changes nothing
            with torch.set_grad_enabled(torch.is_grad_enabled() and not hook.detach):
                hook.record(self._weigh(query, memory, mask, bias, start))
        return self._attend_fused(dot, query, memory, mask, bias, start)

    def weigh(
        self,
        query: Float[Tensor, "*b q dq"],
        memory: Memory,
        mask: Mask | None = None,
        bias: Float[Tensor, "*#b #q k"] | None = None,
        start: int | None = None,
    ) -> Float[Tensor, "*b q k"]:
        """The weights, with their gradient, for those who change them before they `read`."""
        self.check(query, memory, bias)
        return self._weigh(query, memory, mask, bias, start)

    def _weigh(
        self,
        query: Tensor,
        memory: Memory,
        mask: Mask | None,
        bias: Tensor | None,
        start: int | None,
    ) -> Tensor:
        energy = self.score(query, repeat_for_heads(memory.keys, query))
        if bias is not None:
            energy = energy + bias
        allowed = memory.allowed_slots(query.shape[-2], mask, start)
        gain = None
        if self.window is not None:
            inside, gain = self.window(query, memory)
            allowed = inside if allowed is None else allowed & inside
        if allowed is not None:
            energy = energy.masked_fill(~allowed, -torch.inf)
        weights = self.normalize(energy)
        return weights if gain is None else weights * gain

    def read(self, weights: Float[Tensor, "*b q k"], memory: Memory) -> Float[Tensor, "*b q dv"]:
        """context = weights @ values; here the weights are seen, and edited."""
        if weights.shape[-1] != memory.slots:
            raise ValueError(f"weights have {weights.shape[-1]} slots, memory has {memory.slots}")
        weights = self.intercept(weights)
        if self.training and self.dropout:
            weights = F.dropout(weights, self.dropout)
        return matmul_shared_heads(weights, repeat_for_heads(memory.values, weights))

    def intercept(self, weights: Float[Tensor, "*b q k"]) -> Float[Tensor, "*b q k"]:
        """Return the weights as they are used, after the edit and the observer of this thread."""
        hook = self.hook
        if hook is None:
            return weights
        if hook.edit is not None:
            weights = hook.edit(weights)
        hook.record(weights)
        return weights

    @property
    def fused_score(self) -> Dot | None:
        """The score, if the fused kernel computes all of this attention."""
        is_plain = self.normalize is softmax and self.window is None
        return self.score if is_plain and isinstance(self.score, Dot) else None

    def _attend_fused(
        self,
        dot: Dot,
        query: Tensor,
        memory: Memory,
        mask: Mask | None,
        bias: Tensor | None,
        start: int | None,
    ) -> Tensor:
        lead, queries = query.shape[:-2], query.shape[-2]
        is_square = queries == memory.slots and start in (None, 0)  # where is_causal means causal
        is_causal = is_square and mask is causal and memory.valid is None and bias is None
        attention_mask = None if is_causal else memory.allowed_slots(queries, mask, start)
        if bias is not None:
            attention_mask = (
                bias if attention_mask is None else bias.masked_fill(~attention_mask, -torch.inf)
            )
        keys, values = memory.keys, memory.values
        if len(lead) != 2:  # the kernel shares keys among heads only in its own layout
            keys, values = repeat_for_heads(keys, query), repeat_for_heads(values, query)
        keys, values = to_four_axes(keys, lead), to_four_axes(values, lead)
        query = to_four_axes(dot.prepare_query(query), lead)
        context = F.scaled_dot_product_attention(
            query,
            keys,
            values,
            attn_mask=None if attention_mask is None else to_four_axes(attention_mask, lead),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            scale=dot.scale(keys),
            enable_gqa=query.shape[1] != keys.shape[1],
        )
        return context if len(lead) == 2 else context.reshape(*lead, *context.shape[-2:])

    def check(self, query: Tensor, memory: Memory, bias: Tensor | None) -> None:
        check_sequence("query", query)
        if memory.slots == 0:
            raise ValueError("memory has no slots: there is nothing to attend to")
        self.score.check(query, memory.keys)
        check_leading(query.shape[:-2], memory)
        if query.dtype != memory.keys.dtype and not torch.is_autocast_enabled(query.device.type):
            raise ValueError(f"query is {query.dtype} but memory is {memory.keys.dtype}")
        if bias is not None:
            check_broadcasts_to("bias", bias.shape, (*query.shape[:-1], memory.slots))
        check_finite("query", query)


def repeat_for_heads(slots: Tensor, query: Tensor) -> Tensor:
    """Slots that several heads share, repeated for each of them (grouped or multi-query heads)."""
    if slots.ndim < 4 or slots.shape[-3] in (1, query.shape[-3]):
        return slots
    return slots.repeat_interleave(query.shape[-3] // slots.shape[-3], -3)


def to_four_axes(x: Tensor, lead: torch.Size) -> Tensor:
    """[batch, heads, …], the only layout that the fused kernel takes without falling back."""
    if len(lead) == 2:
        heads = x.shape[-3] if x.ndim > 2 else 1
        return x if x.shape[:-2] == lead else x.expand(lead[0], heads, *x.shape[-2:])
    return x.expand(*lead, *x.shape[-2:]).reshape(-1, 1, *x.shape[-2:])
