"""Look at every attention of a model while it runs, or change it."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as replace_fields
from difflib import get_close_matches
from threading import get_ident

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.core import Attention, AttentionHook

Edit = Callable[[Tensor], Tensor]  # weights [*b q k] -> weights of the same shape


class AttentionWeights(dict[str, list[Tensor]]):
    """Weights by attention name, one tensor a call: [batch, (heads,) queries, slots]."""

    def joined(self) -> dict[str, Tensor]:
        """One tensor a name: the calls of a decoder, one a step, joined along the queries."""
        return {name: join_calls(calls) for name, calls in self.items() if calls}


@contextmanager
def observe(
    model: nn.Module, names: Iterable[str] | None = None, *, detach: bool = True
) -> Generator[AttentionWeights]:
    """`with observe(model) as seen: model(batch)` records the weights of every attention.

    Or only of those with these `names`. Outputs are bit-identical with and without. The weights are
    those read, before dropout; `detach=False` leaves them their gradient, for a loss on them. Only
    calls of the same thread are recorded. A `torch.compile`d model is compiled once more.
    """
    attentions = named_attentions(model)
    if names is not None:
        attentions = {name: find_attention(attentions, name, "names") for name in names}
    recorded = AttentionWeights({name: [] for name in attentions})
    outer = {name: attention.hook for name, attention in attentions.items()}
    for name, attention in attentions.items():
        edit = None if (hook := outer[name]) is None else hook.edit
        attention.hooks[get_ident()] = AttentionHook(recorded[name], detach, edit)
    try:
        yield recorded
    finally:
        for name, attention in attentions.items():
            restore_hook(attention, hook := outer[name])
            if hook is not None:  # an observer around this one sees the same
                for weights in recorded[name]:
                    hook.record(weights)


@contextmanager
def intervene(model: nn.Module, edits: Mapping[str, Edit]) -> Generator[None]:
    """`with intervene(model, {"layers.0.own": zero(heads=[3])}): model(batch)` edits weights.

    Only calls of the same thread are edited.
    """
    attentions = named_attentions(model)
    attentions = {name: find_attention(attentions, name, "edits") for name in edits}
    outer = {name: attention.hook for name, attention in attentions.items()}
    for name, edit in edits.items():
        hook = outer[name] or AttentionHook()
        attentions[name].hooks[get_ident()] = replace_fields(hook, edit=edit)
    try:
        yield
    finally:
        for name, hook in outer.items():
            restore_hook(attentions[name], hook)


def restore_hook(attention: Attention, hook: AttentionHook | None) -> None:
    if hook is None:
        attention.hooks.pop(get_ident(), None)
    else:
        attention.hooks[get_ident()] = hook


def find_attention(attentions: Mapping[str, Attention], name: str, argument: str) -> Attention:
    if name not in attentions:
        suggestions = get_close_matches(name, attentions, 1)
        hint = (
            f"did you mean {suggestions[0]!r}?"
            if suggestions
            else f"there are {', '.join(attentions)}"
        )
        raise ValueError(f"{argument}: the model has no attention {name!r}; {hint}")
    return attentions[name]


def named_attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention by its path in the model, without the `.attention` by which heads hold it."""
    attentions: dict[str, Attention] = {}
    for path, module in model.named_modules():
        if isinstance(module, Attention):
            # torch.compile wraps a model under this name
            parts = [part for part in path.split(".") if part != "_orig_mod"]
            if len(parts) > 1 and parts[-1] == "attention":
                parts.pop()
            attentions[".".join(parts) or "attention"] = module
    if not attentions:
        raise ValueError(f"model {type(model).__name__} has no attention to look at")
    return attentions


def zero(heads: Sequence[int] | None = None) -> Edit:
    """Read nothing, in these heads (all, if none is named)."""
    return scale(0.0, heads)


def scale(factor: float, heads: Sequence[int] | None = None) -> Edit:
    """Read `factor` times as much, in these heads."""
    return lambda weights: replace_heads(weights, weights * factor, heads)


def replace(replacement: Tensor, heads: Sequence[int] | None = None) -> Edit:
    """Read with these weights, in these heads; `by` is broadcast to the weights it stands for."""

    def edit(weights: Tensor) -> Tensor:
        try:
            return replace_heads(weights, replacement.to(weights).expand_as(weights), heads)
        except RuntimeError as error:
            new_shape, old_shape = tuple(replacement.shape), tuple(weights.shape)
            raise ValueError(
                f"weights of shape {old_shape} cannot be replaced by {new_shape}"
            ) from error

    return edit


def replace_heads(weights: Tensor, replacement: Tensor, heads: Sequence[int] | None) -> Tensor:
    """`other` in these heads (axis -3), `weights` in the rest."""
    if heads is None:
        return replacement
    if weights.ndim < 4:
        raise ValueError(f"heads {list(heads)} were named, but this attention has no heads")
    count = weights.shape[-3]
    if not all(-count <= head < count for head in heads):
        raise ValueError(f"heads {list(heads)} do not all exist: this attention has {count}")
    is_selected = torch.zeros(count, dtype=torch.bool, device=weights.device)
    is_selected[list(heads)] = True
    return torch.where(is_selected[:, None, None], replacement, weights)


def join_calls(calls: Sequence[Tensor]) -> Tensor:
    """Calls one after another along the queries; a shorter memory is filled up with weight 0."""
    slots = max(call.shape[-1] for call in calls)
    return torch.cat([F.pad(call, (0, slots - call.shape[-1])) for call in calls], -2)
