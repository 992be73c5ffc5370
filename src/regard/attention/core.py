"""The one attention: score the keys, normalize, read the values."""

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
from regard.attention.slices import FusedInputs, attend_in_slices, needs_slices
from regard.attention.validation import (
    check_broadcasts_to,
    check_dropout,
    check_finite,
    check_sequence,
    check_width,
)
from regard.errors import InputError


@dataclass
class AttentionHook:
    """The record and the edit of attention weights that one thread has attached."""

    recorded: list[Tensor] | None = None
    detach: bool = True  # recorded weights have no gradient, and are on the CPU
    edit: Callable[[Tensor], Tensor] | None = None

    def record(self, weights: Tensor) -> None:
        if self.recorded is not None:
            self.recorded.append(weights.detach().cpu() if self.detach else weights)


class Attention(nn.Module):
    """context = normalize(score(query, keys)) @ values.

    The fused kernel (`F.scaled_dot_product_attention`) runs if the score is of the dot family, the
    normalizer is softmax, and there is neither a window nor an edit of the weights. Observation
    does not change the output.

    >>> import torch
    >>> from regard.attention.scores import Additive
    >>> attention = Attention(Additive(query_dim=4, memory_dim=6, hidden_dim=5))
    >>> memory = attention.remember(torch.randn(2, 7, 6))        # 2 texts, 7 slots, width 6
    >>> attention(torch.randn(2, 1, 4), memory).shape            # one query for each text
    torch.Size([2, 1, 6])
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
        # Set by `observe` and `intervene`, never by a model. The key is the id of a thread, so that
        # one thread does not observe another. torch.compile can guard on an empty dictionary.
        self.hooks: dict[int, AttentionHook] = {}

    @property
    def hook(self) -> "AttentionHook | None":
        """The observer and the edit of this thread, or None.

        A compiled model cannot read the id of its thread: only one thread at a time may observe it.
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
        """Prepare the memory of these states once; queries read `values` (default: `states`)."""
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
        """Return the context of each query.

        `mask` is a predicate on positions. `bias` is added to the energies. `start` is the position
        of the first query; by default the queries are at the last positions of the memory.
        """
        self.check(query, memory, bias)
        dot = self.fused_score
        hook = self.hook
        if dot is None or (hook is not None and hook.edit is not None):
            return self.read(self._weigh(query, memory, mask, bias, start), memory)
        if hook is not None and hook.recorded is not None:  # a second pass; the output is the same
            with torch.set_grad_enabled(torch.is_grad_enabled() and not hook.detach):
                hook.record(self._weigh(query, memory, mask, bias, start))
        fused = self._fused_inputs(dot, query, memory, mask, bias, start)
        dropout, lead = self.dropout if self.training else 0.0, query.shape[:-2]
        if needs_slices(fused.query, dropout):
            context = attend_in_slices(fused, dropout, dot.scale(fused.keys))
        else:
            context = F.scaled_dot_product_attention(
                fused.query,
                fused.keys,
                fused.values,
                attn_mask=fused.mask,
                dropout_p=dropout,
                is_causal=fused.is_causal,
                scale=dot.scale(fused.keys),
                enable_gqa=fused.query.shape[1] != fused.keys.shape[1],
            )
        return context if len(lead) == 2 else context.reshape(*lead, *context.shape[-2:])

    def weigh(
        self,
        query: Float[Tensor, "*b q dq"],
        memory: Memory,
        mask: Mask | None = None,
        bias: Float[Tensor, "*#b #q k"] | None = None,
        start: int | None = None,
    ) -> Float[Tensor, "*b q k"]:
        """Return the weights, with their gradient, to change them before `read`."""
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
        return self.normalize_energy(
            energy, query, memory, memory.allowed_slots(query.shape[-2], mask, start)
        )

    def normalize_energy(
        self, energy: Tensor, query: Tensor, memory: Memory, allowed: Tensor | None
    ) -> Float[Tensor, "*b q k"]:
        """Return the weights of these energies; only slots that are `allowed` get any."""
        gain = None
        if self.window is not None:
            inside, gain = self.window(query, memory)
            allowed = inside if allowed is None else allowed & inside
        if allowed is not None:
            energy = energy.masked_fill(~allowed, -torch.inf)
        weights = self.normalize(energy)
        return weights if gain is None else weights * gain

    def read(self, weights: Float[Tensor, "*b q k"], memory: Memory) -> Float[Tensor, "*b q dv"]:
        """context = weights @ values; `observe` and `intervene` act here."""
        if weights.shape[-1] != memory.slots:
            raise InputError(f"weights have {weights.shape[-1]} slots, but memory {memory.slots}")
        weights = self.intercept(weights)
        if self.training and self.dropout:
            weights = F.dropout(weights, self.dropout)
        return matmul_shared_heads(weights, repeat_for_heads(memory.values, weights))

    def intercept(self, weights: Float[Tensor, "*b q k"]) -> Float[Tensor, "*b q k"]:
        """Apply the edit of this thread to the weights, and record the result."""
        hook = self.hook
        if hook is None:
            return weights
        if hook.edit is not None:
            weights = hook.edit(weights)
        hook.record(weights)
        return weights

    @property
    def fused_score(self) -> Dot | None:
        """The score if the fused kernel computes this attention, else None."""
        is_plain = self.normalize is softmax and self.window is None
        return self.score if is_plain and isinstance(self.score, Dot) else None

    def _fused_inputs(
        self,
        dot: Dot,
        query: Tensor,
        memory: Memory,
        mask: Mask | None,
        bias: Tensor | None,
        start: int | None,
    ) -> FusedInputs:
        lead, queries = query.shape[:-2], query.shape[-2]
        is_square = queries == memory.slots and start in (None, 0)  # is_causal needs it
        is_causal = is_square and mask is causal and memory.valid is None and bias is None
        attention_mask = None if is_causal else memory.allowed_slots(queries, mask, start)
        if bias is not None:
            attention_mask = (
                bias if attention_mask is None else bias.masked_fill(~attention_mask, -torch.inf)
            )
        keys, values = memory.keys, memory.values
        if len(lead) != 2:  # the kernel shares keys between heads only with axes [batch, heads]
            keys, values = repeat_for_heads(keys, query), repeat_for_heads(values, query)
        return FusedInputs(
            to_four_axes(dot.prepare_query(query), lead),
            to_four_axes(keys, lead),
            to_four_axes(values, lead),
            None if attention_mask is None else to_four_axes(attention_mask, lead),
            is_causal,
        )

    def check(self, query: Tensor, memory: Memory, bias: Tensor | None) -> None:
        check_sequence("query", query)
        if memory.slots == 0:
            raise InputError("memory has no slots; attention needs at least one")
        self.score.check(query, memory.keys)
        check_leading(query.shape[:-2], memory)
        if query.dtype != memory.keys.dtype and not torch.is_autocast_enabled(query.device.type):
            raise InputError(f"query is {query.dtype} but memory is {memory.keys.dtype}")
        if bias is not None:
            check_broadcasts_to("bias", bias.shape, (*query.shape[:-1], memory.slots))
        check_finite("query", query)


def repeat_for_heads(slots: Tensor, query: Tensor) -> Tensor:
    """Repeat slots that several heads share, for grouped or multi-query heads."""
    if slots.ndim < 4 or slots.shape[-3] in (1, query.shape[-3]):
        return slots
    return slots.repeat_interleave(query.shape[-3] // slots.shape[-3], -3)


def to_four_axes(x: Tensor, lead: torch.Size) -> Tensor:
    """Return `x` as [batch, heads, …]; in any other layout the fused kernel falls back."""
    if len(lead) == 2:
        heads = x.shape[-3] if x.ndim > 2 else 1
        return x if x.shape[:-2] == lead else x.expand(lead[0], heads, *x.shape[-2:])
    return x.expand(*lead, *x.shape[-2:]).reshape(-1, 1, *x.shape[-2:])
